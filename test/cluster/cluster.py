"""What the cluster has to do, in the order in which the checks build on each other. Usage: cluster.py (by `run`).

Every check asks the cluster and the model the same question.
"""

import io
import os
import random
import re
import sys
import time
import traceback
from contextlib import closing

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from model import Model, random_quads
from nodes import Cluster
from pgquad_test import Report, as_server, create_table, problems

SHARDS = 8
QUADS = 20_000
# Two tables of the same quads, as docs/architecture.md lays a store out in a cluster: one placed by subject, one by
# object.
TABLES = {
    "quads_s": {"column": "s", "orders": "spog,psog", "inner_fanout": "64", "leaf_quads": "100,200"},
    "quads_o": {"column": "o", "orders": "ospg,posg", "inner_fanout": "32,48", "leaf_quads": "0"},
}


def options_of(table):
    """The part of a table's description that is given when it is created."""
    return {name: table[name] for name in ("orders", "inner_fanout", "leaf_quads")}


class Mismatch(AssertionError):
    """An answer of the cluster that is not the model's."""


def same(what, got, expected):
    """Compares two answers; the message of a mismatch shows where they part."""
    if got == expected:
        return
    if isinstance(got, list) and isinstance(expected, list):
        missing = list(set(expected) - set(got))[:3]
        extra = list(set(got) - set(expected))[:3]
        raise Mismatch(f"{what}: {len(got)} rows, expected {len(expected)}; missing {missing}, not expected {extra}")
    raise Mismatch(f"{what}: {got}, expected {expected}")


