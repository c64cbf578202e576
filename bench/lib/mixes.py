"""Query mixes against this store and its peers: runs, tables and plots that bench/explore and bench/bi share."""

import argparse
import contextlib
import gzip
import json
import math
import os
import statistics
import subprocess
import tempfile

import bsbm
import data
import peers
import report
import svg
from server import bench_server, rows

OWN = "pgquad"
# Queries of each template that are explained.
PROFILED = 5
# Seconds that a query of the Explore mix may take. Oxigraph's server (0.5.13) keeps a thread for each query until the
# query's time has passed. With a minute for each, it has as many threads as the system allows after 30,000 queries, and
# dies.
EXPLORE_TIMEOUT_S = 10


def parser(description, scales, clients="1,8", mixes=50, passes=0, timeout=60):
    """The command line of a benchmark of query mixes, with its defaults, for those that add to it."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--quick", action="store_true", help="the smallest scale, short turns, nothing written to bench/results"
    )
    made.add_argument("--scales", default=scales, help=f"of {', '.join(bsbm.SCALES)} (default {scales})")
    made.add_argument(
        "--peers", default=",".join(peers.NAMES), help="the stores to compare with, where they are set up"
    )
    made.add_argument("--clients", default=clients, help=f"numbers of clients (default {clients})")
    made.add_argument(
        "--mixes", type=int, default=mixes, help=f"mixes in the log, where it is generated (default {mixes})"
    )
    made.add_argument("--rounds", type=int, default=3, help="turns of each store (default 3)")
    made.add_argument("--seconds", type=int, default=10, help="length of a turn (default 10)")
    made.add_argument(
        "--passes",
        type=int,
        default=passes,
        help=f"a turn is so many times the log, not a time; 0: a time (default {passes})",
    )
    made.add_argument(
        "--timeout", type=int, default=timeout, help=f"seconds after which a query has failed (default {timeout})"
    )
    made.add_argument(
        "--check-every", type=int, default=1, help="compare the answers to each Nth query of the log (default 1)"
    )
    return made


def parsed(made):
    """What the command line says."""
    chosen = made.parse_args()
    if chosen.quick:
        chosen.scales, chosen.rounds, chosen.seconds = "100k", 2, 2
        chosen.mixes = min(chosen.mixes, 5)
    return chosen


def arguments(description, scales, **defaults):
    """The command line of a benchmark that adds nothing to it."""
    return parsed(parser(description, scales, **defaults))


def dsn(server):
    return f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"


def replay(log, targets, *options):
    """Runs bench/replay; returns what it prints."""
    command = [bsbm.program("replay"), "--log", log, *targets, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout)


def run(name, title, mix, options):
    """The whole benchmark of a mix, scale after scale."""
    found = peers.available(options.peers.split(",") if options.peers else [])
    for scale in options.scales.split(","):
        with bench_server() as server:
            measure(server, name, title, mix, scale, found, options)


def measure(server, name, title, mix, scale, found, options):
    dataset = bsbm.DataSet(scale, server.dir)
    if mix != "explore":
        dataset = dataset.generated()
    connection = server.connect()
    file, log = dataset.triples(), dataset.log(mix, mixes=options.mixes)
    quads = data.load_store(connection, file)
    page = report.Report(f"{name}-{scale}", f"{title}, {quads:,} triples", connection, options.quick, by=name)
    with contextlib.ExitStack() as stack:
        targets = ["--postgres", f"{OWN}={dsn(server)}"]
        for peer in found:
            targets += peer.option(
                stack.enter_context(peer.serving(peer.load_once(file, dataset.key), options.timeout))
            )
        length = (
            ["--passes", str(options.passes), "--warm-mixes", "0"]
            if options.passes
            else ["--seconds", str(options.seconds)]
        )
        results = replay(
            log, targets, "--clients", options.clients, "--rounds", str(options.rounds), *length,
            "--timeout", str(options.timeout),
            "--check-every", str(options.check_every),
        )  # fmt: skip
    describe(page, name, scale, log, results, options)
    deaths(page, found)
    profile(page, connection, log, results, f"{name}-{scale}.profile.txt", options.quick)
    if not options.quick:
        save(f"{name}-{scale}.json", results)
    page.write()


def medians(results, clients):
    """Of the runs with so many clients: {store: {"mixes": [..], "queries": {number: {figure: median}}, "failures":
    {number: text}}}. A query whose answer could not be compared has failed too: some stores break off an answer without
    an error."""
    stores = {}
    for turn in results["runs"]:
        if turn["clients"] == clients:
            stores.setdefault(turn["target"], []).append(turn)
    return {
        name: {
            "mixes": [turn["mixes_per_hour"] for turn in turns],
            "queries": {
                number: {
                    figure: statistics.median(
                        turn["latencies"][number][figure] for turn in turns if number in turn["latencies"]
                    )
                    for figure in ("mean", "p50", "p95", "p99")
                }
                for number in sorted({n for turn in turns for n in turn["latencies"]}, key=int)
            },
            "failures": {
                **{str(f["query"]): f["text"] for f in results.get("check", {}).get(name, {}).get("failed", [])},
                **{n: f["text"] for turn in turns for n, f in turn["failures"].items()},
            },
        }
        for name, turns in stores.items()
    }


def ask_each(server, asked, options, file, key, more=None, warm=0):
    """Asks each of some queries `options.rounds` times over a new connection each time, `warm` times before it counts.
    It asks this store, further servers ({name: server}) and the peers that have loaded the same file. Returns
    milliseconds by store in the order of the queries, None where one failed, and what the comparison of the answers
    says."""
    found = peers.available(options.peers.split(",") if options.peers else [])
    own = [["--postgres", f"{name}={dsn(of)}"] for name, of in {OWN: server, **(more or {})}.items()]

    # A peer's server runs in its own turn only: some go on with a query that has taken too long, at the expense of who
    # comes next.
    @contextlib.contextmanager
    def served(peer):
        with peer.serving(peer.load_once(file, key), options.timeout) as url:
            yield peer.option(url)

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as log:
        for position, query in enumerate(asked.values()):
            log.write(json.dumps({"mix": 0, "pos": position, "query_nr": position, "sparql": query}) + "\n")
        log.flush()
        limit = ["--timeout", str(options.timeout), "--no-floor"]

        def compared(targets):
            return replay(log.name, targets, "--rounds", "0", *limit)["check"]

        results = {"check": compared([word for target in own for word in target]), "runs": []}
        for peer in found:
            with served(peer) as target:
                check = compared([*own[0], *target])
            results["check"] |= {store: outcome for store, outcome in check.items() if store != OWN}
        for number in range(options.rounds):
            turns = [*map(contextlib.nullcontext, own), *map(served, found)]
            for turn in range(len(turns)):
                with turns[(turn + number) % len(turns)] as target:
                    run = replay(log.name, target, "--passes", "1", "--warm-mixes", str(warm), "--rounds", "1", "--check-every", "0", *limit)
                results["runs"] += run["runs"]
    stores = medians(results, 1)
    numbers = {
        store: [None if str(n) in found["failures"] else found["queries"][str(n)]["mean"] for n in range(len(asked))]
        for store, found in stores.items()
    }
    return numbers, results["check"]


def milliseconds(value, timeout):
    """A time as text; None has run into the limit."""
    return f"> {timeout:,} s" if value is None else report.number(value)


def slower_by(value, own, timeout):
    """How many times as long as this store another one takes, as text."""
    if own is None:
        return "-"
    return f"> {report.ratio(timeout * 1000 / own)}" if value is None else report.ratio(value / own)


def describe(page, name, scale, log, results, options):
    weights = weights_of(log)
    checked(page, results["check"])
    for clients in map(int, options.clients.split(",")):
        stores = medians(results, clients)
        others = [store for store in stores if store != OWN]
        own = statistics.median(stores[OWN]["mixes"])
        by_medians = {store: clients * mixes_of_medians(found, weights) for store, found in stores.items()}
        page.add(f"## {clients} client{'s' if clients > 1 else ''}\n")
        page.table(
            ["store", "query mixes/hour", f"{OWN} is faster by", "if every query took its median", f"{OWN} is faster by"],
            [
                [
                    store,
                    spread(found["mixes"]),
                    faster_by(own, found["mixes"]),
                    report.number(by_medians[store]) if by_medians[store] else "-",
                    report.ratio(by_medians[OWN] / by_medians[store]) if by_medians[store] else "-",
                ]
                for store, found in stores.items()
            ],
        )
        for figure, meaning in (("p50", "median"), ("mean", "mean")):
            page.table(
                [
                    f"query, {meaning}",
                    *(f"{store}, ms" for store in stores),
                    *(f"faster than {store} by" for store in others),
                ],
                [
                    [
                        number,
                        *(cell(stores[store], number, figure) for store in stores),
                        *(against(stores[store], number, figure, figures) for store in others),
                    ]
                    for number, figures in stores[OWN]["queries"].items()
                ],
            )
        page.table(
            [f"{OWN}, query", "p50, ms", "p95", "p99"],
            [
                [number, *(report.number(figures[f]) for f in ("p50", "p95", "p99"))]
                for number, figures in stores[OWN]["queries"].items()
            ],
        )
        for store, found in stores.items():
            for number, text in found["failures"].items():
                page.add(f"FAILED: {store}, query {number}: {text[:200]}\n")
        if not options.quick:
            plot = f"{name}-{scale}-{clients}.svg"
            svg.bar_chart(
                os.path.join(report.RESULTS, plot),
                f"{page.title}, {clients} client{'s' if clients > 1 else ''}: median ms a query (logarithmic)",
                list(stores[OWN]["queries"]),
                {
                    store: [found["queries"].get(n, {}).get("p50") for n in stores[OWN]["queries"]]
                    for store, found in stores.items()
                },
            )
            page.add(f"![plot]({plot})\n")
    floor(page, results)
    turn = f"{options.passes} x the log" if options.passes else f"{options.seconds} s"
    warm = "" if options.passes else ", after two mixes on each connection"
    page.add(
        f"Median (least - greatest) of {options.rounds} turns of {turn} each, the stores in turn{warm}.\n"
        f"{OWN} is asked over PostgreSQL's protocol (prepared `select quad.sparql_json($1)`, or `quad.construct_text`), the others over HTTP on kept connections (Virtuoso:\n"
        "a connection each, it stalls on kept ones); all answers are read whole, as SPARQL JSON results or N-Triples. The times of a query are\n"
        "means and medians over a turn, then the median of the turns; where the machine had other work, medians say more."
    )


def spread(mixes):
    """Mixes an hour of the turns of a store, as text. A turn with none is one that the store did not answer."""
    answered = [rate for rate in mixes if rate > 0]
    missing = len(mixes) - len(answered)
    text = report.spread(answered) if answered else "-"
    return text + (f", {missing} of {len(mixes)} turns not answered" if missing else "")


def faster_by(own, mixes):
    """How many times the mixes of the turns that another store answered `own` is, as text."""
    answered = [rate for rate in mixes if rate > 0]
    return report.ratio(own / statistics.median(answered)) if answered else "-"


def deaths(page, found):
    """Writes into the page which peers' servers died; it has been printed when it was found."""
    page.parts += [peer.death for peer in found if peer.death]


