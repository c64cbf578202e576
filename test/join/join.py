"""Random joins of quad tables: the answers with `Quad Join` are those without it, and those of heap tables.

Every case is a random query (patterns, optional groups, EXISTS and NOT EXISTS, filters of all kinds) over random small
tables, run with random batch sizes and memory. One in six is a DELETE or UPDATE of what such a query finds. A failing
case is printed with what repeats it.
"""
import argparse
import collections
import os
import random
import re
import sys

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from pgquad_test import Report, create_cluster_database, nodes

COLUMNS = "spog"
# Terms of all kinds that an id can stand for; of some it tells the value.
TERMS = """1 2 3 -1 07 1.5 2.0 3.00000000 "2"^^xsd:int "3"^^xsd:byte "1.0E0"^^xsd:double "2.5E0"^^xsd:float "NaN"^^xsd:double "1e0"^^xsd:double
"true"^^xsd:boolean "0"^^xsd:boolean "" "a" "b" "a long string" "another long string" "a"@en "b"@en <http://example.org/a>
<http://example.org/b> <http://www.w3.org/2001/XMLSchema#integer> <http://www.w3.org/2001/XMLSchema#string> "2020-01-01"^^xsd:date "2020-01-02"^^xsd:date "2020-01-01T00:00:00Z"^^xsd:dateTime "2020-01-01T01:00:00+01:00"^^xsd:dateTime
"2020-01-01T12:00:00"^^xsd:dateTime "2020-01-03T00:00:00.12345Z"^^xsd:dateTime "P1D"^^xsd:dayTimeDuration "x"^^<http://example.org/t> "x"^^xsd:integer"""
XSD = "http://www.w3.org/2001/XMLSchema#"
ORDERS = ["spog,posg,ospg", "spog,psog", "ospg,posg", "gpos", "spog,sopg,psog,posg,ospg,opsg"]


def ntriples():
    """TERMS in the N-Triples form."""
    for term in re.findall(r'"[^"]*"(?:@\w+|\^\^\S+)?|\S+', TERMS):
        kind = "decimal" if "." in term else "integer"
        term = term if term[0] in '"<' else f'"{term}"^^xsd:{kind}'
        yield re.sub(r"xsd:(\w+)$", rf"<{XSD}\1>", term)


