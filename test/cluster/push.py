"""Joins pushed from node to node: the same answers as a store of one node, whatever the size of batches; what cannot be
pushed says so.
Usage: push.py (by `run`).
"""

import os
import sys
import threading
import time
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from contextlib import closing

import psycopg2

from model import random_quads
from nodes import Cluster
from pgquad_test import Report, wait_until

QUADS = 6000
PREFIX = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "

# SQL over a store `t`: chains, cycles, stars, optional and tested groups, sets, counts, limits. {p[n]} are predicates.
QUERIES = {
    "chain": "select a.s, b.o, c.o from t a join t b on b.s = a.o join t c on c.s = b.o where a.p = {p[0]} and b.p = {p[1]} and c.p = {p[2]}",
    "chain backwards": "select a.s, b.s, c.s from t a join t b on b.o = a.s join t c on c.o = b.s where a.p = {p[3]}",
    "triangle": "select a.s, b.s, c.s from t a join t b on b.s = a.o join t c on c.s = b.o and c.o = a.s",
    "star": "select a.s, a.o, b.o, c.o, d.o, e.o from t a join t b on b.s = a.s join t c on c.s = a.s join t d on d.s = a.s "
            "join t e on e.s = a.s where a.p = {p[0]} and b.p = {p[1]} and c.p = {p[2]} and d.p = {p[3]} and e.p = {p[4]}",
    "constant subject": "select b.p, c.o from t a join t b on b.s = a.o join t c on c.s = b.o where a.s = {s}",
    "constant object": "select b.p, c.s from t a join t b on b.o = a.s join t c on c.o = b.s where a.o = {s}",
    "several graphs": "select a.s, b.o, c.g from t a join t b on b.s = a.o and b.g = a.g join t c on c.s = b.o where a.g = 7",
    "list": "select a.s, b.o, c.o from t a join t b on b.s = a.o join t c on c.o = b.o where a.p in ({p[0]}, {p[1]}) and b.p <> {p[2]}",
    "range": "select a.s, b.o from t a join t b on b.s = a.o where a.o < {s} and b.o > a.s",
    "optional": "select a.s, b.o, c.o from t a join t b on b.s = a.o left join t c on c.s = b.o and c.p = {p[2]} where a.p = {p[0]}",
    "optional chain": "select a.s, b.o, d.o from t a join t b on b.s = a.o left join ( t c join t d on d.s = c.o) on c.s = b.o and c.p = {p[2]} "
                      "where a.p = {p[0]}",
    "exists": "select a.s, b.o from t a join t b on b.s = a.o where a.p = {p[0]} and exists (select from t c where c.s = b.o and c.p = {p[1]})",
    "not exists": "select a.s, b.o from t a join t b on b.s = a.o where not exists (select from t c join t d on d.s = c.o where c.s = b.o)",
    "distinct": "select distinct b.p, c.p from t a join t b on b.s = a.o join t c on c.s = b.o",
    "count": "select count(*) from t a join t b on b.s = a.o join t c on c.s = b.o",
    "count of optional": "select count(*), count(c.o) from t a join t b on b.s = a.o left join t c on c.s = b.o and c.p = {p[0]}",
    "groups": "select a.p, b.p, count(*) from t a join t b on b.s = a.o join t c on c.s = b.o group by a.p, b.p",
    "many groups": "select a.s, count(*) from t a join t b on b.s = a.o join t c on c.s = b.o group by a.s",
    "groups of computed keys": "select a.s % 11 + c.o % 5 as k, b.p, count(*), min(c.o), max(a.s % 99), count(c.g) from t a join t b on b.s = a.o "
                               "join t c on c.s = b.o group by 1, 2 having count(*) > 2",
    "groups of keys that are computed from optional values": "select c.o % 7 as k, 'k' || a.p % 3, count(*), count(c.o) from t a join t b on b.s = a.o "
                                                             "left join t c on c.s = b.o and c.p = {p[0]} group by 1, 2",
    "distinct computed rows": "select distinct a.p % 3, b.p || 'x' from t a join t b on b.s = a.o join t c on c.s = b.o",
    "computed keys of single quads": "select o % 13 as k, p, count(*), min(o), max(s % 99) from t where g <> 7 group by 1, 2 having count(*) > 1",
    "distinct computed rows of single quads": "select distinct o % 13, 'k' || p from t where o > {s}",
    "least and greatest of single quads": "select p, min(s % 99 + o % 77), max(o) from t group by p",
    "distinct rows": "select distinct a.o, c.o from t a join t b on b.s = a.o join t c on c.s = b.o",
    "distinct rows of optional": "select distinct a.p, c.o from t a join t b on b.s = a.o left join t c on c.s = b.o and c.p = {p[0]}",
    "distinct rows in order": "select distinct c.o, a.p from t a join t b on b.s = a.o join t c on c.s = b.o order by c.o desc, a.p limit 7",
    "distinct values by group": "select b.p, count(distinct c.o), count(distinct a.s), count(*), min(c.o), max(a.s % 99 + b.o % 77) from t a join t b on b.s = a.o "
                                "join t c on c.s = b.o group by b.p having count(distinct c.o) > 3",
    "distinct values": "select count(distinct c.o), count(distinct a.p), min(a.s), max(c.o), count(*) from t a join t b on b.s = a.o join t c on c.s = b.o",
    "distinct values of optional": "select a.p, count(distinct c.o), max(c.o), min(c.o) from t a join t b on b.s = a.o "
                                   "left join t c on c.s = b.o and c.p = {p[0]} group by a.p",
    "distinct values of nothing": "select count(distinct c.o), min(c.o) from t a join t b on b.s = a.o join t c on c.s = b.o where a.p = 5",
    "many distinct values": "select a.s, count(distinct c.s), max(c.o) from t a join t b on b.s = a.o join t c on c.s = b.o group by a.s",
    "first rows": "select a.s, b.o, c.o from t a join t b on b.s = a.o join t c on c.s = b.o order by c.o desc, b.o, a.s limit 9 offset 4",
    "first rows of optional": "select a.s, b.o, c.o from t a join t b on b.s = a.o left join t c on c.s = b.o and c.p = {p[2]} "
                              "order by c.o nulls first, a.s desc, b.o desc limit 40",
    "all rows in order": "select a.s, b.o from t a join t b on b.s = a.o order by b.o, a.s limit 9000",
    "nothing": "select a.s from t a join t b on b.s = a.o join t c on c.s = b.o where a.p = 5",
    "union": "select a.s, b.o from t a join t b on b.s = a.o where a.p = {p[0]} union all "
             "select a.s, c.o from t a join t b on b.s = a.o join t c on c.s = b.o where a.p = {p[1]}",
    "own filter": "select a.s, b.o from t a join t b on b.s = a.o where (a.s % 5 + b.o % 5) % 3 = 0 and a.p = {p[0]}",
    "case of a test": "select a.s, b.o from t a join t b on b.s = a.o where (case a.s % 3 = b.o % 3 when true then a.s % 2 = 0 else b.o % 2 = 0 end) "
                      "and case a.s % 5 when b.o % 5 then false when 1 then case b.o % 2 when 0 then true end else true end",
    "statement inside": "select a.s, b.o from t a join t b on b.s = a.o where a.p = (select min(p) from t where p > {p[0]})",
    "rescans": "select v.p, (select count(*) from t a join t b on b.s = a.o where a.p = v.p) from (select distinct p from t order by 1 limit 3) v",
}

