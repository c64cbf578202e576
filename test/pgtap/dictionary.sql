-- The dictionary: terms and their ids.
BEGIN;
SELECT plan(97);
SET LOCAL search_path = public, quad;
CREATE FUNCTION pg_temp.term(text) RETURNS quad.term LANGUAGE sql AS 'SELECT quad.term_in($1::cstring)';

CREATE TEMP TABLE sample AS
SELECT row_number() OVER () AS n, text, pg_temp.term(text) AS term, inlined FROM (VALUES
    ('<http://example.org/a>', false),
    ('<http://example.org/a/very/long/path#and?more>', false),
    ('<urn:x>', false),
    ('"a string of more than seven bytes"', false),
    ('"another string that is long"', false),
    ('"short"', true),
    ('"shorter"', true),
    ('""', true),
    ('"été"', true),
    ('"chat"@fr', false),
    ('"chat"@en-gb', false),
    ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', true),
    ('"2"^^<http://www.w3.org/2001/XMLSchema#integer>', true),
    ('"2"^^<http://www.w3.org/2001/XMLSchema#long>', true),
    ('"01"^^<http://www.w3.org/2001/XMLSchema#integer>', false),
    ('"123456789012345678901234567890"^^<http://www.w3.org/2001/XMLSchema#integer>', false),
    ('"2.50"^^<http://www.w3.org/2001/XMLSchema#decimal>', true),
    ('"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', true),
    ('"-2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', true),
    ('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>', true),
    ('"1"^^<http://www.w3.org/2001/XMLSchema#boolean>', false),
    ('"1.0E0"^^<http://www.w3.org/2001/XMLSchema#double>', true),
    ('"NaN"^^<http://www.w3.org/2001/XMLSchema#double>', true),
    ('"2008-02-15T00:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>', true),
    ('"2008-02-15T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>', true),
    ('"2008-02-15"^^<http://www.w3.org/2001/XMLSchema#date>', true),
    ('"x"^^<http://example.org/type>', false),
    ('"y"^^<http://example.org/type>', false),
    ('_:b123', true)
) v (text, inlined);

CREATE TEMP TABLE encoded AS
SELECT n, text, term, inlined, quad.find(term) AS before, quad.encode(term) AS id FROM sample;

SELECT is(quad.decode(id), term, 'round trip of ' || text) FROM encoded ORDER BY n;
SELECT is(before IS NOT NULL, inlined, 'known without the dictionary or not: ' || text) FROM encoded ORDER BY n;
SELECT is((SELECT count(*) FROM encoded WHERE quad.find(term) = id), 29::bigint, 'all are found again');
SELECT is((SELECT count(*) FROM encoded WHERE quad.encode(term) = id), 29::bigint, 'and get no second id');
SELECT is((SELECT count(DISTINCT id) FROM encoded), 29::bigint, 'all ids differ');
SELECT cmp_ok((SELECT min(id) FROM encoded), '>', 0::bigint, 'ids are positive');

-- The operators on ids are those on terms.
SELECT is_empty(format(
    'SELECT a.text, b.text FROM encoded a, encoded b
     WHERE quad.%1$I(a.id, b.id) IS DISTINCT FROM quad.%1$I(a.term, b.term)', operator),
    'quad.' || operator || ' on ids') FROM unnest(ARRAY['eq', 'ne', 'lt', 'le', 'gt', 'ge']) operator;
SELECT is(quad.eq(0, (SELECT id FROM encoded WHERE n = 1)), NULL, 'the default graph equals nothing');

SELECT is(quad.find('<http://example.org/unknown>'), NULL, 'a term that is not there is not found');
SELECT is(quad.find('_:label'), NULL, 'nor is a label');
SELECT is(quad.decode(0), NULL, 'the default graph is no term');
SELECT throws_ok('SELECT quad.decode(-1)', '22023', '-1 is not a term id');
SELECT throws_ok('SELECT quad.decode(140737488355327)', '22023', 'term id 140737488355327 is not in the dictionary');
SELECT throws_ok('SELECT quad.decode((2::bigint << 59) | (SELECT id FROM encoded WHERE n = 1))', '22023', NULL,
                 'the tag of an id must fit its term');
SELECT isnt(quad.encode('_:label'), quad.encode('_:label'), 'a label means a new blank node in every call');

-- Many terms, more than one block of them
CREATE TEMP TABLE many AS
SELECT i, term, quad.encode(term) AS id
FROM generate_series(1, 5000) i, pg_temp.term(format('<http://example.org/%s/%s>', i % 7, i)) term;
SELECT is((SELECT count(*) FROM many WHERE quad.decode(id) = term AND quad.find(term) = id), 5000::bigint, '5000 terms');
SELECT is((SELECT count(DISTINCT id) FROM many), 5000::bigint, 'with 5000 ids');

-- Blocks end where an extent of numbers does.
SELECT quad.create_store('dictionary_test');
SELECT is(quad.load_text((SELECT string_agg(format('<http://example.org/s%s> <http://example.org/p> <http://example.org/o%s> .', i, i), E'\n')
                          FROM generate_series(1, 9000) i), 'nt', store => 'dictionary_test'), 9000::bigint, 'a document with 18001 terms');
SELECT is_empty('SELECT first_id FROM quad.terms WHERE extent <> first_id / 8192 OR extent <> (first_id + get_byte(data, 1) - 1) / 8192',
                'no block reaches into another extent');

-- Long terms
SELECT is(length(quad.decode(quad.encode(repeat('x', 1000000)::quad.term))::text), 1000000, 'a literal of 1,000,000 bytes');
SELECT is(quad.decode(quad.encode((SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) i)::quad.term))::text,
          (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) i), 'one that does not compress');