class Maker:
    """Makes the text of one query; `{n}` stands for table number n. The tables hold `values`, which are ids of terms or
    are not."""

    def __init__(self, chance, tables, values, terms):
        self.chance = chance
        self.tables = tables
        self.values = values
        self.terms = terms
        self.aliases = 0
        # The table of each alias.
        self.read = {}

    def value(self, below=8):
        return self.values[self.chance.randrange(below)]

    def term(self, columns, depth=0):
        """An SQL expression of type quad.term."""
        c = self.chance
        kind = c.randrange(9 if depth < 2 else 4)
        if kind < 3:
            return f"quad.decode({c.choice(columns)})"
        if kind == 3:
            return "'{}'::quad.term".format(c.choice(list(ntriples())))
        if kind < 7:
            return f"quad.{c.choice(['add', 'sub', 'mul', 'div'])}({self.term(columns, depth + 1)}, {self.term(columns, depth + 1)})"
        if kind == 7:
            return f"COALESCE({self.term(columns, depth + 1)}, {self.term(columns, depth + 1)})"
        return f"quad.{c.choice(['neg', 'pos', 'fn_lang', 'fn_datatype'])}({self.term(columns, depth + 1)})"

    def test(self, columns, depth=0):
        """A condition on terms."""
        c = self.chance
        operator = c.choice(["eq", "ne", "lt", "le", "gt", "ge"])
        kind = c.randrange(12 if depth < 2 else 8)
        if c.random() < 0.05:
            return f"quad.fn_langmatches(quad.fn_lang({self.term(columns)}), '\"{c.choice(['en', 'EN', '*', ''])}\"'::quad.term)"
        if kind < 2:
            return f"quad.{operator}({c.choice(columns)}, {c.choice(columns)})"
        if kind < 3:
            return f"quad.{operator}({c.choice(columns)}, {self.value()}::bigint)"
        if kind < 6:
            return f"quad.{operator}({self.term(columns)}, {self.term(columns)})"
        if kind == 6 and c.random() < 0.3:
            text = c.choice(['1', 'a', '2020-01-01', 'a long string', 'http://example.org/a', ''])
            return f"quad.{c.choice(['eq', 'ne'])}(quad.fn_str({self.term(columns)}), '\"{text}\"'::quad.term)"
        if kind == 6:
            return f"quad.{c.choice(['ebv', 'fn_isiri', 'fn_isblank', 'fn_isliteral', 'fn_isnumeric'])}({self.term(columns)})"
        if kind == 7:
            return f"{self.term(columns)} IS {c.choice(['', 'NOT '])}NULL"
        if kind < 10:
            return f"({self.test(columns, depth + 1)} {c.choice(['AND', 'OR'])} {self.test(columns, depth + 1)})"
        if kind == 10:
            return f"NOT {self.test(columns, depth + 1)}"
        return f"({self.test(columns, depth + 1)}) IS {c.choice(['', 'NOT '])}{c.choice(['TRUE', 'FALSE', 'NULL'])}"

    def alias(self):
        self.aliases += 1
        return f"a{self.aliases}"

    def column(self, aliases):
        return f"{self.chance.choice(aliases)}.{self.chance.choice('sspoog')}"

    def relation(self, alias):
        self.read[alias] = self.chance.randrange(self.tables)
        return f"{{{self.read[alias]}}} AS {alias}"

    def condition(self, own, outer):
        """A condition that has to do with the aliases `own`."""
        c, everything = self.chance, own + outer
        left, right = self.column(own), self.column(everything)
        if self.terms and c.random() < 0.4:
            return self.test([left, right])
        kind = c.randrange(16)
        if kind < 7:
            return f"{left} = {right}"
        if kind < 10:
            return f"{left.split('.')[0]}.p = {self.value(4)}"
        return [
            f"{left} = {self.value()}",
            f"{left} {c.choice(['<', '<=', '>', '>='])} {self.value()}",
            f"{left} = ANY (ARRAY[{self.value()}, {self.value()}, NULL]::bigint[])",
            f"({left} = {right} OR {left} IS NULL)",
            f"{left} % 8 + {right} % 8 < {c.randrange(14)}",
            f"{left} <> {right}",
        ][kind - 10]

    def first_of_triple(self, alias):
        """Of quads that differ in their graph only, the one in the least graph, or in the least of some graphs."""
        c, other = self.chance, self.alias()
        graphs = c.choice(
            [
                None,
                None,
                f"= ANY (ARRAY[{self.value()}, {self.value()}]::bigint[])",
                f"= {self.value()}",
                f"<> {self.value()}",
                "% 2 = 0",
            ]
        )
        test = f"SELECT FROM {{{self.read[alias]}}} AS {other} WHERE " + " AND ".join(
            f"{other}.{column} = {alias}.{column}" for column in "spo"
        )
        test += f" AND {other}.g < {alias}.g"
        sides = [name for name in (alias, other) if graphs and c.random() < 0.9]
        of_alias = f" AND {alias}.g {graphs}" if alias in sides else ""
        of_other = f" AND {other}.g {graphs}" if other in sides else ""
        return f"NOT EXISTS ({test}{of_other}){of_alias}"

    def conditions(self, own, outer):
        """A connected set of conditions, mostly."""
        conditions = []
        for at, alias in enumerate(own):
            if at > 0 and self.chance.random() < 0.9:
                conditions.append(f"{self.column([alias])} = {self.column(own[:at])}")
            elif outer and self.chance.random() < 0.8:
                conditions.append(f"{self.column([alias])} = {self.column(outer)}")
            if self.chance.random() < 0.5:
                conditions.append(self.condition([alias], own[:at] + outer))
        return " AND ".join(conditions) or "true"

    def group(self, outer, depth, fed=False):
        """FROM items, WHERE text, aliases that can be seen outside, of one group of relations."""
        c = self.chance
        own = [self.alias() for _ in range(c.choice([1, 1, 2, 2, 3, 4]) if depth == 0 else c.choice([1, 1, 2]))]
        text = self.relation(own[0])
        for at, alias in enumerate(own[1:], 1):
            text += f" JOIN {self.relation(alias)} ON {self.conditions([alias], own[:at])}"
        visible = list(own)
        if depth < 2:
            for _ in range(c.choice([0, 0, 1, 1, 2])):
                inner, on, seen = self.group(visible, depth + 1)
                text += f" LEFT JOIN {f'({inner})' if ' JOIN ' in inner else inner} ON {on}"
                visible += seen
        where = self.conditions(own, outer if depth else [])
        if depth == 0:
            for _ in range(c.choice([0, 0, 1, 2])):
                inner, on, _ = self.group(visible, 2)
                where += f" AND {c.choice(['', 'NOT '])}EXISTS (SELECT FROM {inner} WHERE {on})"
            for alias in own:
                if c.random() < 0.15:
                    where += f" AND {self.first_of_triple(alias)}"
            if len(visible) > len(own):
                for _ in range(c.choice([0, 1])):
                    where += f" AND {self.condition(visible, [])}"
            if c.random() < 0.15 and not fed:
                text += f", generate_series(0, {c.randrange(4)}) AS f(x)"
                where += f" AND f.x = {self.column(visible)} % 8"
        return text, where, visible

    def feed(self):
        """A FROM item that is no quad table, with a column x."""
        c = self.chance
        table = f"{{{c.randrange(self.tables)}}}"
        return c.choice([
            f"unnest(ARRAY[{', '.join(str(self.value()) for _ in range(4))}]::bigint[]) AS f(x)",
            f"(VALUES ({self.value()}::bigint), (NULL), ({self.value()}), ({self.value()})) AS f(x)",
            f"(SELECT s FROM {table} AS b ORDER BY s, p, o, g LIMIT {c.randrange(1, 20)}) AS f(x)",
            f"(SELECT o FROM {table} AS b GROUP BY o HAVING count(*) > {c.randrange(3)}) AS f(x)",
            f"(SELECT max(s) FROM {table} AS b) AS f(x)",
        ])

    def fed_query(self):
        """Quad tables joined with something else."""
        c = self.chance
        text, where, visible = self.group([], 0, fed=True)
        where = f"f.x = {self.column(visible)} AND {where}"
        columns = ", ".join(["f.x", *(self.column(visible) for _ in range(c.randrange(1, 4)))])
        kind = c.randrange(5)
        if kind < 2:
            return f"SELECT {columns} FROM {self.feed()}, {text} WHERE {where}"
        if kind < 4:
            return (
                f"SELECT f.x FROM {self.feed()} WHERE {c.choice(['', 'NOT '])}EXISTS (SELECT FROM {text} WHERE {where})"
            )
        inner = f"({text})" if " JOIN " in text else text
        return f"SELECT {columns} FROM {self.feed()} LEFT JOIN {inner} ON {where}"

    def change(self):
        """A DELETE or UPDATE of a quad table, by patterns or by other rows; what it returns, and the table."""
        c = self.chance
        table = c.randrange(self.tables)
        if c.random() < 0.3:
            text, where, visible = self.feed(), "true", ["f.x"]
        else:
            text, where, visible = self.group([], 0)
        keys = [
            f"changed.{c.choice(COLUMNS)} = {c.choice(visible) if visible == ['f.x'] else self.column(visible)}"
            for _ in range(c.randrange(1, 3))
        ]
        if c.random() < 0.3:
            keys.append(f"changed.{c.choice(COLUMNS)} = {self.value()}")
        condition = f"{' AND '.join(keys)} AND {where}"
        kind = c.randrange(4)
        if kind == 0:
            # A set loses what a bag would keep, so that the new row is the old one.
            return (
                f"UPDATE {{{table}}} changed SET g = changed.g FROM {text} WHERE {condition} RETURNING changed.*",
                table,
            )
        if kind == 1 and " JOIN " not in text:
            return f"DELETE FROM {{{table}}} changed WHERE {c.choice(['', 'NOT '])}EXISTS (SELECT FROM {text} WHERE {condition}) RETURNING changed.*", table
        return f"DELETE FROM {{{table}}} changed USING {text} WHERE {condition} RETURNING changed.*", table

    def query(self):
        if self.chance.random() < 0.3:
            return self.fed_query()
        text, where, visible = self.group([], 0)
        columns = ", ".join(self.column(visible) for _ in range(self.chance.randrange(1, 5)))
        counts = f"count(*), count({self.column(visible)})"
        head = self.chance.choice(
            [columns] * 5
            + [f"DISTINCT {columns}", "count(*)", counts, "", f"sum({self.column(visible)} % 8 * 3), count(*)"]
        )
        if not head:
            return f"SELECT {columns}, {counts} FROM {text} WHERE {where} GROUP BY {columns}"
        return f"SELECT {head} FROM {text} WHERE {where}"


