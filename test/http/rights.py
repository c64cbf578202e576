"""Who may do what: every way in, as nobody, a reader, a writer, a role without rights, and by tokens."""
import os
import tempfile

from endpoint import Endpoint, sql

QUERY = "SELECT * { ?s ?p ?o }"
UPDATE = "INSERT DATA { <http://x/n> <http://x/p> 2 }"
TURTLE = b"<http://x/m> <http://x/p> 3 ."


def ways(endpoint, who):
    """The status of each way in. `who`: headers of the request."""
    return {
        "query": endpoint.query(QUERY, **who).status,
        "other store": endpoint.query(QUERY, store="other", **who).status,
        "update": endpoint.request("POST", "/update", UPDATE.encode(), content_type="application/sparql-update", **who).status,
        "get": endpoint.get("/data?default", **who).status,
        "head": endpoint.request("HEAD", "/data?default", **who).status,
        "put": endpoint.request("PUT", "/data?graph=http://x/put", TURTLE, content_type="text/turtle", **who).status,
        "post": endpoint.request("POST", "/data?graph=http://x/post", TURTLE, content_type="text/turtle", **who).status,
        "delete": endpoint.request("DELETE", "/data?graph=http://x/put", **who).status,
        "description": endpoint.get("/sparql", **who).status,
    }


READS = {"query": 200, "get": 200, "head": 200, "description": 200, "other store": 403}
NOTHING = dict.fromkeys(["query", "get", "head", "description", "other store", "update", "put", "post", "delete"])


def expect(report, endpoint, name, who, statuses):
    given = ways(endpoint, who)
    for way, status in statuses.items():
        report.check(given[way] == status, f"{name}: {way}", f"{given[way]}, not {status}")


def run(report):
    sql("TRUNCATE quad_stores.main")
    sql("SELECT quad.load_text('<http://x/a> <http://x/p> 1 .')")
    with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
        tokens.write("token-of-reader http_reader\ntoken-of-writer http_writer\n")
        tokens.flush()
        with Endpoint(anonymous="http_reader", tokens=tokens.name) as endpoint:
            expect(report, endpoint, "nobody", {}, READS | {"update": 401, "put": 401, "post": 401, "delete": 401})
            asked = endpoint.request("DELETE", "/data?default")
            report.check(
                asked.headers.get("www-authenticate", "").startswith("Basic"),
                "a write by nobody is asked for credentials",
                asked.headers,
            )
            writes = {"update": 403, "put": 403, "post": 403, "delete": 403}
            expect(report, endpoint, "a role without rights", {"user": "http_nobody"}, dict.fromkeys(NOTHING, 403))
            expect(report, endpoint, "a writer", {"user": "http_writer:secret"},
                   READS | {"update": 200, "put": 201, "post": 201, "delete": 204})
            sql("TRUNCATE quad_stores.main")
            expect(report, endpoint, "a reader's token", {"Authorization": "Bearer token-of-reader"}, READS | writes)
            expect(report, endpoint, "a writer's token", {"Authorization": "Bearer token-of-writer"},
                   READS | {"update": 200, "put": 201, "post": 201, "delete": 204})
            expect(report, endpoint, "a wrong token", {"Authorization": "Bearer guess"}, dict.fromkeys(NOTHING, 401))
            expect(report, endpoint, "a header that is none", {"Authorization": "Basic ?"}, dict.fromkeys(NOTHING, 401))
            missing = endpoint.query("ASK {}", user="http_missing")
            report.check(missing.status == 401 and missing.headers.get("www-authenticate", "").startswith("Basic"),
                         "a role that there is not", f"{missing.status} {missing.text()}")
            changes(report, endpoint)
            injections(report, endpoint)
    with Endpoint() as endpoint:
        expect(report, endpoint, "without a role for nobody", {}, dict.fromkeys(NOTHING, 401))
        report.check(endpoint.get("/health").status == 200, "health is for everybody")
    sql("TRUNCATE quad_stores.main")


def changes(report, endpoint):
    """Rights are PostgreSQL's at the time of the request, kept connections or not."""
    user = {"user": "http_writer:secret"}
    sql("REVOKE SELECT ON quad_stores.main FROM http_writer")
    report.check(endpoint.query("ASK { ?s ?p ?o }", **user).status == 403, "a right that was taken away")
    sql("GRANT SELECT ON quad_stores.main TO http_writer")
    report.check(endpoint.query("ASK { ?s ?p ?o }", **user).status == 200, "and given again")
    sql("CREATE POLICY nothing ON quad_stores.main USING (false)")
    sql("ALTER TABLE quad_stores.main ENABLE ROW LEVEL SECURITY")
    sql("INSERT INTO quad_stores.main SELECT quad.encode('<http://x/h>'), quad.encode('<http://x/p>'), quad.encode('1'), 0")
    hidden = endpoint.query("ASK { <http://x/h> ?p ?o }", **user)
    report.check('"boolean":false' in hidden.text(), "a policy", hidden.text())
    sql("DROP POLICY nothing ON quad_stores.main")
    sql("ALTER TABLE quad_stores.main DISABLE ROW LEVEL SECURITY")


def injections(report, endpoint):
    """Nothing of a request is SQL, an option of a connection, or another role."""
    marks = ["'; DROP TABLE quad_stores.main; --", "main'); SELECT pg_sleep(10); --", "\"main\"", "main; RESET ROLE",
             "main -c role=postgres", "../main", "$1", "%27", "x\\'"]
    from urllib.parse import quote
    for mark in marks:
        path = quote(mark, safe="")
        states = [
            endpoint.get(f"/{path}/sparql?query=ASK%7B%7D").status,
            endpoint.get(f"/{path}/data?default").status,
            endpoint.get(f"/data?graph={path}").status,
            endpoint.get(f"/data?graph=http://x/{path}").status,
            endpoint.get(f"/sparql?query={path}").status,
            endpoint.get(f"/sparql?query=ASK%7B%7D&default-graph-uri={path}").status,
            endpoint.request("POST", "/update", mark.encode(), user="http_writer:secret", content_type="application/sparql-update").status,
            endpoint.request("PUT", f"/data?graph=http://x/{path}", mark.encode(), user="http_writer:secret", content_type="text/turtle").status,
            endpoint.query("ASK {}", user=mark).status,
        ]
        report.check(
            all(400 <= status < 500 for status in states[:7] + states[8:]) and states[7] in (201, 204, 400),
            f"injection {mark}",
            states,
        )
    report.check(
        sql("SELECT to_regclass('quad_stores.main') IS NOT NULL")[0][0] and os.environ["PGUSER"] == "postgres",
        "the store is there",
    )
