#!/usr/bin/python3
"""What the nodes of a cluster tell of themselves: status lines, counters, rights, nodes that are down. Usage: status.py
(by `run`)."""

import os
import re
import sys
import threading
import time
from contextlib import closing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from nodes import settings as settings_of
from pgquad_test import Report, base_backup, join_all, wait_until

LINE = re.compile(
    r"(?P<name>.*?)[:.] +(?P<messages>[\d,]+) m/s  (?P<kb>[\d,]+) KB/s  (?P<cpu>\d+)% cpu  (?P<read>\d+)% read  (?P<clw>\d+)% clw  "
    r"sessions (?P<running>\d+)r (?P<waiting>\d+)w (?P<idle>\d+)i  buffers (?P<buffers>[\d,]+)  (?P<dirty>[\d,]+) d  (?P<writing>[\d,]+) w"
)
NODES = 3


class Mismatch(AssertionError):
    """Something that is not as it has to be."""


def expect(what, holds, got):
    if not holds:
        raise Mismatch(f"{what}: {got}")


class Checks:
    def __init__(self, cluster):
        self.cluster = cluster
        self.report = Report("status")
        self.connections = [server.connect() for server in cluster.servers]

    def run(self):
        for check in (
            self.lines_of_all_nodes,
            self.both_ends_count_the_same,
            self.counters_start_anew,
            self.waits_are_seen_while_they_last,
            self.roles,
            self.reading_takes_no_transaction_id,
            self.asked_on_a_standby,
            self.cancelled,
            self.node_that_is_down,
        ):
            self.report.attempt(check.__name__, check)
        self.cluster.check_crashes(self.report)

    def rows(self, query, parameters=None, node=0):
        with self.connections[node].cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def value(self, query, parameters=None, node=0):
        return self.rows(query, parameters, node)[0][0]

    def at_rest(self):
        """Waits until no node works for another one."""
        busy = "select pid from pg_stat_activity where application_name = 'pgquad' and state <> 'idle'"
        wait_until(
            "no node works for another one", lambda: not any(self.rows(busy, node=node) for node in range(NODES))
        )

    def status(self, seconds, node=0):
        """The line of all, and those of the nodes, as dictionaries."""
        lines = [line for (line,) in self.rows("select quad.cluster_status(%s)", (seconds,), node)]
        found = [LINE.fullmatch(line) for line in lines]
        expect("a line has another form", all(found), lines)
        parsed = [
            {key: text if key == "name" else int(text.replace(",", "")) for key, text in match.groupdict().items()}
            for match in found
        ]
        return parsed[0], parsed[1:]

    def fill(self):
        self.rows("select quad.create_store('seen', distributed => true, shards => 6)")
        self.rows("select quad.load_text((select string_agg(format('<http://x/s%s> <http://x/p> <http://x/s%s> .', i, i * 7 % 5000), E'\\n') "
                  "from generate_series(1, 5000) i), 'nt', store => 'seen')")  # fmt: skip

    # -- checks

    def lines_of_all_nodes(self):
        self.fill()
        # A join that reads from all nodes, on every node at once.
        stop, failures = threading.Event(), []

        def ask(server):
            try:
                with closing(server.connect()) as connection, connection.cursor() as cursor:
                    while not stop.is_set():
                        cursor.execute("select count(*) from quad_stores.seen a join quad_stores.seen b on b.s = a.o where a.g = 0 and b.g = 0")
                        count = cursor.fetchone()[0]
                        if count == 0:
                            failures.append(count)
            except psycopg2.Error as error:
                failures.append(str(error))

        threads = [threading.Thread(target=ask, args=(server,), daemon=True) for server in self.cluster.servers]
        for thread in threads:
            thread.start()
        works = ("messages", "kb", "cpu", "clw", "buffers")
        try:
            # On a busy machine it may take a while until all three work, and a node may get nothing of a processor for
            # a second.
            for _ in range(20):
                total, nodes = self.status(2)
                self.lines_fit(total, nodes)
                if all(node[key] for node in nodes for key in works):
                    break
        finally:
            stop.set()
            join_all(threads)
        expect("answers", not failures, failures)
        for node in nodes:
            expect("every node sends, works and waits for others", all(node[key] for key in works), node)

    def lines_fit(self, total, nodes):
        """What holds of the lines of two seconds whatever the nodes do."""
        seconds = re.fullmatch(r"Cluster 3 nodes, (\d+(\.\d)?) s", total["name"])
        expect("the first line", seconds and float(seconds[1]) >= 2, total["name"])
        expect("nodes", len(nodes) == NODES, nodes)
        ports = sorted(int(node["name"].rsplit(":", 1)[1]) for node in nodes)
        expect("ports", ports == sorted(server.port for server in self.cluster.servers), nodes)
        for key in ("messages", "kb", "running", "waiting", "idle", "buffers", "dirty"):
            # Rates are rounded in each line.
            expect(f"sum of {key}", abs(total[key] - sum(node[key] for node in nodes)) <= NODES, (total, nodes))
        for node in nodes:
            expect("a share is at most all", max(node["read"], node["clw"]) <= 100, node)

    def both_ends_count_the_same(self):
        self.at_rest()
        self.rows("select * from quad.cluster_stats_reset()")
        for node in range(NODES):
            self.rows("select count(*) from quad_stores.seen a join quad_stores.seen b on b.s = a.o", node=node)
            self.rows("select * from quad.sparql('select * { ?s <http://x/p> ?o } limit 200', 'seen')", node=node)
        stats = self.rows("select node, kind, messages_sent, bytes_sent, messages_received, bytes_received, average_message_bytes, batches, blocked_writes, "
                          "blocked_ms, waited_ms from quad.cluster_stats")  # fmt: skip
        expect("rows", len(stats) == 3 * NODES, stats)
        for kind in ("pull", "dictionary"):
            rows = [row for row in stats if row[1] == kind]
            expect(f"every node sends {kind}", all(row[2] > 0 and row[3] > 0 for row in rows), rows)
            expect(
                f"what is sent is received, {kind}", sum(row[2] for row in rows) == sum(row[4] for row in rows), rows
            )
            expect(f"bytes too, {kind}", sum(row[3] for row in rows) == sum(row[5] for row in rows), rows)
            expect("average", all(row[6] == row[3] // row[2] for row in rows), rows)
            expect("batches", all(0 < row[7] <= row[2] for row in rows), rows)
            # A node that has the terms in its caches asks nobody for them.
            expect(
                "waits", all(row[10] > 0 for row in rows) if kind == "pull" else sum(row[10] for row in rows) > 0, rows
            )
        again = self.rows("select sum(messages_sent), sum(bytes_sent) from quad.cluster_stats", node=1)
        expect(
            "looking sends nothing that counts",
            again == [(sum(r[2] for r in stats), sum(r[3] for r in stats))],
            (again, stats),
        )

    def counters_start_anew(self):
        before = self.rows("select node, kind, messages_sent, bytes_sent from quad.cluster_stats")
        expect("something was counted", sum(row[2] for row in before) > 0, before)
        cleared = self.rows("select node, kind, messages_sent, bytes_sent from quad.cluster_stats_reset()", node=2)
        expect("a reset gives what there was", sorted(before) == sorted(cleared), (before, cleared))
        left = self.rows("select sum(messages_sent + messages_received + bytes_sent + bytes_received + batches + blocked_writes), sum(blocked_ms + waited_ms) from quad.cluster_stats")
        expect("and sets all nodes to zero", left == [(0, 0.0)], left)

    def waits_are_seen_while_they_last(self):
        """A node waits for another that waits for a lock; the wait counts before it is over."""
        self.at_rest()
        self.rows("select * from quad.cluster_stats_reset()")
        worker = self.cluster.workers[0]
        shards = "select shard_name from citus_shards where table_name::text = 'quad_shards.seen_s' and nodeport = %s"
        with closing(worker.connect(autocommit=False)) as other, closing(self.cluster.coordinator.connect()) as waiter:
            with other.cursor() as lock, waiter.cursor() as ask:
                lock.execute("set citus.enable_ddl_propagation = off")
                for (shard,) in self.rows(shards, (worker.port,)):
                    lock.execute(f"lock table {shard} in access exclusive mode")
                query = "select count(*) from quad_stores.seen a join quad_stores.seen b on b.s = a.o"
                thread = threading.Thread(target=lambda: ask.execute(query), daemon=True)
                thread.start()
                try:
                    waits = "select pid from pg_stat_activity where application_name = 'pgquad' and wait_event_type = 'Lock'"
                    wait_until("the other node waits for the lock", lambda: worker.query(waits))
                    _, nodes = self.status(2)
                    waited = self.rows("select waited_ms from quad.cluster_stats where kind = 'pull' and node = (select nodeid from pg_dist_node where groupid = 0)")
                finally:
                    other.rollback()
                    join_all([thread])
        expect("it waits for the other node", nodes[0]["clw"] >= 90, nodes)
        expect("in time as well", waited[0][0] > 2000, waited)
        expect("and is a waiting session", nodes[0]["waiting"] >= 1, nodes)

    def roles(self):
        self.rows("create role watcher login")
        self.rows("create role nobody login")
        self.rows("grant pg_monitor to watcher")
        for server in self.cluster.servers[:1]:
            connection = psycopg2.connect(host="127.0.0.1", port=server.port, user="watcher", dbname="postgres")
            with connection.cursor() as cursor:
                cursor.execute("select count(*) from quad.cluster_status(0.1)")
                expect("lines", cursor.fetchone()[0] == NODES + 1, "")
                cursor.execute("select count(*) from quad.cluster_stats")
                expect("rows", cursor.fetchone()[0] == 3 * NODES, "")
                cursor.execute("select count(*) from quad.cluster_stats_reset()")
                expect("rows", cursor.fetchone()[0] == 3 * NODES, "")
            connection.close()
        connection = psycopg2.connect(
            host="127.0.0.1", port=self.cluster.coordinator.port, user="nobody", dbname="postgres"
        )
        connection.autocommit = True
        for call in ("quad.cluster_status(1)", "quad.cluster_stats", "quad.cluster_stats_reset()"):
            with connection.cursor() as cursor:
                try:
                    cursor.execute(f"select * from {call}")
                except psycopg2.errors.InsufficientPrivilege:
                    continue
                raise Mismatch(f"{call} is open to everybody")
        connection.close()

    # What tells of stores and nodes, and changes nothing.
    TELLING = ("quad.stores", "quad.store_info('quad_stores.told')", "quad.cluster_stats", "quad.cluster_status(0.1)")

    def made_to_be_told(self):
        if not self.value("select to_regclass('quad_stores.told') is not null"):
            self.rows("select quad.create_store('told', distributed => true, shards => 4)")
            self.rows("select quad.load_text('<http://x/a> <http://x/b> 1 , \"a text too long for an id\" .', store => 'told')")

    def reading_takes_no_transaction_id(self):
        self.made_to_be_told()
        for node in range(NODES):
            for call in self.TELLING:
                self.rows("begin", node=node)
                self.rows(f"select * from {call}", node=node)
                taken = self.value("select pg_current_xact_id_if_assigned()::text", node=node)
                self.rows("rollback", node=node)
                expect(f"{call} on node {node}", taken is None, taken)

    def asked_on_a_standby(self):
        self.made_to_be_told()
        primary = self.cluster.workers[0]
        standby = base_backup(primary, "cluster-standby", settings_of(1))
        try:
            standby.start()
            for call in self.TELLING[:2]:
                expect(call, standby.query(f"select * from {call} order by 1") == primary.query(f"select * from {call} order by 1"), "another answer")
            expect("counters", len(standby.query("select * from quad.cluster_stats")) == 3 * NODES, "")
            lines = standby.query("select quad.cluster_status(0.1)")
            expect("lines", len(lines) == NODES + 1 and "does not answer" not in str(lines), lines)
            query = "select quad.sparql('SELECT * { ?s ?p ?o }', 'told')::text order by 1"
            expect("an answer", len(standby.query(query)) == 2, standby.query(query))
        finally:
            standby.remove()

    def cancelled(self):
        began = time.monotonic()
        self.rows("set statement_timeout = 500")
        try:
            self.rows("select quad.cluster_status(60)")
        except psycopg2.errors.QueryCanceled:
            expect("soon", time.monotonic() - began < 30, time.monotonic() - began)
        else:
            raise Mismatch("it was not cancelled")
        finally:
            self.rows("reset statement_timeout")
        # The other nodes stop as well.
        query = "select count(*) from pg_stat_activity where query like '%node_status%' and state = 'active' and pid <> pg_backend_pid()"
        wait_until("nobody goes on", lambda: not any(self.value(query, node=node) for node in range(NODES)), 30)

    def node_that_is_down(self):
        self.cluster.workers[1].stop()
        try:
            lines = [line for (line,) in self.rows("select quad.cluster_status(0.2)")]
            expect("lines", len(lines) == NODES + 1 and lines[0].startswith("Cluster 2 nodes, "), lines)
            down = [line for line in lines if f":{self.cluster.workers[1].port}: does not answer: " in line]
            expect("the node that is down", len(down) == 1, lines)
            self.connections[0].notices.clear()
            expect("counters of the others", self.value("select count(*) from quad.cluster_stats") == 6, "")
            notices = " ".join(self.connections[0].notices)
            expect(
                "a warning",
                "WARNING" in notices and f":{self.cluster.workers[1].port} does not answer" in notices,
                notices,
            )
        finally:
            self.cluster.workers[1].start()
        lines = [line for (line,) in self.rows("select quad.cluster_status(0.2)")]
        expect("it is back", lines[0].startswith("Cluster 3 nodes, "), lines)


if __name__ == "__main__":
    with Cluster(shards_on_coordinator=True) as cluster:
        checks = Checks(cluster)
        checks.run()
    checks.report.finish()
