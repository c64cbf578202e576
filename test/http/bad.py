"""Requests that nobody should send: mutated ones, slow ones, cut ones, many at once. Each has an answer or ends;
nothing stays behind."""
import os
import random
import socket
import threading
import urllib.parse

from pgquad_test import PATIENCE, join_all

from endpoint import Endpoint, sql, until

REQUESTS = int(os.environ.get("PGQUAD_HTTP_REQUESTS", "2000"))
CLIENTS = 1000

SEEDS = [
    b"GET /sparql?query=ASK%20%7B%7D HTTP/1.1\r\nHost: x\r\nAccept: application/sparql-results+json;q=0.5, text/csv\r\n\r\n",
    b"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\nContent-Length: 18\r\n\r\nSELECT * {?s ?p 1}",
    b"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 18\r\n\r\nquery=ASK%20%7B%7D",
    b"POST /update HTTP/1.1\r\nHost: x\r\nAuthorization: Basic aHR0cF93cml0ZXI6c2VjcmV0\r\nContent-Type: application/sparql-update\r\nContent-Length: 37\r\n\r\nINSERT DATA { <http://x> <http://y> 1}",
    b"PUT /data?graph=http://x/g HTTP/1.1\r\nHost: x\r\nAuthorization: Basic aHR0cF93cml0ZXI6c2VjcmV0\r\nContent-Type: text/turtle\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<a> <\r\n6\r\nb> 1 .\r\n0\r\n\r\n",
    b"POST /data?default HTTP/1.1\r\nHost: x\r\nAuthorization: Basic aHR0cF93cml0ZXI6c2VjcmV0\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 77\r\n\r\n--b\r\nContent-Disposition: form-data; name=a\r\nContent-Type: text/turtle\r\n\r\n\r\n--b--",
    b"GET /main/data?graph=http%3A%2F%2Fx%2Fg HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n",
    b"OPTIONS /sparql HTTP/1.1\r\nHost: x\r\nOrigin: http://y\r\nAccess-Control-Request-Method: POST\r\n\r\n",
    b"DELETE /data/a/b HTTP/1.0\r\nAuthorization: Bearer x\r\n\r\n",
]
PIECES = [b"\0", b"\xff\xfe", b"%00", b"%", b"\r\n", b"\n\n", b": ", b"A" * 9000, b"Content-Length: 99\r\n", b"Content-Length: -1\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Content-Encoding: zstd\r\n", b"Expect: 100-continue\r\n",
          b"charset=utf-16", b"Connection: Upgrade\r\nUpgrade: x\r\n", b"?default&graph=", b"../", b"{{{{", b"\"", b"'", b"<", b"ffffffffffffffff\r\n"]


def mutated(rng):
    request = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(request) + 1)
        what = rng.randrange(5)
        if what == 0:
            request[place:place] = rng.choice(PIECES)
        elif what == 1 and place < len(request):
            request[place] = rng.randrange(256)
        elif what == 2:
            del request[place:place + rng.randint(1, 20)]
        elif what == 3:
            request[place:place] = request[max(0, place - 30):place]
        else:
            other = rng.choice(SEEDS)
            request[place:] = other[rng.randrange(len(other)):]
    return bytes(request) or b"\r\n"


