"""pgquad-server in front of a benchmark's server, with the options that it has by default."""

import contextlib
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import bsbm
import environment  # noqa: F401  first: it makes pgquad_test known
from pgquad_test import free_port


class Endpoint:
    """Where it listens, and its process."""

    def __init__(self, url, process):
        self.url = url
        self.process = process

    def peak_bytes(self):
        """Resident memory at its highest."""
        return peak_bytes(self.process.pid)


def peak_bytes(pid):
    """Resident memory of a process at its highest."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))


@contextlib.contextmanager
def endpoint(server, database="postgres"):
    """A pgquad-server that asks a database as its owner, without credentials too."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        bsbm.program("server", "pgquad-server"), "--anonymous", "postgres", "--listen", url.removeprefix("http://"),
        "--postgres", f"postgres://postgres@127.0.0.1:{server.port}/{database}",
    ]  # fmt: skip
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(url, process, log)
            yield Endpoint(url, process)
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(url, process, log):
    until = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url + "/health", timeout=10) as answer:
                answer.read()
            return
        except (urllib.error.URLError, OSError) as error:
            if process.poll() is not None or time.monotonic() > until:
                log.seek(0)
                raise RuntimeError(f"{url}: {error}\n" + log.read().decode(errors="replace")[-2000:]) from None
            time.sleep(0.05)
