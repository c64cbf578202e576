"""Shards are moved, split, rebalanced and drained (block_writes) while queries, updates and loads run on all nodes: right answers before, during
and after, and in the end what the clients were told. Usage: moves.py [--all] (by `run`); --all moves every shard twice.
"""

import os
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report

SUBJECTS = 4000
QUERIES = [
    "SELECT (COUNT(*) AS ?n) { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/name> ?d }",
    "SELECT ?d { <http://x/s17> <http://x/knows>/<http://x/knows>/<http://x/name> ?d }",
    "SELECT ?s ?n { ?s <http://x/name> ?n FILTER(STRENDS(?n, '77')) }",
    "SELECT (COUNT(DISTINCT ?b) AS ?n) { ?a <http://x/knows>+ ?b . FILTER(?a = <http://x/s5>) }",
]


def document(name, low, high):
    return "".join(
        f"<http://x/{name}{i}> <http://x/knows> <http://x/{name}{i * 3 % SUBJECTS}> .\n<http://x/{name}{i}> <http://x/name> \"the name of {name} number {i}\" .\n"
        for i in range(low, high)
    )


class Client(threading.Thread):
    """Repeats something on one node until it is told to stop."""

    def __init__(self, server, body, writes=False):
        super().__init__(daemon=True)
        self.connection = server.connect()
        self.body, self.writes, self.done, self.errors = body, writes, 0, []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            try:
                with self.connection.cursor() as cursor:
                    self.body(self, cursor)
                self.done += 1
            except psycopg2.Error as error:
                # Citus's answer to a write that has waited for the split of its shard (docs/cluster.md): nothing is written, it is run again.
                if self.writes and "could not find valid entry for shard" in str(error):
                    continue
                self.errors.append(f"{error.pgcode} {str(error).strip()[:300]}")
            except AssertionError as error:
                self.errors.append(str(error)[:300])
            if len(self.errors) > 20:
                return

    def stop(self):
        self.stopping.set()
        self.join(120)
        self.connection.close()


