"""Soak: clients insert, delete, select, and vacuum the same table at once. At the end the content is what their
journals add up to, quad.verify finds nothing, and no backend's memory has grown. Then one backend asks very many
queries."""
import argparse
import os
import sys
import threading
import time

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402
import queries  # noqa: E402

# A backend may grow this much between the first third of the run and its end: buffers it touches for the first time
# count.
ALLOWED_GROWTH_KB = 24 * 1024


class Worker(threading.Thread):
    """One client: random statements on quads of its own subjects, in the tables that all share."""

    def __init__(self, server, number, rng, until):
        super().__init__(daemon=True)
        self.server, self.number, self.rng, self.until = server, number, rng, until
        self.table = ("plain", "narrow")[number % 2]
        self.mine = set()
        self.statements = 0
        self.error = None
        self.memory = []

    def run(self):
        try:
            connection = self.server.connect()
            cursor = connection.cursor()
            cursor.execute("select pg_backend_pid()")
            pid = cursor.fetchone()[0]
            sampled = 0
            while time.time() < self.until:
                self.statement(cursor)
                self.statements += 1
                if time.time() - sampled > 0.5:
                    sampled = time.time()
                    self.memory.append(t.private_kb(pid))
            self.memory.append(t.private_kb(pid))
            connection.close()
        except Exception as error:  # pylint: disable=broad-except
            self.error = f"client {self.number}: {type(error).__name__}: {error}"

    def quad(self):
        rng = self.rng
        return (rng.randrange(500) * 8 + self.number, rng.randrange(10), rng.randrange(1000), 0)

    def statement(self, cursor):
        rng, table = self.rng, self.table
        kind = rng.random()
        if kind < 0.45:
            new = {self.quad() for _ in range(rng.choice((1, 1, 1, 20, 300)))}
            values = ",".join(f"({s},{p},{o},{g})" for s, p, o, g in new)
            cursor.execute(f"insert into {table} values {values}")
            self.mine |= new
        elif kind < 0.7 and self.mine:
            subject = rng.choice(tuple(self.mine))[0] if len(self.mine) < 1000 else rng.randrange(500) * 8 + self.number
            cursor.execute(f"delete from {table} where s = %s", (subject,))
            self.mine = {q for q in self.mine if q[0] != subject}
        elif kind < 0.95:
            condition = rng.choice(("s = %s", "p = 3 and o = %s", "o = %s", "s < %s", "p = 5 and o > %s limit 100"))
            cursor.execute(f"select s, p, o, g from {table} where {condition}", (rng.randrange(1000),))
            rows = cursor.fetchall()
            if len(rows) != len(set(rows)):
                raise psycopg2.DataError(f"a quad is read twice: {condition}")
            own = {row for row in rows if row[0] % 8 == self.number and row not in self.mine}
            if own:
                raise psycopg2.DataError(f"quads that are not there: {sorted(own)[:3]}")
        else:
            cursor.execute(f"select count(*) from {table} where s %% 8 = %s", (self.number,))
            count = cursor.fetchone()[0]
            if count != len(self.mine):
                raise psycopg2.DataError(f"{count} quads counted, {len(self.mine)} are there")


class Vacuumer(threading.Thread):
    """VACUUM and ANALYZE of both tables in turn."""

    def __init__(self, server, until):
        super().__init__(daemon=True)
        self.server, self.until = server, until
        self.rounds = 0
        self.error = None

    def run(self):
        try:
            cursor = self.server.connect().cursor()
            while time.time() < self.until:
                for table in ("plain", "narrow"):
                    cursor.execute(f"vacuum (analyze) {table}")
                self.rounds += 1
                time.sleep(0.1)
        except Exception as error:  # pylint: disable=broad-except
            self.error = f"vacuum: {type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--queries", type=int, default=10000, help="queries of the one backend whose memory is watched")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    rng, seed = t.seeded(options.seed)
    report = t.Report("soak")
    server = (
        t.Server("soak", {"fsync": "off", "shared_buffers": "32MB", "autovacuum_naptime": "1s", "max_wal_size": "1GB"})
        .init()
        .start()
    )
    connection = server.connect()
    connection.cursor().execute("create extension pgquad")
    t.create_table(connection, "plain")
    t.create_table(connection, "narrow", leaf_quads=16, inner_fanout=8)

    until = time.time() + options.seconds
    workers = [Worker(server, n, t.random.Random(rng.random()), until) for n in range(8)]
    vacuumer = Vacuumer(server, until)
    for thread in workers + [vacuumer]:
        thread.start()
    for thread in workers + [vacuumer]:
        thread.join(max(0, until + 2 * t.PATIENCE - time.time()))
    stuck = [f"client {w.number} does not end" for w in workers if w.is_alive()]
    errors = [w.error for w in workers + [vacuumer] if w.error] + stuck + server.crashes_in_log()
    statements = sum(w.statements for w in workers)
    report.check(not errors, f"8 clients, {statements} statements, {vacuumer.rounds} vacuums in {options.seconds:g} s",
                 "\n  ".join([f"seed {seed}"] + errors[:10]))
    for index, table in enumerate(("plain", "narrow")):
        cursor = connection.cursor()
        cursor.execute(f"select s, p, o, g from {table}")
        rows = cursor.fetchall()
        expected = set().union(*(w.mine for w in workers if w.number % 2 == index))
        report.check(
            set(rows) == expected and len(rows) == len(expected),
            f"{table}: {len(rows)} quads, as the journals say",
            f"seed {seed}: missing {sorted(expected - set(rows))[:3]}, extra {sorted(set(rows) - expected)[:3]}",
        )
        found = t.problems(connection, table)
        report.check(not found, f"{table}: verify", "; ".join(found[:5]))
        cursor.execute(f"vacuum {table}")
        cursor.execute(f"select quad.range_count('{table}', null, null, null, null)")
        report.check(cursor.fetchone()[0] == len(expected), f"{table}: range count after vacuum")
    growth = [(w.number, w.memory[len(w.memory) // 3], w.memory[-1]) for w in workers if len(w.memory) > 3]
    worst = max(growth, key=lambda g: g[2] - g[1], default=(0, 0, 0))
    report.check(
        worst[2] - worst[1] <= ALLOWED_GROWTH_KB,
        f"memory of the backends is flat (worst: {worst[1]} KB, at the end {worst[2]} KB)",
        f"client {worst[0]}",
    )
    connection.close()
    server.stop("immediate")
    if not report.failed:
        server.remove()
    queries.run(report, rng, seed, options.queries)
    report.finish()


main()
