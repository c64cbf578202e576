-- The merge of several graphs: all of a store, or those of a list. Plans read each triple once instead of looking for an
-- equal quad of another graph, and their answers are those of the triples in one graph.
BEGIN;
SELECT plan(76);
\ir lib/plan_of.sql

-- Three graphs and the default graph, half of the triples in two of them.
SELECT quad.create_store('merged');
SELECT quad.create_store('triples');
CREATE TEMP TABLE facts AS
    SELECT format('<http://x/n%s>', i) AS s, '<http://x/knows>' AS p, format('<http://x/n%s>', (i * 7 + k * 13) % 300) AS o, (i + k) % 4 AS g
    FROM generate_series(0, 299) i, generate_series(1, 3) k
    UNION ALL SELECT format('<http://x/n%s>', i), '<http://x/parent>', format('<http://x/n%s>', i / 3), i % 4 FROM generate_series(1, 299) i
    UNION ALL SELECT format('<http://x/n%s>', i), '<http://x/type>', format('<http://x/C%s>', i % 5), i % 3 FROM generate_series(0, 299) i
    UNION ALL SELECT format('<http://x/n%s>', i), '<http://x/age>', format('"%s"^^<http://www.w3.org/2001/XMLSchema#integer>', i % 40), i % 4
    FROM generate_series(0, 299, 2) i;
INSERT INTO facts SELECT s, p, o, (g + 1) % 4 FROM facts WHERE md5(s || o) < '8';
SELECT quad.load_text(string_agg(format('%s %s %s %s.', s, p, o, CASE WHEN g > 0 THEN format('<http://x/g%s>', g) END), E'\n'),
                      'nquads', store => 'merged') FROM facts;
SELECT quad.load_text(string_agg(format('%s %s %s .', s, p, o), E'\n'), 'nquads', store => 'triples') FROM facts;
SELECT quad.create_store('some');
SELECT quad.load_text(string_agg(format('%s %s %s .', s, p, o), E'\n'), 'nquads', store => 'some') FROM facts WHERE g IN (1, 3);
ANALYZE quad_stores.merged;
ANALYZE quad_stores.triples;

CREATE FUNCTION pg_temp.bag(query text, store text, default_graph text DEFAULT 'default') RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE found text[];
BEGIN
    PERFORM set_config('quad.default_graph', default_graph, true);
    SELECT array_agg(x::text ORDER BY x::text) INTO found FROM quad.sparql('PREFIX : <http://x/> ' || query, store) x;
    PERFORM set_config('quad.default_graph', 'default', true);
    RETURN found;
