"""Nodes that reach each other's PostgreSQL but not the ports of quad.exchange_ports: joins are pulled then, unless they
have to be pushed.
Usage: firewall.py [--all] (by `run`); --all waits until the nodes have forgotten.

What the nodes' processes send to each other goes through a proxy of each node (test/lib/tcp_proxy.py), which plays the
firewall.
"""

import os
import socket
import sys
import time
from contextlib import ExitStack, closing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, free_range
from tcp_proxy import Proxy

# Seconds for which a join that may be pulled tries to link its nodes (PATIENCE_IN_AUTO), and those that a join which
# has to be pushed is given here. Last, what a query takes at most besides, on a busy machine.
PATIENCE, CONNECT_TIMEOUT, BUSY = 3, 2, 25
REMEMBERED = 60
PORTS = 20
QUADS = 30000
CHAIN = "select count(*) from {0} a join {0} b on b.s = a.o join {0} c on c.s = b.o where a.p = 1"


class FirewalledCluster(Cluster):
    """Three nodes whose exchange goes through proxies; what they ask PostgreSQL for does not."""

    def __init__(self):
        super().__init__(shards_on_coordinator=True)
        self.running = ExitStack()
        self.firewalls = []
        for n, server in enumerate(self.servers):
            host = f"127.0.0.{21 + n}"
            ports = free_range(PORTS, "127.0.0.1", host)
            self.firewalls.append(Proxy(host, ports))
            server.settings |= {
                "quad.exchange_host": host,
                "quad.exchange_min_quads": "1000",
                "quad.exchange_ports": f"{ports[0]}-{ports[-1]}",
                "quad.node_connect_timeout": f"{CONNECT_TIMEOUT}s",
            }

    def __enter__(self):
        for firewall in self.firewalls:
            self.running.enter_context(firewall)
        return super().__enter__()

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self.running.close()