class Checks:
    def __init__(self, cluster):
        self.cluster = cluster
        self.connection = cluster.coordinator.connect()
        self.random = random.Random(7)
        self.model = Model()
        self.report = Report("cluster")

    def run(self):
        for check in [
            self.set_up_can_be_repeated,
            self.tables_of_the_configuration,
            self.extension_is_on_every_node,
            self.tables_are_distributed,
            self.shards_keep_the_options,
            self.distributed_copy,
            self.distributed_insert,
            self.filled_table_can_be_distributed,
            self.router_select,
            self.multi_shard_select,
            self.colocated_path_join,
            self.star_join,
            self.queries_through_a_worker,
            self.transactions,
            self.update_and_delete,
            self.shard_moves_between_workers,
            self.shard_move_to_the_coordinator,
            self.new_shards_of_a_new_table_on_the_coordinator,
            self.every_shard_verifies,
            self.local_tables_beside_distributed_ones,
            self.pages_of_citus_tables_are_not_read,
            self.loads_into_citus_tables_are_refused,
            self.dictionary_stays_on_the_coordinator,
            self.workers_do_not_use_their_dictionary,
        ]:
            started = time.monotonic()
            name = check.__name__
            try:
                check()
            except Exception as error:  # whatever it is, the other checks still run
                # The server's errors can carry a backtrace of its own, which is in its log.
                self.report.check(False, name, " ".join(str(error).splitlines()[:2]))
                traceback.print_tb(error.__traceback__, limit=-4, file=sys.stdout)
                self.reconnect()
                if check == self.tables_are_distributed:
                    break  # nothing to ask without them
            else:
                self.report.check(True, f"{name} ({time.monotonic() - started:.1f} s)")
        self.cluster.check_crashes(self.report)

    def reconnect(self):
        self.connection.close()
        self.connection = self.cluster.coordinator.connect()

    # -- asking

    def rows(self, query, parameters=None, connection=None):
        """All rows of a query, in the order they come."""
        with (connection or self.connection).cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def bag(self, query, parameters=None, connection=None):
        """All rows of a query, sorted; NULL comes last."""
        return sorted(
            self.rows(query, parameters, connection), key=lambda row: [(value is None, value or 0) for value in row]
        )

    def value(self, query, parameters=None, connection=None):
        return self.rows(query, parameters, connection)[0][0]

    def execute(self, query, parameters=None):
        """Runs a statement; returns its row count."""
        with self.connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.rowcount

    def copy(self, table, quads):
        text = "".join("\t".join(map(str, quad)) + "\n" for quad in quads)
        with self.connection.cursor() as cursor:
            cursor.copy_expert(f"copy {table} (s, p, o, g) from stdin", io.StringIO(text))

    def contents(self, table, connection=None):
        return self.bag(f"select s, p, o, g from {table}", connection=connection)

    def both_tables_hold_the_model(self):
        for table in TABLES:
            same(table, self.contents(table), sorted(self.model.quads))

    def placements(self, table):
        """(shard id, shard's name, node port) of every placement."""
        return self.rows(
            "select shardid, shard_name, nodeport from citus_shards where table_name = %s::regclass order by 1",
            (table,),
        )

    def node(self, port):
        return next(server for server in self.cluster.servers if server.port == port)

    def options(self, connection, relation):
        """What a quad table says of its orders, per order: (order, inner fanout, leaf quads)."""
        if self.value(
            "select exists (select from pg_dist_partition where logicalrelid = %s::regclass)", (relation,), connection
        ):
            return self.declared_options(connection, relation)
        return self.rows(
            "select order_name, inner_fanout, leaf_quads from quad.store_info(%s::regclass)", (relation,), connection
        )

    def declared_options(self, connection, relation):
        """The same from the definition of a table that Citus manages, whose own pages hold nothing."""
        query = "select option_name, option_value from pg_options_to_table((select reloptions from pg_class where oid = %s::regclass))"
        options = {name: value.split(",") for name, value in self.rows(query, (relation,), connection)}
        orders = options["orders"]
        numbers = [
            [int(value) for value in (options[name] * len(orders) if len(options[name]) == 1 else options[name])]
            for name in ("inner_fanout", "leaf_quads")
        ]
        return list(zip(orders, *numbers))

    def two_predicates(self):
        """The two predicates that occur most as (s, p, o), where the joins have answers."""
        by_count = sorted(self.model.count_by(1), key=lambda entry: entry[1])
        return by_count[-1][0], by_count[-2][0]

    # -- checks

    def set_up_can_be_repeated(self):
        query = "select nodename, nodeport, isactive from pg_dist_node order by 2"
        before = self.rows(query)
        same("nodes", len(before), len(self.cluster.servers))
        self.cluster.run_file("cluster.sql", **self.cluster.addresses())
        same("nodes after another run", self.rows(query), before)

    def tables_of_the_configuration(self):
        self.cluster.run_file("tables.sql", shards=4)
        try:
            for table, column, orders in [("quads_s", "s", ["spog", "psog"]), ("quads_o", "o", ["ospg", "posg"])]:
                kind = "select distribution_column, shard_count, access_method from citus_tables where table_name = %s::regclass"
                same(table, self.rows(kind, (table,)), [(column, 4, "quad")])
                same(f"orders of {table}", [row[0] for row in self.options(self.connection, table)], orders)
            self.execute("insert into quads_s select i, 1, i + 1, 0 from generate_series(1, 100) i")
            self.execute("insert into quads_o select i, 1, i + 1, 0 from generate_series(1, 100) i")
            same("path of two steps", self.value("select count(*) from quads_o o join quads_s s on o.o = s.s"), 99)
        finally:
            self.execute("drop table if exists quads_s, quads_o")

    def extension_is_on_every_node(self):
        query = "select extversion from pg_extension where extname = 'pgquad'"
        expected = self.rows(query)
        same("coordinator", len(expected), 1)
        for worker in self.cluster.workers:
            with worker.connect() as connection:
                same(worker.data, self.rows(query, connection=connection), expected)

    def tables_are_distributed(self):
        for name, table in TABLES.items():
            create_table(self.connection, name, **options_of(table))
        self.execute(
            "select create_distributed_table('quads_s', 's', shard_count => %s, colocate_with => 'none')", (SHARDS,)
        )
        self.execute("select create_distributed_table('quads_o', 'o', colocate_with => 'quads_s')")
        for name in TABLES:
            shards = self.placements(name)
            same(f"shards of {name}", len(shards), SHARDS)
            same(
                f"nodes of {name}", sorted({port for *_, port in shards}), sorted(w.port for w in self.cluster.workers)
            )
        same("co-location groups", self.value("select count(distinct colocation_id) from citus_tables"), 1)

    def shards_keep_the_options(self):
        for name, table in TABLES.items():
            create_table(self.connection, "reference", **options_of(table))
            expected = self.options(self.connection, "reference")
            self.execute("drop table reference")
            same(f"orders of {name}", ",".join(row[0] for row in expected), table["orders"])
            same(f"options of {name}", self.options(self.connection, name), expected)
            # A worker's own copy of the distributed table is empty, but further shards take after it.
            for worker in self.cluster.workers:
                with worker.connect() as connection:
                    same(f"options of {name} on a worker", self.options(connection, name), expected)
            for _, shard, port in self.placements(name):
                with self.node(port).connect() as connection:
                    same(f"options of {shard}", self.options(connection, shard), expected)
                    same(
                        f"access method of {shard}",
                        self.value(
                            "select amname from pg_class c join pg_am a on a.oid = c.relam where c.oid = %s::regclass",
                            (shard,),
                            connection,
                        ),
                        "quad",
                    )

    def distributed_copy(self):
        quads = random_quads(QUADS, seed=1)
        # Every tenth quad twice: a store is a set.
        lines = quads + quads[::10]
        self.random.shuffle(lines)
        for table in TABLES:
            self.copy(table, lines)
        self.model.insert(quads)
        self.both_tables_hold_the_model()
        # Again, now all of it is there.
        self.copy("quads_s", lines[:500])
        self.both_tables_hold_the_model()

    def distributed_insert(self):
        single = random_quads(60, seed=2)
        many = random_quads(300, seed=3)
        known = self.random.sample(sorted(self.model.quads), 20)
        for table in TABLES:
            for quad in single + known:
                self.execute(f"insert into {table} values (%s, %s, %s, %s)", quad)
            values = ",".join("(%s,%s,%s,%s)" for _ in many)
            self.execute(f"insert into {table} values {values}", [id_ for quad in many for id_ in quad])
        self.model.insert(single + many)
        self.both_tables_hold_the_model()
        # From table to table: the first repartitions, the second stays within the shards.
        predicate, _ = self.two_predicates()
        self.execute("insert into quads_o select s, p, o, g + 100 from quads_s where p = %s", (predicate,))
        self.execute("insert into quads_s select s, p, o, g + 100 from quads_s where p = %s", (predicate,))
        self.model.insert([(s, p, o, g + 100) for s, p, o, g in self.model.where(lambda s, p, o, g: p == predicate)])
        self.both_tables_hold_the_model()

    def filled_table_can_be_distributed(self):
        quads = random_quads(3000, seed=4)
        create_table(self.connection, "filled", **options_of(TABLES["quads_s"]))
        self.copy("filled", quads)
        self.execute("select create_distributed_table('filled', 's', colocate_with => 'quads_s')")
        same("after distributing", self.contents("filled"), quads)
        self.execute("truncate filled")
        same("after truncating", self.contents("filled"), [])
        self.copy("filled", quads)
        expected = self.options(self.connection, "filled")
        self.execute("select undistribute_table('filled')")
        same("after undistributing", self.contents("filled"), quads)
        same("options after undistributing", self.options(self.connection, "filled"), expected)
        self.execute("drop table filled")

    def router_select(self):
        subjects = self.random.sample([s for s, _ in self.model.count_by(0)], 150) + [4711]
        self.execute("prepare by_subject(bigint) as select s, p, o, g from quads_s where s = $1")
        for subject in subjects:
            expected = self.model.where(lambda s, p, o, g: s == subject)
            same(f"s = {subject}", self.bag("select s, p, o, g from quads_s where s = %s", (subject,)), expected)
            same(f"prepared, s = {subject}", self.bag("execute by_subject(%s)", (subject,)), expected)
        for s, p, o, g in self.random.sample(sorted(self.model.quads), 50):
            same(
                f"s and p of {(s, p)}",
                self.bag("select o, g from quads_s where s = %s and p = %s", (s, p)),
                [(quad[2], quad[3]) for quad in self.model.where(lambda a, b, c, d: (a, b) == (s, p))],
            )
            same(
                f"o and p of {(o, p)}",
                self.bag("select s, g from quads_o where o = %s and p = %s", (o, p)),
                [(quad[0], quad[3]) for quad in self.model.where(lambda a, b, c, d: (c, b) == (o, p))],
            )
            same(
                "one quad",
                self.value("select count(*) from quads_o where (s, p, o, g) = (%s, %s, %s, %s)", (s, p, o, g)),
                1,
            )

    def multi_shard_select(self):
        for table in TABLES:
            same("count", self.value(f"select count(*) from {table}"), len(self.model.quads))
            for number, column in enumerate("spog"):
                counts = self.model.count_by(number)
                same(
                    f"{table} by {column}",
                    self.bag(f"select {column}, count(*) from {table} group by {column}"),
                    counts,
                )
                same(
                    f"{table} distinct {column}",
                    self.value(f"select count(distinct {column}) from {table}"),
                    len(counts),
                )
            predicate, _ = self.two_predicates()
            found = self.model.where(lambda s, p, o, g: p == predicate)
            same("p bound", self.bag(f"select s, p, o, g from {table} where p = %s", (predicate,)), found)
            same(
                "first in order",
                self.rows(
                    f"select s, p, o, g from {table} where p = %s order by s desc, o desc, g desc limit 25",
                    (predicate,),
                ),
                sorted(found, key=lambda quad: (quad[0], quad[2], quad[3]), reverse=True)[:25],
            )
            wanted = [s for s, _ in self.random.sample(self.model.count_by(0), 40)]
            same(
                "s in a list",
                self.bag(f"select s, p, o, g from {table} where s = any(%s)", (wanted,)),
                self.model.where(lambda s, p, o, g: s in wanted),
            )
            low, high = sorted(s for s, _ in self.random.sample(self.model.count_by(0), 2))
            same(
                "s between",
                self.bag(f"select s, p, o, g from {table} where s >= %s and s < %s", (low, high)),
                self.model.where(lambda s, p, o, g: low <= s < high),
            )

    def colocated_path_join(self):
        first, second = self.two_predicates()
        # Without co-location this is an error: repartition joins are off by default.
        same(
            "o = s join",
            self.bag(
                "select a.s, a.o, b.o from quads_o a join quads_s b on a.o = b.s where a.p = %s and b.p = %s",
                (first, second),
            ),
            self.model.path_join(first, second),
        )
        predicates = [p for p, _ in self.model.count_by(1)]
        same(
            "o = s join, grouped",
            self.bag(
                "select b.p, count(*) from quads_o a join quads_s b on a.o = b.s where a.p = %s group by b.p", (first,)
            ),
            sorted((p, len(self.model.path_join(first, p))) for p in predicates if self.model.path_join(first, p)),
        )

    def star_join(self):
        first, second = self.two_predicates()
        query = "select a.s, a.o, b.o from quads_s a join quads_s b on a.s = b.s where a.p = %s and b.p = %s"
        expected = self.model.star_join(first, second)
        same("star", self.bag(query, (first, second)), expected)
        subject = expected[0][0]
        same(
            "star of one subject",
            self.bag(query + " and a.s = %s", (first, second, subject)),
            [row for row in expected if row[0] == subject],
        )

    def queries_through_a_worker(self):
        first, second = self.two_predicates()
        for worker in self.cluster.workers:
            connection = worker.connect()
            for table in TABLES:
                same(table, self.contents(table, connection), sorted(self.model.quads))
            same(
                "o = s join",
                self.bag(
                    "select a.s, a.o, b.o from quads_o a join quads_s b on a.o = b.s where a.p = %s and b.p = %s",
                    (first, second),
                    connection,
                ),
                self.model.path_join(first, second),
            )
            connection.close()

    def transactions(self):
        quads = random_quads(400, seed=5)
        before = sorted(self.model.quads)
        # Rolled back: nothing stays on any node.
        self.execute("begin")
        self.copy("quads_s", quads)
        same("own writes", self.value("select count(*) from quads_s"), len(set(before) | set(quads)))
        self.execute("delete from quads_o where p = %s", (quads[0][1],))
        self.execute("rollback")
        self.both_tables_hold_the_model()
        # Committed on both nodes at once, but for what was rolled back to the savepoint.
        self.execute("begin")
        for table in TABLES:
            self.copy(table, quads)
        self.execute("savepoint middle")
        self.execute("delete from quads_s where g = 0")
        self.execute("rollback to savepoint middle")
        self.execute("commit")
        self.model.insert(quads)
        self.both_tables_hold_the_model()

    def update_and_delete(self):
        first, second = self.two_predicates()
        s, p, o, g = self.random.choice(sorted(self.model.quads))
        gone = self.model.delete(lambda a, b, c, d: (a, b, c, d) == (s, p, o, g))
        for table in TABLES:
            same(
                f"{table}: one quad",
                self.execute(f"delete from {table} where (s, p, o, g) = (%s, %s, %s, %s)", (s, p, o, g)),
                gone,
            )
        subject = max(self.model.count_by(0), key=lambda entry: entry[1])[0]
        gone = self.model.delete(lambda s, p, o, g: s == subject)
        for table in TABLES:
            same(f"{table}: one subject", self.execute(f"delete from {table} where s = %s", (subject,)), gone)
        gone = self.model.delete(lambda s, p, o, g: p == first and o > 0)
        for table in TABLES:
            same(f"{table}: one predicate", self.execute(f"delete from {table} where p = %s and o > 0", (first,)), gone)
        self.both_tables_hold_the_model()
        moved = self.model.where(lambda s, p, o, g: p == second and g == 7)
        for table in TABLES:
            same(
                f"{table}: update",
                self.execute(f"update {table} set g = 9 where p = %s and g = 7", (second,)),
                len(moved),
            )
        self.model.delete(lambda s, p, o, g: p == second and g == 7)
        self.model.insert([(s, p, o, 9) for s, p, o, _ in moved])
        self.both_tables_hold_the_model()
        # What was deleted can come again.
        again = random_quads(QUADS, seed=1)[:2000]
        for table in TABLES:
            self.copy(table, again)
        self.model.insert(again)
        self.both_tables_hold_the_model()

    def move(self, shard, source, target):
        self.execute(
            "select citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, shard_transfer_mode := 'block_writes')",
            (shard, source, target),
        )
        self.execute("call citus_cleanup_orphaned_resources()")

    def move_is_right(self, shard, target):
        """After a move of the shard and its co-located one: placed there, contents and options as before."""
        group = [(name, row) for name in TABLES for row in self.placements(name)]
        moved = [(name, row) for name, row in group if row[2] == target]
        assert any(row[0] == shard for _, row in moved), f"shard {shard} is not on the target"
        self.both_tables_hold_the_model()
        self.shards_keep_the_options()
        first, second = self.two_predicates()
        same(
            "o = s join",
            self.bag(
                "select a.s, a.o, b.o from quads_o a join quads_s b on a.o = b.s where a.p = %s and b.p = %s",
                (first, second),
            ),
            self.model.path_join(first, second),
        )

    def write_after_move(self, seed):
        quads = random_quads(200, seed=seed)
        for table in TABLES:
            self.copy(table, quads)
            for quad in quads[:100]:
                self.execute(f"delete from {table} where (s, p, o, g) = (%s, %s, %s, %s)", quad)
        self.model.insert(quads)
        self.model.delete(lambda *quad: quad in quads[:100])
        self.both_tables_hold_the_model()

    def shard_moves_between_workers(self):
        one, two = (worker.port for worker in self.cluster.workers)
        shard = next(shard for shard, _, port in self.placements("quads_s") if port == one)
        self.move(shard, one, two)
        self.move_is_right(shard, two)
        self.write_after_move(seed=11)
        self.move(shard, two, one)
        self.move_is_right(shard, one)
        # A whole node is emptied.
        for shard, _, port in self.placements("quads_s"):
            if port == one:
                self.move(shard, one, two)
        same("shards left", [row for name in TABLES for row in self.placements(name) if row[2] == one], [])
        self.both_tables_hold_the_model()
        self.shards_keep_the_options()

    def shard_move_to_the_coordinator(self):
        here = self.cluster.coordinator.port
        self.execute("select citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', true)", (here,))
        shard, _, port = self.placements("quads_s")[0]
        self.move(shard, port, here)
        self.move_is_right(shard, here)
        self.write_after_move(seed=12)
        self.router_select_of_local_shard(shard)

    def router_select_of_local_shard(self, shard):
        """Rows of a shard on this very node are read without a connection."""
        for subject, _ in self.model.count_by(0):
            if self.value("select get_shard_id_for_distribution_column('quads_s', %s)", (subject,)) == shard:
                same(
                    f"s = {subject}, local",
                    self.bag("select s, p, o, g from quads_s where s = %s", (subject,)),
                    self.model.where(lambda s, p, o, g: s == subject),
                )
                return
        raise Mismatch("no subject in the local shard")

    def new_shards_of_a_new_table_on_the_coordinator(self):
        quads = random_quads(1000, seed=13)
        create_table(self.connection, "late", **options_of(TABLES["quads_o"]))
        self.execute("select create_distributed_table('late', 'o', shard_count => 6, colocate_with => 'none')")
        assert len({port for *_, port in self.placements("late")}) == 3, "not all three nodes have shards"
        create_table(self.connection, "reference", **options_of(TABLES["quads_o"]))
        expected = self.options(self.connection, "reference")
        self.execute("drop table reference")
        for _, shard, port in self.placements("late"):
            with self.node(port).connect() as connection:
                same(f"options of {shard}", self.options(connection, shard), expected)
        self.copy("late", quads)
        same("late", self.contents("late"), quads)

    def every_shard_verifies(self):
        for table in [*TABLES, "late"]:
            for _, shard, port in self.placements(table):
                with self.node(port).connect() as connection:
                    same(shard, problems(connection, shard), [])

    def local_tables_beside_distributed_ones(self):
        """Statements of a quad table of one node and a distributed table: Citus looks into the plans of both."""
        quads = random_quads(2000, seed=21)
        create_table(self.connection, "here", orders="spog,posg,ospg")
        self.copy("here", quads)
        self.execute("create table numbers (n bigint, m bigint)")
        self.execute("select create_distributed_table('numbers', 'n')")
        self.execute("create table known (n bigint, m bigint)")
        self.execute("select create_reference_table('known')")
        try:
            plans = "".join(self.local_beside_distributed(*check) for check in LOCAL_BESIDE_DISTRIBUTED.items())
            same("nodes in the plans", [node for node in NODES if node not in plans], [])
        finally:
            self.execute("drop table if exists here, numbers, known")

    def local_beside_distributed(self, name, statement):
        """Runs a statement and asks for its answer over heap tables that hold the same. Returns its plan."""
        self.execute("truncate numbers, known")
        for table in ("numbers", "known"):
            self.execute(f"insert into {table} select distinct s, o from here where p = (select min(p) from here)")
        self.execute(
            "create temp table heap_here as select * from here; create temp table heap_numbers as select * from numbers"
        )
        try:
            over_heap = re.sub(r"\bhere\b", "heap_here", re.sub(r"\b(numbers|known)\b", "heap_numbers", statement))
            if statement.startswith("select"):
                same(name, self.bag(statement), self.bag(over_heap))
                plan = self.rows("explain (analyze, verbose) " + statement)
            else:
                plan = self.rows("explain " + statement)
                self.execute(statement)
                self.execute(over_heap)
                for table in ("numbers", "here"):
                    same(
                        f"{name}: {table}", self.bag(f"select * from {table}"), self.bag(f"select * from heap_{table}")
                    )
            return "\n".join(line for line, in plan)
        finally:
            self.execute("drop table heap_here, heap_numbers")

    def refused(self, sql, state, part, connection=None):
        """Runs a statement that must fail with this SQLSTATE, a message with `part` in it, and a hint."""
        try:
            self.rows(sql, connection=connection)
        except psycopg2.Error as error:
            same(f"SQLSTATE of {sql}: {error}", error.pgcode, state)
            assert part in str(error), f"{sql}: {error}"
            assert error.diag.message_hint, f"{sql}: no hint"
            return
        raise Mismatch(f"{sql}: no error")

    def pages_of_citus_tables_are_not_read(self):
        create_table(self.connection, "copied")
        self.execute("select create_reference_table('copied')")
        create_table(self.connection, "kept")
        self.execute("select citus_add_local_table_to_metadata('kept')")
        try:
            for table in ["quads_s", "copied", "kept"]:
                for call in ["store_info('{}')", "verify('{}')", "range_count('{}', null, null, null, null)", "rebuild('{}')"]:
                    sql = "select * from quad." + call.format(table)
                    for server in [self.cluster.coordinator, self.cluster.workers[0]]:
                        with closing(server.connect()) as connection:
                            self.refused(sql, "0A000", "Citus manages", connection)
            # What the hint says.
            found = self.rows("select distinct success, result from run_command_on_shards('quads_s', $$select count(*) from quad.verify('%s')$$)")
            same("problems of the shards", found, [(True, "0")])
        finally:
            self.execute("drop table copied, kept")

    def loads_into_citus_tables_are_refused(self):
        document = "<http://x/a> <http://x/b> <http://x/c> ."
        self.execute("select quad.create_store('spread')")
        self.execute("select quad.load_text(%s, 'nt', store => 'spread')", (document,))
        self.execute("select create_distributed_table('quad_stores.spread', 's')")
        try:
            path = os.path.join(self.cluster.coordinator.dir, "one.nt")
            as_server(["sh", "-c", 'printf %s "$1" >"$2"', "sh", document, path])
            for sql in [
                f"select quad.load_text('{document}', 'nt', store => 'spread')",
                f"select quad.load('{path}', 'nt', store => 'spread')",
                f"select quad.update('LOAD <file://{path}>', 'spread')",
                "select * from quad.export('spread')",
            ]:
                self.refused(sql, "0A000", "Citus manages")
            self.execute("set quad.store = 'spread'")
            with self.connection.cursor() as cursor:
                try:
                    cursor.copy_expert(
                        "copy quad.load_stdin from stdin with (format csv, delimiter e'\\x01', quote e'\\x02')",
                        io.StringIO(document),
                    )
                    raise Mismatch("load_stdin: no error")
                except psycopg2.Error as error:
                    same(f"load_stdin: {error}", error.pgcode, "0A000")
            self.execute("reset quad.store")
            same("quads", self.value("select count(*) from quad_stores.spread"), 1)
            # What the hint says: through Citus, and back to one node.
            self.execute("insert into quad_stores.spread values (quad.encode('<http://x/a>'), quad.encode('<http://x/b>'), quad.encode('7'), 0)")
            self.execute("select undistribute_table('quad_stores.spread')")
            same("quads in one place", len(self.rows("select * from quad.export('spread')")), 2)
            self.execute("select quad.load_text(%s, 'nt', store => 'spread')", (document.replace("x/c", "x/d"),))
            same("quads after a load", self.value("select count(*) from quad_stores.spread"), 3)
        finally:
            self.execute("select quad.drop_store('spread')")

    def dictionary_stays_on_the_coordinator(self):
        tables = ["terms", "term_ids", "symbol_tables", "languages"]
        # By columns that Citus itself would take.
        columns = {"terms": "first_id", "term_ids": "s", "symbol_tables": "id"}
        self.execute("select quad.encode('<http://x/kept>')")
        before = [self.bag(f"select count(*) from quad.{table}") for table in tables]
        for table, column in columns.items():
            self.refused(
                f"select create_distributed_table('quad.{table}', '{column}')",
                "0A000",
                "a relation of the dictionary, cannot be",
            )
        for table in tables:
            for call in [
                f"create_distributed_table('quad.{table}', null)",
                f"create_reference_table('quad.{table}')",
                f"citus_add_local_table_to_metadata('quad.{table}')",
            ]:
                self.refused(f"select {call}", "0A000", "a relation of the dictionary, cannot be")
        # The hint of Citus would have the dictionary truncated.
        with self.connection.cursor() as cursor:
            cursor.execute("begin")
            try:
                cursor.execute("do $$begin perform create_reference_table('quad.terms'); "
                               "perform truncate_local_data_after_distributing_table('quad.terms'); end$$")
                raise Mismatch("the dictionary was truncated")
            except psycopg2.Error as error:
                same(f"truncated: {error}", error.pgcode, "0A000")
            cursor.execute("rollback")
        same("the dictionary", [self.bag(f"select count(*) from quad.{table}") for table in tables], before)
        for server in self.cluster.servers:
            with closing(server.connect()) as connection:
                query = "select logicalrelid::text from pg_dist_partition where logicalrelid::text like 'quad.%'"
                same("tables that Citus knows", self.rows(query, connection=connection), [])

    def workers_do_not_use_their_dictionary(self):
        self.execute("select quad.create_store('here'), quad.load_text('<http://x/a> <http://x/b> 5 .', 'turtle', store => 'here')")
        create_table(self.connection, "facts")
        self.execute("select create_distributed_table('facts', 's')")
        self.execute("insert into facts select * from quad_stores.here")
        try:
            with closing(self.cluster.workers[0].connect()) as worker:
                for sql in [
                    "select quad.encode('<http://x/a>')",
                    "select quad.find('<http://x/a>')",
                    "select quad.load_text('<http://x/a> <http://x/b> 5 .', 'turtle')",
                    "select quad.update('INSERT DATA { <http://x/a> <http://x/b> 6 }')",
                ]:
                    self.refused(sql, "55000", "dictionary", worker)
                # What is in its id needs no dictionary.
                same("a number", self.value("select quad.decode(quad.encode('5'))::bigint", connection=worker), 5)
                same("objects", self.value("select quad.decode(o)::bigint from facts", connection=worker), 5)
            # A worker that is asked by the coordinator says so, too, and what the hint says is right.
            find = "quad.find('<http://x/b>')"
            self.refused(f"select count(*) from facts where p = {find}", "55000", "dictionary")
            same("found before", self.value(f"with id as materialized (select {find} as p) select count(*) from facts where p = (select p from id)"), 1)
            same(
                "decoded after",
                self.value("with q as materialized (select s from facts) select quad.decode(s)::text from q"),
                "http://x/a",
            )
            same(
                "SPARQL on the coordinator",
                self.rows("select x ->> 'o' from quad.sparql('SELECT * { ?s <http://x/b> ?o }', 'here') x"),
                [('"5"^^<http://www.w3.org/2001/XMLSchema#integer>',)],
            )
        finally:
            self.execute("drop table facts")
            self.execute("select quad.drop_store('here')")


