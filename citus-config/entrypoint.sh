#!/usr/bin/env bash
# The image's entry point. It leaves the password for connections to the other nodes where libpq looks for it, and goes
# on with the official entry point. That one takes PGPASSWORD from the environment of a server that it has just
# initialised.
set -euo pipefail
if [ -n "${POSTGRES_PASSWORD:-}" ]; then
    export PGPASSFILE=/var/lib/postgresql/.pgpass
    # In a line of the file, : and \ stand for themselves behind a \.
    password=$(printf %s "$POSTGRES_PASSWORD" | sed 's/[\\:]/\\&/g')
    (umask 077 && printf '*:*:*:%s:%s\n' "${POSTGRES_USER:-postgres}" "$password" >"$PGPASSFILE")
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$PGPASSFILE"; fi
fi
exec docker-entrypoint.sh "$@"