class Checks:
    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        first = cluster.coordinator
        first.query("select quad.create_store('many', distributed => true, shards => 6)")
        first.query("select quad.create_store('one')")
        for store in "many", "one":
            first.query(
                f"insert into quad_stores.{store} select i, 1, i * 7919 % {QUADS}, 1 from generate_series(1, {QUADS}) i"
            )
        self.query = CHAIN.format("quad_stores.many")
        self.expected = first.query(CHAIN.format("quad_stores.one"))

    def name(self, node):
        return f"127.0.0.1:{self.cluster.servers[node].port}"

    def exchange(self, cursor):
        """How a query was run, as EXPLAIN ANALYZE says, and the seconds that it took."""
        started = time.monotonic()
        cursor.execute("explain (analyze, costs off, timing off, summary off) " + self.query)
        took = time.monotonic() - started
        lines = [row[0].strip() for row in cursor.fetchall()]
        return next((line for line in lines if line.startswith("Exchange:")), "\n".join(lines)), took

    def in_log(self, node):
        with open(self.cluster.servers[node].log, encoding="utf-8", errors="replace") as log:
            return sum("joins are pulled for a minute" in line for line in log)

    def is_linked(self, node, name):
        with closing(self.cluster.servers[node].connect()) as connection, connection.cursor() as cursor:
            how, _ = self.exchange(cursor)
            self.report.check(how.startswith("Exchange: push nodes=3"), name, how)
            cursor.execute(self.query)
            self.report.check(cursor.fetchall() == self.expected, f"{name}: the answer")

    def is_pulled(self, asker, name, why):
        """Auto pulls, at once from the second query on; whoever asks for push is told."""
        with closing(self.cluster.servers[asker].connect()) as connection, connection.cursor() as cursor:
            how, took = self.exchange(cursor)
            self.report.check(how.startswith("Exchange: pull (node ") and why in how, f"{name}: auto pulls", how)
            self.report.check(took < PATIENCE + BUSY, f"{name}: auto waits a little", f"{took:.1f} s")
            cursor.execute(self.query)
            self.report.check(cursor.fetchall() == self.expected, f"{name}: the answer")
            cursor.execute("set quad.exchange_mode = push")
            for turn in "error of push", "once more":
                error = self.error_of_push(cursor)
                self.report.check(
                    error.startswith("08001 in time, with hint") and why in error, f"{name}: {turn}", error
                )
            cursor.execute("reset quad.exchange_mode")
            cursor.execute(self.query)
            self.report.check(cursor.fetchall() == self.expected, f"{name}: the session goes on")
        # A session that tries again takes that long each time. One that knows takes that long only now and then, on a
        # busy machine.
        for _ in range(10):
            with closing(self.cluster.servers[asker].connect()) as connection, connection.cursor() as cursor:
                how, took = self.exchange(cursor)
            if took < PATIENCE:
                break
        self.report.check(
            how.startswith("Exchange: pull (node ") and why in how and took < PATIENCE,
            f"{name}: another session knows",
            f"{how} {took:.1f} s",
        )
        self.report.check(self.in_log(asker) == 1, f"{name}: logged once", str(self.in_log(asker)))
        self.nothing_busy(name)

    def error_of_push(self, cursor):
        """The error of a join that has to be pushed and cannot be, in words."""
        started = time.monotonic()
        try:
            cursor.execute(self.query)
            return "none"
        except psycopg2.Error as error:
            in_time = time.monotonic() - started < CONNECT_TIMEOUT + BUSY
            hint = "quad.exchange_ports" in (error.diag.message_hint or "")
            return (
                f"{error.pgcode} {'in time' if in_time else 'late'}, {'with hint' if hint else 'without hint'}: {error}"
            )

    def nothing_busy(self, name):
        deadline = time.monotonic() + 60
        busy = True
        while busy and time.monotonic() < deadline:
            busy = [row for server in self.cluster.servers
                    for row in server.query("select pid, state, query from pg_stat_activity where application_name = 'pgquad'")]
            time.sleep(0.2 if busy else 0)
        self.report.check(not busy, f"{name}: no session stays", str(busy))

    def run(self, whole):
        self.is_linked(0, "open ports")
        carried = [firewall.bytes for firewall in self.cluster.firewalls[1:]]
        self.report.check(all(carried), "the exchange goes through the proxies", str(carried))
        self.dropped()
        self.rejected()
        self.taken()
        self.misnamed()
        if whole:
            time.sleep(REMEMBERED)
            self.is_linked(0, "forgotten after a minute")

    def dropped(self):
        """A firewall that answers nothing."""
        self.cluster.firewalls[2].cut()
        try:
            self.is_pulled(0, "packets dropped", f"cannot reach node {self.name(2)}")
        finally:
            self.cluster.firewalls[2].heal()
        self.is_linked(1, "a node that has not tried meanwhile")

    def rejected(self):
        """A firewall that answers with a reset."""
        self.cluster.firewalls[2].refuse()
        try:
            self.is_pulled(1, "connections refused", f"cannot reach node {self.name(2)}")
        finally:
            self.cluster.firewalls[2].heal()
        self.is_linked(2, "open again")

    def taken(self):
        """All ports of a node are others'."""
        self.nothing_busy("before ports are taken")
        server = self.cluster.servers[1]
        ports = server.settings["quad.exchange_ports"]
        sockets = []
        low, high = map(int, ports.split("-"))
        for port in range(low, high + 1):
            other = socket.socket()
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            other.listen()
            sockets.append(other)
        try:
            self.is_pulled(2, "ports taken", f"node {self.name(1)} takes no connections of others")
        finally:
            for other in sockets:
                other.close()

    def misnamed(self):
        """Settings that make no sense are refused when they are set, with what they may be."""
        server = self.cluster.servers[1]
        for name, value, hint in (
            ("exchange_host", "here", "10.0.0.5"),
            ("exchange_ports", "20999-20000", "20000-20999"),
            ("exchange_ports", "all", "20000-20999"),
            ("exchange_ports", "70000", "20000-20999"),
            ("exchange_batch_bytes", "-1", ""),
            ("exchange_mode", "shove", "auto, pull, push"),
        ):
            with closing(server.connect()) as connection, connection.cursor() as cursor:
                connection.autocommit = True
                try:
                    cursor.execute(f"alter system set quad.{name} = '{value}'")
                    self.report.check(False, f"{name} = {value}", "no error")
                    cursor.execute(f"alter system reset quad.{name}")
                except psycopg2.Error as error:
                    self.report.check(error.pgcode == "22023" and f"quad.{name}" in str(error) and hint in (error.diag.message_hint or ""),
                                      f"{name} = {value}", f"{error.pgcode} {error}")


def main():
    report = Report("firewall")
    with FirewalledCluster() as cluster:
        Checks(cluster, report).run("--all" in sys.argv[1:])
        cluster.check_crashes(report)
    report.finish()


if __name__ == "__main__":
    main()
