"""A Citus cluster of throw-away servers on loopback: one coordinator, two workers."""

import os
import subprocess

from pgquad_test import Server, bin_path

SETTINGS = {
    # Citus insists on being first.
    "shared_preload_libraries": "citus,pgquad",
    "max_prepared_transactions": 100,
    "wal_level": "logical",
    "fsync": "off",
    # What waits for ever is an error of the check that it belongs to, and the others still run.
    "statement_timeout": "5min",
    # Shards are looked at by name, in the catalogs too.
    "citus.override_table_visibility": "off",
}


def settings(number):
    """Those of a node. Each looks for deadlocks at a pace of its own (2, 3.5, 5 s). A node ends a transaction of its
    own. So nodes that always look at the same moment end both transactions of a circle, each time that they are
    tried."""
    return {**SETTINGS, "citus.distributed_deadlock_detection_factor": 2 + 1.5 * number}


class Cluster:
    """Starts on entering, stops and is removed on leaving."""

    def __init__(self, shards_on_coordinator=False, **more):
        """`more`: settings of all nodes."""
        self.shards_on_coordinator = shards_on_coordinator
        self.coordinator = Server("cluster-coordinator", settings(0) | more)
        self.workers = [Server(f"cluster-worker{number}", settings(number) | more) for number in (1, 2)]

    @property
    def servers(self):
        return [self.coordinator, *self.workers]

    def __enter__(self):
        try:
            for server in self.servers:
                server.init().start()
                server.query("create extension citus")
            self.run_file("cluster.sql", **self.addresses())
        except BaseException:
            self.__exit__()
            raise
        return self

    def addresses(self):
        """What cluster.sql wants to know."""
        return {
            "coordinator": f"127.0.0.1:{self.coordinator.port}",
            "workers": " ".join(f"127.0.0.1:{worker.port}" for worker in self.workers),
            "shards_on_coordinator": str(self.shards_on_coordinator).lower(),
        }

    def run_file(self, name, **variables):
        """Runs a file of citus-config on the coordinator, as users do."""
        psql = [bin_path("psql"), "-X", "-q", "-h", "127.0.0.1", "-p", str(self.coordinator.port), "-U", "postgres", "-d", "postgres"]
        for variable, value in variables.items():
            psql += ["-v", f"{variable}={value}"]
        path = os.path.join(os.environ["PGQUAD_ROOT"], "citus-config", name)
        done = subprocess.run(
            [*psql, "-f", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stdout}")

    def activity(self):
        """What the sessions of all nodes do and wait for, a line each: for the output of a check that has not ended in
        time."""
        query = """select pid, state, wait_event_type, wait_event, pg_blocking_pids(pid), now() - xact_start, left(query, 100)
            from pg_stat_activity where backend_type <> 'walwriter' and pid <> pg_backend_pid() and state is distinct from 'idle'"""
        return "\n".join(
            f"{os.path.basename(server.dir)}: {row}" for server in self.servers for row in server.query(query)
        )

    def check_crashes(self, report):
        """A check for each node: its log tells of no crash."""
        for server in self.servers:
            crashes = server.crashes_in_log()
            report.check(not crashes, f"no crash of {os.path.basename(server.dir)}", "; ".join(crashes[:3]))

    def __exit__(self, *_):
        for server in self.servers:
            server.remove()
