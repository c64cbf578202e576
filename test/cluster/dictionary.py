"""The distributed dictionary: one id for a term on every node, whatever happens. Usage: dictionary.py (by `run`).

The checks build on each other: `self.ids` is what the dictionary must say of every term that was ever seen.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from contextlib import closing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import psycopg2

from nodes import Cluster
from pgquad_test import Report, Server, bin_path, join_all, problems, wait_until

SHARDS = 8
EXTENT = 8192
TABLES = ("terms", "term_ids", "term_extents")
FIND = "select quad.find(quad.term_in(t::cstring)) from unnest(%s::text[]) with ordinality u (t, n) order by n"
ENCODE = "select quad.encode(quad.term_in(t::cstring)) from unnest(%s::text[]) with ordinality u (t, n) order by n"
DECODE = "select quad.decode(i)::text from unnest(%s::bigint[]) with ordinality u (i, n) order by n"


def iri(name):
    return f"<http://example.org/{name}>"


def triples(names):
    """N-Triples with two terms for each name."""
    return "".join(f'{iri(n)} {iri("label")} "the label of {n}"@en .\n' for n in names)


class Mismatch(AssertionError):
    """An answer that is not the expected one."""


def same(what, got, expected):
    if got != expected:
        raise Mismatch(f"{what}: {str(got)[:300]}, expected {str(expected)[:300]}")


class Session:
    """A connection with the questions of this suite."""

    def __init__(self, server, autocommit=True):
        self.connection = server.connect(autocommit=autocommit)

    def rows(self, query, parameters=None):
        with self.connection.cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def column(self, query, parameters=None):
        return [row[0] for row in self.rows(query, parameters)]

    def value(self, query, parameters=None):
        return self.rows(query, parameters)[0][0]

    def encode(self, terms):
        return self.column(ENCODE, (terms,))

    def find(self, terms):
        return self.column(FIND, (terms,))

    def decode(self, ids):
        return self.column(DECODE, (ids,))

    def close(self):
        self.connection.close()


def error_of(action):
    """The error that an action ends with: SQLSTATE and text."""
    try:
        action()
    except psycopg2.Error as error:
        return error.pgcode, str(error)
    raise Mismatch("no error")


def at_once(actions):
    """Runs all actions at the same time; gives their results."""
    results, errors = [None] * len(actions), []
    barrier = threading.Barrier(len(actions))

    def run(number, action):
        try:
            barrier.wait()
            results[number] = action()
        except Exception as error:  # shown below, in the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    join_all(threads, 300)
    if errors:
        raise errors[0]
    return results


class Checks:
    def __init__(self, cluster):
        self.cluster = cluster
        self.random = random.Random(11)
        self.report = Report("cluster-dictionary")
        self.ids = {}
        self.sessions = [Session(server) for server in cluster.servers]
        self.coordinator = self.sessions[0]

    def run(self):
        for check in [
            self.fill_a_local_dictionary,
            self.bad_requests_change_nothing,
            self.distribute_a_filled_dictionary,
            self.local_stores_go_on,
            self.one_id_from_eight_sessions,
            self.blank_nodes_never_repeat,
            self.rolled_back_terms_are_used_again,
            self.failed_load_leaves_ids_that_are_used_again,
            self.loads_on_all_nodes_at_once,
            self.labels_last_as_long_as_their_document,
            self.terms_of_loads_are_packed,
            self.blocks_are_stored_as_they_come,
            self.readers_add_nothing,
            self.terms_of_all_kinds,
            self.every_node_decodes,
            self.sessions_share_what_other_nodes_tell,
            self.sessions_share_what_they_have_read,
            self.sessions_of_queries_look_terms_up,
            self.groups_are_decoded_together,
            self.computed_terms_are_found_together,
            self.terms_of_late_rows_are_decoded_together,
            self.cancelled_look_ups_leave_the_query_whole,
            self.cancelled_queries_leave_the_one_around_whole,
            self.shards_move_while_terms_are_added,
            self.a_split_shard_goes_on,
            self.node_down,
            self.a_dump_is_a_local_dictionary,
            self.messages_are_for_nodes,
        ]:
            started = time.monotonic()
            name = check.__name__
            try:
                check()
                self.numbers_are_sound()
            except Exception as error:  # whatever it is, the other checks still run
                self.report.check(False, name, " ".join(str(error).splitlines()[:3]))
                traceback.print_tb(error.__traceback__, limit=-4, file=sys.stdout)
                if check == self.distribute_a_filled_dictionary:
                    break  # nothing to ask without it
            else:
                self.report.check(True, f"{name} ({time.monotonic() - started:.1f} s)")
        self.cluster.check_crashes(self.report)

    def some_session(self):
        return self.random.choice(self.sessions)

    def learn(self, terms, ids):
        """Notes ids; every term has the one it always had."""
        for term, id_ in zip(terms, ids):
            same(f"id of {term}", id_, self.ids.setdefault(term, id_))

    def some_terms(self):
        """Terms that have ids, few enough to ask for one by one."""
        return self.random.sample(list(self.ids), min(len(self.ids), 3000))

    def everything_is_known(self, session):
        terms = self.some_terms()
        same("find", session.find(terms), [self.ids[term] for term in terms])

    def numbers_are_sound(self):
        """No term has two ids, no number two terms, and every block is in the shard of its extent."""
        if not self.is_distributed():
            return
        same("terms with two ids", self.coordinator.value(
            "select count(*) from (select s, p from quad.term_ids group by s, p having count(*) > 1) d"), 0)
        same("ids of two terms", self.coordinator.value(
            "select count(*) from (select o from quad.term_ids group by o having count(*) > 1) d"), 0)
        same(
            "languages",
            self.coordinator.value(
                "select count(*) - count(distinct id) + count(*) - count(distinct tag) from quad.languages"
            ),
            0,
        )
        same("blocks outside of their extent", self.coordinator.value(
            f"select count(*) from quad.terms where extent <> first_id / {EXTENT} or extent <> (first_id + get_byte(data, 1) - 1) / {EXTENT}"), 0)
        same("blocks beyond what was given out", self.coordinator.value(
            "select count(*) from quad.terms t left join quad.term_extents e on e.extent = t.extent where e.next is null or "
            "t.first_id + get_byte(t.data, 1) > e.next"), 0)

    def is_distributed(self):
        return self.coordinator.value("select count(*) from pg_dist_partition where logicalrelid = 'quad.terms'::regclass") == 1

    def placements(self):
        """(number, shard, node port) of the shards of term_ids."""
        return self.coordinator.rows(
            "select row_number() over (order by shardminvalue::int), shardid, nodeport from pg_dist_shard join pg_dist_placement using (shardid) "
            "join pg_dist_node using (groupid) where logicalrelid = 'quad.term_ids'::regclass and noderole = 'primary' order by 1")

    # -- checks

    def fill_a_local_dictionary(self):
        session = self.coordinator
        port = self.cluster.coordinator.port
        session.rows("select citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', true)", (port,))
        session.rows("select quad.create_store('here')")
        names = [f"filled/{n}" for n in range(12_000)]
        session.rows("select quad.load_text(%s, 'nt', store => 'here')", (triples(names),))
        session.rows("select quad.update('INSERT DATA { _:a <urn:blank> _:b }', store => 'here')")
        terms = [iri(name) for name in names] + ['"eins"@de', '"un deux trois"@fr', '"1"^^<urn:type>']
        self.learn(terms, session.encode(terms))
        self.blanks = set(session.column("select s from quad_stores.here where p = quad.find('<urn:blank>') union "
                                         "select o from quad_stores.here where p = quad.find('<urn:blank>')"))
        same("blank nodes", len(self.blanks), 2)

    def bad_requests_change_nothing(self):
        for shards in (0, -1, 1_000_000):
            code, text = error_of(lambda: self.coordinator.rows("select quad.distribute_dictionary(%s)", (shards,)))
            same(f"{shards} shards", (code, str(shards) in text), ("22023", True))
        worker = self.sessions[1]
        code, _ = error_of(lambda: worker.rows("select quad.distribute_dictionary()"))
        same("on a worker", code is not None, True)
        # A worker that has terms of its own is named, and nothing is done.
        worker.rows("insert into quad.term_ids values (1, 2, 3, 0)")
        code, text = error_of(lambda: self.coordinator.rows("select quad.distribute_dictionary()"))
        same("a worker's own terms", (code, str(self.cluster.workers[0].port) in text), ("55000", True))
        same("distributed", self.is_distributed(), False)
        worker.rows("delete from quad.term_ids")
        # Rights
        self.coordinator.rows("create role nobody login")
        code, _ = error_of(lambda: self.coordinator.rows("set role nobody; select quad.distribute_dictionary()"))
        same("a role without rights", code, "42501")
        self.coordinator.rows("reset role")
        self.everything_is_known(self.coordinator)

    def distribute_a_filled_dictionary(self):
        session = Session(self.cluster.coordinator, autocommit=False)
        session.rows("select quad.distribute_dictionary(%s)", (SHARDS,))
        # Until it is committed other sessions do not see the shards, and so cannot add to them for this one.
        code, _ = error_of(lambda: session.encode([iri("too_early")]))
        same("before the commit", code, "55000")
        session.connection.rollback()
        session.close()
        same("rolled back", self.is_distributed(), False)
        self.everything_is_known(self.coordinator)
        self.coordinator.rows("select quad.distribute_dictionary(%s)", (SHARDS,))
        same("shards", len(self.placements()), SHARDS)
        same("nodes with shards", len({port for *_, port in self.placements()}), 3)
        # A second time does nothing.
        self.coordinator.rows("select quad.distribute_dictionary(%s)", (SHARDS + 1,))
        same("shards", len(self.placements()), SHARDS)
        for session in self.sessions:
            self.everything_is_known(session)
        for table in TABLES:
            # The relation itself is empty: its rows are in the shards.
            size = self.coordinator.value("select pg_relation_size(%s)", (f"quad.{table}",))
            same(f"pages of {table} that stayed behind", size <= 2 * 8192, True)

    def local_stores_go_on(self):
        query = "select count(*) from quad.sparql('SELECT ?s ?l { ?s <http://example.org/label> ?l }', store => 'here')"
        same("solutions", self.coordinator.value(query), 12_000)
        self.coordinator.rows("select quad.update('INSERT DATA { <urn:new> <http://example.org/label> \"a new label\" }', store => 'here')")
        same("solutions", self.coordinator.value(query), 12_001)
        # A worker has stores of its own, with the same dictionary.
        worker = self.sessions[2]
        worker.rows("select quad.create_store('there')")
        worker.rows("select quad.load_text(%s, 'nt', store => 'there')", (triples(f"filled/{n}" for n in range(6000)),))
        same("solutions", worker.value(query.replace("'here'", "'there'")), 6000)
        same("ids", worker.column("select distinct p from quad_stores.there"), self.coordinator.find([iri("label")]))

    def one_id_from_eight_sessions(self):
        for kind in ("one by one", "in one statement", "by load"):
            terms = [iri(f"shared {kind}/{n}".replace(" ", "_")) for n in range(400 if kind != "by load" else 6000)]
            terms += [f'"{kind} {n}"@x-{kind.replace(" ", "")[:6]}{n % 3}' for n in range(30)]

            def encode(number):
                session = Session(self.cluster.servers[number % 3])
                mine = terms[:]
                random.Random(number).shuffle(mine)
                if kind == "one by one":
                    ids = [session.encode([term])[0] for term in mine]
                elif kind == "in one statement":
                    ids = session.encode(mine)
                else:
                    text = "".join(f"<urn:s> <urn:p> {term} .\n" for term in mine)
                    session.rows(f"select quad.create_store('shared{number}')")
                    session.rows("select quad.load_text(%s, 'nt', store => %s)", (text, f"shared{number}"))
                    ids = session.find(mine)
                    stored = session.column(f"select o from quad_stores.shared{number}")
                    same("ids in the store", sorted(stored), sorted(ids))
                session.close()
                return dict(zip(mine, ids))

            answers = at_once([lambda n=n: encode(n) for n in range(8)])
            for answer in answers:
                self.learn(answer.keys(), answer.values())
        tags = self.coordinator.rows(
            "select tag, count(*), count(distinct id) from quad.languages where tag like 'x-%' group by tag"
        )
        same("languages", len(tags), 9)
        same("languages with two numbers", [tag for tag in tags if tag[1:] != (1, 1)], [])

    def blank_nodes_never_repeat(self):
        def blanks(number):
            session = Session(self.cluster.servers[number % 3])
            ids = session.column("select quad.encode('_:x') from generate_series(1, 700)")
            session.rows("select quad.create_store(%s)", (f"blanks{number}",))
            text = "".join(f"_:b{n} <urn:p> _:b{n} .\n" for n in range(5000))
            session.rows("select quad.load_text(%s, 'nt', store => %s)", (text, f"blanks{number}"))
            ids += session.column(f"select s from quad_stores.blanks{number}")
            session.close()
            return ids

        for ids in at_once([lambda n=n: blanks(n) for n in range(6)]):
            same("blank nodes", len(ids), 5700)
            self.blanks.update(ids)
        same("blank nodes in all", len(self.blanks), 2 + 6 * 5700)
        # Numbers of blank nodes are those of no term.
        numbers = {id_ & ((1 << 59) - 1) for id_ in self.blanks}
        used = {
            id_ & ((1 << (47 if id_ >> 59 == 3 else 59)) - 1) for id_ in self.ids.values() if id_ >> 59 in (0, 2, 3, 4)
        }
        same("numbers used twice", numbers & used, set())

    def rolled_back_terms_are_used_again(self):
        terms = [iri(f"rolled back/{n}".replace(" ", "_")) for n in range(300)] + ['"dropped"@x-dropped']
        session = Session(self.cluster.workers[0], autocommit=False)
        ids = session.encode(terms)
        session.connection.rollback()
        session.close()
        self.learn(terms, ids)
        for session in self.sessions:
            self.learn(terms, session.find(terms))
            self.learn(terms, session.encode(terms))

    def failed_load_leaves_ids_that_are_used_again(self):
        names = [f"failed/{n}" for n in range(30_000)]
        session = self.sessions[1]
        session.rows("select quad.create_store('failed')")
        session.rows("set maintenance_work_mem = '4MB'")
        rows = self.coordinator.value("select count(*) from quad.term_ids")
        code, text = error_of(
            lambda: session.rows("select quad.load_text(%s, 'nt', store => 'failed')", (triples(names) + "nonsense\n",))
        )
        same("error", (code is not None, "30001" in text), (True, True))
        same("quads", session.value("select count(*) from quad_stores.failed"), 0)
        terms = [iri(name) for name in names[::20]]
        found = {term: id_ for term, id_ in zip(terms, self.sessions[2].find(terms)) if id_}
        same("terms are there", len(found) > 0, True)
        self.learn(found.keys(), found.values())
        added = self.coordinator.value("select count(*) from quad.term_ids") - rows
        same("quads", session.value("select quad.load_text(%s, 'nt', store => 'failed')", (triples(names),)), 30_000)
        self.learn(terms, session.find(terms))
        grown = self.coordinator.value("select count(*) from quad.term_ids") - rows
        same("terms in all, none of them twice", (grown, added > 0), (2 * len(names), True))

    def blocks_are_stored_as_they_come(self):
        """All terms of the blocks of a first load are new, through the ends of several extents. Of the second load
        every other term of half of the blocks is known, and every seventh comes twice."""
        session = self.sessions[2]
        session.rows("select quad.create_store('blocks')")
        rows = self.coordinator.value("select count(*) from quad.term_ids")
        first = [f"block/{n}" for n in range(0, 200_000, 2)]
        second = [f"block/{n}" for n in range(100_000, 300_000)]
        for names in (first, second + second[::7]):
            session.rows("select quad.load_text(%s, 'nt', store => 'blocks')", (triples(names),))
        grown = self.coordinator.value("select count(*) from quad.term_ids") - rows
        all_names = sorted({*first, *second})
        same("terms in all, none of them twice", grown, 2 * len(all_names))
        same("quads", session.value("select count(*) from quad_stores.blocks"), len(all_names))
        stored = session.column("select quad.export('blocks')")
        same("quads", sorted(stored), sorted(line[:-1] for line in triples(all_names).splitlines(True)))
        terms = [iri(name) for name in all_names[::100]]
        self.learn(terms, session.find(terms))
        shards = "select count(*) from quad.term_extents"
        same("extents", self.coordinator.value(shards) > SHARDS, True)

    def loads_on_all_nodes_at_once(self):
        def load(number):
            session = Session(self.cluster.servers[number])
            session.rows("set maintenance_work_mem = '4MB'")
            session.rows("select quad.create_store(%s)", (f"load{number}",))
            names = [f"load/{n}" for n in range(number * 10_000, number * 10_000 + 25_000)]
            same(
                "quads",
                session.value("select quad.load_text(%s, 'nt', store => %s)", (triples(names), f"load{number}")),
                25_000,
            )
            stored = session.column(f"select quad.export('load{number}')")
            same("quads", sorted(stored), sorted(line[:-1] for line in triples(names).splitlines(True)))
            session.close()

        at_once([lambda n=n: load(n) for n in range(3)])

    def labels_last_as_long_as_their_document(self):
        """A load with little memory forgets terms, but no labels: nobody else knows their ids."""
        session = Session(self.cluster.servers[1])
        session.rows("select quad.create_store('labels')")
        session.rows("set maintenance_work_mem = '1MB'")
        line = "_:label{} <http://example.org/near> {} .\n"
        ends = "".join(line.format(n, iri(f"end/{n}")) for n in range(10))
        text = ends + triples([f"label/{n}" for n in range(40_000)]) + ends.replace("near", "far")
        same("quads", session.value("select quad.load_text(%s, 'nt', store => 'labels')", (text,)), 40_020)
        both = "select count(*) from quad_stores.labels a join quad_stores.labels b on a.s = b.s and a.p <> b.p"
        same("labels with both ends", session.value(both), 20)
        session.close()

    def terms_of_loads_are_packed(self):
        """A load's own snapshot does not keep its terms from being frozen, any other one does. Then it does not see
        them."""
        server, session = self.cluster.servers[1], self.sessions[1]
        shards = [f"quad.term_ids_{shard}" for _, shard, port in self.placements() if port == server.port]
        same("shards here", len(shards) > 0, True)
        session.rows("select quad.create_store('packed')")
        session.rows("set maintenance_work_mem = '1MB'")

        def load(first):
            """The share of the new terms that are entries of their own transaction in the leaves here."""
            for shard in shards:
                session.rows(f"vacuum {shard}")
            names = [f"packed/{n}" for n in range(first, first + 300_000)]
            text = triples(names)
            same("quads", session.value("select quad.load_text(%s, 'nt', store => 'packed')", (text,)), 300_000)
            entries = [session.value("select delta_entries from quad.store_info(%s)", (shard,)) for shard in shards]
            return sum(entries) / (2 * len(names) * len(shards) / SHARDS)

        same("few entries", load(0) < 0.3, True)
        reader = Session(server, autocommit=False)
        reader.rows("set transaction isolation level repeatable read")
        rows = [reader.value(f"select count(*) from {shard}") for shard in shards]
        same("most entries", load(300_000) > 0.6, True)
        same("rows of an old snapshot", [reader.value(f"select count(*) from {shard}") for shard in shards], rows)
        reader.connection.rollback()
        # A session that has an older snapshot than that of its load is no exception.
        reader.rows("set transaction isolation level repeatable read")
        rows = [reader.value(f"select count(*) from {shard}") for shard in shards]
        names = [f"packed/{n}" for n in range(600_000, 630_000)]
        reader.rows("set local maintenance_work_mem = '1MB'")
        reader.rows("select quad.load_text(%s, 'nt', store => 'packed')", (triples(names),))
        same("rows of its own snapshot", [reader.value(f"select count(*) from {shard}") for shard in shards], rows)
        reader.close()

    def readers_add_nothing(self):
        for server in self.cluster.servers:
            session = Session(server, autocommit=False)
            session.rows("set transaction read only")
            terms = self.random.sample(list(self.ids), 50)
            self.learn(terms, session.encode(terms))
            code, _ = error_of(lambda: session.encode([iri("not_for_readers")]))
            same("a new term", code, "25006")
            session.connection.rollback()
            same("a new term", session.find([iri("not_for_readers")]), [None])
            session.close()

    def terms_of_all_kinds(self):
        terms = [
            iri("kinds"),
            '"a long enough string"',
            '"hat"@en-gb',
            '"12345678901234567890123"^^<http://www.w3.org/2001/XMLSchema#integer>',
            '"x"^^<urn:type>',
            '"' + "long " * 50_000 + '"',
        ]
        for number, session in enumerate(self.sessions):
            mine = [term.replace(">", f"{number}>", 1).replace('"', f'"{number}', 1) for term in terms]
            self.learn(mine, session.encode(mine))
            for other in self.sessions:
                self.learn(mine, other.find(mine))
                same(
                    "decoded",
                    [
                        other.value(
                            "select quad.decode(%s)::text = quad.term_in(%s::cstring)::text", (self.ids[term], term)
                        )
                        for term in mine
                    ],
                    [True] * 6,
                )
        code, _ = error_of(lambda: self.some_session().encode(['"' + "x" * 1_048_576 + '"']))
        same("too long", code, "54000")

    def every_node_decodes(self):
        for server in self.cluster.servers:
            session = Session(server)
            terms = self.some_terms()
            mismatches = session.value(
                "select count(*) from unnest(%s::text[], %s::bigint[]) u (t, i) where quad.decode(i)::text is distinct from quad.term_in(t::cstring)::text",
                (terms, [self.ids[term] for term in terms]))
            same("terms decoded otherwise", mismatches, 0)
            code, text = error_of(lambda: session.decode([(1 << 46) + 5]))
            same("an unknown id", (code, "is not in the dictionary" in text), ("22023", True))
            session.close()

    def sessions_share_what_other_nodes_tell(self):
        """What one session has asked other nodes for, the next one of its server does not ask for."""
        server = self.cluster.workers[0]
        sent = ("select sum(messages_sent) from quad.cluster_stats where kind = 'dictionary' "
                f"and address like '%:{server.port}'")  # fmt: skip
        terms = [iri(f"shared/{n}") for n in range(60)]
        ids = dict(zip(terms, self.coordinator.encode(terms)))
        self.ids.update(ids)

        def messages(action):
            session = Session(server)
            before = self.coordinator.value(sent)
            action(session)
            after = self.coordinator.value(sent)
            session.close()
            return after - before

        def decodes(session):
            same("decoded", session.decode([ids[term] for term in terms]), [term[1:-1] for term in terms])

        def finds(session):
            same("found", session.find(terms), [ids[term] for term in terms])

        for what, action in ("decode", decodes), ("find", finds):
            same(f"{what}: the first session asks", messages(action) > 0, True)
            same(f"{what}: messages of the second", messages(action), 0)

    def sessions_share_what_they_have_read(self):
        """Terms of shards of this node, too: the second session reads fewer blocks. (A term that comes to the
        place of another one in the cache takes it.)"""
        terms = [iri(f"read/{n}") for n in range(60)]
        text = "".join(f"<{iri('s')[1:-1]}> <{iri('p')[1:-1]}> {term} .\n" for term in terms)
        self.coordinator.rows("select quad.create_store('read')")
        self.coordinator.rows("select quad.load_text(%s, 'nt', store => 'read')", (text,))
        self.learn(terms, self.coordinator.encode(terms))

        def blocks():
            session = Session(self.cluster.coordinator)
            query = f"select ?o {{ {iri('s')} {iri('p')} ?o }}"
            answer = json.loads(session.value("select quad.sparql_json(%s, store => 'read')", (query,)))
            found = sorted(f"<{row['o']['value']}>" for row in answer["results"]["bindings"])
            same("the terms", found, sorted(terms))
            count = session.value("select blocks from quad.dictionary_stats()")
            session.close()
            return count

        first, second = blocks(), blocks()
        same(f"blocks that two sessions read, {first} and {second}", first > second, True)
        self.coordinator.rows("select quad.drop_store('read')")

    def store_of_new_terms(self, store, count, distributed):
        """A store of one subject, with terms that no session has looked up: its answer to all of them."""
        terms = [iri(f"{store}/{distributed}/{n}") for n in range(count)]
        self.coordinator.rows("select quad.create_store(%s, distributed => %s)", (store, distributed))
        text = "".join(f"{iri(store)} {iri('p')} {term} .\n" for term in terms)
        self.coordinator.rows("select quad.load_text(%s, 'nt', store => %s)", (text, store))
        return terms

    def sessions_of_queries_look_terms_up(self):
        """A query and its terms take one session of each node. It is idle afterwards."""
        for distributed in (True, False):
            terms = self.store_of_new_terms("looked_up", 300, distributed)
            began = [server.query("select clock_timestamp()")[0][0] for server in self.cluster.workers]
            session = Session(self.cluster.coordinator)
            query = f"select ?o {{ {iri('looked_up')} {iri('p')} ?o }}"
            answer = json.loads(session.value("select quad.sparql_json(%s, store => 'looked_up')", (query,)))
            found = sorted(f"<{row['o']['value']}>" for row in answer["results"]["bindings"])
            same("the terms", found, sorted(terms))
            for server, since in zip(self.cluster.workers, began):
                mine = ("select left(query, 23) from pg_stat_activity where application_name = 'pgquad' "
                        "and backend_start > %s")  # fmt: skip
                same("sessions", server.query(mine, (since,)), [("CALL quad.cluster_serve",)])
                held = f"select count(*) from pg_locks where pid in ({mine.replace('left(query, 23)', 'pid')})"
                wait_until("locks are released", lambda ask=(held, (since,)), of=server: of.query(*ask) == [(0,)])
            session.close()
            self.coordinator.rows("select quad.drop_store('looked_up')")

    def groups_are_decoded_together(self):
        """The terms of groups come in few messages, also where rows are compared by them."""
        count = 400
        sent = ("select sum(messages_sent) from quad.cluster_stats where kind = 'dictionary' "
                f"and address like '%:{self.cluster.coordinator.port}'")  # fmt: skip
        for node, query in (
            ("Quad Groups", "select ?o (count(*) as ?n) { ?s ?p ?o } group by ?o order by ?o limit 5"),
            ("Quad Count", "select distinct ?o { ?s ?p ?o . ?s ?p ?x } order by ?o limit 5"),
        ):
            store = node.replace(" ", "_").lower()
            terms = self.store_of_new_terms(store, count, True)
            session = Session(self.cluster.coordinator)
            plan = " ".join(line for (line,) in session.rows("select quad.explain(%s, %s)", (query, store)))
            same(f"the plan has {node} ({plan})", node in plan, True)
            before = self.coordinator.value(sent)
            rows = session.rows("select * from quad.sparql(%s, store => %s)", (query, store))
            messages = self.coordinator.value(sent) - before
            same("groups", [row[0]["o"].strip("<>") for row in rows], sorted(term[1:-1] for term in terms)[:5])
            same(f"few messages for {count} terms ({node}: {messages})", messages <= count // 20, True)
            session.close()
            self.coordinator.rows("select quad.drop_store(%s)", (store,))

    def computed_terms_are_found_together(self):
        """Terms that a scan or a filter computes are looked up in few messages. That some are absent holds for their
        statement."""
        count, store = 400, "computed"
        terms = [iri(f"{store}/{n}") for n in range(count)]
        self.coordinator.rows("select quad.create_store(%s, distributed => true)", (store,))
        text = "".join(f"{term} {iri('p')} {iri('q')} .\n{iri('x')} {iri('hub')} {term} .\n" for term in terms)
        self.coordinator.rows("select quad.load_text(%s, 'nt', store => %s)", (text, store))
        session, other = Session(self.cluster.coordinator, autocommit=False), self.some_session()
        computed = 'bind(iri(concat(str(?a), "0")) as ?b)'
        in_a_scan = f'select (count(*) as ?n) {{ ?a {iri("p")} ?x {computed} ?b {iri("p")} ?y }}'
        in_a_filter = f'select (count(*) as ?n) {{ ?x {iri("hub")} ?a {computed} ?x {iri("hub")} ?b }}'
        tens = sum(f"{term[:-1]}0>" in terms for term in terms)
        sent = ("select sum(messages_sent) from quad.cluster_stats where kind = 'dictionary' "
                f"and address like '%:{self.cluster.coordinator.port}'")  # fmt: skip
        for query in [in_a_scan, in_a_filter]:
            plan = " ".join(line for (line,) in session.rows("select quad.explain(%s, %s)", (query, store)))
            same(f"the plan looks terms up ({plan})", "quad.find(quad.fn_iri" in plan, True)
            before = self.coordinator.value(sent)
            answer = json.loads(session.value("select quad.sparql_json(%s, store => %s)", (query, store)))
            messages = self.coordinator.value(sent) - before
            same("terms that are there", int(answer["results"]["bindings"][0]["n"]["value"]), tens)
            same(f"few messages for {count} terms ({messages})", messages <= count // 10, True)
        found_in_sql = "quad.find(quad.fn_iri(quad.fn_concat(variadic array[quad.id_str(s), quad.term_in('\"x\"')]), ''))"
        session.rows(f"declare c cursor for select quad.decode(s)::text, {found_in_sql} from quad_stores.{store}")
        ((term, absent),) = session.rows("fetch 1 from c")
        same("no such term", absent, None)
        added = f"<{term}x>"
        found = other.encode([added])
        self.learn([added], found)
        same("found beside the cursor", session.find([added]), found)
        same("the cursor goes on", len(session.rows("fetch all from c")), 2 * count - 1)
        session.rows("rollback")
        session.close()
        self.coordinator.rows("select quad.drop_store(%s)", (store,))

    def terms_of_late_rows_are_decoded_together(self):
        """Terms come in few messages also where the first rows of a scan or a join need none."""
        early, late, store = 40_000, 400, "late"
        self.coordinator.rows("select quad.create_store(%s, distributed => true)", (store,))
        labels = "".join(f'{iri("s")} {iri("p")} "{n}"@en .\n' for n in range(early))
        units = "".join(f'{iri("s")} {iri("p")} "{n}"^^{iri("unit")} .\n' for n in range(late))
        text = f"{labels}{units}{iri('s')} {iri('q')} {iri('s')} ."
        self.coordinator.rows("select quad.load_text(%s, 'turtle', store => %s)", (text, store))
        sent = ("select sum(messages_sent) from quad.cluster_stats where kind = 'dictionary' "
                f"and address like '%:{self.cluster.coordinator.port}'")  # fmt: skip
        for node, pattern in (
            ("Quad Scan", f"?s {iri('p')} ?o"),
            ("Quad Join", f"?x {iri('q')} ?s . ?s {iri('p')} ?o"),
        ):
            query = f"select (count(distinct datatype(?o)) as ?n) {{ {pattern} }}"
            session = Session(self.cluster.coordinator)
            # Autovacuum may have told the planner of the quads meanwhile.
            session.rows(f"set quad.enable_quad_join = {'on' if node == 'Quad Join' else 'off'}")
            plan = " ".join(line for (line,) in session.rows("select quad.explain(%s, %s)", (query, store)))
            same(f"the plan has {node} ({plan})", node in plan, True)
            before = self.coordinator.value(sent)
            answer = json.loads(session.value("select quad.sparql_json(%s, store => %s)", (query, store)))
            messages = self.coordinator.value(sent) - before
            same("datatypes", answer["results"]["bindings"][0]["n"]["value"], "2")
            same(f"few messages for {late} terms ({node}: {messages})", messages <= late // 10, True)
            session.close()
        self.coordinator.rows("select quad.drop_store(%s)", (store,))

    def cancelled_once(self, session, query, worker, shards):
        """The rows of a query of a session. It is cancelled when it waits for shards of a worker, which are locked."""
        names = worker.query("select oid::regclass::text from pg_class where relname ~ %s", (shards,))
        waiting = ("select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity "
                   "where query like 'CALL quad.cluster_serve%')")  # fmt: skip
        pid, found = session.value("select pg_backend_pid()"), []
        with closing(worker.connect()) as locking, locking.cursor() as cursor:
            cursor.execute("set citus.enable_manual_changes_to_shards = on; begin")
            cursor.execute(f"lock table {', '.join(name for (name,) in names)} in access exclusive mode")
            asking = threading.Thread(target=lambda: found.extend(session.rows(query)), daemon=True)
            asking.start()
            wait_until("the node waits", lambda: worker.query(waiting)[0][0] > 0)
            self.coordinator.rows("select pg_cancel_backend(%s)", (pid,))
            time.sleep(0.5)
            cursor.execute("rollback")
        join_all([asking], 60)
        return found

    def cancelled_look_ups_leave_the_query_whole(self):
        """A function of a query catches the cancellation of a look-up. Its answer, when it comes, is for nobody."""
        terms = self.store_of_new_terms("caught", 40, True)
        self.coordinator.rows(
            "create function slow_term(id bigint) returns text language plpgsql as $$ begin "
            "return quad.decode(id)::text; exception when query_canceled then return 'cancelled'; end $$"
        )
        session = Session(self.cluster.coordinator)
        # Row by row, with quads of the node read before and after.
        query = (
            "select slow_term(a.o), quad.decode(b.o)::text from quad_stores.caught a, lateral (select * from "
            "quad_stores.caught c where c.s = a.s and c.p = a.p and c.o = a.o offset 0) b"
        )
        found = self.cancelled_once(session, query, self.cluster.workers[0], "^terms_[0-9]+$")
        same("rows", len(found), len(terms))
        same("terms of the other column", sorted(f"<{other}>" for _, other in found), sorted(terms))
        cancelled = [row for row in found if row[0] == "cancelled"]
        same(f"look-ups that were cancelled ({len(cancelled)})", 0 < len(cancelled) < len(terms), True)
        same("the others", [row for row in found if row[0] not in (row[1], "cancelled")], [])
        session.rows("drop function slow_term(bigint)")
        session.close()
        self.coordinator.rows("select quad.drop_store('caught')")

    def cancelled_queries_leave_the_one_around_whole(self):
        """A STABLE function reads with the snapshot of the query that calls it, and so through the same sessions. It
        catches the cancellation of its query, whose answers come later and are for nobody."""
        for store in ("around", "inside"):
            self.coordinator.rows("select quad.create_store(%s, distributed => true)", (store,))
            self.coordinator.rows(f"insert into quad_stores.{store} select s, p, 100 * s + p, 0 "
                                  "from generate_series(1, 60) s, generate_series(1, 3) p")  # fmt: skip
        self.coordinator.rows(
            "create function sum_inside(n bigint) returns numeric stable language plpgsql as $$ begin "
            "return (select sum(o) from quad_stores.inside where s >= n); "
            "exception when query_canceled then return -1; end $$"
        )
        session = Session(self.cluster.coordinator)
        query = (
            "select a.s, sum_inside(a.s), b.o from quad_stores.around a, lateral (select c.o from quad_stores.around c "
            "where c.s = a.s and c.p = 2 offset 0) b where a.p = 1"
        )
        expected = dict((row[0], row[1:]) for row in session.rows(query))
        same("rows", len(expected), 60)
        for worker in self.cluster.workers:
            found = self.cancelled_once(session, query, worker, "^inside_[so]_[0-9]+$")
            cancelled = [row for row in found if row[1] == -1]
            same(f"queries that were cancelled ({len(cancelled)})", 0 < len(cancelled) < len(expected), True)
            others = {row[0]: row[1:] for row in found if row[1] != -1}
            wrong = [s for s, row in others.items() if row != expected[s]]
            wrong += [row for row in cancelled if row[2] != expected[row[0]][1]]
            same("rows", (len(others) + len(cancelled), wrong), (len(expected), []))
        session.rows("drop function sum_inside(bigint)")
        session.close()
        for store in ("around", "inside"):
            self.coordinator.rows("select quad.drop_store(%s)", (store,))

    def shards_move_while_terms_are_added(self):
        stop = threading.Event()
        made = [[] for _ in range(6)]

        def add(number):
            session = Session(self.cluster.servers[number % 3])
            turn = 0
            while not stop.is_set():
                # Half of the terms are those that others add too.
                terms = [iri(f"moved/{turn}/{n}") for n in range(5)] + [iri(f"moved/{number}/{turn}/{n}") for n in range(5)]
                made[number].append((terms, session.encode(terms)))
                known = self.random_terms(number * 1000 + turn)
                same("found while shards move", session.find(known), [self.ids[term] for term in known])
                turn += 1
            session.close()
            return turn

        def move():
            try:
                session = Session(self.cluster.coordinator)
                ports = [server.port for server in self.cluster.servers]
                for _, shard, port in self.placements():
                    target = ports[(ports.index(port) + 1) % 3]
                    session.rows(
                        "select citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'block_writes')",
                        (shard, port, target),
                    )
                session.rows("call citus_cleanup_orphaned_resources()")
                session.close()
                wait_until("every session has added terms", lambda: all(made))
            finally:
                stop.set()

        self.terms_before = list(self.ids)
        turns = at_once([lambda n=n: add(n) for n in range(6)] + [move])
        same("turns", min(turns[:6]) > 0, True)
        for batches in made:
            for terms, ids in batches:
                self.learn(terms, ids)
        for session in self.sessions:
            self.everything_is_known(session)
        self.every_node_decodes()

    def random_terms(self, seed):
        return random.Random(seed).sample(self.terms_before, 20)

    def a_split_shard_goes_on(self):
        _, shard, port = self.placements()[3]
        low, high = self.coordinator.rows(
            "select shardminvalue::int, shardmaxvalue::int from pg_dist_shard where shardid = %s", (shard,)
        )[0]
        nodes = [
            self.coordinator.value("select nodeid from pg_dist_node where nodeport = %s", (server.port,))
            for server in self.cluster.servers[:2]
        ]
        self.coordinator.rows(
            "select citus_split_shard_by_split_points(%s, %s, %s, 'block_writes')",
            (shard, [str((low + high) // 2)], nodes),
        )
        same("shards", len(self.placements()), SHARDS + 1)
        for number, session in enumerate(self.sessions):
            self.everything_is_known(session)
            terms = [iri(f"split/{number}/{n}") for n in range(200)]
            self.learn(terms, session.encode(terms))
        self.every_node_decodes()

    def node_down(self):
        worker = self.cluster.workers[1]
        asker = Session(self.cluster.workers[0])
        everything = [iri(f"down/{n}") for n in range(60)]
        worker.stop("immediate")
        try:
            started = time.monotonic()
            code, text = error_of(lambda: asker.encode(everything))
            same("error", (code[:2], f"127.0.0.1:{worker.port}" in text), ("08", True))
            same("at once", time.monotonic() - started < 60, True)
            # A session that had no connection yet gets the same answer.
            code, text = error_of(lambda: Session(self.cluster.coordinator).encode(everything))
            same("error", (code[:2], f"127.0.0.1:{worker.port}" in text), ("08", True))
        finally:
            worker.start()
        self.sessions[2] = Session(worker)
        for session in (asker, *self.sessions):
            self.learn(everything, session.encode(everything))
        self.every_node_decodes()

    def a_dump_is_a_local_dictionary(self):
        alone = Server("cluster-dictionary-alone")
        try:
            alone.init().start()
            dump = subprocess.run([bin_path("pg_dump"), "-h", "127.0.0.1", "-p", str(self.cluster.coordinator.port), "-U", "postgres",
                                   "-e", "pgquad", "-n", "quad", "-n", "quad_stores", "postgres"],
                                  env={**os.environ, "PGOPTIONS": "-c citus.override_table_visibility=on"},
                                  stdout=subprocess.PIPE, check=True).stdout
            psql = [bin_path("psql"), "-X", "-q", "-h", "127.0.0.1", "-p", str(alone.port), "-U", "postgres", "-d", "postgres"]
            restored = subprocess.run(
                [*psql, "-v", "ON_ERROR_STOP=1"],
                input=dump,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            same("errors of the restore", restored.stdout.decode()[-500:] if restored.returncode else "", "")
            session = Session(alone)
            self.everything_is_known(session)
            same("decoded", session.value(
                "select count(*) from unnest(%s::text[], %s::bigint[]) u (t, i) where quad.decode(i)::text is distinct from quad.term_in(t::cstring)::text",
                (list(self.ids), list(self.ids.values()))), 0)
            # New terms get numbers that no node has given out.
            terms = [iri(f"restored/{n}") for n in range(100)]
            numbers = session.encode(terms)
            last = self.coordinator.value("select max(extent) from quad.term_extents")
            same("new numbers", min(numbers) >= (last + 1) * EXTENT, True)
            same("decoded", session.value("select count(*) from unnest(%s::text[], %s::bigint[]) u (t, i) where quad.decode(i)::text = quad.term_in(t::cstring)::text",
                                          (terms, numbers)), 100)
            session.close()
        finally:
            alone.remove()

    def messages_are_for_nodes(self):
        session = Session(self.cluster.workers[0])
        for request in (b"", b"\x01\x10\x05", os.urandom(40)):
            code, _ = error_of(lambda: session.rows("select quad.cluster_answer(%s)", (psycopg2.Binary(request),)))
            same("a message by hand", code, "42501")
        session.close()
        for _, shard, port in self.placements():
            server = next(server for server in self.cluster.servers if server.port == port)
            with server.connect() as connection:
                same(f"shard {shard}", problems(connection, f"quad.term_ids_{shard}"), [])


if __name__ == "__main__":
    with Cluster() as cluster:
        checks = Checks(cluster)
        checks.run()
    checks.report.finish()
