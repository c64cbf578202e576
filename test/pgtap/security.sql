-- What users can do to each other through queries, names and settings: nothing.
BEGIN;
SELECT plan(83);

-- 1. Text of the user is never SQL: constants, graph names, variable names, base IRIs, names of stores.
CREATE TABLE canary (id int);
CREATE TEMP TABLE nasty (n int GENERATED ALWAYS AS IDENTITY, t text);
INSERT INTO nasty (t) VALUES
    ($q$'$q$), ($q$''; DROP TABLE canary; --$q$), ($q$\$q$), ($q$\'; DROP TABLE canary; --$q$), ($q$"; DROP TABLE canary; --$q$),
    ('$1'), ('$$; DROP TABLE canary; $$'), ('$q$ $x$'), (E'\x01' || '1' || E'\x01'), (E'\x02' || '1' || E'\x02'), (E'\x01'), (E'line\nfeed\r\ttab'),
    ('/* comment'), ('*/ --'), ('%s %I %%'), ('{"json": "\u0000"}'), (E'\U0010FFFF'), ('E''\\x00'''), ('::regclass'), (repeat('''', 999)), (repeat('\', 999));
SELECT quad.create_store('nasty');
-- A literal in SPARQL.
CREATE FUNCTION pg_temp.literal(t text) RETURNS text LANGUAGE sql AS $$
    SELECT '"' || replace(replace(replace(replace(t, '\', '\\'), '"', '\"'), E'\n', '\n'), E'\r', '\r') || '"'
$$;
SELECT is(quad.update(format('INSERT DATA { <http://x/%s> <http://x/text> %s }', n, pg_temp.literal(t)), 'nasty'), 1::bigint, 'INSERT DATA: ' || n) FROM nasty;
SELECT results_eq($$SELECT r.s::text, r.x::text FROM quad.sparql('SELECT ?s ?x { ?s <http://x/text> ?x }', 'nasty') a, jsonb_to_record(a) AS r(s quad.term, x quad.term) ORDER BY length(r.s::text), 1$$,
    $$SELECT 'http://x/' || n, t FROM nasty ORDER BY n$$, 'and all come back');
SELECT is((SELECT count(*) FROM nasty, LATERAL (SELECT x ->> 's' AS s FROM quad.sparql(format('SELECT ?s { ?s <http://x/text> ?o FILTER(?o = %s) }', pg_temp.literal(t)), 'nasty') x) a
    WHERE a.s = format('<http://x/%s>', n)), 21::bigint, 'as constants of a filter');
SELECT is((SELECT count(*) FROM nasty WHERE quad.ask(format('ASK { ?s <http://x/text> %s }', pg_temp.literal(t)), 'nasty')), 21::bigint, 'of a pattern');
SELECT is((SELECT count(*) FROM nasty, LATERAL quad.construct(format('CONSTRUCT { <http://x/%s> <http://x/p> %s } WHERE {}', n, pg_temp.literal(t)), 'nasty') c
    WHERE c.object::text = t), 21::bigint, 'of a template');
SELECT is((SELECT count(*) FROM nasty WHERE quad.sparql_csv(format('SELECT (CONCAT(%s, REPLACE("b", "b", "")) AS ?x) {}', pg_temp.literal(t)), 'nasty') IS NOT NULL), 21::bigint, 'of an expression');
CREATE FUNCTION pg_temp.count_of(sql text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN EXECUTE 'SELECT count(*) FROM (' || sql || ') q' INTO n; RETURN n; END $$;
SELECT is((SELECT sum(pg_temp.count_of(quad.sparql_to_sql(format('SELECT ?s { ?s <http://x/text> %s }', pg_temp.literal(t)), 'nasty'))) FROM nasty), 21::numeric, 'of quad.sparql_to_sql');
SELECT lives_ok(format('SELECT quad.create_view(%L, %L, %L)', 'nasty_' || n, format('SELECT ?s { ?s <http://x/text> %s }', pg_temp.literal(t)), 'nasty'), 'of a view: ' || n) FROM nasty WHERE n <= 12;
SELECT is((SELECT sum(pg_temp.count_of(format('TABLE nasty_%s', n))) FROM nasty WHERE n <= 12), 12::numeric, 'and of its rows');
SELECT is((SELECT count(*) FROM nasty, LATERAL quad.explain(format('SELECT ?s { ?s <http://x/text> %s }', pg_temp.literal(t)), 'nasty')) > 21, true, 'of quad.explain');
SELECT is(quad.update('INSERT DATA { GRAPH <http://x/g''$1;--> { <http://x/a''> <http://x/b''''> <http://x/$$c> } }', 'nasty'), 1::bigint, 'quotes in IRIs');
SELECT is((SELECT x ->> 'g' FROM quad.sparql('SELECT ?g { GRAPH ?g { <http://x/a''> <http://x/b''''> <http://x/$$c> } }', 'nasty') x), '<http://x/g''$1;-->', 'come back');
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * FROM <http://x/g''$1;--> { ?s ?p ?o }', 'nasty')), 1::bigint, 'in FROM');
SELECT is(quad.update('CLEAR GRAPH <http://x/g''$1;-->', 'nasty'), 1::bigint, 'in CLEAR');
SELECT is(quad.ask('ASK { FILTER(IRI("x''") = <http://x/b''/x''>) }', 'nasty', 'http://x/b''/c'), true, 'in the base');
SELECT is((SELECT x FROM quad.sparql('SELECT ("1" AS ?ä·漢) ("2" AS ?_1) ("3" AS ?select) ("4" AS ?A) ("5" AS ?a) {}', 'nasty') x),
    '{"ä·漢": "\"1\"", "_1": "\"2\"", "select": "\"3\"", "A": "\"4\"", "a": "\"5\""}', 'variables are named as they please');
SELECT is((SELECT x FROM quad.sparql(format('SELECT ?%1$s { BIND(1 AS ?%1$s) }', repeat('long', 100)), 'nasty') x) ->> repeat('long', 100), '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', 'and are as long');
SELECT throws_ok($$SELECT quad.sparql('SELECT ?a" { ?a" ?b ?c }')$$, '42601', NULL, 'but within the syntax');
SELECT throws_ok($$SELECT quad.sparql('ASK {}', 'x"; DROP TABLE canary; --')$$, '42P01', NULL, 'the name of a store that is not there');
SELECT lives_ok($$SELECT quad.create_store('x"; DROP TABLE canary; --'), quad.create_store('it''s $1'), quad.create_store('main; x'), quad.create_store('"')$$, 'names of stores');
SELECT is((SELECT sum(quad.update('INSERT DATA { <http://x/a> <http://x/b> 1 }', s)) FROM unnest(ARRAY['x"; DROP TABLE canary; --', 'it''s $1', 'main; x', '"']) s), 4::numeric, 'are quoted in updates');
SELECT is((SELECT count(*) FROM unnest(ARRAY['x"; DROP TABLE canary; --', 'it''s $1', 'main; x', '"']) s, quad.sparql('SELECT * { ?a ?b 1 }', s)), 4::bigint, 'and in queries');
SELECT throws_ok(format('SELECT quad.create_store(%L)', E'a\x01' || '1' || E'\x01'), '42602', NULL, 'control characters are no part of a name');
SELECT is((SELECT count(*) FROM canary), 0::bigint, 'the canary lives');

-- 2. Functions run with the caller's rights.
SELECT is((SELECT count(*) FROM pg_proc WHERE pronamespace = 'quad'::regnamespace AND prosecdef), 0::bigint, 'no function has rights of its own');
SELECT is((SELECT count(*) FROM pg_proc WHERE pronamespace = 'quad'::regnamespace AND prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql'))
    AND proconfig IS NULL), 0::bigint, 'no function depends on the search path');
CREATE ROLE quad_security_a; CREATE ROLE quad_security_b;
GRANT ALL ON SCHEMA public TO quad_security_a, quad_security_b;
SELECT quad.create_store('theirs'), quad.update('INSERT DATA { <http://x/a> <http://x/b> "their secret" }', 'theirs');
SET ROLE quad_security_a;
SELECT is((SELECT count(*) FROM pg_class c WHERE relnamespace = 'quad'::regnamespace AND relkind IN ('r', 'S')
    AND (has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE') OR has_table_privilege(c.oid, 'DELETE') OR has_table_privilege(c.oid, 'TRUNCATE'))), 0::bigint,
    'nobody writes the dictionary by hand');
CREATE FUNCTION pg_temp.refused(sql text) RETURNS text LANGUAGE sql AS $$SELECT throws_ok(sql, '42501', NULL, sql)$$;
SELECT pg_temp.refused(sql) FROM unnest(ARRAY[
    $$SELECT quad.sparql('SELECT * { ?s ?p ?o }', 'theirs')$$,
    $$SELECT quad.ask('ASK { ?s ?p ?o }', 'theirs')$$,
    $$SELECT quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', 'nt', 'theirs')$$,
    $$SELECT quad.describe('DESCRIBE <http://x/a>', 'theirs')$$,
    $$SELECT quad.sparql_json('SELECT * { ?s ?p ?o }', 'theirs')$$,
    $$SELECT quad.explain('SELECT * { ?s ?p ?o }', 'theirs', NULL, true)$$,
    $$SELECT quad.export('theirs')$$,
    $$SELECT quad.verify('quad_stores.theirs')$$,
    $$SELECT quad.store_info('quad_stores.theirs')$$,
    $$SELECT quad.range_count('quad_stores.theirs', NULL, NULL, NULL, NULL)$$,
    $$SELECT quad.rebuild('quad_stores.theirs')$$,
    $$SELECT quad.drop_store('theirs')$$,
    $$SELECT quad.load_text('<http://x/a> <http://x/b> 1 .', store => 'theirs')$$,
    $$SELECT quad.update('INSERT DATA { <http://x/a> <http://x/b> 1 }', 'theirs')$$,
    $$SELECT quad.update('DELETE DATA { <http://x/a> <http://x/b> 1 }', 'theirs')$$,
    $$SELECT quad.update('CLEAR ALL', 'theirs')$$,
    $$SELECT quad.load('/etc/passwd', 'nt')$$
]) sql;
RESET ROLE;
GRANT SELECT ON quad_stores.theirs TO quad_security_a;
SET ROLE quad_security_a;
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { ?s ?p ?o }', 'theirs')), 1::bigint, 'SELECT on the table is the right to read');
SELECT pg_temp.refused($$SELECT quad.update('DELETE WHERE { ?s ?p ?o }', 'theirs')$$);
SELECT quad.create_view('a_view', 'SELECT ?o { ?s ?p ?o }', 'theirs');
RESET ROLE;
GRANT INSERT ON quad_stores.theirs TO quad_security_a;
SET ROLE quad_security_a;
SELECT is(quad.update('INSERT DATA { <http://x/a> <http://x/b> 2 }', 'theirs'), 1::bigint, 'INSERT is the right to add');
SELECT pg_temp.refused($$SELECT quad.update('DELETE DATA { <http://x/a> <http://x/b> 2 }', 'theirs')$$);
RESET ROLE;
GRANT DELETE ON quad_stores.theirs TO quad_security_a;
SET ROLE quad_security_a;
SELECT is(quad.update('DELETE DATA { <http://x/a> <http://x/b> 2 }', 'theirs'), 1::bigint, 'DELETE is the right to remove');
RESET ROLE;
-- A plan that a session keeps knows no rights of its own.
SET ROLE quad_security_b;
SELECT pg_temp.refused($$SELECT quad.sparql('SELECT * { ?s ?p ?o }', 'theirs')$$);
RESET ROLE;
REVOKE SELECT ON quad_stores.theirs FROM quad_security_a;
SET ROLE quad_security_a;
SELECT pg_temp.refused($$SELECT quad.sparql('SELECT * { ?s ?p ?o }', 'theirs')$$);
SELECT pg_temp.refused('TABLE a_view');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