# SPARQL over the store `words`: filters on ids, filters that need terms, functions.
WORDS = {
    "numbers": "SELECT ?a ?c WHERE { ?a :next ?b . ?b :value ?v . ?b :next ?c FILTER(?v > 20 && ?v < 60) }",
    "terms": 'SELECT ?a ?n WHERE { ?a :next ?b . ?b :name ?n FILTER(CONTAINS(?n, "7") && STRLEN(?n) > 4) }',
    "equal values": "SELECT ?a ?b WHERE { ?a :value ?v . ?b :weight ?w . ?a :next ?b FILTER(?v = ?w) }",
    "optional": "SELECT ?a ?n WHERE { ?a :next ?b OPTIONAL { ?b :name ?n FILTER(REGEX(?n, \"1.*2\")) } }",
    "minus": "SELECT ?a WHERE { ?a :next/:next ?b MINUS { ?b :value ?v FILTER(?v > 50) } }",
    "groups": "SELECT ?v (COUNT(*) AS ?n) WHERE { ?a :next ?b . ?b :next ?c . ?c :value ?v } GROUP BY ?v",
    "values": "SELECT ?a ?c WHERE { VALUES ?a { :n1 :n2 :n3 } ?a :next ?b . ?b :next ?c }",
    "ordered": "SELECT ?a ?v WHERE { ?a :next ?b . ?b :value ?v } ORDER BY DESC(?v) ?a LIMIT 5",
    "ordered by terms": "SELECT ?a ?n ?v WHERE { ?a :next ?b . ?b :name ?n . ?a :value ?v } ORDER BY ?n DESC(?a) LIMIT 12",
    "ordered by optional terms": "SELECT ?a ?b ?n WHERE { ?a :next ?b OPTIONAL { ?b :name ?n FILTER(REGEX(?n, \"1\")) } } ORDER BY ?n ?a ?b LIMIT 500",
    "ordered by mixed terms": "SELECT ?b ?x ?a WHERE { ?a :next ?b . ?b :price|:name|:weight|:next ?x } ORDER BY DESC(?x) ?b ?a LIMIT 30 OFFSET 3",
    "sums": "SELECT ?v (SUM(?w) AS ?sum) (AVG(?w) AS ?avg) (COUNT(*) AS ?n) WHERE { ?a :next ?b . ?b :weight ?w . ?a :value ?v } GROUP BY ?v",
    "one sum": "SELECT (SUM(?v) AS ?sum) (AVG(?v) AS ?avg) (COUNT(?a) AS ?n) WHERE { ?a :next ?b . ?b :next ?c . ?c :value ?v }",
    "sums of floats": "SELECT ?w (SUM(xsd:float(?v)) AS ?sum) (AVG(xsd:float(STR(?v))) AS ?avg) WHERE { ?a :next ?b . ?b :value ?v . ?a :weight ?w } GROUP BY ?w",
    "sums of terms": "SELECT ?v (SUM(?price) AS ?sum) (AVG(?price) AS ?avg) WHERE { ?a :next ?b . ?b :price ?price . ?b :value ?v } GROUP BY ?v",
    "sums of mixed numbers": "SELECT (SUM(?x) AS ?sum) (AVG(?x) AS ?avg) WHERE { ?a :next ?b . ?b :value|:weight ?x }",
    "a sum of nothing": "SELECT (SUM(?v) AS ?sum) (AVG(?v) AS ?avg) WHERE { ?a :next ?b . ?b :nothing ?v }",
    "sums of nothing": "SELECT ?a (SUM(?v) AS ?sum) WHERE { ?a :next ?b . ?b :nothing ?v } GROUP BY ?a",
    "a sum of what is no number": "SELECT (SUM(?n) AS ?sum) (COUNT(*) AS ?count) WHERE { ?a :next ?b . ?b :name ?n }",
    "sums with an error in some": "SELECT ?v (SUM(?x) AS ?sum) (COUNT(?x) AS ?n) WHERE { ?a :next ?b . ?b :value ?v OPTIONAL { ?b :weight ?x FILTER(?v != 7) } } GROUP BY ?v",
    "having": "SELECT ?v (COUNT(*) AS ?n) WHERE { ?a :next ?b . ?b :value ?v } GROUP BY ?v HAVING (COUNT(*) > 9)",
    "having a sum": "SELECT ?v (AVG(?w) AS ?avg) WHERE { ?a :next ?b . ?b :weight ?w . ?a :value ?v } GROUP BY ?v HAVING (SUM(?w) > 110 && COUNT(*) < 10)",
    "distinct values": "SELECT (COUNT(DISTINCT ?v) AS ?n) (COUNT(DISTINCT ?a) AS ?m) WHERE { ?a :next ?b . ?b :next ?c . ?c :value ?v }",
    "distinct values by group": "SELECT ?v (COUNT(DISTINCT ?c) AS ?n) (SUM(?w) AS ?sum) WHERE { ?a :next ?b . ?b :next ?c . ?c :value ?v . ?a :weight ?w } GROUP BY ?v",
    "distinct terms": "SELECT DISTINCT ?n ?v WHERE { ?a :next ?b . ?b :next ?c . ?c :name ?n . ?a :value ?v }",
    "extremes": "SELECT ?v (MIN(?n) AS ?first) (MAX(?n) AS ?last) (MIN(?b) AS ?b1) (MAX(?w) AS ?w1) WHERE { ?a :next ?b . ?b :name ?n ; :weight ?w . ?a :value ?v } GROUP BY ?v",
    "extremes of mixed terms": "SELECT (MIN(?x) AS ?first) (MAX(?x) AS ?last) WHERE { ?a :next ?b . ?b :price|:name|:weight|:next ?x }",
    "extremes of optional": "SELECT ?v (MIN(?n) AS ?first) (MAX(?n) AS ?last) WHERE { ?a :next ?b . ?a :value ?v OPTIONAL { ?b :name ?n FILTER(?v != 7) } } GROUP BY ?v",
    "an extreme of nothing": "SELECT (MIN(?v) AS ?first) (MAX(?v) AS ?last) WHERE { ?a :next ?b . ?b :nothing ?v }",
    "samples": "SELECT ?v (COUNT(?n) AS ?rows) WHERE { { SELECT ?v (SAMPLE(?b) AS ?n) WHERE { ?a :next ?b . ?b :value ?v } GROUP BY ?v } } GROUP BY ?v",
    "sums of computed values": "SELECT ?v (SUM(?w * ?price) AS ?sum) (AVG(?w + 1) AS ?avg) WHERE { ?a :next ?b . ?b :weight ?w ; :price ?price . ?a :value ?v } GROUP BY ?v",
    "sums of computed errors": "SELECT (SUM(?n + 1) AS ?sum) (SUM(STRLEN(?n)) AS ?lengths) WHERE { ?a :next ?b . ?b :name ?n }",
    "groups by computed terms": "SELECT ?k (COUNT(*) AS ?n) (SUM(?w) AS ?sum) (MIN(?n1) AS ?first) WHERE { ?a :next ?b . ?b :weight ?w . ?a :name ?n1 } GROUP BY (SUBSTR(?n1, 6, 1) AS ?k)",
    "groups by computed errors": "SELECT ?k (COUNT(*) AS ?n) (AVG(?v) AS ?avg) WHERE { ?a :next ?b . ?b :value|:name ?x . ?a :value ?v } GROUP BY (FLOOR(?x / 10) AS ?k)",
    "distinct computed terms": "SELECT (COUNT(DISTINCT STRLEN(?n)) AS ?c) WHERE { ?a :next ?b . ?b :name ?n }",
    "datatypes": "SELECT ?p ?t (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p (DATATYPE(?o) AS ?t)",
    "sums of single triples": "SELECT ?p (SUM(?o) AS ?sum) (AVG(STRLEN(STR(?o))) AS ?avg) (MIN(?o) AS ?first) WHERE { ?s ?p ?o } GROUP BY ?p",
    "choices": "SELECT ?a ?b WHERE { ?a :next ?b . ?a :value ?v . ?b :weight ?w FILTER(IF(?v > ?w, ?w > 3, IF(?v = 7, true, ?w < 2))) }",
    "sums of choices": "SELECT (SUM(IF(?v = ?w, 1, 0)) AS ?n) (MAX(IF(?v > ?w, ?v, ?w)) AS ?m) WHERE { ?a :next ?b . ?a :value ?v . ?b :weight ?w }",
    "choices that are errors": "SELECT ?a WHERE { ?a :next ?b . ?b :name ?n OPTIONAL { ?b :value ?v FILTER(IF(?n > 3, true, ?v > 5)) } FILTER(IF(BOUND(?v), ?v > 3, true)) }",
    "dates": "SELECT ?a WHERE { ?a :next ?b . ?b :value ?v FILTER(?v * 2 < YEAR(NOW()) - 1950) }",
}


