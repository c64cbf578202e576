"""Clients that do not come with Debian: Apache Jena's RDFConnection and Comunica. `run` installs them where Maven and
npm are, by the files `foreign/pom.xml` and `foreign/package.json`.

PGQUAD_JENA: a directory of jars. PGQUAD_COMUNICA: a directory in which `npm install` was run.
"""
import os
import shutil
import subprocess

from endpoint import Endpoint, sql

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign")
JENA = ["put true", "load 3", "select 1852", "ask true", "construct 4", "describe true", "delete false", "error QueryParseException"]
COMUNICA = ["select 1", "ask true", "construct 1", "discovered 1"]


def says(report, name, command, lines):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    report.check(done.stdout.splitlines() == lines, name, done.stdout + done.stderr[-2000:])


def available(report, name, program, variable):
    """The directory of a client's libraries; None, said aloud, where they or the program that runs it are not there."""
    directory = os.environ.get(variable, "")
    if shutil.which(program) and os.path.isdir(directory):
        return directory
    report.skip(name, f"there is no {program}, or {variable} names no directory")
    return None


def run(report):
    sql("TRUNCATE quad_stores.main")
    jars = available(report, "Jena", "java", "PGQUAD_JENA")
    if jars:
        # It sends credentials when it is asked for them.
        with Endpoint() as endpoint:
            says(report, "Jena", ["java", "-cp", f"{jars}/*", os.path.join(HERE, "Jena.java"), endpoint.url], JENA)
    packages = available(report, "Comunica", "node", "PGQUAD_COMUNICA")
    if packages:
        sql("SELECT quad.load_text('<http://x/a> <http://x/p> 1 .')")
        with Endpoint(anonymous="http_reader") as endpoint:
            says(report, "Comunica", ["node", os.path.join(HERE, "comunica.mjs"), endpoint.url, packages], COMUNICA)
    sql("TRUNCATE quad_stores.main")
