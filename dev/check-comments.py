"""Checks that lines have at most 120 columns where no formatter cuts them: comments of Rust sources, SQL, scripts of
the shell, and all of dev/ and citus-config/. Says file:line of each that is longer.

Tables and links of doc comments cannot be wrapped, and are let pass. The installed script is what pgrx makes of the
parts in sql/. Tests in SQL have a line for each assertion.
"""

import os
import re
import subprocess
import sys

COLUMNS = 120
COMMENT = re.compile(r"\s*//[/!]? ?(.*)")
# A row of a table, the definition of a link, one word that is longer than a line.
UNBREAKABLE = re.compile(r"\||\[[^]]+\]: |\S+$")
WHOLE = ["*.sql", "dev", "citus-config", ":!test", ":!sql/pgquad--*", ":!*.md"]
# What the first lines of a script of the shell begin with.
SHELL = re.compile(r"#!/usr/bin/env bash|#!/bin/(ba)?sh|# shellcheck shell")


def too_long(path, is_let_pass):
    """Numbers of the lines that are longer."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if len(line) > COLUMNS and not is_let_pass(line):
                yield number


def is_code_or_unbreakable(line):
    """Whether a line of Rust is not the comment's to wrap."""
    comment = COMMENT.fullmatch(line)
    return not comment or UNBREAKABLE.match(comment[1])


def tracked(patterns):
    return subprocess.check_output(["git", "ls-files", *patterns], text=True).splitlines()


def is_shell(path):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return any(SHELL.match(line.decode(errors="replace")) for line in file.readlines(200)[:2])


def main():
    found = []
    for path in tracked(["*.rs"]):
        found += [f"{path}:{number}: a comment" for number in too_long(path, is_code_or_unbreakable)]
    for path in sorted({*tracked(WHOLE), *filter(is_shell, tracked([":!*.rs"]))}):
        found += [f"{path}:{number}: a line" for number in too_long(path, lambda _: False)]
    for place in found:
        print(f"{place} is longer than {COLUMNS} columns")
    sys.exit(1 if found else 0)


main()
