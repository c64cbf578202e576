"""Sessions of other nodes that background workers serve together: the same answers, one snapshot for each query, and
what is not for a worker goes back to the session's own process. Usage: serving.py (by `run`)."""

import itertools
import os
import sys
import threading
import time
from contextlib import closing, contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from expect import Mismatch, error_of, load_people, run, run_checks, same
from nodes import Cluster
from pgquad_test import Report, wait_until

PEOPLE = 3000
# Of so many people at once the keys do not fit into a message that a worker takes.
MANY_PEOPLE = 120_000
QUESTION = "select ?name { ?who <http://x/knows> <http://x/p0> ; <http://x/name> ?name }"
NAMES = "select quad.sparql_json(%s, 'films')::jsonb->'results'->'bindings'"
# What is asked again comes as several messages at once, which a session's own process answers: no text comes twice.
NUMBERS = itertools.count()
# Its batches are of other quads than those that its messages have read ahead.
WALK = """select a.s, b.o from quad_stores.films a join quad_stores.films b on b.s = a.s
    where a.p = quad.find('<http://x/knows>') and b.p = quad.find('<http://x/name>')"""
WORKERS = "from pg_stat_activity where backend_type = 'pgquad serving worker'"
SESSIONS = "from pg_stat_activity where query like 'CALL quad.cluster_serve%'"
READING = "and backend_xmin is not null"
SHARDS_OF_SECOND = "from pg_class where relkind = 'r' and relname like 'second%' and relname ~ '_[0-9]+$'"
IN_TIME_S = 15


