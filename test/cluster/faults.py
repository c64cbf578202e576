"""Faults between nodes: a node that is down, killed or cut off in the middle, slow links, an asking session that is
cancelled, timed out or killed. They come while a query pulls, decodes, or is pushed from node to node, while a load
runs, and while a transaction commits. Usage: faults.py [--all] [CHECK..] (by `run`).

Every node is known to the others by the address of a proxy (test/lib/tcp_proxy.py), for PostgreSQL and for rows that
are pushed; the tests themselves ask nodes directly. After each fault: an error in time that names the node, nothing
left on any node, all or nothing of what was written, and the next query works.
"""

import os
import sys
import threading
import time
from contextlib import ExitStack, closing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, free_range
from tcp_proxy import Proxy

SUBJECTS = 3000
# A graph of which three steps take long enough to be disturbed: nodes, and links of each.
HUBS, LINKS = 1500, 8
# Bytes per second to and from a node that is about to be lost, so that it is in the middle of something.
RATE = 200_000
# Ports for sessions that take part in pushed joins, on each node.
PORTS = 20
# Seconds after which a node that says nothing counts as lost, and by which a statement has to have ended then. They are
# three keepalive times on a quiet machine, five times that on a busy one.
TIMEOUT = 4
IN_TIME = 60
# How often a fault is tried again that came when the operation had ended already. Each time the operation is four times
# as slow.
TRIES = 4
SETTINGS = {
    "quad.node_timeout": TIMEOUT * 1000,
    "quad.node_connect_timeout": TIMEOUT * 1000,
    "citus.node_connection_timeout": TIMEOUT * 1000,
    "citus.node_conninfo": f"sslmode=disable tcp_user_timeout={TIMEOUT * 1000} keepalives_idle=1 keepalives_interval=1 keepalives_count=3",
    # What waits for a node that is gone.
    "tcp_keepalives_idle": 1,
    "tcp_keepalives_interval": 1,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": TIMEOUT * 1000,
    "citus.recover_2pc_interval": -1,
}


class Mismatch(AssertionError):
    """Something that is not as it has to be."""


def same(what, got, expected):
    if got != expected:
        raise Mismatch(f"{what}: {str(got)[:300]}, expected {str(expected)[:300]}")


class ProxiedCluster(Cluster):
    """Three nodes, each of which the others reach through its proxy."""

    def __init__(self):
        super().__init__(shards_on_coordinator=True)
        self.proxies = []
        for n, server in enumerate(self.servers):
            host = f"127.0.0.{11 + n}"
            ports = free_range(PORTS, "127.0.0.1", host)
            server.settings |= SETTINGS | {"quad.exchange_host": host, "quad.exchange_ports": f"{ports[0]}-{ports[-1]}"}
            self.proxies.append(Proxy(host, [server.port, *ports]))
        self.running = ExitStack()

    def name(self, node):
        return f"{self.proxies[node].host}:{self.servers[node].port}"

    def addresses(self):
        names = [self.name(node) for node in range(3)]
        return {"coordinator": names[0], "workers": " ".join(names[1:]), "shards_on_coordinator": "true"}

    def __enter__(self):
        for proxy in self.proxies:
            self.running.enter_context(proxy)
        return super().__enter__()

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self.running.close()


class Operation:
    """A statement in a thread of its own, on a new connection to a node."""

    def __init__(self, server, statements, settings=()):
        self.connection = server.connect(autocommit=False)
        self.pid = self.connection.get_backend_pid()
        self.statements, self.settings = statements, settings
        self.answer = self.error = None
        # Whether the server has closed the connection.
        self.broken = False
        # When it began, when the fault came, and when it had ended.
        self.started = self.fault = self.ended = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        self.started = time.monotonic()
        try:
            with self.connection.cursor() as cursor:
                for statement in [*self.settings, *self.statements]:
                    cursor.execute(*([statement] if isinstance(statement, str) else statement))
                self.answer = sorted(cursor.fetchall()) if cursor.description else []
            self.connection.commit()
        except psycopg2.Error as error:
            self.error = error
        self.ended = time.monotonic()

    @property
    def took(self):
        """Seconds from the fault, or from the beginning, to the end."""
        return self.ended - (self.fault or self.started)

    def start(self):
        self.thread.start()
        return self

    def wait(self):
        """Waits for the end; it has to come in time."""
        self.thread.join(IN_TIME + 60)
        if self.thread.is_alive():
            raise Mismatch(f"{str(self.statements)[:100]} still runs after {IN_TIME + 60} s")
        self.broken = self.connection.closed == 2
        self.connection.close()
        return self


