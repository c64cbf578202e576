"""Clients that go away take along what PostgreSQL does for them. That is a query, an answer on its way, an update, or
an upload in each of its phases; the connection is closed, half-closed or reset."""
import socket
import struct
import threading
import time
import urllib.parse

import psycopg2
from endpoint import Endpoint, connect, sql, until
from pgquad_test import PATIENCE

# The promise, beyond what a cancel request of PostgreSQL's own client takes on this machine now. The best of some tries
# keeps it on busy machines too, where more of them may be needed; each of them has to be far from a timeout.
CANCELLED, ALWAYS, TRIES, MOST_TRIES = 0.1, 20.0, 3, 20
# After so many seconds nothing is left of a request that was sent ahead.
NEXT = 0.2

# Little to parse and to plan, much to do.
NUMBERS = " ".join(map(str, range(300)))
VALUES = " ".join(f"VALUES ?{name} {{ {NUMBERS} }}" for name in "abcd")
SLOW = f"{{ {VALUES} FILTER(?a + ?b = ?c * -1 - ?d - 1) }}"
COUNT = f"SELECT (COUNT(*) AS ?n) {SLOW}"
ROWS = f"SELECT * {{ {VALUES} }}"
UPDATE = f"INSERT {{ <http://gone/s> <http://gone/p> ?a }} WHERE {SLOW}"
WRITER = b"Authorization: Basic aHR0cF93cml0ZXI6c2VjcmV0\r\n"


def post(path, kind, body):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n".encode()
    return head + WRITER + b"\r\n" + body.encode()


def triples(count, first=0):
    return b"".join(b'<http://gone/s%d> <http://gone/p> "%d" .\n' % (n, n) for n in range(first, first + count))


def put(coding):
    return b"PUT /data?graph=http://gone/g HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-triples\r\n" + WRITER + coding + b"\r\n\r\n"


def whole_upload():
    """A body that has come whole: PostgreSQL is to write it for a while."""
    body = triples(400_000)
    return put(b"Content-Length: %d" % len(body)) + body


def chunk(body):
    return b"%x\r\n" % len(body) + body + b"\r\n"


class Watch:
    """What backends of the server do, seen over a connection that is kept."""

    def __init__(self):
        self.connection = connect()
        self.cursor = self.connection.cursor()

    def active(self):
        self.cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgquad-server' "
                            "AND (state = 'active' OR state LIKE 'idle in transaction%')")
        return self.cursor.fetchone()[0]

    def until(self, wanted, seconds):
        """Seconds until so many backends are at work; None if they never are."""
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            if self.active() == wanted:
                return time.monotonic() - started
            time.sleep(0.002)
        return None

    def close(self):
        self.connection.close()


def own_cancel(watch, statement):
    """Seconds that a cancel request of libpq takes to end the same work, at the same point of it, which is sent to
    PostgreSQL itself."""
    connection = connect()
    ended = []

    def ask():
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET application_name = 'pgquad-server'; " + statement)
        except psycopg2.extensions.QueryCanceledError:
            ended.append(time.monotonic())

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    watch.until(1, PATIENCE)
    # A cancel request that comes before the query has begun is lost.
    while thread.is_alive():
        time.sleep(0.05)
        started = time.monotonic()
        connection.cancel()
        thread.join(10)
    connection.close()
    return ended[0] - started


def closed(client):
    client.close()


def half_closed(client):
    client.shutdown(socket.SHUT_WR)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def leave(endpoint, watch, request, reads, how):
    """Seconds from the client's leaving to the end of its work; a text where that is not to be had."""
    client = socket.create_connection(("127.0.0.1", endpoint.port), timeout=PATIENCE)
    try:
        client.sendall(request)
        if reads:
            client.recv(1000)
        if watch.until(1, PATIENCE) is None:
            return "its work does not begin"
        # It is in the middle of it then.
        time.sleep(0.05)
        if watch.active() != 1:
            return "its work does not last"
        how(client)
        took = watch.until(0, ALWAYS)
        if took is None:
            return "its work goes on"
        # Nor does what it had asked for next begin, but for the moment until that is seen.
        time.sleep(NEXT)
        return took if watch.active() == 0 else "its next request is worked on"
    finally:
        client.close()


def tries(endpoint, watch, request, reads, how, limit):
    """Some tries, and more until one is in time: whether it is, and none went on for long; and the tries."""
    took = []
    while len(took) < MOST_TRIES:
        took.append(leave(endpoint, watch, request, reads, how))
        if took[-1] in ("its work goes on", "its next request is worked on"):
            return False, took
        if len(took) >= TRIES and any(isinstance(one, float) and one < limit for one in took):
            return True, took
    return False, took


def run(report):
    sql("TRUNCATE quad_stores.main")
    query = "/sparql?query=" + urllib.parse.quote(
        "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?c != ?f) }"
    )
    get = f"GET {query} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    asked = post("/sparql", "application/sparql-query", COUNT)
    cases = {
        "a query": (asked, False),
        "a query by GET": (get, False),
        "an answer on its way": (post("/sparql", "application/sparql-query", ROWS), True),
        "an update": (post("/update", "application/sparql-update", UPDATE), False),
        "a query with another one behind it": (asked + asked, False),
        "an answer on its way with a query behind it": (
            post("/sparql", "application/sparql-query", ROWS) + asked,
            True,
        ),
        "an upload that stops in the middle": (put(b"Content-Length: 100000000") + triples(50_000), False),
        "an upload in chunks that stops in the middle": (
            put(b"Transfer-Encoding: chunked") + chunk(triples(50_000)),
            False,
        ),
        "an upload that is being written": (whole_upload(), False),
    }
    sql("INSERT INTO quad_stores.main SELECT quad.encode(('<http://row/' || i || '>')::quad.term), quad.encode('<http://x/row>'), "
        "quad.encode(i::text::quad.term), 0 FROM generate_series(1, 3000) i")
    watch = Watch()
    with Endpoint(anonymous="http_reader") as endpoint:
        watch.until(0, PATIENCE)
        limits = {
            name: CANCELLED + max(own_cancel(watch, statement) for _ in range(TRIES))
            for name, statement in {
                "an update": f"SELECT quad.update($q${UPDATE}$q$)",
                "other": f"SELECT quad.sparql_json($q${COUNT}$q$)",
            }.items()
        }
        for name, (request, reads) in cases.items():
            limit = limits.get(name, limits["other"])
            for how in (closed, half_closed, reset):
                in_time, took = tries(endpoint, watch, request, reads, how, limit)
                report.check(in_time, f"gone: {name}, {how.__name__}", f"{took}, not {limit:.3f} s")
        left = sql("SELECT count(*) FROM quad_stores.main WHERE s <> ALL (SELECT quad.encode(('<http://row/' || i || '>')::quad.term) "
                   "FROM generate_series(1, 3000) i)")[0][0]
        report.check(left == 0, "gone: nothing of it is written", left)
        report.check(until(lambda: endpoint.figure("pgquad_requests_in_flight") == 0), "gone: no request is left")
        report.check(endpoint.query("ASK {}").status == 200, "gone: others are answered")
    watch.close()
    sql("TRUNCATE quad_stores.main")
