-- Cursors WITH HOLD over the functions that answer: read to the end while the transaction commits.
SELECT plan(6);
SELECT quad.create_store('held');
INSERT INTO quad_stores.held SELECT quad.int_id(i), quad.int_id(1), quad.int_id(i % 7), 0 FROM generate_series(1, 5000) i;
CREATE FUNCTION left_in(cursor refcursor) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    MOVE FORWARD ALL FROM cursor;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

BEGIN;
DECLARE solutions CURSOR WITH HOLD FOR SELECT quad.sparql('SELECT ?s ?o { ?s ?p ?o }', 'held');
DECLARE fetched CURSOR WITH HOLD FOR SELECT quad.sparql('SELECT ?s ?o { ?s ?p ?o }', 'held');
DECLARE triples CURSOR WITH HOLD FOR SELECT quad.construct('CONSTRUCT WHERE { ?s ?p ?o }', 'held');
DECLARE pieces CURSOR WITH HOLD FOR SELECT quad.sparql_json_stream('SELECT ?s ?o { ?s ?p ?o }', 'held');
DECLARE others CURSOR WITH HOLD FOR SELECT a.s FROM quad_stores.held a, quad_stores.held b WHERE a.s = b.s;
MOVE 3 FROM fetched;
MOVE 1 FROM pieces;
COMMIT;
SELECT is(left_in('solutions'), 5000::bigint, 'solutions');
SELECT is(left_in('fetched'), 4997::bigint, 'some have been fetched before');
SELECT is(left_in('triples'), 5000::bigint, 'triples');
SELECT cmp_ok(left_in('pieces'), '>', 1::bigint, 'pieces of an answer');
SELECT is(left_in('others'), 5000::bigint, 'a join');
CLOSE solutions;
CLOSE fetched;
CLOSE triples;
CLOSE pieces;
CLOSE others;
SELECT is_empty('SELECT name FROM pg_cursors WHERE is_holdable', 'nothing else is kept');
DROP FUNCTION left_in;
SELECT quad.drop_store('held');
SELECT * FROM finish();
