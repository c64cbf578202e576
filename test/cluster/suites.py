"""The suites that ask SPARQL, once more on distributed stores of a cluster of three nodes, which are asked in turn.
Usage: suites.py [--all] [SUITE..] (by `run`); --all runs the long ones whole.
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from nodes import Cluster
from pgquad_test import Report

# Suites with their arguments: in the short form (None: left out of it), and whole.
SUITES = {
    "bsbm": (["--mixes", "10"], []),
    "join": (["--cases", "150"], []),
    "differential": (["--cases", "150"], []),
    "w3c": ([], []),
    "remote": ([], []),
    "badinput": (["malformed", "odd", "compression", "arguments", "queries"], []),
    "cluster/pgtap.py": (None, ["--all"]),
}
# Joins as they come, and all of them pushed from node to node, in batches of 1 kB.
MODES = {"": "", " pushed": "-c quad.exchange_mode=push -c quad.exchange_batch_bytes=1024"}
# Suites that ask little that could be pushed.
NOT_PUSHED = {"remote", "badinput", "cluster/pgtap.py"}
COUNTS = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


def main():
    whole = "--all" in sys.argv[1:]
    named = [argument for argument in sys.argv[1:] if argument != "--all"]
    report = Report("cluster-suites")
    root = os.environ["PGQUAD_ROOT"]
    with Cluster() as cluster:
        ports = ",".join(str(server.port) for server in cluster.servers)
        environment = os.environ | {"PGQUAD_NODES": ports, "PGHOST": "127.0.0.1", "PGPORT": ports.split(",")[0], "PGUSER": "postgres"}
        runs = [(suite, arguments, mode) for mode in MODES for suite, arguments in SUITES.items() if not (mode and suite in NOT_PUSHED)]
        for suite, arguments, mode in runs:
            if (suite not in named) if named else (arguments[whole] is None):
                continue
            path = os.path.join(root, "test", suite)
            command = [sys.executable, path] if suite.endswith(".py") else [os.path.join(path, "run")]
            command += arguments[whole] or []
            done = subprocess.run(
                command,
                env=environment | {"PGOPTIONS": MODES[mode]},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            counts = COUNTS.findall(done.stdout)
            if done.returncode == 77:
                report.skip(suite + mode, done.stdout.strip().splitlines()[-1])
                continue
            if not counts:
                report.check(False, suite + mode, done.stdout[-2000:])
                continue
            passed, failed, skipped = map(int, counts[-1])
            if failed or done.returncode:
                print("\n".join(line[:500] for line in done.stdout.splitlines() if line.startswith("FAIL"))[:20000])
            report.passed += passed
            report.failed += max(failed, done.returncode != 0)
            report.skipped += skipped
            print(f"{suite}{mode}: {counts[-1]}")
        cluster.check_crashes(report)
    report.finish()


if __name__ == "__main__":
    main()