COLUMN_LIST = ", ".join(f"{c} bigint NOT NULL" for c in COLUMNS)


class Tables:
    """Where the tables are: on one server, or, on a cluster, the quads in distributed stores and a heap table beside
    them on every node."""

    def __init__(self):
        self.distributed = bool(nodes())
        self.connections = create_cluster_database("pgquad_join") if self.distributed else [psycopg2.connect("")]
        for connection in self.connections:
            connection.autocommit = False
        self.cursors = [connection.cursor() for connection in self.connections]

    def quad(self, n):
        return f"quad_stores.join_quad{n}" if self.distributed else f"join_quad{n}"

    def commit(self):
        for connection in self.connections:
            connection.commit()

    def drop(self, n):
        self.cursors[0].execute(f"DROP TABLE IF EXISTS {self.quad(n)}")
        for cursor in self.cursors:
            cursor.execute(f"DROP TABLE IF EXISTS join_heap{n}")
        if self.distributed:
            self.commit()

    def create(self, n, chance):
        """Empty tables."""
        orders, leaf_quads = chance.choice(ORDERS), chance.choice(["0", "4"])
        cursor = self.cursors[0]
        if self.distributed:
            cursor.execute(
                "SELECT quad.create_store(%s, leaf_quads => %s, distributed => true, shards => 3)",
                (f"join_quad{n}", leaf_quads),
            )
        else:
            cursor.execute(
                "SELECT set_config('quad.orders', %s, true), set_config('quad.leaf_quads', %s, true)",
                (orders, leaf_quads),
            )
            cursor.execute(f"CREATE TABLE {self.quad(n)} ({COLUMN_LIST}) USING quad")
        for cursor in self.cursors:
            cursor.execute(f"CREATE TABLE join_heap{n} ({COLUMN_LIST}) USING heap")
        if self.distributed:
            self.commit()

    def fill(self, n, rows, deleted):
        """Puts rows into both, and takes some out again."""
        for cursor in self.cursors:
            for row in rows:
                cursor.execute(f"INSERT INTO join_heap{n} VALUES (%s, %s, %s, %s)", row)
        cursor = self.cursors[0]
        cursor.execute(f"INSERT INTO {self.quad(n)} SELECT * FROM join_heap{n}")
        cursor.execute(f"DELETE FROM {self.quad(n)} WHERE s = {deleted}")
        for cursor in self.cursors:
            cursor.execute(f"DELETE FROM join_heap{n} WHERE s = {deleted}")