class Moves:
    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        self.coordinator = cluster.coordinator.connect()
        self.execute("select quad.create_store('films', distributed => true, shards => 6)")
        self.execute("select quad.load_text(%s, 'nt', store => 'films')", (document("s", 0, SUBJECTS),))
        self.expected = [self.answer(cluster.coordinator, query) for query in QUERIES]
        # Quads (subject, object) that updates have left there, and numbers of documents that have been loaded.
        self.updated, self.loaded = set(), set()

    def execute(self, sql, parameters=None):
        with self.coordinator.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []

    @staticmethod
    def answer(server, query):
        return sorted(server.query("select quad.sparql(%s, 'films')::text", (query,)))

    # -- clients

    def read(self, client, cursor):
        number = client.done % len(QUERIES)
        cursor.execute("select quad.sparql(%s, 'films')::text", (QUERIES[number],))
        got = sorted(cursor.fetchall())
        assert got == self.expected[number], f"query {number}: {str(got)[:200]}, expected {str(self.expected[number])[:200]}"

    def update(self, client, cursor):
        n = client.done
        one = f"<http://x/u{n}> <http://x/in> <http://x/v{n}>"
        if n % 3 == 2:
            cursor.execute("select quad.update(%s, 'films')", (f"DELETE DATA {{ <http://x/u{n - 1}> <http://x/in> <http://x/v{n - 1}> }} ; INSERT DATA {{ {one} }}",))
            self.updated.discard(n - 1)
        else:
            cursor.execute("select quad.update(%s, 'films')", (f"INSERT DATA {{ {one} }}",))
        self.updated.add(n)

    def load(self, client, cursor):
        n = client.done
        text = "".join(f"<http://x/l{n}_{i}> <http://x/loaded> <http://x/d{n}> .\n" for i in range(500))
        cursor.execute("select quad.load_text(%s, 'nt', store => 'films')", (text,))
        self.loaded.add(n)
        time.sleep(0.2)

    # -- what is done to the shards

    def placements(self):
        return self.execute("select shardid, nodename, nodeport from citus_shards where table_name::text = 'quad_shards.films_s' order by 1")

    def move(self, times):
        ports = [server.port for server in self.cluster.servers]
        for n in range(times):
            for shard, host, port in self.placements():
                target = ports[(ports.index(port) + 1 + n) % 3]
                if target != port:
                    self.execute("select citus_move_shard_placement(%s, %s, %s, %s, %s, 'block_writes')", (shard, host, port, host, target))
            self.execute("call citus_cleanup_orphaned_resources()")

    def split(self):
        before = len(self.placements())
        nodes = dict(self.execute("select nodeport, nodeid from pg_dist_node"))
        shard, _, port = self.placements()[2]
        low, high = self.execute("select shardminvalue::int, shardmaxvalue::int from pg_dist_shard where shardid = %s", (shard,))[0]
        other = next(p for p in nodes if p != port)
        self.execute(f"select citus_split_shard_by_split_points({shard}, array['{(low + high) // 2}'], array[{nodes[port]}, {nodes[other]}], 'block_writes')")
        self.execute("call citus_cleanup_orphaned_resources()")
        after = len(self.placements())
        assert after == before + 1, f"{after} shards after a split of one of {before}"

    def drain_and_rebalance(self):
        port = self.cluster.workers[1].port
        self.execute("select citus_drain_node('127.0.0.1', %s, 'block_writes')", (port,))
        self.execute("call citus_cleanup_orphaned_resources()")
        assert not [place for place in self.placements() if place[2] == port], "the node still has shards"
        self.execute("select citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', true)", (port,))
        self.execute("select rebalance_table_shards(shard_transfer_mode := 'block_writes')")
        self.execute("call citus_cleanup_orphaned_resources()")
        assert [place for place in self.placements() if place[2] == port], "the node has no shards"

    def run(self, times):
        servers = self.cluster.servers
        clients = {f"reader on node {node}": Client(server, self.read) for node, server in enumerate(servers)}
        clients |= {"updates": Client(servers[2], self.update, True), "loads": Client(servers[1], self.load, True)}
        for client in clients.values():
            client.start()
        for step in (lambda: self.move(times), self.split, self.drain_and_rebalance):
            name = getattr(step, "__name__", "").replace("_", " ").replace("<lambda>", "every shard to another node")
            started = time.monotonic()
            try:
                step()
                self.report.check(True, f"{name} ({time.monotonic() - started:.1f} s)")
            except Exception as error:  # whatever it is, the other steps still run
                self.report.check(False, name, " ".join(str(error).splitlines()[:3]))
                traceback.print_tb(error.__traceback__, limit=-3, file=sys.stdout)
        for name, client in clients.items():
            client.stop()
            self.report.check(not client.errors and client.done > 3, f"{name}: {client.done} done", f"{len(client.errors)} errors: {client.errors[:3]}")
        self.as_told()

    def as_told(self):
        """What is there in the end."""
        for node, server in enumerate(self.cluster.servers):
            for number, query in enumerate(QUERIES):
                got = self.answer(server, query)
                self.report.check(got == self.expected[number], f"query {number} on node {node} afterwards", str(got)[:300])
            updated = {row[0] for row in server.query("select substr(x ->> 's', 12, length(x ->> 's') - 12)::int from quad.sparql('SELECT ?s { ?s <http://x/in> ?o }', 'films') x")}
            self.report.check(updated == self.updated, f"updates on node {node}", f"{len(updated)}, told {len(self.updated)}: {sorted(updated ^ self.updated)[:10]}")
            loaded = server.query("select x ->> 'd', (x ->> 'n') like '\"500\"%' from quad.sparql('SELECT ?d (COUNT(*) AS ?n) { ?s <http://x/loaded> ?d } GROUP BY ?d', 'films') x")
            self.report.check(sorted(loaded) == sorted((f"<http://x/d{n}>", True) for n in self.loaded), f"loads on node {node}", str(loaded)[:300])
        problems = self.execute("select quad.verify('quad_stores.films')")
        self.report.check(problems == [], "quad.verify", str(problems)[:500])
        for server in self.cluster.servers:
            crashes = server.crashes_in_log()
            self.report.check(not crashes, f"no crash of {os.path.basename(server.dir)}", "; ".join(crashes[:3]))


if __name__ == "__main__":
    report = Report("moves")
    with Cluster(shards_on_coordinator=True) as cluster:
        Moves(cluster, report).run(2 if "--all" in sys.argv[1:] else 1)
    report.finish()
