"""Shards are moved, split, rebalanced and drained (block_writes) while queries, updates and loads run on all nodes.
Answers are right before, during and after, and in the end there is what the clients were told. Before that, single
statements whose snapshot is older than what a move has copied.
Usage: moves.py [--all] [--rows] (by `run`); --all moves every shard twice, --rows lets Citus copy row by row.
"""

import os
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, join_all, wait_until

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
                # Citus's answer to a write that has waited for the split of its shard (docs/cluster.md): nothing is
                # written, it is run again.
                if self.writes and "could not find valid entry for shard" in str(error):
                    continue
                self.errors.append(f"{error.pgcode} {str(error).strip()[:300]}")
            except AssertionError as error:
                self.errors.append(str(error)[:300])
            if len(self.errors) > 20:
                return

    def stop(self):
        self.stopping.set()
        join_all([self])
        self.connection.close()


class Background(threading.Thread):
    """Runs one statement in a connection of its own."""

    def __init__(self, connection, sql, parameters=None):
        super().__init__(daemon=True)
        self.connection, self.sql, self.parameters, self.error = connection, sql, parameters, None
        self.pid = connection.get_backend_pid()
        self.start()

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(self.sql, self.parameters)
        except psycopg2.Error as error:
            self.error = error

    def finish(self):
        """Waits for the end of the statement; raises its error."""
        self.join(240)
        if self.is_alive():
            raise RuntimeError(f"still running: {self.sql}")
        if self.error:
            raise self.error


def set_sorted_runs(cluster, value):
    for server in cluster.servers:
        server.alter_system("quad.move_as_sorted_runs", value)


