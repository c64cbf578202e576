"""Distributed stores: making and dropping them, statements about them, writing, loading, nodes that come and go. Usage:
stores.py (by `run`).

What a store has to hold is a Python set of quads; both of its tables, in all shards, are compared with it.
"""

import hashlib
import json
import os
import re
import sys
import threading
import time
import traceback
from contextlib import closing, contextmanager, nullcontext

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import io

import psycopg2

from model import random_quads
from nodes import SETTINGS, Cluster
from pgquad_test import Report, Server, join_all, wait_until

SHARDS = 6
LONG_NAME = "s" * 63
ODD_NAMES = ["Films", 'a "quoted" store', "it's $s$ and $q0$ %s", "Größe", LONG_NAME]


# quad.int_id(0): ids of integers hold their terms, so that every role may write them.
NUMBERS = 3476778912330022912


class Mismatch(AssertionError):
    """Something that is not as it has to be."""


def same(what, got, expected):
    if got != expected:
        if isinstance(got, (list, set)) and isinstance(expected, (list, set)) and len(str(got) + str(expected)) > 1000:
            missing, extra = sorted(set(expected) - set(got))[:3], sorted(set(got) - set(expected))[:3]
            raise Mismatch(f"{what}: {len(got)} of {len(expected)}; missing {missing}, not expected {extra}")
        raise Mismatch(f"{what}: {str(got)[:500]}, expected {str(expected)[:500]}")


