"""Nodes that cannot take part: without the extension, with another version of it, without the library preloaded, behind
a wrong password, down. Each statement that needs them ends with an error of its own that names the node, and leaves
nothing half-made. Usage: refusals.py [CASE..] (by `run`).
"""

import os
import sys
from contextlib import closing, contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, as_server

HERE_ONLY = "set citus.enable_ddl_propagation = off; "
# Statements with what they leave when they succeed.
MAKE = "select quad.create_store('made', distributed => true, shards => 6)"
DISTRIBUTE = "select quad.distribute_store('local', shards => 6)"
QUERY = "select count(*) from quad.sparql('SELECT * { ?s ?p ?o }', 'films')"
UPDATE = (
    "select quad.update('INSERT DATA { <http://x/new> <http://x/p> 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }', 'films')"
)
LOAD = "select quad.load_text('<http://x/new> <http://x/p> 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 .', 'turtle', store => 'films')"
GRANT = "grant select on quad_stores.films to public"


class Refusals:
    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        self.bad = cluster.workers[1]
        self.name = f"127.0.0.1:{self.bad.port}"
        self.ask(
            cluster.coordinator,
            "select quad.create_store('films', distributed => true, shards => 6), quad.create_store('local')",
        )
        document = "".join(f"<http://x/s{i}> <http://x/p> <http://x/o{i}> .\n" for i in range(100))
        for store in ("films", "local"):
            cluster.coordinator.query("select quad.load_text(%s, 'nt', store => %s)", (document, store))
        self.before = self.state()

    @staticmethod
    def ask(server, sql):
        return server.query(sql)

    def state(self):
        """What a failed statement must not change, on the nodes that answer; the bad one has to be well again."""
        relations = "select n.nspname, c.relname, c.relacl::text from pg_class c join pg_namespace n on n.oid = c.relnamespace " \
                    "where n.nspname in ('quad_stores', 'quad_shards') and relkind = 'r' order by 1, 2"
        state = []
        for server in self.cluster.servers:
            server.query("select recover_prepared_transactions()")
            state.append((server.query(relations), server.query("select gid from pg_prepared_xacts"),
                          server.query(QUERY), server.query("select logicalrelid::text from pg_dist_partition order by 1")))
        state.append(self.ask(self.cluster.coordinator, "select * from quad_stores.local order by 1, 2, 3"))
        return state

    def refuses(self, case, statements, asker=0):
        """Each statement fails with its SQLSTATE and a message that names the node and has the words."""
        for sql, states, *words in statements:
            label = f"{case}: {sql[:60]}"
            try:
                self.ask(self.cluster.servers[asker], sql)
                self.report.check(False, label, "accepted")
            except psycopg2.Error as error:
                text = f"{error} {error.diag.message_detail} {error.diag.message_hint} {error.diag.context}".replace("localhost", "127.0.0.1")
                complaints = [f"no {word!r}" for word in [self.name, *words] if word not in text]
                if error.pgcode not in states:
                    complaints.append(f"SQLSTATE {error.pgcode}, wanted {states}")
                self.report.check(not complaints, label, f"{complaints}: {text[:600]!r}")

    def unchanged(self, case):
        now = self.state()
        self.report.check(now == self.before, f"{case}: nothing half-made is left", f"{now} was {self.before}"[:1500])

    @contextmanager
    def settings(self, **settings):
        """The bad node with other settings."""
        self.bad.configure(**settings)
        self.bad.stop()
        self.bad.start()
        yield

    def without_the_extension(self):
        # As on a node whose extension somebody has dropped by hand: the shards go with it, so that this case is the
        # last one.
        self.ask(self.bad, HERE_ONLY + "drop extension pgquad cascade")
        self.refuses("no extension", [
            (MAKE, {"55000"}, "does not answer"), (DISTRIBUTE, {"55000"}, "does not answer"), (QUERY, {"3F000", "42883", "55000"}),
        ])

    def another_version(self):
        as_it_is = self.ask(self.bad, "select pg_get_functiondef('quad.cluster_node_state'::regproc)")[0][0]
        self.ask(self.bad, HERE_ONLY + "create or replace function quad.cluster_node_state() returns text strict language sql as $$select '0.0.9'$$")
        try:
            self.refuses("another version", [(MAKE, {"55000"}, "0.0.9"), (DISTRIBUTE, {"55000"}, "0.0.9")])
        finally:
            self.ask(self.bad, HERE_ONLY + as_it_is)
        self.unchanged("another version")
        try:
            self.ask(self.bad, "select quad.cluster_hello(99, 'x')")
            self.report.check(False, "another version of messages", "accepted")
        except psycopg2.Error as error:
            self.report.check(
                error.pgcode == "0A000" and "99" in error.diag.message_detail, "another version of messages", str(error)
            )

    def not_preloaded(self):
        with self.settings(shared_preload_libraries="citus"):
            self.refuses("not preloaded", [
                (MAKE, {"55000"}, "not preloaded"), (DISTRIBUTE, {"55000"}, "not preloaded"),
            ])
            # Its changes are logged by PostgreSQL's generic records then; what is there goes on.
            found = [server.query(QUERY)[0][0] for server in self.cluster.servers]
            self.report.check(found == [100] * 3, "not preloaded: queries go on", str(found))
            found = [
                self.ask(self.cluster.servers[0], statement)[0][0]
                for statement in (UPDATE, UPDATE.replace("INSERT", "DELETE"))
            ]
            self.report.check(found == [12, 12], "not preloaded: updates go on", str(found))
        with self.settings(shared_preload_libraries="citus,pgquad"):
            self.unchanged("not preloaded")

    def wrong_password(self):
        path = os.path.join(self.bad.data, "pg_hba.conf")
        with open(path, encoding="utf-8") as file:
            trusting = file.read()

        def admit(lines):
            as_server(["sh", "-c", 'printf %s "$1" >"$2"', "sh", lines, path])
            as_server([os.path.join(os.path.dirname(os.environ["PG_CONFIG"]), "pg_ctl"), "-D", self.bad.data, "reload"])

        self.ask(self.bad, HERE_ONLY + "alter role postgres password 'right'")
        admit("host all all all scram-sha-256\n")
        self.ask(self.cluster.coordinator, "insert into pg_dist_authinfo values (0, 'postgres', 'password=wrong')")
        # Sessions that are there already go on.
        self.bad.stop()
        self.bad.start()
        try:
            self.refuses("wrong password", [
                (MAKE, {"08001"}, "password"), (DISTRIBUTE, {"08001"}, "password"),
                (QUERY, {"08001"}, "password"), (UPDATE, {"08001", "08006"}, "password"), (LOAD, {"08001", "08006"}, "password"), (GRANT, {"08006"}, "password"),
            ])
        finally:
            self.ask(self.cluster.coordinator, "delete from pg_dist_authinfo")
            admit(trusting)
        self.unchanged("wrong password")

    def down(self):
        self.bad.stop("immediate")
        try:
            for asker in (0, 1):
                self.refuses(f"down, asked on node {asker}", [
                    *([(MAKE, {"08001"}, "could not connect"), (DISTRIBUTE, {"08001"}, "could not connect")] if asker == 0 else []),
                    (QUERY, {"08001", "08006"}, "could not connect"), (UPDATE, {"08001", "08006"}), (LOAD, {"08001", "08006"}), (GRANT, {"08006"}),
                    *([("select quad.drop_store('films')", {"08006"}), ("select quad.undistribute_store('films')", {"08006", "08001"})] if asker == 0 else []),
                    ("truncate quad_stores.films", {"08006"}),
                ], asker)
        finally:
            self.bad.start()
        self.unchanged("down")

    def numbers_of_shards(self):
        coordinator = self.cluster.coordinator
        for shards in (0, -1, 1025, 2**31 - 1):
            for sql in (
                f"select quad.create_store('made', distributed => true, shards => {shards})",
                f"select quad.distribute_store('local', shards => {shards})",
            ):
                try:
                    coordinator.query(sql)
                    self.report.check(False, f"{shards} shards", "accepted")
                except psycopg2.Error as error:
                    self.report.check(
                        error.pgcode == "22023" and str(shards) in str(error) and "1024" in error.diag.message_hint,
                        f"{shards} shards",
                        str(error),
                    )
        self.unchanged("numbers of shards")
        for shards in (1, 64):
            coordinator.query(f"select quad.create_store('made', distributed => true, shards => {shards})")
            for server in self.cluster.servers:
                server.query(
                    "select quad.update('INSERT DATA { <http://x/%s> <http://x/p> 1, 2, 3 }', 'made')" % server.port
                )
            found = [
                server.query("select count(*) from quad.sparql('SELECT * { ?s ?p ?o }', 'made')")[0][0]
                for server in self.cluster.servers
            ]
            self.report.check(found == [9, 9, 9], f"{shards} shards", str(found))
            with closing(coordinator.connect()) as connection, connection.cursor() as cursor:
                cursor.execute("select quad.verify('quad_stores.made')")
                found = cursor.fetchall()
            self.report.check(found == [], f"{shards} shards: sound", str(found)[:300])
            coordinator.query("select quad.drop_store('made')")
        self.unchanged("dropped stores of 1 and 64 shards")

    def more_shards_than_connections(self):
        """A store has more shards on each node than the node takes connections."""
        coordinator = self.cluster.coordinator
        limit = int(self.ask(coordinator, "show max_connections")[0][0])
        shards = 3 * limit + 30
        document = "".join(f"<http://x/s{i}> <http://x/p> <http://x/o{i}> .\n" for i in range(2000))
        count = "select count(*) from quad.sparql('SELECT * { ?s <http://x/p> ?o }', 'many')"
        coordinator.query(f"select quad.create_store('many', distributed => true, shards => {shards})")
        found = [coordinator.query("select quad.load_text(%s, 'nt', store => 'many')", (document,))[0][0]]
        found += [server.query(count)[0][0] for server in self.cluster.servers]
        found += [
            self.cluster.workers[0].query(
                "select quad.update('INSERT DATA { <http://x/new> <http://x/p> 1, 2, 3 }', 'many')"
            )[0][0]
        ]
        found += coordinator.query("select shards, quads from quad.stores where store = 'many'")[0]
        self.report.check(found == [2000] * 4 + [3, shards, 2003], f"{shards} shards", str(found))
        coordinator.query("truncate quad_stores.many")
        self.report.check(self.ask(self.bad, count)[0][0] == 0, f"{shards} shards: truncated")
        coordinator.query("select quad.drop_store('many')")
        self.unchanged(f"dropped store of {shards} shards")

    def run(self, named):
        for case in (
            self.numbers_of_shards,
            self.more_shards_than_connections,
            self.another_version,
            self.down,
            self.wrong_password,
            self.not_preloaded,
            self.without_the_extension,
        ):
            if named and case.__name__ not in named:
                continue
            try:
                case()
            except Exception as error:  # whatever it is, the other cases still run
                self.report.check(False, case.__name__, f"{type(error).__name__}: {error}")
        self.cluster.check_crashes(self.report)


if __name__ == "__main__":
    report = Report("refusals")
    with Cluster(shards_on_coordinator=True) as cluster:
        Refusals(cluster, report).run(sys.argv[1:])
    report.finish()
