#!/usr/bin/env bash
# Makes one cluster of servers that run already, with a distributed store `main`. Can be run again. Environment:
#   PGHOST    the coordinator, as the other nodes name it; PGPORT: its port (default 5432)
#   WORKERS   host:port of each worker, separated by spaces
#   SHARDS    shards of store `main` (default 32)
# and what else libpq reads (PGUSER, PGPASSWORD, PGDATABASE).
set -euo pipefail
here=$(dirname "$0")
: "${SHARDS:=32}"
coordinator=$PGHOST:${PGPORT:-5432}

# ready HOST PORT: waits until the server takes commands, at most two minutes.
ready() {
    local tries
    for tries in $(seq 120); do
        if psql -X -q -h "$1" -p "$2" -c 'SELECT 1' >/dev/null 2>&1; then return; fi
        sleep 1
    done
    echo "error: no answer from $1:$2 after $tries seconds" >&2
    exit 1
}

for node in "$coordinator" $WORKERS; do
    ready "${node%:*}" "${node#*:}"
    psql -X -q -h "${node%:*}" -p "${node#*:}" \
        -c 'SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS citus'
done
psql -X -q -v coordinator="$coordinator" -v workers="$WORKERS" -f "$here/cluster.sql"
if [ "$(psql -X -Atc "SELECT to_regclass('quad_stores.main') IS NULL")" = t ]; then
    psql -X -q -c "SELECT quad.create_store('main', distributed => true, shards => $SHARDS)" >/dev/null
fi
echo "the cluster is ready: SELECT * FROM quad.stores"
