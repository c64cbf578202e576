#!/usr/bin/env bash
# Builds the documentation as a site and checks that its links lead somewhere.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$PGQUAD_ROOT"
# The version that the site was last looked at with.
MDBOOK=0.5.4
command -v mdbook >/dev/null ||
    die "there is no mdbook: cargo install mdbook --version $MDBOOK --locked (minutes)," \
        "or get the program from https://rust-lang.github.io/mdBook"
"$PYTHON" dev/book/check_pages.py
site=$CARGO_TARGET_DIR/book
mdbook build --dest-dir "$site"
"$PYTHON" dev/book/check_site.py "$site"
say "$site/index.html"