class Arriving:
    """A shard arrives at a node on which a statement has begun before the shard was copied. The statement then goes on
    in the very process that has begun it."""

    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        self.coordinator, self.writer = cluster.coordinator, cluster.workers[1]
        self.sorted_runs = None

    def move_away(self):
        """Leaves no shard on the node of the writer."""
        here = "select shardid from citus_shards where table_name::text = 'quad_shards.arriving_o' and nodeport = %s"
        for (shard,) in self.coordinator.query(here, (self.writer.port,)):
            self.move(shard, self.writer.port, self.coordinator.port)
        self.coordinator.query("call citus_cleanup_orphaned_resources()")

    def move(self, shard, source, target):
        self.coordinator.query(
            "select citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'block_writes')",
            (shard, source, target),
        )

    def fill(self):
        self.coordinator.query("insert into quad_stores.arriving select quad.int_id(n), quad.int_id(1), quad.int_id(n + 1000), 0 from generate_series(1, 400) n")

    def quads(self, server=None):
        return set((server or self.coordinator).query("select s, p, o, g from quad_stores.arriving"))

    def shard_of(self, table, value):
        return self.coordinator.query(
            "select get_shard_id_for_distribution_column(%s, %s)", (f"quad_shards.arriving_{table}", value)
        )[0][0]

    def choose(self):
        """A quad whose subject is in a shard that stays, and whose object is in a shard of another node than the
        writer. Also that shard, its colocated one, and their port."""
        shards = dict(
            self.coordinator.query(
                "select shardid, nodeport from citus_shards where table_name::text like 'quad_shards.arriving%'"
            )
        )
        both = dict(self.coordinator.query(
            "select a.shardid, b.shardid from pg_dist_shard a join pg_dist_shard b using (shardminvalue)"
            " where a.logicalrelid = 'quad_shards.arriving_o'::regclass and b.logicalrelid = 'quad_shards.arriving_s'::regclass"
        ))
        for quad in sorted(self.quads()):
            shard = self.shard_of("o", quad[2])
            if shards[shard] != self.writer.port and self.shard_of("s", quad[0]) != both[shard]:
                return quad, shard, shards[shard]
        raise RuntimeError("no such quad")

    def during_a_move(self, sql):
        """Runs a statement on a quad of a shard that comes to its node: it begins before the shard is copied, and
        writes to it when it has come."""
        quad, shard, port = self.choose()
        source = next(server for server in self.cluster.servers if server.port == port)
        # Keeps the copy waiting, which the move begins once no more writes get in.
        blocker = source.connect(autocommit=False)
        blocker.cursor().execute("set citus.enable_manual_changes_to_shards = on")
        blocker.cursor().execute(f"lock table quad_shards.arriving_o_{shard} in access exclusive mode")
        try:
            mover = self.coordinator.connect()
            mover.cursor().execute("set citus.check_available_space_before_move = off")
            move = Background(
                mover,
                "select citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'block_writes')",
                (shard, port, self.writer.port),
            )
            waits = "select 1 from pg_locks where not granted and relation = %s::regclass"
            wait_until(
                "the copy waits", lambda: source.query(waits, (f"quad_shards.arriving_o_{shard}",)) or move.error
            )
            write = Background(self.writer.connect(), sql, quad)
            waits = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
            wait_until("the write waits", lambda: self.writer.query(waits, (write.pid,)) or write.error)
        finally:
            blocker.rollback()
            blocker.close()
        move.finish()
        write.finish()
        self.coordinator.query("call citus_cleanup_orphaned_resources()")
        return quad

    def same(self, expected):
        """All nodes, and both tables, have these quads."""
        for node, server in enumerate(self.cluster.servers):
            got = self.quads(server)
            assert got == expected, (
                f"node {node}: {len(got)} quads, expected {len(expected)}: {sorted(got ^ expected)[:3]}"
            )
        for table in "so":
            got = self.coordinator.query(f"select s, p, o, g from quad_shards.arriving_{table}")
            assert sorted(got) == sorted(expected), (
                f"arriving_{table}: {len(got)} quads, expected {len(expected)}: {sorted(set(got) ^ expected)[:3]}"
            )
        problems = self.coordinator.query("select quad.verify('quad_stores.arriving')")
        assert not problems, str(problems)[:300]

    def deletion(self):
        before = self.quads()
        gone = self.during_a_move("delete from quad_stores.arriving where s = %s and p = %s and o = %s and g = %s")
        self.same(before - {gone})

    def insertion(self):
        before = self.quads()
        self.during_a_move("insert into quad_stores.arriving values (%s, %s, %s, %s)")
        self.same(before)

    def snapshot_of_before(self):
        """A REPEATABLE READ transaction either sees the quads of a shard that has come since, or is told that it
        cannot; and it cannot write there."""
        before = self.quads()
        quad, shard, port = self.choose()
        old = self.writer.connect(autocommit=False)
        try:
            cursor = old.cursor()
            cursor.execute("set transaction isolation level repeatable read")
            cursor.execute("select s, p, o, g from quad_stores.arriving")
            assert set(cursor.fetchall()) == before, "quads before the move"
            self.move(shard, port, self.writer.port)
            seen = False
            try:
                cursor.execute("select s, p, o, g from quad_stores.arriving")
                assert set(cursor.fetchall()) == before, "quads after the move"
                seen = True
                cursor.execute("delete from quad_stores.arriving where s = %s and p = %s and o = %s and g = %s", quad)
                raise AssertionError("a deletion in a shard that was moved after the snapshot")
            except psycopg2.errors.SerializationFailure as error:
                assert "has been moved" in str(error), str(error)
                assert seen == (self.sorted_runs == "on"), f"quads are seen after the move: {seen}"
        finally:
            old.rollback()
            old.close()
        self.coordinator.query("call citus_cleanup_orphaned_resources()")
        self.same(before)

    def cursor_of_before(self):
        """A cursor that was opened before a shard was moved reads what the move has left behind."""
        before = self.quads()
        _, shard, port = self.choose()
        with self.writer.connect(autocommit=False) as reading, reading.cursor() as cursor:
            cursor.execute("declare of_before cursor for select s, p, o, g from quad_stores.arriving")
            self.move(shard, port, self.writer.port)
            cursor.execute("fetch all from of_before")
            assert set(cursor.fetchall()) == before, "quads of a cursor that is older than the move"
        reading.close()
        self.coordinator.query("call citus_cleanup_orphaned_resources()")
        self.same(before)

    def departure_within_a_transaction(self):
        """A transaction reads a shard that has left its node where it is now, with what others have written there."""
        before = self.quads()
        (_, _, o, _), shard, port = self.choose()
        source = next(server for server in self.cluster.servers if server.port == port)
        target = next(server for server in self.cluster.servers if server.port not in (port, self.writer.port))
        with source.connect(autocommit=False) as reading, reading.cursor() as cursor:
            cursor.execute(f"prepare of_object as select s, p, o, g from quad_stores.arriving where o = {o}")
            cursor.execute("execute of_object")
            found = set(cursor.fetchall())
            self.move(shard, port, target.port)
            new = target.query(
                "insert into quad_stores.arriving values (quad.int_id(9000), quad.int_id(1), %s, 0) "
                "returning s, p, o, g",
                (o,),
            )
            cursor.execute("execute of_object")
            got = set(cursor.fetchall())
            assert got == found | set(new), f"{got}, expected {found} and {new}"
        reading.close()
        self.coordinator.query("call citus_cleanup_orphaned_resources()")
        self.same(before | set(new))

    def run(self):
        for self.sorted_runs in ("off", "on"):
            set_sorted_runs(self.cluster, self.sorted_runs)
            for check in (
                self.deletion,
                self.insertion,
                self.snapshot_of_before,
                self.cursor_of_before,
                self.departure_within_a_transaction,
            ):
                name = f"{check.__name__.replace('_', ' ')}, sorted runs {self.sorted_runs}"
                try:
                    self.coordinator.query("select quad.create_store('arriving', distributed => true, shards => 6)")
                    self.move_away()
                    self.fill()
                    check()
                    self.report.check(True, name)
                except Exception as error:  # the other checks still run
                    self.report.check(False, name, " ".join(str(error).splitlines()[:3]))
                self.coordinator.query("select quad.drop_store('arriving')")


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
        assert got == self.expected[number], (
            f"query {number}: {str(got)[:200]}, expected {str(self.expected[number])[:200]}"
        )

    def update(self, client, cursor):
        n = client.done
        one = f"<http://x/u{n}> <http://x/in> <http://x/v{n}>"
        if n % 3 == 2:
            cursor.execute(
                "select quad.update(%s, 'films')",
                (f"DELETE DATA {{ <http://x/u{n - 1}> <http://x/in> <http://x/v{n - 1}> }} ; INSERT DATA {{ {one} }}",),
            )
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
                    self.execute(
                        "select citus_move_shard_placement(%s, %s, %s, %s, %s, 'block_writes')",
                        (shard, host, port, host, target),
                    )
            self.execute("call citus_cleanup_orphaned_resources()")

    def split(self):
        before = len(self.placements())
        nodes = dict(self.execute("select nodeport, nodeid from pg_dist_node"))
        shard, _, port = self.placements()[2]
        low, high = self.execute(
            "select shardminvalue::int, shardmaxvalue::int from pg_dist_shard where shardid = %s", (shard,)
        )[0]
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
            try:
                client.stop()
            except RuntimeError as error:
                client.errors.append(f"{error}; {self.cluster.activity()[:2000]}")
            self.report.check(
                not client.errors and client.done > 3,
                f"{name}: {client.done} done",
                f"{len(client.errors)} errors: {client.errors[:3]}",
            )
        self.as_told()

    def as_told(self):
        """What is there in the end."""
        for node, server in enumerate(self.cluster.servers):
            for number, query in enumerate(QUERIES):
                got = self.answer(server, query)
                self.report.check(
                    got == self.expected[number], f"query {number} on node {node} afterwards", str(got)[:300]
                )
            updated = {row[0] for row in server.query("select substr(x ->> 's', 12, length(x ->> 's') - 12)::int from quad.sparql('SELECT ?s { ?s <http://x/in> ?o }', 'films') x")}
            self.report.check(
                updated == self.updated,
                f"updates on node {node}",
                f"{len(updated)}, told {len(self.updated)}: {sorted(updated ^ self.updated)[:10]}",
            )
            loaded = server.query("select x ->> 'd', (x ->> 'n') like '\"500\"%' from quad.sparql('SELECT ?d (COUNT(*) AS ?n) { ?s <http://x/loaded> ?d } GROUP BY ?d', 'films') x")
            self.report.check(
                sorted(loaded) == sorted((f"<http://x/d{n}>", True) for n in self.loaded),
                f"loads on node {node}",
                str(loaded)[:300],
            )
        problems = self.execute("select quad.verify('quad_stores.films')")
        self.report.check(problems == [], "quad.verify", str(problems)[:500])
        self.cluster.check_crashes(self.report)


if __name__ == "__main__":
    report = Report("moves")
    with Cluster(shards_on_coordinator=True) as cluster:
        Arriving(cluster, report).run()
        set_sorted_runs(cluster, "off" if "--rows" in sys.argv[1:] else "on")
        Moves(cluster, report).run(2 if "--all" in sys.argv[1:] else 1)
    report.finish()
