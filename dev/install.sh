#!/usr/bin/env bash
# Builds the extension and puts it into the PostgreSQL of PG_CONFIG. Skipped when neither the sources nor the installed
# library have changed since the last time.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"

libdir=$(pg_pkglibdir)
extdir=$(pg_sharedir)/extension
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd -P)
stamp=$CARGO_TARGET_DIR/pgquad-installed-$(printf %s "$libdir" | sha256sum | cut -c1-8)

version=$(dev/sql.sh version)

sources_digest() {
    # All of sql/ but the script that this script writes.
    find Cargo.toml Cargo.lock extension sql -type f ! -path '*/target/*' ! -path "sql/pgquad--$version.sql" -print0 |
        LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}
installed_digest() {
    [ -e "$libdir/pgquad.so" ] && cat "$libdir/pgquad.so" "$extdir"/pgquad[-.]* | sha256sum
}

# With cargo-pgrx the script is made from the sources. Without it, it is the committed one: minutes less on a fresh
# machine.
if has_cargo_pgrx; then script=made; else script=committed; fi
if [ "$script" = committed ] && [ -n "${PGQUAD_TOGETHER:-}" ] && [ ! -e "$CARGO_TARGET_DIR/release/libpgquad.so" ]; then
    : >"$CARGO_TARGET_DIR/pgquad-built-together"
fi

# Taken before the build: what changes meanwhile is built the next time.
sources="$(sources_digest) $script"
if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$sources $(installed_digest)" ]; then
    exit 0
fi

# What the endpoint takes its pages from.
if builds_together; then dev/workbench.sh; fi
step "building the extension"
package=$CARGO_TARGET_DIR/pgquad-package
log=$CARGO_TARGET_DIR/pgquad-package.log
rm -rf "$package"
build_package() {
    local features=(--no-default-features --features "pg$PG_MAJOR")
    if [ "$script" = made ]; then
        # The package step may rewrite nothing in the source tree and needs no right to write into PostgreSQL's
        # directories.
        (cd extension/pgquad && cargo pgrx package --pg-config "$PG_CONFIG" --out-dir "$package" "${features[@]}")
        return
    fi
    build_release --lib -p pgquad "${features[@]}" &&
        mkdir -p "$package" &&
        cp "$CARGO_TARGET_DIR/release/libpgquad.so" "$package/pgquad.so" &&
        sed "s/@CARGO_VERSION@/$version/" extension/pgquad/pgquad.control >"$package/pgquad.control" &&
        cp sql/pgquad--*.sql "$package/"
}
if ! build_package >"$log" 2>&1; then
    cat "$log" >&2
    die "the extension does not build"
fi

step "installing the extension into $libdir"
# install(1) replaces files instead of overwriting them, so servers that run the old library are not disturbed.
put() {
    local sudo=()
    [ -w "$2" ] || sudo=(as_root)
    find "$package" -type f -name "$1" -print0 | xargs -0 -r -I{} echo {} | while IFS= read -r file; do
        "${sudo[@]}" install -m "$3" "$file" "$2/"
    done
}
put 'pgquad.so' "$libdir" 755
put 'pgquad.control' "$extdir" 644
put 'pgquad--*.sql' "$extdir" 644
printf '%s %s\n' "$sources" "$(installed_digest)" >"$stamp"
# The repository's copy of the installed script follows what is built: a change of it belongs to the commit that makes
# it.
if [ "$script" = made ] && [ -w sql ]; then dev/sql.sh write; fi