def send(port, request):
    """Sends a request and half-closes; the status of the answer, None without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        try:
            client.sendall(request)
            client.settimeout(3)
            answer = client.recv(4096)
        except (ConnectionError, TimeoutError):
            return None
        if not answer:
            return None
        return int(answer.split(b" ", 2)[1])


def mutations(report, endpoint):
    rng = random.Random(14)
    states, wrong = [], []

    def work(requests):
        for request in requests:
            status = send(endpoint.port, request)
            states.append(status)
            if status is not None and status >= 500 and status != 501:
                wrong.append((status, request))

    requests = [mutated(rng) for _ in range(REQUESTS)]
    threads = [threading.Thread(target=work, args=(requests[n::16],), daemon=True) for n in range(16)]
    for thread in threads:
        thread.start()
    join_all(threads, 600)
    counts = {status: states.count(status) for status in set(states)}
    report.check(endpoint.process.poll() is None and len(states) == REQUESTS, f"{REQUESTS} mutated requests", counts)
    report.check(not wrong, "none of them is the server's fault", wrong[:3])
    print(f"statuses: {counts}")
    idle(report, endpoint, "after them")


def idle(report, endpoint, when):
    """Nothing runs and nothing is open."""
    def left():
        return endpoint.figure("pgquad_requests_in_flight"), endpoint.figure("pgquad_clients")

    report.check(until(lambda: left() == (0, 1)), f"nothing stays behind {when}", left())
    report.check(endpoint.query("ASK {}").status == 200, f"an answer {when}")


def slow(report):
    """Clients that send or take nothing for too long lose their connection, and others are served meanwhile."""
    with Endpoint(anonymous="http_reader", header_timeout=1, stall_timeout=1) as endpoint:
        def opened(text):
            client = socket.create_connection(("127.0.0.1", endpoint.port), timeout=PATIENCE)
            client.sendall(text)
            return client

        body = b"Host: x\r\nContent-Type: application/sparql-query\r\nContent-Length: 1000\r\n\r\nASK"
        put = b"Host: x\r\nAuthorization: Basic aHR0cF93cml0ZXI6c2VjcmV0\r\nContent-Type: text/turtle\r\nContent-Length: 1000\r\n\r\n<a>"
        clients = [opened(b"GET /sparql") for _ in range(50)]
        clients += [opened(b"POST /sparql HTTP/1.1\r\n" + body) for _ in range(10)]
        clients += [opened(b"PUT /data?default HTTP/1.1\r\n" + put) for _ in range(5)]
        report.check(endpoint.query("ASK {}").status == 200, "slow clients are in nobody's way")
        answers = []
        for client in clients:
            with client:
                try:
                    answers.append(client.recv(100)[9:12])
                except (TimeoutError, ConnectionError) as error:
                    answers.append(type(error).__name__.encode())
        report.check(b"TimeoutError" not in answers, "slow clients are sent away", set(answers))
        report.check(answers[-1] == b"408" and answers[55] == b"408", "a body that stops coming gets 408", answers[50:])
        idle(report, endpoint, "of slow clients")
        sql("INSERT INTO quad_stores.main SELECT quad.encode(('<http://slow/' || i || '>')::quad.term), quad.encode('<http://x/slow>'), "
            "quad.encode(i::text::quad.term), 0 FROM generate_series(1, 2000) i")
        query = urllib.parse.quote("SELECT * { ?a <http://x/slow> ?b . ?c <http://x/slow> ?d }")
        with opened(b"GET /sparql?query=" + query.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n") as client:
            client.recv(1000)
            active = (
                "SELECT pid, query FROM pg_stat_activity WHERE application_name = 'pgquad-server' AND state = 'active'"
            )
            report.check(until(lambda: sql(active) == []), "an answer that nobody takes is cancelled", sql(active))
        idle(report, endpoint, "of an answer that nobody takes")


def many(report):
    """As many connections as there may be descriptors for, each with a request."""
    with Endpoint(
        anonymous="http_reader", pool_size=8, queue_timeout=2 * PATIENCE, header_timeout=2 * PATIENCE
    ) as endpoint:
        clients = []
        for _ in range(CLIENTS):
            clients.append(socket.create_connection(("127.0.0.1", endpoint.port), timeout=2 * PATIENCE))
        for client in clients:
            client.sendall(b"GET /sparql?query=ASK%20%7B%7D HTTP/1.1\r\nHost: x\r\n\r\n")
        states = [client.recv(4096)[9:12] for client in clients]
        report.check(
            states.count(b"200") == CLIENTS, f"{CLIENTS} connections", {s: states.count(s) for s in set(states)}
        )
        backends = sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgquad-server'")[0][0]
        report.check(backends <= 8, "the pool holds its size", backends)
        for client in clients:
            client.close()
        idle(report, endpoint, "of many connections")


def run(report):
    sql("TRUNCATE quad_stores.main")
    # None of the mutated requests waits for its turn for too long, which would be a 503.
    with Endpoint(anonymous="http_reader", stall_timeout=2, queue_timeout=PATIENCE) as endpoint:
        mutations(report, endpoint)
    slow(report)
    many(report)
    sql("TRUNCATE quad_stores.main")