def words():
    lines = []
    for n in range(400):
        lines += [f":n{n} :next :n{n * 7 % 400} , :n{(n + 1) % 400} ; :value {n % 97} ; :weight {float(n % 31)} ; :price {n}.123456789012345 ; :name \"name {n * 13 % 1000}\" ."]
    return "@prefix : <http://e/> .\n" + "\n".join(lines)


def peak_kilobytes(pid):
    """The most memory that a process has had."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def nodes_of(plan):
    """A plan of EXPLAIN (FORMAT JSON) and all below it."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes_of(child)


class Push:
    def __init__(self, cluster):
        self.cluster = cluster
        self.report = Report("push")
        self.connections = [server.connect() for server in cluster.servers]
        for connection in self.connections:
            connection.autocommit = True
        quads = random_quads(QUADS, 13)
        first = self.connections[0]
        with first.cursor() as cursor:
            cursor.execute(
                "select quad.create_store('many', distributed => true, shards => 6), quad.create_store('one')"
            )
            for store in "many", "one":
                cursor.execute(f"insert into quad_stores.{store} select * from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])",
                               [list(column) for column in zip(*quads)])
            cursor.execute(
                "select quad.create_store('words', distributed => true, shards => 6), quad.create_store('one_words')"
            )
            for store in "words", "one_words":
                cursor.execute("select quad.load_text(%s, format => 'turtle', store => %s)", (words(), store))
        predicates = Counter(p for _, p, _, _ in quads)
        subjects = Counter(s for s, _, _, _ in quads)
        self.names = {"p": [p for p, _ in predicates.most_common()], "s": sorted(subjects)[len(subjects) // 2]}

    def ask(self, sql, node=0, **settings):
        with self.connections[node].cursor() as cursor:
            for name, value in settings.items():
                cursor.execute(f"set quad.{name} = %s", (str(value),))
            cursor.execute(sql)
            rows = Counter(map(repr, cursor.fetchall()))
            for name in settings:
                cursor.execute(f"reset quad.{name}")
            return rows

    def explain(self, sql, node=0, **settings):
        rows = self.ask("explain (analyze, costs off, timing off, summary off) " + sql, node, **settings)
        return "\n".join(eval(row)[0] for row in rows)

    def run(self):
        for check in [
            self.answers, self.answers_in_sparql, self.pushes_indeed, self.sums, self.groups_in_files,
            self.computed_terms, self.fed_rows, self.fed_rows_of_one_snapshot,
            self.participants_are_started_for_much, self.stores_on_some_of_the_nodes, self.what_is_not_pushed, self.settings_of_the_session,
            self.snapshots, self.limits, self.cancels, self.errors, self.roles, self.many_at_once,
            self.nodes_that_disagree, self.limits_of_roles, self.full_nodes,
            self.slow_clients, self.parts_of_one_snapshot, self.savepoints_between_batches, self.nothing_stays,
        ]:
            try:
                check()
            except Exception as error:  # whatever it is, the other checks still run
                self.report.check(False, check.__name__, " ".join(str(error).splitlines()[:3]))
                self.connections = [server.connect() for server in self.cluster.servers]

    def answers(self):
        for name, query in QUERIES.items():
            query = query.format(**self.names)
            expected = self.ask(query.replace(" t ", " quad_stores.one "))
            many = query.replace(" t ", " quad_stores.many ")
            for node, batch in ((0, 0), (1, 1024), (2, 65536)):
                found = self.ask(many, node, exchange_mode="push", exchange_batch_bytes=batch)
                self.report.check(found == expected, f"{name}, batches of {batch} bytes",
                                  f"{sum(found.values())} rows of {sum(expected.values())}")

    def answers_in_sparql(self):
        for name, query in WORDS.items():
            sql = f"select quad.sparql($q${PREFIX}{query}$q$, store => 'words')"
            expected = self.ask(sql.replace("'words'", "'one_words'"))
            for node, batch in ((0, 0), (1, 1024)):
                found = self.ask(sql, node, exchange_mode="push", exchange_batch_bytes=batch)
                self.report.check(found == expected, f"SPARQL {name}, batches of {batch} bytes",
                                  f"{sum(found.values())} rows of {sum(expected.values())}")

    def pushes_indeed(self):
        # The first two patterns of the last one meet without a row on its way: the first is read by object.
        for name in "chain", "triangle", "not exists", "groups", "own filter":
            plan = self.explain(
                QUERIES[name].format(**self.names).replace(" t ", " quad_stores.many "), 1, exchange_mode="push"
            )
            lines = [line for line in plan.splitlines() if "Participant:" in line]
            pushed = sum(int(line.split("pushed=")[1].split()[0]) for line in lines)
            self.report.check(
                "Exchange: push nodes=3" in plan and len(lines) == 3 and (pushed > 0) == (name != "own filter"),
                f"{name} is pushed",
                plan[:800],
            )
        # For programs, each figure has a property, and each participant an object of its own.
        chain = QUERIES["chain"].format(**self.names).replace(" t ", " quad_stores.many ")
        with self.connections[1].cursor() as cursor:
            for mode in "push", "pull":
                cursor.execute(f"set quad.exchange_mode = {mode}")
                cursor.execute("explain (analyze, format json) " + chain)
                nodes = list(nodes_of(cursor.fetchone()[0][0]["Plan"]))
                joins = [node for node in nodes if node.get("Custom Plan Provider") == "Quad Join"]
                messages = [pattern["Shard Messages"] for join in joins for pattern in join["Patterns"]]
                participants = [participant for join in joins for participant in join.get("Participants", [])]
                if mode == "push":
                    ok = (
                        len({participant["Node"] for participant in participants}) == 3
                        and sum(p["Messages"] for p in participants) > 0
                    )
                else:
                    ok = not participants and sum(messages) > 0
                self.report.check(ok, f"JSON of a join in mode {mode}", (messages, participants))
            cursor.execute("reset quad.exchange_mode")
        # The node that was asked gets counts, not rows.
        count = self.explain(QUERIES["count"].replace(" t ", " quad_stores.many "), 0, exchange_mode="push")
        received = int(count.split("received=")[1].split("kB")[0])
        self.report.check(received <= 8, "a count is counted where the quads are", count[:800])

    def sums(self):
        """The nodes add up their own numbers; the node that was asked gets one sum of each for each group."""
        for name in ("sums", "sums of floats", "sums of terms", "having a sum", "distinct values", "distinct values by group", "extremes",
                     "extremes of optional", "sums of computed values", "datatypes", "sums of single triples"):
            with self.connections[1].cursor() as cursor:
                cursor.execute("set quad.exchange_mode = push")
                cursor.execute(
                    "select quad.explain(%s, \"analyze\" => true, store => 'words')", (PREFIX + WORDS[name],)
                )
                plan = "\n".join(row[0] for row in cursor.fetchall())
                cursor.execute("reset quad.exchange_mode")
            self.report.check(
                "Quad Count" in plan and "HashAggregate" not in plan and "Exchange: push nodes=3" in plan,
                f"{name} are added up by the nodes",
                plan[:1200],
            )
        # Of the distinct rows, only the answer passes the node that was asked: three numbers a row at most.
        for name in "distinct rows", "many distinct values", "distinct values":
            query = QUERIES[name].format(**self.names).replace(" t ", " quad_stores.many ")
            plan = self.explain(query, 1, exchange_mode="push")
            rows = sum(self.ask(query, 1).values())
            received = int(plan.split("received=")[1].split("kB")[0]) * 1024
            self.report.check(
                "Quad Count" in plan and "Exchange: push nodes=3" in plan and received < 24 * 3 * rows + 8192,
                f"{name} are found by the nodes",
                plan[:1200],
            )
        # Of an order no more rows than are asked for.
        for name, most in (("first rows", 13), ("first rows of optional", 40)):
            plan = self.explain(
                QUERIES[name].format(**self.names).replace(" t ", " quad_stores.many "), 2, exchange_mode="push"
            )
            sent = [int(line.split("rows=")[1].split()[0]) for line in plan.splitlines() if "Participant:" in line]
            self.report.check(len(sent) == 3 and max(sent) <= most, f"each node sends {most} {name}", plan[:1200])
        with self.connections[1].cursor() as cursor:
            cursor.execute("set quad.exchange_mode = push")
            cursor.execute(
                "select quad.explain(%s, \"analyze\" => true, store => 'words')", (PREFIX + WORDS["ordered by terms"],)
            )
            plan = "\n".join(row[0] for row in cursor.fetchall())
            cursor.execute("reset quad.exchange_mode")
            sent = [int(line.split("rows=")[1].split()[0]) for line in plan.splitlines() if "Participant:" in line]
            self.report.check(len(sent) == 3 and max(sent) <= 12, "each node sends the first terms", plan[:1200])
        # What only this session can compute stays here, and is right.
        query = (
            "select b.o, sum(a.s), max(a.o) from quad_stores.many a join quad_stores.many b on b.s = a.o group by b.o"
        )
        self.report.check(
            self.ask(query, exchange_mode="push") == self.ask(query.replace(".many", ".one")), "other aggregates"
        )

    def groups_in_files(self):
        """Groups that a node has no memory for go to its files, and EXPLAIN says so."""
        query = "select a.s, c.o, count(*), count(distinct b.o), max(c.s) from t a join t b on b.s = a.o join t c on c.s = b.o group by a.s, c.o"
        expected = self.ask(query.replace(" t ", " quad_stores.one "))
        pushed = query.replace(" t ", " quad_stores.many ")
        few = self.explain(QUERIES["groups"].replace(" t ", " quad_stores.many "), 1, exchange_mode="push")
        self.report.check(
            "Participant:" in few and "groups_spilled=" not in few, "groups that memory has room for", few[:1200]
        )
        # The memory is that of the session that asks, whatever the nodes have for their own.
        def spilled(memory, multiplier):
            with self.connections[1].cursor() as cursor:
                cursor.execute("set work_mem = %s", (memory,))
                cursor.execute("set hash_mem_multiplier = %s", (multiplier,))
            plan = self.explain(pushed, 1, exchange_mode="push")
            return len([line for line in plan.splitlines() if "Participant:" in line and "groups_spilled=" in line]), plan[:1500]
        try:
            nodes, plan = spilled("64kB", 1)
            self.report.check(nodes == 3, "groups of participants in files", plan)
            self.report.check(self.ask(pushed, 1, exchange_mode="push") == expected, "groups from files")
            self.set_on_all("work_mem", "64kB")
            nodes, plan = spilled("256MB", 1)
            self.report.check(nodes == 0, "groups of participants in the memory of who asks", plan)
            nodes, plan = spilled("64kB", 1000)
            self.report.check(nodes == 0, "groups of participants in as much memory for hashing as who asks has", plan)
        finally:
            self.set_on_all("work_mem", None)
            with self.connections[1].cursor() as cursor:
                cursor.execute("reset work_mem")
                cursor.execute("reset hash_mem_multiplier")

    def set_on_all(self, name, value):
        for server in self.cluster.servers:
            server.alter_system(name, value)

    def computed_terms(self):
        """Terms that sums are computed over are given back row by row, not batch by batch."""
        most = {}
        for length in 10, 100_000:
            query = f'SELECT (SUM(STRLEN(CONCAT(?n, "{"x" * length}")) + 0.5) AS ?sum) WHERE {{ ?a :next ?b . ?b :name ?n }}'
            with closing(self.cluster.servers[0].connect()) as connection, connection.cursor() as cursor:
                cursor.execute("set quad.exchange_mode = pull")
                cursor.execute("select quad.sparql(%s, store => 'words')", (PREFIX + query,))
                found = cursor.fetchall()
                cursor.execute("select pg_backend_pid()")
                most[length] = peak_kilobytes(cursor.fetchone()[0])
        self.report.check(most[100_000] - most[10] < 32 << 10, "memory of computed terms", f"{most} {found}"[:200])

    def fed_rows(self):
        """Rows that come from below: pushed batch by batch where much is to be expected of one, pulled otherwise."""
        for rows, joined, how in ((6000, 3, "push"), (2000, 1, "pull"), (5, 3, "pull")):
            others = "".join(f" join quad_stores.many b{n} on b{n}.s = b{n - 1}.o" for n in range(1, joined))
            query = (f"select count(*), sum(v.n + b{joined - 1}.o % 1000) from (select o, row_number() over () as n from quad_stores.one order by s, o limit {rows}) v "
                     f"join quad_stores.many b0 on b0.s = v.o{others}")
            expected = self.ask(query.replace(".many", ".one"))
            for mode in "auto", "push", "pull":
                self.report.check(
                    self.ask(query, exchange_mode=mode, exchange_min_quads=20_000) == expected,
                    f"{rows} fed rows joined {joined} times, {mode}",
                )
            plan = self.explain(query, exchange_mode="auto", exchange_min_quads=20_000)
            self.report.check(
                f"Exchange: {how}" in plan, f"{rows} fed rows joined {joined} times are to {how}", plan[:1500]
            )

    def fed_rows_of_one_snapshot(self):
        """Each batch of fed rows is a push of its own: all read the snapshot of the statement, whatever is committed
        meanwhile."""
        with self.connections[0].cursor() as cursor:
            cursor.execute("select quad.create_store('fed', distributed => true, shards => 6)")
            cursor.execute("insert into quad_stores.fed select i, 1, i, 1 from generate_series(1, 3000) i")
        query = ("select v.n, c.o from (select s as n from quad_stores.fed order by s limit 3000) v "
                 "join quad_stores.fed b on b.s = v.n join quad_stores.fed c on c.s = b.o")
        for inside in (False, True):
            with (
                closing(self.cluster.servers[0].connect(autocommit=False)) as connection,
                connection.cursor() as cursor,
            ):
                if inside:
                    # A savepoint's snapshot cannot be given away: these rows are pulled.
                    cursor.execute("savepoint inside")
                cursor.execute(f"set local quad.exchange_mode = push; declare c cursor for {query}")
                cursor.execute("fetch 1 from c")
                first = len(cursor.fetchall())
                with self.connections[2].cursor() as other:
                    other.execute("delete from quad_stores.fed where s % 2 = 0")
                cursor.execute("fetch all from c")
                found = first + len(cursor.fetchall())
                self.report.check(
                    found == 3000, f"fed rows of one snapshot{', in a savepoint' if inside else ''}", str(found)
                )
                connection.rollback()
            with self.connections[2].cursor() as other:
                other.execute("insert into quad_stores.fed select i, 1, i, 1 from generate_series(2, 3000, 2) i")

    def participants_are_started_for_much(self):
        """A session without participants pulls until what it would have pushed adds up; one that has them pushes at
        once."""
        query = "explain (analyze, costs off, timing off, summary off) " + QUERIES["count"].replace(" t ", " quad_stores.many ")
        with closing(self.cluster.servers[1].connect()) as connection, connection.cursor() as cursor:

            def exchange():
                cursor.execute(query)
                return next((row[0].strip() for row in cursor.fetchall() if "Exchange: " in row[0]), "no exchange")

            def found():
                cursor.execute(query)
                return sum(
                    int(row[0].split(" rows=")[1].split()[0]) for row in cursor.fetchall() if "Pattern: " in row[0]
                )

            cursor.execute("set quad.exchange_mode = pull")
            quads = [found() for _ in range(5)][-1]
            cursor.execute(f"set quad.exchange_mode = auto; set quad.exchange_min_quads = {quads * 10}")
            few = exchange()
            self.report.check(few == "Exchange: pull (few quads are expected)", "few quads", few)
            cursor.execute(f"set quad.exchange_min_quads = {quads // 2}")
            seen = [exchange() for _ in range(5)]
            pulled = [how == "Exchange: pull (participants would have to be started)" for how in seen]
            self.report.check(
                pulled[0] and not any(pulled[-2:]) and sorted(pulled, reverse=True) == pulled,
                "pulled at first",
                str(seen),
            )
            self.report.check(seen[-1].startswith("Exchange: push nodes=3"), "pushed then", str(seen))

    def stores_on_some_of_the_nodes(self):
        """A session pushes joins of stores on all nodes and on two of them in turn: the participants keep the links that
        they need."""
        with closing(self.cluster.servers[0].connect()) as connection, connection.cursor() as cursor:
            cursor.execute("select quad.create_store('pair', distributed => true, shards => 2)")
            cursor.execute("insert into quad_stores.pair select * from quad_stores.one")
            cursor.execute("set quad.exchange_mode = push")
            expected = {}
            for store in ("many", "pair", "pair", "many", "many", "pair", "many"):
                began = time.monotonic()
                query = QUERIES["chain"].format(**self.names)
                cursor.execute(query.replace(" t ", f" quad_stores.{store} "))
                rows = Counter(cursor.fetchall())
                took = time.monotonic() - began
                same = expected.setdefault("rows", rows) == rows
                self.report.check(same and took < 2, f"pushed over the nodes of {store}", f"{took:.1f} s, {len(rows)} rows")
            cursor.execute("select quad.drop_store('pair')")

    def what_is_not_pushed(self):
        chain = QUERIES["chain"].format(**self.names).replace(" t ", " quad_stores.many ")
        for why, query, settings in [
            ("few rows may be enough", chain + " limit 1", {"exchange_mode": "auto"}),
            ("few quads are expected", chain, {"exchange_mode": "auto"}),
            ("a table is not distributed", chain.replace("many c", "one c"), {"exchange_mode": "push"}),
            ("a filter has to be tested here", chain + " and to_char(a.s, '9') <> 'x'", {"exchange_mode": "push"}),
        ]:
            plan = self.explain(query, **settings)
            self.report.check(f"Exchange: pull ({why})" in plan, why, plan[:800])
        plan = self.explain(chain, exchange_mode="pull")
        self.report.check("Exchange" not in plan, "mode pull", plan[:800])
        with closing(self.cluster.servers[0].connect()) as connection, connection.cursor() as cursor:
            for begin in (
                "begin isolation level serializable",
                "begin isolation level repeatable read; savepoint inside",
            ):
                cursor.execute(begin + "; set local quad.exchange_mode = push")
                cursor.execute("explain (analyze, costs off) " + chain)
                plan = "\n".join(row[0] for row in cursor.fetchall())
                cursor.execute("rollback")
                self.report.check(
                    "Exchange: pull (the transaction keeps its snapshot)" in plan,
                    f"the transaction keeps its snapshot: {begin}",
                    plan[:800],
                )
            cursor.execute("begin; set local quad.exchange_mode = push; insert into quad_stores.many values (1, 2, 3, 4), (3, 2, 5, 4)")
            cursor.execute("select a.s, b.o from quad_stores.many a join quad_stores.many b on b.s = a.o where a.p = 2 and b.p = 2 and a.s = 1")
            self.report.check(cursor.fetchall() == [(1, 5)], "the transaction has written")
            cursor.execute("rollback")

    def settings_of_the_session(self):
        """What a filter means is what the session that was asked takes it for."""
        names = 'SELECT ?a WHERE { ?a :next ?b . ?b :name ?n FILTER(REGEX(?n, "^name \\\\d\\\\d$")) }'
        times = "SELECT ?a ?t ?n WHERE { ?a :at ?t ; :name ?n }"
        # Times without a zone are of the session's, and which number is the month is its matter, too.
        of_zone = f"select a from quad.query($q${PREFIX}{times}$q$, store => 'words') as t(a text, t timestamptz, n text) where t >= '2020-01-01 12:00:00+00'"
        of_order = (f"select a from quad.query($q${PREFIX}{times.replace(':at', ':on')}$q$, store => 'words') as t(a text, t date, n text) "
                    "where t < '2020-03-01'::date")
        of_type = f"select a from quad.query($q${PREFIX}{times}$q$, store => 'words') as t(a text, t text, n pg_temp.kind) where n > 'name 1'"
        data = "\n".join(f':h{n} :at "2020-01-01T{n:02}:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime> ; :on "{n % 12 + 1:02}/02/2020" ; :name "name {n % 3}" .'
                         for n in range(24))
        for store in "words", "one_words":
            self.ask(
                f"select quad.load_text($q$@prefix : <http://e/> .\n{data}$q$, format => 'turtle', store => '{store}')"
            )
        for what, sql, prepare in [
            (
                "backslashes",
                f"select quad.sparql($q${PREFIX}{names}$q$, store => 'words')",
                "set standard_conforming_strings = off",
            ),
            ("the time zone", of_zone, "set timezone = 'Asia/Tokyo'"),
            ("days before months", of_order, "set datestyle = 'ISO, DMY'"),
            ("a type of the session", of_type, "create type pg_temp.kind as enum ('name 0', 'name 1', 'name 2')"),
            (
                "digits of floats",
                "select a.s, b.o from quad_stores.many a join quad_stores.many b on b.s = a.o "
                "where (a.s % 1000)::float8 * 1.23456789012345678 > (b.o % 1000)::float8 * 1.23456789012345612",
                "set extra_float_digits = -10",
            ),
        ]:
            with closing(self.cluster.servers[0].connect()) as connection, connection.cursor() as cursor:
                connection.autocommit = True
                cursor.execute(prepare)

                def found(query, mode, cursor=cursor):
                    cursor.execute(f"set quad.exchange_mode = {mode}")
                    cursor.execute(query)
                    return Counter(map(repr, cursor.fetchall()))

                expected = found(sql.replace("'words'", "'one_words'").replace("stores.many", "stores.one"), "pull")
                self.report.check(
                    bool(expected) and found(sql, "push") == expected, what, f"{sum(expected.values())} rows"
                )
        for store in "words", "one_words":
            self.ask(f"select quad.update($q${PREFIX} DELETE {{ ?s ?p ?o }} WHERE {{ ?s :at ?t ; ?p ?o }}$q$, store => '{store}')")

    def snapshots(self):
        """Pushed, pulled, pushed again: a REPEATABLE READ transaction sees one state of each node, its own and the
        others."""
        with self.connections[0].cursor() as cursor:
            cursor.execute("select quad.create_store('still', distributed => true, shards => 6)")
            cursor.execute(
                "insert into quad_stores.still select i, 1, i * 7 % 100 + 1, 1 from generate_series(1, 100) i"
            )
        query = "select count(*) from quad_stores.still a join quad_stores.still b on b.s = a.o join quad_stores.still c on c.s = b.o"
        for turn, modes in enumerate([("push", "pull", "push"), ("pull", "push", "push")]):
            before = (100 * (turn + 1),)
            with (
                closing(self.cluster.servers[turn].connect(autocommit=False)) as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute("set transaction isolation level repeatable read")
                seen = []
                for n, mode in enumerate(modes):
                    cursor.execute(f"set quad.exchange_mode = {mode}")
                    cursor.execute(query)
                    seen.append(cursor.fetchone())
                    if n == 0:
                        # A hundred more chains, in all shards, that this transaction does not see.
                        with self.connections[2].cursor() as other:
                            other.execute(f"insert into quad_stores.still select i + {1000 * (turn + 1)}, 1, i * 7 % 100 + {1000 * (turn + 1) + 1}, 1 "
                                          "from generate_series(1, 100) i")
                self.report.check(seen == [before] * 3, f"one snapshot, {modes[0]} first", str(seen))
                connection.rollback()
                cursor.execute("set transaction isolation level repeatable read; set local quad.exchange_mode = push")
                cursor.execute("explain (analyze, costs off) " + query)
                plan = "\n".join(row[0] for row in cursor.fetchall())
                self.report.check(
                    "Exchange: push nodes=3" in plan, "a REPEATABLE READ transaction is pushed", plan[:800]
                )
                connection.rollback()
        found = self.ask(query, exchange_mode="push")
        self.report.check(found == Counter({"(300,)": 1}), "the next transaction sees more", str(found))
        for server in self.cluster.servers:
            with open(server.log, encoding="utf-8", errors="replace") as log:
                warnings = [line.rstrip() for line in log if "WARNING" in line and "SET TRANSACTION" in line]
            self.report.check(
                not warnings, f"no warnings of snapshots on {os.path.basename(server.dir)}", "; ".join(warnings[:2])
            )

    def limits(self):
        """The participants stop when the rest is of no use, and go on with the next query."""
        query = "select a.s, c.o from quad_stores.many a join quad_stores.many b on b.s = a.o join quad_stores.many c on c.s = b.o"
        whole = self.ask(query)
        for limit in (0, 1, 7, 1000) * 2:
            found = self.ask(f"{query} limit {limit}", exchange_mode="push", exchange_batch_bytes=1024)
            self.report.check(sum(found.values()) == limit and not found - whole, f"limit {limit}")
        with self.connections[1].cursor() as cursor:
            cursor.execute("begin; set local quad.exchange_mode = push")
            cursor.execute(f"declare c cursor for {query}; fetch 10 from c")
            rows = cursor.fetchall()
            cursor.execute("close c; commit")
            self.report.check(len(rows) == 10, "a cursor that is closed early")

    def cancels(self):
        """Nothing goes on after the query that was asked is cancelled."""
        endless = ("select count(*) from " + ", ".join(f"quad_stores.many q{n}" for n in range(6))
                   + " where " + " and ".join(f"q{n}.s <> q{n + 1}.s" for n in range(5)))
        with closing(self.cluster.servers[0].connect()) as connection:
            with connection.cursor() as cursor:
                cursor.execute("set quad.exchange_mode = push; set statement_timeout = '2s'")
                started = time.monotonic()
                try:
                    cursor.execute(endless)
                    self.report.check(False, "a query that is cancelled ends")
                except psycopg2.errors.QueryCanceled:
                    took = time.monotonic() - started
                    self.report.check(took < 60, "a query that is cancelled ends", f"after {took:.1f} s")
                cursor.execute("reset statement_timeout")
            self.report.check(self.at_rest(), "participants of a cancelled query stop", str(self.busy()))
            found = self.ask(QUERIES["count"].replace(" t ", " quad_stores.many "), exchange_mode="push")
            expected = self.ask(QUERIES["count"].replace(" t ", " quad_stores.one "))
            self.report.check(found == expected, "the next query works")
        self.terminates(endless)

    def terminates(self, endless):
        """The end of one participant is that of the query, which says whose."""
        ended = []

        def work():
            with closing(self.cluster.servers[0].connect()) as connection, connection.cursor() as cursor:
                cursor.execute("set quad.exchange_mode = push")
                try:
                    cursor.execute(endless)
                except psycopg2.Error as error:
                    ended.append(str(error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        at_work = "from pg_stat_activity where query like 'SELECT quad.cluster_push%' and state = 'active'"
        server = self.cluster.servers[1]
        wait_until("the participant is at work", lambda: server.query(f"select pid {at_work}"))
        # The query has no end of its own: a moment later the participant is in the middle of the join.
        time.sleep(1)
        killed = server.query(f"select count(pg_terminate_backend(pid)) {at_work}")[0][0]
        thread.join(60)
        port = str(server.port)
        self.report.check(
            killed == 1 and not thread.is_alive() and ended and port in ended[0],
            "a participant that is terminated",
            f"{killed} {ended}",
        )
        self.report.check(self.at_rest(), "the other participants stop", str(self.busy()))
        found = self.ask(QUERIES["count"].replace(" t ", " quad_stores.many "), exchange_mode="push")
        self.report.check(
            found == self.ask(QUERIES["count"].replace(" t ", " quad_stores.one ")), "the query after that"
        )

    def errors(self):
        """An error of one node is the error of the query."""
        query = "select a.s, b.o from quad_stores.many a join quad_stores.many b on b.s = a.o where 1 / (a.p - {p[0]}) = b.o and a.o <> 5"
        try:
            self.ask(query.format(**self.names), exchange_mode="push")
            self.report.check(False, "an error in a filter", "none")
        except psycopg2.Error as error:
            self.report.check("division by zero" in str(error), "an error in a filter", str(error))
        self.connections[0].cursor().execute("reset all")
        self.report.check(self.at_rest(), "participants stop after an error", str(self.busy()))
        found = self.ask(QUERIES["count"].replace(" t ", " quad_stores.many "), exchange_mode="push")
        self.report.check(
            found == self.ask(QUERIES["count"].replace(" t ", " quad_stores.one ")), "the query after an error"
        )

    def roles(self):
        """Nobody but nodes may call the participants' functions; who may read the store may have a join pushed."""
        with self.connections[0].cursor() as cursor:
            cursor.execute("create role reader login; grant select on quad_stores.words to reader")
        with closing(self.cluster.servers[0].connect()) as connection:
            with connection.cursor() as cursor:
                cursor.execute("set role reader")
                for call in "select quad.cluster_participant()", "select quad.cluster_push('\\x01')":
                    try:
                        cursor.execute(call)
                        self.report.check(False, call, "is not refused")
                    except psycopg2.errors.InsufficientPrivilege:
                        self.report.check(True, call)
                cursor.execute("set quad.exchange_mode = push")
                cursor.execute("select count(*) from quad.sparql(%s, store => 'words')", (PREFIX + WORDS["terms"],))
                found = cursor.fetchall()
                cursor.execute(
                    "select count(*) from quad.sparql(%s, store => 'words')",
                    (PREFIX + WORDS["terms"].replace("FILTER", "#FILTER").replace("#", "FILTER(true) #", 1) + "\n}",),
                )
                self.report.check(
                    found[0][0] > 0 and cursor.fetchall()[0][0] > found[0][0], "a role that may read the store"
                )

    def many_at_once(self):
        query = QUERIES["groups"].replace(" t ", " quad_stores.many ")
        expected = self.ask(QUERIES["groups"].replace(" t ", " quad_stores.one "))
        wrong = []

        def work(server):
            with closing(server.connect()) as connection:
                with connection.cursor() as cursor:
                    cursor.execute("set quad.exchange_mode = push; set quad.exchange_batch_bytes = 2048")
                    for _ in range(4):
                        cursor.execute(query)
                        found = Counter(map(repr, cursor.fetchall()))
                        if found != expected:
                            wrong.append(sum(found.values()))

        threads = [threading.Thread(target=work, args=(server,), daemon=True) for server in self.cluster.servers * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
        self.report.check(
            not wrong and not any(thread.is_alive() for thread in threads), "many sessions at once", str(wrong)
        )

    def full_nodes(self):
        """A join is pulled where a node takes no session for it, over the session that is there."""
        query = QUERIES["groups"].replace(" t ", " quad_stores.many ")
        expected = self.ask(QUERIES["groups"].replace(" t ", " quad_stores.one "))
        crowd = []
        with closing(self.cluster.coordinator.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("set quad.exchange_mode = pull")
            cursor.execute(query)
            try:
                while True:
                    crowd.append(self.cluster.workers[0].connect())
            except psycopg2.OperationalError as error:
                self.report.check("too many clients" in str(error), "a node that is full", str(error))
            try:
                cursor.execute("set quad.exchange_mode = auto; set quad.exchange_min_quads = 0")
                cursor.execute(query)
                self.report.check(Counter(map(repr, cursor.fetchall())) == expected, "a node that is full: answer")
                cursor.execute("explain (analyze, costs off, timing off, summary off) " + query)
                plan = "\n".join(line for (line,) in cursor.fetchall())
                self.report.check("takes no connections of others)" in plan, "a node that is full: plan", plan)
                cursor.execute("set quad.exchange_mode = push")
                try:
                    cursor.execute(query)
                    self.report.check(False, "a node that is full: push", "has answered")
                except psycopg2.Error as error:
                    self.report.check(error.pgcode == "08001", "a node that is full: push", str(error))
            finally:
                for other in crowd:
                    other.close()
            wait_until("the node has room", self.has_room)
            cursor.execute(query)
            self.report.check(Counter(map(repr, cursor.fetchall())) == expected, "a node that was full: push")

    def slow_clients(self):
        """A client takes its rows as slowly as it likes: no node counts another as lost, and all rows come."""
        query = (
            "select a.s, b.o, c.o, d.o from quad_stores.many a join quad_stores.many b on b.s = a.o "
            "join quad_stores.many c on c.s = b.o join quad_stores.many d on d.s = c.o"
        )
        expected = self.ask(f"select count(*) from ({query}) q")
        with closing(self.cluster.servers[1].connect()) as connection, connection.cursor() as cursor:
            cursor.execute("set quad.exchange_mode = push; set quad.exchange_batch_bytes = 4096")
            cursor.execute("set quad.node_timeout = '1s'")
            for pauses in ((4, 3, 0), (0, 0, 4)):
                cursor.execute(f"begin; declare c cursor for {query}")
                taken = 0
                for pause in pauses:
                    cursor.execute("fetch 5000 from c")
                    taken += len(cursor.fetchall())
                    time.sleep(pause)
                cursor.execute("move forward all from c")
                taken += cursor.rowcount
                name = f"a client that pauses for {pauses} s"
                self.report.check(Counter({f"({taken},)": 1}) == expected, name, f"{taken} of {expected}")
                cursor.execute("rollback")
            # One that never takes the rest.
            cursor.execute(f"begin; declare c cursor for {query}; fetch 10 from c")
            time.sleep(3)
            cursor.execute("close c; commit")
            self.report.check(self.at_rest(), "participants of a cursor that is closed stop", str(self.busy()))
            cursor.execute(f"begin; declare c cursor for {query}; fetch 10 from c")
            time.sleep(1)
        self.report.check(self.at_rest(), "participants of a client that goes stop", str(self.busy()))

    def parts_of_one_snapshot(self):
        """Several joins of a statement see each node in one state, though others write meanwhile."""
        many = "quad_stores.many"
        join = f"select count(*) from {many} a join {many} b on b.s = a.o and b.p = a.p where a.p = -7"
        auto = "set quad.exchange_mode = auto; set quad.exchange_min_quads = 0"
        for settings in ("set quad.exchange_mode = push", auto):
            found = []

            def work(settings=settings, found=found):
                with closing(self.cluster.servers[1].connect()) as connection, connection.cursor() as cursor:
                    cursor.execute(settings)
                    cursor.execute(f"{join} union all select null from pg_sleep(3) union all {join}")
                    found.extend(row[0] for row in cursor.fetchall())

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            time.sleep(1)
            self.ask("insert into quad_stores.many select n, -7, n, 0 from generate_series(1, 200) n returning 1")
            thread.join(60)
            self.report.check(found == [0, None, 0], f"parts of a statement, {settings}", str(found))
            with self.connections[0].cursor() as cursor:
                cursor.execute("delete from quad_stores.many where p = -7")

    def savepoints_between_batches(self):
        """Batches of fed rows go on within a savepoint, which may have no snapshots shared."""
        query = (
            "select v.s, c.o from (select s, p, o from quad_stores.many offset 0) v "
            "join quad_stores.many b on b.s = v.o join quad_stores.many c on c.s = b.o"
        )
        expected = self.ask(f"select count(*) from ({query}) q")
        for least in (100, 1000, 10000):
            with closing(self.cluster.servers[0].connect()) as connection, connection.cursor() as cursor:
                cursor.execute(f"set quad.exchange_min_quads = {least}")
                cursor.execute(f"begin; declare c cursor for {query}; fetch 1 from c; savepoint s")
                cursor.execute("move forward all from c")
                taken = cursor.rowcount + 1
                cursor.execute("commit")
                name = f"fed rows within a savepoint, {least}"
                self.report.check(Counter({f"({taken},)": 1}) == expected, name, f"{taken} of {expected}")

    def has_room(self):
        try:
            self.cluster.workers[0].connect().close()
        except psycopg2.OperationalError:
            return False
        return True

    def nodes_that_disagree(self):
        """A join is pulled while one node has not heard of a shard that was moved; a push says so."""
        query = QUERIES["groups"].replace(" t ", " quad_stores.many ")
        expected = self.ask(QUERIES["groups"].replace(" t ", " quad_stores.one "))
        first, second = self.cluster.workers
        find = (
            "select shardid, groupid from citus_shards join pg_dist_placement using (shardid) "
            "where table_name = 'quad_shards.many_s'::regclass and nodeport = %s limit 1"
        )
        shard, group = self.cluster.coordinator.query(find, (first.port,))[0]
        tell = "update pg_dist_placement set groupid = %s where shardid = %s"
        second.query(tell, (0, shard))
        try:
            found = self.ask(query, exchange_mode="auto", exchange_min_quads=0)
            self.report.check(found == expected, "a node that disagrees: answer", str(sum(found.values())))
            plan = self.explain(query, exchange_mode="auto", exchange_min_quads=0)
            self.report.check("Exchange: pull (shards are being moved)" in plan, "a node that disagrees: plan", plan)
            try:
                self.ask(query, exchange_mode="push")
                self.report.check(False, "a node that disagrees: push", "has answered")
            except psycopg2.Error as error:
                self.report.check(error.pgcode == "40001", "a node that disagrees: push", str(error))
                self.connections[0].close()
                self.connections[0] = self.cluster.coordinator.connect()
        finally:
            second.query(tell, (group, shard))
        plan = self.explain(query, exchange_mode="auto", exchange_min_quads=0)
        self.report.check("Exchange: push" in plan, "a node that has disagreed: plan", plan)

    def limits_of_roles(self):
        """How long a pushed join may take is what its session says, not what its role has by default."""
        coordinator = self.cluster.coordinator
        coordinator.query("create role hasty superuser login")
        coordinator.query("alter role hasty set statement_timeout = '1ms'")
        address = {"host": "127.0.0.1", "port": coordinator.port, "user": "hasty", "dbname": "postgres"}
        with closing(psycopg2.connect(**address, options="-c statement_timeout=0")) as connection:
            with connection.cursor() as cursor:
                cursor.execute("set quad.exchange_mode = push")
                cursor.execute(QUERIES["many groups"].replace(" t ", " quad_stores.many "))
                self.report.check(cursor.rowcount > 0, "a limit of the role")

    def busy(self):
        """Participants that are at work, of all nodes."""
        found = []
        for connection in self.connections:
            with connection.cursor() as cursor:
                cursor.execute("select pid, state, query from pg_stat_activity where query like '%cluster_push%' and pid <> pg_backend_pid() "
                               "and state <> 'idle'")
                found += cursor.fetchall()
        return found

    def at_rest(self):
        deadline = time.monotonic() + 60
        while self.busy() and time.monotonic() < deadline:
            time.sleep(0.2)
        return not self.busy()

    def nothing_stays(self):
        for connection in self.connections:
            connection.close()
        deadline = time.monotonic() + 60
        left = [1]
        while left and time.monotonic() < deadline:
            time.sleep(0.3)
            left = [row for server in self.cluster.servers
                    for row in server.query("select pid from pg_stat_activity where application_name = 'pgquad'") or []]
        self.report.check(not left, "no session stays", str(left))


def main():
    with Cluster(shards_on_coordinator=True) as cluster:
        push = Push(cluster)
        push.run()
        cluster.check_crashes(push.report)
    push.report.finish()


if __name__ == "__main__":
    main()
