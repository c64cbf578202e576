-- Loading documents, and export.
\set ON_ERROR_STOP on
BEGIN;
SELECT plan(46);
SELECT quad.create_store('l');
SET LOCAL quad.store = 'l';
CREATE TEMP TABLE directory AS SELECT format('/tmp/pgquad-pgtap-%s', pg_backend_pid()) AS path;

-- Formats
SELECT is(quad.load_text('<http://x/s> <http://x/p> "nt" .', 'nt'), 1::bigint, 'N-Triples');
SELECT is(quad.load_text('<http://x/s> <http://x/p> "nquads" <http://x/g> .', 'nquads'), 1::bigint, 'N-Quads');
SELECT is(quad.load_text('@prefix : <http://x/> . :s :p "turtle", 1, 1.5, true .'), 4::bigint, 'Turtle is the default for text');
SELECT is(quad.load_text('PREFIX : <http://x/> :h { :s :p "trig" } :s :p "default" .', 'trig'), 2::bigint, 'TriG');
SELECT is(quad.load_text($$<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">
    <rdf:Description rdf:about="http://x/s"><x:p>xml</x:p></rdf:Description></rdf:RDF>$$, 'xml'), 1::bigint, 'RDF/XML');
SELECT is(quad.load_text('{"@id": "http://x/s", "http://x/p": "jsonld"}', 'jsonld'), 1::bigint, 'JSON-LD');
SELECT set_eq('SELECT quad.export()', ARRAY[
    '<http://x/s> <http://x/p> "nt" .',
    '<http://x/s> <http://x/p> "nquads" <http://x/g> .',
    '<http://x/s> <http://x/p> "turtle" .',
    '<http://x/s> <http://x/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    '<http://x/s> <http://x/p> "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .',
    '<http://x/s> <http://x/p> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .',
    '<http://x/s> <http://x/p> "trig" <http://x/h> .',
    '<http://x/s> <http://x/p> "default" .',
    '<http://x/s> <http://x/p> "xml" .',
    '<http://x/s> <http://x/p> "jsonld" .'], 'export gives all of it');
SELECT is(quad.load_text('<http://x/s> <http://x/p> "nt" .', 'application/n-triples'), 0::bigint, 'loaded again: nothing new');
SELECT is((SELECT count(*) FROM quad_stores.l), 10::bigint, 'and nothing twice');

-- Export of one graph
SELECT set_eq($$SELECT quad.export(graph => 'http://x/g')$$, ARRAY['<http://x/s> <http://x/p> "nquads" <http://x/g> .'], 'one graph');
SELECT is((SELECT count(*) FROM quad.export('l', '')), 8::bigint, 'the default graph');
SELECT is((SELECT count(*) FROM quad.export('l', 'http://x/none')), 0::bigint, 'a graph that is not there');

-- Graph, base and store
SELECT quad.create_store('m');
SELECT is(quad.load_text('<s> <p> <o> .', base => 'http://y/', graph => 'http://y/g', store => 'm'), 1::bigint, 'graph, base, store');
SELECT set_eq($$SELECT quad.export('m')$$, ARRAY['<http://y/s> <http://y/p> <http://y/o> <http://y/g> .'], 'are observed');
SELECT is(quad.load_text('<http://y/s> <http://y/p> "in h" <http://y/h> .' || E'\n<http://y/s> <http://y/p> "in g" .', 'nquads',
          graph => 'http://y/g', store => 'm'), 2::bigint, 'quads');
SELECT set_eq($$SELECT quad.export('m', 'http://y/h')$$, ARRAY['<http://y/s> <http://y/p> "in h" <http://y/h> .'],
              'that name a graph stay in it');
SELECT quad.drop_store('m');

-- Blank nodes
SELECT quad.create_store('b');
SELECT is(quad.load_text('_:x <http://x/p> _:x, _:b1, [] .', store => 'b'), 3::bigint, 'blank nodes');
SELECT is(quad.load_text('_:x <http://x/p> _:x, _:b1, [] .', store => 'b'), 3::bigint, 'those of another document are others');
SELECT is((SELECT count(DISTINCT n) FROM quad_stores.b, LATERAL (VALUES (s), (o)) v (n)), 6::bigint, 'six nodes');
SELECT is((SELECT count(*) FROM quad_stores.b WHERE s = o), 2::bigint, 'one label is one node in its document');
SELECT quad.drop_store('b');

-- Odd but right
SELECT is(quad.load_text('', 'nt'), 0::bigint, 'an empty document');
SELECT is(quad.load_text('# only a comment', 'turtle'), 0::bigint, 'a comment');
SELECT is(quad.load_text('<http://x/1> <http://x/p> "\u00e9\t\"\\ \U0001F600" .', 'nt'), 1::bigint, 'escapes');
SELECT is((SELECT quad.decode(o)::text FROM quad_stores.l WHERE s = quad.find('<http://x/1>')), E'é\t"\\ 😀', 'are understood');
SELECT is(quad.load_text(E'<http://x/2> <http://x/p> "a" .\r\n<http://x/2> <http://x/p> "b" .', 'nt'), 2::bigint, 'CRLF');
SELECT is(quad.load_text((SELECT string_agg(format('<http://x/many> <http://x/p> "value %s" .', i), E'\n') FROM generate_series(1, 20000) i), 'nt'),
          20000::bigint, 'twenty thousand lines');
