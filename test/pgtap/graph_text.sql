-- quad.construct_text and quad.describe_text: graphs as documents.
BEGIN;
SELECT plan(29);

SELECT quad.load_text($$
    PREFIX : <http://x/>
    :a :p "plain", "it's \"quoted\" \\ <&> \t\r\n", "Haus"@de, 1, 01.0, "x"^^:type, :b, [ :q :a ] .
$$);

-- Every format comes back as the same graph.
CREATE FUNCTION pg_temp.triples(store text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT regexp_replace(line, '_:b\d+', '_:n', 'g') FROM quad.export(store) line
$$;
CREATE FUNCTION pg_temp.round_trip(format text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE store text := 'back_' || md5(format);
BEGIN
    PERFORM quad.create_store(store);
    PERFORM quad.load_text(quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', format), format, store => store);
    RETURN set_eq(format('SELECT pg_temp.triples(%L)', store), $q$SELECT pg_temp.triples('main')$q$, format);
END $$;
SELECT pg_temp.round_trip(f) FROM unnest(ARRAY['turtle', 'nt', 'xml', 'jsonld', 'nquads', 'trig', 'text/turtle', 'application/rdf+xml']) f;
SELECT is((SELECT count(*) FROM quad.export('back_' || md5('xml'))), 9::bigint, 'the triples are there');

SELECT is(quad.construct_text('CONSTRUCT { <http://x/a> <http://x/n> ?o } WHERE { <http://x/a> ?p ?o FILTER(isIRI(?o)) }', 'nt'),
          E'<http://x/a> <http://x/n> <http://x/b> .\n', 'N-Triples');
SELECT is(quad.construct_text('CONSTRUCT { ?s ?p 1 } WHERE { ?s ?p "plain" }'), E'<http://x/a> <http://x/p> 1 .\n', 'Turtle by default');
SELECT is(quad.construct_text('CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(false) }', 'nt'), '', 'an empty graph');
SELECT is(quad.construct_text('CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(false) }', 'jsonld'), '[]', 'an empty graph');
SELECT ok(quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', 'xml') LIKE '<?xml%', 'RDF/XML');
SELECT is(jsonb_array_length(quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', 'jsonld')::jsonb), 2, 'JSON-LD has a node for each subject');
SELECT is((SELECT count(*) FROM regexp_split_to_table(rtrim(quad.describe_text('DESCRIBE <http://x/a>', 'nt'), E'\n'), E'\n')), 9::bigint,
          'DESCRIBE, with what its blank nodes lead to');
SELECT throws_ok($$SELECT quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', 'pdf')$$, '22023', 'format "pdf" is not known', 'a format that is none');
SELECT throws_ok($$SELECT quad.construct_text('SELECT * { ?s ?p ?o }')$$, '42809', NULL, 'SELECT has no graph');
SELECT throws_ok($$SELECT quad.construct_text('CONSTRUCT { ?s <http://x/1> ?o } WHERE { ?s ?p ?o }', 'xml')$$, '22P05', NULL,
                 'a predicate that is no XML name');
-- A type that is no XML name is written as a property, wherever it comes among the triples of its subject.
SELECT quad.create_store('typed'), quad.create_store('typed_back');
SELECT quad.load_text($$
    PREFIX : <http://x/>
    :s a <http://x/138875005>, <http://x/c/>, :Named ; :p 1 . :t :p 2 ; a <http://x/c/> . :u :p 3 .
$$, store => 'typed');
SELECT ok(quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', 'xml', 'typed') NOT LIKE '%<oxprefix: %',
          'no element without a name');
SELECT quad.load_text(quad.construct_text('CONSTRUCT WHERE { ?s ?p ?o }', 'xml', 'typed'), 'xml',
                      store => 'typed_back');
SELECT set_eq($$SELECT quad.export('typed_back')$$, $$SELECT quad.export('typed')$$, 'types that are no XML names');
SELECT throws_ok($$SELECT quad.construct_text('CONSTRUCT { ?s a <http://x/1> } WHERE { ?s ?p 3 }', 'xml', 'typed')$$,
                 '22P05', NULL, 'a subject with nothing else');
SELECT throws_ok($$SELECT quad.construct_text('CONSTRUCT { ?s ?p "\u0001" } WHERE { ?s ?p ?o }', 'xml')$$, '22P05', NULL,
                 'a character that XML does not have');
SELECT ok(quad.sparql_xml('SELECT ("a\rb\r\nc" AS ?x) {}') LIKE E'%<literal>a&#13;b&#13;\nc</literal>%', 'solutions in XML keep line ends');
SELECT throws_ok($$SELECT quad.sparql_xml('SELECT ("\u0001" AS ?x) {}')$$, '22P05',
                 'the answer cannot be written as XML: a literal contains the character U+0001', 'or have no such character');
SELECT throws_ok($$SELECT quad.sparql_xml_stream('SELECT ?x { VALUES ?x { 1 "\uFFFE"@en } }')$$, '22P05', NULL, 'in pieces, too');
SELECT is(quad.sparql_csv('SELECT ?x ?y { VALUES (?x ?y) { (<http://x/Paris,_Texas> "a,b") (<http://x/a> 1) } }'),
          E'x,y\r\n"http://x/Paris,_Texas","a,b"\r\nhttp://x/a,1\r\n', 'IRIs with commas in CSV');
SELECT lives_ok($$SELECT quad.sparql_csv('SELECT ("\u0001" AS ?x) {}')$$, 'others have');
SELECT lives_ok($$SELECT quad.construct_text('CONSTRUCT { ?s <http://x/1> ?o } WHERE { ?s ?p ?o }', 'jsonld')$$, 'and is one elsewhere');

SELECT * FROM finish();
ROLLBACK;
