-- quad.graph_stream: a graph of a store, or all of them, as a document in pieces.
BEGIN;
SELECT plan(9);
SELECT quad.load_text($$@prefix : <http://x/> . :a :p 1 . GRAPH :g { :b :p 2 . :c :p 3 }$$, 'trig');

CREATE FUNCTION pg_temp.lines(graph text, format text, store text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT line FROM quad.graph_stream(graph, format, store) piece, regexp_split_to_table(rtrim(piece, E'\n'), E'\n') line WHERE line <> ''
$$;
SELECT set_eq($$SELECT pg_temp.lines('', 'nt')$$, ARRAY['<http://x/a> <http://x/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'], 'the default graph');
SELECT is((SELECT count(*) FROM pg_temp.lines('http://x/g', 'nt')), 2::bigint, 'a named graph');
SELECT set_eq($$SELECT pg_temp.lines(NULL, 'nquads')$$, $$SELECT quad.export()$$, 'all graphs');
SELECT ok(string_agg(x, '') LIKE '%<http://x/g> {%', 'all graphs in TriG') FROM quad.graph_stream(NULL, 'trig') x;
SELECT is_empty($$SELECT pg_temp.lines('http://x/none', 'nt')$$, 'a graph that is not there');
SET LOCAL quad.default_graph = 'union';
SELECT is((SELECT count(*) FROM pg_temp.lines('', 'nt')), 1::bigint, 'the default graph is the store''s own whatever the setting');
SELECT throws_ok($$SELECT quad.graph_stream(NULL, 'turtle')$$, '22023', NULL, 'Turtle holds one graph');
SELECT throws_ok($$SELECT quad.graph_stream('x> } . { <http://x/a', 'nt')$$, '22023', NULL, 'what is no IRI');
SELECT throws_ok($$SELECT quad.graph_stream('', 'nt', 'none')$$, '42P01', NULL, 'a store that is not there');

SELECT * FROM finish();
ROLLBACK;
