-- quad.create_view: ordinary views of SPARQL queries.
BEGIN;
SELECT plan(45);
SET search_path = public, quad;

SELECT quad.load_text($$
    PREFIX : <http://x/>
    :ada :name "Ada"; :born 1815; :knows :grace, :alan .
    :grace :name "Grace"; :born 1906 .
    :alan :name "Alan"@en; :born 1912 .
    :nobody :name "Nobody" .
$$);

-- Columns
SELECT is(quad.create_view('people', $$
    PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    SELECT ?person ?name (xsd:integer(?b) AS ?born) (STRLEN(?name) AS ?length) (?b > 1900 AS ?young) (COUNT(?k) AS ?friends) {
        ?person :name ?name OPTIONAL { ?person :born ?b } OPTIONAL { ?person :knows ?k }
    } GROUP BY ?person ?name ?b
$$)::text, '', 'a view');
SELECT has_view('public', 'people', 'in the first schema of the search path');
SELECT columns_are('public', 'people', ARRAY['person', 'name', 'born', 'length', 'young', 'friends'], 'with the variables as columns');
SELECT col_type_is('public', 'people', 'person', 'quad', 'term', 'what patterns bind is a term');
SELECT col_type_is('public', 'people', 'name', 'quad', 'term', 'a literal too');
SELECT col_type_is('public', 'people', 'born', 'numeric', 'an integer has any length');
SELECT col_type_is('public', 'people', 'length', 'bigint', 'a length');
SELECT col_type_is('public', 'people', 'young', 'boolean', 'a comparison');
SELECT col_type_is('public', 'people', 'friends', 'bigint', 'a count');
SELECT results_eq($$SELECT name::text, born, length, young, friends FROM people ORDER BY 1$$,
    $$VALUES ('Ada', 1815::numeric, 3::bigint, false, 2::bigint), ('Alan', 1912, 4, true, 0), ('Grace', 1906, 5, true, 0), ('Nobody', NULL, 6, NULL, 0)$$,
    'rows; unbound is NULL');
SELECT lives_ok($$SELECT quad.create_view('chosen', 'SELECT ?name ?born { ?p <http://x/name> ?name ; <http://x/born> ?born }',
    types => '{"name": "varchar", "born": "bigint"}')$$, 'types that are chosen');
SELECT col_type_is('public', 'chosen', 'born', 'bigint', 'are the types of the columns');
SELECT col_type_is('public', 'chosen', 'name', 'character varying', 'are the types of the columns');
SELECT results_eq('SELECT name FROM chosen WHERE born BETWEEN 1900 AND 1910', $$VALUES ('Grace'::varchar)$$, 'and their operators work');

-- Filters and joins reach the store
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP lines := lines || line || E'\n'; END LOOP;
    RETURN lines;
END $$;
SELECT quad.create_view('names', 'SELECT ?person ?name { ?person <http://x/name> ?name }');
SELECT quad.load_text(string_agg(format('<http://x/p%s> <http://x/name> "name %s" .', i, i), E'\n')) FROM generate_series(1, 5000) i;
ANALYZE quad_stores.main;
SELECT matches(pg_temp.plan($$SELECT * FROM names WHERE person = '<http://x/ada>'$$), 'Index Cond: [^\n]*s = id_of\(''<http://x/ada>''::term\)',
    'a filter on a term is a condition of the scan');
SELECT matches(pg_temp.plan($$SELECT * FROM names WHERE name = '"Ada"'$$), 'Index Cond: [^\n]*o = id_of\(''"Ada"''::term\)', 'on an object too');
SELECT unalike(pg_temp.plan($$SELECT * FROM names WHERE name = '"Ada"'$$), '%Subquery%', 'the view is no subquery of its own');
CREATE TABLE badges (iri text PRIMARY KEY, number int);
INSERT INTO badges SELECT 'http://x/p' || i, i FROM generate_series(10, 20) i;
ANALYZE badges;
SELECT matches(pg_temp.plan('SELECT * FROM badges b JOIN names n ON n.person = quad.iri(b.iri)'), 'Index Cond: [^\n]*(id_of\(iri\(b\.iri\)\) = q1\.s|q1\.s = id_of\(iri\(b\.iri\)\))',
    'a join with a table looks terms up');