SELECT throws_ok($$SELECT quad.encode(repeat('x', 1048576)::quad.term)$$, '54000', NULL, 'one of 1 MB is too long');
SELECT is(quad.find(repeat('x', 1048576)::quad.term), NULL, 'and is not found');

-- An aborted subtransaction leaves nothing.
CREATE TEMP TABLE counts AS SELECT (SELECT count(*) FROM quad.terms) AS terms, (SELECT count(*) FROM quad.term_ids) AS ids,
                                   (SELECT count(*) FROM quad.languages) AS languages;
SAVEPOINT s;
SELECT is(quad.decode(quad.encode('<http://example.org/dropped>')), '<http://example.org/dropped>', 'a term');
SELECT is(quad.decode(quad.encode('"x"@tlh')), '"x"@tlh', 'and one in a new language');
ROLLBACK TO s;
SELECT is(quad.find('<http://example.org/dropped>'), NULL, 'rolled back: the term is gone');
SELECT is(quad.find('"x"@tlh'), NULL, 'the other too');
SELECT results_eq('SELECT (SELECT count(*) FROM quad.terms), (SELECT count(*) FROM quad.term_ids), (SELECT count(*) FROM quad.languages)',
                  'SELECT terms, ids, languages FROM counts', 'nothing is left in the tables');
SELECT is(quad.decode(quad.encode('"x"@sux')), '"x"@sux', 'the number of the language can be used again');
SELECT is(quad.decode(quad.encode('<http://example.org/dropped>')), '<http://example.org/dropped>', 'and the term added');

-- Parallel workers read the dictionary, with what this transaction has added.
CREATE TABLE many_for_workers AS SELECT term, id FROM many;
select set_config(name, 'on', true) from pg_settings where name in ('force_parallel_mode', 'debug_parallel_query') \g /dev/null
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
CREATE FUNCTION pg_temp.plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS off) ' || query;
END $$;
SELECT ok(string_agg(line, ' ') ~ 'Gather', 'workers are used') FROM pg_temp.plan(
    'SELECT count(*) FROM many_for_workers WHERE quad.decode(id) = term AND quad.find(term) = id') line;
SELECT is((SELECT count(*) FROM many_for_workers WHERE quad.decode(id) = term AND quad.find(term) = id), 5000::bigint,
          'and find all terms');
select set_config(name, 'off', true) from pg_settings where name in ('force_parallel_mode', 'debug_parallel_query') \g /dev/null

-- Without rights on the tables
CREATE ROLE dictionary_test_user;
SET LOCAL ROLE dictionary_test_user;
SELECT is(quad.decode(quad.encode('<http://example.org/by a user>'::text::quad.term)), '"<http://example.org/by a user>"',
          'everyone may add terms');
SELECT throws_ok('SELECT * FROM quad.terms', '42501', NULL, 'but not read the tables');
RESET ROLE;

SET LOCAL transaction_read_only = on;
SELECT throws_ok($$SELECT quad.encode('<http://example.org/read only>'::text::quad.term)$$, '25006', NULL,
                 'a transaction that may not write adds none');
SELECT lives_ok($$SELECT quad.encode('<http://example.org/a>')$$, 'but gets ids that are there');

SELECT finish();
ROLLBACK;