# Statements of a quad table of this node (here), and distributed (numbers) and reference (known) tables. Together they
# use all plan nodes.
NODES = ["Quad Scan", "Quad Join", "Quad Groups", "Quad Count", "Quad Walk", "Quad Step"]
LOCAL_BESIDE_DISTRIBUTED = {
    "insert of a scan": "insert into numbers select s, o from here where p = (select max(p) from here)",
    "insert of a join": "insert into numbers select a.s, b.o from here a join here b on b.s = a.o",
    "insert of groups": "insert into numbers select p, count(*) from here group by p",
    "insert of computed groups": "insert into numbers select o % 10, count(*) from here group by 1",
    "insert of computed groups of a join": "insert into numbers select b.o % 10, count(*) from here a join here b on b.s = a.o group by 1",
    "subquery with computed groups": "select n, m from numbers where n in (select o % 10 from here group by 1 having count(*) > 1)",
    "join of computed groups": "with x as materialized (select a.o % 10 as k, count(*) as c from here a join here b on b.s = a.o group by 1) "
    "select n, c from x join numbers on n = k",
    "insert of a walk": "insert into numbers with recursive w(n) as (select min(s) from here union "
    "select q.o from w join here q on q.s = w.n) select n, n from w",
    "join": "select d.n, q.o from numbers d join here q on q.s = d.n",
    "join of two": "select d.n, b.o from numbers d join here a on a.s = d.n join here b on b.s = a.o",
    "left join": "select d.n, q.o from numbers d left join here q on q.s = d.m and q.g = 0",
    "subquery": "select n, m from numbers where n in (select s from here where o > 0)",
    "subquery with groups": "select n, m from numbers where n in (select s from here group by s having count(*) > 1)",
    "not exists": "select n from known d where not exists (select from here q where q.s = d.m)",
    "union": "select n from numbers union all select s from here",
    "reference table": "select k.n, q.o from known k join here q on q.s = k.n",
    "delete by local": "delete from numbers where n in (select s from here where o > 0)",
    "delete using local": "delete from numbers d using here q where q.s = d.n and q.o > 0",
    "update by local": "update numbers set m = m + 1 where n in (select s from here where o > 0)",
    "update from local": "update numbers d set m = x.c from (select s, count(*) as c from here group by s) x where x.s = d.n",
    "delete of local by distributed": "delete from here where s in (select n from numbers)",
    "insert into local": "insert into here select n, 1, m, 0 from numbers",
    "constant answer of a local one": "select n from numbers where m > (select min(o) from here) and n > (select count(*) from here where p = 0)",
}


if __name__ == "__main__":
    with Cluster() as cluster:
        checks = Checks(cluster)
        checks.run()
    checks.report.finish()