END $$;
CREATE TEMP TABLE queries (name text, query text);
INSERT INTO queries VALUES
    ('one pattern', 'SELECT * # { ?s :knows ?o }'),
    ('a subject', 'SELECT * # { :n7 ?p ?o }'),
    ('a count', 'SELECT (COUNT(*) AS ?n) # { ?s ?p ?o }'),
    ('counts by group', 'SELECT ?p (COUNT(*) AS ?n) # { ?s ?p ?o } GROUP BY ?p'),
    ('two hops', 'SELECT (COUNT(*) AS ?n) # { ?x :knows ?y . ?y :knows ?z }'),
    ('triangles', 'SELECT * # { ?x :knows ?y . ?y :knows ?z . ?z :knows ?x }'),
    ('a cycle with a parent', 'SELECT * # { ?x :knows ?y . ?y :parent ?z . ?x :parent ?z }'),
    ('a star', 'SELECT * # { ?x :type :C3 ; :parent ?p ; :age ?a . FILTER(?a < 20) }'),
    ('a star of one subject', 'SELECT * # { :n8 :type ?t ; :parent ?p ; :knows ?k }'),
    ('an optional part', 'SELECT * # { ?x :type :C1 OPTIONAL { ?x :age ?a } }'),
    ('optional parts inside', 'SELECT * # { ?x :type :C1 OPTIONAL { ?x :knows ?y OPTIONAL { ?y :age ?a } } }'),
    ('MINUS', 'SELECT * # { ?x :type :C1 MINUS { ?x :age ?a } }'),
    ('EXISTS', 'SELECT * # { ?x :type :C1 FILTER EXISTS { ?x :knows ?y . ?y :type :C2 } }'),
    ('NOT EXISTS', 'SELECT (COUNT(*) AS ?n) # { ?x :knows ?y FILTER NOT EXISTS { ?y :knows ?x } }'),
    ('UNION', 'SELECT * # { ?x :type :C1 { ?x :knows ?y } UNION { ?x :parent ?y } }'),
    ('values', 'SELECT * # { VALUES ?x { :n1 :n2 :n3 } ?x ?p ?o }'),
    ('equal values', 'SELECT (COUNT(*) AS ?n) # { ?x :type :C1 ; :age ?a . ?y :type :C2 ; :age ?b FILTER(?a = ?b) }'),
    ('a path', 'SELECT * # { :n7 :knows+ ?x }'),
    ('a path backwards', 'SELECT * # { ?x :parent* :n3 }'),
    ('a path between all', 'SELECT (COUNT(*) AS ?n) # { ?x :parent+ ?y }'),
    ('a path of several predicates', 'SELECT * # { :n7 (:parent|:type)+ ?x }'),
    ('a path of two steps', 'SELECT * # { :n7 (:knows/:parent)+ ?x }'),
    ('a path from what is found', 'SELECT * # { ?x :type :C2 . ?x :parent+ ?y . ?y :type :C0 }'),
    ('an aggregate', 'SELECT ?t (AVG(?a) AS ?m) # { ?x :type ?t ; :age ?a } GROUP BY ?t'),
    ('distinct', 'SELECT DISTINCT ?t # { ?x :knows ?y . ?y :type ?t }'),
    ('a subquery', 'SELECT * # { { SELECT ?x (COUNT(*) AS ?n) { ?x :knows ?y } GROUP BY ?x } ?x :type :C4 }'),
    ('the first of an order', 'SELECT ?x ?a # { ?x :age ?a } ORDER BY DESC(?a) ?x LIMIT 7');
-- Each pattern is two relations here: more than one node reads.
INSERT INTO queries SELECT 'thirty patterns', 'SELECT * # { ?x :type :C1 ; ' || string_agg(':type ?t' || i, ' ; ') || ' }' FROM generate_series(2, 30) i;

SELECT is(pg_temp.bag(replace(query, '#', ''), 'merged', 'union'), pg_temp.bag(replace(query, '#', ''), 'triples'), 'all graphs: ' || name)
FROM queries;
SELECT is(pg_temp.bag(replace(query, '#', 'FROM :g1 FROM :g3'), 'merged'), pg_temp.bag(replace(query, '#', ''), 'some'), 'some graphs: ' || name)
FROM queries;

-- Plans.
CREATE FUNCTION pg_temp.plan_of_query(query text, default_graph text DEFAULT 'union') RETURNS text LANGUAGE plpgsql AS $$
DECLARE sql text;
BEGIN
    PERFORM set_config('quad.default_graph', default_graph, true);
    sql := quad.sparql_to_sql('PREFIX : <http://x/> ' || query, 'merged');
    PERFORM set_config('quad.default_graph', 'default', true);
    RETURN pg_temp.plan_of(sql, 'costs off, verbose');
END $$;
SELECT matches(pg_temp.plan_of_query('SELECT * { ?x :knows ?y . ?y :knows ?x }'), 'Pattern: triples of q1 .*Pattern: triples of q2', 'patterns of triples');
SELECT unalike(pg_temp.plan_of_query('SELECT * { ?x :knows ?y . ?y :knows ?x }'), '%not exists%', 'which look for no other quad');
SELECT matches(pg_temp.plan_of_query('SELECT * { ?x :type :C1 OPTIONAL { ?x :age ?a } }'), 'optional triples of', 'in optional parts, too');
SET LOCAL join_collapse_limit = 100;
SELECT matches(pg_temp.plan_of_query(replace(query, '#', ''), 'union'), 'Pattern: triples of q30 ', 'of thirty patterns, too')
FROM queries WHERE name = 'thirty patterns';
RESET join_collapse_limit;
SELECT matches(pg_temp.plan_of_query('SELECT * { :n7 :knows+ ?x }'), 'Quad Walk', 'a walk');
SELECT matches(pg_temp.plan_of_query('SELECT * { :n7 (:knows/:parent)+ ?x }'), 'Quad Walk', 'a walk of two steps');

