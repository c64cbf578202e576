"""Runs the query logs of the Berlin SPARQL benchmark and compares each answer, as a bag, with the recorded one.

Where a query asks for an order, the sort keys have to come in it. Where it also has a limit, solutions that tie with
the last one may differ. Environment: PGHOST, PGPORT, PGUSER (a running server with pgquad), PGQUAD_SHARED (the large
test data).
"""
import argparse
import collections
import gzip
import json
import os
import re
import sys
import time

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pgquad_test import Report, create_cluster_database, nodes  # noqa: E402

TERM = re.compile(
    r'(?:<(?P<iri>[^>]*)>|_:(?P<blank>\S+)|"(?P<text>(?:[^"\\]|\\.)*)"(?:@(?P<lang>[\w-]+)|\^\^<(?P<type>[^>]*)>)?)$',
    re.DOTALL,
)
ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))')
SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def term(text):
    """A term in N-Triples form, free of differences in how it may be escaped; None for an unbound variable."""
    if not text:
        return None
    match = TERM.match(text)
    if not match:
        raise ValueError(f"not a term: {text}")
    found = match.groupdict()
    if found["text"] is not None:
        found["text"] = ESCAPE.sub(
            lambda e: SHORT.get(e[3], e[3]) if e[3] else chr(int(e[1] or e[2], 16)), found["text"])
    return tuple(found.values())


class Query:
    """A query of the log."""

    def __init__(self, entry):
        self.number = entry["query_nr"]
        self.name = f"mix {entry['mix']} position {entry['pos']} query {self.number}"
        self.text = entry["sparql"]
        clause = re.search(r"\bSELECT\s+(?:DISTINCT\s+)?((?:\?\w+\s*)+)", self.text)
        self.variables = re.findall(r"\?(\w+)", clause[1]) if clause else None
        order = re.search(r"\bORDER BY\s[^?]*\?(\w+)", self.text)
        self.key = self.variables.index(order[1]) if order else None
        self.limited = re.search(r"\bLIMIT\b", self.text) is not None

    def run(self, cursor, store):
        """The answer: a list of rows of terms."""
        if self.variables is not None:
            cursor.execute("select quad.sparql(%s, %s)", (self.text, store))
            return [tuple(term(row.get(name)) for name in self.variables) for (row,) in cursor]
        function = "describe" if re.search(r"\bDESCRIBE\b", self.text) else "construct"
        cursor.execute(f"select subject::text, predicate::text, object::text from (select quad.term_out(subject)::text as subject, "
                       f"quad.term_out(predicate)::text as predicate, quad.term_out(object)::text as object "
                       f"from quad.{function}(%s, %s)) t", (self.text, store))
        return [tuple(map(term, row)) for row in cursor]

    def difference(self, answer, expected):
        """What is wrong with the answer; None when it is right."""
        if self.key is not None:
            keys = [row[self.key] for row in answer]
            wanted = [row[self.key] for row in expected]
            if keys != wanted:
                return f"sort keys {keys}, expected {wanted}"
            if self.limited and expected:
                last = wanted[-1]
                answer = [row for row in answer if row[self.key] != last]
                expected = [row for row in expected if row[self.key] != last]
        got, want = collections.Counter(answer), collections.Counter(expected)
        if got == want:
            return None
        extra, missing = list((got - want).elements()), list((want - got).elements())
        return f"{len(extra)} rows too many {extra[:2]}, {len(missing)} missing {missing[:2]}"


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def load(connection, store, path):
    cursor = connection.cursor()
    cursor.execute("select quad.create_store(%s, distributed => %s)", (store, bool(nodes())))
    start = time.time()
    cursor.execute("select quad.load(%s, store => %s)", (path, store))
    count = cursor.fetchone()[0]
    cursor.execute(f"analyze quad_stores.{store}")
    print(f"loaded {count} triples in {time.time() - start:.1f} s")


def create_database(name, keep):
    """A new database; `keep`: only if there is none."""
    admin = psycopg2.connect(dbname="postgres")
    admin.autocommit = True
    with admin.cursor() as cursor:
        cursor.execute("select exists (select from pg_database where datname = %s)", (name,))
        there = cursor.fetchone()[0]
        if there and not keep:
            cursor.execute(f"drop database {name}")
        if not (there and keep):
            cursor.execute(f"create database {name} template template0 encoding 'UTF8'")


def drop_database(name):
    admin = psycopg2.connect(dbname="postgres")
    admin.autocommit = True
    with admin.cursor() as cursor:
        cursor.execute(f"drop database {name}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--size", choices=("100k", "1m"), default="100k")
    options.add_argument("--mixes", type=int, default=50, help="how many mixes of the log, 50 at most")
    options.add_argument("--keep", action="store_true", help="use the data of an earlier run and leave them there")
    options = options.parse_args()
    report = Report("bsbm")
    folder = os.path.join(os.environ.get("PGQUAD_SHARED", "../shared"), "bsbm")
    data = os.path.realpath(os.path.join(folder, f"bsbm-{options.size}.nt.gz"))
    if not os.path.exists(data):
        print("SKIPPED: ../shared/bsbm not found")
        sys.exit(77)
    store = f"bsbm_{options.size}"
    database = "pgquad_bsbm"
    if nodes():
        connections = create_cluster_database(database)
    else:
        create_database(database, options.keep)
        connections = [psycopg2.connect(dbname=database)]
        connections[0].autocommit = True
    connection = connections[0]
    with connection.cursor() as cursor:
        cursor.execute("create extension if not exists pgquad")
        cursor.execute("select to_regclass(%s) is not null", (f"quad_stores.{store}",))
        if not cursor.fetchone()[0]:
            load(connection, store, data)

        # Nodes are asked in turn.
        cursors = [connection.cursor() for connection in connections]
        logs = (lines(data.replace(".nt.gz", f".{what}.jsonl.gz")) for what in ("queries", "expected"))
        failed = collections.Counter()
        count = collections.Counter()
        seconds = collections.Counter()
        for entry, expected in zip(*logs):
            if entry["mix"] >= options.mixes:
                break
            query = Query(entry)
            count[query.number] += 1
            start = time.time()
            try:
                answer = query.run(cursors[sum(count.values()) % len(cursors)], store)
                wrong = query.difference(answer, [tuple(map(term, row)) for row in expected])
            except psycopg2.Error as error:
                wrong = str(error).strip()
            seconds[query.number] += time.time() - start
            if wrong:
                failed[query.number] += 1
                print(f"  {query.name}: {wrong}"[:1000])
        for number in sorted(count):
            report.check(not failed[number], f"query {number}", f"{failed[number]} of {count[number]} answers differ")
            print(
                f"  {count[number]} answers, {seconds[number] / count[number] * 1000:.2f} ms each with the comparison"
            )
    for connection in connections:
        connection.close()
    if not options.keep and not nodes():
        drop_database(database)
    report.finish()


if __name__ == "__main__":
    main()
