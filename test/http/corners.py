"""Corners of the SPARQL protocol, the graph store protocol and HTTP, one table of requests with what comes back."""
import gzip
import json
import socket
import zlib
from urllib.parse import quote, urlencode

from endpoint import Endpoint, sql

SELECT = "SELECT ?o { <http://x/a> <http://x/p> ?o }"
QUERY, UPDATE, FORM = "application/sparql-query", "application/sparql-update", "application/x-www-form-urlencoded"
INSERT = "INSERT DATA { <http://x/u> <http://x/p> 1 }"
JSON_QUADS = b'{"@id": "http://x/victim", "@graph": [{"@id": "http://x/s", "http://x/p": 1}]}'
TURTLE = b"<http://x/s> <http://x/p> 2 ."
WRITER = "http_writer:secret"


def form(*pairs):
    return urlencode(pairs).encode()


def queries(report, endpoint):
    def post(body, kind, path="/sparql", **headers):
        return endpoint.request("POST", path, body, content_type=kind, **headers)

    ask = b"ASK {}"
    for name, answer, status in [
        ("POST of a query", post(ask, QUERY), 200),
        ("a type in capitals and with a charset", post(ask, 'Application/SPARQL-Query; Charset="UTF-8"'), 200),
        ("another charset", post(ask, QUERY + "; charset=utf-16"), 415),
        ("another charset of a form", post(form(("query", "ASK {}")), FORM + "; charset=iso-8859-1"), 415),
        ("POST of a form", post(form(("query", "ASK {}")), FORM), 200),
        ("a form without a query", post(form(("x", "1")), FORM), 400),
        ("an empty form", post(b"", FORM), 400),
        ("POST without a type", endpoint.request("POST", "/sparql", ask), 415),
        ("an empty query", endpoint.get("/sparql?query="), 400),
        ("a query twice, by GET", endpoint.get("/sparql?query=ASK%7B%7D&query=ASK%7B%7D"), 400),
        ("a query twice, in a form", post(form(("query", "ASK {}"), ("query", "ASK {}")), FORM), 400),
        (
            "a query in the form and in the address",
            post(form(("query", "ASK {}")), FORM, "/sparql?query=ASK%7B%7D"),
            400,
        ),
        ("a query in the body and in the address", post(ask, QUERY, "/sparql?query=ASK%7B%7D"), 400),
        (
            "parameters of a POST in the address",
            post(b"ASK { ?s ?p ?o }", QUERY, "/sparql?default-graph-uri=" + quote("http://x/none", "")),
            200,
        ),
        ("an update where queries go", post(INSERT.encode(), UPDATE), 415),
        ("an update in a form where queries go", post(form(("update", INSERT)), FORM), 400),
        ("a graph that is no IRI", endpoint.get("/sparql?query=ASK%7B%7D&default-graph-uri=none"), 400),
        ("graphs of updates", endpoint.get("/sparql?query=ASK%7B%7D&using-graph-uri=" + quote("http://x/g", "")), 400),
        ("a query that is not UTF-8", post(b"ASK { ?s ?p '\xff' }", QUERY), 400),
        ("a query with a NUL", post(b"ASK { ?s ?p '\0' }", QUERY), 400),
        ("a store that is not UTF-8", endpoint.get("/%ff/sparql?query=ASK%7B%7D"), 400),
        ("a slash at the end", endpoint.get("/sparql/?query=ASK%7B%7D"), 200),
        ("HEAD", endpoint.request("HEAD", "/sparql?query=ASK%7B%7D"), 200),
        ("HEAD of what is wrong", endpoint.request("HEAD", "/sparql?query=ASK"), 400),
    ]:
        report.check(answer.status == status, f"query: {name}", f"{answer.status}, not {status}: {answer.text()[:200]}")
    for name, accept, status, media in [
        ("nothing at all", "*/*;q=0", 406, "text/plain"),
        ("anything but JSON", "application/sparql-results+json;q=0, application/json;q=0, */*", 200, "application/sparql-results+xml"),
        ("thousandths", "text/csv;q=0.001, application/xml;q=0.002", 200, "application/xml"),
        ("a quality above 1", "text/csv;q=2", 200, "application/sparql-results+json"),
        ("parameters", "application/sparql-results+xml;charset=utf-8;q=0.9, text/csv;q=0.8", 200, "application/sparql-results+xml"),
        ("capitals", "TEXT/CSV", 200, "text/csv"),
        ("a whole kind", "text/*", 200, "text/csv"),
        ("an empty header", "", 200, "application/sparql-results+json"),
        ("what a browser says", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 200, "application/xml"),
        ("what Jena says", "application/sparql-results+json, application/sparql-results+xml;q=0.9, text/tab-separated-values;q=0.7, text/csv;q=0.5, */*;q=0.01", 200,
         "application/sparql-results+json"),
    ]:
        answer = endpoint.query(SELECT, accept=accept)
        report.check(
            (answer.status, answer.media) == (status, media), f"accept: {name}", f"{answer.status} {answer.media}"
        )
        report.check("accept" in answer.headers.get("vary", "").lower(), f"accept: {name}: Vary", answer.headers)


