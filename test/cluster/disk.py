"""A node whose disk is full: every statement ends with 53100, nothing of it stays, and the next one works. Usage:
disk.py (by `run`).

The shards and temporary files of one node are in a tablespace on a small file system of its own, which needs root.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, as_server, wait_until

MEGABYTES = 96
QUADS = 60_000
# What needs more than what is left.
FILL = "insert into quad_stores.films select i + 1000000, 7, i, 0 from generate_series(1, 200000) i"
TERMS = ("select quad.load_text((select string_agg(format('<http://x/%s> <http://x/p> \"%s\" .', i, repeat(md5(i::text), 20)), E'\\n') "
         "from generate_series(1, 40000) i), store => 'films')")
MOVE = "select citus_move_shard_placement(shardid, nodename, nodeport, '127.0.0.1', {port}, 'block_writes') from citus_shards " \
       "where table_name = 'quad_shards.films_s'::regclass and nodeport <> {port} order by shardid limit 1"
SORT = "select count(*) from (select a.s, b.o from quad_stores.films a join quad_stores.films b on b.s = a.o order by b.o, a.s offset 1) x"
GROUPS = "select count(*) from (select a.s, b.o, count(*) from quad_stores.films a join quad_stores.films b on b.s = a.o group by 1, 2) x"


class Mismatch(AssertionError):
    """Something that is not as it has to be."""


class Checks:
    def __init__(self, cluster, report, directory):
        self.cluster, self.report = cluster, report
        self.ballast = os.path.join(directory, "ballast")
        self.directory = directory
        self.small = cluster.workers[1]
        tables = os.path.join(directory, "tables")
        as_server(["mkdir", tables])
        connection = self.small.connect()
        with connection.cursor() as cursor:
            cursor.execute("set citus.enable_ddl_propagation = off")
            cursor.execute(f"create tablespace small location '{tables}'")
        connection.close()
        for setting in ("default_tablespace", "temp_tablespaces"):
            self.small.alter_system(setting, "small")
        coordinator = cluster.coordinator
        coordinator.query("select quad.create_store('films', distributed => true, shards => 6)")
        coordinator.query(
            f"insert into quad_stores.films select i, i % 7, i * 31 % {QUADS}, 0 from generate_series(1, {QUADS}) i"
        )
        coordinator.query("select quad.create_store('later')")
        coordinator.query(
            f"insert into quad_stores.later select i, i % 7, i * 31 % {QUADS}, 0 from generate_series(1, {QUADS}) i"
        )

    def full(self, free):
        """Leaves so many bytes."""
        self.roomy()
        # What has been dropped is given back by a checkpoint.
        self.small.query("checkpoint")
        state = os.statvfs(self.directory)
        with open(self.ballast, "wb") as file:
            file.write(b"x" * max(0, state.f_bavail * state.f_frsize - free))

    def roomy(self):
        if os.path.exists(self.ballast):
            os.remove(self.ballast)

    def counts(self):
        return {
            tuple(
                server.query(f"select count(*) from {table}")[0][0]
                for table in ("quad_stores.films", "quad_shards.films_s", "quad_shards.films_o")
            )
            for server in self.cluster.servers
        }

    def refused(self, node, sql, free):
        self.full(free)
        connection = self.cluster.servers[node].connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute("set work_mem = '64kB'")
                cursor.execute("set quad.exchange_mode = push")
                cursor.execute(sql)
            raise Mismatch("there was room")
        except psycopg2.Error as error:
            if error.pgcode != "53100":
                raise Mismatch(f"SQLSTATE {error.pgcode}: {error}") from None
        finally:
            connection.close()
            self.roomy()
        if self.counts() != {(QUADS,) * 3}:
            raise Mismatch(f"quads in the store and its tables: {self.counts()}")
        for server in self.cluster.servers:
            server.query("select recover_prepared_transactions()")
            wait_until("nothing is prepared", lambda server=server: not server.query("select from pg_prepared_xacts"))
        files = "select name from pg_ls_tmpdir((select oid from pg_tablespace where spcname = 'small'))"
        wait_until("no temporary file is left", lambda: not self.small.query(files))
        problems = self.cluster.coordinator.query("select quad.verify('quad_stores.films')")
        if problems:
            raise Mismatch(f"{problems[:3]}")

    def run(self):
        cases = [
            (f"{name} by node {node}", node, sql, 200_000)
            for name, sql in (("quads", FILL), ("terms", TERMS), ("groups", GROUPS))
            for node in range(3)
        ]
        cases.append(("a sort", 2, SORT, 200_000))
        cases.append(("a store is distributed", 0, "select quad.distribute_store('later', shards => 6)", 600_000))
        cases.append(("a shard is moved", 0, MOVE.format(port=self.small.port), 100_000))
        for name, node, sql, free in cases:
            self.report.attempt(name, self.refused, node, sql, free)
        self.cluster.check_crashes(self.report)


def small_file_system(directory):
    """Whether there is one now."""
    os.makedirs(directory, exist_ok=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=777", "tmpfs", directory],
                                           stderr=subprocess.DEVNULL, check=False).returncode != 0:
        os.rmdir(directory)
        return False
    return True


if __name__ == "__main__":
    report = Report("disk")
    place = os.path.join(os.environ["PGQUAD_STATE"], "small-disk")
    if small_file_system(place):
        try:
            with Cluster() as cluster:
                Checks(cluster, report, place).run()
        finally:
            subprocess.run(["umount", place], check=False)
            os.rmdir(place)
    else:
        report.skip("a full disk", "a small file system cannot be mounted here")
    report.finish()
