"""Common ground of the Python suites: a PostgreSQL server of one's own, and the report that `make test` reads.

Environment (set by `make test`, see dev/lib.sh): PG_CONFIG, PGQUAD_STATE.
"""
import contextlib
import ctypes
import faulthandler
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback

import psycopg2

sys.stdout.reconfigure(line_buffering=True)
# A suite that takes too long is ended by `make test`: it then shows where each of its threads is.
faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)


def adopt_orphans():
    """Makes this process the parent of the servers that it starts, so that it can reap those that it kills. Where
    nobody does (containers without an init), the next start would take the dead postmaster for a running one."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


adopt_orphans()


class Report:
    """Counts tests; `finish` prints the line that `make test` reads and exits."""

    def __init__(self, suite):
        self.suite = suite
        self.passed = self.failed = self.skipped = 0

    def check(self, ok, name, detail=""):
        if ok:
            self.passed += 1
            print(f"PASS {self.suite}/{name}")
        else:
            self.failed += 1
            print(f"FAIL {self.suite}/{name}" + (f": {detail}" if detail else ""))
        return ok

    def attempt(self, name, check, *arguments):
        """Runs a check, which fails by an exception; whatever that is, the other checks still run. Returns whether it
        passed."""
        started = time.monotonic()
        try:
            check(*arguments)
        except Exception as error:
            traceback.print_tb(error.__traceback__, limit=-4, file=sys.stdout)
            return self.check(False, name, " ".join(str(error).splitlines()[:4]))
        return self.check(True, f"{name} ({time.monotonic() - started:.1f} s)")

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIPPED {self.suite}/{name}: {why}")

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(1 if self.failed else 0)


def pg_config(option):
    return subprocess.check_output([os.environ["PG_CONFIG"], option], text=True).strip()


def bin_path(program):
    return os.path.join(pg_config("--bindir"), program)


def server_user():
    """PostgreSQL refuses root, so root's servers run as postgres."""
    return "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


def as_server(command, **options):
    """Runs a command as the server's user; raises with its output when it fails."""
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--"] + command
    done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def socket_directory():
    """A directory for the Unix-domain sockets of servers, whose paths are limited to 107 bytes."""
    directory = os.path.join(os.environ["PGQUAD_STATE"], "sockets")
    if len(directory) > 80:
        directory = f"/tmp/pgquad-sockets-{os.geteuid()}"
    as_server(["mkdir", "-p", "-m", "755", directory])
    return directory


def nodes():
    """Ports of the nodes of a cluster on this machine, the coordinator first, from PGQUAD_NODES; none: one server."""
    return [int(port) for port in os.environ.get("PGQUAD_NODES", "").split(",") if port]


def create_cluster_database(name):
    """A new database on every node of PGQUAD_NODES, a Citus cluster with the extension; returns a connection to each
    node."""

    def connect(port, database):
        connection = psycopg2.connect(host="127.0.0.1", port=port, user="postgres", dbname=database)
        connection.autocommit = True
        return connection

    def execute(connection, sql, parameters=None):
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)

    ports = nodes()
    # Workers first: the coordinator's daemons talk to them.
    for port in reversed(ports):
        execute(connect(port, "postgres"), f"drop database if exists {name} with (force)")
    for port in ports:
        execute(connect(port, "postgres"), f"create database {name} template template0 encoding 'UTF8'")
        execute(connect(port, name), "create extension citus")
    coordinator = connect(ports[0], name)
    execute(coordinator, "select citus_set_coordinator_host('127.0.0.1', %s)", (ports[0],))
    execute(coordinator, "select citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', true)", (ports[0],))
    for port in ports[1:]:
        execute(coordinator, "select citus_add_node('127.0.0.1', %s)", (port,))
    execute(coordinator, "create extension pgquad")
    return [connect(port, name) for port in ports]


def free_range(count, *hosts):
    """So many ports in a row that nobody listens on at any of these addresses, below those that the kernel gives to
    clients. So a server that is down for a while finds its port free when it comes back."""
    while True:
        low = random.SystemRandom().randrange(16000, 32000 - count)
        ports = range(low, low + count)
        if _given_ports.intersection(ports):
            continue
        try:
            for port in ports:
                for host in hosts:
                    with socket.socket() as probe:
                        probe.bind((host, port))
        except OSError:
            continue
        _given_ports.update(ports)
        return list(ports)


