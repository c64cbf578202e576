#!/usr/bin/env bash
# A cluster on this machine: a coordinator and two workers on 127.0.0.1, each a PostgreSQL with Citus and pgquad,
# database pgquad.
# Usage: up | down | status | psql NODE [arguments] (NODE: 1 = coordinator, 2, 3) | reset (stops it, removes its data).
#   PGQUAD_CLUSTER_PORT    port of the coordinator; the workers have the next two (default 54341)
#   PGQUAD_CLUSTER_SHARDS  shards of store `main` (default 8)
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
find_state_dir
: "${PGQUAD_CLUSTER_PORT:=54341}"
: "${PGQUAD_CLUSTER_SHARDS:=8}"
NODES=(1 2 3)
bin=$(pg_bindir)

port_of() { echo $((PGQUAD_CLUSTER_PORT + $1 - 1)); }
data_of() { echo "$PGQUAD_STATE/cluster/node$1"; }
running() { as_server "$bin/pg_ctl" -D "$(data_of "$1")" status >/dev/null 2>&1; }
psql_line() { say "psql -h 127.0.0.1 -p $(port_of "$1") -U postgres pgquad"; }

# on NODE ARGUMENTS: psql on a node's database pgquad.
on() {
    local node=$1
    shift
    use_private_server "${DATABASE:-pgquad}"
    PGPORT=$(port_of "$node") run_psql "$@"
}

settings() {
    cat <<CONF
listen_addresses = '127.0.0.1'
port = $(port_of "$1")
# The nodes meet here: a message takes less time than over TCP.
unix_socket_directories = '$(socket_dir "$PGQUAD_CLUSTER_PORT")'
shared_preload_libraries = 'citus,pgquad'
# Citus commits writes to several nodes in two phases.
max_prepared_transactions = 200
max_connections = 200
# The nodes meet on loopback.
citus.node_conninfo = 'sslmode=disable'
shared_buffers = 256MB
maintenance_work_mem = 256MB
max_wal_size = 4GB
log_line_prefix = '%m [%p] %q%u@%d '
timezone = 'UTC'
# library: $(sha256sum <"$(pg_pkglibdir)/pgquad.so")
CONF
}

# Creates and starts the server of a node, with database pgquad and Citus in it.
start_node() {
    local data
    data=$(data_of "$1")
    if [ ! -e "$data/PG_VERSION" ]; then
        step "creating node $1 in $data"
        as_server mkdir -p "$(dirname "$data")"
        as_server rm -rf "$data"
        quietly as_server "$bin/initdb" -D "$data" -U postgres --auth=trust -E UTF8 --locale=C.UTF-8
        as_server sh -c "echo \"include_if_exists = 'pgquad.conf'\" >>'$data/postgresql.conf'"
    fi
    # The settings name the library's digest, so that a new build restarts the node.
    if ! settings "$1" | as_server cmp -s - "$data/pgquad.conf"; then
        stop_node "$1"
        settings "$1" | as_server tee "$data/pgquad.conf" >/dev/null
    fi
    if ! running "$1"; then
        if (exec 3<>"/dev/tcp/127.0.0.1/$(port_of "$1")") 2>/dev/null; then
            die "port $(port_of "$1") is taken by another program: choose three free ones with PGQUAD_CLUSTER_PORT=..."
        fi
        step "starting node $1 on 127.0.0.1:$(port_of "$1")"
        if ! as_server "$bin/pg_ctl" -D "$data" -l "$data.log" -w start >/dev/null 2>&1; then
            tail -n 20 "$data.log" >&2
            die "node $1 does not start; its log is $data.log"
        fi
    fi
    if [ -z "$(DATABASE=postgres on "$1" -Atc "select 1 from pg_database where datname = 'pgquad'")" ]; then
        DATABASE=postgres on "$1" -c "create database pgquad"
    fi
    on "$1" -c "create extension if not exists citus"
}

stop_node() {
    if [ -e "$(data_of "$1")/PG_VERSION" ] && running "$1"; then
        quietly as_server "$bin/pg_ctl" -D "$(data_of "$1")" -m fast -w stop
    fi
}

up() {
    if ! has_citus; then
        die "Citus is not installed for $("$PG_CONFIG" --version). A cluster needs it on every node: install the package
postgresql-$PG_MAJOR-citus-13.2 of https://repos.citusdata.com/community, or build the sources of
https://github.com/citusdata/citus (./configure && make install), and run 'make cluster' again."
    fi
    [ -e "$(pg_pkglibdir)/pgquad.so" ] || die "the extension is not installed: run 'make install' first"
    local node
    for node in "${NODES[@]}"; do start_node "$node"; done
    on 1 -v coordinator="127.0.0.1:$(port_of 1)" -v workers="127.0.0.1:$(port_of 2) 127.0.0.1:$(port_of 3)" \
        -f "$PGQUAD_ROOT/citus-config/cluster.sql" >/dev/null
    if [ -z "$(on 1 -Atc "select to_regclass('quad_stores.main')")" ]; then
        on 1 -Atc "select quad.create_store('main', distributed => true, shards => $PGQUAD_CLUSTER_SHARDS)" >/dev/null
    fi
    for node in "${NODES[@]}"; do psql_line "$node"; done
}

down() {
    local node
    for node in "${NODES[@]}"; do stop_node "$node"; done
    say "the cluster is stopped"
}

case ${1:-} in
up) up ;;
down) down ;;
status)
    status=0
    for node in "${NODES[@]}"; do
        if running "$node"; then psql_line "$node"; else
            say "node $node is not running"
            status=3
        fi
    done
    exit $status
    ;;
psql)
    node=${2:-1}
    shift $(($# < 2 ? $# : 2))
    use_private_server pgquad
    PGPORT=$(port_of "$node") exec "$bin/psql" "$@"
    ;;
reset)
    down
    as_server rm -rf "$PGQUAD_STATE/cluster"
    ;;
*) die "usage: $0 up | down | status | psql NODE | reset" ;;
esac