def mixes_of_medians(found, weights):
    """Mixes an hour of one client for whom every query takes the median time of its template; `weights`: how often the
    mix asks each."""
    times = {number: found["queries"][number]["p50"] if was_timed(found, number) else math.inf for number in weights}
    return 3_600_000 / sum(weight * times[number] for number, weight in weights.items())


def weights_of(log):
    """How often the first mix of a log asks each template."""
    weights = {}
    for entry in entries(log):
        if entry["mix"] != 0:
            break
        weights[str(entry["query_nr"])] = weights.get(str(entry["query_nr"]), 0) + 1
    return weights


def entries(log):
    opener = gzip.open if log.endswith(".gz") else open
    with opener(log, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def was_timed(found, number):
    """Whether a store has answered a query of the template: the turn of a slow one may end before its first."""
    return number not in found["failures"] and number in found["queries"]


def cell(found, number, figure):
    if was_timed(found, number):
        return report.number(found["queries"][number][figure])
    return "failed" if number in found["failures"] else "not reached"


def against(found, number, figure, own):
    return report.ratio(found["queries"][number][figure] / own[figure]) if was_timed(found, number) else "-"


def checked(page, check, own=OWN):
    """How the answers of the stores compare with those of `own`."""
    page.table(
        ["store", f"answers like those of {own}", "not compared (DESCRIBE)", "different", "failed"],
        [[s, c["equal"], c["not_compared"], len(c["different"]), len(c["failed"])] for s, c in check.items()],
    )
    for store, outcome in check.items():
        for kind in ("different", "failed"):
            first = {}
            for entry in outcome[kind]:
                first.setdefault(entry["query"], entry)
            for number, entry in sorted(first.items()):
                count = sum(1 for other in outcome[kind] if other["query"] == number)
                page.add(f"- {store}, query {number}: {count} {kind}, first: {entry['text'][:300]}")
    page.add("")


def floor(page, results):
    """How far an average query is from an empty round trip."""
    first = min(turn["clients"] for turn in results["runs"])
    stores = medians(results, first)
    latencies = [turn["latencies"] for turn in results["runs"] if turn["target"] == OWN and turn["clients"] == first]
    total = sum(q["mean"] * q["count"] for turn in latencies for q in turn.values())
    average = total / sum(q["count"] for turn in latencies for q in turn.values())
    page.add("## Floor\n")
    page.table(
        ["store", "empty prepared SELECT, ms", "`ASK {}`, ms"],
        [
            [store, report.known(figures["empty"]), report.known(figures["ask"])]
            for store, figures in results["floor"].items()
            if store in stores
        ],
    )
    empty = results["floor"][OWN]["empty"]
    page.add(
        f"An average query of the mix takes {OWN} {report.number(average)} ms with {first} client{'s' if first > 1 else ''}: "
        f"{report.number(average / empty)} empty round trips.\n"
    )


def plans(connection, log):
    """Plans of the first queries of each template with what each step took, as lines: {number: [plan, ..]}."""
    found = {}
    for entry in entries(log):
        plans_of = found.setdefault(entry["query_nr"], [])
        if len(plans_of) < PROFILED:
            lines = [
                row[0] for row in rows(connection, 'select quad.explain(%s, "analyze" => true)', (entry["sparql"],))
            ]
            plans_of.append(lines[lines.index("Plan:") :])
    return dict(sorted(found.items()))


def execution_time(plan):
    return float(next(line for line in plan if "Execution Time:" in line).split()[2])


def profile(page, connection, log, results, name, quick):
    """Where the time of each query goes, and the plans to results/<name>."""
    found = plans(connection, log)
    first = min(turn["clients"] for turn in results["runs"])
    own, empty = medians(results, first)[OWN]["queries"], results["floor"][OWN]["empty"]
    lines = []
    for number, of_number in found.items():
        whole, executing = own[str(number)]["p50"], statistics.median(map(execution_time, of_number))
        lines.append([number, *map(report.number, (whole, empty, executing, max(0.0, whole - empty - executing)))])
    page.add("Where the time of a query goes (milliseconds; latency: median of the log, execution: median of the first plans under EXPLAIN ANALYZE,\n"
             "which costs time itself; the rest is looking up the template and its constants, decoding, writing JSON, sending):\n")  # fmt: skip
    page.table(["query", "latency", "empty round trip", "execution", "rest"], lines)
    if quick:
        return
    with open(os.path.join(report.RESULTS, name), "w", encoding="utf-8") as out:
        for number, of_number in found.items():
            plan = [line[:160] for line in of_number[0] if "Output: " not in line]
            out.write(f"=== query {number}\n" + "\n".join(plan) + "\n\n")


def save(name, results):
    """The figures of a run, for whoever wants to plot them otherwise."""
    os.makedirs(report.RESULTS, exist_ok=True)
    with open(os.path.join(report.RESULTS, name), "w", encoding="utf-8") as file:
        json.dump({"floor": results["floor"], "runs": results["runs"]}, file, indent=1)
        file.write("\n")
