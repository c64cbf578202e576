"""Runs the examples of pages of the documentation, in order, and compares what they print with what the page shows.
Usage: pages.py [--cluster PORT,PORT,PORT] PAGE...

| block | what is run |
|---|---|
| `python` | by this process |
| `sql` | by one psql for the whole page |
| `sh` | by bash, in a folder with the files of FILES |
| no language | a transcript, what stands behind `=# ` by psql, what stands behind `$ ` by bash |

A block `text` behind one is what it has to print; without it there must be no error. A second word says what the block
needs. `cluster`, and transcripts with `PORT=# `, are run on the nodes of --cluster only. `machines`, `internet` and
`driver` (a program that sends what COPY takes) are counted as skipped; `install` is done before. The server is that of
the PG* variables; a page has a database, and a role with all rights, of its own.
"""

import bz2
import contextlib
import gzip
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

try:
    import psycopg
except ImportError:
    psycopg = None

NAME = "pgquad_page"
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*) *(?P<word>\w*)\n(?P<code>.*?)^ *```\n(?: *```text *(?P<rule>\w*)\n(?P<expected>.*?)^ *```\n)?",
    re.MULTILINE | re.DOTALL,
)
# What a command of a transcript begins with: a prompt of psql, perhaps with the port of a node, or the shell's.
PROMPT = re.compile(r"^(?:(?P<node>\d*)=#|\$) ", re.MULTILINE)
# These make the server and the endpoint, which are there when the examples run.
NOT_RUN = ("make ", "psql -h ")
DOCUMENTED_ENDPOINT = "http://127.0.0.1:7333"

TRIPLES = "".join(f"<http://example.org/film{n}> <http://example.org/year> {1990 + n} .\n" for n in range(5))
PEOPLE = """@prefix : <http://example.org/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
:ada   foaf:name "Ada";  foaf:knows :grace, :alan; :born 1815 .
:grace foaf:name "Grace"; foaf:knows :alan;        :born 1906 .
:alan  foaf:name "Alan"@en;                        :born 1912 .
"""
NTRIPLES = re.sub(r" (\d+) \.", r' "\1"^^<http://www.w3.org/2001/XMLSchema#integer> .', TRIPLES)
# The files that examples read: `/data` stands for this folder, too.
FILES = {
    "films.nt.gz": gzip.compress(NTRIPLES.encode()),
    "films.nt.bz2": bz2.compress(NTRIPLES.encode()),
    "films.ttl.gz": gzip.compress(TRIPLES.encode()),
    "films.nq": NTRIPLES.encode(),
    "people.ttl": PEOPLE.encode(),
    "x": TRIPLES.encode(),
}


def psql_path():
    bindir = subprocess.check_output([os.environ["PG_CONFIG"], "--bindir"], text=True).strip()
    return os.path.join(bindir, "psql")


def in_database(name, *statements):
    """Runs statements, each in a transaction of its own."""
    command = [psql_path(), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", name]
    for statement in statements:
        command += ["-c", statement]
    environment = {**os.environ, "PGOPTIONS": "-c client_min_messages=warning"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout.split()


class Psql:
    """A psql that stays, so that settings of one example hold for the next one."""

    END = "end of what an example prints"

    def __init__(self, folder, **environment):
        command = ["stdbuf", "-oL", psql_path(), "-X", "-q", "-P", "footer=off", "-P", "pager=off"]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, **environment, "PGOPTIONS": "-c client_min_messages=warning"},
        )

    def run(self, code, tuples_only, hints=False):
        """What psql prints; with `hints`, errors come with the place and the hint."""
        settings = (
            f"\\pset tuples_only {'on' if tuples_only else 'off'}\n\\set VERBOSITY {'default' if hints else 'terse'}\n"
        )
        self.process.stdin.write(f"{settings}{code}\n\\warn {self.END}\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n") == self.END:
                return "".join(lines)
            lines.append(line)
        raise RuntimeError(f"psql has ended: {''.join(lines)}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def endpoint(folder):
    """The address of a pgquad-server for the database of the page; None where it is not built."""
    binary = os.path.join(os.environ["CARGO_TARGET_DIR"], "release", "pgquad-server")
    if not os.path.exists(binary):
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {name: os.environ[name] for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE")}
    postgres = "postgres://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**variables)
    command = [binary, "--postgres", postgres, "--anonymous", "pg_read_all_data", "--listen", f"127.0.0.1:{port}"]
    with (
        open(os.path.join(folder, "endpoint.log"), "w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health"):
                    break
                time.sleep(0.05)
            yield address
        finally:
            server.terminate()


def lines_of(text):
    """Lines without what depends on the width of the terminal: ends, signs of continuation, empty lines."""
    lines = [re.sub(r" *\+$", "", line.rstrip()).rstrip() for line in text.splitlines()]
    return [line for line in lines if line.strip()]


def shape(line):
    """A line with its numbers and addresses left out."""
    return re.sub(r"\d[\d.,:]*", "#", " ".join(line.split()))


def difference(printed, expected, rule):
    """What is wrong with what an example has printed; empty when nothing is."""
    if expected is None:
        return f"printed\n{printed}" if re.search(r"^(ERROR|FATAL|\S+: error):", printed, re.MULTILINE) else ""
    got, wanted = lines_of(printed), lines_of(expected)
    if rule == "like":
        got, wanted = [shape(line) for line in got], [shape(line) for line in wanted]
    if "..." in [line.strip() for line in wanted]:
        wanted = wanted[: [line.strip() for line in wanted].index("...")]
        got = got[: len(wanted)]
    return "" if got == wanted else f"printed\n{printed}instead of\n{expected}"


def dedent(text, indent):
    return "\n".join(line.removeprefix(indent) for line in text.splitlines()) + "\n"


class Page:
    """The examples of a page, and what has become of them."""

    def __init__(self, path, folder, nodes):
        self.path, self.folder, self.nodes = path, folder, nodes
        self.passed = self.failed = self.skipped = 0
        self.names, self.sessions, self.address = {}, {}, None
        with open(path, encoding="utf-8") as file:
            self.text = file.read()

    def session(self, node=""):
        """The psql of a node: by its place in the order of the ports that the page shows."""
        if node not in self.sessions:
            port = {}
            if node:
                shown = sorted(set(re.findall(r"^(\d+)=# ", self.text, re.MULTILINE)))
                port = {"PGPORT": self.nodes[shown.index(node)]}
            self.sessions[node] = Psql(self.folder, **port)
        return self.sessions[node]

    def sql(self, code, expected, rule="", node=""):
        shows_header = expected is None or any(re.fullmatch(r"\s*-[-+]*\s*", line) for line in expected.splitlines())
        printed = self.session(node).run(
            code.replace("/data/", f"{self.folder}/"), not shows_header, "HINT:" in (expected or "")
        )
        return difference(printed, expected, rule)

    def shell(self, code, expected):
        if DOCUMENTED_ENDPOINT in code and self.address:
            code = code.replace(DOCUMENTED_ENDPOINT, self.address)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return f"exit status {done.returncode}: {done.stdout}{done.stderr}"
        return difference(done.stdout, expected, "")

    def python(self, code, expected, line):
        printed = io.StringIO()
        # Lines of errors are those of the page.
        compiled = compile("\n" * (line - 1) + code, self.path, "exec")
        with contextlib.redirect_stdout(printed):
            exec(compiled, self.names)
        return "" if printed.getvalue() == (expected or "") else f"printed\n{printed.getvalue()}instead of\n{expected}"

    def book(self, line, run):
        """Runs an example and says what has become of it."""
        try:
            problem = run()
        except Exception:  # whatever it is, the other examples still run
            problem = traceback.format_exc(limit=-2)
        place = f"{os.path.relpath(self.path, os.environ['PGQUAD_ROOT'])}:{line}"
        if problem:
            self.failed += 1
            print(f"FAIL {place}: {problem}")
        else:
            self.passed += 1
            print(f"PASS {place}")

    def transcript(self, first_line, code):
        """Runs the commands of a transcript, each with what is printed below it."""
        prompts = list(PROMPT.finditer(code))
        for prompt, following in zip(prompts, [*prompts[1:], None]):
            text = code[prompt.end() : following.start() if following else len(code)]
            line = first_line + code.count("\n", 0, prompt.start())
            if prompt["node"] is None:
                command, _, expected = text.partition("\n")
                if not self.nodes and not command.startswith(NOT_RUN):
                    self.book(line, lambda: self.shell(command, expected if expected.strip() else None))
            elif bool(prompt["node"]) == bool(self.nodes):
                statement = re.match(r"(?:.*\n)*?.*;[ \t]*(?:\n|\Z)", text)[0]
                expected = text[len(statement) :]
                self.book(line, lambda: self.sql(statement, expected if expected.strip() else None, "", prompt["node"]))

    def block(self, match):
        line = self.text.count("\n", 0, match.start()) + 2
        language, word = match["language"], match["word"]
        code = dedent(match["code"], match["indent"])
        expected = None if match["expected"] is None else dedent(match["expected"], match["indent"])
        if word in ("machines", "internet", "driver"):
            if not self.nodes:
                self.skipped += 1
                print(f"SKIPPED {os.path.basename(self.path)}:{line}: needs {word}")
        elif word == "install" or language not in ("sql", "sh", "python", ""):
            pass
        elif language == "":
            self.transcript(line, code)
        elif (word == "cluster") != bool(self.nodes):
            pass
        elif language == "sql":
            self.book(line, lambda: self.sql(code, expected, match["rule"] or ""))
        elif language == "sh":
            self.book(line, lambda: self.shell(code, expected))
        elif psycopg is None:
            self.skipped += 1
            print(f"SKIPPED {os.path.basename(self.path)}:{line}: the packages of the page are not there")
        else:
            self.book(line, lambda: self.python(code, expected, line))

    def run(self):
        for name, content in FILES.items():
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(content)
        try:
            with contextlib.ExitStack() as stack:
                if DOCUMENTED_ENDPOINT in self.text and not self.nodes:
                    self.address = stack.enter_context(endpoint(self.folder))
                for match in BLOCK.finditer(self.text):
                    self.block(match)
        finally:
            for session in self.sessions.values():
                session.close()


@contextlib.contextmanager
def of_its_own():
    """A database and a role for a page; afterwards neither they nor other roles that the page has made are there."""
    user = os.environ["PGUSER"]
    before = in_database("postgres", "SELECT rolname FROM pg_roles")
    drop = f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)"
    in_database("postgres", drop, f"DROP ROLE IF EXISTS {NAME}", f"CREATE ROLE {NAME} SUPERUSER LOGIN")
    in_database("postgres", f"CREATE DATABASE {NAME} OWNER {NAME} TEMPLATE template0 ENCODING 'UTF8'")
    in_database(NAME, "CREATE EXTENSION pgquad")
    os.environ.update(PGDATABASE=NAME, PGUSER=NAME)
    try:
        yield
    finally:
        os.environ["PGUSER"] = user
        in_database("postgres", drop)
        for role in set(in_database("postgres", "SELECT rolname FROM pg_roles")) - set(before):
            in_database("postgres", f'DROP ROLE "{role}"')


def main():
    arguments = sys.argv[1:]
    nodes = []
    if arguments[0] == "--cluster":
        nodes = arguments[1].split(",")
        arguments = arguments[2:]
    passed = failed = skipped = 0
    for path in arguments:
        with open(path, encoding="utf-8") as file:
            if not BLOCK.search(file.read()):
                continue
        with tempfile.TemporaryDirectory() as folder, contextlib.nullcontext() if nodes else of_its_own():
            # The server reads files of it.
            os.chmod(folder, 0o755)
            page = Page(os.path.abspath(path), folder, nodes)
            page.run()
        passed, failed, skipped = passed + page.passed, failed + page.failed, skipped + page.skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
