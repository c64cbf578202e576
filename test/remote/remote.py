"""SERVICE and LOAD against HTTP servers on the loopback interface. Tested are which servers may be asked and by whom,
redirects, answers of every kind, bounds on time and size, cancelling, https, and what SILENT makes of each failure.
Needs a running server (PGHOST, PGPORT, PGUSER), or a cluster (PGQUAD_NODES), whose nodes are asked in turn and whose
stores are distributed; makes a database of its own."""
import gzip
import http.server
import itertools
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402

DATABASE = "pgquad_remote"
TURTLE = b"PREFIX : <http://x/> :a :knows :b, [ :name 'nobody' ] . <rel> :p 1 ."
JSON = "application/sparql-results+json"
EMPTY = {"head": {"vars": []}, "results": {"bindings": []}}


def iri(name):
    return {"type": "uri", "value": f"http://x/{name}"}


def text(value):
    return {"type": "literal", "value": value}


def node(label):
    return {"type": "bnode", "value": label}


def results(variables, *rows):
    bindings = [{v: term for v, term in zip(variables, row) if term is not None} for row in rows]
    return json.dumps({"head": {"vars": variables}, "results": {"bindings": bindings}}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by path; keeps what it was asked."""

    asked = []

    def log_message(self, *_):
        pass

    def reply(self, status, media_type, body, **headers):
        self.send_response(status)
        if media_type:
            self.send_header("Content-Type", media_type)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer(urllib.parse.parse_qs(form).get("query", [""])[0])

    def do_GET(self):
        self.answer("")

    def answer(self, query):
        path = self.path.split("?")[0]
        Handler.asked.append((path, query))
        try:
            getattr(self, "path_" + path.strip("/").replace(".", "_").replace("-", "_"))()
        except AttributeError:
            self.reply(404, "text/plain", b"no such thing here\n")
        except (BrokenPipeError, ConnectionResetError):
            Handler.asked.append((path, "gone"))

    def path_names(self):
        self.reply(200, JSON, results(["s", "n"], [iri("a"), text("Ada")], [iri("b"), text("Bob")], [iri("c"), None]))

    def path_xml(self):
        self.reply(200, "application/sparql-results+xml; charset=utf-8", b"""<?xml version="1.0"?>
            <sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="s"/><variable name="n"/></head><results>
            <result><binding name="s"><uri>http://x/a</uri></binding><binding name="n"><literal xml:lang="en">Ada</literal></binding></result>
            </results></sparql>""")

    def path_tsv(self):
        self.reply(200, "text/tab-separated-values", b"?n\t?s\n42\t<http://x/a>\n")

    def path_nodes(self):
        self.reply(
            200, JSON, results(["s", "n"], [node("b7"), text("x")], [node("b7"), text("y")], [node("z"), text("z")])
        )

    def path_html(self):
        self.reply(200, "text/html", b"<html>welcome</html>")

    def path_broken(self):
        self.reply(200, JSON, b'{"head": {"vars": ["s"]}, "results": {"bindings": [{"s": {"type": "uri", "value": "http://x/a"}}, {"s": 5}]}}')

    def path_cut(self):
        body = results(["s"], *[[iri(f"n{i}")] for i in range(1000)])
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:-1000])
        self.wfile.flush()
        self.connection.close()

    def path_large(self):
        self.reply(200, JSON, results(["s"], *[[iri("n" * 1000 + str(i))] for i in range(3000)]))

    def path_error(self):
        self.reply(500, "text/plain", b"out of luck\n")

    def path_slow(self):
        time.sleep(60)
        self.reply(200, JSON, json.dumps(EMPTY).encode())

    def path_drip(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/turtle")
        self.end_headers()
        for _ in range(1200):
            self.wfile.write(b"# still coming\n")
            self.wfile.flush()
            time.sleep(0.05)

    def path_redirect(self):
        self.reply(307, None, b"", Location="/names")

    def path_away(self):
        self.reply(302, None, b"", Location="http://192.0.2.1/names")

    def path_private(self):
        self.reply(302, None, b"", Location="http://127.0.0.2:%d/names" % self.server.server_port)

    def path_around(self):
        self.reply(302, None, b"", Location="/around")

    def path_doc(self):
        self.reply(200, "text/turtle", TURTLE)

    def path_doc_ttl(self):
        self.reply(200, "application/octet-stream", TURTLE)

    def path_doc_nt_gz(self):
        self.reply(200, "application/gzip", gzip.compress(b"<http://x/a> <http://x/p> <http://x/z> .\n"))

    def path_bomb_nt_gz(self):
        self.reply(200, "application/gzip", gzip.compress(b"# nothing\n" * 1_000_000))

    def path_quads(self):
        self.reply(200, "application/n-quads", b"<http://x/a> <http://x/p> 'x' .\n".replace(b"'", b'"')
                   + b"<http://x/a> <http://x/p> <http://x/o> <http://x/g1> .\n")

    def path_bad(self):
        self.reply(200, "text/turtle", b"<http://x/a> <http://x/p> 1 .\n" * 20000 + b"oops\n")

    def path_moved(self):
        self.reply(303, None, b"", Location="/base/doc")


setattr(Handler, "path_base/doc", Handler.path_doc)


def serve(host="127.0.0.1", port=0, context=None):
    server = http.server.ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


# The node that the next session asks; without a cluster the one server that PGPORT names.
next_port = itertools.cycle(t.nodes() or [None])


class Session:
    """A connection to the next node, or to the one with this port."""

    def __init__(self, user="postgres", port=None):
        self.port = port or next(next_port)
        self.connection = psycopg2.connect(dbname=DATABASE, user=user, **({"port": self.port} if self.port else {}))
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()

    def rows(self, sql, *parameters):
        self.cursor.execute(sql, parameters)
        return self.cursor.fetchall() if self.cursor.description else []

    def value(self, sql, *parameters):
        return self.rows(sql, *parameters)[0][0]

    def sparql(self, query):
        return [row[0] for row in self.rows("SELECT quad.sparql(%s)", query)]

    def error(self, sql, *parameters):
        """SQLSTATE, message and hint of the statement's error; None when there is none."""
        try:
            self.cursor.execute(sql, parameters)
            return None
        except psycopg2.Error as error:
            return error.pgcode, error.diag.message_primary, error.diag.message_hint or ""

    def query_error(self, query):
        return self.error("SELECT quad.sparql(%s)", query)

    def update_error(self, request):
        return self.error("SELECT quad.update(%s)", request)


def coordinator():
    """A session where stores are made and roles are changed."""
    return Session(port=t.nodes()[0] if t.nodes() else None)


def create_store(name):
    coordinator().rows("SELECT quad.create_store(%s, distributed => %s)", name, bool(t.nodes()))


def service(port, path, pattern="?s ?p ?n", silent="", host="127.0.0.1"):
    return f"SERVICE {silent} <http://{host}:{port}/{path}> {{ {pattern} }}"


def rules(report, port):
    """Who may ask whom."""
    check = report.check
    s = Session()
    url = f"http://127.0.0.1:{port}/names"
    query = f"SELECT * {{ {service(port, 'names')} }}"

    def refused(name, error, code, *parts):
        check(
            error is not None and error[0] == code and all(part in error[1] + error[2] for part in parts),
            name,
            str(error),
        )

    before = len(Handler.asked)
    refused("off by default: SERVICE", s.query_error(query), "42501", f"SERVICE <{url}>", "quad.http_allowed")
    refused("off by default: LOAD", s.update_error(f"LOAD <{url}>"), "42501", f"LOAD <{url}>", "quad.http_allowed")
    check(
        s.sparql(f"SELECT * {{ {service(port, 'names', silent='SILENT')} }}") == [{}], "off by default: SERVICE SILENT"
    )
    check(s.value("SELECT quad.update(%s)", f"LOAD SILENT <{url}>") == 0, "off by default: LOAD SILENT")
    s.rows("SET quad.http_allowed = '127.0.0.1:*'")
    refused(
        "an address of this machine",
        s.query_error(query),
        "42501",
        "127.0.0.1, which is not a public one",
        "quad.http_private_networks",
    )
    refused(
        "a name of this machine",
        s.error("SET quad.http_allowed = '*:*'; SELECT quad.sparql(%s)", query.replace("127.0.0.1", "localhost")),
        "42501",
        "not a public one",
    )
    check(len(Handler.asked) == before, "nothing of this reached the server", str(Handler.asked))
    s.rows("SET quad.http_allowed = 'example.org, 127.0.0.1:%d'" % port)
    s.rows("SET quad.http_private_networks = '127.0.0.1/32'")
    check(len(s.sparql(query)) == 3, "allowed")
    refused("another port", s.query_error(query.replace(str(port), "1")), "42501", "port 1 are not allowed")
    refused(
        "a redirect to another server", s.query_error(f"SELECT * {{ {service(port, 'away')} }}"), "42501", "192.0.2.1"
    )
    refused("a redirect to another address", s.query_error(f"SELECT * {{ {service(port, 'private')} }}"), "42501", "127.0.0.2")
    s.rows("SET quad.http_allowed = '*:*'")
    refused("the same where every name is allowed", s.query_error(f"SELECT * {{ {service(port, 'private')} }}"), "42501", "127.0.0.2")
    check(len(s.sparql(f"SELECT * {{ {service(port, 'redirect')} }}")) == 3, "a redirect to the same server")
    refused("a redirect in a circle", s.query_error(f"SELECT * {{ {service(port, 'around')} }}"), "08P01", "redirects")
    refused("a list that cannot be read", s.error("SET quad.http_allowed = 'a b://c'; SELECT quad.sparql(%s)", query), "22023", "b://c")
    user = Session("pgquad_remote_user")
    for name in ("http_allowed", "http_private_networks", "http_ca_file", "http_timeout", "http_max_size"):
        refused(f"quad.{name} is for superusers", user.error(f"SET quad.{name} = '1'"), "42501")
    refused("another user", user.query_error(query), "42501", "quad.http_allowed")
    for setting in ("quad.http_allowed = '*:*'", "quad.http_private_networks = '127.0.0.1'"):
        coordinator().rows(f"ALTER ROLE pgquad_remote_user SET {setting}")
    check(len(Session("pgquad_remote_user").sparql(query)) == 3, "a user for whom a superuser has allowed it")


def answers(report, port):
    """What becomes of answers."""
    check = report.check
    s = allowed()
    s.value("SELECT quad.load_text('PREFIX : <http://x/> :a :knows :b . :b :knows :c . :c :age 5 . :d :at <http://127.0.0.1:%d/names> . "
            ":e :at <http://127.0.0.1:%d/names> . :f :at <http://127.0.0.1:%d/xml> .')" % (port, port, port))

    def same(name, query, *expected):
        got = sorted(json.dumps(row, sort_keys=True) for row in s.sparql("PREFIX : <http://x/> " + query))
        check(got == sorted(json.dumps(row, sort_keys=True) for row in expected), name, str(got))

    same("JSON", f"SELECT ?n {{ {service(port, 'names')} }}", {"n": '"Ada"'}, {"n": '"Bob"'}, {})
    same("XML", f"SELECT ?n {{ {service(port, 'xml')} }}", {"n": '"Ada"@en'})
    same("TSV", f"SELECT ?n {{ {service(port, 'tsv')} }}", {"n": '"42"^^<http://www.w3.org/2001/XMLSchema#integer>'})
    same("a join", f"SELECT ?n {{ ?x :knows ?s {service(port, 'names')} }}", {"n": '"Bob"'}, {})
    same("OPTIONAL", f"SELECT ?o ?n {{ ?o :knows|:age ?s OPTIONAL {{ {service(port, 'names')} FILTER(?n > 'A') }} }}",
         {"o": "<http://x/a>", "n": '"Bob"'}, {"o": "<http://x/b>"}, {"o": "<http://x/c>"})
    same("a filter on both", f"SELECT ?n {{ ?x :knows ?y {service(port, 'names')} FILTER(?x = ?s) }}", {"n": '"Ada"'}, {"n": '"Bob"'})
    same("MINUS", f"SELECT ?s {{ ?s :knows|:age ?x MINUS {{ {service(port, 'tsv')} }} }}", {"s": "<http://x/b>"}, {"s": "<http://x/c>"})
    same(
        "FILTER EXISTS",
        f"SELECT ?s {{ ?s :knows|:age ?x FILTER EXISTS {{ {service(port, 'tsv')} }} }}",
        {"s": "<http://x/a>"},
    )
    before = len(Handler.asked)
    same("an endpoint that a variable names", "SELECT ?o ?n { ?o :at ?e SERVICE ?e { ?s ?p ?n } FILTER(?s = :a) }",
         {"o": "<http://x/d>", "n": '"Ada"'}, {"o": "<http://x/e>", "n": '"Ada"'}, {"o": "<http://x/f>", "n": '"Ada"@en'})
    check(
        sorted(path for path, _ in Handler.asked[before:]) == ["/names", "/xml"],
        "each endpoint is asked once",
        str(Handler.asked[before:]),
    )
    same("the same in OPTIONAL", "SELECT ?n { :f :at ?e OPTIONAL { SERVICE ?e { ?s ?p ?n } } }", {"n": '"Ada"@en'})
    error = s.query_error("SELECT * { SERVICE ?e { ?s ?p ?n } }")
    check(error and error[0] == "22023" and "?e" in error[1], "a variable that nothing binds", str(error))
    error = s.query_error("SELECT * { VALUES ?e { 5 } SERVICE ?e { ?s ?p ?n } }")
    check(error and error[0] == "22023", "an endpoint that is no IRI", str(error))
    same("the same with SILENT", "SELECT ?n { VALUES ?e { 5 } SERVICE SILENT ?e { ?s ?p ?n } }", {})
    s.sparql(f"SELECT ?n {{ {service(port, 'names', '?s :p ?n FILTER(?n > 5)')} }}".replace(":p", "<http://x/p>"))
    sent = Handler.asked[-1][1]
    check("FILTER" in sent and "http://x/p" in sent and sent.startswith("SELECT ?s ?n"), "the query that is sent", sent)

    rows = s.sparql(f"SELECT * {{ {service(port, 'nodes')} }}")
    again = s.sparql(f"SELECT * {{ {service(port, 'nodes')} }}")
    nodes = [row["s"] for row in rows]
    check(nodes[0] == nodes[1] != nodes[2] and nodes[0].startswith("_:"), "blank nodes of one answer", str(rows))
    check(not {row["s"] for row in again} & set(nodes), "blank nodes of another answer are others", str(again))
    s.value("SELECT quad.update(%s)", f"INSERT {{ ?s <http://x/tag> ?n }} WHERE {{ {service(port, 'nodes')} }}")
    stored = s.sparql("SELECT ?n { ?s <http://x/tag> 'x', ?n }")
    check(len(stored) == 2, "a blank node that is stored stays one", str(stored))

    failures = [
        ("an error of the server", "error", "HV000", "500 Internal Server Error: out of luck"),
        ("nothing at this address", "nothing", "HV000", "404 Not Found"),
        ("no SPARQL results", "html", "08P01", "text/html"),
        ("results that cannot be read", "broken", "08P01", "cannot be read"),
        ("results that are cut off", "cut", "08006", "127.0.0.1"),
        ("results that are too large", "large", "54000", "larger than allowed"),
        ("no answer in time", "slow", "08006", "no answer in time"),
    ]
    s.rows("SET quad.http_max_size = '1MB'")
    for name, path, code, part in failures:
        s.rows(f"SET quad.http_timeout = '{'500ms' if path == 'slow' else '60s'}'")
        error = s.query_error(f"SELECT * {{ {service(port, path)} }}")
        check(
            error and error[0] == code and part in error[1] and f"<http://127.0.0.1:{port}/{path}>" in error[1],
            name,
            str(error),
        )
        rows = s.sparql(f"SELECT * {{ VALUES ?x {{ 1 }} {service(port, path, silent='SILENT')} }}")
        check([list(row) for row in rows] == [["x"]], f"{name}: SILENT", str(rows)[:200])
    error = s.query_error(f"SELECT * {{ {service(t.free_port(), 'names')} }}")
    check(error and error[0] == "08006" and "refused" in error[1].lower(), "no server", str(error))
    error = s.query_error("SELECT * { SERVICE <http://no-such-host.invalid:80/> { ?s ?p ?n } }")
    check(error and error[0] == "08006" and "no-such-host.invalid" in error[1], "no such name", str(error))


# Seconds by which a statement that is cancelled has ended on a busy machine; what it waits for takes a minute.
SOON = 20


def cancel(session):
    """Cancels the statement of another session a moment after it has begun."""
    own, pid = Session(port=session.port), session.connection.get_backend_pid()
    active = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND query LIKE 'SELECT quad.%%'"
    t.wait_until("the statement has begun", lambda: own.rows(active, pid))
    time.sleep(0.3)
    own.rows("SELECT pg_cancel_backend(%s)", pid)


def cancelling(report, port):
    """A query that waits can be cancelled at once."""
    check = report.check
    s = allowed()
    for name, sql in [
        ("SERVICE", f"SELECT quad.sparql('SELECT * {{ {service(port, 'slow')} }}')"),
        ("SERVICE SILENT", f"SELECT quad.sparql('SELECT * {{ {service(port, 'slow', silent='SILENT')} }}')"),
        ("LOAD", f"SELECT quad.update('LOAD <http://127.0.0.1:{port}/drip>')"),
        ("LOAD SILENT", f"SELECT quad.update('LOAD SILENT <http://127.0.0.1:{port}/slow>')"),
    ]:
        begun = time.time()
        error = s.error("SET statement_timeout = '300ms'; " + sql)
        took = time.time() - begun
        check(
            error and error[0] == "57014" and took < SOON,
            f"statement_timeout ends {name}",
            f"{error} after {took:.2f} s",
        )
        s.rows("SET statement_timeout = 0")
        canceller = threading.Thread(target=cancel, args=(s,))
        canceller.start()
        begun = time.time()
        error = s.error(sql)
        took = time.time() - begun
        canceller.join()
        check(
            error and error[0] == "57014" and took < SOON,
            f"pg_cancel_backend ends {name}",
            f"{error} after {took:.2f} s",
        )
    check(len(s.sparql(f"SELECT * {{ {service(port, 'names')} }}")) == 3, "the session goes on")


def loads(report, port):
    """LOAD."""
    check = report.check
    s = allowed()
    root = f"http://127.0.0.1:{port}"

    def quads(store):
        return sorted(row[0] for row in s.rows("SELECT quad.export(%s)", store))

    def load(name, request, count, *parts):
        store = "load_" + str(report.passed + report.failed)
        create_store(store)
        got = s.value("SELECT quad.update(%s, %s)", request, store)
        lines = "\n".join(quads(store))
        check(got == count and all(part in lines for part in parts), f"LOAD: {name}", f"{got} {lines[:300]}")

    load("Turtle by its type", f"LOAD <{root}/doc>", 4, "<http://x/a> <http://x/knows> <http://x/b> .", f"<{root}/rel>")
    load("Turtle by its name", f"LOAD <{root}/doc.ttl>", 4)
    load("compressed", f"LOAD <{root}/doc.nt.gz?x=y>", 1)
    load("into a graph", f"LOAD <{root}/doc> INTO GRAPH <http://x/g>", 4, "<http://x/b> <http://x/g> .")
    load(
        "quads", f"LOAD <{root}/quads> INTO GRAPH <http://x/g>", 2, '"x" <http://x/g> .', "<http://x/o> <http://x/g1> ."
    )
    load("the base is the address after redirects", f"LOAD <{root}/moved>", 4, f"<{root}/base/rel>")
    load(
        "several operations",
        f"LOAD <{root}/doc> ; LOAD SILENT <{root}/bad> ; INSERT DATA {{ <http://x/1> <http://x/2> 3 }}",
        5,
    )
    create_store("failed")
    s.rows("SET quad.http_max_size = '1MB'")
    failures = [
        ("an error of the server", "error", "HV000", "500"),
        ("no RDF", "html", "08P01", "text/html"),
        ("bad Turtle", "bad", "22P02", "invalid Turtle"),
        ("too large when unpacked", "bomb.nt.gz", "54000", "larger than"),
        ("too large", "large", "08P01", "sparql-results"),
        ("no answer in time", "slow", "08006", "no answer in time"),
    ]
    for name, path, code, part in failures:
        s.rows(f"SET quad.http_timeout = '{'500ms' if path == 'slow' else '60s'}'")
        error = s.error("SELECT quad.update(%s, 'failed')", f"LOAD <{root}/{path}>")
        check(error and error[0] == code and part in error[1], f"LOAD: {name}", str(error))
        got = s.value("SELECT quad.update(%s, 'failed')", f"LOAD SILENT <{root}/{path}>; INSERT DATA {{ <http://x/1> <http://x/2> 3 }}; DELETE DATA {{ <http://x/1> <http://x/2> 3 }}")
        check(got == 2 and quads("failed") == [], f"LOAD SILENT: {name}", str(got))
    check(s.rows("SELECT * FROM quad.verify('quad_stores.failed')") == [], "the store is sound")
    path = os.path.join(tempfile.mkdtemp(), "a b.ttl")
    with open(path, "wb") as file:
        file.write(TURTLE)
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o644)
    name = "file://" + urllib.parse.quote(path)
    load("a file of the server", f"LOAD <{name}>", 4, f"<{name.rsplit('/', 1)[0]}/rel>")
    s.rows("GRANT ALL ON ALL TABLES IN SCHEMA quad_stores TO pgquad_remote_user")
    error = Session("pgquad_remote_user").error("SELECT quad.update(%s, 'failed')", f"LOAD <{name}>")
    check(
        error and error[0] == "42501" and "pg_read_server_files" in error[1],
        "a file of the server needs the right",
        str(error),
    )
    for bad in ("file:relative.ttl", "file://elsewhere/x.ttl", "file:///x.ttl?y", "file:///%00.ttl"):
        error = s.update_error(f"LOAD <{bad}>")
        check(error and error[0] == "22023", f"{bad} is no file", str(error))


