"""The pgTAP files that ask SPARQL, once more with distributed stores. Files that make stores run on the coordinator,
the others ask nodes in turn.

Each statement is a transaction of its own, so that shards are read; Citus refuses EXPLAIN ANALYZE, ANALYZE and new
roles in a transaction that has written. Files without these run once more as they are written, in one transaction,
which reads its own writes through Citus.
Usage: pgtap.py [--all] [FILE..] (by `suites.py`); without --all some of the files.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from pgquad_test import Report, bin_path, create_cluster_database, nodes

DATABASE = "pgquad_nodes_pgtap"
FILES = ["default_graph", "security", "security_rows", "security_terms"]
MORE = """graph_text joins_apart literals load_errors security_limits security_path query_table sparql_groups
          sparql_patterns value_joins view""".split()
IN_ONE_TRANSACTION = ["default_graph", "graph_text", "security_limits", "sparql_patterns"]
# Citus writes as the owner of a store, who has to be able to log in.
OWNERS = re.compile(r"(?i)(create role (?:quad_terms_\w+))")
# What Citus would make on all nodes, from the coordinator only; the files need it where they run.
HERE = re.compile(r"(?mi)^(?=create (or replace )?(temp )?(function|operator|schema|domain|aggregate|table|view)\b)")
EVERYWHERE = re.compile(
    r"(?mi)^(?=(select|grant|revoke|alter|create role|create policy|drop|insert|delete|set role|reset role)\b)"
)
SETTINGS = "-c client_min_messages=error -c statement_timeout=60s"
CREATE_STORE = re.compile(r"(quad\.create_store\((?:'(?:[^']|'')*'|store))\)")
VIEWS = re.compile(r"(?i)quad\.create_view|^create schema")


def text_of(path):
    """The text of a file, those that it includes in their places."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"(?m)^\\ir (\S+)$", lambda included: text_of(os.path.join(os.path.dirname(path), included[1])), text)


class File:
    """A file whose stores are distributed."""

    def __init__(self, path):
        text = text_of(path)
        text, made = CREATE_STORE.subn(r"\1, distributed => true, shards => 3)", text)
        # Stores and views are made on the coordinator.
        self.on_coordinator = made > 0 or VIEWS.search(text) is not None
        text = OWNERS.sub(r"\1 login", text)
        self.roles = re.findall(r"(?i)create role (\w+)", text)
        text = HERE.sub("set citus.enable_ddl_propagation = off;\n", text)
        text = EVERYWHERE.sub("set citus.enable_ddl_propagation = on;\n", text)
        self.text = text
        # Errors that psql reports, and goes on behind them.
        self.expects_errors = re.search(r"(?mi)^savepoint ", text) is not None

    def statement_by_statement(self):
        """The text without its transaction."""
        text = re.sub(r"(?mi)^set local ", "set ", self.text)
        return re.sub(r"(?mi)^(begin|rollback);$", "", text)


def prove(port, text, on_error_stop):
    """Runs the text; numbers of tests that have passed, failed, were skipped, and what was said of failures."""
    environment = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": DATABASE,
                                "PGOPTIONS": SETTINGS}
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        command = [
            "pg_prove",
            "--psql-bin",
            bin_path("psql"),
            "--verbose",
            "--merge",
            "--set",
            f"ON_ERROR_STOP={int(on_error_stop)}",
            file.name,
        ]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    lines = done.stdout.splitlines()
    failed = sum(line.startswith("not ok") for line in lines)
    skipped = sum(bool(re.match(r"ok \d+.*# SKIP", line)) for line in lines)
    passed = sum(bool(re.match(r"ok \d+", line)) for line in lines) - skipped
    said = [line for line in lines if not re.match(r"(ok \d+|1\.\.\d+$)", line)]
    # A file that dies half-way fails without a "not ok".
    return passed, failed or int(done.returncode != 0), skipped, "\n".join(said)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--all"]
    whole = len(arguments) < len(sys.argv) - 1
    report = Report("cluster-pgtap")
    folder = os.path.join(os.environ["PGQUAD_ROOT"], "test", "pgtap")

    def execute(sql, parameters=None):
        with connections[0].cursor() as cursor:
            cursor.execute(sql, parameters)

    files = arguments or (FILES + MORE if whole else FILES)
    runs = [(name, True) for name in files] + [(name, False) for name in IN_ONE_TRANSACTION if whole or name in files]
    connections = []
    for turn, (name, committed) in enumerate(runs):
        file = File(os.path.join(folder, f"{name}.sql"))
        # What the file before has left behind would be in its way.
        for connection in connections:
            connection.close()
        connections = create_cluster_database(DATABASE)
        # Roles are the servers', not the database's.
        for role in file.roles:
            for connection in connections:
                with connection.cursor() as cursor:
                    cursor.execute(f"set citus.enable_ddl_propagation = off; drop role if exists {role}; reset citus.enable_ddl_propagation")
        execute("create extension pgtap")
        execute("select quad.create_store('main', distributed => true, shards => 3)")
        port = nodes()[0 if file.on_coordinator else turn % len(nodes())]
        passed, failed, skipped, said = prove(
            port, file.statement_by_statement() if committed else file.text, not file.expects_errors
        )
        print(f"{name}{'' if committed else ' in one transaction'} on port {port}: {passed} passed, {failed} failed, {skipped} skipped")
        if failed:
            print(f"FAIL {report.suite}/{name}: {said[:6000]}".replace("\n", " | "))
        report.passed += passed
        report.failed += failed
        report.skipped += skipped
    report.finish()


if __name__ == "__main__":
    main()
