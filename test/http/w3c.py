"""The W3C tests of the SPARQL protocol, the graph store protocol and service descriptions."""
import os
import urllib.parse

import rdflib
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.namespace import RDF, RDFS

from endpoint import Endpoint

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
HT = rdflib.Namespace("http://www.w3.org/2011/http#")
CNT = rdflib.Namespace("http://www.w3.org/2011/content#")
UT = rdflib.Namespace("http://www.w3.org/2009/sparql/tests/test-update#")
SD = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
NAMED_STATUS = {"OK": 200, "Created": 201, "NoContent": 204, "NotFound": 404}
TABULAR = {"application/sparql-results+json", "application/sparql-results+xml", "text/csv", "text/tab-separated-values"}
BOOLEAN = {"application/sparql-results+json", "application/sparql-results+xml"}
GRAPHS = {"text/turtle": "turtle", "application/n-triples": "nt", "application/rdf+xml": "xml"}


def value(graph, node, predicate):
    found = graph.value(node, predicate)
    return None if found is None else str(found)


def headers_of(graph, node):
    listed = graph.value(node, HT.headers)
    if listed is None:
        return {}
    return {value(graph, h, HT.fieldName): value(graph, h, HT.fieldValue) for h in Collection(graph, listed)}


def body_of(graph, node):
    body = graph.value(node, HT.body)
    if body is None:
        return None
    return value(graph, body, CNT.chars).encode(value(graph, body, CNT.characterEncoding))


def fits(status, expected):
    """Whether a status is one of those, which have names (`Created`) or are classes (`StatusCode2xx`)."""
    for name in (str(iri).rsplit("#", 1)[1] for iri in expected):
        if name.startswith("StatusCode"):
            if status // 100 == int(name[len("StatusCode")]):
                return True
        elif NAMED_STATUS[name] == status:
            return True
    return False


def right_format(wanted, answer):
    if wanted == "boolean":
        return answer.media in BOOLEAN
    if wanted == "tabular":
        return answer.media in TABULAR
    return answer.media in GRAPHS


def run_requests(endpoint, manifest, test, path_of):
    """Sends the requests of a test; what is wrong, or None."""
    connection = manifest.value(test, MF.action)
    variables = {}
    for number, request in enumerate(Collection(manifest, manifest.value(connection, HT.requests)), 1):
        headers, body = headers_of(manifest, request), body_of(manifest, request)
        path = value(manifest, request, HT.absolutePath)
        for name, text in variables.items():
            path = path.replace(name, urllib.parse.quote(text, safe=""))
            body = body and body.replace(name.encode(), text.encode())
        method = value(manifest, request, HT.methodName)
        path = path_of(path, method, headers, body)
        headers["Host"] = value(manifest, connection, HT.connectionAuthority)
        answer = endpoint.request(method, path, body, user="postgres", **headers)
        wrong = compare(manifest, manifest.value(request, HT.resp), method, answer)
        if wrong:
            return f"request {number}, {method} {path}: {wrong} (status {answer.status}: {answer.body[:300]})"
        location = value(manifest, manifest.value(request, HT.resp), MF.expectedLocation)
        if location:
            if "location" not in answer.headers:
                return f"request {number}: no header Location"
            variables[location] = answer.headers["location"]
    return None


def compare(manifest, response, method, answer):
    if not fits(answer.status, manifest.objects(response, MF.expectedStatus)):
        return "status"
    wanted = value(manifest, response, MF.expectedFormat)
    if wanted and not right_format(wanted, answer):
        return f"format {answer.media}, not {wanted}"
    truth = value(manifest, response, MF.expectedBoolean)
    if truth is not None and f'"boolean":{truth}' not in answer.text().replace(" ", ""):
        return f"not {truth}"
    for name, text in headers_of(manifest, response).items():
        if answer.headers.get(name, "").replace(" ", "").lower() != text.replace(" ", "").lower():
            return f"header {name}: {answer.headers.get(name)}, not {text}"
    body = body_of(manifest, response)
    if body is not None and method != "HEAD":
        expected, given = rdflib.Graph().parse(data=body, format="turtle"), rdflib.Graph()
        given.parse(data=answer.body, format=GRAPHS[answer.media])
        if not isomorphic(expected, given):
            return f"another graph: {given.serialize(format='nt')}"
    return None


def manifest_of(directory, name):
    path = os.path.join(os.environ["PGQUAD_SHARED"], "w3c", "sparql11", directory, name)
    graph = rdflib.Graph().parse(path, format="turtle")
    entries = next(graph.objects(None, MF.entries))
    return graph, list(Collection(graph, entries)), os.path.dirname(path)


