"""Transactions that make, fill, change, read and drop distributed stores: each statement sees what the ones before it
have done, on every node.
Usage: transactions.py [--all] [SEED] (by `run`). Directed cases, then random sequences of statements, compared with
Python sets of quads.
"""

import io
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report

# quad.int_id(0): ids of integers hold their terms.
NUMBERS = 3476778912330022912
# The id of a number that no other quad has.
OTHER = NUMBERS + 900
SHARDS = 5
TEXT = "".join(
    f"<http://x/a{n}> <http://x/b> <http://x/a{n + 1}> .\n<http://x/a{n}> <http://x/v> {n} .\n" for n in range(20)
)
SPARQL = "select count(*) from quad.sparql('{}', '{}')"
ALL, CHAIN = "SELECT * { ?s ?p ?o }", "SELECT * { ?a <http://x/b> ?b . ?b <http://x/b> ?c . ?c <http://x/v> ?v }"
PATH = "SELECT * { <http://x/a3> <http://x/b>+ ?b }"
READS = [(ALL, 40), (CHAIN, 18), (PATH, 17)]


class Mismatch(AssertionError):
    """Another answer than the model's."""


class Session:
    """A connection to one node that keeps what it has run, to be shown where something is wrong."""

    def __init__(self, server):
        self.connection = server.connect()
        self.cursor = self.connection.cursor()
        self.log = []

    def run(self, sql, parameters=None):
        self.log.append(sql)
        self.cursor.execute(sql, parameters)
        return self.cursor.fetchall() if self.cursor.description else []

    def value(self, sql):
        return self.run(sql)[0][0]

    def same(self, sql, expected):
        got = self.value(sql)
        if got != expected:
            raise Mismatch(f"{sql}: {got}, expected {expected}")

    def reads(self, store="x"):
        """Everything that can be read of a store with the quads of TEXT."""
        for query, rows in READS:
            self.same(SPARQL.format(query, store), rows)
        self.same(f"select count(*) from quad_stores.{store}", 40)
        groups = self.run(f"select p, count(*) from quad_stores.{store} group by p")
        if sorted(count for _, count in groups) != [20, 20]:
            raise Mismatch(f"groups {groups}")
        self.same(f"select quad.range_count('quad_stores.{store}', null, null, null, null)", 40)
        self.same(f"select count(*) from quad.export('{store}')", 40)
        plan = self.run(
            f"explain (analyze, costs off) select * from quad_stores.{store} a join quad_stores.{store} b on b.s = a.o"
        )
        if not any("rows=38" in line for (line,) in plan):
            raise Mismatch(f"plan {plan}")
        leaks = [notice for notice in self.connection.notices if "leak" in notice]
        if leaks:
            raise Mismatch(f"{leaks[0]}")

    def empty(self, store="x"):
        for query, _ in READS:
            self.same(SPARQL.format(query, store), 0)
        self.same(f"select count(*) from quad_stores.{store} a join quad_stores.{store} b on b.s = a.o", 0)

    def load(self, store="x"):
        self.log.append(f"load_text into {store}")
        self.cursor.execute("select quad.load_text(%s, 'turtle', store => %s)", (TEXT, store))

    def close(self):
        self.connection.close()


