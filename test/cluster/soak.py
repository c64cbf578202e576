"""Soak on three nodes: clients ask, update and load on every node while shards move, nodes are killed, statements end.

Shards are moved and rebalanced, nodes killed, statements cancelled. In the end the store holds what the clients were
told, `quad.verify` finds nothing, and nothing has stayed behind.
Usage: soak.py [--all] [--seconds N] [--seed N] (by `run`); --all: ten minutes.
"""

import argparse
import os
import random
import sys
import threading
import time
from contextlib import closing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, children_of, private_kb, seeded

SECONDS = {False: 40, True: 600}
# Triples of one subject: a write of a subject changes all of them or none.
TRIPLES = 4
# Triples of the data that is only read.
STABLE = 3000
QUERIES = [
    ("SELECT (COUNT(*) AS ?n) { ?a <http://x/next> ?b . ?b <http://x/next> ?c . ?c <http://x/next> ?d }", STABLE),
    (
        "SELECT (COUNT(*) AS ?n) { ?a <http://x/next>/<http://x/next> ?c FILTER NOT EXISTS { ?c <http://x/next> ?a } }",
        STABLE,
    ),
    ("SELECT (COUNT(DISTINCT ?b) AS ?n) { ?a <http://x/next> ?b }", STABLE),
]
# What a client may be told while nodes come and go; all else is a fault. 08: connections; 40: deadlocks; 57: cancelled,
# terminated, starting.
FORGIVEN = ("08", "40", "57")
# The same in words, where Citus gives no SQLSTATE of its own. It may be a connection, or a write that waited for the
# move of its shard. Or a shard's former place cannot be cleaned up while a prepared transaction is undecided.
FORGIVEN_WORDS = (
    "leftover from the previous move",
    "postmaster was shut down",
    "connection",
    "could not find valid entry for shard",
    "SSL SYSCALL error",
    "failed to COPY to shard",
)
# A node that was killed is back, and what it had prepared is decided, after so many seconds.
IN_TIME = 90
# What a run may take more in its last third than before: processes of all nodes, and times the memory of the largest.
# Sessions serve each other by turns, so both go up and down; what leaks grows with the time.
MAX_MORE_PROCESSES = 20
MAX_TIMES_MEMORY = 1.5


def is_forgiven(error):
    code = error.pgcode or "08"
    return code.startswith(FORGIVEN) or any(word in str(error) for word in FORGIVEN_WORDS)


class Client(threading.Thread):
    """Writes and reads on one node, and keeps a journal of what it was told: subject -> True (there), False (not
    there), None (not told)."""

    def __init__(self, server, number, seed):
        super().__init__(daemon=True)
        self.server, self.number, self.random = server, number, random.Random(seed + number)
        self.journal, self.done, self.forgiven, self.faults = {}, 0, 0, []
        self.stopping = threading.Event()
        self.connection = None

    def run(self):
        while not self.stopping.is_set() and len(self.faults) < 5:
            try:
                if self.connection is None:
                    self.connection = self.server.connect()
                with self.connection.cursor() as cursor:
                    self.step(cursor)
                self.done += 1
            except psycopg2.Error as error:
                if not is_forgiven(error):
                    self.faults.append(f"{error.pgcode} {str(error).strip()[:300]}")
                self.forgiven += 1
                self.start_anew()
            except AssertionError as error:
                self.faults.append(str(error))

    def start_anew(self):
        """After an error: an open transaction is undone, a connection that is gone is made anew."""
        try:
            self.connection.rollback()
            with self.connection.cursor() as cursor:
                cursor.execute("rollback")
        except (psycopg2.Error, AttributeError):
            self.connection = None
            time.sleep(0.2)

    def step(self, cursor):
        kind = self.random.random()
        if kind < 0.35:
            self.read(cursor)
        elif kind < 0.75:
            self.update(cursor)
        elif kind < 0.9:
            self.load(cursor)
        else:
            self.transaction(cursor)

    def read(self, cursor):
        query, expected = self.random.choice(QUERIES)
        cursor.execute(
            "select set_config('quad.exchange_mode', %s, false)", (self.random.choice(("auto", "push", "pull")),)
        )
        cursor.execute("select quad.sparql(%s, 'films') ->> 'n'", (query,))
        got = cursor.fetchone()[0]
        assert got.startswith(f'"{expected}"'), f"{query}: {got}, expected {expected}"

    def subject(self):
        return f"http://x/c{self.number}_{len(self.journal)}"

    @staticmethod
    def triples(subject):
        return "".join(f"<{subject}> <http://x/p{n}> <{subject}/{n}> .\n" for n in range(TRIPLES))

    def told(self, cursor, subjects, there, *statement):
        """Runs a statement after which these subjects are there or not."""
        # Until it has ended, nobody knows.
        self.journal |= dict.fromkeys(subjects)
        cursor.execute(*statement)
        self.journal |= dict.fromkeys(subjects, there)

    def update(self, cursor):
        known = [subject for subject, there in self.journal.items() if there]
        if known and self.random.random() < 0.4:
            subject = self.random.choice(known)
            self.told(
                cursor, [subject], False, "select quad.update(%s, 'films')", (f"DELETE WHERE {{ <{subject}> ?p ?o }}",)
            )
        else:
            subject = self.subject()
            self.told(cursor, [subject], True, "select quad.update(%s, 'films')", (f"INSERT DATA {{ {self.triples(subject)} }}",))

    def load(self, cursor):
        subjects = [f"{self.subject()}_{n}" for n in range(self.random.choice((1, 20, 300)))]
        self.told(cursor, subjects, True, "select quad.load_text(%s, 'nt', store => 'films')", ("".join(map(self.triples, subjects)),))

    def transaction(self, cursor):
        """Two writes that are committed or rolled back together."""
        first, second = self.subject(), self.subject() + "_second"
        commits = self.random.random() < 0.6
        self.journal |= {first: None, second: None}
        cursor.execute("begin")
        for subject in (first, second):
            cursor.execute("select quad.update(%s, 'films')", (f"INSERT DATA {{ {self.triples(subject)} }}",))
        cursor.execute("commit" if commits else "rollback")
        self.journal |= {first: commits, second: commits}


