"""Crash test: kill -9 of the server at a random moment under mixed load, recovery, comparison with clients' journals.

Every client works on subjects of its own, in its own connection, and keeps a journal in memory. The journal is the set
of quads after its last acknowledged commit and, while a commit is under way, the set that it would lead to. After the
crash the client's part of the table has to be exactly one of the two. A transaction whose commit was acknowledged is
there as a whole. One whose commit was not sent is not there at all, and one in between is either. Besides, all clients
insert the same shared quads (graph 1), which are never deleted. Then quad.verify has to find nothing. The data stays
for the next round, so later rounds crash on recovered pages.
"""
import argparse
import io
import os
import sys
import threading
import time

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402

SPAN = 1 << 40  # subjects of client c: c * SPAN ..
SHARED_GRAPH = 1
TABLES = ("plain", "narrow")


class Connected(threading.Thread):
    """A connection that works until the server is killed; any error before that is one to report."""

    def __init__(self, server, rng, killed):
        super().__init__(daemon=True)
        self.server, self.rng, self.killed = server, rng, killed
        self.transactions = 0
        self.error = None

    def run(self):
        try:
            cursor = self.server.connect().cursor()
            self.prepare(cursor)
            while True:
                self.transaction(cursor)
        except Exception as error:  # pylint: disable=broad-except
            if not self.killed.is_set() or isinstance(error, psycopg2.DataError):
                self.error = f"{type(self).__name__}: {type(error).__name__}: {error}"

    def prepare(self, cursor):
        """Called once, before the first transaction."""

    def transaction(self, cursor):
        """One piece of work."""
        raise NotImplementedError


class Client(Connected):
    """Runs random transactions on quads of its own subjects."""

    def __init__(self, server, rng, killed, number, journal):
        super().__init__(server, rng, killed)
        self.number, self.journal = number, journal
        self.table = TABLES[number % len(TABLES)]

    def transaction(self, cursor):
        journal, rng = self.journal, self.rng
        quads = set(journal.committed)
        cursor.execute("begin" if rng.random() < 0.8 else "begin isolation level repeatable read")
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            quads = self.operation(cursor, quads)
        if rng.random() < 0.15:
            before = set(quads)
            cursor.execute("savepoint a")
            quads = self.operation(cursor, quads)
            if rng.random() < 0.5:
                cursor.execute("rollback to a")
                quads = before
            else:
                cursor.execute("release a")
            quads = self.operation(cursor, quads)
        shared = [(rng.randrange(2000), 1, rng.randrange(3), SHARED_GRAPH) for _ in range(rng.choice((0, 0, 1, 8)))]
        if shared:
            self.insert(cursor, shared)
            journal.shared_tried.update(shared)
        self.transactions += 1
        end = rng.random()
        if end < 0.1:
            cursor.execute("rollback")
            return
        if end < 0.2:
            self.two_phase(cursor, quads, shared)
            return
        journal.under_way = quads
        cursor.execute("commit")
        journal.acknowledge(quads, shared)

    def two_phase(self, cursor, quads, shared):
        journal = self.journal
        gid = f"client{self.number}"
        journal.under_way = quads
        cursor.execute(f"prepare transaction '{gid}'")
        journal.prepared = gid
        if self.rng.random() < 0.3:
            time.sleep(0.05)
        if self.rng.random() < 0.8:
            cursor.execute(f"commit prepared '{gid}'")
            journal.acknowledge(quads, shared)
        else:
            journal.rolling_back = True
            cursor.execute(f"rollback prepared '{gid}'")
            journal.acknowledge(journal.committed, [])

    def operation(self, cursor, quads):
        """One random statement; returns the set it leads to."""
        rng = self.rng
        base = self.number * SPAN
        kind = rng.random()
        if kind < 0.45 or not quads:
            new = {(base + rng.randrange(3000), rng.randrange(20), rng.randrange(-500, 500), 0)
                   for _ in range(rng.choice((1, 1, 1, 5, 100)))}
            self.insert(cursor, new)
            return quads | new
        if kind < 0.55:
            new = {
                (base + rng.randrange(3000), 100 + rng.randrange(20), rng.randrange(10**6), 0)
                for _ in range(rng.choice((500, 3000)))
            }
            lines = "".join(f"{s}\t{p}\t{o}\t{g}\n" for s, p, o, g in new)
            cursor.copy_expert(f"copy {self.table} from stdin", io.StringIO(lines))
            return quads | new
        if kind < 0.75:
            gone = set(rng.sample(sorted(quads), min(len(quads), rng.choice((1, 1, 10, 200)))))
            values = ",".join(cursor.mogrify("(%s::bigint,%s::bigint,%s::bigint,%s::bigint)", q).decode() for q in gone)
            cursor.execute(f"delete from {self.table} t using (values {values}) v (s, p, o, g) "
                           "where t.s = v.s and t.p = v.p and t.o = v.o and t.g = v.g")
            return quads - gone
        if kind < 0.85:
            low = base + rng.randrange(3000)
            high = low + rng.choice((3, 300))
            cursor.execute(f"delete from {self.table} where s >= %s and s < %s and g = 0", (low, high))
            return {q for q in quads if not low <= q[0] < high}
        if kind < 0.95:
            subject = base + rng.randrange(3000)
            cursor.execute(f"update {self.table} set o = o + 1 where s = %s and g = 0", (subject,))
            return {q if q[0] != subject else (q[0], q[1], q[2] + 1, q[3]) for q in quads}
        cursor.execute(f"select count(*) from {self.table} where s >= %s and s < %s and g = 0", (base, base + SPAN))
        count = cursor.fetchone()[0]
        if count != len(quads):
            raise psycopg2.DataError(
                f"{self.table}: client {self.number} sees {count} of its quads, the journal has {len(quads)}"
            )
        return quads

    def insert(self, cursor, quads):
        values = ",".join(cursor.mogrify("(%s,%s,%s,%s)", q).decode() for q in quads)
        cursor.execute(f"insert into {self.table} values {values}")