class Directed:
    """Cases that end with store x holding the quads of TEXT, or without it."""

    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report

    CREATE = f"select quad.create_store('x', distributed => true, shards => {SHARDS})"
    DISTRIBUTE = f"select quad.distribute_store('x', {SHARDS})"

    def made_and_filled(self, session):
        session.run("begin")
        session.run(self.CREATE)
        session.empty()
        session.load()
        session.reads()
        session.same("select quads from quad.stores where store = 'x'", 40)
        session.run("commit")

    def made_and_filled_with_new_terms(self, session):
        """A large document, and a language that is new: sessions of its own on other nodes add them, and must not wait
        for this transaction."""
        session.run("set statement_timeout = '60s'")
        language = f"x-t{session.connection.info.backend_pid}"
        session.run("begin")
        session.run(self.CREATE)
        session.load()
        text = "".join(
            f'<http://x/many> <http://x/text> "a text that is new with number {n} of {language}"@{language} .\n'
            for n in range(20_000)
        )
        if session.run("select quad.load_text(%s, 'nt', store => 'x')", (text,)) != [(20_000,)]:
            raise Mismatch("another number of new quads")
        session.same(SPARQL.format(ALL, "x"), 20_040)
        session.run("delete from quad_stores.x where s = quad.find('<http://x/many>')")
        session.reads()
        session.run("commit")

    def made_and_read_by_a_plan_of_its_own(self, session):
        session.run("begin")
        session.run(self.CREATE)
        session.run("savepoint a")
        session.load()
        session.run("rollback to a")
        session.empty()
        session.load()
        session.run("prepare p as " + SPARQL.format(ALL, "x"))
        for _ in range(7):
            session.same("execute p", 40)
        session.run("deallocate p")
        session.reads()
        session.run("commit")

    def distributed_and_read(self, session):
        session.run("select quad.create_store('x')")
        session.load()
        session.run("begin")
        session.reads()
        session.run(self.DISTRIBUTE)
        session.reads()
        session.run("commit")

    def undistributed_and_read(self, session):
        self.made_and_filled(session)
        session.run("begin")
        session.reads()
        session.run("select quad.undistribute_store('x')")
        session.reads()
        session.run(self.DISTRIBUTE)
        session.reads()
        session.run("select quad.undistribute_store('x')")
        session.reads()
        session.run(self.DISTRIBUTE)
        session.run("commit")

    def truncated_and_read(self, session):
        self.made_and_filled(session)
        session.run("begin")
        session.reads()
        session.run("truncate quad_stores.x")
        session.empty()
        session.load()
        session.reads()
        session.run("truncate quad_stores.x")
        session.empty()
        session.run("rollback")
        session.reads()

    def dropped_and_made(self, session):
        self.made_and_filled(session)
        session.run("begin")
        session.reads()
        session.run("select quad.drop_store('x')")
        session.run(self.CREATE)
        session.empty()
        session.load()
        session.reads()
        session.run("commit")

    def made_within_a_savepoint(self, session):
        session.run("begin")
        session.run("savepoint a")
        session.run(self.CREATE)
        session.load()
        session.reads()
        session.run("rollback to a")
        session.same("select count(*) from quad.stores where store = 'x'", 0)
        session.run(self.CREATE)
        session.load()
        session.reads()
        session.run("release a")
        session.reads()
        session.run("commit")

    def made_in_repeatable_read(self, session):
        session.run("begin isolation level repeatable read")
        session.run("select 1")
        session.run(self.CREATE)
        session.empty()
        session.load()
        session.reads()
        session.run("commit")

    def renamed_and_granted(self, session):
        self.made_and_filled(session)
        session.run("begin")
        session.run("alter table quad_stores.x rename to y")
        session.reads("y")
        session.run("grant select on quad_stores.y to public")
        session.reads("y")
        session.run(f"insert into quad_stores.y values ({OTHER}, {OTHER}, {OTHER}, 0)")
        session.same("select count(*) from quad_stores.y", 41)
        session.run(f"delete from quad_stores.y where s = {OTHER}")
        session.reads("y")
        session.run("alter table quad_stores.y rename to x")
        session.run("commit")

    def explained(self, session):
        """EXPLAIN ANALYZE before and after reads and writes; what Citus executes here stays so."""
        self.made_and_filled(session)
        session.run("begin")
        for _ in range(2):
            session.reads()
            session.run("insert into quad_stores.x select quad.int_id(n), quad.int_id(1), quad.int_id(n), 0 from generate_series(1, 50) n")
            session.same("select count(*) from quad_stores.x", 90)
            for query in (
                "select * from quad_stores.x",
                "select p, count(*) from quad_stores.x group by p",
                SPARQL.format(ALL, "x"),
                f"insert into quad_stores.x values ({OTHER}, {OTHER}, {OTHER}, 0)",
                f"delete from quad_stores.x where s = {OTHER}",
                "delete from quad_stores.x where p = quad.int_id(1)",
            ):
                session.run("explain (analyze) " + query)
            session.same("select quad.explain('SELECT * { ?s ?p ?o }', 'x', \"analyze\" => true) is not null", True)
            session.reads()
        session.run("prepare q as select count(*) from quad_stores.x")
        session.run("explain analyze execute q")
        session.run("deallocate q")
        session.run("savepoint a")
        try:
            session.run("explain analyze select * from quad_stores.x where 1 / (s - s) = 1")
        except psycopg2.errors.DivisionByZero:
            session.run("rollback to a")
        session.reads()
        session.run("commit")

    def plans_made_before(self, session):
        """Plans of statements that were prepared before the transaction wrote."""
        self.made_and_filled(session)
        groups = "select count(*), min(p), max(n) from (select p, count(*) as n from quad_stores.x group by p) g"
        values = "select count(*), max(n) from (select g, count(*) as n from quad_stores.x group by g) g"
        statements = {
            "a": (groups, (3, 25)),
            "b": (values, (2, 40)),
            "c": ("select count(distinct p), max(p) from quad_stores.x", (3,)),
            "d": (SPARQL.format(CHAIN, "x"), (18,)),
            "e": ("select count(*) from quad_stores.x a join quad_stores.x b on b.s = a.o", (63,)),
        }
        session.run("set plan_cache_mode = force_generic_plan")
        for name, (sql, _) in statements.items():
            session.run(f"prepare {name} as {sql}")
            session.run(f"execute {name}")
        session.run("begin")
        session.run(
            f"insert into quad_stores.x select {OTHER}, {OTHER}, {OTHER} + n, {OTHER} from generate_series(-12, 12) n"
        )
        for name, (_, expected) in statements.items():
            (row,) = session.run(f"execute {name}")
            if (row[0], row[-1])[: len(expected)] != expected:
                raise Mismatch(f"{name}: {row}, expected {expected}")
        session.run("rollback")
        session.run("deallocate all")

    def tables_of_citus_beside(self, session):
        self.made_and_filled(session)
        session.run("drop table if exists numbers, known")
        session.run("create table numbers (n bigint)")
        session.run("create table known (n bigint)")
        session.run(
            "select create_distributed_table('numbers', 'n', shard_count => 4), create_reference_table('known')"
        )
        beside = "select count(*) from {} where n in (select s from quad_stores.x)"
        for table in ("numbers", "known"):
            session.run("begin")
            session.reads()
            session.run(f"insert into {table} select distinct s from quad_stores.x")
            session.same(f"select count(*) from {table}", 20)
            session.same(beside.format(table), 20)
            session.reads()
            session.run("delete from quad_stores.x where p = quad.find('<http://x/v>')")
            session.same(beside.format(table), 20)
            session.run(f"delete from {table}")
            session.load()
            session.reads()
            session.same(f"select count(*) from {table}", 0)
            session.run("rollback")
            session.run("begin")
            session.run(f"insert into {table} select {OTHER} + n from generate_series(0, 4) n")
            session.same(f"select count(*) from {table}", 5)
            session.reads()
            session.run("explain (analyze) select * from quad_stores.x")
            session.load()
            session.run(f"insert into quad_stores.x values ({OTHER}, {OTHER}, {OTHER}, 0)")
            session.same(beside.format(table), 1)
            session.run(f"delete from quad_stores.x where s = {OTHER}")
            session.reads()
            session.run("commit")
        session.run("drop table numbers, known")

    def cursors_held_open(self, session):
        self.made_and_filled(session)
        for query, rows in ((ALL, 40), (CHAIN, 18)):
            of_store = SPARQL.format(query, "x").replace("count(*)", "*")
            session.run("begin")
            session.run(f"declare before cursor for {of_store}")
            seen = len(session.run("fetch 3 from before"))
            session.run("delete from quad_stores.x where o = quad.encode('5')")
            session.run("explain analyze select count(*) from quad_stores.x")
            session.run(f"declare after cursor for {of_store}")
            session.run("fetch 3 from after")
            session.run(f"insert into quad_stores.x values ({OTHER}, {OTHER}, {OTHER}, 0)")
            seen += len(session.run("fetch all from before"))
            if seen != rows:
                raise Mismatch(f"the cursor has given {seen} rows of {rows}")
            session.run("rollback")
            session.run("begin")
            session.run(f"declare held cursor with hold for {of_store}")
            session.run(f"insert into quad_stores.x values ({OTHER}, {OTHER}, {OTHER}, 0)")
            session.run(f"delete from quad_stores.x where s = {OTHER}")
            session.run("commit")
            if len(session.run("fetch all from held")) != rows:
                raise Mismatch("the cursor that outlives its transaction has lost rows")
            session.run("close held")

    def errors_caught_within_statements(self, session):
        self.made_and_filled(session)
        session.run("create temp table taken (n bigint primary key)")
        session.run(
            """create function pg_temp.caught(n bigint) returns bigint language plpgsql as $f$
            begin
                insert into taken values (n % 3);
                return n;
            exception when unique_violation then
                return n;
            end $f$"""
        )
        insert = f"insert into quad_stores.x select {OTHER} + pg_temp.caught(n), {OTHER}, {OTHER}, 0 from generate_series({{}}, {{}}) n"
        count = "select count(*) from quad_stores.x"
        session.run("begin")
        session.run(insert.format(1, 10))
        session.run("savepoint a")
        session.same(count, 50)
        session.run("rollback to a")
        session.same(count, 50)
        session.run("savepoint b")
        session.run("savepoint c")
        session.run(insert.format(11, 20))
        session.run("release c")
        session.run("rollback to b")
        session.same(count, 50)
        session.run(f"delete from quad_stores.x where p = {OTHER} and pg_temp.caught(s) > 0")
        session.run("savepoint d")
        session.reads()
        session.run("rollback to d")
        session.run("commit")
        session.reads()

    def stores_read_while_errors_are_caught(self, session):
        """What other nodes have written in a subtransaction they undo with it."""
        self.made_and_filled(session)
        session.run(
            """create function pg_temp.looked(n bigint) returns bigint language plpgsql as $f$
            begin
                perform 1 / (count(*) - count(*)) from quad.sparql('SELECT * { ?s ?p ?o }', 'x');
                return n;
            exception when division_by_zero then
                return n;
            end $f$"""
        )
        insert = f"insert into quad_stores.x select {OTHER} + pg_temp.looked(n), {OTHER}, {OTHER}, 0 from generate_series(1, 3) n"
        try:
            session.run(insert)
            raise Mismatch("a statement has read what it changes, where an error is caught")
        except psycopg2.errors.FeatureNotSupported:
            session.connection.rollback()
        session.reads()
        # One that changes nothing may.
        session.same("select sum(pg_temp.looked(n)) from generate_series(1, 3) n", 6)

    def dropped_in_vain(self, session):
        """A DROP that fails and is caught is undone on all nodes, also where a later one in its transaction succeeds."""
        self.made_and_filled(session)
        session.run("select quad.create_store('y', distributed => true, shards => 3)")
        session.run(
            """create function refuse_drop_of_x() returns event_trigger language plpgsql as $f$
            begin
                if exists (select from pg_event_trigger_dropped_objects() where object_identity = 'quad_stores.x') then
                    raise exception 'x stays';
                end if;
            end $f$"""
        )
        session.run("create event trigger a_refusal on sql_drop execute function refuse_drop_of_x()")
        session.run("begin")
        session.run("do $$ begin drop table quad_stores.x; exception when raise_exception then null; end $$")
        session.run("savepoint a")
        try:
            session.run("drop table quad_stores.x")
            raise Mismatch("x is dropped")
        except psycopg2.errors.RaiseException:
            session.run("rollback to a")
        session.run("drop table quad_stores.y")
        session.reads()
        session.run("commit")
        session.run("drop event trigger a_refusal")
        session.run("drop function refuse_drop_of_x()")
        session.reads()

    def copied_out_and_in(self, session):
        self.made_and_filled(session)
        session.run("begin")
        for source in ("quad_stores.x", "(select s, p, o, g from quad_stores.x)"):
            out = io.StringIO()
            session.cursor.copy_expert(f"copy {source} to stdout", out)
            session.run("delete from quad_stores.x")
            session.empty()
            session.cursor.copy_expert("copy quad_stores.x (s, p, o, g) from stdin", io.StringIO(out.getvalue()))
            session.reads()
        session.run("commit")

    # Distributing needs READ COMMITTED.
    CASES = (
        "made_and_filled", "made_and_filled_with_new_terms", "made_and_read_by_a_plan_of_its_own",
        "distributed_and_read", "undistributed_and_read", "truncated_and_read", "dropped_and_made",
        "made_within_a_savepoint", "made_in_repeatable_read", "renamed_and_granted", "explained", "plans_made_before",
        "tables_of_citus_beside", "cursors_held_open", "copied_out_and_in", "errors_caught_within_statements",
        "stores_read_while_errors_are_caught", "dropped_in_vain",
    )

    def run(self, names):
        for name in names or self.CASES:
            for level in ("read committed",) if "distributed" in name else ("read committed", "repeatable read"):
                session = Session(self.cluster.coordinator)
                session.run(f"set default_transaction_isolation = '{level}'")
                session.log.clear()
                label = f"{name}, {level}"
                try:
                    getattr(self, name)(session)
                    # What has been committed is there for everybody.
                    for server in self.cluster.servers:
                        other = Session(server)
                        other.reads()
                        other.close()
                    session.run("select quad.drop_store('x')")
                    self.report.check(True, label)
                except (psycopg2.Error, Mismatch) as error:
                    self.report.check(False, label, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}; after {'; '.join(session.log[-8:])}"[:900])
                session.close()
                self.clean()

    def clean(self):
        session = Session(self.cluster.coordinator)
        for (store,) in session.run("select relname from pg_class where relnamespace = 'quad_stores'::regnamespace and relkind = 'r' and relname in ('x', 'y')"):
            session.run(f"select quad.drop_store('{store}')")
        session.close()


if __name__ == "__main__":
    report = Report("transactions")
    with Cluster(shards_on_coordinator=True) as cluster:
        Directed(cluster, report).run([name for name in sys.argv[1:] if not name.startswith("-")])
        cluster.check_crashes(report)
    report.finish()
