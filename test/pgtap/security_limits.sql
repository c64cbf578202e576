-- Queries that are too much end with an error, and the session goes on.
BEGIN;
SELECT plan(31);
SELECT quad.load_text(string_agg(format('<http://x/%s> <http://x/p> <http://x/%s> .', i % 1500, i * 7 % 1500), E'\n')) FROM generate_series(1, 1500) i;

-- Time
CREATE FUNCTION pg_temp.ends_in_time(query text, what text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE begun timestamptz := clock_timestamp(); ended boolean := false;
BEGIN
    -- WHEN OTHERS would not catch it.
    BEGIN
        PERFORM count(*) FROM quad.sparql(query);
    EXCEPTION WHEN query_canceled THEN ended := true;
    END;
    RETURN NEXT ok(ended, what);
    RETURN NEXT ok(clock_timestamp() - begun < interval '30 s', what || ', in time');
END $$;
SET statement_timeout = '300ms';
SELECT pg_temp.ends_in_time('SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STR(?a) != CONCAT(STR(?d), STR(?g))) }', 'a product');
SELECT pg_temp.ends_in_time('SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?a ?f', 'a sort');
SELECT pg_temp.ends_in_time('SELECT * { ?a (<http://x/p>|!<http://x/q>)* ?b . ?c (<http://x/p>/^<http://x/p>)* ?d . ?e ?f ?g }', 'paths');
SELECT pg_temp.ends_in_time('SELECT * { ?a ?b ?c . ?d ?e ?f FILTER(REGEX(CONCAT(STR(?a), STR(?d)), "^(h|t|p)+x$")) }', 'a regular expression');
SELECT pg_temp.ends_in_time('SELECT * { ?a ?b ?c . ?d ?e ?f FILTER NOT EXISTS { ?x ?y ?z FILTER(STR(?x) = CONCAT(STR(?a), STR(?d))) } }', 'NOT EXISTS');
RESET statement_timeout;
SELECT is(quad.ask('ASK { <http://x/1> <http://x/p> <http://x/7> }'), true, 'the session goes on');

-- Depth and length
CREATE FUNCTION pg_temp.too_much(query text, what text) RETURNS text LANGUAGE sql AS $$
    SELECT throws_ok(format('SELECT count(*) FROM quad.sparql(%L)', query), '54001', NULL, what)
$$;
SELECT pg_temp.too_much('SELECT * { ' || repeat('{ ', 100000) || repeat('} ', 100000) || '}', 'braces');
SELECT pg_temp.too_much('SELECT (' || repeat('(', 100000) || '1' || repeat(')', 100000) || ' AS ?x) {}', 'parentheses');
SELECT pg_temp.too_much('SELECT (' || repeat('!', 100000) || '1 AS ?x) {}', 'negations');
SELECT pg_temp.too_much('SELECT (' || repeat('-', 100000) || '1 AS ?x) {}', 'signs');
SELECT pg_temp.too_much('SELECT (1' || repeat(' + 1', 100000) || ' AS ?x) {}', 'sums');
SELECT pg_temp.too_much('SELECT (' || repeat('STR(', 100000) || '1' || repeat(')', 100000) || ' AS ?x) {}', 'calls');
SELECT pg_temp.too_much('SELECT * { ?s ' || repeat('(', 100000) || '<http://x/p>' || repeat(')*', 100000) || ' ?o }', 'paths');
SELECT pg_temp.too_much('SELECT * { ?s ' || repeat('^', 100000) || '<http://x/p> ?o }', 'inverse paths');
SELECT pg_temp.too_much('SELECT * { ?s <http://x/p>' || repeat('/<http://x/p>', 100000) || ' ?o }', 'sequences');
SELECT pg_temp.too_much('SELECT * { ?s ?p ' || repeat('[ ?q ', 100000) || '1' || repeat(' ]', 100000) || ' }', 'blank nodes');
SELECT pg_temp.too_much('SELECT * { ?s ?p ' || repeat('( ', 100000) || repeat(' )', 100000) || ' }', 'lists');
SELECT pg_temp.too_much('SELECT * { {}' || repeat(' UNION {}', 100000) || ' }', 'unions');
SELECT pg_temp.too_much('SELECT * { ' || repeat(' OPTIONAL { ?s ?p ?o }', 100000) || ' }', 'optionals');
SELECT pg_temp.too_much('SELECT * { ' || repeat('{ SELECT * { ', 100000) || repeat('} }', 100000) || ' }', 'subqueries');
SELECT pg_temp.too_much('ASK { FILTER NOT EXISTS { ' || repeat('FILTER NOT EXISTS { ', 100000) || repeat(' }', 100000) || ' } }', 'NOT EXISTS');
SELECT pg_temp.too_much('SELECT * { ' || repeat('?s ?p ?o FILTER(?o > 1) ', 100000) || ' }', 'filters');
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { VALUES ?x { ' || repeat('1 2 <http://x/1> "a" ', 2500) || '} }')), 10000::bigint, 'long lists of values are fine');
SELECT is(quad.update('INSERT DATA { ' || (SELECT string_agg(format('<http://y/%s> <http://x/p> "%s" . ', i, i), '') FROM generate_series(1, 20000) i) || ' }'), 20000::bigint, 'so are long updates');
SELECT is(quad.ask('ASK { ?s ?p "' || repeat('x', 3000000) || '" }'), false, 'a literal of three million characters is in no store');
SELECT throws_ok(format('SELECT quad.update(%L)', 'INSERT DATA { <http://x/s> <http://x/p> "' || repeat('x', 3000000) || '" }'), '54000', NULL, 'and cannot be put into one');

SELECT * FROM finish();
ROLLBACK;
