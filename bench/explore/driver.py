"""Replays a query log of the Berlin benchmark with several clients, each a process; prints JSON.

Usage: driver.py LOG.jsonl.gz CLIENTS SECONDS (postgres DSN | oxigraph DIRECTORY)

One pass over the log, shared out among the clients, comes first; it is not counted, but says how many rows each answer has.
Then every client starts at another mix and asks the queries of the log in order, round and round. The answers are fetched whole, in SPARQL's JSON result format or as triples.
Runs under the Python that has the store's client library: psycopg2 or pyoxigraph.
"""

import gzip
import json
import multiprocessing
import re
import sys
import time

FORM = re.compile(r"^\s*(SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE | re.MULTILINE)


def postgres(dsn):
    """A function that answers one query by this extension."""
    import psycopg2

    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    cursor = connection.cursor()
    statements = {
        "SELECT": "select quad.sparql_json(%s)",
        "CONSTRUCT": "select subject, predicate, object from quad.construct(%s)",
        "DESCRIBE": "select subject, predicate, object from quad.describe(%s)",
    }

    def ask(form, query):
        cursor.execute(statements[form], (query,))
        return cursor.fetchall()

    return ask, lambda form, answer: len(json.loads(answer[0][0])["results"]["bindings"]) if form == "SELECT" else len(answer)


def oxigraph(directory):
    """A function that answers one query by Oxigraph, embedded in this very process."""
    import pyoxigraph

    store = pyoxigraph.Store.read_only(directory)
    formats = {"SELECT": pyoxigraph.QueryResultsFormat.JSON}

    def ask(form, query):
        return store.query(query).serialize(format=formats.get(form, pyoxigraph.RdfFormat.N_TRIPLES))

    return ask, lambda form, answer: len(json.loads(answer)["results"]["bindings"]) if form == "SELECT" else answer.count(b"\n")


def client(connect, place, log, share, start, seconds, ready, results):
    ask, count = connect(place)
    sizes = {position: count(log[position][1], ask(*log[position][1:])) for position in share}
    ready.wait()
    times = []
    began = time.perf_counter()
    position = start
    while time.perf_counter() - began < seconds:
        number, form, query = log[position]
        before = time.perf_counter()
        ask(form, query)
        times.append((number, time.perf_counter() - before))
        position = (position + 1) % len(log)
    results.put({"times": times, "seconds": time.perf_counter() - began, "sizes": sizes})


def main():
    path, clients, seconds, kind, place = sys.argv[1:]
    clients, seconds = int(clients), float(seconds)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    log = [(entry["query_nr"], FORM.search(entry["sparql"]).group(1).upper(), entry["sparql"]) for entry in entries]
    starts = [position for position, entry in enumerate(entries) if entry["pos"] == 0]
    ready, results = multiprocessing.Barrier(clients), multiprocessing.Queue()
    processes = [
        multiprocessing.Process(
            target=client,
            args=(
                globals()[kind], place, log, range(index, len(log), clients),
                starts[index * len(starts) // clients], seconds, ready, results,
            ),  # fmt: skip
        )
        for index in range(clients)
    ]
    for process in processes:
        process.start()
    collected = []
    while len(collected) < clients:
        try:
            collected.append(results.get(timeout=1))
        except multiprocessing.queues.Empty:
            if any(process.exitcode for process in processes):
                for process in processes:
                    process.terminate()
                sys.exit("a client failed")
    for process in processes:
        process.join()
    per_mix = len(log) / len(starts)
    sizes, by_number = {}, {}
    for outcome in collected:
        sizes.update(outcome["sizes"])
        for number, taken in outcome["times"]:
            by_number.setdefault(number, []).append(taken)
    json.dump(
        {
            "mixes_per_hour": sum(len(outcome["times"]) / per_mix / outcome["seconds"] for outcome in collected) * 3600,
            "times": by_number,
            "sizes": [sizes[position] for position in range(len(log))],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
