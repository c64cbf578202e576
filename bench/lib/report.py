"""Medians, alternation, and the report of a benchmark: a Markdown page that says where and when it was measured."""

import argparse
import datetime
import os
import platform
import statistics
import subprocess

from environment import ROOT

RESULTS = os.path.join(ROOT, "bench", "results")


def parser(description, rounds):
    """The command line that every benchmark has, for those that add to it."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="small data, two rounds, nothing written to bench/results")
    made.add_argument("--rounds", type=int, default=rounds, help=f"measurements of each side (default {rounds})")
    return made


def parsed(made):
    """What the command line says."""
    chosen = made.parse_args()
    if chosen.quick:
        chosen.rounds = 2
    return chosen


def arguments(description, rounds):
    """The command line of a benchmark that adds nothing to it."""
    return parsed(parser(description, rounds))


def alternate(rounds, sides):
    """Measures the sides in turn, `rounds` times, each round starting with another side; returns {name: [results]}.

    What else the machine does then falls on all sides alike.
    """
    names = list(sides)
    results = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            results[name].append(sides[name]())
    return results


def spread(values):
    """Median with the least and the greatest value, as text."""
    return f"{number(statistics.median(values))} ({number(min(values))} - {number(max(values))})"


def number(value):
    """A number with the digits that mean something."""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def known(value):
    """A number, or a dash for None."""
    return "-" if value is None else number(value)


def ratio(value):
    return f"{value:.2f}"


def _machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} x {model}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def _commit():
    """The commit, `-dirty` where files differ from it. Pages that an earlier run has written do not count."""
    git = ["git", "-C", ROOT]
    described = subprocess.run([*git, "describe", "--always"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ".", ":!bench/results"], check=False)
    dirty = "-dirty" if changed.returncode else ""
    return (described.stdout.strip() + dirty) or "unknown"


class Report:
    """Collects notes and tables, prints them as they come, and writes bench/results/<name>.md at the end."""

    def __init__(self, name, title, connection, quick, by=None):
        self.name = name
        self.title = title
        self.quick = quick
        self.parts = []
        with connection.cursor() as cursor:
            cursor.execute(
                "select current_setting('server_version'), extversion from pg_extension where extname = 'pgquad'"
            )
            server, extension = cursor.fetchone()
        self.add(f"# {title}\n")
        self.add(
            f"- machine: {_machine()}; load average at the start {os.getloadavg()[0]:.1f}\n"
            f"- PostgreSQL {server}, pgquad {extension} ({_commit()})\n"
            f"- {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, by `bench/{by or name}/run`\n"
        )

    def add(self, text):
        self.parts.append(text)
        print(text, flush=True)

    def table(self, header, lines):
        """A Markdown table; the first column is text, the others are figures."""
        rule = ["---"] + ["---:"] * (len(header) - 1)
        self.add("\n".join("| " + " | ".join(map(str, line)) + " |" for line in [header, rule, *lines]) + "\n")

    def write(self):
        if self.quick:
            return
        os.makedirs(RESULTS, exist_ok=True)
        path = os.path.join(RESULTS, self.name + ".md")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.parts))
        print("written: " + os.path.relpath(path, ROOT))