class Journal:
    """What one client knows about its own quads."""

    def __init__(self):
        self.committed = set()
        self.under_way = None
        self.prepared = None
        self.rolling_back = False
        self.shared_tried = set()
        self.shared_committed = set()

    def acknowledge(self, quads, shared):
        self.committed = quads
        self.shared_committed.update(shared)
        self.under_way = self.prepared = None
        self.rolling_back = False


class Loader(Connected):
    """Loads small documents into a store, one transaction each, some of them rolled back."""

    def __init__(self, server, rng, killed, journal):
        super().__init__(server, rng, killed)
        self.journal = journal

    def transaction(self, cursor):
        rng = self.rng
        first = self.journal.next
        count = rng.choice((1, 20, 500))
        self.journal.next += count
        lines = [
            f'<http://example.org/s{i}> <http://example.org/p{i % 7}> "value number {i}" .'
            for i in range(first, first + count)
        ]
        cursor.execute("begin")
        cursor.execute("select quad.load_text(%s, 'nt', store => 'loaded')", ("\n".join(lines) + "\n",))
        if rng.random() < 0.2:
            cursor.execute("rollback")
            return
        self.journal.under_way = set(lines)
        cursor.execute("commit")
        self.journal.committed |= set(lines)
        self.journal.under_way = None
        self.transactions += 1


class LoadJournal:
    """Lines of the documents whose commit was acknowledged, and of the one under way."""

    def __init__(self):
        self.committed = set()
        self.under_way = None
        self.next = 1


class Vacuumer(Connected):
    """VACUUM in its kinds, ANALYZE and CHECKPOINT."""

    def prepare(self, cursor):
        cursor.execute("set lock_timeout = '2s'")

    def transaction(self, cursor):
        table = self.rng.choice(TABLES)
        statement = self.rng.choice((f"vacuum {table}", f"vacuum {table}", f"vacuum freeze {table}", f"analyze {table}",
                                     "checkpoint", f"vacuum full {table}"))
        try:
            cursor.execute(statement)
        except (psycopg2.errors.LockNotAvailable, psycopg2.errors.DeadlockDetected):
            pass
        time.sleep(self.rng.random() * 0.3)


