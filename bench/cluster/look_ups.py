"""Two small reads of a store: a star of three patterns of a given subject, and many ids looked up at once."""

import statistics
import time

from server import rows, value

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
# Ids that are looked up at once.
MANY = 10_000


def prepare(connection, store, stars):
    """Draws subjects, and prepares the statements; returns the subjects of the stars and the ids to look up."""
    label, comment, kind = (
        value(connection, "select quad.find(%s::quad.term)", (f"<{iri}>",)) for iri in (LABEL, COMMENT, TYPE)
    )
    rows(
        connection,
        f"prepare star(bigint) as select a.o, b.o, c.o from {store} a, {store} b, {store} c "
        f"where a.s = $1 and a.p = {label} and b.s = $1 and b.p = {comment} and c.s = $1 and c.p = {kind}",
    )
    subjects = f"select distinct q.s from {store} q where q.p = {kind} order by q.s"
    rows(connection, "select setseed(0.5)")
    ids = [s for (s,) in rows(connection, f"select s from ({subjects}) of_type order by random() limit {MANY}")]
    rows(connection, f"prepare look_up(bigint[]) as select count(*), sum(q.o & 1) from {store} q where q.s = any ($1) and q.p = {kind}")
    chosen = f"select q.s from {store} q where q.p = {comment} order by q.s"
    return [s for (s,) in rows(connection, f"select s from ({chosen}) of_comment order by random() limit {stars}")], ids


def star(connection, subjects):
    """Median milliseconds of a star of one subject, as the client sees it."""
    times = []
    with connection.cursor() as cursor:
        for subject in subjects:
            began = time.perf_counter()
            cursor.execute("execute star(%s)", (subject,))
            cursor.fetchall()
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def look_up(connection, ids):
    """Milliseconds of the look-up of many ids, as the client sees it, who sends them as an array."""
    array = "{" + ",".join(map(str, ids)) + "}"
    began = time.perf_counter()
    rows(connection, "execute look_up(%s)", (array,))
    return (time.perf_counter() - began) * 1000
