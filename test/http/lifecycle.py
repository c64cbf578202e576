"""The server and PostgreSQL come and go: restarts under load, nodes that are down, certificates that change,
options."""
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import psycopg2

from pgquad_test import PATIENCE, Server, free_port, join_all

from endpoint import DATABASE, Endpoint, connect, until


class Load:
    """Clients that ask without a pause and count what they get."""

    def __init__(self, endpoint, clients=4):
        self.endpoint, self.states, self.stopped = endpoint, {}, False
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self):
        while not self.stopped:
            try:
                status = self.endpoint.query("SELECT * { ?s ?p ?o } LIMIT 10").status
            except (OSError, ValueError) as error:
                status = type(error).__name__
            except Exception as error:  # http.client has errors of its own
                status = type(error).__name__
            self.states[status] = self.states.get(status, 0) + 1

    def answered(self, more):
        """Waits until so many more requests have been answered."""
        wanted = self.states.get(200, 0) + more
        return until(lambda: self.states.get(200, 0) >= wanted)

    def stop(self):
        self.stopped = True
        join_all(self.threads)
        return self.states


def postgres_restarts(report):
    """PostgreSQL killed and started again, twice, while clients ask."""
    server = Server("http").init().start()
    try:
        server.query("CREATE DATABASE " + DATABASE)
        for text in [
            "CREATE EXTENSION pgquad",
            "SELECT quad.create_store('main')",
            "SELECT quad.load_text('<http://x/a> <http://x/p> 1 .')",
        ]:
            server.query(text, database=DATABASE)
        uri = f"postgres://postgres@127.0.0.1:{server.port}/{DATABASE}"
        with Endpoint(postgres=uri, anonymous="postgres", queue_timeout=5) as endpoint:
            load = Load(endpoint)
            for _ in range(2):
                load.answered(10)
                server.kill()
                report.check(
                    until(lambda: endpoint.get("/health").status == 503), "health says that PostgreSQL is gone"
                )
                server.start()
                report.check(until(lambda: endpoint.get("/health").status == 200), "and that it is back")
                report.check(until(lambda: endpoint.query("ASK {}").status == 200), "queries are answered again")
            states = load.stop()
            report.check(
                set(states) <= {200, 503, "IncompleteRead"} and states[200] > 10,
                "restarts of PostgreSQL under load",
                states,
            )
            report.check(
                until(lambda: endpoint.figure("pgquad_requests_in_flight") == 0), "nothing stays behind of restarts"
            )
    finally:
        server.remove()


def cut_answers(report):
    """An answer that ends with the connection (HTTP/1.0) is not taken for whole when its time is up."""
    digits = " ".join(map(str, range(10)))
    many = "SELECT * {" + "".join(f" VALUES ?v{n} {{ {digits} }}" for n in range(8)) + " }"
    path = "/sparql?" + urllib.parse.urlencode({"query": many, "timeout": "1"})
    request = f"GET {path} HTTP/1.0\r\nAccept: text/csv\r\n\r\n"
    with Endpoint(anonymous="http_reader") as endpoint:
        with socket.create_connection(("127.0.0.1", endpoint.port), PATIENCE) as client:
            client.sendall(request.encode())
            head = client.recv(12)
            try:
                while client.recv(1 << 20):
                    pass
                end = "closed"
            except ConnectionResetError:
                end = "reset"
        report.check((head, end) == (b"HTTP/1.0 200", "reset"), "an answer that is cut", f"{head} {end}")


def server_restarts(report):
    """The server ended under load: by TERM requests are answered to their end; by KILL no backend stays at work."""
    endpoint = Endpoint(anonymous="http_reader")
    load = Load(endpoint)
    load.answered(20)
    status = endpoint.stop(signal.SIGTERM)
    states = load.stop()
    refused = {"ConnectionRefusedError", "ConnectionResetError", "RemoteDisconnected"}
    report.check(status == 0 and set(states) - refused == {200}, "TERM", f"{status} {states}")
    endpoint = Endpoint(anonymous="http_reader")
    load = Load(endpoint)
    load.answered(10)
    endpoint.stop(signal.SIGKILL)
    load.stop()
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgquad-server'"

    def left():
        connection = connect()
        with connection.cursor() as cursor:
            cursor.execute(count)
            found = cursor.fetchone()[0]
        connection.close()
        return found

    report.check(until(lambda: left() == 0), "KILL leaves no backend", left())


