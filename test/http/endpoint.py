"""A pgquad-server of one's own, and requests to it."""
import base64
import http.client
import json
import os
import signal
import subprocess
import time
import urllib.parse

import psycopg2

from pgquad_test import PATIENCE, free_port

DATABASE = "pgquad_http"


def connect(database=DATABASE):
    connection = psycopg2.connect(host=os.environ["PGHOST"], port=os.environ["PGPORT"],
                                  user=os.environ["PGUSER"], dbname=database)
    connection.autocommit = True
    return connection


def sql(text, *parameters):
    """Runs a statement in the suite's database; its rows, if it has any."""
    connection = connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute(text, parameters)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def until(condition, seconds=PATIENCE):
    """Whether a condition comes true in time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.05)
    return False


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.body = response.read()
        self.headers = {}
        for name, value in response.getheaders():
            known = self.headers.get(name.lower())
            self.headers[name.lower()] = f"{known}, {value}" if known else value

    @property
    def media(self):
        return self.headers.get("content-type", "").split(";")[0]

    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


class Endpoint:
    """The server with these options (pool_size=3 is --pool-size=3)."""

    def __init__(self, postgres=None, **options):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        here = f"postgres://{os.environ['PGUSER']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/{DATABASE}"
        command = [os.environ["PGQUAD_SERVER"], f"--postgres={postgres or here}", f"--listen=127.0.0.1:{self.port}"]
        options.setdefault("log", "warn")
        command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                self.get("/metrics")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("the server does not start") from None
                time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, how=signal.SIGTERM):
        """Ends the server; its exit status."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def request(self, method, path, body=None, user=None, timeout=PATIENCE, **headers):
        """One request. Headers are keywords: content_type="text/turtle"; `user` is sent as Basic, name or
        name:password."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if user is not None:
            pair = user if ":" in user else user + ":"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, **headers)

    def query(self, text, store=None, **headers):
        path = f"/{store}/sparql" if store else "/sparql"
        return self.get(path + "?query=" + urllib.parse.quote(text), **headers)

    def update(self, text, user="postgres", **headers):
        return self.request(
            "POST", "/update", text.encode(), user=user, content_type="application/sparql-update", **headers
        )

    def figure(self, name):
        """A figure of /metrics without labels."""
        for line in self.get("/metrics").text().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise KeyError(name)

    def memory(self):
        """Resident bytes of the server at their highest."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
        return 0
