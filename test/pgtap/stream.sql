-- Answers in pieces: quad.sparql_json_stream and its kin, quad.answer_stream, quad.graph_stream; documents in pieces.
BEGIN;
SELECT plan(58);

SELECT quad.load_text($$
    @prefix : <http://x/> .
    :a :p "eins"@de, 1 . :b :p <http://x/a> . :c :q [ :p "blank" ] .
    GRAPH :g1 { :a :in :g1 } GRAPH :g2 { :a :in :g2 . :b :in :g2 }
$$, 'trig');
SELECT quad.create_store('many');
INSERT INTO quad_stores.many SELECT quad.encode(('<http://x/s' || i || '>')::quad.term), quad.encode('<http://x/p>'),
    quad.encode(('"' || repeat('x', 50) || i || '"')::quad.term), 0 FROM generate_series(1, 20000) i;

-- All pieces together are what the function of one text gives.
CREATE FUNCTION pg_temp.whole(stream text, VARIADIC arguments text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE whole text;
BEGIN
    EXECUTE format('SELECT string_agg(piece, '''' ORDER BY n) FROM ROWS FROM (quad.%I(%s)) WITH ORDINALITY AS x(piece, n)', stream,
                   (SELECT string_agg(quote_nullable(a), ', ') FROM unnest(arguments) a)) INTO whole;
    RETURN whole;
END $$;
CREATE FUNCTION pg_temp.same(format text, query text, store text DEFAULT 'main') RETURNS text LANGUAGE plpgsql AS $$
DECLARE one text;
BEGIN
    EXECUTE format('SELECT quad.sparql_%s(%L, %L)', format, query, store) INTO one;
    RETURN is(md5(pg_temp.whole('sparql_' || format || '_stream', query, store)), md5(one), format || ': ' || query || ' in ' || store);
END $$;
SELECT pg_temp.same(f, q) FROM unnest(ARRAY['json', 'xml', 'csv', 'tsv']) f,
    unnest(ARRAY['SELECT * { ?s ?p ?o } ORDER BY ?s ?p ?o', 'SELECT ?s ?none { ?s ?p ?o FILTER(false) }', 'SELECT * {}', 'ASK { ?s ?p ?o }']) q;
SELECT pg_temp.same(f, 'SELECT ?s ?o { ?s ?p ?o } ORDER BY ?o', 'many') FROM unnest(ARRAY['json', 'xml', 'csv', 'tsv']) f;
SELECT is(pg_temp.whole('construct_stream', 'CONSTRUCT WHERE { ?s <http://x/p> ?o }', f),
          quad.construct_text('CONSTRUCT WHERE { ?s <http://x/p> ?o }', f), 'a graph: ' || f) FROM unnest(ARRAY['turtle', 'nt', 'xml', 'jsonld']) f;
SELECT is(pg_temp.whole('describe_stream', 'DESCRIBE <http://x/c>', 'nt'), quad.describe_text('DESCRIBE <http://x/c>', 'nt'), 'DESCRIBE');

-- There are many pieces, and only those that are asked for are made.
SELECT cmp_ok(count(*), '>', 20::bigint, 'a large answer comes in pieces')
    FROM quad.sparql_tsv_stream('SELECT * { ?s ?p ?o }', 'many');
SELECT cmp_ok(max(length(piece)), '<', 200000, 'of bounded size') FROM quad.sparql_tsv_stream('SELECT * { ?s ?p ?o }', 'many') piece;
SELECT lives_ok($$SELECT quad.sparql_tsv_stream('SELECT (1/?z AS ?x) { VALUES ?z { 1 } } ') LIMIT 1$$, 'a stream that is left');
DECLARE pieces CURSOR FOR SELECT quad.sparql_tsv_stream('SELECT * { ?s ?p ?o . ?s2 ?p2 ?o2 . ?s3 ?p3 ?o3 }', 'many');
SET LOCAL statement_timeout = '120s';
SELECT isnt_empty('FETCH 1 FROM pieces', 'the first piece of an answer of 8e12 rows');
CLOSE pieces;
RESET statement_timeout;

-- The first row tells what follows.
SELECT is(array_agg(x ORDER BY n), ARRAY['results', '{"head":{},"boolean":true}'], 'ASK')
    FROM ROWS FROM (quad.answer_stream('ASK {}')) WITH ORDINALITY AS x(x, n);
SELECT is(array_agg(x ORDER BY n), ARRAY['graph', E'<http://x/s> <http://x/p> <http://x/o> .\n'], 'CONSTRUCT')
    FROM ROWS FROM (quad.answer_stream('CONSTRUCT { <http://x/s> <http://x/p> <http://x/o> } {}', NULL, 'nt')) WITH ORDINALITY AS x(x, n);
SELECT throws_ok($$SELECT quad.answer_stream('SELECT * { ?s ?p ?o }', NULL, 'turtle')$$, '42809', NULL, 'SELECT where graphs are wanted');
SELECT throws_ok($$SELECT quad.answer_stream('CONSTRUCT WHERE { ?s ?p ?o }', 'json', NULL)$$, '42809', NULL, 'CONSTRUCT where results are wanted');
SELECT throws_ok($$SELECT quad.answer_stream('SELECT * {}', 'pdf')$$, '22023', NULL, 'a format that is none');
SELECT throws_ok($$SELECT quad.sparql_json_stream('CONSTRUCT WHERE { ?s ?p ?o }')$$, '42809', NULL, 'CONSTRUCT has no solutions');

-- Data sets beside the text.
SELECT is(pg_temp.whole('sparql_csv_stream', 'SELECT ?s { ?s <http://x/in> ?o } ORDER BY ?s', NULL, NULL, '{http://x/g1,http://x/g2}'),
          E's\r\nhttp://x/a\r\nhttp://x/a\r\nhttp://x/b\r\n', 'the merge of two graphs');
SELECT is(pg_temp.whole('sparql_csv_stream', 'SELECT ?g FROM <http://x/g1> { GRAPH ?g { ?s ?p ?o } }', NULL, NULL, NULL, '{http://x/g2}'),
          E'g\r\nhttp://x/g2\r\nhttp://x/g2\r\n', 'they take the place of FROM');
SELECT throws_ok($$SELECT quad.sparql_json_stream('ASK {}', default_graphs => '{nowhere}')$$, '22023', NULL, 'a graph without an IRI');
SELECT throws_ok($$SELECT quad.sparql_json_stream('ASK {}', default_graphs => '{NULL}')$$, '22004', NULL, 'NULL is no graph');
SELECT quad.update('INSERT { GRAPH <http://x/g3> { ?s ?p ?o } } WHERE { ?s ?p ?o }', using_graphs => '{http://x/g2}');
SELECT is((SELECT count(*) FROM quad.export(graph => 'http://x/g3')), 2::bigint, 'an update that uses a graph');
SELECT throws_ok($$SELECT quad.update('DELETE { ?s ?p ?o } USING <http://x/g1> WHERE { ?s ?p ?o }', using_graphs => '{http://x/g2}')$$,
                 '22023', NULL, 'USING here and there');
-- Operations that copy graphs are about those of the store.
SELECT quad.update('MOVE <http://x/g3> TO <http://x/g4>; COPY DEFAULT TO <http://x/g5>', using_graphs => '{http://x/g1}');
SELECT is((SELECT count(*) FROM quad.export(graph => 'http://x/g4')), 2::bigint, 'MOVE beside a data set');
SELECT is((SELECT count(*) FROM quad.export(graph => 'http://x/g5')), (SELECT count(*) FROM quad.export(graph => '')), 'COPY DEFAULT beside one');

-- Documents in pieces: a binary COPY takes them as they are, wherever they are cut.
SET LOCAL quad.stdin_format = 'turtle';
COPY quad.load_stdin FROM PROGRAM $$printf 'PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\26<http://x/y> <http://y\0\1\0\0\0\7/p> 1 .\377\377'$$ (FORMAT binary);
SELECT ok(quad.ask('ASK { <http://x/y> <http://y/p> 1 }'), 'a document in two pieces');
SELECT throws_ok($a$COPY quad.load_stdin FROM PROGRAM $$printf 'PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\5<http\377\377'$$ (FORMAT binary)$a$,
                 '22P02', NULL, 'a piece of a document');

-- The same as bytes, compressed as it is.
SET LOCAL quad.stdin_format = 'nt';
SELECT lives_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('\x1f8b0800000000000203b3c9282929b0d2d7afd0afb253b0'), (NULL), ('\x81730aec1494d2ab0e2f5152d0e302001ca5e19123000000')$$, 'gzip in two pieces');
SELECT ok(quad.ask('ASK { <http://x/z> <http://x/p> "gzä" }'), 'is unpacked');
SET LOCAL quad.stdin_max_bytes = 20;
SELECT throws_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('\x1f8b0800000000000203b3c9282929b0d2d7afd0afb253b081730aec1494d2ab0e2f5152d0e302001ca5e19123000000')$$, '54000', 'the document is larger than 20 bytes', 'its size is that of the document unpacked');
SET LOCAL quad.stdin_max_bytes = 0;
SET LOCAL quad.stdin_compression = 'gzip';
SELECT throws_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('\x1f8b0800000000000203b3c9282929b0d2d7afd0afb253b081730aec1494d2ab0e2f5152d0e302001ca5e191')$$, '22P04', 'gzip data ends too early', 'gzip that is cut');
SELECT throws_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('<http://x/z> <http://x/p> 1 .')$$, '22P04', 'the data is not in gzip format', 'gzip that is none');
SET LOCAL quad.stdin_compression = 'none';
SELECT lives_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('<http://x/plain> <http://x/p> "\303'), ('\244" .')$$, 'a character in two pieces');
SELECT ok(quad.ask('ASK { <http://x/plain> <http://x/p> "ä" }'), 'is put together');
SELECT throws_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('<http://x/plain> <http://x/p> "\377" .')$$, '22021', NULL, 'what is not UTF-8');
SET LOCAL quad.stdin_compression = 'deflate';
SELECT throws_ok($$INSERT INTO quad.load_stdin_bytes VALUES ('x')$$, '22023', 'compression "deflate" is not known');
SELECT throws_ok($$SET quad.stdin_max_bytes = -1$$, '22023', NULL, 'a size below none');

-- Limits.
SELECT throws_ok($$SELECT quad.sparql_json_stream('SELECT * { ?s ?p ?o }', max_rows => 3)$$, '54000', NULL, 'more rows than asked for');
SET LOCAL quad.max_result_rows = 3;
SELECT throws_ok($$SELECT quad.sparql_json_stream('SELECT * { ?s ?p ?o }', max_rows => 100)$$, '54000', NULL, 'more rows than the setting allows');
SELECT lives_ok($$SELECT quad.sparql_json_stream('SELECT * { ?s ?p ?o } LIMIT 3')$$, 'as many rows as it allows');

SELECT * FROM finish();
ROLLBACK;
