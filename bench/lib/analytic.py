"""Analytic queries on the data of bench/bsbm: a chain of three hops over the whole graph, triangles, a star, statistics
of all triples, the Business Intelligence mix."""

import argparse
import json

import bsbm

PREFIXES = """PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX rev: <http://purl.org/stuff/rev#>
"""
QUERIES = {
    "chain of three hops": "SELECT (count(*) AS ?n) { ?a ?p ?b . ?b ?q ?c . ?c ?r ?d }",
    "chain, predicates given": PREFIXES
    + "SELECT ?country (count(*) AS ?n) { ?r bsbm:reviewFor ?p . ?p bsbm:producer ?m . ?m bsbm:country ?country } GROUP BY ?country",
    "triangles": "SELECT (count(*) AS ?n) { ?a ?p ?b . ?b ?q ?c . ?a ?r ?c }",
    "star of five": PREFIXES
    + "SELECT (count(*) AS ?n) { ?o bsbm:product ?p ; bsbm:vendor ?v ; bsbm:price ?x ; bsbm:validTo ?t ; bsbm:deliveryDays ?d }",
    "triples of each datatype": "SELECT ?t (count(*) AS ?n) { ?s ?p ?o } GROUP BY (datatype(?o) AS ?t)",
    "datatypes of each predicate": "SELECT ?p ?t (count(*) AS ?n) { ?s ?p ?o } GROUP BY ?p (datatype(?o) AS ?t)",
    "length of subjects by predicate": "SELECT ?p (avg(strlen(str(?s))) AS ?n) { ?s ?p ?o } GROUP BY ?p",
}


def parser(description, compared):
    """The command line of a benchmark of these queries, for those that add to it; `compared`: the peers, unless it says
    others."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--quick", action="store_true", help="the smallest scale, one round, nothing written to bench/results"
    )
    made.add_argument("--scale", default="1m", help=f"of {', '.join(bsbm.SCALES)} (default 1m)")
    made.add_argument("--peers", default=compared, help="the stores to compare with, where they are set up")
    made.add_argument("--rounds", type=int, default=3, help="turns of each store (default 3)")
    made.add_argument("--timeout", type=int, default=120, help="seconds after which a query has failed (default 120)")
    return made


def parsed(made):
    """What the command line says."""
    chosen = made.parse_args()
    if chosen.quick:
        chosen.scale, chosen.rounds = "100k", 1
    return chosen


def queries(dataset):
    """All queries by name: those above, and the first of each template of the Business Intelligence mix."""
    business = {}
    with open(dataset.log("bi"), encoding="utf-8") as log:
        for entry in map(json.loads, log):
            business.setdefault(f"BI query {entry['query_nr']}", entry["sparql"])
    found = {**QUERIES, **dict(sorted(business.items()))}
    return found
