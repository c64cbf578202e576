"""Clusters of servers of this machine for benchmarks."""

import contextlib
import subprocess

import environment  # noqa: F401  first: it makes pgquad_test known
from bsbm import program
from pgquad_test import Server, socket_directory
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
WORDS = {1: "one node", 3: "three nodes", 8: "eight nodes"}


def name_of(nodes):
    """`three nodes` for 3."""
    return WORDS.get(nodes, f"{nodes} nodes")


def connect(server):
    """A connection without TLS, which Citus switches on: a server without Citus has none either."""
    return server.connect(sslmode="disable")


@contextlib.contextmanager
def cluster(name, nodes, shards=SHARDS, delay_us=0):
    """Servers of a cluster with an empty distributed store `main`, the coordinator first. With `delay_us` the nodes
    know each other by the addresses of proxies that add so many microseconds each way; clients of the benchmark ask the
    servers themselves."""
    # Nodes of one machine meet at their sockets, unless a proxy is between them.
    settings = CLUSTER | {"unix_socket_directories": socket_directory()}
    servers = [Server(f"bench-{name}-{n}", settings) for n in range(nodes)]
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.remove)
        hosts = ["127.0.0.1"] * nodes
        for number, server in enumerate(servers):
            server.init().start()
            server.query("create extension citus")
            if delay_us:
                hosts[number] = f"127.0.0.{20 + number}"
                stack.enter_context(_delayed(hosts[number], server.port, delay_us))
        coordinator = servers[0].connect()
        rows(coordinator, "select citus_set_coordinator_host(%s, %s)", (hosts[0], servers[0].port))
        rows(
            coordinator, "select citus_set_node_property(%s, %s, 'shouldhaveshards', true)", (hosts[0], servers[0].port)
        )
        for host, worker in zip(hosts[1:], servers[1:], strict=True):
            rows(coordinator, "select citus_add_node(%s, %s)", (host, worker.port))
        rows(coordinator, "create extension pgquad")
        rows(coordinator, "select quad.create_store('main', distributed => true, shards => %s)", (shards,))
        yield servers


@contextlib.contextmanager
def _delayed(host, port, delay_us):
    """A proxy on another address of this machine, with the same port."""
    proxy = subprocess.Popen(
        [program("delay"), str(delay_us), host, "127.0.0.1", str(port)], stdout=subprocess.PIPE, text=True
    )
    try:
        if proxy.stdout.readline().strip() != "ready":
            raise RuntimeError(f"no proxy on {host}:{port}")
        yield
    finally:
        proxy.terminate()
        proxy.wait()
