"""The data that benchmarks run on: the Berlin benchmark's, and tables of the same quads as a baseline."""

import gzip
import os
import shutil

from environment import SHARED
from server import rows, value

STORE = "quad_stores.main"
FULL = os.environ.get("PGQUAD_BENCH_DATA", "bsbm-1m")
QUICK = "bsbm-100k"

# What people build without this extension: a heap table of ids with covering B-trees.
BASELINE_INDEXES = {"spog": "s, p, o, g", "posg": "p, o, s, g", "ospg": "o, s, p, g"}


def source(name):
    """Path of a data file; None, said aloud, when the shared data are not there."""
    path = os.path.realpath(os.path.join(SHARED, "bsbm", name))
    if os.path.exists(path):
        return path
    print(f"SKIPPED: there is no {path} (set PGQUAD_SHARED)")
    return None


def unpacked(path, directory):
    """The N-Triples file of a .gz, in a directory that the server can read; unpacked once."""
    target = os.path.join(directory, os.path.basename(path).removesuffix(".gz"))
    if not os.path.exists(target):
        with gzip.open(path, "rb") as packed, open(target, "wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
        os.chmod(target, 0o644)
    return target


def load_store(connection, path):
    """Loads a file into the default store and vacuums it; returns the number of quads."""
    rows(connection, "select quad.load(%s)", (path,))
    rows(connection, f"vacuum (freeze, analyze) {STORE}")
    return value(connection, f"select count(*) from {STORE}")


def make_baseline(connection, name, orders):
    """A heap table with the store's quads and one unique covering B-tree for each of the orders; vacuumed."""
    rows(
        connection, f"create table {name} (s bigint not null, p bigint not null, o bigint not null, g bigint not null)"
    )
    rows(connection, f"insert into {name} select s, p, o, g from {STORE}")
    for order in orders:
        rows(connection, f"create unique index {name}_{order} on {name} ({BASELINE_INDEXES[order]})")
    rows(connection, f"vacuum (freeze, analyze) {name}")


def table_bytes(connection, name):
    """Bytes of a table on disk with its indexes, maps and TOAST."""
    return value(connection, "select pg_total_relation_size(%s::regclass)", (name,))
