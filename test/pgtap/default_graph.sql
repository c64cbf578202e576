-- The setting quad.default_graph: what queries read that name no graph.
BEGIN;
SELECT plan(17);

SELECT is(current_setting('quad.default_graph'), 'default', 'by default the default graph of the store');
SELECT quad.load_text($$
    PREFIX : <http://x/>
    { :a :p :own . :a :p :both . }
    :g { :a :p :both . :a :p :g . :g :p :end . }
    :h { :a :p :both . :b :p :a . }
$$, 'trig');

CREATE FUNCTION pg_temp.objects(pattern text, dataset text DEFAULT '') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(substring(x ->> 'o' FROM '/([^/]*)>$'), ' ' ORDER BY x ->> 'o')
    FROM quad.sparql(format('PREFIX : <http://x/> SELECT ?o %s WHERE { %s }', dataset, pattern)) x
$$;

SELECT is(pg_temp.objects(':a :p ?o'), 'both own', 'the default graph of the store');
SET quad.default_graph = 'union';
SELECT is(pg_temp.objects(':a :p ?o'), 'both g own', 'all graphs, each triple once');
SELECT is(pg_temp.objects(':b :p ?x . ?x :p ?o'), 'both g own', 'a join across graphs');
SELECT is(pg_temp.objects(':b :p* ?o'), 'a b both end g own', 'a path across graphs');
SELECT is(pg_temp.objects(':b :p/:p/:p ?o'), 'end', 'a sequence across graphs');
SELECT is(pg_temp.objects('GRAPH :h { ?s :p ?o }'), 'a both', 'GRAPH with a name is not concerned');
SELECT is(pg_temp.objects('GRAPH ?g { :a :p ?o }'), 'both both g', 'nor is GRAPH with a variable');
SELECT is(pg_temp.objects(':a :p ?o', 'FROM <http://x/g>'), 'both g', 'FROM says otherwise');
SELECT is(pg_temp.objects(':a :p ?o', 'FROM <http://x/g> FROM <http://x/h>'), 'both g', 'several FROM say otherwise');
SELECT is((SELECT x ->> 'n' FROM quad.sparql('SELECT (COUNT(*) AS ?n) { ?s ?p ?o }') x),
          '"5"^^<http://www.w3.org/2001/XMLSchema#integer>', 'triples are counted once');
SELECT is((SELECT count(*) FROM quad.describe('DESCRIBE <http://x/a>')), 3::bigint, 'DESCRIBE');
SELECT is((SELECT count(*) FROM quad.construct('CONSTRUCT WHERE { ?s ?p ?o }')), 5::bigint, 'CONSTRUCT');
SELECT is(quad.ask('ASK { <http://x/g> <http://x/p> <http://x/end> }'), true, 'ASK');

-- Updates read the merge; what they write without GRAPH goes to the default graph of the store.
SELECT is(quad.update('INSERT { ?x <http://x/q> ?y } WHERE { ?x <http://x/p> ?y }'), 5::bigint, 'an update reads all graphs');
SET quad.default_graph = 'default';
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { ?s <http://x/q> ?o }')), 5::bigint, 'and writes one');
SELECT throws_ok($$SET quad.default_graph = 'none'$$, '22023', NULL, 'no other values');

SELECT * FROM finish();
ROLLBACK;
