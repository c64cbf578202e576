-- Documents that cannot be loaded, and what is said about them.
BEGIN;
SELECT plan(52);
SELECT quad.create_store('l');
SET LOCAL quad.store = 'l';

-- State, message and detail of the error of a statement
CREATE FUNCTION pg_temp.complaint(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    EXECUTE statement;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN SQLSTATE || ' ' || SQLERRM || ' | ' || detail;
END $$;
CREATE FUNCTION pg_temp.refused(document text, format text, pattern text) RETURNS text LANGUAGE sql AS
$$SELECT alike(pg_temp.complaint(format('SELECT quad.load_text(%L, %L)', document, format)), pattern, format || ': ' || left(document, 60))$$;

SELECT pg_temp.refused(E'<http://x/s> <http://x/p> 1 .', 'nt', '22P02 invalid N-Triples: %, line 1, column 27.');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> "a" .\n\n<http://x/s> "p" "a" .\n', 'nt', '22P02 invalid N-Triples: % | Document given as text, line 3, column 14.');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> <http://x/o>\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> <http://x/o> <http://x/g> .\n', 'nt', '22P02 invalid N-Triples: %, line 1, column 40.');
SELECT pg_temp.refused(E'<http://x/a b> <http://x/p> <http://x/o> .\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(E'<relative> <http://x/p> <http://x/o> .\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> "open\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> "\\q" .\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> "a"@1 .\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(E'<http://x/s> _:p "a" .\n', 'nt', '22P02 invalid N-Triples: %, line 1, column %');
SELECT pg_temp.refused(repeat(E'<http://x/s> <http://x/p> "a" .\n', 100000) || 'rubbish', 'nt', '22P02 invalid N-Triples: %, line 100001, column 1.');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> <http://x/o> "g" .\n', 'nquads', '22P02 invalid N-Quads: %, line 1, column %');
SELECT pg_temp.refused(E'<http://x/s> <http://x/p> <http://x/o> <http://x/g> <http://x/h> .\n', 'nquads', '22P02 invalid N-Quads: %, line 1, column %');
SELECT pg_temp.refused(E'@prefix a: <http://x/> .\na:s b:p 1 .', 'turtle', '22P02 invalid Turtle: %prefix%, line 2, column 5.');
SELECT pg_temp.refused(E'@prefix a: <http://x/> .\na:s a:p (1 2 .', 'turtle', '22P02 invalid Turtle: %, line 2, column %');
SELECT pg_temp.refused(E'<http://x/a b> <http://x/p> 1 .', 'turtle', '22P02 invalid Turtle: %, line 1, column %');
SELECT pg_temp.refused(E'<s> <http://x/p> 1 .', 'turtle', '22P02 invalid Turtle: %, line 1, column %');
SELECT pg_temp.refused(E'@prefix a: <http://x/> .\na:s a:p """open', 'turtle', '22P02 invalid Turtle: %, line 2, column %');
SELECT pg_temp.refused(E'@prefix a: <http://x/> .\na:g { a:s a:p a:o ', 'trig', '22P02 invalid TriG: %, line 2, column %');
SELECT pg_temp.refused(E'@prefix a: <http://x/> .\na:g { a:h { a:s a:p a:o } }', 'trig', '22P02 invalid TriG: %, line 2, column %');
SELECT pg_temp.refused(E'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<a></b>', 'xml', '22P02 invalid RDF/XML: %, line 2.');
SELECT pg_temp.refused(E'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n\n<rdf:Description', 'xml', '22P02 invalid RDF/XML: %, line 3.');
SELECT pg_temp.refused(E'not xml', 'xml', '22P02 invalid RDF/XML: %');
SELECT pg_temp.refused(E'{"@id": \n', 'jsonld', '22P02 invalid JSON-LD: %, line 2, column %');
SELECT pg_temp.refused(E'{"@context": 42}', 'jsonld', '22P02 invalid JSON-LD: %');
SELECT pg_temp.refused(E'{"@context": "http://example.org/remote"}', 'jsonld', '22P02 invalid JSON-LD: %');
SELECT pg_temp.refused('<http://x/s> <http://x/p> "' || repeat('x', 1048576) || '" .', format, '54000 term of 1048577 bytes is too long%')
FROM unnest(ARRAY['nt', 'turtle']) format;
SELECT pg_temp.refused('<http://x/' || repeat('x', 1048576) || '> <http://x/p> "a" .', 'nt', '54000 term of % bytes is too long%, line 1.');
SELECT pg_temp.refused(repeat('x', 20000000), 'nt', '54000 line is longer than 16777216 bytes | %, line 1.');

-- Arguments
SELECT throws_ok($$SELECT quad.load_text('x', 'word')$$, '22023', 'format "word" is not known');
SELECT throws_ok($$SELECT quad.load_text('', graph => 'no iri')$$, '22023', NULL, 'a graph that is no IRI');
SELECT throws_ok($$SELECT quad.load_text('', base => 'no iri')$$, '22023', NULL, 'a base that is no IRI');
SELECT throws_ok($$SELECT quad.load_text('', store => 'none')$$, '42P01', 'store "none" does not exist');
SELECT throws_ok($$SELECT quad.load_text(NULL)$$, '22004', 'argument "document" must not be null');
SELECT throws_ok($$SELECT quad.load('/tmp/none/none.nt')$$, '58P01', 'could not open file "/tmp/none/none.nt": No such file or directory');
SELECT throws_ok($$SELECT quad.load('/tmp/none')$$, '22023', 'the name of file "/tmp/none" does not tell its format');
SELECT throws_ok($$SELECT quad.load('/tmp', 'nt')$$, '42809', '"/tmp" is a directory');

-- The client's way
SET LOCAL quad.stdin_format = 'turtle';
SELECT alike(pg_temp.complaint($$INSERT INTO quad.load_stdin VALUES ('@prefix a: <http://x/> .'), ('a:s b:p 1 .')$$),
             '22P02 invalid Turtle: % | Document sent by the client, line 2, column 5.', 'an error in the second line');
SELECT lives_ok($$INSERT INTO quad.load_stdin VALUES ('<http://x/s> <http://x/p> 1 .')$$, 'does not stand in the way of the next');
-- The text format of COPY would change backslashes, CSV the quotes.
SAVEPOINT copy;
\set ON_ERROR_STOP off
COPY quad.load_stdin FROM PROGRAM 'true';
\set text :SQLSTATE
ROLLBACK TO copy;
COPY quad.load_stdin FROM PROGRAM 'true' (FORMAT csv);
\set csv :SQLSTATE
ROLLBACK TO copy;
\set ON_ERROR_STOP on
SELECT is(:'text'::text, '0A000', 'COPY in text format is refused');
SELECT is(:'csv'::text, '0A000', 'so is CSV with quotes');
SELECT lives_ok($$COPY quad.load_stdin FROM PROGRAM 'true' (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02')$$, 'CSV without any is right');
SET LOCAL quad.stdin_format = 'word';
SELECT throws_ok($$INSERT INTO quad.load_stdin VALUES ('')$$, '22023', 'format "word" is not known');

-- A load would write past what the table asks of rows.
ALTER TABLE quad_stores.l ADD CONSTRAINT l_default CHECK (g = 0);
SELECT throws_ok($$SELECT quad.load_text('<http://x/s> <http://x/p> 3 .')$$, '0A000',
                 'cannot load into store "l", whose table has constraints, triggers or rules', 'a constraint');
SELECT throws_ok($$SELECT quad.update('INSERT DATA { GRAPH <http://x/s> { <http://x/s> <http://x/p> 3 } }')$$, '23514', NULL, 'updates are tested');
ALTER TABLE quad_stores.l DROP CONSTRAINT l_default;
CREATE FUNCTION pg_temp.none() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER l_none BEFORE INSERT ON quad_stores.l FOR EACH ROW EXECUTE FUNCTION pg_temp.none();
SELECT throws_ok($$SELECT quad.load_text('<http://x/s> <http://x/p> 3 .')$$, '0A000', NULL, 'a trigger');
ALTER TABLE quad_stores.l DISABLE TRIGGER l_none;
SELECT is(quad.load_text('<http://x/s> <http://x/p> 1 .'), 0::bigint, 'a trigger that is off');
DROP TRIGGER l_none ON quad_stores.l;

-- Nothing of all that is in the store.
SELECT results_eq('SELECT quad.export()', ARRAY['<http://x/s> <http://x/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'], 'one quad is in the store');
SELECT is(quad.find('<http://x/h>'), NULL, 'and no term of the others in the dictionary');

-- Rights
CREATE ROLE load_test_user;
SET LOCAL ROLE load_test_user;
SELECT throws_ok($$SELECT quad.load('/etc/hostname', 'nt')$$, '42501',
                 'must be superuser or have privileges of the pg_read_server_files role to load a file');
SELECT throws_ok($$SELECT quad.load_text('<http://x/s> <http://x/p> 2 .')$$, '42501', 'permission denied for store "l"');

SELECT finish();
ROLLBACK;