def updates(report, endpoint):
    def post(body, kind, path="/update", **headers):
        return endpoint.request("POST", path, body, content_type=kind, **({"user": WRITER} | headers))

    graph = quote("http://x/g", "")
    for name, answer, status in [
        ("POST of an update", post(INSERT.encode(), UPDATE), 200),
        ("POST of a form", post(form(("update", INSERT)), FORM), 200),
        ("an empty update", post(b"", UPDATE), 200),
        ("an update twice", post(form(("update", INSERT), ("update", INSERT)), FORM), 400),
        ("a query where updates go", post(b"ASK {}", QUERY), 415),
        ("a query in a form where updates go", post(form(("query", "ASK {}")), FORM), 400),
        ("default-graph-uri", post(INSERT.encode(), UPDATE, f"/update?default-graph-uri={graph}"), 400),
        ("named-graph-uri in a form", post(form(("update", INSERT), ("named-graph-uri", "http://x/g")), FORM), 400),
        ("using-graph-uri", post(b"INSERT { ?s <http://x/q> 1 } WHERE { ?s <http://x/p> 1 }", UPDATE, f"/update?using-graph-uri={graph}"), 200),
        ("using-graph-uri beside USING", post(b"INSERT { ?s <http://x/q> 1 } USING <http://x/h> WHERE { ?s ?p 1 }", UPDATE, f"/update?using-graph-uri={graph}"), 400),
        ("using-graph-uri beside WITH", post(b"WITH <http://x/h> INSERT { ?s <http://x/q> 1 } WHERE { ?s ?p 1 }", UPDATE, f"/update?using-graph-uri={graph}"), 400),
        ("another charset", post(INSERT.encode(), UPDATE + "; charset=latin1"), 415),
        ("GET", endpoint.get("/update?update=" + quote(INSERT, ""), user=WRITER), 405),
        ("HEAD", endpoint.request("HEAD", "/update", user=WRITER), 405),
        ("PUT", endpoint.request("PUT", "/update", INSERT.encode(), user=WRITER, content_type=UPDATE), 405),
    ]:
        report.check(
            answer.status == status, f"update: {name}", f"{answer.status}, not {status}: {answer.text()[:200]}"
        )
    report.check(endpoint.request("POST", "/update", b"", content_type=UPDATE).status == 401, "update: nobody")
    wrote = sql("SELECT quad.ask('ASK { <http://x/u> <http://x/p> 1 }'), quad.ask('ASK { ?s <http://x/q> ?o }')")[0]
    report.check(wrote == (True, False), "update: what was written", wrote)
    for path, methods in {"/update": {"POST", "OPTIONS"}, "/sparql": {"GET", "HEAD", "POST", "OPTIONS"},
                          "/data?default": {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"}}.items():
        answer = endpoint.request("PATCH", path, b"x", user=WRITER, content_type="text/turtle")
        allowed = {method.strip() for method in answer.headers.get("allow", "").split(",")}
        report.check(answer.status == 405 and allowed == methods, f"PATCH {path}", f"{answer.status} {allowed}")


def bodies(report, endpoint):
    def post(body, coding, kind=QUERY):
        return endpoint.request("POST", "/sparql", body, content_type=kind, content_encoding=coding)

    packed = gzip.compress(b"ASK {}")
    for name, answer, status in [
        ("gzip", post(packed, "gzip"), 200),
        ("gzip, a form", post(gzip.compress(form(("query", "ASK {}"))), "gzip", FORM), 200),
        ("gzip in capitals", post(packed, "GZIP"), 200),
        ("gzip by its old name", post(packed, "x-gzip"), 200),
        ("identity", post(b"ASK {}", "identity"), 200),
        ("gzip that is none", post(b"ASK {}", "gzip"), 400),
        ("gzip that is cut", post(packed[:-6], "gzip"), 400),
        ("a bomb", post(gzip.compress(b"#" * 50_000_000), "gzip"), 413),
        ("an encoding that is not known", post(zlib.compress(b"ASK {}"), "deflate"), 415),
        ("two encodings", post(gzip.compress(packed), "gzip, gzip"), 415),
    ]:
        report.check(answer.status == status, f"body: {name}", f"{answer.status}, not {status}: {answer.text()[:200]}")
    # A client that asks before it sends hears of what is wrong at once.
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=60) as client:
        client.sendall(b"POST /sparql HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: image/png\r\nContent-Length: 1000000\r\n\r\n")
        report.check(client.recv(100).split(b" ")[1] == b"415", "body: Expect, a wrong type")
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=60) as client:
        client.sendall(
            b"POST /sparql HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: "
            + QUERY.encode()
            + b"\r\nContent-Length: 6\r\n\r\n"
        )
        report.check(client.recv(100).split(b" ")[1] == b"100", "body: Expect")
        client.sendall(b"ASK {}")
        report.check(client.recv(100).split(b" ")[1] == b"200", "body: Expect, then the answer")