def triples(name, count):
    return "".join(
        f"<http://x/{name}{i}> <http://x/knows> <http://x/{name}{i * 7 % count}> .\n"
        f'<http://x/{name}{i}> <http://x/name> "a name of {name} with number {i}, long enough for no id" .\n'
        for i in range(count)
    )


def links():
    return "".join(
        f"<http://x/hub{i}> <http://x/link> <http://x/hub{(i * 7 + n * 31 + 1) % HUBS}> .\n"
        for i in range(HUBS)
        for n in range(LINKS)
    )


class Checks:
    PULL = "SELECT (COUNT(*) AS ?n) { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/knows> ?d . ?d <http://x/name> ?n }"
    PUSH = "SELECT (COUNT(*) AS ?n) { ?a <http://x/link> ?b . ?b <http://x/link> ?c . ?c <http://x/link> ?d }"
    READING = ("pull", "decoding", "push")
    # Bytes that have gone to a node in the middle of an operation.
    MOVED = {"push": 50_000}
    DECODE = "SELECT ?s ?n { ?s <http://x/name> ?n }"

    def __init__(self, cluster, report):
        self.cluster, self.report = cluster, report
        self.loads = 0
        cluster.coordinator.query("select quad.create_store('films', distributed => true, shards => 6)")
        cluster.coordinator.query(
            "select quad.load_text(%s, 'nt', store => 'films')", (triples("s", SUBJECTS) + links(),)
        )
        self.operations = {"pull": self.pull, "decoding": self.decoding, "push": self.push, "load": self.load, "commit": self.commit}
        self.expected = {name: self.finished(node, name) for node in (0, 1) for name in self.READING}

    # -- what is under way when the fault comes

    def pull(self, node):
        # Small batches, so that there are many messages.
        return self.operation(
            node, [("select quad.sparql(%s, 'films')::text", (self.PULL,))], ["set quad.join_batch_size = 200"]
        )

    def push(self, node):
        # Small batches, so that rows are under way all the time.
        return self.operation(node, [("select quad.sparql(%s, 'films')::text", (self.PUSH,))],
                              ["set quad.exchange_mode = push", "set quad.exchange_batch_bytes = 2048"])

    def decoding(self, node):
        return self.operation(node, [("select quad.sparql(%s, 'films')::text", (self.DECODE,))])

    def load(self, node):
        self.loads += 1
        return self.operation(
            node,
            [
                (
                    "select quad.load_text(%s, 'nt', store => 'films')",
                    (triples(f"load{self.loads}_", 2000).replace("/knows>", "/loaded>").replace("/name>", "/called>"),),
                )
            ],
        )

    def commit(self, node):
        self.loads += 1
        quads = f"select quad.int_id({self.loads}), quad.int_id(i), quad.int_id(i * 31), quad.int_id(77) from generate_series(1, 200) i"
        return self.operation(node, [f"insert into quad_stores.films {quads}", "commit"])

    def operation(self, node, statements, settings=()):
        return Operation(self.cluster.servers[node], statements, settings)

    def finished(self, node, name):
        done = self.operations[name](node).start().wait()
        if done.error:
            raise Mismatch(f"{name} on node {node}: {done.error}")
        return done.answer

    def wrote(self):
        """Quads of the last load or commit that each of both tables has, as every node sees them."""
        subjects = self.cluster.coordinator.query(
            "select coalesce(array_agg(id), '{}') from (select quad.find(quad.iri(format('http://x/load%%s_%%s', %s::int, i))) as id from generate_series(0, 1999) i) t "
            "where id is not null", (self.loads,))[0][0]
        counts = set()
        for node in range(3):
            for column in "so":
                rows = self.cluster.servers[node].query(f"select count(*) from quad_shards.films_{column} where g = quad.int_id(77) and s = quad.int_id({self.loads})")
                loaded = self.cluster.servers[node].query(
                    f"select count(*) from quad_shards.films_{column} where s = any(%s::bigint[])", (subjects,)
                )
                counts.add((rows[0][0], loaded[0][0]))
        return counts

    # -- what has to hold afterwards

    def eventually(self, what, ask, expected, seconds=IN_TIME):
        until = time.monotonic() + seconds
        while (got := ask()) != expected:
            if time.monotonic() > until:
                raise Mismatch(f"{what} after {seconds} s: {str(got)[:500]}")
            time.sleep(0.2)

    BUSY = (
        "select pid, application_name, state, left(query, 60) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() "
        "and state <> 'idle' and (application_name = 'pgquad' or application_name like 'citus\\_internal%%' or application_name = '')"
    )

    def nothing_busy(self, nodes=(0, 1, 2)):
        for node in nodes:
            self.eventually(
                f"sessions on node {node}", lambda node=node: self.cluster.servers[node].query(self.BUSY), []
            )

    def prepared(self):
        """Prepared transactions of all nodes, after what can be decided has been."""
        for server in self.cluster.servers:
            server.query("select recover_prepared_transactions()")
        return [gid for server in self.cluster.servers for (gid,) in server.query("select gid from pg_prepared_xacts")]

    def nothing_is_left(self):
        self.nothing_busy()
        self.eventually("prepared transactions", self.prepared, [])
        for node, server in enumerate(self.cluster.servers):
            self.eventually(
                f"temporary files on node {node}",
                lambda server=server: server.query("select name from pg_ls_tmpdir()"),
                [],
            )
            # The sessions that the asker kept go with it.
            self.eventually(
                f"kept sessions on node {node}",
                lambda server=server: server.query(
                    "select pid, state, query from pg_stat_activity where application_name = 'pgquad'"
                ),
                [],
            )
            locks = (
                "select l.pid, l.mode, l.relation::regclass::text from pg_locks l join pg_stat_activity a using (pid) "
                "where locktype = 'relation' and pid <> pg_backend_pid() and a.state <> 'idle' and a.backend_type = 'client backend'"
            )
            self.eventually(f"locks on node {node}", lambda server=server, locks=locks: server.query(locks), [])
        for node in range(3):
            for name in self.READING:
                same(f"{name} on node {node} afterwards", self.finished(node, name), self.expected[name])
        same("problems", self.cluster.coordinator.query("select quad.verify('quad_stores.films')"), [])

    def failed_in_time(self, operation, victim, what):
        if operation.took > IN_TIME:
            raise Mismatch(f"{what} ended after {operation.took:.1f} s only: {operation.error}")
        if operation.error is None:
            raise Mismatch(f"{what} did not notice")
        server = self.cluster.servers[victim]
        message = str(operation.error)
        if (
            f"{self.cluster.proxies[victim].host}:{server.port}" not in message
            and f"{self.cluster.proxies[victim].host}" not in message
        ):
            raise Mismatch(f"{what}: the message does not name the node: {message}")
        if operation.error.pgcode is None or operation.error.pgcode.startswith("XX"):
            raise Mismatch(f"{what}: SQLSTATE {operation.error.pgcode}: {message}")

    def in_the_middle(self, operation, proxy, moved=2000):
        """Starts an operation and waits until bytes of it have gone to the node."""
        before = proxy.bytes
        operation.start()
        until = time.monotonic() + IN_TIME
        while proxy.bytes < before + moved and operation.thread.is_alive() and time.monotonic() < until:
            time.sleep(0.002)

    def at_full_speed(self):
        """No proxy holds anything up any more."""
        for proxy in self.cluster.proxies:
            proxy.delay, proxy.rate = 0, None

    def disturbed(self, asker, name, proxies, disturb, mend):
        """An operation that a fault has ended after bytes of it had gone through the last one of the proxies, which are
        slow. On a busy machine it may have got all that it needs before the fault comes. Then its answer is right, and
        a slower one is disturbed."""
        for turn in range(TRIES):
            for proxy in proxies:
                proxy.delay, proxy.rate = 0.02 * 2**turn, RATE // 4**turn
            operation = self.operations[name](asker)
            self.in_the_middle(operation, proxies[-1], self.MOVED.get(name, 2000))
            operation.fault = time.monotonic()
            disturb(operation)
            operation.wait()
            if operation.error is not None:
                if operation.ended < operation.fault:
                    raise Mismatch(f"it has failed before the fault: {operation.error}")
                return operation
            if name in self.READING:
                same(f"{name} in spite of the fault", operation.answer, self.expected[name])
            mend()
        raise Mismatch(f"{name} has ended without an error, {TRIES} times")

    def all_or_nothing(self, name, count, told):
        """The last load or commit is there as a whole or not at all, as its session was told."""
        if name == "commit":
            found = {row[0] for row in self.wrote()}
            same(f"quads of a {name} that was {'committed' if told else 'refused'}", found, {count if told else 0})
        elif name == "load":
            found = {row[1] for row in self.wrote()}
            same(f"quads of a {name} that was {'committed' if told else 'refused'}", found, {count if told else 0})

    # -- checks

    def node_down(self, name):
        asker, victim = 1, 2
        self.cluster.servers[victim].stop("immediate")
        try:
            operation = self.operations[name](asker).start().wait()
            self.failed_in_time(operation, victim, name)
        finally:
            self.cluster.servers[victim].start()
        self.all_or_nothing(name, None, False)
        self.nothing_is_left()

    def node_killed(self, name):
        asker, victim = 0, 1
        proxy, server = self.cluster.proxies[victim], self.cluster.servers[victim]
        try:
            operation = self.disturbed(asker, name, [proxy], lambda _: server.kill(), server.start)
            self.failed_in_time(operation, victim, name)
        finally:
            proxy.delay, proxy.rate = 0, None
            if not server.pid():
                server.start()
        self.nothing_is_left()
        self.all_or_nothing(name, None, False)

    def node_cut_off(self, name):
        asker, victim = 0, 2
        proxy = self.cluster.proxies[victim]
        try:
            operation = self.disturbed(asker, name, [proxy], lambda _: proxy.cut(), proxy.heal)
            self.failed_in_time(operation, victim, name)
            # The node that is cut off, asked directly, has noticed as well.
            self.nothing_busy((victim,))
            # A query meanwhile ends too.
            self.failed_in_time(self.operations["pull"](asker).start().wait(), victim, "a query meanwhile")
        finally:
            proxy.delay, proxy.rate = 0, None
            proxy.heal()
        self.nothing_is_left()
        self.all_or_nothing(name, None, False)

    def slow(self, delay, rate):
        for proxy in self.cluster.proxies:
            proxy.delay, proxy.rate = delay, rate
        try:
            for name in self.READING:
                if name in self.expected:
                    same(name, self.finished(1, name), self.expected[name])
            self.finished(0, "load")
            loaded = self.wrote()
            self.finished(1, "commit")
        finally:
            self.at_full_speed()
        same("quads of a load", {row[1] for row in loaded}, {4000})
        self.all_or_nothing("commit", 200, True)
        self.nothing_is_left()

    def asker_ended(self, name, how):
        asker = 1
        calls = {"cancelled": "pg_cancel_backend", "terminated": "pg_terminate_backend"}
        try:
            if how == "timed out":
                for proxy in self.cluster.proxies:
                    proxy.delay = 0.02
                operation = self.operations[name](asker)
                operation.settings = [*operation.settings, "set statement_timeout = '400ms'"]
                operation.start().wait()
            else:
                end = f"select {calls[how]}(%s)"
                operation = self.disturbed(asker, name, self.cluster.proxies,
                                           lambda operation: self.cluster.servers[asker].query(end, (operation.pid,)), lambda: None)
        finally:
            self.at_full_speed()
        if operation.error is None:
            raise Mismatch("it has ended before")
        if how == "terminated":
            same("its connection is closed", operation.broken, True)
        else:
            same("SQLSTATE", operation.error.pgcode, "57014")
        if operation.took > IN_TIME:
            raise Mismatch(f"ended after {operation.took:.1f} s only")
        self.nothing_is_left()
        self.all_or_nothing(name, None, False)

    def asker_killed(self, name):
        """The server of the asking session is killed: the others notice, and undo or end what they do for it."""
        asker, victim = 1, 2
        server = self.cluster.servers[asker]
        try:
            proxy = self.cluster.proxies[victim]
            operation = self.disturbed(asker, name, [proxy], lambda _: server.kill(), server.start)
            same("its connection is closed", operation.broken, True)
            self.nothing_busy((0, victim))
        finally:
            self.at_full_speed()
            if not server.pid():
                server.start()
        self.nothing_is_left()
        self.all_or_nothing(name, None, False)

    def cancelled_elsewhere(self, victim):
        """Sessions of a node are cancelled between two messages, while the asker waits for the other node: the error
        has come together with the answer before, and nothing follows it."""
        slow = 3 - victim
        operation = self.operation(
            0,
            [("select quad.sparql(%s, 'films')::text", (self.PULL,))],
            ["set quad.exchange_mode = pull", "set quad.join_batch_size = 200", "set quad.node_poll_time = 0"],
        )
        proxy = self.cluster.proxies[slow]
        proxy.delay = 0.1
        try:
            operation.start()
            time.sleep(1)
            until = time.monotonic() + IN_TIME
            while operation.thread.is_alive() and time.monotonic() < until:
                self.cluster.servers[victim].query(
                    "select pg_cancel_backend(pid) from pg_stat_activity "
                    "where application_name = 'pgquad' and state = 'active'"
                )
                time.sleep(0.02)
        finally:
            proxy.delay = 0
        operation.wait()
        self.failed_in_time(operation, victim, f"a query with a session cancelled on node {victim}")
        self.nothing_is_left()

    def killed_after_prepare(self, whom):
        """Of a commit in two phases, one node has prepared when a node dies: the other, or the one that commits."""
        asker, victim = 0, 2
        proxy = self.cluster.proxies[victim]
        proxy.delay = 0.3
        dies = asker if whom == "asker" else victim
        try:
            operation = self.commit(asker).start()
            victims = self.cluster.servers[victim]
            with closing(victims.connect()) as connection, connection.cursor() as cursor:
                until = time.monotonic() + IN_TIME
                prepared = 0
                while not prepared and operation.thread.is_alive() and time.monotonic() < until:
                    cursor.execute("select count(*) from pg_prepared_xacts")
                    prepared = cursor.fetchone()[0]
                    time.sleep(0.005)
            if not prepared:
                raise Mismatch("no node has prepared before the commit ended")
            self.cluster.servers[dies].kill()
            operation.wait()
        finally:
            proxy.delay = 0
            if not self.cluster.servers[dies].pid():
                self.cluster.servers[dies].start()
        self.nothing_is_left()
        counts = {row[0] for row in self.wrote()}
        if whom == "asker":
            if counts not in ({0}, {200}):
                raise Mismatch(f"a commit was half done: {counts}")
        else:
            same("quads", counts, {0 if operation.error else 200})

    def killed_before_prepare(self):
        asker, victim = 0, 1
        self.loads += 1
        with (
            closing(self.cluster.servers[asker].connect(autocommit=False)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"insert into quad_stores.films select quad.int_id({self.loads}), quad.int_id(i), quad.int_id(i * 31), quad.int_id(77) from generate_series(1, 200) i")
            self.cluster.servers[victim].kill()
            try:
                connection.commit()
                raise Mismatch("committed without a node")
            except psycopg2.Error:
                pass
            finally:
                self.cluster.servers[victim].start()
        self.nothing_is_left()
        same("quads", {row[0] for row in self.wrote()}, {0})

    def run(self, whole, named):
        names = list(self.operations)
        cases = [
            (f"down at the start: {name}", self.node_down, name) for name in (names if whole else ["pull", "commit"])
        ]
        cases += [
            (f"killed in the middle: {name}", self.node_killed, name)
            for name in (names if whole else ["pull", "push", "load"])
        ]
        cases += [
            (f"cut off in the middle: {name}", self.node_cut_off, name)
            for name in (names if whole else ["decoding", "push", "load"])
        ]
        links = {"1 ms": (0.001, None), "50 ms": (0.05, None), "1 MB/s": (0.0, 1_000_000)}
        cases += [(f"slow links, {name}", self.slow, *links[name]) for name in (links if whole else ["1 ms"])]
        ends = ["cancelled", "timed out", "terminated"]
        cases += [
            (f"asker {how}: {name}", self.asker_ended, name, how)
            for how in ends
            for name in ([*self.READING, "load"] if whole else ["pull"])
        ]
        cases += [
            (f"asker killed: {name}", self.asker_killed, name)
            for name in ([*self.READING, "load"] if whole else ["push", "load"])
        ]
        cases += [(f"cancelled elsewhere: node {node}", self.cancelled_elsewhere, node) for node in (1, 2)]
        cases += [("killed before PREPARE", self.killed_before_prepare)]
        cases += [
            (f"killed after PREPARE: {whom}", self.killed_after_prepare, whom) for whom in ("participant", "asker")
        ]
        for name, check, *arguments in cases:
            if named and not any(part in name for part in named):
                continue
            self.report.attempt(name, check, *arguments)
        self.cluster.check_crashes(self.report)


if __name__ == "__main__":
    report = Report("faults")
    with ProxiedCluster() as cluster:
        Checks(cluster, report).run(
            "--all" in sys.argv[1:], [argument for argument in sys.argv[1:] if argument != "--all"]
        )
    report.finish()
