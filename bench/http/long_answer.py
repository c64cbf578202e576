"""A SELECT of millions of rows as TSV: rows a second as a client counts them, and the memory that the answer takes."""

import subprocess
import threading
import time
import urllib.parse

from pgquad_test import private_kb
from server import rows, value

TSV = "text/tab-separated-values"
# Between two looks at a process's memory, seconds.
LOOK = 0.1


def query(copies):
    """All triples of the store, so many times over."""
    values = " ".join(map(str, range(copies)))
    return f"SELECT ?s ?p ?o ?n {{ VALUES ?n {{ {values} }} ?s ?p ?o }}"


def read(url, copies, timeout):
    """Seconds from the request to the last row, and how many rows there were. The client is curl, which counts nothing
    but bytes."""
    address = url + ("&" if "?" in url else "?") + "query=" + urllib.parse.quote(query(copies))
    started = time.monotonic()
    curl = subprocess.Popen(
        ["curl", "-sSN", "--fail", "--max-time", str(timeout), "-H", f"Accept: {TSV}", address], stdout=subprocess.PIPE
    )
    lines = subprocess.run(["wc", "-l"], stdin=curl.stdout, capture_output=True, text=True, check=True)
    curl.stdout.close()
    status = curl.wait()
    if status != 0:
        raise RuntimeError(f"curl: exit status {status} after {lines.stdout.strip()} lines")
    return time.monotonic() - started, int(lines.stdout) - 1


class Memory:
    """The most private memory that the backends of the endpoint have while an answer is read. Shared buffers do not
    count."""

    def __init__(self, connection):
        self.connection = connection
        self.peak_kb = 0

    def __enter__(self):
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def _look(self):
        found = "select pid from pg_stat_activity where application_name = 'pgquad-server'"
        while not self.ended.wait(LOOK):
            for (pid,) in rows(self.connection, found):
                try:
                    self.peak_kb = max(self.peak_kb, private_kb(pid))
                except FileNotFoundError:
                    continue


def work_mem(connection):
    return value(connection, "select pg_size_bytes(current_setting('work_mem'))")