class Checks:
    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        coordinator = cluster.coordinator
        coordinator.query("select quad.create_store('films', distributed => true, shards => 6)")
        load_people(self.cluster.coordinator, PEOPLE)
        coordinator.query("analyze quad_stores.films")

    def run(self):
        checks = [
            self.workers_answer_with_the_same_rows,
            self.all_messages_of_a_query_are_of_one_snapshot,
            self.a_query_that_rests_keeps_its_snapshot,
            self.what_takes_longer_goes_back,
            self.long_messages_go_back,
            self.a_wait_for_a_lock_goes_back,
            self.a_wait_for_a_lock_within_a_query,
            self.an_error_within_a_query,
            self.whoever_excludes_readers_does_not_wait_long,
            self.a_worker_that_ends,
            self.a_process_that_ends,
            self.an_asker_that_ends,
            self.nothing_is_left,
            self.no_workers_by_a_setting,
        ]
        run_checks(self.cluster, self.report, checks)

    @property
    def others(self):
        """The nodes that the coordinator asks."""
        return self.cluster.workers

    def count(self, what):
        """The processes of that kind on the other nodes."""
        return sum(worker.query(f"select count(*) {what}")[0][0] for worker in self.others)

    def names(self, connection, expected=PEOPLE):
        [(found,)] = run(connection, NAMES, (f"{QUESTION} # {next(NUMBERS)}",))
        same("names", len({row["name"]["value"] for row in found}), expected)

    def lent(self, connection):
        """Asks until both nodes answer by workers: sessions are lent to those that have come up."""
        wait_until("workers", lambda: self.names(connection) or self.count(WORKERS) >= len(self.others), IN_TIME_S)
        for _ in range(3):
            self.names(connection)

    @contextmanager
    def asking(self):
        """A session whose messages workers answer."""
        with closing(self.cluster.coordinator.connect()) as connection:
            self.lent(connection)
            yield connection

    @contextmanager
    def cursor(self):
        """A query that has read some of its rows, each node's by a worker."""
        with self.asking() as connection:
            run(connection, "set quad.exchange_mode = pull; set quad.join_batch_size = 100")
            run(connection, "set cursor_tuple_fraction = 0.001")
            run(connection, "begin isolation level repeatable read")
            run(connection, f"declare walk cursor for {WALK}")
            some = run(connection, "fetch 150 from walk")
            same("rows", len(some), 150)
            yield connection, some

    def workers_answer_with_the_same_rows(self):
        """Workers answer with the same rows, whichever node asks."""
        for server in self.cluster.servers:
            with closing(server.connect()) as connection:
                for _ in range(30):
                    self.names(connection)
        found = [server.query(f"select count(*) > 0 {WORKERS}") for server in self.cluster.servers]
        same("a worker on each node", found, [[(True,)]] * len(found))

    def all_messages_of_a_query_are_of_one_snapshot(self):
        """All messages of a query are answered under one snapshot, by the worker."""
        with self.cursor() as (connection, some):
            same("workers at work", self.count(WORKERS + READING) >= len(self.others), True)
            same("sessions at work", self.count(SESSIONS + READING), 0)
            other = self.cluster.workers[0]
            other.query("insert into quad_stores.films select s, p, o, 5 from quad_stores.films where g = 0")
            rest = run(connection, "fetch all from walk")
            same("rows", len({*some, *rest}), PEOPLE)
            same("rows", len(some) + len(rest), PEOPLE)
            run(connection, "commit")
        self.cluster.coordinator.query("delete from quad_stores.films where g = 5")

    def a_query_that_rests_keeps_its_snapshot(self):
        """A query that asks nothing for a while keeps its snapshot, and hinders nobody."""
        with self.cursor() as (connection, some), closing(self.cluster.coordinator.connect()) as asking:
            other = self.cluster.workers[0]
            other.query("delete from quad_stores.films")
            other.query("vacuum quad_stores.films")
            self.names(asking, 0)
            time.sleep(1)
            rest = run(connection, "fetch all from walk")
            same("rows", len(some) + len(rest), PEOPLE)
            run(connection, "commit")
            self.names(connection, 0)
        load_people(self.cluster.coordinator, PEOPLE)

    def what_takes_longer_goes_back(self):
        """Counts and groups go to the session's own process, or are answered within a query."""
        with self.asking() as connection:
            for _ in range(20):
                same("quads", run(connection, "select count(*) from quad_stores.films"), [(2 * PEOPLE,)])
                by_predicate = "select count(*) from quad_stores.films group by p"
                same("groups", run(connection, by_predicate), [(PEOPLE,), (PEOPLE,)])
                self.names(connection)
            run(connection, "begin isolation level repeatable read")
            self.names(connection)
            copy = "insert into quad_stores.films select s, p, o, 6 from quad_stores.films where g = 0"
            self.cluster.workers[1].query(copy)
            same("quads of the snapshot", run(connection, "select count(*) from quad_stores.films"), [(2 * PEOPLE,)])
            self.names(connection)
            run(connection, "commit")
            same("quads", run(connection, "select count(*) from quad_stores.films"), [(4 * PEOPLE,)])
        self.cluster.coordinator.query("delete from quad_stores.films where g = 6")

    def long_messages_go_back(self):
        """Messages that are too long for a worker are answered by the session's own process, or within a query."""
        with self.asking() as connection:
            run(connection, "set quad.exchange_mode = pull; set quad.join_batch_size = 1000000")
            keys = f"(select n * 7919 as s from generate_series(1, {MANY_PEOPLE}) n)"
            hinted = f"select count(*) from {keys} k join quad_stores.films f on f.s = k.s"
            of_keys = f"s % 7919 = 0 and s between 1 and {MANY_PEOPLE * 7919}"
            [(expected,)] = run(connection, f"select count(*) from quad_stores.films where {of_keys}")
            same("quads", run(connection, hinted), [(expected,)])
            self.names(connection)
            one = "(select s from quad_stores.films where p = quad.find('<http://x/name>') limit 1) n"
            within = f"{hinted}, {one}"
            run(connection, "begin isolation level repeatable read")
            self.names(connection)
            same("quads", run(connection, within), [(expected,)])
            run(connection, "commit")

    @contextmanager
    def second_store(self, within):
        """Another store, a statement that reads it, and its rows; `within`: in a query that has begun."""
        coordinator = self.cluster.coordinator
        coordinator.query("select quad.create_store('second', distributed => true, shards => 6)")
        coordinator.query("insert into quad_stores.second select n, 2, n, 0 from generate_series(1, 100) n")
        joined = "quad_stores.second a join quad_stores.second b on b.s = a.o"
        second = f"select a.s, b.o from {joined} where a.p = 2 and a.s < 50"
        with self.asking() as connection:
            rows = sorted(run(connection, second))
            if within:
                run(connection, "begin isolation level repeatable read")
                self.names(connection)
            yield connection, second, rows
            if within:
                run(connection, "rollback")
            self.lent(connection)
        coordinator.query("select quad.drop_store('second')")

    def wait_for_a_lock(self, within, has_begun):
        """A statement waits for a lock until that is free. Others are answered meanwhile."""
        node = self.others[0]
        with self.second_store(within) as (connection, second, rows), closing(node.connect()) as holder:
            [(shards,)] = node.query(f"select string_agg(oid::regclass::text, ', ') {SHARDS_OF_SECOND}")
            run(holder, "set citus.enable_manual_changes_to_shards = on")
            run(holder, "begin")
            run(holder, f"lock table {shards} in access exclusive mode")
            found = []
            waiting = threading.Thread(target=lambda: found.append(sorted(run(connection, second))))
            waiting.start()
            has_begun(node)
            with closing(self.cluster.coordinator.connect()) as other:
                for _ in range(10):
                    self.names(other)
            same("it waits", found, [])
            run(holder, "rollback")
            waiting.join(IN_TIME_S)
            same("rows", found, [rows])

    def a_wait_for_a_lock_goes_back(self):
        """A message that has to wait for a lock waits in its own process, and others are answered meanwhile."""
        waits = f"select count(*) {SESSIONS} and wait_event_type = 'Lock'"
        self.wait_for_a_lock(
            False, lambda node: wait_until("a session that waits", lambda: node.query(waits) == [(1,)], IN_TIME_S)
        )

    def a_wait_for_a_lock_within_a_query(self):
        """A message that waits for a lock within a query keeps nobody else from answers."""
        self.wait_for_a_lock(True, lambda _: time.sleep(1))

    def an_error_within_a_query(self):
        """An error within a query is the asker's, as its own process would have raised it, and nobody else's."""
        node = self.others[0]
        with self.second_store(True) as (connection, second, _):
            for shard in node.query(f"select oid::regclass {SHARDS_OF_SECOND}"):
                with closing(node.connect()) as session:
                    run(session, "set citus.enable_manual_changes_to_shards = on")
                    run(session, f"drop table {shard[0]}")
            try:
                run(connection, second)
            except psycopg2.Error as error:
                same("SQLSTATE", error.pgcode, "XX000")
                same("the error", f"node 127.0.0.1:{node.port}: could not open relation" in str(error), True)
            else:
                raise Mismatch("a shard that is gone has been read")
            with closing(self.cluster.coordinator.connect()) as other:
                self.names(other)

    def whoever_excludes_readers_does_not_wait_long(self):
        """Whoever excludes readers does not wait long for queries that begin and end one over the other."""
        coordinator = self.cluster.coordinator
        coordinator.query("select quad.create_store('busy', distributed => true, shards => 6)")
        coordinator.query("insert into quad_stores.busy select n, 2, n, 0 from generate_series(1, 100) n")
        over, failed = threading.Event(), []
        question = "select a.s from quad_stores.busy a join quad_stores.busy b on b.s = a.o where a.s < 50"

        def ask():
            with closing(coordinator.connect()) as connection:
                while not over.is_set():
                    try:
                        run(connection, question)
                    except psycopg2.Error as error:
                        failed.append(error)

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        try:
            time.sleep(1)
            with closing(coordinator.connect()) as connection:
                run(connection, "set lock_timeout = '5s'")
                for _ in range(3):
                    run(connection, "truncate quad_stores.busy")
                    run(connection, "insert into quad_stores.busy select n, 2, n, 0 from generate_series(1, 100) n")
        finally:
            over.set()
            for asker in askers:
                asker.join(IN_TIME_S)
        same("errors", failed, [])
        coordinator.query("select quad.drop_store('busy')")

    def a_worker_that_ends(self):
        """A worker that ends is an error for the queries that it answers, and for nobody afterwards."""
        with self.cursor() as (connection, _):
            for worker in self.others:
                worker.query(f"select pg_terminate_backend(pid, 10000) {WORKERS}")
            same("SQLSTATE", error_of(connection, "fetch all from walk"), "08006")
            run(connection, "rollback")
            self.lent(connection)

    def a_process_that_ends(self):
        """A session's process that ends takes its session along."""
        with self.cursor() as (connection, _):
            for worker in self.others:
                worker.query(f"select pg_terminate_backend(pid, 10000) {SESSIONS}")
            wait_until("an end of what they read", lambda: self.count(WORKERS + READING) == 0, IN_TIME_S)
            same("SQLSTATE", error_of(connection, "fetch all from walk"), "08006")
            run(connection, "rollback")
            self.lent(connection)

    def an_asker_that_ends(self):
        """An asker that ends leaves no session behind."""
        with self.cursor() as (connection, _):
            [(pid,)] = run(connection, "select pg_backend_pid()")
            self.cluster.coordinator.query(f"select pg_terminate_backend({pid}, 10000)")
            wait_until("an end of its sessions", lambda: self.count(SESSIONS) == 0, IN_TIME_S)

    def nothing_is_left(self):
        """Workers end when there are no sessions, and leave nothing."""
        wait_until("no worker", lambda: self.count(WORKERS) == 0, IN_TIME_S)
        for server in self.others:
            for directory, kind in (("pg_stat_tmp", "pgquad_serving"), ("pg_snapshots", "")):
                left = [name for name in os.listdir(os.path.join(server.data, directory)) if name.startswith(kind)]
                same(f"files in {directory}", left, [])

    def no_workers_by_a_setting(self):
        """There are no workers where a setting says so."""
        for server in self.cluster.servers:
            server.alter_system("quad.serving_min_sessions", "0")
        with closing(self.cluster.coordinator.connect()) as connection:
            for _ in range(20):
                self.names(connection)
            same("workers", self.count(WORKERS), 0)


if __name__ == "__main__":
    report = Report("serving")
    # Sessions that are encrypted are not served together.
    settings = {"quad.serving_min_sessions": 1, "max_worker_processes": 20, "citus.node_conninfo": "sslmode=disable"}
    with Cluster(shards_on_coordinator=True, **settings) as cluster:
        Checks(cluster, report).run()
    report.finish()