-- By hand, in SQL.
CREATE TABLE q (s bigint NOT NULL, p bigint NOT NULL, o bigint NOT NULL, g bigint NOT NULL) USING quad;
INSERT INTO q SELECT i % 20, i % 2, i % 7, i % 4 FROM generate_series(1, 400) i;
\set first 'NOT EXISTS (SELECT FROM q x WHERE x.s = q.s AND x.p = q.p AND x.o = q.o AND x.g < q.g'
CREATE FUNCTION pg_temp.sum_of(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    EXECUTE 'SELECT concat_ws('' '', count(*), sum(s), sum(o)) FROM q WHERE ' || condition INTO found;
    RETURN found;
END $$;
SELECT matches(pg_temp.plan_of('SELECT s, p, o FROM q WHERE ' || :'first' || ')'), 'triples of q', 'triples in SQL');
SELECT is(pg_temp.sum_of(:'first' || ')'), (SELECT concat_ws(' ', count(*), sum(s), sum(o)) FROM (SELECT DISTINCT s, p, o FROM q) t), 'each once');
SELECT is(pg_temp.sum_of(:'first' || ' AND x.g > 1) AND g > 1'), (SELECT concat_ws(' ', count(*), sum(s), sum(o)) FROM (SELECT DISTINCT s, p, o FROM q WHERE g > 1) t),
          'of some graphs');
SELECT matches(pg_temp.plan_of('SELECT s FROM q WHERE g > 1 AND ' || :'first' || ' AND x.g > 1)'), 'triples of q', 'read as triples');
SELECT is(pg_temp.sum_of(:'first' || ') AND s = 3 AND o IN (1, 3) AND p = 1'),
          (SELECT concat_ws(' ', count(*), sum(s), sum(o)) FROM (SELECT DISTINCT s, p, o FROM q WHERE s = 3 AND o IN (1, 3) AND p = 1) t), 'with constants');
SELECT is(pg_temp.sum_of(:'first' || ' AND x.g IN (1, 2)) AND g IN (1, 2) AND s = 3 AND p = 1 AND o = 2'),
          (SELECT concat_ws(' ', count(*), sum(s), sum(o)) FROM (SELECT DISTINCT s, p, o FROM q WHERE g IN (1, 2) AND s = 3 AND p = 1 AND o = 2) t),
          'one triple in a list of graphs');

-- What is not the same is left as it is.
CREATE TEMP TABLE others (name text, condition text);
INSERT INTO others VALUES
    ('a graph that the other quad need not be in', :'first' || ') AND g > 1'),
    ('another graph', :'first' || ' AND x.g > 1) AND g > 0'),
    ('a condition on the other quad alone', :'first' || ' AND x.o > 2)'),
    ('a lesser graph for one subject', replace(:'first', 'x.o = q.o AND', '') || ')'),
    ('a greater graph', replace(:'first', '<', '<=') || ')'),
    ('a test of the graph', :'first' || ' AND x.g % 2 = 1) AND g % 2 = 1');
SELECT unalike(pg_temp.plan_of('SELECT s FROM q WHERE ' || condition), '%triples of%', name) FROM others;

-- Policies on the graph: the first quad that may be seen stands for the triple.
CREATE ROLE merger;
GRANT SELECT ON q TO merger;
ALTER TABLE q ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_two ON q TO merger USING (g IN (2, 3));
SET LOCAL ROLE merger;
SELECT is(pg_temp.sum_of(:'first' || ')'), (SELECT concat_ws(' ', count(*), sum(s), sum(o)) FROM (SELECT DISTINCT s, p, o FROM q) t), 'with a policy');
RESET ROLE;
DROP POLICY of_two ON q;
CREATE POLICY odd ON q TO merger USING (g % 2 = 1);
SET LOCAL ROLE merger;
SELECT is(pg_temp.sum_of(:'first' || ')'), (SELECT concat_ws(' ', count(*), sum(s), sum(o)) FROM (SELECT DISTINCT s, p, o FROM q) t), 'with a computed policy');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