def secure(report):
    """https: certificates are verified."""
    directory = tempfile.mkdtemp()
    os.chmod(directory, 0o755)
    key, certificate = os.path.join(directory, "key.pem"), os.path.join(directory, "ca.pem")
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
    except FileNotFoundError:
        report.skip("https", "openssl is not installed")
        return
    os.chmod(certificate, 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    port = serve(context=context)
    s = allowed()
    query = f"SELECT * {{ {service(port, 'names', host='localhost').replace('http:', 'https:')} }}"
    error = s.query_error(query)
    report.check(
        error and error[0] == "08006" and "UnknownIssuer" in error[1],
        "https: an authority that nobody knows",
        str(error),
    )
    s.rows("SET quad.http_ca_file = '%s'" % certificate)
    report.check(len(s.sparql(query)) == 3, "https: an authority of one's own")
    error = s.query_error(query.replace("localhost", "127.0.0.1"))
    report.check(error and error[0] == "08006", "https: another name than that of the certificate", str(error))
    error = s.error("SET quad.http_ca_file = '%s'; SELECT quad.sparql(%%s)" % key, query)
    report.check(error and error[0] in ("F0000",), "https: a file without certificates", str(error))


def allowed():
    s = Session()
    s.rows("SET quad.http_allowed = '*:*'; SET quad.http_private_networks = '127.0.0.1, ::1'; SET client_min_messages = 'warning'")
    return s


def main():
    report = t.Report("remote")
    admin = psycopg2.connect(dbname="postgres")
    admin.autocommit = True
    cursor = admin.cursor()
    clean = [f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)", "DROP ROLE IF EXISTS pgquad_remote_user"]
    for statement in clean:
        cursor.execute(statement)
    if t.nodes():
        t.create_cluster_database(DATABASE)
        create_store("main")
    else:
        cursor.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
        Session().rows("CREATE EXTENSION pgquad; SET client_min_messages = 'warning'")
    # In the database of the cluster, so that Citus makes the role on every node.
    coordinator().rows("CREATE ROLE pgquad_remote_user LOGIN")
    port = serve()
    rules(report, port)
    answers(report, port)
    cancelling(report, port)
    loads(report, port)
    secure(report)
    if not t.nodes():
        for statement in clean:
            cursor.execute(statement)
    report.finish()


main()