# Ports that this process has given out, whose servers may not have started yet.
_given_ports = set()


def free_port():
    return free_range(1, "127.0.0.1")[0]


# Seconds by which what has to happen has happened on the busiest machine: a limit for what never comes, not a figure of
# speed.
PATIENCE = 120


def wait_until(what, condition, seconds=PATIENCE, pause=0.05):
    """Waits until a condition holds, and gives its value; raises when it does not come to hold in time."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > until:
            raise RuntimeError(f"in vain for {seconds} s: {what}")
        time.sleep(pause)
    return value


def join_all(threads, seconds=2 * PATIENCE):
    """Waits for the end of threads; raises when one of them goes on."""
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))
    left = sum(thread.is_alive() for thread in threads)
    if left:
        raise RuntimeError(f"{left} of {len(threads)} threads have not ended after {seconds} s")


def stat_of(pid):
    """What /proc/PID/stat says after the program's name: state, parent, ..."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rsplit(")", 1)[1].split()


def children_of(pid):
    """Process ids of all direct children."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if int(stat_of(entry)[1]) == pid:
                    found.append(int(entry))
            except (OSError, IndexError):
                continue
    return found


def private_kb(pid):
    """Memory of a process that is its own, in KB: shared buffers it has touched do not count."""
    total = 0
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                total = int(line.split()[1])
    return total


class Server:
    """A PostgreSQL server with a data directory of its own, below PGQUAD_STATE, with pgquad preloaded."""

    def __init__(self, name, settings=None, port=None):
        self.dir = os.path.join(os.environ["PGQUAD_STATE"], name)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "log")
        self.port = port or free_port()
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "shared_preload_libraries": "pgquad",
            "timezone": "UTC",
            "log_line_prefix": "%m [%p] ",
        }
        self.settings.update(settings or {})

    def init(self):
        """A new, empty data directory; whatever an earlier run left is removed."""
        self.remove()
        as_server(["mkdir", "-p", self.dir])
        as_server([bin_path("initdb"), "-D", self.data, "-U", "postgres", "--auth=trust", "-E", "UTF8",
                   "--locale=C.UTF-8", "--no-sync"])
        self.configure()
        return self

    def configure(self, **more):
        self.settings.update(more)
        lines = "".join(f"{name} = '{value}'\n" for name, value in self.settings.items())
        as_server(["sh", "-c", 'printf %s "$1" >>"$2/postgresql.conf"', "sh", lines, self.data])

    def alter_system(self, name, value=None):
        """Changes a setting of the running server, or takes it back. All sessions that are there have been told of it
        when this returns: `pg_reload_conf` asks the postmaster for that, and does not wait."""
        self.query(f"alter system reset {name}" if value is None else f"alter system set {name} = '{value}'")
        [(asked,)] = self.query("select clock_timestamp()")
        self.query("select pg_reload_conf()")
        # A session that begins later has its settings from the postmaster.
        wait_until("settings are read", lambda: self.query("select pg_conf_load_time() >= %s", (asked,))[0][0])
        # The one that has seen them may be among those that the postmaster is telling; the next begins when all are
        # told.
        self.query("select 1")

    def start(self, timeout=2 * PATIENCE):
        try:
            as_server([bin_path("pg_ctl"), "-D", self.data, "-l", self.log, "-w", "-t", str(timeout), "start"])
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{self.log_tail()}") from None
        return self

    def stop(self, mode="fast"):
        pid = self.pid()
        if pid:
            as_server([bin_path("pg_ctl"), "-D", self.data, "-m", mode, "-w", "-t", str(2 * PATIENCE), "stop"])
            reap(pid)

    def pid(self):
        """The postmaster's process id, None when it does not run."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
                pid = int(file.readline())
            os.kill(pid, 0)
            return pid
        except (OSError, ValueError):
            return None

    def kill(self):
        """kill -9 of the postmaster and of every process it has; returns when all are gone."""
        pid = self.pid()
        # Stopped, it starts no process any more: one that is not in the list would live on after it, and the next start
        # would find its shared memory in use.
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(pid, signal.SIGSTOP)
            wait_until("the postmaster stands still", lambda: stat_of(pid)[0] in "TZ", pause=0.001)
        victims = children_of(pid) + [pid]
        # All stand still before the first goes. A process that sees the postmaster die ends by itself, and one of Citus
        # that has committed and waits for other nodes panics then.
        for sent in (signal.SIGSTOP, signal.SIGKILL):
            for victim in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, sent)
        until = time.monotonic() + PATIENCE
        while victims:
            victims = [victim for victim in victims if not reap(victim)]
            if victims and time.monotonic() > until:
                raise RuntimeError("killed processes do not go away")
            time.sleep(0.01)

    def connect(self, database="postgres", autocommit=True, **more):
        connection = psycopg2.connect(host="127.0.0.1", port=self.port, user="postgres", dbname=database, **more)
        connection.autocommit = autocommit
        return connection

    def query(self, sql, parameters=None, database="postgres"):
        """Rows of one statement in a connection of its own ([] when it returns none)."""
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def log_tail(self, lines=30):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError as error:
            return str(error)

    def crashes_in_log(self):
        """Lines of the log that tell of a crash, a failed assertion or corruption."""
        signs = ("PANIC", "was terminated by signal 11", "was terminated by signal 6", "TRAP:", "panicked", "already borrowed",
                 "shared lock object", "invalid page", "corrupt")
        # After a crash in recovery PostgreSQL always hints that data "might be corrupted".
        return [line for line in self.lines_in_log(signs) if "might be corrupted" not in line]

    def lines_in_log(self, signs):
        """Lines of the log in which one of these texts stands."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return [line.rstrip() for line in file if any(sign in line for sign in signs)]

    def remove(self):
        if self.pid():
            self.stop("immediate")
        if os.path.isdir(self.dir):
            shutil.rmtree(self.dir)


def base_backup(primary, name, settings=None):
    """A server whose data directory is a base backup of the primary, set up as its standby."""
    standby = Server(name, settings)
    standby.remove()
    as_server(["mkdir", "-p", standby.dir])
    as_server([bin_path("pg_basebackup"), "-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres", "-D", standby.data,
               "-X", "stream", "-R", "--checkpoint=fast", "--no-sync"])
    as_server([bin_path("pg_verifybackup"), "-n", standby.data])
    standby.configure(max_standby_streaming_delay="2s")
    return standby


def reap(pid):
    """True when the process is gone; collects it when it is a dead child of ours."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not os.path.exists(f"/proc/{pid}")


