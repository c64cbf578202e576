"""Checks that comments of Rust sources have lines of at most 120 columns, which rustfmt leaves as they are. Says file:line of each that is longer.

Tables and links of doc comments cannot be wrapped, and are let pass.
"""

import re
import subprocess
import sys

COLUMNS = 120
COMMENT = re.compile(r"\s*//[/!]? ?(.*)")
# A row of a table, the definition of a link, one word that is longer than a line.
UNBREAKABLE = re.compile(r"\||\[[^]]+\]: |\S+$")


def too_long(path):
    """Numbers of the lines that are longer."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            comment = COMMENT.fullmatch(line.rstrip("\n"))
            if comment and len(line.rstrip("\n")) > COLUMNS and not UNBREAKABLE.match(comment[1]):
                yield number


def main():
    files = subprocess.check_output(["git", "ls-files", "*.rs"], text=True).splitlines()
    found = [f"{path}:{number}" for path in files for number in too_long(path)]
    for place in found:
        print(f"{place}: a comment is longer than {COLUMNS} columns")
    sys.exit(1 if found else 0)


main()