def nodes(report):
    """Two nodes, one of which is not there."""
    here = f"postgres://{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/{DATABASE}"
    nowhere = f"postgres://postgres@127.0.0.1:{free_port()}/{DATABASE}"
    with Endpoint(postgres=f"{nowhere},{here}", anonymous="http_reader") as endpoint:
        states = [endpoint.query("ASK {}").status for _ in range(20)]
        report.check(states == [200] * 20, "a node that is down is left out", states)
        text = endpoint.get("/metrics").text()
        up = [line for line in text.splitlines() if line.startswith("pgquad_node_up")]
        report.check(sorted(line[-1] for line in up) == ["0", "1"], "the figures say so", up)
        activity = endpoint.get("/-/running", user="postgres").json()
        report.check(
            activity["nodes"] == [f"{os.environ['PGHOST']}:{os.environ['PGPORT']}"],
            "what is running is told by those that answer",
            activity,
        )
    # The same server by two names stands for two nodes: each tells of a session that sleeps.
    other = here.replace(os.environ["PGHOST"], "localhost" if os.environ["PGHOST"] != "localhost" else "127.0.0.1")
    with Endpoint(postgres=f"{here},{other}", anonymous="http_reader") as endpoint:
        sleeper = connect()

        def sleep():
            with contextlib.suppress(psycopg2.errors.QueryCanceled):
                sleeper.cursor().execute("SELECT pg_sleep(600)")

        thread = threading.Thread(target=sleep, daemon=True)
        thread.start()

        def sleeping():
            activity = endpoint.get("/-/running", user="postgres").json()
            return activity["nodes"], sorted(
                session["node"] for session in activity["sessions"] if "pg_sleep" in session["text"]
            )

        both = sorted(uri.split("@")[1].split("/")[0] for uri in (here, other))
        report.check(
            until(lambda: [sorted(part) for part in sleeping()] == [both, both]),
            "what is running is told by all nodes",
            sleeping(),
        )
        sleeper.cancel()
        join_all([thread])
        sleeper.close()


def certificate(directory, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1",
                    "-keyout", f"{directory}/key.new", "-out", f"{directory}/cert.new"], check=True, capture_output=True)
    for file in ["key", "cert"]:
        os.replace(f"{directory}/{file}.new", f"{directory}/{file}.pem")


def tls(report):
    with tempfile.TemporaryDirectory() as directory:
        certificate(directory, "first.example")
        port = free_port()
        here = f"postgres://{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/{DATABASE}"
        process = subprocess.Popen(
            [
                os.environ["PGQUAD_SERVER"],
                f"--postgres={here}",
                f"--listen=127.0.0.1:{port}",
                "--anonymous=http_reader",
                f"--tls-cert={directory}/cert.pem",
                f"--tls-key={directory}/key.pem",
                "--log=error",
            ]
        )

        def trusted():
            try:
                context = ssl.create_default_context(cafile=f"{directory}/cert.pem")
                with urllib.request.urlopen(
                    f"https://127.0.0.1:{port}/sparql?query=ASK%7B%7D", context=context, timeout=10
                ) as answer:
                    return answer.status == 200
            except OSError:
                return False

        try:
            report.check(until(trusted), "TLS")
            certificate(directory, "second.example")
            report.check(until(trusted), "a new certificate is taken up")
            with open(f"{directory}/key.pem", "w", encoding="ascii") as file:
                file.write("nonsense")
            time.sleep(3)
            report.check(trusted(), "one that is not right is not")
        finally:
            process.terminate()
            process.wait(PATIENCE)


def options(report):
    def run(*arguments, **environment):
        done = subprocess.run([os.environ["PGQUAD_SERVER"], *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env=os.environ | environment)
        return done.returncode, done.stdout + done.stderr

    status, text = run("--help")
    report.check(
        status == 0 and all(name in text for name in ["--postgres", "PGQUAD_ANONYMOUS", "/metrics", "Example:"]),
        "--help",
        text,
    )
    for name, arguments in {"no postgres": [], "a port that is none": ["--postgres=postgres://h/d", "--listen=x"],
                            "a file that is not there": ["--config=/nowhere"], "a URI that is none": ["--postgres=:::"],
                            "a certificate without a key": ["--postgres=postgres://h/d", "--tls-cert=x"],
                            "tokens that are not there": ["--postgres=postgres://h/d", "--tokens=/nowhere"]}.items():
        status, text = run(*arguments)
        report.check(status in (1, 2) and "error" in text, f"options: {name}", f"{status} {text}")


def run(report):
    options(report)
    nodes(report)
    tls(report)
    cut_answers(report)
    server_restarts(report)
    postgres_restarts(report)
