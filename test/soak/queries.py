"""Memory of a backend that asks very many queries: graph patterns of every kind of step, paths, groups, updates,
errors."""
import os
import sys

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402

# Between the first third of the run and its end. What a backend keeps for later queries is bounded and full by then.
ALLOWED_GROWTH_KB = 2 * 1024
NODES, EDGES = 2000, 20000
PREFIX = "prefix : <http://example.org/> "

# Each with one or two constants to fill in: a node and a number.
QUERIES = [
    "select ?b ?c { :n{n} :p0 ?b . ?b :p1 ?c }",
    "select ?a ?v { ?a :p1 :n{n} ; :value ?v . optional { ?a :name ?name } filter(?v > {v}) } order by ?v limit 5",
    "select distinct ?c { ?a :p{k} :n{n} . ?a :p1 ?b . ?b :p2 ?c filter(?a != ?c) }",
    "select ?a { :n{n} :p2 ?a filter not exists { ?a :p3 ?b . ?b :value ?v filter(?v < {v}) } }",
    "select ?k (count(*) as ?rows) (avg(?v) as ?mean) { :n{n} ?k ?b . ?b :value ?v } group by ?k having (count(*) > 1)",
    "select ?b { :n{n} :p0+ ?b } limit 50",
    "select ?a ?b { { ?a :p0 :n{n} } union { :n{n} :p1 ?b } minus { ?a :p2 ?b } }",
    "select ?a ?text { ?a :value {v} ; :name ?name bind(concat(str(?name), '{n}') as ?text) filter regex(?text, '[13]$') }",
    "ask { :n{n} :p0 ?a . ?a :p1 ?b . ?b :p2 :n{v} }",
    "select (count(distinct ?o) as ?objects) { ?s :p{k} ?o }",
    "select (1 + 'a{n}' as ?x) (xsd_missing({v}) as ?y) {}",
]


def graph(rng):
    """INSERT DATA of a random graph, in parts."""
    triples = [f":n{rng.randrange(NODES)} :p{rng.randrange(4)} :n{rng.randrange(NODES)}" for _ in range(EDGES)]
    triples += [f":n{n} :value {rng.randrange(100)}" for n in range(NODES)]
    triples += [f":n{n} :name 'node {n}'@en" for n in range(0, NODES, 2)]
    for start in range(0, len(triples), 5000):
        yield PREFIX + "insert data { " + " . ".join(triples[start : start + 5000]) + " }"


def ask(cursor, rng):
    """One random query, or an update that leaves the store as it was."""
    filled = {"{n}": rng.randrange(NODES), "{v}": rng.randrange(100), "{k}": rng.randrange(4)}
    if rng.random() < 0.05:
        new = f":new{filled['{n}']} :p0 :n{filled['{v}']}"
        for update in (f"insert data {{ {new} }}", f"delete data {{ {new} }}"):
            cursor.execute("select quad.update(%s)", (PREFIX + update,))
        return
    text = rng.choice(QUERIES)
    for place, constant in filled.items():
        text = text.replace(place, str(constant))
    try:
        cursor.execute("select quad.sparql_json(%s)", (PREFIX + text,))
        cursor.fetchall()
    except psycopg2.errors.SyntaxError:
        if "xsd_missing" not in text:
            raise


def run(report, rng, seed, queries):
    """The test: a server of its own, one backend, so many queries."""
    server = t.Server("queries", {"fsync": "off"}).init().start()
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute("create extension pgquad")
    for part in graph(rng):
        cursor.execute("select quad.update(%s)", (part,))
    cursor.execute("vacuum (analyze)")
    cursor.execute("select pg_backend_pid()")
    pid = cursor.fetchone()[0]
    for _ in range(queries // 3):
        ask(cursor, rng)
    early = t.private_kb(pid)
    for _ in range(queries - queries // 3):
        ask(cursor, rng)
    late = t.private_kb(pid)
    report.check(
        late - early <= ALLOWED_GROWTH_KB,
        f"memory of a backend is flat over {queries} queries ({early} KB, at the end {late} KB)",
        f"seed {seed}",
    )
    crashes = server.crashes_in_log()
    report.check(not crashes, "queries crash nothing", "; ".join(crashes[:3]))
    connection.close()
    server.stop("immediate")
    if not report.failed:
        server.remove()