def settle_prepared(server, journals, rng, report, round_name):
    """Ends the prepared transactions that survived, at random, and tells the journals."""
    found = {gid for (gid,) in server.query("select gid from pg_prepared_xacts")}
    for journal in journals:
        if journal.prepared is None:
            continue
        if journal.prepared in found:
            if rng.random() < 0.5:
                server.query(f"commit prepared '{journal.prepared}'")
                journal.committed = journal.under_way
            else:
                server.query(f"rollback prepared '{journal.prepared}'")
            journal.under_way = None
        elif journal.rolling_back:
            journal.under_way = None
        # Otherwise COMMIT PREPARED was sent: it has to have happened, for the transaction is no longer prepared.
        elif journal.under_way is not None:
            journal.committed, journal.under_way = journal.under_way, None
        journal.prepared = None
        journal.rolling_back = False
    for gid in found - {f"client{n}" for n in range(1, len(journals) + 1)}:
        report.check(False, f"{round_name}: prepared transaction {gid} is nobody's")
    # Prepared, but PREPARE was not acknowledged: it may be there all the same.
    for gid in sorted(found):
        rest = server.query("select gid from pg_prepared_xacts where gid = %s", (gid,))
        if rest:
            number = int(gid.removeprefix("client"))
            server.query(f"commit prepared '{gid}'")
            journal = journals[number - 1]
            journal.committed, journal.under_way = journal.under_way, None


def compare(connection, number, journal):
    """Complaints about one client's part of its table; the journal is brought up to what was found."""
    table = TABLES[number % len(TABLES)]
    base = number * SPAN
    cursor = connection.cursor()
    cursor.execute(f"select s, p, o, g from {table} where s >= %s and s < %s and g = 0", (base, base + SPAN))
    rows = cursor.fetchall()
    found = set(rows)
    complaints = []
    if len(rows) != len(found):
        complaints.append(f"client {number}: {len(rows) - len(found)} quads are read more than once")
    candidates = [journal.committed] + ([journal.under_way] if journal.under_way is not None else [])
    if found not in candidates:
        lost, extra = journal.committed - found, found - journal.committed
        complaints.append(f"client {number} ({table}): {len(lost)} committed quads lost, {len(extra)} others there "
                          f"({'a commit was under way' if journal.under_way is not None else 'nothing was under way'}): "
                          f"{sorted(lost)[:3]} {sorted(extra)[:3]}")
    journal.committed = found
    journal.under_way = None
    return complaints


def compare_shared(connection, journals):
    complaints = []
    for index, table in enumerate(TABLES):
        cursor = connection.cursor()
        cursor.execute(f"select s, p, o, g from {table} where g = {SHARED_GRAPH}")
        rows = cursor.fetchall()
        mine = [j for n, j in enumerate(journals, 1) if n % len(TABLES) == index]
        committed = set().union(*(j.shared_committed for j in mine))
        tried = set().union(*(j.shared_tried for j in mine))
        if len(rows) != len(set(rows)):
            complaints.append(f"{table}: a shared quad is read more than once")
        if committed - set(rows):
            complaints.append(f"{table}: shared quads lost: {sorted(committed - set(rows))[:5]}")
        if set(rows) - tried:
            complaints.append(f"{table}: shared quads nobody inserted: {sorted(set(rows) - tried)[:5]}")
    return complaints


