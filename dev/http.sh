#!/usr/bin/env bash
# The endpoint of the private server: up | down | status. It listens on 127.0.0.1, port PGQUAD_HTTP_PORT (default 7333).
# Requests without credentials may read every store; others name a role (there are no passwords on the private server:
# curl -u postgres: ...).
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"
: "${PGQUAD_HTTP_PORT:=7333}"
find_state_dir
pid_file=$PGQUAD_STATE/http-$PGQUAD_HTTP_PORT.pid
log=$PGQUAD_STATE/http-$PGQUAD_HTTP_PORT.log
address=http://127.0.0.1:$PGQUAD_HTTP_PORT
binary=$CARGO_TARGET_DIR/release/pgquad-server

running() { [ -e "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null; }

# The role of requests without credentials.
make_reader() {
    use_private_server pgquad
    run_psql -q <<'SQL'
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pgquad_reader') THEN CREATE ROLE pgquad_reader NOLOGIN; END IF;
END $$;
GRANT SELECT ON ALL TABLES IN SCHEMA quad_stores TO pgquad_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA quad_stores GRANT SELECT ON TABLES TO pgquad_reader;
SQL
}

up() {
    dev/workbench.sh >&2
    quietly build_release -p pgquad-server
    # A new build takes the place of the old one.
    if running && [ "$binary" -nt "$pid_file" ]; then down >/dev/null; fi
    make_reader
    if ! running; then
        if (exec 3<>"/dev/tcp/127.0.0.1/$PGQUAD_HTTP_PORT") 2>/dev/null; then
            die "port $PGQUAD_HTTP_PORT is taken by another program: choose one with PGQUAD_HTTP_PORT=..."
        fi
        step "starting the endpoint on 127.0.0.1:$PGQUAD_HTTP_PORT"
        setsid "$binary" --postgres "postgres://postgres@127.0.0.1:$PGQUAD_PORT/pgquad" --anonymous pgquad_reader \
            --listen "127.0.0.1:$PGQUAD_HTTP_PORT" >"$log" 2>&1 </dev/null &
        echo $! >"$pid_file"
        local try
        for try in $(seq 100); do
            if curl -fs -o /dev/null "$address/health"; then break; fi
            if ! running || [ "$try" -eq 100 ]; then
                tail -n 20 "$log" >&2
                die "the endpoint does not start; its log is $log"
            fi
            sleep 0.1
        done
    fi
    say "$address/"
}

down() {
    if running; then
        local pid
        pid=$(cat "$pid_file")
        kill "$pid"
        while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
        say "the endpoint is stopped"
    else
        say "the endpoint is not running"
    fi
    rm -f "$pid_file"
}

case ${1:-} in
up) up ;;
down) down ;;
status) if running; then say "$address/"; else
    say "not running"
    exit 3
fi ;;
*) die "usage: $0 up | down | status" ;;
esac