def problems(connection, table):
    """What quad.verify has to say against a table."""
    cursor = connection.cursor()
    cursor.execute("select v::text from quad.verify(%s::regclass) v", (table,))
    return [row[0] for row in cursor.fetchall()]


QUAD_COLUMNS = "s bigint not null, p bigint not null, o bigint not null, g bigint not null"


def create_table(connection, name, leaf_quads=0, inner_fanout=0, orders=None):
    """A quad table with the given page limits (0: what fits)."""
    cursor = connection.cursor()
    cursor.execute("select set_config('quad.leaf_quads', %s, false), set_config('quad.inner_fanout', %s, false)",
                   (str(leaf_quads), str(inner_fanout)))
    if orders:
        cursor.execute("select set_config('quad.orders', %s, false)", (orders,))
    cursor.execute(f"create table {name} ({QUAD_COLUMNS}) using quad")
    cursor.execute("reset quad.leaf_quads; reset quad.inner_fanout; reset quad.orders")


def has_function(connection, name):
    """Whether a function of schema quad is there (parts of the extension may be left out of a build)."""
    cursor = connection.cursor()
    cursor.execute(
        "select exists (select from pg_proc where proname = %s and pronamespace = 'quad'::regnamespace)", (name,)
    )
    return cursor.fetchone()[0]


def seeded(seed):
    """A random generator and its seed, for messages."""
    if seed is None:
        seed = random.randrange(1 << 32)
    return random.Random(seed), seed