def compare_loaded(connection, journal):
    cursor = connection.cursor()
    cursor.execute("select * from quad.export('loaded')")
    found = [row[0] for row in cursor.fetchall()]
    complaints = []
    if len(found) != len(set(found)):
        complaints.append("store loaded: a triple is exported twice")
    found = set(found)
    if found != journal.committed and found != journal.committed | (journal.under_way or set()):
        lost, extra = journal.committed - found, found - journal.committed
        complaints.append(
            f"store loaded: {len(lost)} triples lost, {len(extra)} others there: {sorted(lost)[:3]} {sorted(extra)[:3]}"
        )
    journal.committed, journal.under_way = found, None
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--max-seconds", type=float, default=4, help="longest time from start to kill in a round")
    options = parser.parse_args()
    rng, seed = t.seeded(options.seed)
    report = t.Report("crash")
    print(f"seed {seed}, {options.rounds} rounds, {options.clients} clients")

    server = t.Server("crash", {
        "max_prepared_transactions": 32, "shared_buffers": "8MB", "checkpoint_timeout": "30s", "max_wal_size": "96MB",
        "autovacuum_naptime": "1s", "wal_level": "replica", "log_checkpoints": "off",
        # Recovery compares each page that it has made with the one that was there.
        "wal_consistency_checking": "pgquad"}).init().start()
    connection = server.connect()
    connection.cursor().execute("create extension pgquad")
    t.create_table(connection, "plain")
    t.create_table(connection, "narrow", leaf_quads=24, inner_fanout=6)
    connection.cursor().execute("create unlogged table fleeting (" + t.QUAD_COLUMNS + ") using quad")
    with_loader = t.has_function(connection, "load_text") and t.has_function(connection, "export")
    if with_loader:
        connection.cursor().execute("select quad.create_store('loaded')")
    else:
        report.skip("loader under load", "no quad.load_text in this build")
    connection.close()

    journals = [Journal() for _ in range(options.clients)]
    load_journal = LoadJournal()
    for number in range(1, options.rounds + 1):
        name = f"round {number}"
        killed = threading.Event()
        clients = [
            Client(server, t.random.Random(rng.random()), killed, n, journal) for n, journal in enumerate(journals, 1)
        ]
        others = [Vacuumer(server, t.random.Random(rng.random()), killed)]
        if with_loader:
            others.append(Loader(server, t.random.Random(rng.random()), killed, load_journal))
        server.query("insert into fleeting select i, i, i, i from generate_series(1, 1000) i")
        for thread in clients + others:
            thread.start()
        alive_for = 0.3 + rng.random() * options.max_seconds
        time.sleep(alive_for)
        killed.set()
        server.kill()
        for thread in clients + others:
            thread.join(t.PATIENCE)
        complaints = [
            c.error or f"{type(c).__name__} has not ended" for c in clients + others if c.error or c.is_alive()
        ]
        began = time.time()
        try:
            server.start()
        except RuntimeError as error:
            report.check(False, f"{name}: recovery", str(error))
            break
        recovery = time.time() - began
        settle_prepared(server, journals, rng, report, name)
        connection = server.connect()
        for n, journal in enumerate(journals, 1):
            complaints += compare(connection, n, journal)
        complaints += compare_shared(connection, journals)
        if with_loader:
            complaints += compare_loaded(connection, load_journal)
        for table in TABLES + ("fleeting",):
            complaints += [f"verify {table}: {p}" for p in t.problems(connection, table)]
        if server.query("select count(*) from fleeting") != [(0,)]:
            complaints.append("the unlogged table is not empty after the crash")
        for table in TABLES:
            connection.cursor().execute(f"vacuum {table}")
            complaints += [f"verify {table} after vacuum: {p}" for p in t.problems(connection, table)]
        connection.close()
        complaints += server.crashes_in_log()
        transactions = sum(c.transactions for c in clients + others[1:])
        quads = sum(len(j.committed) for j in journals)
        report.check(not complaints, f"{name}: killed after {alive_for:.1f} s and {transactions} transactions, "
                     f"{quads} quads, recovery {recovery:.1f} s", "\n  ".join([""] + complaints[:20]))
        if complaints:
            print(f"  the data directory is kept: {server.data}; log: {server.log}; seed {seed}")
            break
    if report.failed:
        server.stop("immediate")
    else:
        server.stop()
        server.remove()
    report.finish()


main()
