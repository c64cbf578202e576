"""Clients that people have: rdflib's stores, SPARQLWrapper, curl."""
import os
import subprocess
import tempfile

import rdflib
import SPARQLWrapper
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

from endpoint import Endpoint, sql

EX = rdflib.Namespace("http://x/")


def rdflib_stores(report, endpoint):
    store = SPARQLUpdateStore(endpoint.url + "/sparql", endpoint.url + "/update", auth=("http_writer", "secret"))
    graph = rdflib.Graph(store, identifier=EX.graph)
    graph.add((EX.a, EX.name, rdflib.Literal("Ada", lang="en")))
    graph.add((EX.a, EX.born, rdflib.Literal(1815)))
    graph.add((EX.b, EX.name, rdflib.Literal('"quoted"\n\\ ä')))
    names = sorted(str(o) for o in graph.objects(None, EX.name))
    report.check(names == ['"quoted"\n\\ ä', "Ada"], "rdflib SPARQLUpdateStore: add and read", names)
    report.check(len(graph) == 3, "rdflib SPARQLUpdateStore: length", len(graph))
    rows = list(graph.query("SELECT ?s { ?s <http://x/born> 1815 }"))
    report.check([row[0] for row in rows] == [EX.a], "rdflib SPARQLUpdateStore: query", rows)
    graph.remove((EX.b, None, None))
    report.check(len(graph) == 2, "rdflib SPARQLUpdateStore: remove", len(graph))
    reader = rdflib.Graph(SPARQLStore(endpoint.url + "/sparql"), identifier=EX.graph)
    report.check((EX.a, EX.born, rdflib.Literal(1815)) in reader, "rdflib SPARQLStore")
    described = rdflib.Graph(SPARQLStore(endpoint.url + "/sparql")).query(
        "CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }"
    )
    report.check(len(described.graph) == 2, "rdflib SPARQLStore: CONSTRUCT", len(described.graph))


def wrapper(report, endpoint):
    client = SPARQLWrapper.SPARQLWrapper(endpoint.url + "/sparql", endpoint.url + "/update")
    for name, form in [("JSON", SPARQLWrapper.JSON), ("XML", SPARQLWrapper.XML), ("CSV", SPARQLWrapper.CSV), ("TSV", SPARQLWrapper.TSV)]:
        client.setReturnFormat(form)
        client.setQuery("SELECT ?o { GRAPH ?g { ?s <http://x/born> ?o } }")
        answer = client.query().convert()
        text = answer.toxml() if name == "XML" else str(answer)
        report.check("1815" in text, f"SPARQLWrapper: {name}", text)
    client.setReturnFormat(SPARQLWrapper.TURTLE)
    client.setQuery("DESCRIBE <http://x/a> FROM <http://x/graph>")
    report.check(b"Ada" in client.query().convert(), "SPARQLWrapper: DESCRIBE")
    client.setCredentials("http_writer", "secret")
    client.setMethod(SPARQLWrapper.POST)
    client.setQuery("INSERT DATA { <http://x/w> <http://x/p> 1 }")
    client.query()
    report.check(sql("SELECT quad.ask('ASK { <http://x/w> <http://x/p> 1 }')")[0][0], "SPARQLWrapper: update")


def curl(report, endpoint):
    def run(*arguments):
        done = subprocess.run(
            ["curl", "-sS", "--fail-with-body", "--max-time", "20", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 else f"status {done.returncode}: {done.stdout}{done.stderr}"

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "data.ttl")
        with open(path, "w", encoding="utf-8") as file:
            file.write("@prefix : <http://x/> . :c :p :d .")
        put = run("-u", "http_writer:secret", "-T", path, "-H", "Content-Type: text/turtle", endpoint.url + "/data?graph=http://x/curl")
        report.check(put == "", "curl -T", put)
        got = run("-H", "Accept: application/n-triples", endpoint.url + "/data?graph=http://x/curl")
        report.check(got == "<http://x/c> <http://x/p> <http://x/d> .\n", "curl", got)
        answer = run(
            "--data-urlencode",
            "query=SELECT * { GRAPH <http://x/curl> { ?s ?p ?o } }",
            "-H",
            "Accept: text/csv",
            "--compressed",
            endpoint.url + "/sparql",
        )
        report.check(answer.split() == ["s,p,o", "http://x/c,http://x/p,http://x/d"], "curl --data-urlencode", answer)


def run(report):
    sql("TRUNCATE quad_stores.main")
    with Endpoint(anonymous="http_reader") as endpoint:
        rdflib_stores(report, endpoint)
        wrapper(report, endpoint)
        curl(report, endpoint)
    sql("TRUNCATE quad_stores.main")
