"""The stores that this one is compared with: the scripts of bench/peers, and their servers while a benchmark runs."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import environment  # first: it makes pgquad_test known
from pgquad_test import free_port

SCRIPTS = os.path.join(environment.ROOT, "bench", "peers")
NAMES = ["oxigraph", "virtuoso", "fuseki", "blazegraph"]
# Virtuoso 7 answers on a kept connection only after the delayed acknowledgement of what it sent before.
CLOSING = {"virtuoso"}
# Lines of the log of a server that died that are reported.
LOG_LINES = 10


class Peer:
    """A store that is set up here."""

    def __init__(self, name):
        self.name = name
        self.label = self._run("version")
        # What is known of the end of its server, where the server ended before it was told to.
        self.death = None

    def _run(self, *arguments, timeout=None):
        command = [os.path.join(SCRIPTS, self.name), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout.strip()

    def load(self, file, directory):
        """Loads an N-Triples file into a new store in a directory and optimizes it; returns the seconds that the load
        took."""
        started = time.monotonic()
        self._run("load", file, directory)
        seconds = time.monotonic() - started
        self._run("optimize", directory)
        return seconds

    def load_once(self, file, key):
        """The directory of a store with a file's triples, kept for the next benchmark; `key` names them."""
        directory = os.path.join(_kept(), f"{self.name}-{key}")
        if not os.path.exists(directory):
            loading = directory + ".loading"
            shutil.rmtree(loading, ignore_errors=True)
            self.load(file, loading)
            os.rename(loading, directory)
        return directory

    @contextlib.contextmanager
    def serving(self, directory, timeout):
        """Serves a store; yields the URL of its endpoint. Queries may take so many seconds."""
        port = free_port()
        url = f"http://127.0.0.1:{port}{self._run('path')}"
        with tempfile.TemporaryFile() as log:
            command = [os.path.join(SCRIPTS, self.name), "serve", directory, str(port), str(timeout)]
            server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            try:
                _wait_for(url, server, log)
                yield url
            finally:
                self._look_at(server, log)
                server.terminate()
                try:
                    server.wait(60)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()

    def _look_at(self, server, log):
        """Takes note of a server that has died by itself, which is why figures of it are missing."""
        status = server.poll()
        if status is None:
            return
        end = f"signal {-status}" if status < 0 else f"exit status {status}"
        self.death = f"DIED: the server of {self.label}, {end}; the end of its log:\n\n" + "".join(
            f"    {line}\n" for line in _text_of(log).splitlines()[-LOG_LINES:]
        )
        print(self.death, flush=True)

    def option(self, url):
        """How `replay` is told of this peer."""
        return ["--http-close" if self.name in CLOSING else "--http", f"{self.label}={url}"]


def _kept():
    directory = os.path.join(
        os.environ.get("PGQUAD_PEERS") or os.path.join(environment.ROOT, "target", "bench-peers"), "data"
    )
    os.makedirs(directory, exist_ok=True)
    return directory


def _wait_for(url, server, log):
    query = url + ("&" if "?" in url else "?") + "query=ASK%20%7B%7D"
    until = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(query, timeout=10) as answer:
                answer.read()
            return
        except (urllib.error.URLError, OSError) as error:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{url}: {error}\n" + _text_of(log)) from None
            time.sleep(0.1)


def _text_of(log):
    """The end of a log."""
    log.seek(0)
    return log.read().decode(errors="replace")[-2000:]


def available(names=None):
    """The peers that are set up, of those named; says aloud which are not."""
    found = []
    for name in names or NAMES:
        try:
            found.append(Peer(name))
        except RuntimeError:
            print(f"SKIPPED {name}: it is not set up (bench/peers/{name} setup)")
    return found


def disk_bytes(directory):
    """What a store takes on disk."""
    return sum(
        os.stat(os.path.join(folder, name)).st_blocks * 512 for folder, _, names in os.walk(directory) for name in names
    )
