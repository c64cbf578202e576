"""Data and query logs of the Berlin benchmark: the shared ones of the official generator, or those of bench/bsbm."""

import gzip
import os
import shutil
import subprocess

import data
from environment import ROOT

# Products, and the name of the official data of that scale.
SCALES = {"100k": (284, "bsbm-100k"), "1m": (2785, "bsbm-1m"), "10m": (28480, None), "100m": (284826, None)}


def program(name, binary=None):
    """A Rust program of the workspace, built: package pgquad-`name`, whose binary has that name too unless it is
    told."""
    command = ["cargo", "build", "--quiet", "--release", "-p", f"pgquad-{name}"]
    subprocess.run(command, cwd=ROOT, check=True)
    return os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "release", binary or name)


class DataSet:
    """Triples of a scale in an N-Triples file, and logs of queries that fit them."""

    def __init__(self, scale, directory):
        self.scale = scale
        self.directory = directory
        self.products, official = SCALES[scale]
        self.official = official if official and data.source(official + ".nt.gz") else None
        self.key = self.official or f"generated-{scale}"

    def _make(self, name, *arguments):
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            command = [program("bsbm"), *arguments, "--products", str(self.products), "--out", path + ".part"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            os.chmod(path + ".part", 0o644)
            os.rename(path + ".part", path)
        return path

    def triples(self):
        """Path of the N-Triples file, which the server can read."""
        if self.official:
            return data.unpacked(data.source(self.official + ".nt.gz"), self.directory)
        return self._make(f"{self.key}.nt", "data")

    def packed(self):
        """Path of the same file, gzip."""
        if self.official:
            return data.source(self.official + ".nt.gz")
        path = self.triples() + ".gz"
        if not os.path.exists(path):
            with open(self.triples(), "rb") as plain, gzip.open(path + ".part", "wb") as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
            os.rename(path + ".part", path)
        return path

    def log(self, mix="explore", seed=1, mixes=50):
        """Path of a query log. The official data have one log, of the Explore mix."""
        if self.official and mix == "explore" and seed == 1:
            return data.source(self.official + ".queries.jsonl.gz")
        if self.official:
            raise ValueError("the official data have no such log")
        return self._make(f"{self.key}.{mix}.{seed}.{mixes}.jsonl", "log", "--mix", mix, "--log-seed", str(seed), "--mixes", str(mixes))

    def generated(self):
        """The same scale, made by bench/bsbm: for what the official data have no queries for."""
        made = DataSet(self.scale, self.directory)
        made.official, made.key = None, f"generated-{self.scale}"
        return made
