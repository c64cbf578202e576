"""Checks the documentation as it stands in the tree. docs/SUMMARY.md lists every page of docs/ and every README once.
Each relative link of a Markdown file leads to a file, and to a heading where it names one. Examples of docs/ and
README.md are in fenced blocks, which the suite `docs` runs. Prints file:line of what does not hold.
"""

import os
import re
import subprocess
import sys

import markdown

SUMMARY = "docs/SUMMARY.md"
# Not pages of the site: what the benchmarks write, and forms of the project's pages.
APART = ("bench/results/", ".github/")
# What the indented block of an example begins with.
EXAMPLE = re.compile(r" {4,}(SELECT|SET|CREATE|INSERT|ALTER|GRANT|EXPLAIN|COPY|psql|curl|\\copy|\d*=#) ", re.IGNORECASE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def broken_links(files):
    """Complaints about links that lead nowhere."""
    names = {path: markdown.anchors(read(path)) for path in files}
    for path in files:
        for line, target in markdown.links(read(path)):
            file, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(there):
                yield f"{path}:{line}: there is no {there}"
            elif anchor and there in names and anchor not in names[there]:
                yield f"{path}:{line}: {there} has no heading #{anchor}"


def unlisted(files):
    """Complaints about pages that the table of contents leaves out, or has twice."""
    listed = [os.path.normpath(os.path.join("docs", target)) for _, target in markdown.links(read(SUMMARY))]
    for path in files:
        if path != SUMMARY and not path.startswith(APART) and listed.count(path) != 1:
            yield f"{SUMMARY}: lists {path} {listed.count(path)} times"


def unfenced(files):
    """Complaints about examples that the suite `docs` does not see."""
    for path in files:
        if path == "README.md" or path.startswith("docs/"):
            for line, text in markdown.outside_fences(read(path)):
                if EXAMPLE.match(text):
                    yield f"{path}:{line}: an example in an indented block: fence it"


def main():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    files = [path for path in subprocess.check_output(command, text=True).splitlines() if os.path.exists(path)]
    complaints = [*broken_links(files), *unlisted(files), *unfenced(files)]
    for complaint in complaints:
        print(complaint)
    print(f"{len(files)} pages, {len(complaints)} problems")
    sys.exit(1 if complaints or not files else 0)


main()
