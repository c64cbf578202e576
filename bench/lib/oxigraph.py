"""Oxigraph as a peer: its Python package in a virtual environment of its own, made by bench/peers/oxigraph-setup."""

import json
import os
import shutil
import subprocess
import tempfile

from environment import ROOT, STATE

PYTHON = os.path.join(ROOT, "target", "bench-peers", "oxigraph", "bin", "python")

LOAD = """
import json, sys, time
import pyoxigraph
started = time.monotonic()
store = pyoxigraph.Store(sys.argv[2])
store.bulk_load(path=sys.argv[1], format=pyoxigraph.RdfFormat.N_TRIPLES)
store.flush()
seconds = time.monotonic() - started
store.optimize()
store.flush()
print(json.dumps(seconds))
"""


def available():
    return os.path.exists(PYTHON)


def _python(code, *arguments):
    done = subprocess.run([PYTHON, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def version():
    return _python("import json, pyoxigraph; print(json.dumps('Oxigraph ' + pyoxigraph.__version__))")


def load_into(file, directory):
    """Loads an N-Triples file into a new store in a directory; returns the seconds it took."""
    return _python(LOAD, file, directory)


def load(file):
    """Loads an N-Triples file into a store that is then removed; seconds, and bytes on disk after optimising."""
    directory = tempfile.mkdtemp(prefix="oxigraph-", dir=STATE)
    try:
        seconds = load_into(file, directory)
        size = sum(
            os.stat(os.path.join(folder, name)).st_blocks * 512 for folder, _, names in os.walk(directory) for name in names
        )
        return seconds, size
    finally:
        shutil.rmtree(directory)
