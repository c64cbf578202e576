-- Row-level security on the table of a store: queries see, and updates touch, what the policies let through.
BEGIN;
SELECT plan(28);
SELECT quad.load_text($$
    PREFIX : <http://x/>
    :ada :name "Ada"; :knows :grace . :grace :name "Grace"; :knows :alan .
    :secrets { :ada :password "lovelace" . :grace :password "hopper" . :alan :name "hidden" }
$$, 'trig');
CREATE ROLE quad_rows_reader; CREATE ROLE quad_rows_other;
GRANT ALL ON quad_stores.main TO quad_rows_reader, quad_rows_other;
GRANT USAGE ON SCHEMA public TO quad_rows_reader;
SELECT quad.create_view('seen', 'SELECT ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }');
ALTER VIEW seen SET (security_invoker = true);
GRANT SELECT ON seen TO quad_rows_reader;
ALTER TABLE quad_stores.main ENABLE ROW LEVEL SECURITY;
CREATE POLICY default_graph ON quad_stores.main FOR ALL TO quad_rows_reader USING (g = 0) WITH CHECK (g = 0);

CREATE FUNCTION pg_temp.names(query text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(substring(x ->> 'o' FROM '[a-zA-Z]+'), ' ' ORDER BY x ->> 'o') FROM quad.sparql(replace(query, ' :', ' http://x/'), NULL) x
$$;
CREATE FUNCTION pg_temp.number(query text) RETURNS bigint LANGUAGE sql AS $$SELECT count(*) FROM quad.sparql(query)$$;
SELECT is(pg_temp.number('SELECT * { GRAPH ?g { ?s ?p ?o } }'), 3::bigint, 'the owner sees all');
SET ROLE quad_rows_reader;
SELECT is(pg_temp.number('SELECT * { ?s ?p ?o }'), 4::bigint, 'a reader sees what the policy says');
SELECT is(pg_temp.number('SELECT * { GRAPH ?g { ?s ?p ?o } }'), 0::bigint, 'and nothing else, by a template that the owner has used');
SELECT is(pg_temp.number('SELECT * { GRAPH <http://x/secrets> { ?s ?p ?o } }'), 0::bigint, 'not by name');
SELECT is(pg_temp.number('SELECT * FROM <http://x/secrets> { ?s ?p ?o }'), 0::bigint, 'not by FROM');
SELECT is(quad.ask('ASK { GRAPH <http://x/secrets> {} }'), false, 'not its existence');
SELECT is(pg_temp.number('SELECT * { GRAPH ?g {} }'), 0::bigint, 'nor its name');
SELECT is(pg_temp.number('SELECT * { ?s <http://x/knows> ?x . ?x <http://x/name> ?o }'), 1::bigint, 'in joins');
SELECT is(pg_temp.number('SELECT * { ?s <http://x/knows>+ ?o }'), 3::bigint, 'in paths');
SELECT is(pg_temp.number('SELECT * { ?s <http://x/name> ?o FILTER NOT EXISTS { GRAPH ?g { ?s <http://x/password> ?w } } }'), 2::bigint, 'in NOT EXISTS');
SELECT is((SELECT x ->> 'n' FROM quad.sparql('SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }') x),
    '"4"^^<http://www.w3.org/2001/XMLSchema#integer>', 'in aggregates');
SELECT is((SELECT count(*) FROM quad.describe('DESCRIBE <http://x/alan>')), 0::bigint, 'in DESCRIBE');
SELECT is((SELECT count(*) FROM quad.construct('CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }')), 0::bigint, 'in CONSTRUCT');
SELECT throws_ok('SELECT quad.export()', '0A000', NULL, 'exports are refused');
SELECT throws_ok($$SELECT quad.range_count('quad_stores.main', NULL, NULL, NULL, NULL)$$, '0A000',
                 'cannot count the quads of "main" by its index, as it has row-level security', 'counts of the index, too');
SET quad.default_graph = 'union';
SELECT is(pg_temp.number('SELECT * { ?s ?p ?o }'), 4::bigint, 'in the union of all graphs');
RESET quad.default_graph;
SELECT is((SELECT count(*) FROM seen), 4::bigint, 'in a view with the rights of the caller');
-- A function that tells what it sees, and is said to cost nothing, comes after the policy.
CREATE FUNCTION pg_temp.leak(n bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN IF n <> 0 THEN RAISE EXCEPTION 'leaked %', n; END IF; RETURN true; END $$;
SELECT is((SELECT count(*) FROM quad_stores.main WHERE pg_temp.leak(g)), 4::bigint, 'hidden rows are not shown to functions');
SELECT is((SELECT count(*) FROM quad_stores.main a JOIN quad_stores.main b ON a.s = b.s WHERE pg_temp.leak(a.g) AND pg_temp.leak(b.g)), 8::bigint, 'nor in joins');
-- Writing
SELECT is(quad.update('INSERT DATA { <http://x/n> <http://x/p> 1 }'), 1::bigint, 'an allowed quad');
SELECT throws_ok($$SELECT quad.update('INSERT DATA { GRAPH <http://x/secrets> { <http://x/n> <http://x/p> 1 } }')$$, '42501', NULL, 'a quad that the policy refuses');
SELECT throws_ok($$SELECT quad.update('INSERT { GRAPH <http://x/secrets> { ?s ?p ?o } } WHERE { ?s ?p ?o }')$$, '42501', NULL, 'quads that the policy refuses');
SELECT throws_ok($$SELECT quad.load_text('<http://x/n> <http://x/p> 2 .')$$, '0A000', NULL, 'loads, which know no policies, are refused');
SELECT is(quad.update('DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }'), 0::bigint, 'hidden quads are not deleted');
SELECT is(quad.update('DROP ALL'), 5::bigint, 'not by DROP ALL');
SET ROLE quad_rows_other;
SELECT is(pg_temp.number('SELECT * { ?s ?p ?o }'), 0::bigint, 'a role without a policy sees nothing');
SELECT is(pg_temp.number('SELECT * { GRAPH ?g { ?s ?p ?o } }'), 0::bigint, 'anywhere');
RESET ROLE;
SELECT is(pg_temp.number('SELECT * { GRAPH ?g { ?s ?p ?o } }'), 3::bigint, 'they are all still there');

SELECT * FROM finish();
ROLLBACK;