def is_update(path, headers, body):
    kind = next((text for name, text in headers.items() if name.lower() == "content-type"), "")
    return "sparql-update" in kind or "update=" in path or (body or b"").startswith((b"update=", b"CLEAR", b"INSERT"))


def protocol(report, endpoint):
    manifest, tests, directory = manifest_of("protocol", "manifest.ttl")

    def path_of(path, _method, headers, body):
        return path.replace("/sparql/", "/update/", 1) if is_update(path, headers, body) else path

    for test in tests:
        assert endpoint.update("DROP ALL").status == 200
        for data in manifest.objects(test, UT.graphData):
            name, file = value(manifest, data, RDFS.label), value(manifest, data, UT.graph)
            with open(os.path.join(directory, os.path.basename(file)), "rb") as document:
                target = "/data?graph=" + urllib.parse.quote(name, safe="")
                put = endpoint.request(
                    "PUT", target, document.read(), user="postgres", content_type="application/n-triples"
                )
                assert put.status == 201, put.text()
        wrong = run_requests(endpoint, manifest, test, path_of)
        report.check(wrong is None, "w3c/protocol/" + str(test).rsplit("#", 1)[1], wrong)


def graph_store(report, endpoint):
    for name in ["manifest-direct.ttl", "manifest-indirect.ttl"]:
        manifest, tests, _ = manifest_of("graph-store-protocol", name)

        def path_of(path, *_):
            return path.replace("/gsp", "/data").replace("%2Fgsp%2F", "%2Fdata%2F")

        for test in tests:
            assert endpoint.update("DROP ALL").status == 200
            wrong = run_requests(endpoint, manifest, test, path_of)
            report.check(
                wrong is None, "w3c/graph-store-protocol/" + str(test).rsplit("#", 1)[-1].rsplit("/", 1)[-1], wrong
            )


def service_description(report, endpoint):
    """The tests of the manifest are names only; what they ask for is in the specification's section 4."""
    _, tests, _ = manifest_of("service-description", "manifest.ttl")
    endpoint.update("DROP ALL ; INSERT DATA { <http://x/a> a <http://x/C> ; <http://x/p> 1 . GRAPH <http://x/g> { <http://x/a> <http://x/p> 2 } }")
    answer = endpoint.get("/sparql", user="postgres", accept="application/rdf+xml;q=0.5, text/turtle")
    graph = rdflib.Graph()
    if answer.media in GRAPHS:
        graph.parse(data=answer.body, format=GRAPHS[answer.media])
    services = list(graph.subjects(RDF.type, SD.Service))
    iris = [SD.endpoint, SD.feature, SD.supportedLanguage, SD.resultFormat, SD.name]
    nodes = {SD.defaultDataset: SD.Dataset, SD.defaultGraph: SD.Graph, SD.namedGraph: SD.NamedGraph, SD.graph: SD.Graph}
    checks = {
        "returns-rdf": answer.status == 200 and len(graph) > 0,
        "has-endpoint-triple": len(services) == 1
        and (services[0], SD.endpoint, rdflib.URIRef(endpoint.url + "/sparql")) in graph,
        "conforms-to-schema": all(isinstance(o, rdflib.URIRef) for p in iris for o in graph.objects(None, p))
        and all((o, RDF.type, kind) in graph for p, kind in nodes.items() for o in graph.objects(None, p))
        and len(list(graph.objects(None, SD.defaultDataset))) == 1
        and len(list(graph.objects(None, SD.namedGraph))) == 1,
    }
    for test in tests:
        name = str(test).rsplit("#", 1)[1]
        report.check(checks[name], "w3c/service-description/" + name, answer.text()[:500])
    void = rdflib.Namespace("http://rdfs.org/ns/void#")
    default = graph.value(None, SD.defaultGraph, any=True) or next(graph.objects(None, SD.defaultGraph), None)
    counts = [int(graph.value(default, p)) for p in (void.triples, void.classes, void.properties)]
    report.check(counts == [2, 1, 2], "void", counts)


def run(report):
    if not os.path.isdir(os.path.join(os.environ["PGQUAD_SHARED"], "w3c", "sparql11", "protocol")):
        report.skip("w3c", "the suite is not there")
        return
    with Endpoint() as endpoint:
        protocol(report, endpoint)
        graph_store(report, endpoint)
        service_description(report, endpoint)
