#!/usr/bin/env bash
# Builds the workbench into server/workbench/dist, from where the build of pgquad-server takes it. Skipped when nothing
# has changed. Where Node.js is missing or its packages cannot be had, the server is built without it and has a plain
# page instead.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT/server/workbench"
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false

without() {
    warn "the workbench is left out: $1"
    exit 0
}

digest() {
    { node --version && sha256sum package-lock.json && find index.html ./*.json ./*.mjs src tools -type f -print0 |
        LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum
}

[ -w dist ] || without "$PWD/dist cannot be written"
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    without "there is no Node.js with npm (make setup installs them)"
fi
[ "$(node -p 'parseInt(process.versions.node) >= 18')" = true ] ||
    without "Node.js $(node --version) is too old: 18 or newer is needed"
wanted=$(digest)
stamp=dist/built
if [ -e dist/site/index.html ] && [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi
step "building the workbench"
packages=$(sha256sum <package-lock.json)
if [ "$(cat node_modules/.pgquad 2>/dev/null)" != "$packages" ]; then
    if ! timeout 300 npm install --no-save --loglevel=error >dist/npm.log 2>&1; then
        tail -n 5 dist/npm.log >&2
        without "its packages cannot be had (npm install)"
    fi
    printf '%s\n' "$packages" >node_modules/.pgquad
fi
if ! npm run --silent build >dist/build.log 2>&1; then
    cat dist/build.log >&2
    without "it does not build"
fi
tail -n 1 dist/build.log
printf '%s\n' "$wanted" >"$stamp"