def make_tables(tables, chance):
    """Up to three pairs of a quad and a heap table with the same rows, some of them deleted again; with the values in
    them."""
    terms = chance.random() < 0.5
    values = list(range(8))
    cursor = tables.cursors[0]
    if terms:
        cursor.execute("SELECT quad.encode(t::quad.term) FROM unnest(%s) AS t", (chance.sample(list(ntriples()), 8),))
        values = [row[0] for row in cursor.fetchall()]
    count = chance.choice([1, 1, 2, 3])
    for n in range(count):
        tables.drop(n)
        tables.create(n, chance)
        size = chance.choice([0, 3, 30, 60])
        graphs = [0, values[1]]
        rows = {
            (chance.choice(values), chance.choice(values[:4]), chance.choice(values), chance.choice(graphs))
            for _ in range(size)
        }
        tables.fill(n, rows, values[7])
        # Citus refuses ANALYZE in a transaction that has written.
        tables.commit()
        if chance.random() < 0.5:
            cursor.execute(f"ANALYZE {tables.quad(n)}")
    tables.commit()
    return count, values, terms


def answer(cursor, sql, limit, changed=None):
    """The rows as a bag; of a change the rows that it returns and those that it leaves in table `changed`, which is
    then as before. None: too many."""
    cursor.execute("SAVEPOINT before")
    cursor.execute(sql)
    rows = cursor.fetchmany(limit + 1)
    found = [collections.Counter(rows)]
    if changed:
        cursor.execute(f"SELECT * FROM {changed}")
        found.append(collections.Counter(cursor.fetchall()))
    cursor.execute("ROLLBACK TO before")
    return None if len(rows) > limit else found


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=600)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = options.parse_args()
    report = Report("join")
    places = Tables()
    used = wrong = large = slow = 0
    count, values, terms = 1, list(range(8)), False
    for case in range(options.cases):
        chance = random.Random(f"{options.seed}/{case}")
        if case % 25 == 0:
            tables = random.Random(f"{options.seed}/tables/{case}")
            count, values, terms = make_tables(places, tables)
        # Nodes are asked in turn.
        connection, cursor = (of_all[case % len(places.cursors)] for of_all in (places.connections, places.cursors))
        maker = Maker(chance, count, values, terms)
        sql, changed = maker.change() if chance.random() < 1 / 6 else (maker.query(), None)
        of_heap, of_quad = (None, None) if changed is None else (f"join_heap{changed}", places.quad(changed))
        quad = sql.format(*(places.quad(n) for n in range(3)))
        heap = sql.format(*(f"join_heap{n}" for n in range(3)))
        batch = chance.choice([1, 2, 3, 7, 100, 10000])
        if places.distributed:
            # A message for every row of a cross product of millions takes longer than a case may.
            batch = max(batch, 7)
        memory = chance.choice(["64kB", "4MB"])
        cursor.execute("SET LOCAL statement_timeout = '20s'")
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(f"SET LOCAL quad.join_batch_size = {batch}")
        cursor.execute(f"SET LOCAL work_mem = '{memory}'")
        try:
            try:
                expected = answer(cursor, heap, 20000, of_heap)
            except psycopg2.errors.QueryCanceled:
                connection.rollback()
                expected = None
            if expected is None:
                large += 1
                continue
            # Longer than the heap's answer may take: the machine can be busier now.
            cursor.execute("SET LOCAL statement_timeout = '120s'")
            found = answer(cursor, quad, 20000, of_quad)
            cursor.execute("SET LOCAL statement_timeout = '20s'")
            cursor.execute("EXPLAIN " + quad)
            used += any("Quad Join" in row[0] for row in cursor.fetchall())
            cursor.execute("SET LOCAL quad.enable_quad_join = off")
            try:
                without = answer(cursor, quad, 20000, of_quad)
            except psycopg2.errors.QueryCanceled:
                # PostgreSQL's own joins, by estimates without statistics, may take any time; the heap's answer is there
                # to compare with.
                slow += 1
                without = expected
        except psycopg2.Error as error:
            wrong += 1
            report.check(False, f"case {case}", f"seed {options.seed}: {error}{quad}")
            connection.rollback()
            continue
        connection.rollback()
        if found != expected or without != expected:
            wrong += 1
            which = "with the node" if found != expected else "without the node"
            report.check(False, f"case {case}", f"seed {options.seed}, batch {batch}: answer {which} is wrong: {quad}")
    for n in range(3):
        places.drop(n)
    places.commit()
    report.check(wrong == 0, f"{options.cases} random queries, seed {options.seed}, {large} too large to compare, {slow} too slow without the node")
    report.check(used > options.cases / 2, f"most of them use the node: {used}")
    report.finish()


if __name__ == "__main__":
    main()