def browsers(report, endpoint):
    for path in ["/sparql", "/update", "/data", "/data/x", "/main/sparql", "/main/update", "/main/data", "/health", "/metrics"]:
        answer = endpoint.request("OPTIONS", path, Origin="http://page.example", Access_Control_Request_Method="PUT",
                                  Access_Control_Request_Headers="authorization,content-type")
        allowed = answer.headers.get("access-control-allow-methods", "")
        report.check(answer.status in (200, 204) and answer.headers.get("access-control-allow-origin") == "*" and "PUT" in allowed,
                     f"CORS: preflight of {path}", f"{answer.status} {answer.headers}")
    for name, answer in {"an answer": endpoint.query("ASK {}", Origin="http://page.example"), "an error": endpoint.query("ASK", Origin="http://page.example"),
                         "no credentials": endpoint.request("DELETE", "/data?default", Origin="http://page.example"),
                         "wrong ones": endpoint.query("ASK {}", user="http_writer:wrong", Origin="http://page.example"),
                         "no path": endpoint.get("/nowhere", Origin="http://page.example")}.items():
        report.check(
            answer.headers.get("access-control-allow-origin") == "*",
            f"CORS: {name}",
            f"{answer.status} {answer.headers}",
        )
        report.check(
            "access-control-allow-credentials" not in answer.headers,
            f"CORS: {name}: credentials are not for pages",
            answer.headers,
        )
    for path in ["/", "/-/session", "/-/running"]:
        answer = endpoint.get(path, Origin="http://page.example", user="postgres")
        report.check("access-control-allow-origin" not in answer.headers, f"CORS: not of {path}", answer.headers)
    for path in ["/health", "/metrics", "/", "/sparql", "/data?default"]:
        get, head = endpoint.get(path), endpoint.request("HEAD", path)
        same = (head.status, head.headers.get("content-type")) == (get.status, get.headers.get("content-type"))
        report.check(
            same and head.body == b"", f"HEAD {path}", f"{head.status} {head.headers} {get.status} {get.headers}"
        )
        length = head.headers.get("content-length")
        # What counts requests has another length each time.
        is_right = length is None or (length == "0") == (get.body == b"")
        report.check(is_right, f"HEAD {path}: length", f"{length} {len(get.body)}")


