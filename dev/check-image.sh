#!/usr/bin/env bash
# Checks that cargo can read what the Dockerfile copies into the image: the project without what .dockerignore names.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard |
    tar --create --exclude-from=.dockerignore --null --files-from=- | tar --extract --directory="$copy"
cargo metadata --locked --offline --no-deps --format-version 1 --manifest-path "$copy/Cargo.toml" >/dev/null
say "cargo reads the workspace that the image is built from"
