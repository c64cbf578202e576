#!/usr/bin/env bash
# The private PostgreSQL server: up | down | status | psql [arguments] | reset (stops it and removes its data).
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
find_state_dir
data=$PGQUAD_STATE/data-$PG_MAJOR
log=$PGQUAD_STATE/server.log
bin=$(pg_bindir)

running() { as_server "$bin/pg_ctl" -D "$data" status >/dev/null 2>&1; }

settings() {
    cat <<CONF
listen_addresses = '127.0.0.1'
port = $PGQUAD_PORT
unix_socket_directories = '$(socket_dir "$PGQUAD_PORT")'
shared_preload_libraries = '$(preload_libraries)'
max_prepared_transactions = 64
shared_buffers = 256MB
maintenance_work_mem = 256MB
max_wal_size = 4GB
log_line_prefix = '%m [%p] %q%u@%d '
timezone = 'UTC'
# library: $(sha256sum <"$(pg_pkglibdir)/pgquad.so")
CONF
}

psql_line() { say "psql -h 127.0.0.1 -p $PGQUAD_PORT -U postgres pgquad"; }

up() {
    [ -e "$(pg_pkglibdir)/pgquad.so" ] || die "the extension is not installed: run 'make install' first"
    if [ ! -e "$data/PG_VERSION" ]; then
        step "creating the private server in $data"
        as_server rm -rf "$data"
        quietly as_server "$bin/initdb" -D "$data" -U postgres --auth=trust -E UTF8 --locale=C.UTF-8
        as_server sh -c "echo \"include_if_exists = 'pgquad.conf'\" >>'$data/postgresql.conf'"
    fi
    # The settings name the library's digest, so that a new build restarts the server.
    if ! settings | as_server cmp -s - "$data/pgquad.conf"; then
        if running; then quietly as_server "$bin/pg_ctl" -D "$data" -m fast -w stop; fi
        settings | as_server tee "$data/pgquad.conf" >/dev/null
    fi
    if ! running; then
        if (exec 3<>"/dev/tcp/127.0.0.1/$PGQUAD_PORT") 2>/dev/null; then
            die "port $PGQUAD_PORT is taken by another program: choose one with PGQUAD_PORT=..."
        fi
        step "starting the private server on 127.0.0.1:$PGQUAD_PORT"
        if ! as_server "$bin/pg_ctl" -D "$data" -l "$log" -w start >/dev/null 2>&1; then
            tail -n 20 "$log" >&2
            die "the server does not start; its log is $log"
        fi
    fi
    use_private_server postgres
    if [ -z "$(run_psql -Atc "select 1 from pg_database where datname = 'pgquad'")" ]; then
        run_psql -c "create database pgquad"
    fi
    PGDATABASE=pgquad
    if has_citus; then run_psql -c "create extension if not exists citus"; fi
    run_psql -c "create extension if not exists pgquad"
    note_sql_version
    psql_line
}

# The extension's version does not change with every build; a database made by another build is worth a word.
note_sql_version() {
    local now=$PGQUAD_STATE/created-with
    local digest
    digest=$(cat "$(pg_sharedir)"/extension/pgquad--*.sql | sha256sum)
    if [ ! -e "$now" ]; then
        echo "$digest" | as_server tee "$now" >/dev/null
    elif [ "$(cat "$now")" != "$digest" ]; then
        warn "database pgquad was made by another build of the extension;" \
            "'make reset up' makes a new one (and drops its data)"
    fi
}

down() {
    if [ -e "$data/PG_VERSION" ] && running; then
        quietly as_server "$bin/pg_ctl" -D "$data" -m fast -w stop
        say "the private server is stopped"
    else
        say "the private server is not running"
    fi
}

case ${1:-} in
up) up ;;
down) down ;;
status) if running; then psql_line; else
    say "not running"
    exit 3
fi ;;
psql)
    shift
    use_private_server pgquad
    exec "$bin/psql" "$@"
    ;;
reset)
    down
    as_server rm -rf "$data" "$PGQUAD_STATE/created-with"
    ;;
*) die "usage: $0 up | down | status | psql | reset" ;;
esac
