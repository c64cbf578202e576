"""Loads that have to fail, or to succeed in spite of their looks. There are malformed documents of every format, binary
rubbish, broken compression, limits, missing rights, a cancelled load, a full disk. Each time: the right kind of error
with its place, the store as it was, quad.verify clean, and the session goes on. On a cluster (PGQUAD_NODES) stores are
distributed and nodes asked in turn."""
import bz2
import contextlib
import gzip
import os
import random
import subprocess
import sys
import threading
import time

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402

GOOD = b"<http://x/s> <http://x/p> <http://x/o> .\n"
RUBBISH = random.Random(7).randbytes(50_000)

# name, format (None: from the file's name), content, whether the message has to name a line
MALFORMED = [
    ("nt: no object", "nt", GOOD + b"<http://x/s> <http://x/p> .\n", True),
    ("nt: no dot", "nt", GOOD + b"<http://x/s> <http://x/p> <http://x/o>\n" + GOOD, True),
    ("nt: literal as subject", "nt", GOOD + b'"a" <http://x/p> <http://x/o> .\n', True),
    ("nt: blank node as predicate", "nt", GOOD + b"<http://x/s> _:p <http://x/o> .\n", True),
    ("nt: open literal", "nt", GOOD + b'<http://x/s> <http://x/p> "abc .\n', True),
    ("nt: bad escape", "nt", GOOD + b'<http://x/s> <http://x/p> "a\\q" .\n', True),
    ("nt: surrogate escape", "nt", GOOD + b'<http://x/s> <http://x/p> "\\uD800" .\n', True),
    ("nt: IRI with a space", "nt", GOOD + b"<http://x/a b> <http://x/p> <http://x/o> .\n", True),
    ("nt: relative IRI", "nt", GOOD + b"<a> <http://x/p> <http://x/o> .\n", True),
    ("nt: bad language tag", "nt", GOOD + b'<http://x/s> <http://x/p> "a"@1 .\n', True),
    ("nt: a graph name", "nt", GOOD + b"<http://x/s> <http://x/p> <http://x/o> <http://x/g> .\n", True),
    ("nt: Turtle prefix", "nt", GOOD + b"@prefix : <http://x/> .\n", True),
    ("nt: error far down", "nt", GOOD * 200_000 + b"rubbish\n", True),
    ("nt: the last line ends early", "nt", GOOD + b"<http://x/s> <http://x/p> <htt", True),
    ("nquads: five terms", "nquads", b"<http://x/s> <http://x/p> <http://x/o> <http://x/g> <http://x/h> .\n", True),
    ("nquads: literal as graph", "nquads", b'<http://x/s> <http://x/p> <http://x/o> "g" .\n', True),
    ("turtle: unknown prefix", "turtle", b"@prefix a: <http://x/> .\na:s a:p b:o .\n", True),
    ("turtle: open list", "turtle", b"@prefix a: <http://x/> .\na:s a:p (1 2 3 .\n", True),
    ("turtle: graph", "turtle", b"@prefix a: <http://x/> .\na:g { a:s a:p a:o }\n", True),
    ("turtle: IRI with a space", "turtle", b"<http://x/a b> <http://x/p> 1 .\n", True),
    ("turtle: ends in the middle", "turtle", b'@prefix a: <http://x/> .\na:s a:p """ never ended\n', True),
    ("trig: open graph", "trig", b"@prefix a: <http://x/> .\na:g { a:s a:p a:o .\n", True),
    ("trig: graph in graph", "trig", b"@prefix a: <http://x/> .\na:g { a:h { a:s a:p a:o } }\n", True),
    ("xml: not well-formed", "xml", b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description></rdf:RDF>', False),
    ("xml: ends in the middle", "xml", b'<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Desc', False),
    ("xml: unbound prefix", "xml", b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><x:y/></rdf:RDF>', False),
    ("jsonld: no JSON", "jsonld", b'{"@id": "http://x/s", "http://x/p": ', False),
    ("jsonld: bad context", "jsonld", b'{"@context": 42, "@id": "http://x/s", "http://x/p": "a"}', False),
] + [(f"{f}: binary rubbish", f, RUBBISH, False) for f in ("nt", "nquads", "turtle", "trig", "xml", "jsonld")] + [
    (f"{f}: invalid UTF-8", f, b'<http://x/s> <http://x/p> "caf\xe9" .\n', f != "xml") for f in ("nt", "nquads", "turtle", "trig")] + [
    ("nt: a line of a million columns", "nt", b"<http://x/s> " * 1_000_000 + b".\n", True),
    ("nt: a line of 20 MB without an end", "nt", b"x" * 20_000_000, True),
    ("nt: a literal over one megabyte", "nt", GOOD + b'<http://x/s> <http://x/p> "' + b"a" * 1_100_000 + b'" .\n', False),
]

# Odd, but right: name, format, content, number of triples
ODD = [
    ("empty document", "nt", b"", 0),
    ("only comments", "turtle", b"# nothing\n\n\n", 0),
    ("no newline at the end", "nt", GOOD.rstrip(b"\n"), 1),
    ("CRLF", "nt", b"<http://x/a> <http://x/p> <http://x/o> .\r\n<http://x/b> <http://x/p> <http://x/o> .\r\n", 2),
    ("a literal of one million bytes", "nt", b'<http://x/s> <http://x/p> "' + b"a" * 1_000_000 + b'" .\n', 1),
    ("an IRI of 100,000 bytes", "nt", b"<http://x/" + b"a" * 100_000 + b"> <http://x/p> <http://x/o> .\n", 1),
    ("every kind of escape", "nt", rb'<http://x/\u0041> <http://x/p> "\t\b\n\r\f\"\'\\\u00e9\U0001F600" .' + b"\n", 1),
    ("the same line a thousand times", "nt", GOOD * 1000, 1),
    ("JSON-LD that says nothing", "jsonld", b"{}", 0),
    ("XML that says nothing", "xml", b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>', 0),
]


class OneServer:
    """A server of the suite's own."""

    def __init__(self):
        self.server = t.Server("badinput", {"fsync": "off", "max_wal_size": "2GB"}).init().start()
        self.dir = self.server.dir
        self.turn = 0
        self.connections = [self.server.connect()]
        self.execute("create extension pgquad")

    def execute(self, sql, parameters=None, node=0):
        """Runs a statement on a node; node 0 is where stores are made."""
        cursor = self.connections[node].cursor()
        cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []

    def create_store(self, name):
        self.execute("select quad.create_store(%s)", (name,))

    def everywhere(self, sql):
        """Runs a statement in the session of every node."""
        for node in range(len(self.connections)):
            self.execute(sql, None, node)

    def create_store_in(self, name, place):
        """A store in a new tablespace."""
        self.execute(f"create tablespace small location '{place}'")
        self.execute("set default_tablespace = small")
        self.create_store(name)
        self.execute("reset default_tablespace")

    def drop_store_in(self, name):
        self.execute("select quad.drop_store(%s)", (name,))
        self.execute("drop tablespace small")

    def let_go(self, place):
        """Unmounts the place of a tablespace."""
        self.server.stop("immediate")
        subprocess.run(["umount", place], check=False)
        self.server.start()
        self.reconnect()

    def next(self):
        """The next statement is for the next node."""

    def connect(self):
        """Another session where the next statement goes."""
        return self.server.connect()

    def reconnect(self):
        self.connections = [self.server.connect()]

    def restart(self):
        self.server.stop("immediate")
        self.server.start()
        self.reconnect()

    def crashes(self):
        return self.server.crashes_in_log()

    def end(self, failed):
        self.server.stop("immediate")
        if not failed:
            self.server.remove()


class Nodes(OneServer):
    """A cluster that others have started; its logs are looked at by them."""

    DATABASE = "pgquad_badinput"

    def __init__(self):  # pylint: disable=super-init-not-called
        self.dir = os.path.join(os.environ["PGQUAD_STATE"], "badinput-nodes")
        self.turn = 0
        self.connections = t.create_cluster_database(self.DATABASE)

    def create_store(self, name):
        self.execute("select quad.create_store(%s, distributed => true, shards => 6)", (name,))

    def next(self):
        self.turn = (self.turn + 1) % len(self.connections)

    def create_store_in(self, name, place):
        """A store that has its shards of the second node in a tablespace."""
        self.execute(f"create tablespace small location '{place}'", node=1)
        database = f"set citus.enable_ddl_propagation = off; alter database {self.DATABASE} "
        self.execute(database + "set default_tablespace = small", node=1)
        self.reconnect()
        self.create_store(name)
        self.execute(database + "reset default_tablespace; reset citus.enable_ddl_propagation", node=1)
        self.reconnect()

    def drop_store_in(self, name):
        self.execute("select quad.drop_store(%s)", (name,))
        self.execute("drop tablespace small", node=1)

    def let_go(self, place):
        self.reconnect()
        subprocess.run(["umount", "--lazy", place], check=False)

    def connect(self, node=None):
        node = self.turn if node is None else node
        connection = psycopg2.connect(host="127.0.0.1", port=t.nodes()[node], user="postgres", dbname=self.DATABASE)
        connection.autocommit = True
        return connection

    def reconnect(self):
        for connection in self.connections:
            connection.close()
        self.connections = [self.connect(node) for node in range(len(self.connections))]

    def restart(self):
        self.reconnect()

    def crashes(self):
        return []

    def end(self, failed):
        for connection in self.connections:
            connection.close()


class BadInput:
    """The server, the store under test and what it held at first."""

    def __init__(self):
        self.report = t.Report("badinput")
        self.place = Nodes() if t.nodes() else OneServer()
        self.files = os.path.join(self.place.dir, "files")
        t.as_server(["mkdir", "-p", self.files])
        os.chmod(self.files, 0o777)

    @property
    def connection(self):
        """To the server, or to the node whose turn it is."""
        return self.place.connections[self.place.turn]

    def fill(self):
        """The store under test, with three triples in it."""
        self.place.create_store("bad")
        self.run(
            "select quad.load_text('<http://x/old> <http://x/p> \"old\", 1, <http://x/o> .', 'turtle', store => 'bad')"
        )
        self.before = self.content()

    def run(self, sql, parameters=None):
        return self.place.execute(sql, parameters, self.place.turn)

    def content(self):
        return sorted(self.run("select * from quad.export('bad')"))

    def file(self, name, content):
        path = os.path.join(self.files, name)
        with open(path, "wb") as out:
            out.write(content)
        os.chmod(path, 0o644)
        return path

    def unchanged(self):
        """Complaints when the store is not what it was."""
        complaints = []
        if self.content() != self.before:
            complaints.append("the store has changed")
        complaints += t.problems(self.connection, "quad_stores.bad")
        return complaints

    def refused(self, name, sql, parameters, needs=(), states=None):
        """The statement has to fail with a message that has all of `needs`, and to change nothing."""
        self.place.next()
        try:
            self.run(sql, parameters)
        except psycopg2.Error as error:
            text = f"{error.pgcode} {error}"
            complaints = [f"no {need!r} in the message" for need in needs if need not in text.lower()]
            if states and error.pgcode not in states:
                complaints.append(f"SQLSTATE {error.pgcode}, wanted one of {states}")
            if error.pgcode in (None, "XX000"):
                complaints.append(f"SQLSTATE {error.pgcode} says nothing")
            if len(text) > 4000:
                complaints.append(f"a message of {len(text)} characters")
            if self.connection.closed:
                self.place.reconnect()
                complaints.append("the connection broke")
            complaints += self.unchanged()
            self.report.check(not complaints, name, "; ".join(complaints) + f" -- {text[:300]!r}")
            return
        self.report.check(False, name, "accepted")
        self.place.execute("select quad.drop_store('bad')")
        self.fill()

    LOAD = "select quad.load(%s, %s, store => 'bad')"

    def malformed(self):
        for name, form, content, with_line in MALFORMED:
            path = self.file("document", content)
            self.refused(name, self.LOAD, (path, form), needs=("line",) if with_line else ())
        self.refused(
            "load_text says the line",
            "select quad.load_text(%s, 'nt', store => 'bad')",
            (MALFORMED[0][2].decode(),),
            needs=("line 2",),
        )

    def odd(self):
        for name, form, content, count in ODD:
            path = self.file("document", content)
            self.place.create_store("odd")
            self.place.next()
            try:
                loaded = self.run("select quad.load(%s, %s, store => 'odd')", (path, form))[0][0]
                stored = self.run("select count(*) from quad.export('odd')")[0][0]
                self.report.check(
                    loaded == count and stored == count,
                    f"accepted: {name}",
                    f"{loaded} loaded, {stored} stored, wanted {count}",
                )
            except psycopg2.Error as error:
                self.report.check(False, f"accepted: {name}", str(error)[:300])
            self.place.execute("select quad.drop_store('odd')")

    def compression(self):
        lines = b"".join(b'<http://x/s%d> <http://x/p> "value %d" .\n' % (i, i) for i in range(20_000))
        whole = gzip.compress(lines)
        cases = [
            ("truncated.nt.gz", whole[: len(whole) // 2]),
            ("stub.nt.gz", whole[:9]),
            ("rubbish.nt.gz", RUBBISH),
            ("empty.nt.gz", b""),
            ("flipped.nt.gz", whole[:2000] + bytes([whole[2000] ^ 0xFF]) + whole[2001:]),
            ("truncated.nt.bz2", bz2.compress(lines)[:5000]),
            ("rubbish.nt.bz2", RUBBISH),
            ("rubbish.nt.zst", RUBBISH),
            ("checksum.nt.gz", whole[:-8] + b"\0\0\0\0" + whole[-4:]),
            ("plain.nt.gz", lines),
            ("truncated.ttl.gz", whole[: len(whole) // 2]),
        ]
        for name, content in cases:
            self.refused(f"compression: {name}", "select quad.load(%s, store => 'bad')", (self.file(name, content),))
        zstd = (
            subprocess.run(["zstd", "-q", "-c"], input=lines, capture_output=True, check=False)
            if os.path.exists("/usr/bin/zstd")
            else None
        )
        if zstd:
            self.refused(
                "compression: truncated.nt.zst",
                "select quad.load(%s, store => 'bad')",
                (self.file("truncated.nt.zst", zstd.stdout[:3000]),),
            )
        else:
            self.report.skip("compression: truncated.nt.zst", "zstd is not installed")

    def arguments(self):
        good = self.file("good.nt", GOOD)
        self.refused(
            "file that is not there",
            "select quad.load(%s, store => 'bad')",
            (os.path.join(self.files, "none.nt"),),
            states=("58P01",),
        )
        self.refused("directory", "select quad.load(%s, 'nt', store => 'bad')", (self.files,))
        self.refused("unknown format", self.LOAD, (good, "word"), needs=("word",), states=("22023", "0A000"))
        self.refused(
            "file name without a format",
            "select quad.load(%s, store => 'bad')",
            (self.file("document", GOOD),),
            states=("22023", "0A000"),
        )
        self.refused("store that is not there", "select quad.load(%s, store => 'none')", (good,), needs=("none",), states=("42P01",))
        self.refused("bad graph name", "select quad.load(%s, graph => 'no iri', store => 'bad')", (good,))
        self.refused(
            "bad base", "select quad.load_text('<a> <b> <c> .', 'turtle', base => 'no iri', store => 'bad')", None
        )
        self.place.execute("drop role if exists reader")
        self.place.execute("create role reader login; grant usage on schema quad, quad_stores to reader; grant select on quad_stores.bad to reader")
        self.place.everywhere("set role reader")
        try:
            self.refused("load without the right to read server files", "select quad.load(%s, store => 'bad')", (good,), states=("42501",))
            self.refused(
                "load without the right to write the store",
                "select quad.load_text('<http://x/a> <http://x/b> <http://x/c> .', 'turtle', store => 'bad')",
                None,
                states=("42501",),
            )
        finally:
            self.place.everywhere("reset role")
        self.run("begin transaction read only")
        try:
            self.run("select quad.load_text('<http://x/a> <http://x/b> <http://x/c> .', 'turtle', store => 'bad')")
            self.report.check(False, "load in a read only transaction", "accepted")
        except psycopg2.Error as error:
            self.report.check(error.pgcode == "25006", "load in a read only transaction", f"{error.pgcode} {error}")
        self.run("rollback")

    def big_file(self, lines=1_500_000):
        path = os.path.join(self.files, "big.nt")
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as out:
                for i in range(lines):
                    out.write(f'<http://example.org/subject/{i // 10}> <http://example.org/p{i % 10}> "literal value number {i * 7919 % lines}" .\n')
            os.chmod(path, 0o644)
        return path

    def cancelled(self):
        path = self.big_file()
        for delay in (0.3, 1.5):
            self.place.next()
            pid = self.run("select pg_backend_pid()")[0][0]
            sent = []

            def cancel(pid=pid, delay=delay, sent=sent):
                with contextlib.closing(self.place.connect()) as other:
                    cursor = other.cursor()

                    def loads():
                        cursor.execute("select 1 from pg_stat_activity where pid = %s and state = 'active' and query like 'select quad.load%%'", (pid,))
                        return cursor.fetchall()

                    t.wait_until("the load has begun", loads)
                    time.sleep(delay)
                    cursor.execute("select pg_cancel_backend(%s)", (pid,))
                sent.append(time.time())

            thread = threading.Thread(target=cancel)
            thread.start()
            try:
                self.run("select quad.load(%s, store => 'bad')", (path,))
                self.report.check(
                    False, f"load cancelled after {delay} s", "it ended before it was cancelled, or took no notice"
                )
            except psycopg2.errors.QueryCanceled:
                thread.join()
                took = time.time() - sent[0]
                complaints = self.unchanged()
                self.report.check(
                    not complaints and took < 30,
                    f"load cancelled after {delay} s, gone {took:.2f} s later",
                    "; ".join(complaints),
                )
            thread.join()
        name = "load that times out"
        self.place.next()
        self.run("set statement_timeout = '500ms'")
        try:
            self.run("select quad.load(%s, store => 'bad')", (path,))
            self.report.check(False, name, "accepted")
        except psycopg2.Error as error:
            self.run("reset statement_timeout")
            complaints = ([] if error.pgcode == "57014" else [f"SQLSTATE {error.pgcode}: {error}"]) + self.unchanged()
            self.report.check(not complaints, name, "; ".join(complaints))

    def terminated(self):
        """Sessions that are terminated in the middle of their work do not harm those that come after them."""
        path = self.big_file()
        for delay, sql, parameters in (
            (0.3, "select quad.load(%s, store => 'bad')", (path,)),
            (2, "select quad.load(%s, store => 'bad')", (path,)),
            (
                0.3,
                "select count(*) from quad.sparql('SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?q ?r ?s . ?t ?u ?v . ?w ?x ?y . ?z ?ab ?ac . ?ad ?ae ?af . ?ag ?ah ?ai . ?aj ?ak ?al }', 'bad')",
                None,
            ),
        ):
            self.place.next()
            victim = self.place.connect()
            pid = victim.get_backend_pid()

            def work(victim=victim, sql=sql, parameters=parameters):
                try:
                    victim.cursor().execute(sql, parameters)
                except psycopg2.Error:
                    pass

            thread = threading.Thread(target=work)
            thread.start()
            time.sleep(delay)
            self.run("select pg_terminate_backend(%s, 10000)", (pid,))
            thread.join()
            victim.close()
            complaints = []
            # A slot of shared memory that it has left in disorder is soon used again.
            others = [self.place.connect() for _ in range(8)]
            for other in others:
                try:
                    other.cursor().execute("select count(*) from quad.sparql('SELECT * { ?s ?p ?o }', 'bad')")
                except psycopg2.Error as error:
                    complaints.append(str(error))
                other.close()
            complaints += self.unchanged()
            self.report.check(not complaints, f"terminated after {delay} s: {sql[:40]}", "; ".join(complaints)[:500])

    def full_disk(self):
        name = "load onto a full disk"
        if os.geteuid() != 0:
            self.report.skip(name, "a small file system needs root")
            return
        small = os.path.join(self.place.dir, "small")
        os.makedirs(small, exist_ok=True)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", small], capture_output=True, text=True, check=False
        )
        if mounted.returncode != 0:
            self.report.skip(name, mounted.stderr.strip())
            return
        try:
            subprocess.run(["chown", "postgres:", small], check=True)
            os.chmod(small, 0o700)
            self.place.create_store_in("cramped", small)
            self.run("select quad.load_text('<http://x/old> <http://x/p> \"old\" .', 'turtle', store => 'cramped')")
            try:
                self.run("select quad.load(%s, store => 'cramped')", (self.big_file(),))
                self.report.check(False, name, "it was accepted; is the store in the table space?")
            except psycopg2.Error as error:
                complaints = [] if error.pgcode == "53100" else [f"SQLSTATE {error.pgcode}: {error}"]
                if self.run("select count(*) from quad_stores.cramped") != [(1,)]:
                    complaints.append("the store has changed")
                complaints += t.problems(self.connection, "quad_stores.cramped")
                self.report.check(not complaints, name, "; ".join(complaints))
            self.place.drop_store_in("cramped")
        finally:
            self.place.let_go(small)

    def queries(self):
        if not t.has_function(self.connection, "sparql"):
            self.report.skip("SPARQL errors", "no quad.sparql in this build")
            return
        for name, query, needs in [
            ("open brace", "SELECT * WHERE { ?s ?p ?o", ("1",)),
            ("unknown prefix", "SELECT * WHERE { ?s x:p ?o }", ("x",)),
            ("empty query", "", ()),
            ("error in the second line", "SELECT *\nWHERE { ?s ?p }", ("2",)),
            ("an update", "INSERT DATA { <http://x/a> <http://x/b> <http://x/c> }", ()),
            ("variable used twice", "SELECT (1 AS ?s) WHERE { ?s ?p ?o }", ("s",)),
            ("rubbish", "\u00ff\u00fe\u2603", ()),
        ]:
            self.refused(f"SPARQL: {name}", "select * from quad.sparql(%s, 'bad')", (query,), needs=needs)
        for depth in (100, 1_000, 100_000):
            self.nested(f"{depth} nested groups", "SELECT * WHERE " + "{" * depth + "}" * depth)
            self.nested(f"{depth} nested brackets", "SELECT (" + "(" * depth + "1" + ")" * depth + " AS ?x) WHERE {}")
            self.nested(f"{depth} unions", "SELECT * WHERE { {} " + "UNION {} " * depth + "}")
            self.nested(
                f"{depth} nested paths", "SELECT * WHERE { ?s " + "(" * depth + "<http://x/p>" + ")*" * depth + " ?o }"
            )
            self.nested(
                f"{depth} nested functions", "SELECT (" + "STR(" * depth + "1" + ")" * depth + " AS ?x) WHERE {}"
            )
            self.nested(
                f"{depth} nested subqueries", "SELECT * WHERE { " + "{ SELECT * WHERE { " * depth + "} }" * depth + "}"
            )

    def nested(self, name, query):
        """A query that a recursive parser may not survive: an answer and an error are both fine, a crash or a hang is
        not."""
        done = []

        def ask():
            try:
                with contextlib.closing(self.place.connect()) as connection:
                    connection.cursor().execute(
                        "set statement_timeout = '10s'; select * from quad.sparql(%s, 'bad')", (query,)
                    )
                done.append((True, "answered"))
            except psycopg2.Error as error:
                done.append((error.pgcode not in (None, "XX000"), f"refused: {error.pgcode} {str(error)[:200]}"))

        self.place.next()
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(t.PATIENCE)
        if not done:
            self.report.check(
                False, f"SPARQL: {name}", f"no answer within {t.PATIENCE} s, and statement_timeout takes no effect"
            )
        else:
            self.report.check(done[0][0], f"SPARQL: {name}", done[0][1])
        if not done or not done[0][0]:
            self.place.restart()

    def main(self):
        if not all(t.has_function(self.connection, f) for f in ("load", "load_text", "export")):
            self.report.skip("all of it", "no quad.load in this build")
            self.place.end(False)
            self.report.finish()
        self.fill()
        named = sys.argv[1:]
        parts = (self.malformed, self.odd, self.compression, self.arguments, self.queries, self.cancelled, self.terminated, self.full_disk)
        for part in parts:
            if named and part.__name__ not in named:
                continue
            try:
                part()
            except Exception as error:  # pylint: disable=broad-except
                self.report.check(False, part.__name__.replace("_", " "), f"{type(error).__name__}: {error}")
                self.place.reconnect()
        crashes = self.place.crashes()
        self.report.check(not crashes, "no crash in the server's log", "; ".join(crashes[:5]))
        self.place.end(self.report.failed)
        self.report.finish()


BadInput().main()
