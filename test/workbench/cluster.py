"""The workbench on a cluster of three nodes: where a query was run, all nodes' requests and status, loads,
cancelling."""
import contextlib
import os
import re

from browser import SOLAR, Browser, answered, shot, write
from endpoint import Endpoint, until
from nodes import Cluster

MOONS = f"PREFIX : <{SOLAR}>\nSELECT ?moon ?planet ?r {{ ?moon a :Moon ; :orbits ?planet . ?planet :radius ?r }}"
SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o FILTER(?c != ?f && ?i != ?l && ?o != ?c) }"
TRIPLES = 300_000


class ClusterBrowser(Browser):
    """Pages of an endpoint that asks the nodes of a cluster in turn."""

    def __init__(self, browser, endpoint, nodes):
        super().__init__(browser, endpoint)
        self.nodes = nodes


@contextlib.contextmanager
def cluster():
    """A cluster with the distributed store `demo`."""
    with Cluster(shards_on_coordinator=True) as nodes:
        run = nodes.coordinator.query
        run("create extension if not exists pgquad")
        run("select quad.create_store('demo', distributed => true, shards => 6)")
        with open(os.path.join(os.environ["PGQUAD_ROOT"], "test/data/solar.ttl"), encoding="utf-8") as file:
            run("select quad.load_text(%s, 'turtle', store => 'demo')", (file.read(),))
        run("create role cluster_reader nologin")
        run("grant select on quad_stores.demo to cluster_reader")
        yield nodes


def endpoint(nodes):
    """An endpoint for all nodes."""
    return Endpoint(
        ",".join(f"postgres://postgres@127.0.0.1:{server.port}/postgres" for server in nodes.servers),
        anonymous="cluster_reader",
    )


def where_it_ran(report, browser):
    """The picture of a plan tells whether rows were read here, pulled or pushed."""
    for mode in ("pull", "push"):
        # Citus sets it on all nodes; new sessions have it.
        browser.nodes.coordinator.query(f"alter database postgres set quad.exchange_mode = '{mode}'")
        with endpoint(browser.nodes) as other:
            page = Browser(browser.browser, other).page("/?store=demo")
            write(page, MOONS)
            page.get_by_role("button", name="Run").click()
            answered(page, "rows")
            rows = int(page.text_content("#status").split()[0])
            page.get_by_role("button", name="Profile").click()
            page.wait_for_selector(".bar .found")
            node = page.locator(".node.quad").first
            report.check(
                rows > 10 and f"{rows} rows" in node.text_content() and node.locator(f".badge.{mode}").count() >= 1,
                f"a query whose rows are {mode}ed",
                node.text_content(),
            )
            shot(page, f"cluster-{mode}")
    browser.nodes.coordinator.query("alter database postgres reset quad.exchange_mode")


def status_of_all_nodes(report, browser):
    page = browser.signed_in("/?store=demo#running")
    line = page.locator("#cluster summary", has_text="3 nodes")
    line.click()
    lines = page.locator("#cluster pre").inner_text().splitlines()
    ports = [re.search(r":(\d+):", line).group(1) for line in lines if re.match(r"node \d+ ", line)]
    report.check(
        sorted(ports) == sorted(str(server.port) for server in browser.nodes.servers), "a line for each node", lines
    )
    shot(page, "cluster-status")


def requests_of_all_nodes(report, browser):
    """Requests that any node works on are shown, and cancelled."""
    watching = browser.signed_in("/?store=demo#running")
    asking = [browser.page("/?store=demo") for _ in browser.nodes.servers]
    for page in asking:
        write(page, SLOW)
        page.get_by_role("button", name="Run").click()
    rows = watching.locator(".requests tbody tr")
    # The status line asks all nodes, and nodes ask each other: those sessions are no requests of anybody.
    report.check(until(lambda: rows.count() >= len(asking)), "all are shown", rows.count())
    watching.wait_for_timeout(3000)
    report.check(
        rows.count() == len(asking) and all("COUNT(*)" in text for text in rows.all_text_contents()),
        "and nothing else",
        rows.all_text_contents(),
    )
    ports = {port for server in browser.nodes.servers for port in [str(server.port)] if port in " ".join(rows.all_text_contents())}
    report.check(len(ports) > 1, "of several nodes", rows.all_text_contents())
    for _ in asking:
        rows.first.get_by_role("button", name="Cancel").click()
        until(lambda count=rows.count(): rows.count() < count)
    shot(watching, "cluster-running")
    for page in asking:
        page.wait_for_selector("#main [role=alert]")
        report.check("cancel" in page.text_content("#main [role=alert]"), "and cancelled", page.text_content("#main"))

    def left():
        running = "select count(*) from pg_stat_activity where state = 'active' and query ~ 'quad\\.' and pid <> pg_backend_pid()"
        return sum(server.query(running)[0][0] for server in browser.nodes.servers)
    report.check(until(lambda: left() == 0), "nothing goes on at any node", left())


def load_and_contents(report, browser):
    """A file is loaded into the shards of all nodes, and found by the next question, whichever node answers it."""
    page = browser.signed_in("/?store=demo#load")
    text = "".join(f'<http://x/thing/{n // 5}> <http://x/p{n % 5}> "value {n}" .\n' for n in range(TRIPLES))
    page.set_input_files(
        "input[type=file]", [{"name": "things.nt", "mimeType": "application/n-triples", "buffer": text.encode()}]
    )
    box = page.get_by_role("group", name="Load of things.nt")
    loaded = until(lambda: "loaded" in (box.text_content() or ""), 300)
    report.check(loaded, "a load", box.text_content())
    for _ in browser.nodes.servers:
        asked = browser.page("/?store=demo")
        write(asked, "SELECT (COUNT(*) AS ?n) { ?s <http://x/p3> ?o }")
        asked.get_by_role("button", name="Run").click()
        answered(asked)
        report.check(
            str(TRIPLES // 5) in asked.text_content("tbody").replace(",", ""),
            "is there at every node",
            asked.text_content("tbody"),
        )
    page.evaluate("() => { location.hash = 'contents'; }")
    page.wait_for_selector("#main:has-text('http://x/p3'), #main:has-text('p3')")
    shot(page, "cluster-contents")


TESTS = [where_it_ran, status_of_all_nodes, requests_of_all_nodes, load_and_contents]