class Soak:
    def __init__(self, cluster, report, seed):
        self.cluster, self.report, self.random = cluster, report, random.Random(seed)
        cluster.coordinator.query("select quad.create_store('films', distributed => true, shards => 6)")
        document = "".join(
            f"<http://x/s{n}> <http://x/next> <http://x/s{(n * 7 + 1) % STABLE}> .\n" for n in range(STABLE)
        )
        cluster.coordinator.query("select quad.load_text(%s, 'nt', store => 'films')", (document,))
        self.clients = [Client(server, number, seed) for number, server in enumerate(cluster.servers * 2)]
        self.happened = {}
        # Processes of all nodes, KB of the largest.
        self.samples = []

    def run(self, seconds):
        for client in self.clients:
            client.start()
        until = time.monotonic() + seconds
        events = [self.move, self.move, self.move, self.rebalance, self.cancel, self.cancel, self.vacuum, self.kill]
        while time.monotonic() < until:
            event = self.random.choice(events)
            try:
                event()
                name = event.__name__
            except psycopg2.Error as error:
                if not is_forgiven(error):
                    self.report.check(False, event.__name__, f"{error.pgcode} {str(error).strip()[:300]}")
                name = f"{event.__name__} that failed"
            self.happened[name] = self.happened.get(name, 0) + 1
            self.sample()
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join(IN_TIME)
            name = f"client {client.number}: {client.done} done, {client.forgiven} ended by faults"
            self.report.check(
                not client.is_alive() and not client.faults and client.done > 3,
                name,
                f"{client.faults[:3]}, {self.cluster.activity()[:2000] if client.is_alive() else ''}",
            )
        print(f"what happened: {self.happened}")
        self.check_samples()

    def sample(self):
        """Notes how many processes the nodes have, and the memory of the largest, while all nodes run."""
        pids = [server.pid() for server in self.cluster.servers]
        if not all(pids):
            return
        processes = [process for pid in pids for process in children_of(pid)]
        sizes = []
        for process in processes:
            try:
                sizes.append(private_kb(process))
            except OSError:
                continue
        self.samples.append((len(processes), max(sizes, default=0)))

    def check_samples(self):
        third = len(self.samples) // 3
        if not third:
            self.report.skip("processes and memory", f"only {len(self.samples)} samples")
            return
        before, last = (
            [max(values) for values in zip(*part, strict=True)]
            for part in (self.samples[: 2 * third], self.samples[-third:])
        )
        grown = [f"{old} to {new}" for old, new in zip(before, last, strict=True)]
        print(f"processes at most {grown[0]}; KB of the largest {grown[1]}")
        self.report.check(last[0] <= before[0] + MAX_MORE_PROCESSES, "processes do not grow in number", grown[0])
        self.report.check(last[1] <= before[1] * MAX_TIMES_MEMORY, "processes do not grow", f"{grown[1]} KB")

    # -- what happens to the nodes

    def coordinator(self, sql, parameters=None):
        return self.cluster.coordinator.query(sql, parameters)

    def move(self):
        table = self.random.choice(["quad_shards.films_s", "quad.term_ids"])
        shards = self.coordinator("select shardid, nodename, nodeport from pg_dist_shard join pg_dist_placement using (shardid) join pg_dist_node using (groupid) "
                                  "where logicalrelid = %s::regclass", (table,))
        shard, host, port = self.random.choice(shards)
        target = self.random.choice([server.port for server in self.cluster.servers if server.port != port])
        self.coordinator(
            "select citus_move_shard_placement(%s, %s, %s, %s, %s, 'block_writes')", (shard, host, port, host, target)
        )

    def rebalance(self):
        self.coordinator("select rebalance_table_shards(shard_transfer_mode := 'block_writes')")

    def cancel(self):
        time.sleep(0.3)
        server = self.random.choice(self.cluster.servers)
        server.query("select pg_cancel_backend(pid) from pg_stat_activity where state = 'active' and query ~ 'quad.(update|load|sparql)' and pid <> pg_backend_pid() order by random() limit 1")

    def vacuum(self):
        with closing(self.random.choice(self.cluster.servers).connect()) as connection, connection.cursor() as cursor:
            cursor.execute("vacuum analyze quad_stores.films")

    def kill(self):
        worker = self.random.choice(self.cluster.workers)
        worker.kill()
        time.sleep(0.5)
        worker.start()
        time.sleep(2)

    # -- what has to hold in the end

    def eventually(self, name, ask, expected):
        until = time.monotonic() + IN_TIME
        got = None
        while time.monotonic() < until:
            try:
                got = ask()
            except psycopg2.Error as error:
                got = error
            if got == expected:
                break
            time.sleep(0.5)
        self.report.check(got == expected, name, f"{str(got)[:500]}, expected {str(expected)[:100]}")

    def check(self):
        for client in self.clients:
            if client.connection:
                client.connection.close()
        servers = self.cluster.servers

        def prepared():
            for server in servers:
                server.query("select recover_prepared_transactions()")
            return [row for server in servers for row in server.query("select gid from pg_prepared_xacts")]

        self.eventually("prepared transactions", prepared, [])
        busy = "select pid, application_name, left(query, 80) from pg_stat_activity where backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()"
        for node, server in enumerate(servers):
            self.eventually(f"busy sessions on node {node}", lambda server=server: server.query(busy), [])
            self.eventually(
                f"temporary files on node {node}",
                lambda server=server: server.query("select name from pg_ls_tmpdir()"),
                [],
            )
        self.coordinator("call citus_cleanup_orphaned_resources()")
        journal = {}
        for client in self.clients:
            journal |= client.journal
        for node, server in enumerate(servers):
            rows = server.query(
                "select substr(x ->> 's', 2, length(x ->> 's') - 2), substr(x ->> 'n', 2, length(x ->> 'n') - 46)::int "
                "from quad.sparql('SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o FILTER(?p != <http://x/next>) } GROUP BY ?s', 'films') x"
            )
            halves = [row for row in rows if row[1] != TRIPLES]
            self.report.check(not halves, f"whole subjects on node {node}", str(halves[:5]))
            found = {row[0] for row in rows}
            wrong = [
                subject
                for subject in found | set(journal)
                if journal.get(subject, False) not in (None, subject in found)
            ]
            self.report.check(
                not wrong,
                f"{len(found)} subjects as told on node {node}",
                f"{len(wrong)} differ: {[(s, journal.get(s)) for s in wrong[:5]]}",
            )
        problems = self.coordinator("select quad.verify('quad_stores.films')")
        self.report.check(problems == [], "quad.verify", str(problems)[:500])
        self.cluster.check_crashes(self.report)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--all", action="store_true")
    arguments.add_argument("--seconds", type=int)
    arguments.add_argument("--seed", type=int)
    options = arguments.parse_args()
    report = Report("cluster-soak")
    _, seed = seeded(options.seed)
    print(f"seed {seed}")
    with Cluster(shards_on_coordinator=True) as cluster:
        soak = Soak(cluster, report, seed)
        soak.run(options.seconds or SECONDS[options.all])
        soak.check()
    report.finish()
