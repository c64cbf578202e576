"""Nodes of one machine: they ask each other over Unix-domain sockets where they find them, else over TCP, with the same
answers. Ends of queries, which wait for the next message where nothing is encrypted. Usage: sockets.py (by `run`)."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from expect import Mismatch, error_of, load_people, run, run_checks, same, value
from nodes import Cluster
from pgquad_test import Report, as_server, socket_directory, wait_until

PEOPLE = 300
# New terms of a load, for several messages to each node.
TERMS = 400_000
QUESTION = "select ?name { ?who <http://x/knows> <http://x/p0> ; <http://x/name> ?name }"
NAMES = f"select quad.sparql_json('{QUESTION}', 'films')::jsonb->'results'->'bindings'"
HOPS = "select count(*) from quad_stores.films a join quad_stores.films b on b.s = a.o"
# How other nodes have reached this one: those of queries, and the participants of pushed joins.
REACHED = "select distinct client_addr is null from pg_stat_activity where application_name = 'pgquad'"
QUERIES = f"{REACHED} and query like 'CALL quad.cluster_serve%'"
PARTICIPANTS = f"{REACHED} and query not like 'CALL quad.cluster_serve%'"
END_SESSIONS = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = 'pgquad'"
AT_WORK = (
    "select count(*) from pg_stat_activity where query like 'CALL quad.cluster_serve%' and backend_xmin is not null"
)
COUNT = "select count(*) from quad_stores.films"
QUAD, OF_QUAD = "(-77, -78, -79, 0)", " from quad_stores.films where s = -77"
REFUSALS = ["pg_hba.conf rejects connection"]
NO_LOCAL_CONNECTIONS = "local all all reject\n"


class Checks:
    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        coordinator = cluster.coordinator
        coordinator.query("select quad.create_store('films', distributed => true, shards => 6)")
        load_people(self.cluster.coordinator, PEOPLE)

    def run(self):
        checks = [
            self.all_nodes_meet_at_sockets,
            self.tcp_by_a_setting,
            self.participants_are_reached_over_tcp,
            self.tcp_where_a_socket_is_refused,
            self.a_node_that_is_down,
            self.a_socket_that_nobody_listens_to,
            self.ends_of_queries_wait_for_the_next_one,
            self.ends_that_wait_hinder_nobody,
            self.sessions_end_while_an_end_waits,
            self.answers_to_loads_are_large,
        ]
        run_checks(self.cluster, self.report, checks)

    def ask(self, server, *settings, expecting=None):
        """Asks in a new session. While that is there, each other node that it has asked tells how it was reached."""
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            for setting in settings:
                cursor.execute(f"set {setting}")
            cursor.execute(NAMES)
            [(found,)] = cursor.fetchall()
            expected = sorted(f"name {i}" for i in range(1, PEOPLE + 1))
            same("names", sorted(row["name"]["value"] for row in found), expected)
            for other in self.cluster.servers:
                if other is not server and expecting is not None:
                    same("nodes meet at a socket", other.query(QUERIES), [(expecting,)])

    def all_nodes_meet_at_sockets(self):
        """Each node asks the others over sockets."""
        for server in self.cluster.servers:
            self.ask(server, expecting=True)

    def tcp_by_a_setting(self):
        """A setting makes it TCP."""
        self.ask(self.cluster.workers[0], "quad.node_unix_sockets = off", expecting=False)

    def participants_are_reached_over_tcp(self):
        """Participants of a pushed join are reached over TCP: they tell each other where."""
        with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("set quad.exchange_mode = push")
            cursor.execute(HOPS)
            same("hops", cursor.fetchall(), [(0,)])
            for worker in self.cluster.workers:
                same("participants are at a socket", worker.query(PARTICIPANTS), [(False,)])

    def tcp_where_a_socket_is_refused(self):
        """A node that takes no local connections is asked over TCP."""
        worker = self.cluster.workers[0]
        path = os.path.join(worker.data, "pg_hba.conf")
        with open(path, encoding="utf-8") as file:
            before = file.read()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(NO_LOCAL_CONNECTIONS + before)
            # The server reads pg_hba.conf when its settings change.
            worker.alter_system("quad.node_poll_time", "99")
            with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
                before_it = len(worker.lines_in_log(REFUSALS))
                cursor.execute(NAMES)
                # The session has gone; the next one does not try the socket again.
                worker.query(END_SESSIONS)
                cursor.execute(NAMES)
                same("nodes meet at a socket", worker.query(QUERIES), [(False,)])
                same("attempts that were refused", len(worker.lines_in_log(REFUSALS)) - before_it, 1)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(before)
            worker.alter_system("quad.node_poll_time")
        self.ask(self.cluster.coordinator, expecting=True)

    def a_node_that_is_down(self):
        """A node that is down is an error that names it, and is asked again when it is back."""
        worker = self.cluster.workers[1]
        worker.stop()
        try:
            self.ask(self.cluster.coordinator)
        except psycopg2.Error as error:
            same("SQLSTATE", error.pgcode, "08001")
            same("the node is named", f"127.0.0.1:{worker.port}" in str(error), True)
        else:
            raise Mismatch("a node that is down has answered")
        finally:
            worker.start()
        self.ask(self.cluster.coordinator, expecting=True)

    def a_socket_that_nobody_listens_to(self):
        """A socket that nobody listens to any more is TCP."""
        worker = self.cluster.workers[1]
        worker.stop()
        path = os.path.join(socket_directory(), f".s.PGSQL.{worker.port}")
        as_server([sys.executable, "-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", path])
        worker.configure(unix_socket_directories="")
        try:
            worker.start()
            with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(NAMES)
                same("nodes meet at a socket", worker.query(QUERIES), [(False,)])
        finally:
            worker.stop()
            worker.configure(unix_socket_directories=socket_directory())
            worker.start()
        self.ask(self.cluster.coordinator, expecting=True)

    def ends_of_queries_wait_for_the_next_one(self):
        """The end of a query waits for the next one, which has a snapshot of its own, and not for long."""
        with closing(self.cluster.coordinator.connect()) as here, closing(self.cluster.workers[0].connect()) as other:
            looking = [worker.connect() for worker in self.cluster.workers]

            def at_work():
                """Nodes with a session in the transaction of another node's query."""
                return sum(value(session, AT_WORK) > 0 for session in looking)

            for before in (None, "select 1 / 0", "begin; select 1 / 0"):
                # A slow machine may look too late.
                wait_until(
                    "nodes that do not know the end yet", lambda: value(here, COUNT) == 2 * PEOPLE and at_work() == 2
                )
                if before is not None:
                    same("division by zero", error_of(here, before), "22012")
                    run(here, "rollback")
                wait_until("the end", lambda: at_work() == 0)
            for session in looking:
                session.close()
            for turn in range(20):
                same("quads", value(here, COUNT), 2 * PEOPLE + turn % 2)
                run(other, "delete" + OF_QUAD if turn % 2 else f"insert into quad_stores.films values {QUAD}")
            same("quads", value(here, COUNT), 2 * PEOPLE)

    def ends_that_wait_hinder_nobody(self):
        """Whoever excludes readers does not wait long for an end that waits."""
        with closing(self.cluster.coordinator.connect()) as here, closing(self.cluster.workers[0].connect()) as other:
            run(here, "set lock_timeout = '2s'")
            for asking in (here, other):
                run(here, "select quad.create_store('short', distributed => true)")
                for statement in ("truncate quad_stores.short", "select quad.drop_store('short')"):
                    run(here, "insert into quad_stores.short values (1, 2, 3, 0)")
                    same("quads", value(asking, "select count(*) from quad_stores.short"), 1)
                    run(here, statement)

    def sessions_end_while_an_end_waits(self):
        """Sessions that end while an end waits are opened anew."""
        with closing(self.cluster.coordinator.connect()) as here:
            for worker in self.cluster.workers:
                same("quads", value(here, COUNT), 2 * PEOPLE)
                worker.query(END_SESSIONS)
                same("quads", value(here, COUNT), 2 * PEOPLE)

    def answers_to_loads_are_large(self):
        """Two loads wait for no answer that the other one keeps from coming. A node holds the locks of its shards until
        its answer is taken, which is more than a socket keeps. Meanwhile both loads want numbers of blank nodes and of
        languages."""

        def load(number):
            with closing(self.cluster.servers[number].connect()) as connection, connection.cursor() as cursor:
                cursor.execute("set maintenance_work_mem = '128MB'; set statement_timeout = '60s'")
                node = "_:b{} <http://x/p> <http://x/large/{}/{}> .\n"
                lines = [node.format(n // 10, number, n) for n in range(TERMS)]
                tagged = '_:b{} <http://x/p> "large"@en-x-l{}-{} .\n'
                lines[::40_000] = [tagged.format(n // 10, number, n // 40_000) for n in range(0, TERMS, 40_000)]
                cursor.execute("select quad.load_text(%s, 'nt', store => 'films')", ("".join(lines),))
                return cursor.fetchone()[0]

        with ThreadPoolExecutor() as threads:
            same("quads", list(threads.map(load, range(2))), [TERMS, TERMS])
        counted = (
            "select count(*), count(distinct s), count(distinct o) from quad_stores.films "
            "group by p order by 1 desc limit 1"
        )
        same("quads, blank nodes, terms", self.cluster.workers[1].query(counted), [(2 * TERMS, TERMS // 5, 2 * TERMS)])


if __name__ == "__main__":
    report = Report("sockets")
    with Cluster(shards_on_coordinator=True, unix_socket_directories=socket_directory()) as cluster:
        Checks(cluster, report).run()
    report.finish()
