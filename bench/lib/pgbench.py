"""pgbench as a measuring instrument: prepared statements, one script, figures out of its report."""

import re
import subprocess
import tempfile

import environment  # noqa: F401 first: it makes pgquad_test known
from pgquad_test import bin_path


def run(server, script, table, seconds, clients=1, variables=None, seed=1):
    """Runs a script against a table, `TABLE` in its text; returns {"tps", "transactions", "latency_ms" of each
    command}.

    The same seed draws the same random numbers, so that two sides are asked the same.
    """
    with open(script, encoding="utf-8") as file, tempfile.NamedTemporaryFile("w", suffix=".sql") as filled:
        filled.write(file.read().replace("TABLE", table))
        filled.flush()
        command = [
            bin_path("pgbench"), "-n", "-M", "prepared", "-r", "-c", str(clients), "-j", str(min(clients, 2)),
            "-T", str(seconds), "-f", filled.name, f"--random-seed={seed}",
            "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres",
        ]  # fmt: skip
        for name, setting in (variables or {}).items():
            command += ["-D", f"{name}={setting}"]
        done = subprocess.run([*command, "postgres"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pgbench {script}:\n{done.stderr}")
    commands = done.stdout.split("statement latencies in milliseconds", 1)[1].splitlines()[1:]
    return {
        "tps": float(re.search(r"tps = ([\d.]+)", done.stdout).group(1)),
        "transactions": int(re.search(r"number of transactions actually processed: (\d+)", done.stdout).group(1)),
        "latency_ms": [float(line.split()[0]) for line in commands if line.strip()],
    }
