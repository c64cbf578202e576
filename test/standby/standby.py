"""Replication and backup. A streaming replica made with pg_basebackup follows changes of every kind, answers the same
and is verified. Promotion works, pg_dump | psql gives the same content in a fresh server, and pg_prewarm and
autoprewarm work."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402

TABLES = ("plain", "narrow")


def content(server, table):
    """Number of quads and a digest of them all, the same on every server."""
    return server.query(
        f"select count(*), md5(string_agg(concat_ws(',', s, p, o, g), ';' order by s, p, o, g)) from {table}"
    )[0]


def answers(server, table):
    """Answers by each of the orders."""
    return [
        server.query(f"select count(*), sum(s), sum(o) from {table} where {condition}")[0]
        for condition in ("s between 100 and 200", "p = 5", "p = 3 and o < 40", "o = 17", "s = 7 and o = 7", "g = 1")
    ]


def wait_for_replay(primary, standby):
    target = primary.query("select pg_current_wal_lsn()")[0][0]
    t.wait_until(
        "the standby catches up",
        lambda: standby.query("select pg_last_wal_replay_lsn() >= %s::pg_lsn", (target,))[0][0],
    )


def change(primary, step):
    """Changes of every kind; `step` makes each call different."""
    for table in TABLES:
        primary.query(
            f"insert into {table} select i + {step} * 7919, i % 11, i % 101, i % 2 from generate_series(1, 8000) i"
        )
        for i in range(30):
            primary.query(f"insert into {table} values ({i}, {step}, {i}, 0)")
        primary.query(f"delete from {table} where s % 5 = {step % 5}")
        primary.query(f"update {table} set o = o + 1 where p = {step % 11}")
        primary.query(f"vacuum {table}")
    connection = primary.connect()
    cursor = connection.cursor()
    cursor.execute("begin; insert into plain values (-1, -1, -1, -1); rollback")
    cursor.execute(f"begin; delete from plain where p = 4; savepoint a; delete from plain; rollback to a; insert into plain values (-{step}, 2, 3, 4); commit")
    if step % 3 == 2:
        cursor.execute("vacuum full narrow")
        cursor.execute(f"create table made{step} using quad as select * from plain where p < 3")
    connection.close()


def same(report, primary, standby, name):
    for table in TABLES:
        report.check(content(primary, table) == content(standby, table), f"{name}: {table} has the same content")
        report.check(
            answers(primary, table) == answers(standby, table), f"{name}: {table} gives the same answers by every order"
        )
        connection = standby.connect()
        found = t.problems(connection, table)
        connection.close()
        report.check(not found, f"{name}: {table} is verified", "; ".join(found[:5]))


def streaming(report, primary):
    change(primary, 0)
    standby = t.base_backup(primary, "standby")
    change(primary, 1)
    standby.start()
    wait_for_replay(primary, standby)
    same(report, primary, standby, "replica after the backup")
    held = standby.connect(autocommit=False)
    cursor = held.cursor()
    cursor.execute("set transaction isolation level repeatable read")
    cursor.execute("select count(*) from plain")
    before = cursor.fetchone()
    for step in (2, 3, 4):
        change(primary, step)
    # Old rows that the primary has removed: the snapshot still sees them, or the query is cancelled; it is never wrong.
    try:
        cursor.execute("select count(*) from plain")
        report.check(cursor.fetchone() == before, "a snapshot held on the replica stays as it is")
    except t.psycopg2.OperationalError as error:
        report.check(
            "conflict with recovery" in standby.log_tail(1000),
            "a snapshot held on the replica is cancelled by a conflict with recovery",
            str(error),
        )
    held.close()
    wait_for_replay(primary, standby)
    same(report, primary, standby, "replica after more changes")
    report.check(before[0] > 0 and standby.query("select count(*) from made2")[0][0] > 0, "a table made later is there")
    try:
        standby.query("insert into plain values (1, 1, 1, 1)")
        report.check(False, "a replica refuses to write")
    except t.psycopg2.errors.ReadOnlySqlTransaction:
        report.check(True, "a replica refuses to write")
    standby.stop("immediate")
    change(primary, 5)
    standby.start()
    wait_for_replay(primary, standby)
    same(report, primary, standby, "replica after a crash of its own")
    primary.kill()
    t.as_server([t.bin_path("pg_ctl"), "-D", standby.data, "-w", "-t", str(t.PATIENCE), "promote"])
    report.check(not standby.query("select pg_is_in_recovery()")[0][0], "promotion")
    standby.query("insert into plain values (424242, 1, 1, 1)")
    standby.query("delete from narrow where p = 7")
    standby.query("vacuum plain")
    connection = standby.connect()
    found = [p for table in TABLES for p in t.problems(connection, table)]
    connection.close()
    report.check(
        not found and standby.query("select count(*) from plain where s = 424242") == [(1,)],
        "the promoted server writes",
        "; ".join(found[:5]),
    )
    crashes = standby.crashes_in_log()
    report.check(not crashes, "nothing odd in the replica's log", "; ".join(crashes[:5]))
    standby.stop()
    primary.start()
    standby.remove()


def dump_and_restore(report, primary):
    restored = t.Server("restored").init().start()
    with_terms = t.has_function(primary.connect(), "load_text")
    if with_terms:
        primary.query("select quad.create_store('dumped')")
        primary.query("select quad.load_text(%s, 'turtle', store => 'dumped')",
                      ('<http://x/s> <http://x/p> "text", "Wort"@de, 1, 1.5, true, <http://x/o>, _:b, "2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .\n'
                       + "\n".join(f'<http://x/s{i}> <http://x/p> "a longer text, number {i}" .' for i in range(500)),))
    command = (f'"{t.bin_path("pg_dump")}" -h 127.0.0.1 -p {primary.port} -U postgres postgres | '
               f'"{t.bin_path("psql")}" -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p {restored.port} -U postgres postgres')
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    report.check(done.returncode == 0, "pg_dump | psql", done.stderr[-500:])
    if done.returncode == 0:
        same(report, primary, restored, "restored dump")
        info = "select array_agg(order_name order by order_name) from quad.store_info('narrow')"
        report.check(primary.query(info) == restored.query(info), "a restored table has the same orders")
        if with_terms:
            export = "select * from quad.export('dumped') order by 1"
            report.check(
                primary.query(export) == restored.query(export) and len(primary.query(export)) == 508,
                "a restored store exports the same",
            )
            restored.query(
                "select quad.load_text('<http://x/new> <http://x/p> \"new\" .', 'turtle', store => 'dumped')"
            )
            report.check(len(restored.query(export)) == 509, "a restored store takes new terms")
        else:
            report.skip("restored store", "no quad.load_text in this build")
    restored.stop()
    restored.remove()


def prewarm(report, primary):
    primary.stop()
    primary.configure(shared_preload_libraries="pgquad,pg_prewarm")
    primary.start()
    primary.query("create extension if not exists pg_prewarm")
    pages = primary.query("select pg_relation_size('plain') / 8192")[0][0]
    for mode in ("buffer", "read", "prefetch"):
        try:
            report.check(primary.query("select pg_prewarm('plain', %s)", (mode,))[0][0] == pages, f"pg_prewarm, {mode}")
        except t.psycopg2.errors.FeatureNotSupported as error:
            report.skip(f"pg_prewarm, {mode}", str(error).strip())
    primary.query("select autoprewarm_dump_now()")
    primary.stop()
    primary.start()
    until = time.monotonic() + t.PATIENCE
    primary.query("create extension if not exists pg_buffercache")
    cached = (
        "select count(*) from pg_buffercache where relfilenode = pg_relation_filenode('plain') and relforknumber = 0"
    )
    while primary.query(cached)[0][0] < pages and time.monotonic() < until:
        time.sleep(0.2)
    report.check(primary.query(cached)[0][0] == pages, "autoprewarm brings the pages back after a restart")


def main():
    report = t.Report("standby")
    # With consistency checking, whoever replays a record compares the pages with those of the primary.
    primary = t.Server("primary", {"wal_level": "replica", "max_wal_senders": 4, "hot_standby": "on", "autovacuum": "off",
                                   "wal_keep_size": "256MB", "shared_buffers": "64MB", "wal_consistency_checking": "pgquad"}).init().start()
    connection = primary.connect()
    connection.cursor().execute("create extension pgquad")
    t.create_table(connection, "plain")
    t.create_table(connection, "narrow", leaf_quads=32, inner_fanout=8, orders="spog,ospg")
    connection.close()
    for part in (streaming, dump_and_restore, prewarm):
        try:
            part(report, primary)
        except Exception as error:  # pylint: disable=broad-except
            report.check(False, part.__name__.replace("_", " "), f"{type(error).__name__}: {error}")
    primary.stop("immediate")
    if not report.failed:
        primary.remove()
    report.finish()


main()