@contextmanager
def silent(cursor):
    """The node of this cursor takes no new connections."""
    info = cursor.connection.info
    cursor.execute("show hba_file")
    path = cursor.fetchone()[0]
    with open(path, encoding="utf-8") as file:
        before = file.read()

    def use(text, refuses):
        def is_so():
            try:
                psycopg2.connect(host=info.host, port=info.port, user=info.user, dbname=info.dbname).close()
            except psycopg2.OperationalError:
                return refuses
            return not refuses

        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        cursor.execute("select pg_reload_conf()")
        wait_until("the rules are in force", is_so)

    try:
        use("local all all reject\nhost all all all reject\n" + before, True)
        yield
    finally:
        use(before, False)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Checks:
    def __init__(self, cluster):
        self.cluster = cluster
        self.report = Report("stores")
        self.connections = [server.connect() for server in cluster.servers]
        # What the store `films` holds, which the checks share.
        self.quads = set()

    def run(self, names):
        checks = [getattr(self, name) for name in names] or [
            self.creates_on_every_node,
            self.refuses_what_cannot_be,
            self.names_of_all_kinds,
            self.writes_from_every_node,
            self.aggregates_over_all_shards,
            self.distinct_rows_come_as_they_are_found,
            self.reads_ahead,
            self.common_parts_are_asked_once,
            self.build_sides_are_prefetched,
            self.repeated_queries_ask_at_once,
            self.begins_where_few_quads_are,
            self.plans_with_statistics_of_shards,
            self.explains_the_plan_that_runs,
            self.planning_asks_each_node_once,
            self.delete_and_update,
            self.joins_with_other_tables_are_batched,
            self.terms_are_read_in_batches,
            self.long_terms_come_in_parts,
            self.paths_in_both_directions_are_walked,
            self.statements_as_on_one_node,
            self.rollback_and_savepoints,
            self.errors_within_savepoints,
            self.truncate_from_every_node,
            self.rights_reach_every_node,
            self.made_anew_with_other_rights,
            self.truncate_beside_other_changes,
            self.comments_reach_every_node,
            self.policies_reach_every_node,
            self.triggers_rules_and_defaults_reach_every_node,
            self.sessions_that_the_other_nodes_have_ended,
            self.sessions_of_queries_are_idle_between_them,
            self.sessions_of_queries_end_with_their_asker,
            self.policies_beside_tables_of_citus,
            self.owner_and_name_reach_every_node,
            self.roles_without_rights_of_their_own,
            self.statements_roll_back_everywhere,
            self.two_writers_of_the_same_quads,
            self.isolation_between_nodes,
            self.deadlock_between_nodes,
            self.failed_statements_change_nothing,
            self.cursors_that_fail_leave_no_snapshot,
            self.half_committed_quads_are_deleted,
            self.half_committed_quads_come_back,
            self.exclusive_statements_wait_for_readers,
            self.reads_within_the_writing_statement,
            self.writes_beside_auto_explain,
            self.tables_stay_the_same_between_their_writes,
            self.prepare_transaction_is_refused,
            self.loads_count_new_quads,
            self.loads_more_than_memory_holds,
            self.loads_large_shards,
            self.failed_load_leaves_nothing,
            self.cancelled_load_leaves_nothing,
            self.loads_on_all_nodes_at_once,
            self.maintenance,
            self.rebuilds,
            self.rebuilds_that_wait_keep_nobody_waiting,
            self.writes_to_one_table_are_refused,
            self.rows_of_many_quads,
            self.distributes_a_filled_store,
            self.cancelled_distribution_changes_nothing,
            self.undistributes,
            self.drops_everywhere,
            self.shards_arrive_as_sorted_runs,
            self.node_added_later,
            self.node_with_terms_of_its_own,
            self.database_without_pgquad,
            self.drop_extension_leaves_no_shard,
        ]
        for check in checks:
            started = time.monotonic()
            try:
                check()
            except Exception as error:  # whatever it is, the other checks still run
                self.report.check(False, check.__name__, " ".join(str(error).splitlines()[:3]))
                traceback.print_tb(error.__traceback__, limit=-4, file=sys.stdout)
                if isinstance(error, psycopg2.errors.QueryCanceled):
                    print(self.cluster.activity())
                self.clean_up()
            else:
                self.report.check(True, f"{check.__name__} ({time.monotonic() - started:.1f} s)")
        self.cluster.check_crashes(self.report)

    def reconnect(self):
        for connection in self.connections:
            try:
                # A thread that has been given up may still use it.
                connection.cancel()
            except psycopg2.Error:
                pass
            connection.close()
        self.connections = [server.connect() for server in self.cluster.servers]

    def clean_up(self):
        """After a failed check: the store `films` is as the next ones expect it, whatever this one has left behind."""
        self.reconnect()
        policies = self.attempt(
            "select policyname from pg_policies where schemaname = 'quad_stores' and tablename in ('films', 'movies')"
        )
        for statement in [
            "alter table if exists quad_stores.movies rename to films",
            *[f"drop policy {quoted(name)} on quad_stores.films" for (name,) in policies],
            "alter table quad_stores.films disable row level security",
            "alter table quad_stores.films owner to postgres",
            "revoke all on quad_stores.films from alice, bob cascade",
            "truncate quad_stores.films",
        ]:
            self.attempt(statement)
        try:
            self.copy("quad_stores.films", sorted(self.quads))
        except psycopg2.Error as error:
            print(f"films cannot be filled again: {error}")

    def attempt(self, statement):
        """Rows of a statement that may fail: what it is about may not be there."""
        try:
            return self.rows(statement)
        except psycopg2.Error:
            return []

    # -- asking

    def rows(self, query, parameters=None, node=0):
        with self.connections[node].cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def value(self, query, parameters=None, node=0):
        return self.rows(query, parameters, node)[0][0]

    def execute(self, query, parameters=None, node=0):
        """Runs a statement; returns its row count."""
        with self.connections[node].cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.rowcount

    def copy(self, table, quads, node=0):
        text = "".join("\t".join(map(str, quad)) + "\n" for quad in quads)
        with self.connections[node].cursor() as cursor:
            cursor.copy_expert(f"copy {table} (s, p, o, g) from stdin", io.StringIO(text))

    def refused(self, sqlstate, query, parameters=None, node=0):
        """The message of the error that a statement has to end with."""
        try:
            self.execute(query, parameters, node)
        except psycopg2.Error as error:
            same(f"SQLSTATE of {query} ({error})", error.pgcode, sqlstate)
            return str(error)
        raise Mismatch(f"{query} has been accepted")

    def everywhere(self, query, parameters=None):
        return [self.rows(query, parameters, node) for node in range(len(self.connections))]

    def create(self, name, **more):
        arguments = "".join(f", {key} => {value}" for key, value in more.items())
        self.execute(f"select quad.create_store(%s, distributed => true, shards => {SHARDS}{arguments})", (name,))

    def base(self, name):
        return self.value(
            "select substr(o, 8) from pg_class, unnest(reloptions) o where relname = %s and relnamespace = 'quad_stores'::regnamespace and o like 'shards=%%'",
            (name,),
        )

    def both_tables(self, name):
        base = self.base(name)
        return [
            sorted(self.rows(f"select s, p, o, g from quad_shards.{quoted(base + side)}")) for side in ("_s", "_o")
        ]

    def holds(self, name, quads):
        """Both tables, and the relation on every node, hold these quads."""
        expected = sorted(quads)
        for side, got in zip("so", self.both_tables(name)):
            same(f"table by {side} of {name}", got, expected)
        for node in range(len(self.connections)):
            got = sorted(self.rows(f"select s, p, o, g from quad_stores.{quoted(name)}", node=node))
            same(f"{name} on node {node}", got, expected)

    def shards_left(self):
        """Tables of schema quad_shards on all nodes."""
        query = "select relname from pg_class where relnamespace = to_regnamespace('quad_shards') and relkind = 'r' order by 1"
        return [row[0] for rows in self.everywhere(query) for row in rows]

    # -- checks

    def creates_on_every_node(self):
        # Whatever the default is, each shard has one placement.
        self.execute("alter system set citus.shard_replication_factor = 2")
        self.execute("select pg_reload_conf()")
        try:
            self.create("films")
        finally:
            self.execute("alter system reset citus.shard_replication_factor")
            self.execute("select pg_reload_conf()")
        copies = (
            "select count(*) from pg_dist_shard join pg_dist_placement using (shardid) join pg_dist_partition p "
            "using (logicalrelid) where p.partmethod = 'h' group by shardid having count(*) > 1"
        )
        same("shards with copies", self.rows(copies), [])
        for rows in self.everywhere(
            "select reloptions::text like '%shards=films%' from pg_class where oid = 'quad_stores.films'::regclass"
        ):
            same("the mark", rows, [(True,)])
        tables = self.rows(
            "select table_name::text, distribution_column, shard_count, access_method from citus_tables "
            "where table_name::text like 'quad_shards.films%' order by 1"
        )
        same(
            "tables",
            tables,
            [("quad_shards.films_o", "o", SHARDS, "quad"), ("quad_shards.films_s", "s", SHARDS, "quad")],
        )
        same(
            "co-location groups",
            self.value("select count(distinct colocation_id) from citus_tables where table_name::text like 'quad_shards.films%'"),
            1,
        )
        nodes = self.value(
            "select count(distinct nodeport) from citus_shards where table_name::text = 'quad_shards.films_s'"
        )
        same("nodes with shards", nodes, 3)
        for node in range(3):
            same(
                f"quad.stores on node {node}",
                self.rows(
                    "select store, distributed, shards, quads, orders from quad.stores where store = 'films'", node=node
                ),
                [("films", True, SHARDS, 0, "spog,psog,ospg,posg")],
            )
        self.holds("films", [])

    def refuses_what_cannot_be(self):
        before = self.shards_left()
        for shards in (0, -1, 100_000):
            self.refused("22023", f"select quad.create_store('bad', distributed => true, shards => {shards})")
        self.refused("22023", "select quad.create_store('bad', shards => 4)")
        self.refused("22023", "select quad.create_store('bad', 'spog', distributed => true)")
        self.refused("42P07", "select quad.create_store('films', distributed => true)")
        self.refused("42602", "select quad.create_store('', distributed => true)")
        message = self.refused("0A000", "select quad.create_store('bad', distributed => true)", node=1)
        if "coordinator" not in message:
            raise Mismatch(f"the message does not name the coordinator: {message}")
        self.refused("55000", "select quad.distribute_store('films')")
        self.refused("42P01", "select quad.distribute_store('nothing')")
        self.refused("0A000", "select quad.drop_store('films')", node=1)
        self.refused("0A000", "alter table quad_stores.films set access method heap")
        self.refused("0A000", "alter table quad_stores.films set schema public")
        self.refused("0A000", "alter table quad_stores.films set (shards = 'other')")
        for change in (
            "add constraint one_graph check (g = 0)",
            "replica identity nothing",
            "set (leaf_quads = 'spog=64')",
        ):
            self.refused("0A000", f"alter table quad_stores.films {change}")
        self.refused("0A000", "create table public.child () inherits (quad_stores.films)")
        self.refused("2BP01", "drop table quad_shards.films_s")
        # A store of another node's own with the same name: all or nothing.
        self.execute("create table quad_stores.taken (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad", node=2)
        message = self.refused("42P07", "select quad.create_store('taken', distributed => true)")
        if str(self.cluster.servers[2].port) not in message:
            raise Mismatch(f"the message does not name the node: {message}")
        self.execute("drop table quad_stores.taken", node=2)
        same("tables left", self.shards_left(), before)
        same(
            "relations left",
            self.everywhere("select to_regclass('quad_stores.bad'), to_regclass('quad_stores.taken')"),
            [[(None, None)]] * 3,
        )

    def names_of_all_kinds(self):
        for name in ODD_NAMES:
            self.create(name)
            self.execute(f"insert into quad_stores.{quoted(name)} values (1, 2, 3, 0)", node=1)
            self.holds(name, [(1, 2, 3, 0)])
            same("problems", self.rows("select quad.verify(%s::regclass)", (f"quad_stores.{quoted(name)}",), 1), [])
            same(
                "orders",
                len(self.rows("select * from quad.store_info(%s::regclass)", (f"quad_stores.{quoted(name)}",), 2)),
                4,
            )
        # The shortened base of another long name is taken already.
        other = "s" * 62 + "t"
        self.create(other)
        self.holds(other, [])
        self.holds(LONG_NAME, [(1, 2, 3, 0)])
        for name in [*ODD_NAMES, other]:
            self.execute("select quad.drop_store(%s)", (name,))

    def writes_from_every_node(self):
        for node in range(3):
            some = random_quads(300, seed=node)
            self.copy("quad_stores.films", some + some[:50], node)
            self.quads |= set(some)
            self.holds("films", self.quads)
            one = random_quads(40, seed=10 + node)
            for quad in one:
                same("INSERT", self.execute("insert into quad_stores.films values (%s, %s, %s, %s)", quad, node), 1)
            self.quads |= set(one)
            many = random_quads(5000, seed=20 + node)
            self.execute(
                "insert into quad_stores.films select * from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])",
                [list(column) for column in zip(*many)],
                node,
            )
            self.quads |= set(many)
            self.holds("films", self.quads)

    def aggregates_over_all_shards(self):
        """Counts, groups and distinct values of every column, which each node makes of its own shards."""
        # 40,000 graphs, two quads in each: groups by a column that no order begins with.
        quads = {(NUMBERS + n % 997, NUMBERS + n % 7, NUMBERS + n % 4999, NUMBERS + n // 2) for n in range(80_000)}
        self.create("grouped")
        self.copy("quad_stores.grouped", quads)
        self.execute("vacuum quad_stores.grouped")
        for node in range(3):
            for number, column in enumerate("spog"):
                expected = {}
                for quad in quads:
                    expected[quad[number]] = expected.get(quad[number], 0) + 1
                got = self.rows(f"select {column}, count(*) from quad_stores.grouped group by {column}", node=node)
                same(f"groups by {column}", sorted(got), sorted(expected.items()))
                same(
                    f"distinct {column}",
                    sorted(self.rows(f"select distinct {column} from quad_stores.grouped", node=node)),
                    [(value,) for value in sorted(expected)],
                )
                same(f"least and greatest {column}", self.rows(f"select min({column}), max({column}), count(distinct {column}), count(*) from quad_stores.grouped", node=node),
                     [(min(expected), max(expected), len(expected), len(quads))])
            # Each node counts its own where no value is on two of them; then that is one message to each.
            predicate = min(p for _, p, _, _ in quads)
            of_graphs = [s for s, _, _, g in quads if g > NUMBERS + 2]
            sent = "select sum(messages_sent) from quad.cluster_stats where kind = 'pull'"
            for columns, where, found in [
                ("count(distinct s)", "", [len({s for s, _, _, _ in quads})]),
                ("count(distinct o)", "", [len({o for _, _, o, _ in quads})]),
                ("count(distinct p)", "", [len({p for _, p, _, _ in quads})]),
                ("count(distinct s), count(*)", "where g > %(g)s", [len(set(of_graphs)), len(of_graphs)]),
                ("count(distinct s)", "where p = %(p)s", [len({s for s, p, _, _ in quads if p == predicate})]),
                ("count(distinct o)", "where p = %(p)s", [len({o for _, p, o, _ in quads if p == predicate})]),
                ("count(distinct s)", "where p = 0", [0]),
            ]:
                query = f"select {columns} from quad_stores.grouped {where}"
                before = self.value(sent)
                same(f"{query} on node {node}", self.rows(query, {"p": predicate, "g": NUMBERS + 2}, node), [tuple(found)])
                asked = self.value(sent) - before
                # Where few are expected, all nodes are asked how many there are, too.
                if "distinct p" not in columns and found != [0] and asked > 4:
                    raise Mismatch(f"{asked} messages: {query}")
            some = NUMBERS + 3
            expected = {}
            for s, _, o, _ in quads:
                if s == some and o != some:
                    expected[o] = expected.get(o, 0) + 1
            got = self.rows(
                "select o, count(*) from quad_stores.grouped where s = %s and o <> %s group by o",
                (some, some),
                node=node,
            )
            same("groups of a subject by object", sorted(got), sorted(expected.items()))
            same(
                "first rows",
                self.rows("select s, p, o, g from quad_stores.grouped order by g desc, s limit 5", node=node),
                sorted(quads, key=lambda quad: (-quad[3], quad[0]))[:5],
            )
            plan = "\n".join(
                line
                for (line,) in self.rows(
                    "explain (analyze, costs off, timing off) select g, count(*) from quad_stores.grouped group by g",
                    node=node,
                )
            )
            if "Quad Groups" not in plan or "Scattered Groups: g" not in plan:
                raise Mismatch(plan)
        # What the transaction has changed counts.
        self.execute("begin")
        self.execute("delete from quad_stores.grouped where g >= %s", (NUMBERS + 10,))
        same(
            "groups after a deletion",
            self.value("select count(*) from (select g, count(*) from quad_stores.grouped group by g) x"),
            10,
        )
        self.execute("rollback")
        self.execute("select quad.drop_store('grouped')")

    def distinct_rows_come_as_they_are_found(self):
        """DISTINCT with LIMIT stops its join, and a cursor goes on with it: with what its snapshot had, whatever else
        the session asks or writes meanwhile."""
        step, other = NUMBERS + 1, NUMBERS + 2
        quads = {(NUMBERS + 10 + n, step, NUMBERS + 10_000 + n % 4000, 0) for n in range(8000)}
        quads |= {(NUMBERS + 10_000 + n, other, NUMBERS + 20_000 + n % 700, 0) for n in range(4000)}
        self.create("found")
        self.copy("quad_stores.found", quads)
        self.execute("vacuum analyze quad_stores.found")
        next_of = {s: o for s, p, o, _ in quads if p == other}
        pairs = {(o, next_of[o]) for _, p, o, _ in quads if p == step}
        query = f"""select distinct a.o, b.o from quad_stores.found a join quad_stores.found b on b.s = a.o
                    where a.p = {step} and b.p = {other}"""
        for node in range(3):
            for mode in ("auto", "pull", "push"):
                self.execute(f"set quad.exchange_mode = {mode}", node=node)
                for limit in (1, 20, 900, 4000, 5000):
                    rows = self.rows(f"{query} limit {limit}", node=node)
                    what = f"{limit} rows on node {node}, {mode}"
                    same(f"number of {what}", len(rows), min(limit, len(pairs)))
                    if not set(rows) <= pairs or len(set(rows)) != len(rows):
                        raise Mismatch(f"other rows, or some twice: {what}")
                self.execute("set work_mem = '64kB'", node=node)
                same(f"all rows in little memory, {mode}", sorted(self.rows(f"{query} limit 4000", node=node)), sorted(pairs))
                self.execute("reset work_mem", node=node)
                for writes in (False, True):
                    self.execute("begin", node=node)
                    if writes:
                        self.execute("insert into quad_stores.found values (1, 2, 3, 4)", node=node)
                    self.execute(f"declare found cursor for {query}", node=node)
                    rows = self.rows("fetch 5 from found", node=node)
                    for n in range(5):
                        # New quads of the same join, and other reads of the same nodes.
                        self.execute(f"insert into quad_stores.found values ({NUMBERS + 9000 + n}, {step}, {NUMBERS + 10_000}, 5), ({NUMBERS + 10_000}, {other}, {n}, 5)", node=node)
                        self.value("select count(*) from quad_stores.found where g = 5", node=node)
                        rows += self.rows("fetch 100 from found", node=node)
                    rows += self.rows("fetch all from found", node=node)
                    same(f"a cursor on node {node}, {mode}, writes before: {writes}", sorted(rows), sorted(pairs))
                    self.execute("rollback", node=node)
                self.execute("reset quad.exchange_mode", node=node)
            plan = "\n".join(line for (line,) in self.rows(f"explain (analyze, costs off, timing off) {query} limit 5", node=node))
            found = re.search(r"Quad Join\) \(actual rows=(\d+)", plan)
            if "Quad Count" not in plan or not found or int(found[1]) >= 4000:
                raise Mismatch(plan)
        self.execute("select quad.drop_store('found')")

    def reads_ahead(self):
        """A join of few rows gets what it will need with the messages that it sends, under one snapshot, and no more
        than there is."""
        at = [NUMBERS + n for n in range(10)]
        subjects = range(NUMBERS + 1000, NUMBERS + 1040)
        first, second, third = NUMBERS + 100_000, NUMBERS + 200_000, NUMBERS + 300_000
        quads = set()
        for s in subjects:
            quads |= {(s, at[1], s + first, 0), (s, at[2], s + second, 0), (s + first, at[3], s, 0), (s + second, at[4], s, 0)}
            # More than is read ahead of one key.
            quads |= {(s + second, at[5], third + n, 0) for n in range(150 if s % 4 == 0 else s % 3)}
        self.create("ahead")
        self.copy("quad_stores.ahead", quads)
        table = "quad_stores.ahead"
        query = f"""from {table} a join {table} b on b.s = a.s join {table} c on c.s = a.o join {table} d on d.s = b.o left join {table} e on e.s = b.o and e.p = {at[5]}
            where a.s = %s and a.p = {at[1]} and b.p = {at[2]} and c.p = {at[3]} and d.p = {at[4]}"""

        def expected(s, of):
            return sorted(
                (s + first, s + second, o)
                for o in [o for (n, p, o, _) in of if n == s + second and p == at[5]] or [None]
            )

        def got(s, node):
            rows = self.rows(f"select a.o, b.o, e.o {query}", (s,), node)
            return sorted(rows, key=lambda row: (row[0], row[1], row[2] or 0))

        for node in range(3):
            pulls = []
            for s in subjects:
                same(f"{s} on node {node}", got(s, node), expected(s, quads))
                if s % 4:
                    plan = self.rows(
                        f"explain (analyze, costs off, timing off) select a.o, b.o, e.o {query}", (s,), node
                    )
                    pulls.append(sum("read=pull" in line for (line,) in plan))
            # A message for the subject and one for both of its objects, to two nodes at once.
            if max(pulls) > 2 or not any(pulls):
                raise Mismatch(f"patterns of a query that were asked of other nodes from node {node}: {pulls}")
            # The same of the first rows, by a list and by a walk.
            for s in list(subjects)[:6]:
                same(
                    "first rows",
                    len(self.rows(f"select e.o {query} limit 2", (s,), node)),
                    min(2, len(expected(s, quads))),
                )
                union = f"select p, o from {table} where s = %s union all select p, s from {table} where o = %s"
                both = [(p, o) for (n, p, o, _) in quads if n == s] + [(p, n) for (n, p, o, _) in quads if o == s]
                same("both directions", sorted(self.rows(union, (s, s), node)), sorted(both))
        # Some quads of a key that are read for one condition are not all that another one finds.
        off = ["quad.enable_quad_join", "enable_hashjoin", "enable_mergejoin"]
        for setting in off:
            self.execute(f"set {setting} = off")
        parts = f"""select b.p, c.p from {table} a join {table} b on b.s = a.s and b.p <= {at[1]}
            join {table} c on c.s = a.s where a.o = %s and a.p = {at[2]}"""
        for s in list(subjects)[:12]:
            same("part of a key", sorted(self.rows(parts, (s + second,))), [(at[1], at[1]), (at[1], at[2])])
        for setting in off:
            self.execute(f"reset {setting}")
        # What has been read ahead is of the snapshot of the statement, or of the transaction.
        s = subjects[1]
        self.execute("begin isolation level repeatable read", node=1)
        same("before", got(s, 1), expected(s, quads))
        changed = {quad for quad in quads if quad[0] != s + second or quad[1] != at[5]} | {(s + second, at[5], third + 999, 0)}
        self.execute(f"delete from {table} where s = %s and p = %s", (s + second, at[5]))
        self.copy(table, [(s + second, at[5], third + 999, 0)])
        same("the old snapshot", got(s, 1), expected(s, quads))
        same("a new one", got(s, 2), expected(s, changed))
        self.execute("commit", node=1)
        same("after the transaction", got(s, 1), expected(s, changed))
        # Own writes are not among it.
        self.execute("begin", node=1)
        same("before the own write", got(s, 1), expected(s, changed))
        self.copy(table, [(s + second, at[5], third + 1000, 0)], 1)
        same("own writes", got(s, 1), expected(s, changed | {(s + second, at[5], third + 1000, 0)}))
        self.execute("rollback", node=1)
        same("after a rollback", got(s, 1), expected(s, changed))
        self.execute("select quad.drop_store('ahead')")

    def common_parts_are_asked_once(self):
        """Parts of a query that read the same quads take them from one answer of each node; another statement asks
        anew."""
        products, p, q = range(NUMBERS, NUMBERS + 60), NUMBERS + 1000, NUMBERS + 1001
        offers = {(product + 10_000 + 100 * n, product) for product in products for n in range(3)}
        quads = {(product, p, NUMBERS, 0) for product in products} | {(offer, q, product, 0) for offer, product in offers}
        self.create("common")
        self.copy("quad_stores.common", quads)
        table = "quad_stores.common"
        part = f"(select b.o, count(*) n from {table} a join {table} b on b.o = a.s where a.p = {p} and a.o = {NUMBERS} and b.p = {q} group by b.o)"
        sent = "select sum(messages_sent) from quad.cluster_stats where kind = 'pull'"

        def asked(query, node):
            before = self.value(sent)
            found = self.rows(query, node=node)
            return found, int(self.value(sent) - before)

        one, both = (
            f"select count(*), sum(x.n) from {part} x",
            f"select count(*), sum(x.n + y.n) from {part} x join {part} y on y.o = x.o",
        )
        for node in range(3):
            for query in (one, both):
                self.rows(query, node=node)
            (found, few), (found_both, same_number) = asked(one, node), asked(both, node)
            same(f"one part on node {node}", found, [(60, 180)])
            same(f"both parts on node {node}", found_both, [(60, 360)])
            if not few:
                raise Mismatch(f"node {node} asks nobody")
            same(f"messages of both parts on node {node}", same_number, few)
        self.copy(table, [(NUMBERS + 50_000, q, NUMBERS, 0)])
        same("a new statement", self.rows(both), [(60, 362)])
        self.execute("select quad.drop_store('common')")

    def build_sides_are_prefetched(self):
        """A query that is asked again gets the quads of its hash joins with its first message, under the snapshot of
        that run. It does not matter whether they are needed, nor when the statement ends."""
        of, by, country = (NUMBERS + n for n in range(3))
        products, people = [NUMBERS + 10 + n for n in range(4)], range(NUMBERS + 100, NUMBERS + 400)
        # Of the last two products there are few reviews, and none.
        reviews = {r: products[0 if r % 3 else 1 if r % 60 else 2] for r in range(NUMBERS + 1000, NUMBERS + 3000)}
        quads = {(r, of, product, 0) for r, product in reviews.items()}
        quads |= {(r, by, people[r % 300], 0) for r in reviews} | {(p, country, NUMBERS + 500 + p % 7, 0) for p in people}
        self.create("built")
        table = "quad_stores.built"
        self.copy(table, quads)
        query = f"""from {table} a join {table} b on b.s = a.s join {table} c on c.s = b.o
            where a.p = {of} and a.o = %s and b.p = {by} and c.p = {country}"""

        def expected(product):
            return sorted((r, NUMBERS + 500 + people[r % 300] % 7) for r, of_product in reviews.items() if of_product == product)

        def got(product, node):
            return sorted(self.rows(f"select a.s, c.o {query}", (product,), node))

        for node in range(3):
            for product in products * 3 + [products[3]] * 20 + products:
                same(f"reviews of {product} on node {node}", got(product, node), expected(product))
            for _ in range(4):
                plan = self.rows(f"explain (analyze, costs off, timing off) select a.s, c.o {query}", (products[0],), node)
            if not any("method=hash" in line and "read=here" in line for (line,) in plan):
                raise Mismatch(f"no build side is read before its step on node {node}: {plan}")
            # It ends early, and with an error.
            few = self.rows(f"select a.s, c.o {query} limit 3", (products[0],), node)
            same("some of them", [row for row in few if row not in expected(products[0])], [])
            for level in ("read committed", "repeatable read"):
                self.execute(f"begin isolation level {level}", node=node)
                for _ in range(5):
                    self.execute("savepoint a", node=node)
                    try:
                        self.rows(f"select 1 / (a.s - {NUMBERS + 2000 + node}) {query}", (products[0],), node)
                    except psycopg2.errors.DivisionByZero:
                        self.execute("rollback to a", node=node)
                    self.execute(f"declare built cursor for select a.s, c.o {query}", (products[0],), node)
                    first = self.rows("fetch 5 from built", node=node)
                    same("between the rows of a cursor", got(products[1], node), expected(products[1]))
                    rest = self.rows("fetch all from built", node=node)
                    same("a cursor", sorted(first + rest), expected(products[0]))
                    self.execute("close built", node=node)
                self.execute("commit", node=node)
        # It is of the snapshot of the run.
        person = people[5]
        for node in range(3):
            got(products[0], node)
            self.execute(f"delete from {table} where s = %s and p = %s", (person, country))
            left = [row for row in expected(products[0]) if people[row[0] % 300] != person]
            same(f"after a deletion on node {node}", got(products[0], node), left)
            self.copy(table, [(person, country, NUMBERS + 500 + person % 7, 0)])
            same(f"after an insertion on node {node}", got(products[0], node), expected(products[0]))
        self.execute("select quad.drop_store('built')")

    def repeated_queries_ask_at_once(self):
        """A query that is asked again has all its reads asked for with its first message, or before it is planned.
        Its answer is that of its own snapshot, whatever has changed since."""
        subjects, ends, late = range(3), range(600), range(5)
        chain = [(f"a{s}", "first", f"b{e % 200 + 200 * s}") for s in subjects for e in ends]
        chain += [(f"b{e}", "second", f"c{e * 7 % 600}") for e in ends]
        triples = {*chain, *((f"c{e}", "third", f"d{e % 11}") for e in ends)}
        # So many others that these are looked up.
        others = [(f"{p}{n}", p, f"{p}{n}") for p in ("second", "third") for n in range(20_000)]

        def text(made):
            return "".join("".join(f"<http://r.org/{term}> " for term in triple) + ".\n" for triple in made)

        def make():
            self.create("again")
            path = os.path.join(self.cluster.servers[0].dir, "again.nt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text([*triples, *others]))
            os.chmod(path, 0o644)
            self.execute("select quad.load(%s, store => 'again')", (path,))

        def expected(subject, made=None):
            made = triples if made is None else made
            step = {}
            for s, p, o in made:
                step.setdefault((s, p), []).append(o)
            found = [f"a{subject}"]
            for p in ("first", "second", "third"):
                found = [o for term in found for o in step.get((term, p), [])]
            return sorted(f"http://r.org/{term}" for term in found)

        def query(subject):
            first, second, third = (f"<http://r.org/{step}>" for step in ("first", "second", "third"))
            return f"SELECT ?d {{ <http://r.org/a{subject}> {first} ?b . ?b {second} ?c . ?c {third} ?d }}"

        def got(subject, node):
            answer = json.loads(self.value("select quad.sparql_json(%s, 'again')", (query(subject),), node))
            return sorted(row["d"]["value"] for row in answer["results"]["bindings"])

        def change(update, node):
            self.execute("select quad.update(%s, 'again')", (update,), node)

        make()
        for node in range(3):
            for subject in [*subjects] * 4:
                same(f"subject {subject} on node {node}", got(subject, node), expected(subject))
            for _ in range(4):
                plan = self.rows("select quad.explain(%s, 'again', null, true)", (query(0),), node)
            steps = [line for (lines,) in plan for line in lines.splitlines() if "Pattern:" in line]
            if len(steps) != 3 or sum("read=here" in line for line in steps) != 2:
                raise Mismatch(f"not all is asked for at once on node {node}: {steps}")
            # Rows that a cursor has not taken, errors, and transactions that see old states.
            for level in ("read committed", "repeatable read"):
                self.execute(f"begin isolation level {level}", node=node)
                for subject in subjects:
                    self.execute("savepoint a", node=node)
                    zero = f"length(quad.sparql_json($q${query(subject)}$q$, 'again')) * 0"
                    self.refused("22012", f"select 1 / ({zero})", node=node)
                    self.execute("rollback to a", node=node)
                    rows = "select count(*) over (), d from quad.sparql(%s, 'again') as t(d)"
                    self.execute(f"declare again cursor for {rows}", (query(subject),), node)
                    first = self.rows("fetch 1 from again", node=node)
                    same("between the rows of a cursor", got(subject, node), expected(subject))
                    same("a cursor", len(first + self.rows("fetch all from again", node=node)), len(expected(subject)))
                    self.execute("close again", node=node)
                self.execute("commit", node=node)
            # Its own changes, and those of others.
            self.execute("begin", node=node)
            change(f"INSERT DATA {{ {text([('b0', 'second', 'c1')])} }}", node)
            same("own changes", got(0, node), expected(0, triples | {("b0", "second", "c1")}))
            self.execute("rollback", node=node)
            for n in late:
                change(f"INSERT DATA {{ {text([(f'c{n}', 'third', f'late{n}')])} }}", (node + 1) % 3)
                triples.add((f"c{n}", "third", f"late{n}"))
                same("changes of others", got(0, node), expected(0))
            for n in late:
                change(f"DELETE DATA {{ {text([(f'c{n}', 'third', f'late{n}')])} }}", (node + 2) % 3)
                triples.discard((f"c{n}", "third", f"late{n}"))
                same("deletions of others", got(0, node), expected(0))
        # A role without a right to it is refused.
        self.execute("create role stranger")
        self.refused("42501", f"set local role stranger; select quad.sparql_json($q${query(0)}$q$, 'again')")
        same("after an error", got(0, 0), expected(0))
        self.execute("drop role stranger")
        # Whoever has the table locked is not waited for with shards of other nodes in hand.
        locked = "pg_locks l join pg_class c on c.oid = l.relation"
        held = f"select c.relname from {locked} where c.relname like '{self.base('again')}%%'"
        with closing(self.cluster.servers[0].connect(autocommit=False)) as other:
            other.cursor().execute("lock table quad_stores.again in access exclusive mode")
            answers = []
            asker = threading.Thread(target=lambda: answers.append(got(0, 0)))
            asker.start()
            waiting = "select exists(select from pg_locks where not granted)"
            wait_until("somebody waits", lambda: self.cluster.servers[0].query(waiting) == [(True,)])
            same("locks of shards", [self.rows(held, node=node) for node in (1, 2)], [[], []])
            other.rollback()
            asker.join()
        same("after the lock", answers[0], expected(0))
        table = f"quad_shards.{quoted(self.base('again') + '_s')}"
        with closing(self.cluster.servers[0].connect(autocommit=False)) as other:
            other.cursor().execute(f"lock table {table} in access exclusive mode")
            same("beside a lock of the table of shards", got(0, 0), expected(0))
        # Another store of the same name.
        self.execute("select quad.drop_store('again')")
        triples.discard(("b0", "second", "c0"))
        make()
        for node in range(3):
            for _ in range(3):
                same(f"another store on node {node}", got(0, node), expected(0))
        self.execute("select quad.drop_store('again')")

    def paths_in_both_directions_are_walked(self):
        """A path of alternatives in both directions takes each frontier along all of them. It does not read
        all quads of their predicates."""
        nodes = 1000
        # A tree, whose edges lead up or down.
        edges = [(f"n{(n - 1) // 10}", f"n{n}")[:: 1 if n % 2 else -1] for n in range(1, nodes)]
        triples = [f"<http://p.org/{a}> <http://p.org/edge> <http://p.org/{b}> ." for a, b in edges]
        # Quads that a look into the whole predicate would meet.
        triples += [f"<http://p.org/x{n}> <http://p.org/edge> <http://p.org/y{n}> ." for n in range(20_000)]
        self.create("tree")
        path = os.path.join(self.cluster.servers[0].dir, "tree.nt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(triples))
        os.chmod(path, 0o644)
        self.execute("select quad.load(%s, store => 'tree')", (path,))
        edge = "<http://p.org/edge>"
        bytes_received = "select sum(bytes_received) from quad.cluster_stats where kind = 'pull'"
        for step, expected in ((f"{edge}|^{edge}", nodes), (f"{edge}/^{edge}|^{edge}", len(self.reached(edges)))):
            query = f"SELECT (count(*) AS ?n) {{ <http://p.org/n0> ({step})* ?x }}"
            for node in range(3):
                before = self.value(bytes_received)
                found = json.loads(self.value("select quad.sparql_json(%s, 'tree')", (query,), node=node))
                same(query, found["results"]["bindings"][0]["n"]["value"], str(expected))
                received = self.value(bytes_received) - before
                if received > 200_000:
                    raise Mismatch(f"{received} bytes received for {expected} nodes: {query}")
        self.execute("select quad.drop_store('tree')")

    @staticmethod
    def reached(edges):
        """What `(edge/^edge|^edge)*` reaches from n0."""
        back, forth = {}, {}
        for a, b in edges:
            forth.setdefault(a, set()).add(b)
            back.setdefault(b, set()).add(a)
        found, frontier = {"n0"}, {"n0"}
        while frontier:
            middle = set().union(*(forth.get(node, set()) for node in frontier))
            ends = frontier | middle
            frontier = set().union(*(back.get(node, set()) for node in ends)) - found
            found |= frontier
        return found

    def begins_where_few_quads_are(self):
        """A node that has none of the few values that many quads share does not take them for rare."""
        few, many, least = NUMBERS + 1, NUMBERS + 2, NUMBERS + 1000
        quads = {(NUMBERS + 10_000 + n, few, NUMBERS, 0) for n in range(60)}
        quads |= {(NUMBERS + 10_000 + n, many, least + n % 2, 0) for n in range(20_000)}
        self.create("skewed")
        self.copy("quad_stores.skewed", quads)
        query = f"""explain (analyze, costs off, timing off) select * from quad_stores.skewed a
            join quad_stores.skewed b on b.s = a.s
            where a.p = {few} and a.o = {NUMBERS} and b.p = {many} and quad.le(b.o, {least + 1}::bigint)"""
        for node in range(3):
            plan = [line for (line,) in self.rows(query, node=node) if "Pattern: " in line]
            if "Pattern: a " not in plan[0]:
                raise Mismatch(f"a join of 60 rows with 20,000 of two values on node {node}: {plan}")
        self.execute("select quad.drop_store('skewed')")

    def plans_with_statistics_of_shards(self):
        """Generic plans expect of an unknown value as many quads as values have, on every node."""
        per_value = {"s": 4, "p": 20_000, "o": 10}
        quads = {
            (NUMBERS + n % 20_000, NUMBERS + n % 4, NUMBERS + n % 8_000, NUMBERS + n // 40_000) for n in range(80_000)
        }
        self.create("counted")
        self.copy("quad_stores.counted", quads)
        self.execute("analyze quad_stores.counted")
        self.reconnect()
        for node in range(3):
            self.execute("set plan_cache_mode = force_generic_plan", node=node)
            for column, expected in per_value.items():
                self.execute(
                    f"prepare of_{column}(bigint) as select * from quad_stores.counted where {column} = $1", node=node
                )
                [plan] = self.value(f"explain (format json) execute of_{column}(%s)", (NUMBERS,), node)
                rows = plan["Plan"]["Plan Rows"]
                if not expected / 3 <= rows <= expected * 3:
                    raise Mismatch(
                        f"{rows} quads of a value of {column} are expected on node {node}, there are {expected}"
                    )
        self.reconnect()
        self.execute("select quad.drop_store('counted')")

    def explains_the_plan_that_runs(self):
        """Citus has what EXPLAIN shows planned without its text: statements of SPARQL are known all the same."""
        for store, distributed in (("shown", "true"), ("shown_here", "false")):
            self.execute(f"select quad.create_store('{store}', distributed => {distributed})")
            triples = " . ".join(f"<urn:{n}> <urn:age> {n}" for n in range(2000))
            self.execute("select quad.update(%s, store => %s)", (f"INSERT DATA {{ {triples} }}", store))
            [(plan,)] = self.rows(
                "select quad.explain_json('SELECT ?s ?n WHERE { ?s <urn:age> ?n FILTER(?n > 5 && ?n < 9) }', store => %s)", (store,)
            )
            node = json.loads(plan)["plan"][0]["Plan"]
            same(f"filters of {store} on ids: {node}", "Filter on Ids" in node and "Filter" not in node, True)
            self.execute(f"select quad.drop_store('{store}')")

    def planning_asks_each_node_once(self):
        """All counts for the patterns of a query go to a node in one message, and connections to all nodes are made at
        once."""
        self.create("foreseen")
        subjects = [NUMBERS + n for n in range(8)]
        self.copy("quad_stores.foreseen", {(s, NUMBERS + 100, s + 1000, 0) for s in subjects})
        tables = ", ".join(f"quad_stores.foreseen q{s}" for s in subjects)
        conditions = " and ".join(f"q{s}.s = {s}" for s in subjects)
        sent = "select sum(messages_sent) from quad.cluster_stats where kind = 'pull'"
        before = self.value(sent)
        with closing(self.cluster.servers[0].connect()) as new, new.cursor() as cursor:
            cursor.execute(f"explain select 1 from {tables} where {conditions}")
            plan = cursor.fetchall()
            asked = self.value(sent) - before
            # Requests and answers, of the two other nodes.
            same("messages", int(asked), 4)
            cursor.execute(f"select count(*) from {tables} where {conditions}")
            same("rows", cursor.fetchall(), [(1,)])
        same("it is planned", bool(plan), True)
        self.value("select quad.drop_store('foreseen')")

    def delete_and_update(self):
        for node in range(3):
            s, p, o, g = sorted(self.quads)[17 * node]
            same(
                "DELETE of one",
                self.execute("delete from quad_stores.films where (s, p, o, g) = (%s, %s, %s, %s)", (s, p, o, g), node),
                1,
            )
            self.quads.discard((s, p, o, g))
            p = sorted(self.quads)[100][1]
            gone = {quad for quad in self.quads if quad[1] == p and quad[2] % 3 == node}
            same(
                "DELETE",
                self.execute(
                    "delete from quad_stores.films where p = %s and ((o %% 3) + 3) %% 3 = %s", (p, node), node
                ),
                len(gone),
            )
            self.quads -= gone
            self.holds("films", self.quads)
            moved = {quad for quad in self.quads if quad[3] == 0 and quad[0] % 2 == 0}
            same(
                "UPDATE",
                self.execute("update quad_stores.films set g = %s where g = 0 and s %% 2 = 0", (1000 + node,), node),
                len(moved),
            )
            self.quads = (self.quads - moved) | {(s, p, o, 1000 + node) for s, p, o, _ in moved}
            self.holds("films", self.quads)
            # Each row moves onto the place of the next: the set stays whole.
            self.execute("insert into quad_stores.films select 7, 7, i, 77 from generate_series(1, 50) i", node=node)
            same("UPDATE", self.execute("update quad_stores.films set o = o + 1 where g = 77", node=node), 50)
            self.quads |= {(7, 7, i, 77) for i in range(2, 52)}
            self.holds("films", self.quads)
            same("DELETE", self.execute("delete from quad_stores.films where g = 77", node=node), 50)
            self.quads -= {(7, 7, i, 77) for i in range(2, 52)}

    def joins_with_other_tables_are_batched(self):
        """Rows of other tables ask for their quads in batches, and not with a message for each; DELETE and UPDATE
        too."""
        self.create("batched")
        quads = {(NUMBERS + n, NUMBERS + 5000 + n % 3, NUMBERS + n % 50, 0) for n in range(3000)}
        self.copy("quad_stores.batched", quads)
        self.execute(
            "create table public.some as select s, p, o, g, s % 2 as half from quad_stores.batched; analyze public.some"
        )
        statements = {
            "select count(*) from public.some m join quad_stores.batched x on x.s = m.s": 3000,
            "select count(*) from public.some m left join quad_stores.batched x on x.s = m.s and x.o = m.o": 3000,
            "delete from quad_stores.batched x using public.some m where x.s = m.s and m.half = 0": 1500,
            "update quad_stores.batched x set g = 1 from public.some m where (x.s, x.p, x.o, x.g) = (m.s, m.p, m.o, m.g)": 3000,
            "select quad.update('DELETE WHERE { ?s ?p ?o }', 'batched')": 3000,
        }
        sent = "select sum(messages_sent) from quad.cluster_stats where kind = 'pull'"
        try:
            for statement, rows in statements.items():
                with closing(self.cluster.servers[0].connect()) as new, new.cursor() as cursor:
                    cursor.execute("begin")
                    before = self.value(sent)
                    cursor.execute(statement)
                    changed = cursor.rowcount if "select" not in statement else cursor.fetchone()[0]
                    asked = int(self.value(sent) - before)
                    cursor.execute("rollback")
                if "quad.update" not in statement:
                    same(statement, changed, rows)
                if asked > 150:
                    raise Mismatch(f"{asked} messages for {rows} rows: {statement}")
        finally:
            self.execute("drop table public.some")
            self.value("select quad.drop_store('batched')")

    def terms_are_read_in_batches(self):
        """Expressions and aggregates that read a term of each row ask the other nodes for many at once, long ones, too."""
        rows = 3000
        texts = [f"{n * 7919 % rows:04} {n} {'word ' * 200}" for n in range(rows)]
        triples = "\n".join(
            f'<http://t.org/s{n}> <http://t.org/text> "{text}" .\n<http://t.org/s{n}> <http://t.org/in> <http://t.org/g{n % 40}> .\n'
            f'<http://t.org/s{n}> <http://t.org/price> "{n}.5"^^<http://t.org/euro> .'
            for n, text in enumerate(texts)
        )
        self.create("texts")
        path = os.path.join(self.cluster.servers[0].dir, "texts.nt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(triples)
        os.chmod(path, 0o644)
        self.execute("select quad.load(%s, store => 'texts')", (path,))
        queries = {
            "SELECT (max(?t) AS ?x) { ?s <http://t.org/text> ?t }": [max(texts)],
            "SELECT (count(*) AS ?x) { ?s <http://t.org/text> ?t FILTER contains(?t, ' 17 ') }": ["1"],
            "SELECT (sum(strlen(?t)) AS ?x) { ?s <http://t.org/text> ?t }": [str(sum(map(len, texts)))],
            "SELECT (max(?t) AS ?x) { ?s <http://t.org/text> ?t ; <http://t.org/in> ?g } GROUP BY ?g": sorted(
                max(texts[g::40]) for g in range(40)
            ),
            "SELECT (max(str(?p)) AS ?x) { ?s <http://t.org/price> ?p ; <http://t.org/in> ?g } GROUP BY ?g": sorted(
                max(f"{n}.5" for n in range(g, rows, 40)) for g in range(40)
            ),
        }
        sent = "select sum(messages_sent) from quad.cluster_stats where kind = 'dictionary'"
        for query, expected in queries.items():
            before = self.value(sent)
            found = json.loads(self.value("select quad.sparql_json(%s, 'texts')", (query,)))
            found = sorted(row["x"]["value"] for row in found["results"]["bindings"])
            same(query, found, expected)
            asked = self.value(sent) - before
            if asked > 200:
                raise Mismatch(f"{asked} messages for {rows} terms: {query}")
        self.execute("select quad.drop_store('texts')")

    def long_terms_come_in_parts(self):
        """Terms of a batch of rows that are too long for one message of each node."""
        texts = {n: f"{n} " + "word " * 8000 for n in range(3000)}
        path = os.path.join(self.cluster.servers[0].dir, "long.nt")
        with open(path, "w", encoding="utf-8") as file:
            for n, text in texts.items():
                file.write(f'<http://t.org/s{n // 3}> <http://t.org/text{n % 3}> "{text}" .\n')
        os.chmod(path, 0o644)
        self.create("long")
        self.execute("select quad.load(%s, store => 'long')", (path,))
        self.reconnect()
        query = "SELECT * { ?s <http://t.org/text0> ?a ; <http://t.org/text1> ?b ; <http://t.org/text2> ?c }"
        found = json.loads(self.value("select quad.sparql_json(%s, 'long')", (query,)))
        rows = {row["s"]["value"]: [row[name]["value"] for name in "abc"] for row in found["results"]["bindings"]}
        same("rows", len(rows), 1000)
        for n in range(1000):
            if rows[f"http://t.org/s{n}"] != [texts[3 * n + of] for of in range(3)]:
                raise Mismatch(f"other texts of row {n}")
        for node in range(3):
            lines = self.rows("select length(e), md5(e) from quad.export('long') e", node=node)
            lines_of = (f'<http://t.org/s{n // 3}> <http://t.org/text{n % 3}> "{text}" .' for n, text in texts.items())
            expected = sorted((len(line), hashlib.md5(line.encode()).hexdigest()) for line in lines_of)
            same(f"lines of node {node}", sorted(lines), expected)
        self.execute("select quad.drop_store('long')")

    def statements_as_on_one_node(self):
        self.create("small")
        for node in range(3):
            same(
                "RETURNING",
                self.rows("insert into quad_stores.small values (1, 1, 1, 0), (2, 2, 2, 0) returning s, o", node=node),
                [(1, 1), (2, 2)],
            )
            self.holds("small", [(1, 1, 1, 0), (2, 2, 2, 0)])
            same(
                "deleted and inserted",
                self.rows(
                    "with gone as (delete from quad_stores.small where s = 1 returning *) insert into quad_stores.small select * from gone returning s",
                    node=node,
                ),
                [(1,)],
            )
            self.holds("small", [(1, 1, 1, 0), (2, 2, 2, 0)])
            merge = "merge into quad_stores.small t using (values (1, 3), (1, 4), (5, 5)) v(s, o) on t.s = v.s when not matched then insert values (v.s, 5, 5, 0) "
            self.refused("21000", merge + "when matched then update set o = v.o", node=node)
            self.refused("21000", merge + "when matched then delete", node=node)
            same("MERGE", self.execute(merge + "when matched and t.o = v.o then delete", node=node), 1)
            self.holds("small", [(1, 1, 1, 0), (2, 2, 2, 0), (5, 5, 5, 0)])
            same(
                "MERGE",
                self.execute(merge.replace("(1, 3), ", "") + "when matched and v.s = 5 then delete", node=node),
                1,
            )
            # A row met twice is deleted once.
            same(
                "DELETE USING",
                self.execute(
                    "delete from quad_stores.small t using (values (1), (1), (2)) v(s) where t.s = v.s", node=node
                ),
                2,
            )
            self.holds("small", [])
            self.refused("0A000", "select * from quad_stores.small for update", node=node) if self.execute(
                "insert into quad_stores.small values (1, 1, 1, 0)", node=node
            ) else None
            self.refused("23502", "insert into quad_stores.small values (1, null, 1, 0)", node=node)
            self.execute("delete from quad_stores.small", node=node)
        self.execute("select quad.drop_store('small')")

    def rollback_and_savepoints(self):
        for node in range(3):
            new = random_quads(200, seed=30 + node)
            self.execute("begin", node=node)
            self.copy("quad_stores.films", new, node)
            self.execute("delete from quad_stores.films where s % 5 = 0", node=node)
            own = sorted(self.rows("select s, p, o, g from quad_stores.films", node=node))
            same("own writes", own, sorted(quad for quad in self.quads | set(new) if quad[0] % 5 != 0))
            self.execute("rollback", node=node)
            self.holds("films", self.quads)
            self.execute("begin", node=node)
            self.copy("quad_stores.films", new[:100], node)
            self.execute("savepoint a", node=node)
            self.copy("quad_stores.films", new[100:], node)
            self.execute("delete from quad_stores.films where g = 0", node=node)
            self.execute("rollback to savepoint a", node=node)
            self.execute("insert into quad_stores.films values (5, 5, 5, %s)", (node,), node)
            self.execute("commit", node=node)
            self.quads |= set(new[:100]) | {(5, 5, 5, node)}
            self.holds("films", self.quads)

    def roll_back_to_a(self, node):
        """Whose own timeout is short: it may be cancelled itself, and is asked again."""
        while True:
            try:
                self.execute("rollback to a", node=node)
                return
            except psycopg2.errors.QueryCanceled:
                time.sleep(0.01)

    def errors_within_savepoints(self):
        """A transaction with one snapshot goes on reading after a statement that was cancelled while other nodes
        answered."""
        slow = "select count(*) from quad_stores.films a join quad_stores.films b on b.s = a.s join quad_stores.films c on c.o = b.o"
        count = "select count(*), sum(s % 1000) from quad_stores.films"
        for node in range(3):
            self.execute("begin isolation level repeatable read", node=node)
            expected = self.rows(count, node=node)
            cancelled = 0
            for timeout in range(1, 60, 6):
                self.execute("savepoint a", node=node)
                self.execute(f"set local statement_timeout = {timeout}", node=node)
                try:
                    self.execute(slow, node=node)
                except psycopg2.errors.QueryCanceled:
                    cancelled += 1
                self.roll_back_to_a(node)
                same(f"after {timeout} ms on node {node}", self.rows(count, node=node), expected)
            self.execute("rollback", node=node)
            same("some are cancelled", cancelled > 0, True)

    def truncate_from_every_node(self):
        for node in range(3):
            self.execute("begin", node=node)
            self.execute("truncate quad_stores.films", node=node)
            self.execute("rollback", node=node)
            self.holds("films", self.quads)
            self.execute("truncate quad_stores.films", node=node)
            self.holds("films", [])
            self.copy("quad_stores.films", sorted(self.quads), node)
            self.holds("films", self.quads)
    def truncate_beside_other_changes(self):
        """A transaction has changed the relation, and another session could not read the text of a rule now."""
        self.execute("create rule stay as on delete to quad_stores.films where old.s = -1 do instead nothing")
        for node in range(3):
            self.execute("begin", node=node)
            self.execute("grant update on quad_stores.films to bob", node=node)
            self.execute("truncate quad_stores.films", node=node)
            self.execute("commit", node=node)
            self.same_everywhere(self.RIGHTS)
            may_update = self.value("select has_table_privilege('bob', 'quad_stores.films', 'update')")
            same("right to update", may_update, True)
            self.execute("revoke update on quad_stores.films from bob", node=node)
        self.execute("drop rule stay on quad_stores.films")
        self.copy("quad_stores.films", sorted(self.quads))
        self.holds("films", self.quads)

    def made_anew_with_other_rights(self):
        """Each node has the definition of the store that is there at the end, not that of the one before."""
        rights = self.RIGHTS.replace("films", "anew")
        self.create("anew")
        self.execute("grant select on quad_stores.anew to bob")
        self.execute("create rule stay as on delete to quad_stores.anew where old.s = -1 do instead nothing")
        self.execute("begin")
        self.execute("select quad.drop_store('anew')")
        self.create("anew")
        self.execute("commit")
        self.same_everywhere(rights)
        same("right to select", self.value("select has_table_privilege('bob', 'quad_stores.anew', 'select')"), False)
        self.execute("begin")
        self.execute("select quad.undistribute_store('anew')")
        self.execute("grant insert on quad_stores.anew to bob")
        self.execute(f"select quad.distribute_store('anew', {SHARDS})")
        self.execute("commit")
        self.same_everywhere(rights)
        same("right to insert", self.value("select has_table_privilege('bob', 'quad_stores.anew', 'insert')"), True)
        self.execute("select quad.drop_store('anew')")

    RIGHTS = (
        "select coalesce(string_agg(format('%s>%s:%s%s', pg_get_userbyid(grantor), "
        "case grantee when 0 then 'PUBLIC' else pg_get_userbyid(grantee)::text end, privilege_type, is_grantable), ',' "
        "order by grantor::regrole::text, grantee::regrole::text, privilege_type), '') "
        "from pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) where oid = 'quad_stores.films'::regclass"
    )

    def same_everywhere(self, query, expected=None):
        answers = self.everywhere(query)
        for node, answer in enumerate(answers):
            same(f"{query[:60]} on node {node}", answer, answers[0] if expected is None else expected)
        return answers[0]

    def rights_reach_every_node(self):
        for role in ("alice", "bob"):
            self.execute(f"create role {role} login")
        before = self.same_everywhere(self.RIGHTS)
        for node in range(3):
            self.execute("grant select on quad_stores.films to alice with grant option", node=node)
            self.execute("set role alice", node=node)
            self.execute("grant select on quad_stores.films to bob", node=node)
            self.execute("reset role", node=node)
            self.execute("grant insert (s, p, o, g) on quad_stores.films to bob", node=node)
            rights = self.same_everywhere(self.RIGHTS)[0][0]
            if "alice>bob:SELECTf" not in rights:
                raise Mismatch(f"rights are {rights}")
            self.same_everywhere("select attname, attacl::text from pg_attribute where attrelid = 'quad_stores.films'::regclass and attacl is not null order by 1")
            other = (node + 1) % 3
            with closing(self.cluster.servers[other].connect()) as connection, connection.cursor() as cursor:
                cursor.execute("set role bob")
                cursor.execute("select count(*) from quad_stores.films")
                same("rows for bob", cursor.fetchone()[0], len(self.quads))
                cursor.execute("insert into quad_stores.films values (%s, %s, %s, %s)", [NUMBERS + 9] * 4)
                try:
                    cursor.execute("delete from quad_stores.films")
                    raise Mismatch("bob may delete")
                except psycopg2.errors.InsufficientPrivilege:
                    pass
                try:
                    cursor.execute("select count(*) from quad_shards.films_s")
                    raise Mismatch("bob may read the shards")
                except psycopg2.errors.InsufficientPrivilege:
                    pass
            self.execute(f"delete from quad_stores.films where g = {NUMBERS + 9}")
            self.execute("revoke all on quad_stores.films from alice, bob cascade", node=(node + 2) % 3)
            self.execute("revoke all (s, p, o, g) on quad_stores.films from bob", node=node)
            same("rights as before", self.same_everywhere(self.RIGHTS), before)
            self.execute("grant select, insert on all tables in schema quad_stores to bob", node=node)
            self.same_everywhere(self.RIGHTS)
            self.execute("revoke all on all tables in schema quad_stores from bob", node=node)
        same("rights as before", self.same_everywhere(self.RIGHTS), before)

    def comments_reach_every_node(self):
        comment = "select obj_description('quad_stores.films'::regclass, 'pg_class')"
        for node in range(3):
            self.execute(f"comment on table quad_stores.films is 'of node {node}: it''s'", node=node)
            self.same_everywhere(comment, [(f"of node {node}: it's",)])
            self.execute("begin", node=node)
            self.execute("comment on table quad_stores.films is 'another'", node=node)
            self.execute("rollback", node=node)
            self.same_everywhere(comment, [(f"of node {node}: it's",)])
        self.execute("comment on table quad_stores.films is null", node=1)
        self.same_everywhere(comment, [(None,)])

    POLICIES = "select policyname::text, permissive, roles::text, cmd, qual, with_check from pg_policies where schemaname = 'quad_stores' order by 1"

    def policies_reach_every_node(self):
        self.execute("grant select, insert on quad_stores.films to bob")
        for node in range(3):
            self.execute("create policy mine on quad_stores.films for select to bob using (g = 0)", node=node)
            self.execute(
                "create policy writes on quad_stores.films as restrictive for insert with check (g < 10)", node=node
            )
            self.execute("alter table quad_stores.films enable row level security", node=node)
            same("policies", len(self.same_everywhere(self.POLICIES)), 2)
            self.same_everywhere(
                "select relrowsecurity, relforcerowsecurity from pg_class where oid = 'quad_stores.films'::regclass",
                [(True, False)],
            )
            for other in range(3):
                self.execute("set role bob", node=other)
                seen = sorted(self.rows("select s, p, o, g from quad_stores.films", node=other))
                self.execute("reset role", node=other)
                same(f"bob sees on node {other}", seen, sorted(quad for quad in self.quads if quad[3] == 0))
            self.execute("alter policy mine on quad_stores.films using (g > 0)", node=(node + 1) % 3)
            same("policy", self.same_everywhere(self.POLICIES)[0][4], "(g > 0)")
            self.execute("drop policy mine on quad_stores.films", node=node)
            self.execute("drop policy writes on quad_stores.films", node=node)
            self.execute("alter table quad_stores.films disable row level security", node=node)
            same("policies", self.same_everywhere(self.POLICIES), [])
        self.execute("revoke all on quad_stores.films from bob")

    def triggers_rules_and_defaults_reach_every_node(self):
        films = "quad_stores.films"
        triggers = f"select tgname, tgenabled from pg_trigger where tgrelid = '{films}'::regclass and not tgisinternal"
        rules = f"select rulename, ev_enabled from pg_rewrite where ev_class = '{films}'::regclass"
        count = f"select count(*) from {films}"
        new = 910_000_001
        self.execute(
            "create function public.object() returns trigger language plpgsql as 'begin raise check_violation; end'"
        )
        for node in range(3):
            other, third = (node + 1) % 3, (node + 2) % 3
            self.execute(f"create trigger object before insert on {films} execute function public.object()", node=node)
            self.same_everywhere(triggers, [("object", "O")])
            self.refused("23514", f"insert into {films} values ({new}, 1, 1, 1)", node=other)
            self.execute(f"alter table {films} disable trigger object", node=node)
            self.same_everywhere(triggers, [("object", "D")])
            self.execute(f"grant select on {films} to bob", node=other)
            self.same_everywhere(triggers, [("object", "D")])
            self.execute(f"insert into {films} values ({new}, 1, 1, 1)", node=third)
            self.execute(f"alter table {films} enable replica trigger object", node=third)
            self.same_everywhere(triggers, [("object", "R")])
            self.execute(f"drop trigger object on {films}", node=other)
            self.execute(f"create rule stay as on delete to {films} where old.s = {new} do instead nothing", node=node)
            self.same_everywhere(rules, [("stay", "O")])
            before = self.value(count)
            self.execute(f"delete from {films} where s = {new}", node=other)
            same("quads that a rule keeps", self.value(count), before)
            self.execute(f"alter table {films} disable rule stay", node=third)
            self.same_everywhere(rules, [("stay", "D")])
            self.execute(f"delete from {films} where s = {new}", node=other)
            same("quads without it", self.value(count), before - 1)
            self.execute(f"drop rule stay on {films}", node=other)
            self.same_everywhere(rules, [])
            self.execute(f"alter table {films} alter column g set default 3 + 4", node=node)
            self.execute(f"insert into {films} (s, p, o) values ({new}, 1, 1)", node=other)
            same("the default", self.rows(f"select g from {films} where s = {new}"), [(7,)])
            self.execute(f"alter table {films} alter column g drop default", node=third)
            self.same_everywhere(f"select adnum from pg_attrdef where adrelid = '{films}'::regclass", [])
            self.execute(f"delete from {films} where s = {new}", node=other)
        self.execute(f"revoke all on {films} from bob; drop function public.object()")

    def sessions_that_the_other_nodes_have_ended(self):
        """As after a restart of a node: a session finds the connections gone that it has kept for its writes."""
        new = 910_000_002
        ended = "select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity where application_name like 'citus\\_internal%' and pid <> pg_backend_pid()"
        insert = f"insert into quad_stores.films select {new}, 1, i, 1 from generate_series(1, 300) i"
        statements = [
            f"insert into quad_stores.films select i, 1, {new}, 1 from generate_series(1, 3000) i",
            f"insert into quad_stores.films values ({new}, 1, 301, 1)",
            f"delete from quad_stores.films where s = {new} and o = 302",
            "grant select on quad_stores.films to public",
            "revoke select on quad_stores.films from public",
        ]
        for node in range(3):
            for statement in statements:
                # The statement before may not have used each connection.
                self.fails_once_for_each_lost_node(insert, node)
                for other in range(3):
                    if other != node:
                        self.value(ended, node=other)
                self.fails_once_for_each_lost_node(statement, node)
            count = f"select count(*) from %s where {new} in (s, o)"
            for table in ("quad_stores.films", "quad_shards.films_s", "quad_shards.films_o"):
                same(f"quads of {table}", self.value(count % table, node=(node + 1) % 3), 3301)
            self.execute(f"delete from quad_stores.films where {new} in (s, o)", node=node)
        # Others of these sessions have connections that are gone, too.
        self.reconnect()

    def fails_once_for_each_lost_node(self, statement, node):
        """Each attempt finds out about one of two other nodes; then the statement works."""
        for _ in range(2):
            try:
                self.execute(statement, node=node)
            except psycopg2.Error as error:
                same(f"SQLSTATE of {statement}", error.pgcode, "08006")
                if "127.0.0.1:" not in str(error):
                    raise Mismatch(f"the message names no node: {error}") from None
        self.execute(statement, node=node)

    def sessions_of_queries_end_with_their_asker(self):
        """Whether it closes its connection or is ended in the middle of a query, other nodes take it for no error of
        theirs."""
        calls = "select count(*) from pg_stat_activity where query like 'CALL quad.cluster_serve%%' and pid <> all (%s)"
        signs = ("unexpected EOF on client connection", "protocol synchronization was lost", "unexpected message type")

        def complaints():
            return [len(server.lines_in_log(signs)) for server in self.cluster.servers]

        for how in ("closed", "ended"):
            known = [[row[0] for row in self.rows("select pid from pg_stat_activity", node=node)] for node in (1, 2)]
            before = complaints()
            asker = self.cluster.servers[0].connect()
            with asker.cursor() as cursor:
                cursor.execute("begin")
                cursor.execute("declare c cursor for select * from quad_stores.films")
                cursor.execute("fetch 1 from c")
            if how == "ended":
                self.value("select pg_terminate_backend(%s, 10000)", (asker.info.backend_pid,))
            asker.close()
            for node in (1, 2):
                wait_until(
                    f"end of the sessions of an asker that is {how}",
                    lambda node=node, pids=known[node - 1]: self.value(calls, (pids,), node=node) == 0,
                )
            same(f"complaints about an asker that is {how}", complaints()[1:], before[1:])

    def sessions_of_queries_are_idle_between_them(self):
        """Messages of queries are data of one long call; between queries it holds nothing, and can be ended, not
        cancelled."""
        calls = "from pg_stat_activity where query like 'CALL quad.cluster_serve%'"
        kept = (
            "select (select count(*) "
            + calls
            + " and (state <> 'idle' or backend_xmin is not null or xact_start is not null)), "
            "(select count(*) from pg_locks where pid in (select pid " + calls + "))"
        )
        query, quads = "select count(*) from quad_stores.films", len(self.quads)

        def elsewhere(sql):
            return [self.rows(sql, node=node)[0] for node in (1, 2)]

        def idle():
            return elsewhere(kept) == [(0, 0)] * 2

        for isolation in ("read committed", "repeatable read"):
            began = [self.value("select clock_timestamp()", node=node) for node in (1, 2)]
            self.execute(f"begin isolation level {isolation}")
            self.execute("declare c cursor for select * from quad_stores.films")
            self.execute("fetch 1 from c")
            since = [self.value(f"select min(query_start) {calls} and state = 'active'", node=node) for node in (1, 2)]
            same("at work since the query has begun", [at >= then for at, then in zip(since, began)], [True] * 2)
            same(
                "sessions under the cursor's snapshot",
                all(active > 0 and locks > 0 for active, locks in elsewhere(kept)),
                True,
            )
            self.execute("commit")
            wait_until("idle sessions", idle)
        # A query that follows at once, in the same transaction of the node, does not hold the locks of the one before.
        self.execute("select quad.create_store('apart', distributed => true)")
        self.execute("insert into quad_stores.apart select n, 1, 2, 0 from generate_series(1, 1000) n")
        held = (
            "select count(*) filter (where relname ~ '^films_[so]_'), count(*) filter (where relname ~ '^apart_[so]_') "
            f"from pg_locks join pg_class on pg_class.oid = relation where pid in (select pid {calls})"
        )
        with closing(self.cluster.servers[0].connect()) as asking, asking.cursor() as cursor:
            cursor.execute(query)
            cursor.execute("begin; declare c cursor for select * from quad_stores.apart; fetch 1 from c")
            for films, apart in elsewhere(held):
                same(f"locks of the query before, and of the one that runs ({apart})", (films, apart > 0), (0, True))
        self.execute("select quad.drop_store('apart')")
        for end, after in (("pg_cancel_backend(pid)", "is"), ("pg_terminate_backend(pid, 10000)", "is not")):
            before = [self.rows(f"select pid {calls}", node=node) for node in (1, 2)]
            for node in (1, 2):
                same("sessions", self.value(f"select bool_and({end}) {calls}", node=node), True)
            # A signal that comes with the next message is for that one.
            time.sleep(0.3)
            same("quads", self.value(query), quads)
            wait_until("idle sessions", idle)
            is_there = [
                set(self.rows(f"select pid {calls}", node=node)) >= set(pids) for node, pids in zip((1, 2), before)
            ]
            same(f"the session {after} the one of before", is_there, [after == "is"] * 2)
        # A setting that is read anew reaches the session: a shard is locked for longer than that.
        shards = [name for (name,) in self.rows("select oid::regclass::text from pg_class where relname ~ '^films_s_[0-9]+$'", node=1)]
        pids = self.rows(f"select pid {calls}", node=1)
        with closing(self.cluster.servers[1].connect()) as locking, locking.cursor() as cursor:
            cursor.execute("set statement_timeout = 0; set citus.enable_manual_changes_to_shards = on")
            try:
                self.cluster.servers[1].alter_system("statement_timeout", "500ms")
                cursor.execute(f"begin; lock table {', '.join(shards)} in access exclusive mode")
                message = self.refused("57014", query)
                same(f"the node is named ({message})", f":{self.cluster.servers[1].port}" in message, True)
                cursor.execute("rollback")
            finally:
                self.cluster.servers[1].alter_system("statement_timeout")
        same("calls that an error has ended", set(pids) & set(self.rows(f"select pid {calls}", node=1)), set())
        for call, state in (("(14, 'x')", "42501"), ("(null, 'x')", "42501"), ("(99, 'x')", "0A000")):
            self.refused(state, "call quad.cluster_serve" + call)
        same("quads", self.value(query), quads)

    def policies_beside_tables_of_citus(self):
        """Citus's planner crashes on the conditions of policies beside its tables: refused before it sees them."""
        self.execute("create table public.numbers (n bigint); grant select on public.numbers to bob")
        self.execute("select create_distributed_table('public.numbers', 'n')")
        self.execute("grant select on quad_stores.films to bob")
        self.execute("create policy zero on quad_stores.films to bob using (g = 0)")
        self.execute("alter table quad_stores.films enable row level security")
        together = [
            "select count(*) from quad_stores.films f join public.numbers on f.s = n",
            "select count(*) from public.numbers where n in (select s from quad_stores.films)",
            "with f as materialized (select s from quad_stores.films) select count(*) from public.numbers, f",
            "select (select count(*) from quad_stores.films), n from public.numbers",
        ]
        for node in range(3):
            self.execute("set role bob", node=node)
            for query in together:
                message = self.refused("0A000", query, node=node)
                if "row-level security" not in message or "public.numbers" not in message:
                    raise Mismatch(message)
            same(
                "apart",
                self.value("select count(*) from quad_stores.films", node=node),
                len([quad for quad in self.quads if quad[3] == 0]),
            )
            same("apart", self.value("select count(*) from public.numbers", node=node), 0)
            self.execute("reset role", node=node)
            same("by the owner, whom no policy binds", self.value(together[0], node=node), 0)
        self.execute("alter table quad_stores.films disable row level security")
        self.execute(
            "drop policy zero on quad_stores.films; revoke all on quad_stores.films from bob; drop table public.numbers"
        )

    def owner_and_name_reach_every_node(self):
        owner = "select relowner::regrole::text from pg_class where oid = %s::regclass"
        self.execute("alter table quad_stores.films owner to alice")
        self.same_everywhere(owner.replace("%s", "'quad_stores.films'"), [("alice",)])
        self.same_everywhere(owner.replace("%s", "'quad_shards.films_s'"), [("alice",)])
        for node in range(3):
            with closing(self.cluster.servers[node].connect()) as connection, connection.cursor() as cursor:
                cursor.execute("set session authorization alice")
                quad = (NUMBERS + 8, NUMBERS + 8, NUMBERS + 8, NUMBERS + node)
                cursor.execute("insert into quad_stores.films values (%s, %s, %s, %s)", quad)
            self.quads.add(quad)
        self.holds("films", self.quads)
        self.execute("alter table quad_stores.films owner to postgres")
        for node in range(3):
            self.execute("alter table quad_stores.films rename to movies", node=node)
            same(
                "names",
                self.everywhere(
                    "select to_regclass('quad_stores.films') is null and to_regclass('quad_stores.movies') is not null"
                ),
                [[(True,)]] * 3,
            )
            self.holds("movies", self.quads)
            self.execute("alter table quad_stores.movies rename to films", node=(node + 1) % 3)
        self.holds("films", self.quads)

    def roles_without_rights_of_their_own(self):
        """A role that is no superuser makes, fills, looks after, distributes and drops stores."""
        with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("set session authorization alice")
            cursor.execute(f"select quad.create_store('own', distributed => true, shards => {SHARDS})")
            cursor.execute("insert into quad_stores.own select quad.int_id(i), quad.int_id(2), quad.int_id(i + 1), 0 from generate_series(1, 2000) i")
            cursor.execute("vacuum quad_stores.own")
            cursor.execute("analyze quad_stores.own")
            cursor.execute("select count(*) from quad.verify('quad_stores.own')")
            same("problems", cursor.fetchone()[0], 0)
            cursor.execute("select quads from quad.stores where store = 'own'")
            same("quads", cursor.fetchone()[0], 2000)
            self.holds("own", [(NUMBERS + i, NUMBERS + 2, NUMBERS + i + 1, 0) for i in range(1, 2001)])
            cursor.execute("select quad.undistribute_store('own')")
            cursor.execute(f"select quad.distribute_store('own', {SHARDS})")
            self.holds("own", [(NUMBERS + i, NUMBERS + 2, NUMBERS + i + 1, 0) for i in range(1, 2001)])
            cursor.execute("select quad.drop_store('own')")
        same("tables", [name for name in self.shards_left() if name.startswith("own")], [])

    def statements_roll_back_everywhere(self):
        before = self.same_everywhere(self.RIGHTS)
        for node in range(3):
            self.execute("begin", node=node)
            self.execute("grant all on quad_stores.films to bob", node=node)
            self.execute("create policy p on quad_stores.films using (true)", node=node)
            self.execute("alter table quad_stores.films rename to other", node=node)
            self.execute("rollback", node=node)
            same("rights", self.same_everywhere(self.RIGHTS), before)
            same("policies", self.same_everywhere(self.POLICIES), [])
        tables = self.shards_left()
        self.execute("begin")
        self.create("gone")
        self.execute("insert into quad_stores.gone values (1, 2, 3, 4)")
        self.execute("rollback")
        self.execute("begin")
        self.execute("select quad.drop_store('films')")
        self.execute("rollback")
        same("tables", self.shards_left(), tables)
        self.holds("films", self.quads)

    def two_writers_of_the_same_quads(self):
        """Two open transactions on two nodes insert the same quads, then delete the same ones. Where each comes first
        to a shard that the other one wants as well, it is a deadlock, and the one that is ended tries again."""
        new = random_quads(500, seed=40)
        for quads in (set(new) - self.quads,):
            for node in (1, 2):
                self.execute("begin", node=node)
                self.copy("quad_stores.films", sorted(quads), node)
            for node in (1, 2):
                self.execute("commit", node=node)
            self.quads |= quads
            self.holds("films", self.quads)

            failures = []

            def delete(node):
                try:
                    for turn in range(10):
                        try:
                            self.execute("delete from quad_stores.films where (s, p, o, g) in (select * from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]))",
                                         [list(column) for column in zip(*sorted(quads))], node)
                            return
                        except psycopg2.errors.DeadlockDetected as error:
                            if turn == 9:
                                raise error
                except psycopg2.Error as error:
                    failures.append(f"node {node}: {error}")

            threads = [threading.Thread(target=delete, args=(node,), daemon=True) for node in (1, 2)]
            for thread in threads:
                thread.start()
            join_all(threads)
            same("failures", failures, [])
            self.quads -= quads
            self.holds("films", self.quads)

    def isolation_between_nodes(self):
        """Two nodes write in open transactions, the third reads: committed quads only, all of a transaction's or
        none."""
        mark, see = NUMBERS + 600, f"select s, p, o from quad_stores.films where g = {NUMBERS + 600} order by 1, 2, 3"
        mine = {node: [(NUMBERS + 700 + node, NUMBERS + i, NUMBERS + 31 * i) for i in range(40)] for node in (0, 1)}
        for node in (0, 1):
            self.execute("begin", node=node)
            self.copy("quad_stores.films", [(*quad, mark) for quad in mine[node]], node)
            same(f"own writes on node {node}", self.rows(see, node=node), mine[node])
        same("a reader meanwhile", self.rows(see, node=2), [])
        self.execute("begin isolation level repeatable read", node=2)
        same("a reader with one snapshot", self.rows(see, node=2), [])
        self.execute("commit", node=0)
        self.execute("rollback", node=1)
        same("its snapshot stays", self.rows(see, node=2), [])
        self.execute("commit", node=2)
        for node in range(3):
            same(f"afterwards on node {node}", self.rows(see, node=node), mine[0])
        # A savepoint that is rolled back on a node that another one reads.
        self.execute("begin", node=1)
        self.execute(f"delete from quad_stores.films where g = {mark}", node=1)
        self.execute("savepoint a", node=1)
        self.copy("quad_stores.films", [(*quad, mark) for quad in mine[1]], 1)
        self.execute("rollback to a", node=1)
        same("own deletions", self.rows(see, node=1), [])
        same("not seen by others", self.rows(see, node=0), mine[0])
        self.execute("commit", node=1)
        same("seen now", self.everywhere(see), [[]] * 3)
        self.holds("films", self.quads)

    def deadlock_between_nodes(self):
        """Two transactions on two nodes that delete the same two quads in opposite order. Each node's detector ends the
        youngest transaction of its own in a circle. Where all nodes look, one transaction is ended and the other
        commits. Or both are ended by nodes that happen to look at the same moment, and are tried again. Where node 1
        alone looks, it is its own that is ended, and the other commits."""
        # Each quad has both its shards on one node, and the other quad's are on another node: no node sees the circle
        # by itself.
        node_of = (
            "select nodeport from citus_shards where shardid = get_shard_id_for_distribution_column(%s, %s::bigint)"
        )
        pair = {}
        for i in range(200):
            s, o = NUMBERS + 800 + i, NUMBERS + i
            places = {self.value(node_of, (f"quad_shards.films_{side}", key)) for side, key in (("s", s), ("o", o))}
            if len(places) == 1:
                pair.setdefault(places.pop(), (s, NUMBERS, o, NUMBERS + 601))
        same("nodes with shards", len(pair), 3)
        one, other = list(pair.values())[:2]
        self.one_is_ended(one, other, ({1}, {2}), 10)
        try:
            for node in (0, 2):
                self.cluster.servers[node].alter_system("citus.distributed_deadlock_detection_factor", -1)
            # A daemon that has not read its settings yet may look once more.
            self.one_is_ended(one, other, ({1},), 3)
        finally:
            for node in (0, 2):
                self.cluster.servers[node].alter_system("citus.distributed_deadlock_detection_factor")
        self.holds("films", self.quads)

    def one_is_ended(self, one, other, expected, tries):
        """The nodes whose transactions are ended are those of a set of `expected`, at the latest after so many
        tries."""
        ended = []
        for _ in range(tries):
            self.execute("delete from quad_stores.films where g = %s", (NUMBERS + 601,))
            self.copy("quad_stores.films", [one, other])
            errors = self.opposite_deletes(one, other)
            same("errors", set(errors.values()), {"40P01"})
            left = self.value("select count(*) from quad_stores.films where g = %s", (NUMBERS + 601,))
            same(f"quads left after {len(errors)} errors", left, 0 if len(errors) == 1 else 2)
            ended.append(set(errors))
            if ended[-1] in expected:
                return
        raise Mismatch(f"nodes whose transactions are ended: {ended}, expected one of {expected}")

    def opposite_deletes(self, one, other):
        """Node 1 deletes `one`, then `other`, node 2 the other way round; returns the SQLSTATEs of those that are
        ended, by node."""
        delete = "delete from quad_stores.films where (s, p, o, g) = (%s, %s, %s, %s)"
        errors = {}

        def second(node, quad):
            try:
                self.execute(delete, quad, node)
                self.execute("commit", node=node)
            except psycopg2.Error as error:
                errors[node] = error.pgcode
                self.execute("rollback", node=node)

        for node, quad in ((1, one), (2, other)):
            self.execute("begin", node=node)
            same("deleted", self.execute(delete, quad, node), 1)
        threads = [threading.Thread(target=second, args=arguments, daemon=True) for arguments in ((1, other), (2, one))]
        for thread in threads:
            thread.start()
        join_all(threads)
        return errors

    def failed_statements_change_nothing(self):
        """Citus would let a statement that changes one shard commit there by itself. Statements end here when all
        shards have been written."""
        self.execute(
            "create function public.refuse() returns trigger language plpgsql as 'begin raise check_violation; end'"
        )
        self.execute("create trigger refuse after insert or update or delete on quad_stores.films execute function public.refuse()")
        try:
            for node in range(3):
                for s, p, o, g in sorted(self.quads)[:4]:
                    quad = f"(s, p, o, g) = ({s}, {p}, {o}, {g})"
                    self.refused("23514", f"delete from quad_stores.films where {quad}", node=node)
                    self.refused("23514", f"update quad_stores.films set g = {NUMBERS + 603} where {quad}", node=node)
                self.refused(
                    "23514",
                    f"insert into quad_stores.films values ({NUMBERS}, {NUMBERS}, {NUMBERS}, {NUMBERS + 603})",
                    node=node,
                )
                self.holds("films", self.quads)
        finally:
            self.execute("drop trigger refuse on quad_stores.films")
            self.execute("drop function public.refuse")

    def half_written(self, base, quad, side, end):
        """Writes a quad to one of both tables of a store, and ends that transaction so; gives the connection."""
        shard, port = self.rows(
            "select shard_name, nodeport from citus_shards "
            "where shardid = get_shard_id_for_distribution_column(%s, %s::bigint)",
            (f"quad_shards.{base}_{side}", quad[0 if side == "s" else 2]),
        )[0]
        server = next(server for server in self.cluster.servers if server.port == port)
        connection = server.connect()
        with connection.cursor() as cursor:
            # Citus' own name lets a session write to a shard.
            cursor.execute("set application_name = 'citus_internal gpid=10000000001'")
            cursor.execute("begin")
            cursor.execute(f"insert into {shard} values (%s, %s, %s, %s)", quad)
            cursor.execute(end)
        return connection

    def cursors_that_fail_leave_no_snapshot(self):
        """A cursor that fails within a savepoint is there until the transaction ends. What comes after it sees what has
        been committed meanwhile, and a store is not undistributed beside it."""
        self.execute("set quad.exchange_mode = pull")
        before = self.value("select count(*) from quad_stores.films")
        self.execute("begin")
        self.execute("declare c cursor for select 1 / (n - 100) from quad_stores.films, generate_series(1, 100) n")
        self.execute("fetch 1 from c")
        self.execute("savepoint a")
        self.refused("22012", "move forward all from c")
        self.execute("rollback to a")
        self.execute("insert into quad_stores.films select n, 99, n, 0 from generate_series(1, 60) n", node=1)
        found = {self.value("select count(*) from quad_stores.films") for _ in range(20)}
        same("quads after a failed cursor", found, {before + 60})
        self.refused("55006", "select quad.undistribute_store('films')")
        self.execute("rollback")
        self.execute("delete from quad_stores.films where p = 99")
        self.execute("reset quad.exchange_mode")
        self.holds("films", self.quads)

    def half_committed_quads_are_deleted(self):
        """A commit reaches one node after the other. What one table shows is deleted from both, also where the other
        one has it prepared only, and does not tell so for a while."""
        quad = (NUMBERS + 850, NUMBERS, NUMBERS + 851, NUMBERS + 602)
        delete = "delete from quad_stores.films where s = %s"
        for node in range(3):
            # The sessions of Citus are there before a node takes no others.
            self.execute(delete, (quad[0],), node)
            for way in (nullcontext, silent):
                halves = [
                    self.half_written("films", quad, "s", "commit"),
                    self.half_written("films", quad, "o", "prepare transaction 'citus_half'"),
                ]
                with halves[1].cursor() as cursor:
                    try:
                        with way(cursor):
                            self.execute("set statement_timeout = '200ms'", node=node)
                            self.refused("57014", delete, (quad[0],), node)
                            self.execute("reset statement_timeout", node=node)
                            arguments = (delete, (quad[0],), node)
                            deleting = threading.Thread(target=self.execute, args=arguments, daemon=True)
                            deleting.start()
                            deleting.join(0.2)
                            same("waits", deleting.is_alive(), True)
                    finally:
                        cursor.execute("commit prepared 'citus_half'")
                join_all([deleting])
                for half in halves:
                    half.close()
                self.holds("films", self.quads)

    def half_committed_quads_come_back(self):
        """A store that is to be one of a single node has quads which another node has prepared only."""
        self.execute("select quad.create_store('half', distributed => true, shards => 6)")
        quad = (NUMBERS + 860, NUMBERS, NUMBERS + 861, NUMBERS)
        half = self.half_written("half", quad, "s", "prepare transaction 'citus_half'")
        with closing(half), half.cursor() as cursor:
            undistribute = ("select quad.undistribute_store('half')",)
            moving = threading.Thread(target=self.execute, args=undistribute, daemon=True)
            moving.start()
            moving.join(1)
            same("waits", moving.is_alive(), True)
            cursor.execute("commit prepared 'citus_half'")
        join_all([moving])
        same("quads", self.rows("select s, p, o, g from quad_stores.half"), [quad])
        self.execute("select quad.drop_store('half')")

    def exclusive_statements_wait_for_readers(self):
        """TRUNCATE and DROP wait for a reader of another node before they take any shard from it: it goes on."""
        statements = {"truncated": "truncate quad_stores.truncated", "dropped": "select quad.drop_store('dropped')"}
        for name, statement in statements.items():
            self.execute(f"select quad.create_store('{name}', distributed => true, shards => 6)")
            self.execute(
                f"insert into quad_stores.{name} select {NUMBERS} + i, {NUMBERS}, {NUMBERS} + i * 7, 0 "
                "from generate_series(1, 30000) i"
            )
            for node in (1, 2):
                self.execute("begin", node=node)
                self.execute("set local statement_timeout = '30s'", node=node)
                self.execute("set local cursor_tuple_fraction = 1", node=node)
                self.execute(f"declare c cursor for select s from quad_stores.{name}", node=node)
                same("first row", len(self.rows("fetch 1 from c", node=node)), 1)
            waiting = threading.Thread(target=self.execute, args=(statement,), daemon=True)
            waiting.start()
            waiting.join(1)
            same("waits", waiting.is_alive(), True)
            for node in (1, 2):
                same("other rows", len(self.rows("fetch all from c", node=node)), 29_999)
                self.execute("commit", node=node)
            join_all([waiting])
        same("quads", self.rows("select count(*) from quad_stores.truncated"), [(0,)])
        self.execute("select quad.drop_store('truncated')")

    def tables_stay_the_same_between_their_writes(self):
        """A statement writes to one table after the other. Another transaction deletes or inserts the same quads, and
        commits, when only the first one has been written to. A trigger of the first table's shard lets it."""
        lock = 4711
        place = (
            "select shard_name, nodeport from citus_shards "
            "where shardid = get_shard_id_for_distribution_column('quad_shards.films_s', (%s)::bigint)"
        )
        for server in self.cluster.servers:
            server.query("set citus.enable_ddl_propagation = off; create function public.wait_here() returns trigger language plpgsql as "
                         f"$$ begin perform pg_advisory_xact_lock_shared({lock}); return null; end $$")
        insert = f"insert into quad_stores.films select {NUMBERS}, {NUMBERS}, {NUMBERS} + o, {NUMBERS + 605} from generate_series(0, %s) o"
        delete = f"delete from quad_stores.films where g = {NUMBERS + 605} and o <= {NUMBERS} + %s"
        quads = [(NUMBERS, NUMBERS, NUMBERS + o, NUMBERS + 605) for o in range(40_001)]
        try:
            shard, port = self.rows(place, (quads[0][0],))[0]
            server = next(server for server in self.cluster.servers if server.port == port)
            manual = "set citus.enable_ddl_propagation = off; set citus.enable_manual_changes_to_shards = on; "
            for node in range(3):
                # So the most are more than memory holds.
                self.execute("set maintenance_work_mem = '1MB'", node=node)
                for last in (0, 20, 2999, 39_999)[: 4 if node == 0 else 3]:
                    # What waits, what overtakes it, and what is there in the end. Half of the quads are there before.
                    for event, first, second, after in [
                        ("insert", insert, delete, quads[last // 3 + 1 : last + 2]),
                        ("delete", delete, insert, []),
                    ]:
                        self.copy("quad_stores.films", quads[: last // 2 + 1])
                        server.query(f"{manual} create trigger wait_here after {event} on {shard} execute function public.wait_here()")
                        holder = server.connect()
                        with holder.cursor() as cursor:
                            cursor.execute("select pg_advisory_lock(%s)", (lock,))
                        waiting = threading.Thread(target=self.execute, args=(first, (last + 1,), node), daemon=True)
                        waiting.start()
                        while not server.query(
                            "select 1 from pg_locks where locktype = 'advisory' and objid = %s and not granted", (lock,)
                        ):
                            time.sleep(0.01)
                            same("it waits", waiting.is_alive(), True)
                        overtaking = threading.Thread(
                            target=self.execute, args=(second, (last // 3,), (node + 1) % 3), daemon=True
                        )
                        overtaking.start()
                        overtaking.join(30)
                        same(f"{second} overtakes {first}", overtaking.is_alive(), False)
                        holder.close()
                        join_all([waiting])
                        server.query(f"{manual} drop trigger wait_here on {shard}")
                        of_graph = f"select s, p, o, g from %s where g = {NUMBERS + 605}"
                        tables = [
                            set(self.rows(of_graph % table, node=n))
                            for n in range(3)
                            for table in ("quad_shards.films_s", "quad_shards.films_o")
                        ]
                        for table in tables:
                            same(f"{event} of {last + 2} on node {node}", table, tables[0])
                        # What both have written is there as after one and then the other, in either turn.
                        same("quads that are there in any case", set(after) - tables[0], set())
                        same("other quads", tables[0] - set(after) - set(quads[: last // 3 + 1]), set())
                        self.execute(f"delete from quad_stores.films where g = {NUMBERS + 605}")
                        self.holds("films", self.quads)
                self.execute("reset maintenance_work_mem", node=node)
        finally:
            for server in self.cluster.servers:
                server.query("set citus.enable_ddl_propagation = off; drop function public.wait_here cascade")

    def reads_within_the_writing_statement(self):
        """A function that an INSERT calls reads the store, also within a block whose error it catches: nothing is lost."""
        read = "select count(*) from quad_stores.films where g = %s" % (NUMBERS + 606)
        bodies = {
            "reads": f"perform ({read});",
            "reads_and_catches": f"begin perform ({read}); raise division_by_zero; exception when division_by_zero then null; end;",
        }
        insert = (
            f"insert into quad_stores.films select {NUMBERS}, {NUMBERS}, public.%s({NUMBERS} + o), {NUMBERS + 606} "
            "from generate_series(0, 9) o"
        )
        for server in self.cluster.servers:
            for name, body in bodies.items():
                server.query(
                    f"set citus.enable_ddl_propagation = off; create function public.{name}(n bigint) returns bigint "
                    f"language plpgsql volatile as $$ begin {body} return n; end $$"
                )
        try:
            for node in range(3):
                for name in bodies:
                    self.execute(insert % name, node=node)
                    same(f"quads with {name}", self.value(read, node=node), 10)
                    self.execute(f"delete from quad_stores.films where g = {NUMBERS + 606}", node=node)
            one, other = self.both_tables("films")
            same("both tables", one, other)
        finally:
            for server in self.cluster.servers:
                for name in bodies:
                    server.query(f"set citus.enable_ddl_propagation = off; drop function public.{name}")

    def writes_beside_auto_explain(self):
        """What measures every statement does not get in the way of those that the extension runs."""
        quads = [(NUMBERS + 900 + n % 40, NUMBERS, NUMBERS + n, NUMBERS + 607) for n in range(300)]
        for node in range(3):
            self.execute("load 'auto_explain'", node=node)
            for setting in ("log_analyze = on", "log_nested_statements = on", "log_min_duration = 0"):
                self.execute(f"set auto_explain.{setting}", node=node)
            self.copy("quad_stores.films", quads)
            self.execute(f"update quad_stores.films set g = g + 1 where g = {NUMBERS + 607}", node=node)
            same(
                "there",
                self.value(f"select count(*) from quad_stores.films where g = {NUMBERS + 608}", node=node),
                len(quads),
            )
            self.execute(f"delete from quad_stores.films where g = {NUMBERS + 608}", node=node)
            self.holds("films", self.quads)
            self.execute("set auto_explain.log_min_duration = -1", node=node)

    def prepare_transaction_is_refused(self):
        for node in range(3):
            self.execute("begin", node=node)
            self.copy("quad_stores.films", random_quads(50, seed=60), node)
            try:
                self.execute("prepare transaction 'mine'", node=node)
                raise Mismatch("prepared")
            except psycopg2.Error as error:
                if not error.pgcode or error.pgcode.startswith("XX"):
                    raise Mismatch(f"SQLSTATE {error.pgcode}: {error}") from error
            self.execute("rollback", node=node)
        same("prepared transactions", self.everywhere("select gid from pg_prepared_xacts"), [[]] * 3)
        self.holds("films", self.quads)

    # -- loading

    @staticmethod
    def triples(low, high):
        return "".join(f"<http://example.org/s{i // 10}> <http://example.org/p{i % 7}> \"{i}\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n" for i in range(low, high))

    def loads_count_new_quads(self):
        self.create("loaded")
        total = 0
        for node in range(3):
            same("empty document", self.value("select quad.load_text('', 'nt', store => 'loaded')", node=node), 0)
            low = 20_000 * node
            # The node before has loaded the first ten already.
            new = 20_000 if node == 0 else 19_990
            same("new", self.value("select quad.load_text(%s, 'nt', store => 'loaded')", (self.triples(low, low + 20_000),), node), new)
            same("again", self.value("select quad.load_text(%s, 'nt', store => 'loaded')", (self.triples(low, low + 20_000),), node), 0)
            same(
                "half",
                self.value(
                    "select quad.load_text(%s, 'nt', store => 'loaded')",
                    (self.triples(low + 19_990, low + 20_010),),
                    node,
                ),
                10,
            )
            total = low + 20_010
            self.execute("begin", node=node)
            self.execute("delete from quad_stores.loaded where s = quad.find('<http://example.org/s1>')", node=node)
            same(
                "within a transaction",
                self.value("select quad.load_text(%s, 'nt', store => 'loaded')", (self.triples(0, 30),), node),
                10,
            )
            self.execute("commit", node=node)
            same("quads", self.value("select count(*) from quad_stores.loaded", node=node), total)
            with self.connections[node].cursor() as cursor:
                cursor.execute("set quad.store = 'loaded'")
                cursor.copy_expert(
                    "copy quad.load_stdin from stdin with (format csv, delimiter e'\\x01', quote e'\\x02')",
                    io.StringIO(self.triples(0, 100)),
                )
                cursor.execute("reset quad.store")
            one, other = self.both_tables("loaded")
            same("both tables", one, other)
            same("quads", len(one), total)

    def loads_large_shards(self):
        """A shard that gets many quads is told when it has all of them, in memory and in temporary files. What comes in
        a later statement is added."""
        load = "select quad.load_text(%s, 'nt', store => 'large')"
        self.execute("select quad.create_store('large', distributed => true, shards => 2)")
        for node in range(3):
            document = self.triples(3_000_000 + 100_000 * node, 3_200_000 + 100_000 * node)
            connection = self.connections[node]
            for memory, new in (("1MB", 200_000 if node == 0 else 100_000), ("1MB", 0), ("64MB", 0)):
                del connection.notices[:]
                self.execute(f"set maintenance_work_mem = '{memory}'", node=node)
                same(f"new on node {node}", self.value(load, (document,), node), new)
                same("notices", list(connection.notices), [])
            self.execute("reset maintenance_work_mem", node=node)
        document = self.triples(4_000_000, 4_200_000)
        self.execute("begin; savepoint a")
        self.execute(load, (document,))
        self.execute("rollback to savepoint a; commit")
        one, other = self.both_tables("large")
        same("both tables", one, other)
        same("quads", len(one), 400_000)
        same("new after a rollback", self.value(load, (document,)), 200_000)
        one, other = self.both_tables("large")
        same("both tables", one, other)
        same("quads", len(one), 600_000)
        same("problems", self.rows("select * from quad.verify('quad_stores.large')"), [])
        self.execute("select quad.drop_store('large')")

    def loads_more_than_memory_holds(self):
        """Quads wait for their second table in temporary files while the first one is written."""
        before = len(self.both_tables("loaded")[0])
        for node in range(3):
            self.execute("set maintenance_work_mem = '1MB'", node=node)
            low = 2_000_000 + 100_000 * node
            same(
                "new",
                self.value(
                    "select quad.load_text(%s, 'nt', store => 'loaded')", (self.triples(low, low + 100_000),), node
                ),
                100_000,
            )
            self.execute("reset maintenance_work_mem", node=node)
        one, other = self.both_tables("loaded")
        same("both tables", one, other)
        same("quads", len(one), before + 300_000)

    def failed_load_leaves_nothing(self):
        before = self.both_tables("loaded")[0]
        for node in range(3):
            self.refused(
                "22P02",
                "select quad.load_text(%s, 'nt', store => 'loaded')",
                (self.triples(900_000, 910_000) + "not a triple\n",),
                node,
            )
            for got in self.both_tables("loaded"):
                same("quads", got, before)

    def cancelled_load_leaves_nothing(self):
        before = self.both_tables("loaded")[0]
        document = self.triples(1_000_000, 1_400_000)
        for node in range(3):
            for timeout in (30, 300):
                self.execute(f"set statement_timeout = {timeout}", node=node)
                self.refused("57014", "select quad.load_text(%s, 'nt', store => 'loaded')", (document,), node)
                self.execute("reset statement_timeout", node=node)
                for got in self.both_tables("loaded"):
                    same("quads", got, before)

    def loads_on_all_nodes_at_once(self):
        self.create("busy")
        failures = []

        def load(node):
            try:
                connection = self.cluster.servers[node].connect()
                with connection.cursor() as cursor:
                    # Half of each document is in that of the next node as well.
                    cursor.execute(
                        "select quad.load_text(%s, 'nt', store => 'busy')",
                        (self.triples(40_000 * node, 40_000 * node + 80_000),),
                    )
                connection.close()
            except psycopg2.Error as error:
                failures.append(f"node {node}: {error}")

        threads = [threading.Thread(target=load, args=(node,), daemon=True) for node in range(3)]
        for thread in threads:
            thread.start()
        join_all(threads)
        same("failures", failures, [])
        one, other = self.both_tables("busy")
        same("both tables", one, other)
        same("quads", len(one), 160_000)
        self.execute("select quad.drop_store('busy')")
        self.execute("select quad.drop_store('loaded')")

    def maintenance(self):
        for node in range(3):
            self.execute("vacuum quad_stores.films", node=node)
            self.execute("analyze quad_stores.films", node=node)
            self.execute("vacuum (full) quad_stores.films", node=node)
            self.holds("films", self.quads)
            same("problems", self.rows("select quad.verify('quad_stores.films')", node=node), [])
            same(
                "quads by orders",
                self.rows("select order_name, quads from quad.store_info('quad_stores.films')", node=node),
                [(order, len(self.quads)) for order in ("spog", "psog", "ospg", "posg")],
            )
            s = sorted(self.quads)[0][0]
            same(
                "range_count",
                self.value("select quad.range_count('quad_stores.films', %s, null, null, null)", (s,), node),
                len([quad for quad in self.quads if quad[0] == s]),
            )

    def rebuilds(self):
        """quad.rebuild gives all shards other limits of pages; what it cannot do changes nothing."""
        info = "select order_name, leaf_quads, quads from quad.store_info('quad_stores.films')"
        quads = len(self.quads)
        for limit in (50, 0):
            self.execute(f"select quad.rebuild('quad_stores.films', leaf_quads => '{limit}')")
            for node in range(3):
                same(
                    "limits",
                    self.rows(info, node=node),
                    [(order, limit, quads) for order in ("spog", "psog", "ospg", "posg")],
                )
                same("problems", self.rows("select quad.verify('quad_stores.films')", node=node), [])
            self.holds("films", self.quads)
        self.execute("select quad.rebuild('quad_stores.films')")
        for arguments, state, node in (
            ("orders => 'spog'", "0A000", 0),
            ("leaf_quads => '1'", "22023", 0),
            ("inner_fanout => 'many'", "22023", 0),
            ("leaf_quads => '50'", "0A000", 1),
        ):
            self.refused(state, f"select quad.rebuild('quad_stores.films', {arguments})", node=node)
        self.execute("begin")
        self.refused("25001", "select quad.rebuild('quad_stores.films')")
        self.execute("rollback")
        self.refused(
            "55006",
            "do $$begin perform count(*) from quad_stores.films; perform quad.rebuild('quad_stores.films'); end$$",
        )
        self.execute("set role bob")
        self.refused("42501", "select quad.rebuild('quad_stores.films')")
        self.execute("reset role")
        same("limits", self.rows(info), [(order, 0, quads) for order in ("spog", "psog", "ospg", "posg")])
        self.holds("films", self.quads)

    def rebuilds_that_wait_keep_nobody_waiting(self):
        """Two rebuilds wait for readers of two shards and for each other; each of these readers comes to the shard of
        the other one."""
        shards = {}
        for subject in {s for s, _, _, _ in self.quads}:
            sql = (
                "select shardid, nodeport from citus_shards "
                "where shardid = get_shard_id_for_distribution_column('quad_shards.films_s', (%s)::bigint)"
            )
            shard, port = self.rows(sql, (subject,))[0]
            shards[port] = (shard, subject)
        (_, first), (_, second) = sorted(shards[worker.port] for worker in self.cluster.workers)
        read = "select count(*) from quad_stores.films where s = %s"
        readers = [self.cluster.coordinator.connect() for _ in range(2)]
        try:
            for reader, subject in zip(readers, (first, second), strict=True):
                with reader.cursor() as cursor:
                    # Their shards stay locked on the other nodes until the transaction ends.
                    cursor.execute("begin isolation level repeatable read; set local statement_timeout = '20s'")
                    cursor.execute(read, (subject,))
            rebuild = ("select quad.rebuild('quad_stores.films')",)
            query = self.cluster.coordinator.query
            rebuilding = [threading.Thread(target=query, args=rebuild, daemon=True) for _ in range(2)]
            for thread in rebuilding:
                thread.start()
            rebuilding[0].join(1)
            same("wait", [thread.is_alive() for thread in rebuilding], [True, True])
            for reader, subject in zip(readers, (second, first), strict=True):
                with reader.cursor() as cursor:
                    cursor.execute(read, (subject,))
            same("wait", [thread.is_alive() for thread in rebuilding], [True, True])
            for reader in readers:
                with reader.cursor() as cursor:
                    cursor.execute("commit")
            join_all(rebuilding)
        finally:
            for reader in readers:
                reader.close()
        self.holds("films", self.quads)

    def rows_of_many_quads(self):
        """Shards take quads in rows of many, and show them one by one."""
        table = "quad_shards.many_s"
        self.create("many")
        self.execute("select quad.load_text(%s, 'nt', store => 'many')", (self.triples(0, 5000),))
        count = self.value(f"select count(*) from {table}")
        same("some", count > 1000, True)
        for query in (f"select * from {table}", f"select t.* from {table} as t order by s, p, o, g"):
            rows = self.rows(query)
            same("rows", len(rows), count)
            same("column of many quads", {row[4] for row in rows}, {None})
        same("alone", self.rows(f"select distinct quads from {table}"), [(None,)])
        one = self.rows(f"select s, p, o, g from {table} order by s, p, o, g limit 1")[0]
        same("record", self.value(f"select t from {table} as t order by s, p, o, g limit 1"), "(%s,%s,%s,%s,)" % one)
        same("none", self.value(f"select count(*) from {table} where quads is not null"), 0)
        shard, port = self.rows(
            "select shard_name, nodeport from citus_shards where shardid = get_shard_id_for_distribution_column(%s, %s::bigint)",
            (table, one[0]),
        )[0]
        server = next(server for server in self.cluster.servers if server.port == port)
        connection = server.connect()
        with connection.cursor() as cursor:
            # Citus' own name lets a session write to a shard.
            cursor.execute("set application_name = 'citus_internal gpid=10000000001'")
            for damaged in (b"", b"\x01", b"\x02\x00", bytes(100), b"\x01" + b"\xff" * 60):
                try:
                    cursor.execute(f"insert into {shard} values (%s, 0, 0, 0, %s)", (one[0], damaged))
                except psycopg2.Error as error:
                    same("damaged", error.pgcode, "08P01")
                else:
                    raise Mismatch(f"{damaged} has been taken for quads")
        connection.close()
        same("still", self.value(f"select count(*) from {table}"), count)
        columns = "s bigint not null, p bigint not null, o bigint not null, g bigint not null, quads bytea"
        self.refused("0A000", f"create table public.like_a_shard ({columns}) using quad")
        self.execute("select quad.drop_store('many')")

    def writes_to_one_table_are_refused(self):
        """Whoever has rights on one of the two tables cannot make them differ, by whatever statement; default
        privileges give none."""
        self.execute("alter default privileges in schema quad_shards grant all on tables to bob")
        self.create("guarded")
        self.execute("alter default privileges in schema quad_shards revoke all on tables from bob")
        same(
            "rights",
            self.everywhere("select has_table_privilege('bob', 'quad_shards.guarded_s', 'select, insert, delete')"),
            [[(False,)]] * 3,
        )
        rights = "select relname from pg_class where relnamespace = 'quad_shards'::regnamespace and relname like 'guarded%%' and has_table_privilege('bob', oid, 'select, insert')"
        same("rights on shards", self.everywhere(rights), [[]] * 3)
        self.execute("insert into quad_stores.guarded values (%s, %s, %s, 0)", [NUMBERS + 1] * 3)
        self.execute("grant all on all tables in schema quad_shards to bob")
        one = ", ".join([str(NUMBERS + 2)] * 4)
        writes = [f"insert into quad_shards.guarded_s values ({one})", f"insert into quad_shards.guarded_o values ({one})",
                  "delete from quad_shards.guarded_s", "update quad_shards.guarded_o set g = 0 where o = 5",
                  f"with new as (insert into quad_shards.guarded_s values ({one}) returning s) select count(*) from new",
                  "truncate quad_shards.guarded_s", "copy quad_shards.guarded_s from '/dev/null'",
                  "delete from quad_shards.guarded_o using quad_stores.guarded f where f.s = guarded_o.s",
                  f"do $$begin insert into quad_shards.guarded_s values ({one}); end$$"]
        for node in range(3):
            for role in ("postgres", "bob"):
                self.execute(f"set role {role}", node=node)
                for write in writes:
                    if role == "bob" and "/dev/null" in write:
                        continue
                    message = self.refused("0A000", write, node=node)
                    if "quad_stores.guarded" not in message:
                        raise Mismatch(f"the message does not say what to write to: {message}")
                self.execute("reset role", node=node)
            # After an error within a savepoint, too.
            self.execute("begin", node=node)
            self.execute("savepoint a", node=node)
            self.refused("23502", "insert into quad_stores.guarded values (1, null, 1, 1)", node=node)
            self.execute("rollback to a", node=node)
            self.refused("0A000", writes[0], node=node)
            self.execute("rollback", node=node)
        self.holds("guarded", [(NUMBERS + 1,) * 3 + (0,)])
        message = self.refused("0A000", "select quad.verify('quad_shards.guarded_s')")
        if "quad_stores.guarded" not in message:
            raise Mismatch(message)
        self.execute("revoke all on all tables in schema quad_shards from bob")
        self.execute("select quad.drop_store('guarded')")

    # -- distributing

    def distributes_a_filled_store(self):
        quads = random_quads(20_000, seed=50)
        self.execute("select quad.create_store('filled', leaf_quads => '100')")
        self.copy("quad_stores.filled", quads)
        self.execute("grant select on quad_stores.filled to bob")
        reading, failures = threading.Event(), []

        def read():
            try:
                with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
                    while not reading.is_set():
                        cursor.execute("select count(*) from quad_stores.filled")
                        if cursor.fetchone()[0] != len(quads):
                            failures.append("a reader saw another number of quads")
            except psycopg2.Error as error:
                failures.append(str(error))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            self.execute(f"select quad.distribute_store('filled', {SHARDS})")
        finally:
            reading.set()
            join_all([reader])
        same("failures", failures, [])
        self.holds("filled", quads)
        same(
            "bob's right",
            self.everywhere("select has_table_privilege('bob', 'quad_stores.filled', 'select')"),
            [[(True,)]] * 3,
        )
        self.filled = set(quads)

    def cancelled_distribution_changes_nothing(self):
        quads = random_quads(50_000, seed=51)
        self.execute("select quad.create_store('plain')")
        self.copy("quad_stores.plain", quads)
        tables = self.shards_left()
        for timeout in (5, 50, 150):
            self.execute(f"set statement_timeout = {timeout}")
            try:
                self.execute(f"select quad.distribute_store('plain', {SHARDS})")
                self.execute("reset statement_timeout")
                self.execute("select quad.undistribute_store('plain')")
            except psycopg2.errors.QueryCanceled:
                pass
            self.execute("reset statement_timeout")
            same("tables", self.shards_left(), tables)
            same("quads", sorted(self.rows("select s, p, o, g from quad_stores.plain")), sorted(quads))
        self.execute("begin")
        self.execute("select quad.distribute_store('plain')")
        self.execute("insert into quad_stores.plain values (1, 1, 1, 1)")
        self.execute("rollback")
        same("quads", sorted(self.rows("select s, p, o, g from quad_stores.plain")), sorted(quads))
        self.execute("select quad.drop_store('plain')")

    def undistributes(self):
        self.execute("begin")
        self.execute("select quad.undistribute_store('filled')")
        self.execute("rollback")
        self.holds("filled", self.filled)
        self.execute("select quad.undistribute_store('filled')")
        same(
            "relations",
            self.everywhere("select to_regclass('quad_stores.filled') is null"),
            [[(False,)], [(True,)], [(True,)]],
        )
        same("quads", sorted(self.rows("select s, p, o, g from quad_stores.filled")), sorted(self.filled))
        same("tables", [name for name in self.shards_left() if name.startswith("filled")], [])
        same("problems", self.rows("select quad.verify('quad_stores.filled')"), [])
        same(
            "the mark",
            self.value(
                "select reloptions::text like '%%shards%%' from pg_class where oid = 'quad_stores.filled'::regclass"
            ),
            False,
        )
        self.execute("select quad.drop_store('filled')")

    def drops_everywhere(self):
        for drop in ("select quad.drop_store('brief')", "drop table quad_stores.brief"):
            self.create("brief")
            self.execute("insert into quad_stores.brief values (1, 2, 3, 4)")
            self.execute(drop)
            same("relations", self.everywhere("select to_regclass('quad_stores.brief')"), [[(None,)]] * 3)
            same("tables", [name for name in self.shards_left() if name.startswith("brief")], [])

    # -- nodes

    def shards_arrive_as_sorted_runs(self):
        """A store of one shard goes from node to node while it is read: quads that were deleted stay behind."""
        quads = {(NUMBERS + n // 10, NUMBERS + n % 10, NUMBERS + n * 7919 % 30_011, 0) for n in range(150_000)}
        self.execute("select quad.create_store('moving', distributed => true, shards => 1)")
        self.copy("quad_stores.moving", quads)
        self.execute("delete from quad_stores.moving where p = %s", (NUMBERS + 3,))
        quads = {quad for quad in quads if quad[1] != NUMBERS + 3}
        self.execute("select quad.create_store('nothing', distributed => true, shards => 1)")
        stop, failures = threading.Event(), []

        def read():
            with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
                while not stop.is_set():
                    try:
                        cursor.execute("select count(*), count(distinct o) from quad_stores.moving where g = 0")
                        if cursor.fetchone() != (len(quads), len({quad[2] for quad in quads})):
                            failures.append("a reader saw other quads")
                    except psycopg2.Error as error:
                        # The shard has been moved while the query ran, which the message says.
                        if error.pgcode != "55000" or "has been moved" not in str(error):
                            failures.append(str(error))
                            if connection.closed:
                                return

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            for _ in range(3):
                for store, some in (("moving", quads), ("nothing", set())):
                    ((shard, port),) = self.rows(
                        "select shardid, nodeport from citus_shards where table_name::text = %s",
                        (f"quad_shards.{store}_s",),
                    )
                    ports = sorted(server.port for server in self.cluster.servers)
                    target = ports[(ports.index(port) + 1) % len(ports)]
                    before = self.value("select sum(bytes_sent) from quad.cluster_stats where kind = 'pull' and address like '%%:' || %s", (port,))
                    self.execute(
                        "select citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'block_writes')",
                        (shard, port, target),
                    )
                    after = self.value("select sum(bytes_sent) from quad.cluster_stats where kind = 'pull' and address like '%%:' || %s", (port,))
                    self.execute("call citus_cleanup_orphaned_resources()")
                    self.holds(store, some)
                    same("problems", self.rows(f"select quad.verify('quad_stores.{store}')"), [])
                    # Both tables in both orders, at least four bytes for each quad.
                    if after - before < 4 * 4 * len(some):
                        raise Mismatch(f"{after - before} bytes went from node to node for {len(some)} quads")
        finally:
            stop.set()
            join_all([reader])
        same("failures", failures[:3], [])
        # The function is of no use for anything else.
        self.refused("42809", "select quad.copy_shard_to_node('pg_class', 2)")
        self.refused("42809", "select quad.copy_shard_to_node('quad_stores.moving', 2)")
        self.refused("42P01", "select quad.copy_shard_to_node(1::oid, 2)")
        self.execute("select quad.drop_store('moving')")
        self.execute("select quad.drop_store('nothing')")

    def while_clients_work(self, body):
        """Runs `body` while a client on each node reads and inserts. Their answers are right, and what they have
        inserted is there."""
        first, most = NUMBERS + 100_000, 100_000
        inserted = f"between {first} and {first + 3 * most}"
        joined = (
            "select count(*) from quad_stores.films a join quad_stores.films b on b.s = a.o "
            f"where not a.s {inserted} and not b.s {inserted}"
        )
        expected, told, untold, wrong, stop = self.value(joined), set(), set(), [], threading.Event()

        def work(number, server):
            with closing(server.connect()) as connection, connection.cursor() as cursor:
                for n in range(most):
                    if stop.is_set():
                        return
                    quad = (first + most * number + n, NUMBERS, NUMBERS + n, NUMBERS + 602)
                    cursor.execute(f"set quad.exchange_min_quads = {(0, 2**31 - 1)[n % 2]}")
                    try:
                        cursor.execute(joined)
                        wrong.extend(row for row in cursor.fetchall() if row != (expected,))
                        untold.add(quad)
                        cursor.execute("insert into quad_stores.films values (%s, %s, %s, %s)", quad)
                        told.add(quad)
                    except psycopg2.Error as error:
                        # Citus' word to a write that has waited for a shard to move, and ours to a read.
                        if "could not find valid entry for shard" not in str(error) and error.pgcode != "55000":
                            wrong.append(str(error))

        numbered = enumerate(self.cluster.servers[:3])
        clients = [threading.Thread(target=work, args=client, daemon=True) for client in numbered]
        for client in clients:
            client.start()
        try:
            wait_until("clients are at work", lambda: len(told) > 10)
            body()
        finally:
            stop.set()
            join_all(clients)
        same("of clients at work", wrong[:3], [])
        found = set(self.rows(f"select s, p, o, g from quad_stores.films where s {inserted}"))
        same("inserted and not there", told - found, set())
        same("there and not inserted", found - untold, set())
        self.execute(f"delete from quad_stores.films where s {inserted}")

    def node_added_later(self):
        self.execute("grant select on quad_stores.films to bob")
        self.execute("create policy later on quad_stores.films using (g = 0)")
        self.create("passing")
        server = Server("cluster-worker3", SETTINGS)
        try:
            server.init().start()
            server.query("create extension citus")
            self.execute("select citus_add_node('127.0.0.1', %s)", (server.port,))
            self.connections.append(server.connect())
            self.cluster.workers.append(server)
            self.same_everywhere(self.RIGHTS)
            self.same_everywhere(self.POLICIES)
            rebalance = "select rebalance_table_shards(shard_transfer_mode := 'block_writes')"
            self.while_clients_work(lambda: self.execute(rebalance))
            self.execute("call citus_cleanup_orphaned_resources()")
            moved = self.value(
                "select count(*) from citus_shards where nodeport = %s and table_name::text = 'quad_shards.films_s'",
                (server.port,),
            )
            if moved == 0:
                raise Mismatch("the new node has no shards")
            self.holds("films", self.quads)
            self.execute("insert into quad_stores.films values (4, 4, 4, 4)", node=3)
            self.quads.add((4, 4, 4, 4))
            self.holds("films", self.quads)
            self.execute("drop policy later on quad_stores.films", node=3)
            same("policies", self.same_everywhere(self.POLICIES), [])
            asked = "select count(*) from quad_stores.films"
            sessions = "select pid from pg_stat_activity where application_name = 'pgquad'"
            self.execute(asked)
            same("a session to the new node", server.query(sessions) != [], True)
            # And away again.
            drain = "select citus_drain_node('127.0.0.1', %s, 'block_writes')"
            self.while_clients_work(lambda: self.execute(drain, (server.port,)))
            self.execute("call citus_cleanup_orphaned_resources()")
            self.execute("select citus_remove_node('127.0.0.1', %s)", (server.port,))
            # Whoever asks next closes what it has to a node that has gone.
            self.connections.pop().close()
            for node in range(3):
                self.execute(asked, node=node)
            wait_until("no session to the node that has gone", lambda: not server.query(sessions))
            self.comes_back(server)
        finally:
            while len(self.connections) > 3:
                self.connections.pop().close()
            if server in self.cluster.workers:
                self.cluster.workers.remove(server)
            server.remove()
        self.holds("films", self.quads)
        self.execute("drop policy if exists later on quad_stores.films")

    def comes_back(self, server):
        """What happens to stores while a node is away reaches it when it is added again, however Citus does that."""
        remove = "select citus_remove_node('127.0.0.1', %s)"
        self.execute("revoke select on quad_stores.films from bob")
        self.execute("select quad.drop_store('passing')")
        for mode in "transactional", "nontransactional":
            self.create(mode)
            self.execute(f"grant select on quad_stores.{mode} to bob")
            self.execute(f"set citus.metadata_sync_mode to '{mode}'")
            self.execute("select citus_add_node('127.0.0.1', %s)", (server.port,))
            self.execute("reset citus.metadata_sync_mode")
            self.execute("select replicate_reference_tables('block_writes')")
            self.connections.append(server.connect())
            self.same_everywhere(self.RIGHTS)
            self.same_everywhere(self.RIGHTS.replace("films", mode))
            self.holds("films", self.quads)
            self.execute(f"insert into quad_stores.{mode} values (1, 2, 3, 4)", node=3)
            self.holds(mode, [(1, 2, 3, 4)])
            if mode == "transactional":
                # What the cluster has dropped is left, and can be dropped.
                stores = "select store, distributed, shards, quads from quad.stores where store = 'passing'"
                same("a store that is left", self.rows(stores, node=3), [("passing", True, None, None)])
                self.refused("55000", "select * from quad_stores.passing", node=3)
                self.execute("select quad.drop_store('passing')", node=3)
                same("a store that was left", self.rows(stores, node=3), [])
            self.connections.pop().close()
            self.execute(remove, (server.port,))
        for mode in "transactional", "nontransactional":
            self.execute(f"select quad.drop_store('{mode}')")

    def node_with_terms_of_its_own(self):
        """Ids in the stores that it has would mean other terms."""
        server = Server("cluster-worker3", SETTINGS)
        try:
            server.init().start()
            server.query("create extension citus")
            server.query("create extension pgquad")
            server.query("select quad.create_store('own')")
            server.query("select quad.load_text('<http://e/a> <http://e/b> <http://e/c> .', 'turtle', store => 'own')")
            add = f"select citus_add_node('127.0.0.1', {server.port})"
            message = self.refused("55000", add)
            if f"{server.port} has terms of its own" not in message:
                raise Mismatch(f"the message does not say which node: {message}")
            server.query("drop extension pgquad cascade")
            self.execute(add)
            self.execute("select citus_remove_node('127.0.0.1', %s)", (server.port,))
        finally:
            server.remove()

    def database_without_pgquad(self):
        coordinator = self.cluster.coordinator
        coordinator.query("create database other")
        try:
            coordinator.query("create extension citus", database="other")
            coordinator.query("drop extension if exists pgquad cascade", database="other")
            try:
                coordinator.query("drop extension pgquad", database="other")
            except psycopg2.Error as error:
                same("SQLSTATE of DROP EXTENSION", error.pgcode, "42704")
        finally:
            wait_until("the database is gone", lambda: self.attempt("drop database if exists other with (force)") == []
                       and not self.rows("select from pg_database where datname = 'other'"))

    def drop_extension_leaves_no_shard(self):
        self.create("last")
        self.execute("insert into quad_stores.last values (1, 2, 3, 4)")
        self.execute("drop extension pgquad cascade")
        left = "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where relname ~ '_[so]_[0-9]+$' or nspname in ('quad_stores', 'quad_shards')"
        same("relations", self.everywhere(left), [[]] * 3)
        same("metadata", self.rows("select logicalrelid from pg_dist_partition"), [])
        # Sessions that know the cluster of before take up that of the new extension.
        self.execute("create extension pgquad")
        self.create("anew")
        self.execute("insert into quad_stores.anew select n, 2, 3, 4 from generate_series(1, 99) n")
        same("quads", self.everywhere("select count(*) from quad_stores.anew"), [[(99,)]] * 3)


if __name__ == "__main__":
    with Cluster(shards_on_coordinator=True) as cluster:
        checks = Checks(cluster)
        checks.run(sys.argv[1:])
    checks.report.finish()
