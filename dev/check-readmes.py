"""Checks the tables and lists of files in READMEs. Each Rust file is named in the nearest README above it, if that one
has such a table; and each file that it names is there. Says file:line, or the file that is missing.

A table of files has a heading that begins with `file`; a list of files has items that begin with the name of a Rust
file. A row or an item that begins with a folder, as in `block/`, stands for what is in it.
"""

import os
import re
import subprocess
import sys

HEADING = re.compile(r"\| *files?\b")
ROW = re.compile(r"\|(?P<cell>[^|]*)\|")
ITEM = re.compile(r"- (?P<cell>`[^`]+\.rs`|`[^`]+/`)[:,]")
SPAN = re.compile(r"`([^`\s]+)`")
# Files that every crate or module has, and tests within a crate.
UNNAMED = {"mod.rs", "lib.rs", "main.rs", "build.rs", "tests.rs"}


def cells(lines):
    """Number and text of each place that names files: first cells of tables of files, first words of lists."""
    in_table = False
    for number, line in enumerate(lines, 1):
        row = ROW.match(line)
        if row and HEADING.match(line):
            in_table = True
        elif not row:
            in_table = False
        found = row if in_table else ITEM.match(line)
        if found:
            yield number, found["cell"]


def complaints(readme, folder, files):
    """What the README says of files that are not there, and what files it leaves out."""
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    places = list(cells(text.splitlines()))
    if not any(".rs`" in cell for _, cell in places):
        return
    named = {os.path.basename(name) for name in SPAN.findall(text)}
    folders = {name for _, cell in places for name in SPAN.findall(cell) if name.endswith("/")}
    for path in files:
        inside = os.path.relpath(path, folder)
        covered = any(f"/{inside}".find(f"/{name}") >= 0 for name in folders)
        if os.path.basename(path) not in named | UNNAMED and not covered:
            yield f"{readme}: does not name {inside}"
    for number, cell in places:
        for name in SPAN.findall(cell):
            if name.endswith(".rs") and not any(f"/{path}".endswith(f"/{name}") for path in files):
                yield f"{readme}:{number}: there is no {name}"


def main():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.rs", "*README.md"]
    paths = [path for path in subprocess.check_output(command, text=True).splitlines() if os.path.exists(path)]
    readmes = {os.path.dirname(path): path for path in paths if os.path.basename(path) == "README.md"}
    files = {folder: [] for folder in readmes}
    for path in paths:
        if path.endswith(".rs"):
            folder = os.path.dirname(path)
            while folder and folder not in readmes:
                folder = os.path.dirname(folder)
            files.setdefault(folder, []).append(path)
    found = [line for folder, readme in readmes.items() for line in complaints(readme, folder, files[folder])]
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


main()