SELECT results_eq('SELECT n.name::text FROM badges b JOIN names n ON n.person = quad.iri(b.iri) WHERE b.number = 12', $$VALUES ('name 12')$$, 'and gives its rows');
SELECT unalike(pg_temp.plan('SELECT * FROM names a JOIN names b ON a.person = b.person'), '%decode(%=%decode(%', 'two views are joined on ids');
SELECT is((SELECT count(*) FROM names a JOIN names b ON a.person = b.person), 5004::bigint, 'and give their rows');
SELECT is((SELECT count(*) FROM names WHERE person = '<http://x/unheard-of>'), 0::bigint, 'a term that is in no store');
SELECT is((SELECT count(*) FROM names WHERE NOT (person = '<http://x/unheard-of>')), 5004::bigint, 'and its negation');
SELECT is((SELECT count(*) FROM names WHERE person = NULL), 0::bigint, 'NULL');
SELECT is((SELECT count(*) FROM quad_stores.main WHERE (quad.decode(g) = '<http://x/g>') IS NULL), 5009::bigint, 'the default graph is no term');
SELECT is((SELECT count(*) FROM quad_stores.main WHERE NOT (quad.decode(g) = '<http://x/g>')), 0::bigint, 'nor is it another one');
SELECT is((SELECT count(*) FROM names WHERE person = quad.term_in('<http://x/ada>') OR person IS NULL), 1::bigint, 'within OR');

-- Constants
SELECT quad.create_view('later', $$SELECT ?o { <http://x/not-yet> <http://x/neither> ?o }$$);
SELECT is((SELECT count(*) FROM later), 0::bigint, 'a constant that is not in the dictionary');
SELECT quad.load_text('<http://x/not-yet> <http://x/neither> 1 .');
SELECT is((SELECT count(*) FROM later), 1::bigint, 'is found when it is there');
SELECT quad.load_text($q$<http://x/it's$1> <http://x/p> "it's \\ \"quoted\" $$ $1 \n" .$q$);
SELECT lives_ok($t$SELECT quad.create_view('"Odd ""name"""', $q$SELECT ?s ("it's \\ $$ $1 \n" AS ?c) { ?s <http://x/p> "it's \\ \"quoted\" $$ $1 \n" }$q$)$t$,
    'quotes and backslashes');
SELECT results_eq('SELECT s::text, c::text FROM "Odd ""name"""', $$VALUES ('http://x/it''s$1', E'it''s \\ $' || E'$ $1 \n')$$, 'are taken literally');

-- Names
SELECT throws_ok($$SELECT quad.create_view('people', 'SELECT ?s { ?s ?p ?o }')$$, '42P07', NULL, 'a name that is taken');
SELECT throws_ok($$SELECT quad.create_view('a.b.c.d', 'SELECT ?s { ?s ?p ?o }')$$, '42601', NULL, 'no name');
SELECT throws_ok($$SELECT quad.create_view('x; DROP TABLE badges', 'SELECT ?s { ?s ?p ?o }')$$, '42602', NULL, 'nor this');
SELECT throws_ok($$SELECT quad.create_view('nowhere.x', 'SELECT ?s { ?s ?p ?o }')$$, '3F000', NULL, 'a schema that is not there');
SELECT lives_ok($$SELECT quad.create_view('pg_temp.mine', 'SELECT ?s { ?s <http://x/born> ?o }')$$, 'a temporary view');
SELECT is((SELECT count(*) FROM pg_temp.mine), 3::bigint, 'has rows');

-- Other forms, and errors
SELECT lives_ok($$SELECT quad.create_view('graph', 'CONSTRUCT { ?s <http://x/q> ?o } WHERE { ?s <http://x/born> ?o }')$$, 'CONSTRUCT');
SELECT columns_are('public', 'graph', ARRAY['subject', 'predicate', 'object'], 'has the columns of triples');
SELECT throws_ok($$SELECT quad.create_view('e', 'SELECT ?s { ?s ?p }')$$, '42601', NULL, 'no SPARQL');
SELECT throws_ok($$SELECT quad.create_view('e', 'SELECT * { <a:b> <a:c> <a:d> }')$$, '42P16', NULL, 'no columns');
SELECT throws_ok($$SELECT quad.create_view('e', 'SELECT ?s { ?s ?p ?o }', types => '{"o": "text"}')$$, '42703', NULL, 'a type for no column');
SELECT throws_ok($$SELECT quad.create_view('e', 'SELECT ?s { ?s ?p ?o }', types => '{"s": "int; DROP TABLE badges"}')$$, '42601', NULL, 'a type that is none');
SELECT throws_ok($$SELECT quad.create_view('e', 'SELECT ?s { ?s ?p ?o }', types => '{"s": "point"}')$$, '42846', NULL, 'a type that terms cannot be cast to');

-- What PostgreSQL shows of the view makes the same view (as pg_dump does it).
DO $$BEGIN EXECUTE 'CREATE VIEW copy AS ' || pg_get_viewdef('people'); END$$;
SELECT results_eq('SELECT * FROM copy ORDER BY person', 'SELECT * FROM people ORDER BY person', 'its definition is whole');

SELECT * FROM finish();
ROLLBACK;
