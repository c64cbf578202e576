"""Random statements of sqlsmith over what the extension offers. Whatever they ask, no process of the server crashes, no
error is an internal one (SQLSTATE class XX), and the tables are sound afterwards. Usage: smith.py [--queries N] [--seed
N] [--citus] (by `run`).

N statements each by a role without rights, a role that may read and write, and a superuser. With --citus all of it runs
again on a server with Citus, where some tables are distributed.
"""
import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgquad_test as t  # noqa: E402

ROLES = ["smith_nobody", "smith_user", "smith_super"]
# Of one statement, in milliseconds: joins of everything with everything are asked for.
TIMEOUT = 1000
# How often sqlsmith may start: its own look at the catalogue has that time, too, and needs more on a busy machine.
LOADS = 5

SETUP = """
create extension pgquad;
create role smith_nobody login; create role smith_user login; create role smith_super login superuser;
select quad.create_store('smith'), quad.create_store('policy', 'spog');
select quad.load_text($$
    @prefix : <http://x/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    :a :p :b, "text", "text"@en, 1, 1.5, 1e0, true, "2020-01-01"^^xsd:date, "P1Y"^^xsd:duration, "odd"^^:type, _:x, "a long text, which is in no id"@de-AT .
    :b :p :c ; :q "NaN"^^xsd:double, "INF"^^xsd:float, "2020-02-30"^^xsd:date, "2020-01-01T00:00:00.123456789Z"^^xsd:dateTime, "" .
    :c :p :a ; :r :a, :b, :c . $$, 'turtle', store => s) from unnest(array['smith', 'policy']) s;
alter table quad_stores.policy enable row level security;
create policy odd on quad_stores.policy for all to smith_user using (o % 2 = 1) with check (true);
create table quads using quad as select * from quad_stores.smith;
create unlogged table unlogged_quads (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into unlogged_quads select i % 7, i % 3, i, i % 2 from generate_series(1, 500) i;
create table terms as select quad.decode(s) as s, quad.decode(p) as p, quad.decode(o) as o, o as id, o::text as t, o::numeric as n,
    array[s, p, o] as ids, array[quad.decode(s), quad.decode(o)] as list from quad_stores.smith;
create table empty_terms (t quad.term, u quad.term not null);
create materialized view kept as select s, count(*) as n from quad_stores.smith group by s;
select quad.create_view('public.view_of_all', 'SELECT ?s ?p ?o { ?s ?p ?o }', 'smith'),
    quad.create_view('public.view_of_paths', 'SELECT ?s (COUNT(*) AS ?n) (SAMPLE(?o) AS ?any) { ?s <http://x/p>+ ?o } GROUP BY ?s', 'smith'),
    quad.create_view('public.view_of_values', 'SELECT ?s (STRLEN(STR(?o)) AS ?n) (?o > 1 AS ?more) { ?s ?p ?o FILTER(!isBlank(?o)) }', 'smith');
-- sqlsmith samples every other table by TABLESAMPLE, which quad tables refuse; it does not sample views.
create view plain_quads as select * from quads; create view plain_store as select * from quad_stores.smith;
create view plain_policy with (security_invoker = true) as select * from quad_stores.policy; create view plain_unlogged as select * from unlogged_quads;
create view plain_terms as select s, quad.decode(s) as subject, p, o, quad.decode(o) as object, g from quads;
create view groups as select p, count(*) as n, count(distinct o) as d from quads group by p;
create view walk as with recursive w(n) as (select min(s) from quads union select q.o from w join quads q on q.s = w.n) select n from w;
-- sqlsmith knows what is there when it connects, and no session has temporary tables then: views make them.
create function temporary_quads(wanted bigint) returns table (s bigint, p bigint, o bigint, g bigint, n bigint) language plpgsql as $$
begin
    create temporary table if not exists temporary (s bigint not null, p bigint not null, o bigint not null, g bigint not null)
        using quad on commit preserve rows;
    insert into pg_temp.temporary select q.* from quads q where wanted is null or q.p <> wanted;
    begin
        delete from pg_temp.temporary t where t.p = wanted or t.s = t.o;
        perform 1 / count(*) from pg_temp.temporary a join pg_temp.temporary b on b.s = a.o;
    exception when division_by_zero then null;
    end;
    update pg_temp.temporary t set g = t.o where t.s = wanted;
    return query select a.s, a.p, b.o, b.g, count(*) over (partition by a.s) from pg_temp.temporary a left join pg_temp.temporary b on b.s = a.o;
end $$;
create view plain_temporary as select * from temporary_quads((select min(p) from quads));
create view correlated_temporary as select q.s, t.o, t.n from quads q, lateral temporary_quads(q.p) t where q.p > 0;
create view joined as select a.s, b.o, c.g from quads a join quads b on b.s = a.o left join quads c on c.s = b.o and c.p = a.p;
grant usage on schema quad_stores to public;
grant all on all tables in schema public, quad_stores to smith_user;
analyze;
"""

# Citus 13.2 ends the backend where a relation with policies is joined with a distributed one; two heap tables suffice
# for that.
CITUS = """
alter table quad_stores.policy disable row level security;
create table far_quads (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
select create_distributed_table('far_quads', 's', shard_count => 4);
insert into far_quads select * from quads;
create table far_terms (id bigint, t quad.term);
select create_distributed_table('far_terms', 'id', shard_count => 4);
insert into far_terms select id, o from terms;
create table everywhere (id bigint, t quad.term);
select create_reference_table('everywhere');
insert into everywhere select id, o from terms;
create view plain_far as select * from far_quads;
create view mixed as select q.s, f.o from quads q join far_quads f on f.s = q.o;
grant all on far_quads, far_terms, everywhere, mixed, plain_far to smith_user;
"""

