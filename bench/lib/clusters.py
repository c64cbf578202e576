"""Clusters of servers of this machine for benchmarks."""

import contextlib

import environment  # noqa: F401  first: it makes pgquad_test known
from pgquad_test import Server
from server import SETTINGS, rows

SHARDS = 32
# Citus comes first in shared_preload_libraries; a write to several nodes is committed in two phases.
CLUSTER = SETTINGS | {
    "shared_preload_libraries": "citus,pgquad",
    "max_prepared_transactions": "200",
    "max_connections": "200",
    "citus.node_conninfo": "sslmode=disable",
    "shared_buffers": "512MB",
}


@contextlib.contextmanager
def cluster(name, nodes, shards=SHARDS):
    """Servers of a cluster with an empty distributed store `main`, the coordinator first."""
    servers = [Server(f"bench-{name}-{n}", CLUSTER) for n in range(nodes)]
    try:
        for server in servers:
            server.init().start()
            server.query("create extension citus")
        coordinator = servers[0].connect()
        rows(coordinator, "select citus_set_coordinator_host('127.0.0.1', %s)", (servers[0].port,))
        rows(coordinator, "select citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', true)", (servers[0].port,))
        for worker in servers[1:]:
            rows(coordinator, "select citus_add_node('127.0.0.1', %s)", (worker.port,))
        rows(coordinator, "create extension pgquad")
        rows(coordinator, "select quad.create_store('main', distributed => true, shards => %s)", (shards,))
        yield servers
    finally:
        for server in servers:
            server.remove()
