"""The queries of the Explore mix as somebody writes them who has Citus and no quad store. There are two heap tables of
ids with covering B-trees, one distributed by subject and one by object. They are joined where they are colocated, and
step by step by CTEs where they are not. Citus refuses most of the mix as one join, and its repartition joins take
seconds. Ids are compared instead of terms, and nothing is decoded, which spares this side the dictionary; query 8
leaves out its test of the language."""

import os
import re
import statistics
import time

import mixes
from server import rows, value

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql")
PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "rev": "http://purl.org/stuff/rev#",
    "bsbm": "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/",
}
# Constants of a query, by the letter of their placeholders, in the order of the text.
CONSTANTS = {
    "i": re.compile(r"<[^\s>]*/instances/[^\s>]+>"),
    "c": re.compile(r"<[^\s>]*iso-3166/countries#[^\s>]+>"),
    "d": re.compile(r'"[^"]*"\^\^<[^>]*#dateTime>'),
    "n": re.compile(r"[<>]=?\s*(\d+)\s*\)"),
}
# Queries that SQL states as SPARQL does: their answers must have as many rows as SPARQL's.
SAME_ROWS = {1, 2, 3, 4, 5, 7, 9, 10, 11}


class Writer:
    """Writes queries of the log as SQL over the tables."""

    def __init__(self, connection):
        self.connection = connection
        self.ids = {}

    def id(self, term):
        """The id of a term in N-Triples form; -1 for one that is in no store."""
        if term not in self.ids:
            self.ids[term] = value(self.connection, "select coalesce(quad.find(%s::quad.term), -1)", (term,))
        return str(self.ids[term])

    def sql(self, entry):
        """The statement for an entry of the log."""
        with open(os.path.join(FOLDER, f"{entry['query_nr']}.sql"), encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r"\{(\w+):(\w+)\}", lambda name: self.id(f"<{PREFIXES[name[1]]}{name[2]}>"), text)
        for letter, pattern in CONSTANTS.items():
            for number, term in enumerate(pattern.findall(entry["sparql"]), 1):
                term = f'"{term}"^^<http://www.w3.org/2001/XMLSchema#integer>' if letter == "n" else term
                text = text.replace(f"{{{letter}{number}}}", self.id(term))
        return text


def measure(connection, log, each):
    """The first `each` queries of every template over the plain tables and through SPARQL: {number: (milliseconds of
    plain SQL, of the store, numbers of rows that differ)}."""
    writer = Writer(connection)
    found = {}
    rows(connection, "prepare solutions(text) as select quad.sparql_json($1)")
    rows(connection, "prepare graph(text) as select quad.construct_text($1, 'nt')")
    rows(connection, "prepare described(text) as select quad.describe_text($1, 'nt')")
    for number, entries in sorted(by_template(log, each).items()):
        plain, store, different = [], [], 0
        for entry in entries:
            form = {9: "described", 12: "graph"}.get(number, "solutions")
            sides = ((plain, writer.sql(entry), None), (store, f"execute {form}(%s)", (entry["sparql"],)))
            for times, statement, parameters in sides:
                rows(connection, statement, parameters)
                began = time.perf_counter()
                answer = rows(connection, statement, parameters)
                times.append((time.perf_counter() - began) * 1000)
                if parameters is None:
                    count = len(answer)
            if number in SAME_ROWS and count != solutions(connection, entry["sparql"], number):
                different += 1
        found[number] = (statistics.median(plain), statistics.median(store), different)
    return found


def solutions(connection, sparql, number):
    """Number of rows of a query through SPARQL."""
    function = "describe" if number == 9 else "sparql"
    return value(connection, f"select count(*) from quad.{function}(%s)", (sparql,))


def by_template(log, each):
    """The first `each` entries of a log for each query number."""
    chosen = {}
    for entry in mixes.entries(log):
        of_template = chosen.setdefault(entry["query_nr"], [])
        if len(of_template) < each:
            of_template.append(entry)
    return chosen
