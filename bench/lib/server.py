"""The private server that benchmarks run on: the same sane settings for this store and for its baselines."""

import contextlib
import os

import environment  # noqa: F401 first: it makes pgquad_test known
from pgquad_test import Server

SETTINGS = {
    "shared_buffers": "1GB",
    "effective_cache_size": "4GB",
    "maintenance_work_mem": "256MB",
    "work_mem": "64MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "random_page_cost": "1.1",
    "fsync": "on",
    "synchronous_commit": "on",
    # A benchmark vacuums when it says so.
    "autovacuum": "off",
    # One core a query, on both sides.
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "max_connections": "40",
}


@contextlib.contextmanager
def bench_server():
    """A running server with the extension created, below $PGQUAD_STATE, removed at the end."""
    server = Server("bench", SETTINGS)
    try:
        server.init().start()
        server.query("create extension pgquad")
        yield server
    finally:
        server.remove()


def rows(connection, query, parameters=None):
    """All rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall() if cursor.description else []


def value(connection, query, parameters=None):
    """The first column of the first row."""
    return rows(connection, query, parameters)[0][0]


def forget_cached(server):
    """Restarts the server with none of its files in its own or the operating system's cache."""
    server.stop()
    for folder, _, files in os.walk(server.data):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    server.start()
