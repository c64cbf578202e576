"""Runs the Python examples of a page in one process, in order; a block of text after an example is what it has to print.
Usage: page.py FILE. The server is that of the PG* variables; the examples run in a database of their own.
"""

import contextlib
import io
import os
import re
import sys
import traceback

import psycopg

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
DATABASE = "pgquad_page"


def in_database(name, statement):
    with psycopg.connect(dbname=name, autocommit=True) as connection:
        connection.execute(statement)


def run(page):
    """Numbers of examples that passed and failed."""
    passed = failed = 0
    names = {}
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        printed = io.StringIO()
        try:
            # Lines of errors are those of the page.
            code = compile("\n" * (line - 1) + match[1], page, "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            problem = "" if printed.getvalue() == (match[2] or "") else f"printed\n{printed.getvalue()}instead of\n{match[2]}"
        except Exception:
            problem = traceback.format_exc(limit=-2)
        if problem:
            failed += 1
            print(f"FAIL docs/{os.path.basename(page)}:{line}: {problem}")
        else:
            passed += 1
            print(f"PASS docs/{os.path.basename(page)}:{line}")
    return passed, failed


def main():
    in_database("postgres", f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    in_database("postgres", f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
    os.environ["PGDATABASE"] = DATABASE
    passed, failed = run(sys.argv[1])
    in_database("postgres", f"DROP DATABASE {DATABASE} WITH (FORCE)")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
