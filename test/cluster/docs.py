#!/usr/bin/python3
"""The examples of README.md and docs/cluster.md that need a cluster, on three nodes. Usage: docs.py (by `run`)."""

import os
import subprocess
import sys

ROOT = os.environ["PGQUAD_ROOT"]
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

from nodes import Cluster


def main():
    with Cluster(shards_on_coordinator=True) as cluster:
        ports = [str(server.port) for server in cluster.servers]
        environment = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": ports[0], "PGUSER": "postgres", "PGDATABASE": "postgres"}
        pages = [os.path.join(ROOT, page) for page in ("README.md", "docs/cluster.md")]
        runner = [sys.executable, os.path.join(ROOT, "test", "docs", "pages.py"), "--cluster", ",".join(ports)]
        # Its last line has the counts.
        sys.exit(subprocess.run([*runner, *pages], env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