SELECT is((SELECT count(DISTINCT export) FROM quad.export() WHERE export LIKE '<http://x/many>%'), 20000::bigint, 'come back');
SELECT is(quad.load_text((SELECT string_agg(format('<http://x/many> <http://x/q> "value %s"@en-x-%s .', i, i % 100), E'\n') FROM generate_series(1, 1000) i), 'nt'),
          1000::bigint, 'a hundred languages');

-- Files, plain and compressed
-- Runs a command of the shell in the directory, with `input` in base64.
CREATE FUNCTION pg_temp.shell(command text, input bytea DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    directory text := (SELECT path FROM directory);
BEGIN
    EXECUTE format('COPY (SELECT %L) TO PROGRAM %L', replace(encode(input, 'base64'), E'\n', ''),
                   format('mkdir -p %1$s && cd %1$s && { %2$s; }', directory, command));
END $$;
CREATE TEMP TABLE lines AS SELECT convert_to(string_agg(format('<http://x/file> <http://x/p> "%s %s" .', repeat('x', 50), i), E'\n') || E'\n', 'UTF8') AS bytes
FROM generate_series(1, 3000) i;
SELECT pg_temp.shell('base64 -d > a.nt', bytes) FROM lines;
SELECT is(quad.load((SELECT path || '/a.nt' FROM directory)), 3000::bigint, 'a file');
SELECT is((SELECT count(*) FROM quad.load_progress), 0::bigint, 'no load is under way any more');
SELECT pg_temp.shell('for i in 1 2; do gzip -c a.nt; done > a.nt.gz; cp a.nt.gz a.nt.gz.ttl');
SELECT pg_temp.shell('for i in 1 2; do bzip2 -c a.nt; done > a.nt.bz2 || true');
SELECT pg_temp.shell('for i in 1 2; do zstd -qc a.nt; done > a.nt.zst || true');
SELECT quad.create_store('c');
SELECT CASE WHEN (pg_stat_file(file, true)).size > 0 THEN
           is(quad.load(file, store => 'c'), expected, 'members of ' || ending)
       ELSE skip('no program for ' || ending) END
FROM (SELECT path || '/a.nt.' || ending AS file, ending, CASE n WHEN 1 THEN 3000::bigint ELSE 0 END AS expected
      FROM directory, (VALUES (1, 'gz'), (2, 'bz2'), (3, 'zst')) v (n, ending) ORDER BY n) f;
SELECT is(quad.load((SELECT path || '/a.nt.gz.ttl' FROM directory), 'nt', store => 'c'), 0::bigint, 'the content tells the compression');
SELECT quad.drop_store('c');
SELECT pg_temp.shell('rm a.nt* && rmdir "$PWD"');

-- From the client
COPY quad.load_stdin FROM STDIN (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02');
<http://x/stdin> <http://x/p> "one, \"two\" and\tthree" .

# a comment
<http://x/stdin> <http://x/p> "in a graph" <http://x/stdin-graph> .
\.
SELECT is((SELECT count(*) FROM quad.export() WHERE export LIKE '<http://x/stdin>%'), 2::bigint, 'COPY from the client');
SET LOCAL quad.stdin_format = 'turtle';
SET LOCAL quad.stdin_base = 'http://z/';
SET LOCAL quad.stdin_graph = 'http://z/g';
COPY quad.load_stdin FROM STDIN (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02');
@prefix : <#> .
:a :b """several

lines""" ;
   :c <d> .
\.
SELECT set_eq($$SELECT quad.export(graph => 'http://z/g')$$, ARRAY[
    '<http://z/#a> <http://z/#b> "several\n\nlines" <http://z/g> .',
    '<http://z/#a> <http://z/#c> <http://z/d> <http://z/g> .'], 'Turtle, with base and graph');
SELECT lives_ok($$INSERT INTO quad.load_stdin VALUES ('<http://z/e>'), ('  <f> 1 .')$$, 'INSERT works too');
SELECT is((SELECT count(*) FROM quad.export() WHERE export LIKE '<http://z/e>%'), 1::bigint, 'and joins the lines');

-- Nothing is left of a load that is rolled back.
SAVEPOINT before;
SELECT is(quad.load_text('<http://x/gone> <http://x/gone-p> "gone forever"@x-gone .'), 1::bigint, 'a load');
ROLLBACK TO before;
SELECT is((SELECT count(*) FROM quad.export() WHERE export LIKE '%gone%'), 0::bigint, 'rolled back: no quads');
SELECT is(quad.find('<http://x/gone-p>'), NULL, 'no terms');
SELECT is((SELECT count(*) FROM quad.languages WHERE tag = 'x-gone'), 0::bigint, 'no language');
SELECT is_empty($$SELECT quad.verify('quad_stores.l')$$, 'the store is sound');
SELECT is_empty($$SELECT quad.verify('quad.term_ids')$$, 'and the dictionary');

-- Rights
CREATE ROLE load_test_user;
GRANT SELECT, INSERT ON quad_stores.l TO load_test_user;
SET LOCAL ROLE load_test_user;
SELECT is(quad.load_text('<http://x/user> <http://x/p> "by a user" .'), 1::bigint, 'INSERT is enough to load');
SELECT is((SELECT count(*) FROM quad.export() WHERE export LIKE '<http://x/user>%'), 1::bigint, 'SELECT to export');

SELECT finish();
ROLLBACK;
