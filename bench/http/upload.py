"""A dump into an empty store: gzip by PUT, and `quad.load` of the same triples in a file."""

import contextlib
import subprocess
import time

from endpoint import endpoint
from server import rows, value

DATABASE = "uploading"


@contextlib.contextmanager
def _empty(server):
    """A connection to a fresh database."""
    admin = server.connect()
    rows(admin, f"create database {DATABASE}")
    connection = server.connect(DATABASE)
    try:
        rows(connection, "create extension pgquad")
        yield connection
    finally:
        connection.close()
        rows(admin, f"drop database {DATABASE} with (force)")
        admin.close()


def by_load(server, file):
    """Seconds that quad.load of a file takes, and the quads there are then."""
    with _empty(server) as connection:
        started = time.monotonic()
        rows(connection, "select quad.load(%s)", (file,))
        return time.monotonic() - started, _quads(connection)


def by_put(server, packed):
    """The same of a PUT of a .nt.gz by curl, to the answer that says it is committed."""
    with _empty(server) as connection:
        rows(connection, "select quad.create_store('main')")
        with endpoint(server, DATABASE) as served:
            started = time.monotonic()
            done = subprocess.run(
                ["curl", "-sS", "--fail-with-body", "-u", "postgres:", "-T", packed, "-H", "Content-Type: application/n-triples",
                 "-H", "Content-Encoding: gzip", served.url + "/data?default"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            seconds = time.monotonic() - started
        if done.returncode != 0:
            raise RuntimeError(f"curl: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return seconds, _quads(connection)


def _quads(connection):
    return value(connection, "select count(*) from quad_stores.main")