# Where internal errors are of our making: our own source, and the parts of PostgreSQL that work with what our nodes and
# tables give them. Others are those of functions of PostgreSQL and Citus that are called with rubbish, and of what
# Citus does not plan.
OURS = re.compile(
    r"\.rs:|, (exec\w*|node[A-Z]\w*|copy\w*|equal\w*|out\w*|read\w*|list|bitmapset|planner|planmain|plancat|plancache|allpaths|join\w+|createplan|setrefs"
    r"|subselect|prep\w+|tlist|var|clauses|equivclass|path\w+|relnode|initsplan|orclauses|placeholder|analyzejoins|costsize|indxpath|tableam|bufmgr"
    r"|localbuf|md|smgr|xlog\w*|tuple\w+|mcxt|aset|relcache|snapmgr|procarray|lock|trigger|rewrite\w+|ruleutils|resowner|fmgr|portal\w*|spi|pquery)\.c:"
)
# But for these, which rubbish makes, too.
KNOWN = re.compile(r"cache lookup failed for|could not open relation with OID|invalid memory alloc|unrecognized")
LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (\S{5}) (\w+):  (.*)")


def statements_of(script):
    """The statements of a script: each ends with a semicolon at the end of a line, but for those within `$$`."""
    statement = ""
    for part in script.split(";\n"):
        statement += part + ";\n"
        if statement.count("$$") % 2 == 0:
            if part.strip():
                yield statement
            statement = ""


class Suite:
    def __init__(self, options):
        self.options = options
        self.report = t.Report("sqlsmith")

    def run(self):
        self.server_with("alone", "pgquad", SETUP)
        if self.options.citus:
            self.server_with("citus", "citus,pgquad", "create extension citus; " + SETUP + CITUS)
        self.report.finish()

    def server_with(self, name, libraries, setup):
        server = t.Server(
            f"sqlsmith-{name}",
            {
                "shared_preload_libraries": libraries,
                "fsync": "off",
                "log_line_prefix": "%m [%p] %e ",
                "log_min_error_statement": "error",
                "log_error_verbosity": "verbose",
                "max_prepared_transactions": 20,
                "wal_level": "logical",
                "work_mem": "1MB",
                "jit": "off",
            },
        )
        server.init().start()
        try:
            connection = server.connect()
            for statement in statements_of(setup):
                connection.cursor().execute(statement)
            connection.close()
            for role in ROLES:
                self.statements(server, name, role)
            self.tables_are_sound(server, name)
        finally:
            server.remove()

    def statements(self, server, name, role):
        read = os.path.getsize(server.log)
        target = f"host=127.0.0.1 port={server.port} dbname=postgres user={role} options='-c search_path=public,quad -c statement_timeout={TIMEOUT} -c lock_timeout=100'"
        command = [
            "sqlsmith",
            f"--target={target}",
            f"--seed={self.options.seed}",
            f"--max-queries={self.options.queries}",
            "--exclude-catalog",
        ]
        for _ in range(LOADS):
            done = subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, timeout=None
            )
            if done.returncode == 0 or "canceling statement due to statement timeout" not in done.stderr[-200:]:
                break
        label = f"{name}: {self.options.queries} statements of {role}"
        with open(server.log, encoding="utf-8", errors="replace") as log:
            log.seek(read)
            lines = log.read().splitlines()
        crashes = [line for line in lines if "was terminated by signal" in line or "PANIC" in line or "TRAP:" in line]
        self.report.check(
            not crashes, f"{label}: no crash", "; ".join(crashes[:2] + self.last_statements(lines, crashes))
        )
        internal = self.internal_errors(lines)
        self.report.check(not internal, f"{label}: no internal error", " | ".join(internal[:3]))
        statements = sum(1 for line in lines if "STATEMENT:  " in line)
        failed = done.returncode != 0 and not crashes
        self.report.check(
            not failed and (statements > 0),
            f"{label}: they were asked ({statements} of them with an error)",
            done.stderr[-500:],
        )

    @staticmethod
    def last_statements(lines, crashes):
        """What the process that crashed was doing: the server says so in a DETAIL."""
        return [line for line in lines if "Failed process was running" in line][: len(crashes)]

    @staticmethod
    def internal_errors(lines):
        """Messages of class XX with their place in the source and the statement, but those that are not ours."""
        found = []
        for number, line in enumerate(lines):
            match = LINE.match(line)
            if not match or not match[2].startswith("XX") or match[3] not in ("ERROR", "FATAL", "PANIC"):
                continue
            parts = {}
            part = None
            for after in lines[number + 1 :]:
                more = LINE.match(after)
                if more and (more[1] != match[1] or more[3] in ("ERROR", "FATAL", "LOG", "WARNING", "NOTICE")):
                    if more[1] == match[1]:
                        break
                    part = None
                elif more:
                    part = more[3]
                    parts[part] = more[4]
                elif part:
                    parts[part] += " " + after.strip()
            place, statement = parts.get("LOCATION", ""), " ".join(parts.get("STATEMENT", "").split())
            if ".rs:" in place or OURS.search(place) and not KNOWN.search(match[4]):
                found.append(f"{match[4]} ({place}) -- {statement[:3000]}")
        return found

    def tables_are_sound(self, server, name):
        connection = server.connect()
        for table in ["quad_stores.smith", "quad_stores.policy", "quads", "unlogged_quads", "quad.term_ids"]:
            found = t.problems(connection, table)
            self.report.check(not found, f"{name}: {table} is sound", "; ".join(found[:3]))
        connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=800)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--citus", action="store_true")
    Suite(parser.parse_args()).run()