def problems(report, endpoint):
    for accept in ["application/json", "application/sparql-results+json", "*/*;q=0.1, application/problem+json"]:
        answer = endpoint.query("SELECT * { ?s ?p", accept=accept)
        report.check(answer.media == "application/problem+json", f"problem: {accept}", answer.headers)
        problem = json.loads(answer.body)
        report.check(
            problem["status"] == answer.status == 400 and problem.get("title") and problem.get("detail"),
            f"problem: {accept}: fields",
            problem,
        )
    answer = endpoint.query("SELECT * { ?s ?p", accept="text/csv")
    report.check(
        answer.media == "text/plain" and answer.headers["content-type"].lower().endswith("charset=utf-8"),
        "problem: as text",
        answer.headers,
    )


def graphs(report, endpoint):
    def call(method, path, body=None, kind="text/turtle", **headers):
        headers = {"user": WRITER} | headers
        if body is not None:
            headers["content_type"] = kind
        return endpoint.request(method, path, body, **headers)

    path, indirect = "/data/people/ada", "/data?graph=" + quote("http://x/new", "")
    boundary = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\nContent-Type: %s\r\n\r\n%s\r\n'
    parts = (
        boundary % (b"a", b"a.ttl", b"text/turtle", TURTLE)
        + boundary % (b"b", b"b.nt", b"application/n-triples", b"<http://x/t> <http://x/p> <http://x/o> .")
        + b"--b--\r\n"
    )
    named = (
        boundary % (b"a", b"a.ttl", b"application/octet-stream", TURTLE)
        + boundary % (b"b", b"b.NT", b"application/octet-stream", b"")
        + b"--b--\r\n"
    )
    untyped = b'--b\r\nContent-Disposition: form-data; name="a"; filename="x.y.rdf"\r\n\r\n<x/>\r\n--b--\r\n'
    nameless = boundary % (b"a", b"a.bin", b"application/octet-stream", TURTLE) + b"--b--\r\n"
    unknown = boundary % (b"a", b"a.png", b"image/png", b"x") + b"--b--\r\n"
    steps = [
        ("GET, a path", call("GET", path), 404),
        ("DELETE, a path", call("DELETE", path), 404),
        ("PUT, a path", call("PUT", path, TURTLE), 201),
        ("PUT again", call("PUT", path, TURTLE), 204),
        ("POST", call("POST", path, b"<http://x/s> <http://x/p> 3 ."), 204),
        ("HEAD", call("HEAD", path), 200),
        ("PUT of another type", call("PUT", path, b"x", "image/png"), 415),
        ("PUT of quads", call("PUT", path, b"", "application/n-quads"), 415),
        ("PUT of JSON-LD with a named graph", call("PUT", path, JSON_QUADS, "application/ld+json"), 400),
        ("POST of JSON-LD with a named graph", call("POST", "/data?default", JSON_QUADS, "application/ld+json"), 400),
        ("which has not come", call("GET", "/data?graph=" + quote("http://x/victim", "")), 404),
        ("PUT of another charset", call("PUT", path, TURTLE, "text/turtle; charset=utf-16"), 415),
        ("PUT without a type", call("PUT", path, None), 415),
        ("GET in a format that it has not", call("GET", path, accept="image/png"), 406),
        ("PUT of what is wrong", call("PUT", path, b"<http://x/s> ."), 400),
        ("it is as it was", endpoint.request("GET", path, accept="application/n-triples"), 200),
        ("POST makes a graph", call("POST", indirect, TURTLE), 201),
        ("POST of an empty document", call("POST", indirect, b""), 204),
        ("POST of parts", call("POST", indirect, parts, "multipart/form-data; boundary=b"), 204),
        ("POST of a part of another type", call("POST", indirect, unknown, "multipart/form-data; boundary=b"), 415),
        ("POST of parts with names of files", call("POST", indirect, named, "multipart/form-data; boundary=b"), 204),
        (
            "POST of a part whose name says RDF/XML",
            call("POST", indirect, untyped, "multipart/form-data; boundary=b"),
            400,
        ),
        (
            "POST of a part whose name says nothing",
            call("POST", indirect, nameless, "multipart/form-data; boundary=b"),
            415,
        ),
        ("POST of parts without a boundary", call("POST", indirect, parts, "multipart/form-data"), 400),
        ("POST of parts that are cut", call("POST", indirect, parts[:-20], "multipart/form-data; boundary=b"), 400),
        ("a graph twice", call("GET", indirect + "&graph=http://x/h"), 400),
        ("a graph and the default one", call("GET", indirect + "&default"), 400),
        ("a graph and a path", call("GET", path + "?graph=http://x/h"), 400),
        ("a relative graph", call("PUT", "/data?graph=new", TURTLE), 400),
        ("PUT of the default graph", call("PUT", "/data?default", TURTLE), 204),
        ("the default graph is always there", call("GET", "/data?default"), 200),
        ("DELETE of the default graph", call("DELETE", "/data?default"), 204),
        ("and still", call("GET", "/data?default"), 200),
        ("PUT of nothing empties", call("PUT", indirect, b""), 204),
        ("and that is no graph", call("GET", indirect), 404),
        ("PUT unless there is a graph", call("PUT", indirect, TURTLE, If_None_Match="*"), 201),
        ("which there is now", call("PUT", indirect, b"", If_None_Match="*"), 412),
        ("nor is it added to", call("POST", indirect, TURTLE, If_None_Match="*"), 412),
        ("PUT of another tag than it has", call("PUT", indirect, TURTLE, If_None_Match='"x"'), 204),
        ("PUT of a tag", call("PUT", indirect, b"", If_Match='"x"'), 412),
        ("it is as it was put", call("GET", indirect), 200),
        ("DELETE if there is a graph", call("DELETE", indirect, If_Match="*"), 204),
        ("which there is no more", call("DELETE", indirect, If_Match="*"), 412),
        ("nor is one made", call("PUT", indirect, TURTLE, If_Match="*"), 412),
        ("PUT to the store", call("PUT", "/data", TURTLE), 400),
        ("DELETE of the store", call("DELETE", "/data"), 400),
        ("DELETE, a path, again", call("DELETE", path), 204),
        ("gone", call("HEAD", path), 404),
    ]
    for name, answer, status in steps:
        report.check(
            answer.status == status, f"graph store: {name}", f"{answer.status}, not {status}: {answer.text()[:200]}"
        )
    found = next(answer for name, answer, _ in steps if name == "it is as it was").text().splitlines()
    report.check(len(found) == 2, "graph store: PUT replaces, POST adds", found)
    made = call("POST", "/data", TURTLE)
    place = made.headers.get("location", "").removeprefix(endpoint.url)
    report.check(
        made.status == 201 and call("GET", place).status == 200,
        "graph store: POST to the store names the new graph",
        f"{made.status} {place}",
    )
    report.check(call("DELETE", place).status == 204, "graph store: which can be deleted")


def run(report):
    sql("TRUNCATE quad_stores.main")
    sql("SELECT quad.load_text('<http://x/a> <http://x/p> 1 .')")
    with Endpoint(anonymous="http_reader") as endpoint:
        queries(report, endpoint)
        updates(report, endpoint)
        bodies(report, endpoint)
        browsers(report, endpoint)
        problems(report, endpoint)
        graphs(report, endpoint)
    sql("TRUNCATE quad_stores.main")
