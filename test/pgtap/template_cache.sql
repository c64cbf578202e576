-- The cache of templates: queries that differ in their constants only share a translation and its plan.
BEGIN;
SELECT plan(86);

SELECT quad.load_text($$
    PREFIX : <http://x/>
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    :a :p :b , 1 , "one"@en . :b :p :c , 2 , "two"@en . :c :p :d , 3 , "three"@de , "03"^^xsd:integer .
    :a :q "a rather long string" . :b :q "another rather long string" . :c :q "short" .
    :a a :C . :b a :D .
$$, 'ttl');
SELECT quad.template_cache_reset();

-- The objects of a query's variable ?o, without angle brackets, datatypes and the like.
CREATE FUNCTION pg_temp.o(query text, store text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(substring(x ->> 'o' FROM '^(?:<http://x/|")?([^>"]*)'), ' ' ORDER BY x ->> 'o' COLLATE "C"), '')
    FROM quad.sparql('PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ' || query, store) x
$$;
CREATE FUNCTION pg_temp.hits() RETURNS bigint LANGUAGE sql AS 'SELECT hits FROM quad.template_cache_stats()';
CREATE FUNCTION pg_temp.misses() RETURNS bigint LANGUAGE sql AS 'SELECT misses FROM quad.template_cache_stats()';
-- Do both queries share a template, and which answers do they give?
CREATE FUNCTION pg_temp.pair(first text, second text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE one text; two text;
BEGIN
    PERFORM quad.template_cache_reset();
    one := pg_temp.o(first);
    two := pg_temp.o(second);
    RETURN format('%s: %s / %s', CASE pg_temp.hits() WHEN 1 THEN 'shared' ELSE 'apart' END, one, two);
END $$;

-- What is shared, and that each query gets its own answer.
SELECT is(pg_temp.pair('SELECT ?o { :a :p ?o FILTER isIRI(?o) }', 'SELECT ?o { :b :p ?o FILTER isIRI(?o) }'),
          'shared: b / c', 'another subject');
SELECT is(pg_temp.pair('SELECT ?o { :a :p ?o FILTER isIRI(?o) }', E'SELECT  ?o\n{ <http://x/b> :p ?o # why not\n FILTER isIRI(?o) }'),
          'shared: b / c', 'another way to write it');
SELECT is(pg_temp.pair('SELECT ?o { ?o :q "a rather long string" }', 'SELECT ?o { ?o :q """another rather long string""" }'),
          'shared: a / b', 'another string');
SELECT is(pg_temp.pair('SELECT ?o { ?o :q "a rather long string" }', 'SELECT ?o { ?o :q "nobody has this one" }'),
          'shared: a / ', 'a constant that is not in the dictionary');
SELECT is(pg_temp.pair('SELECT ?o { ?o :q "nobody has this one" }', 'SELECT ?o { ?o :q "a rather long string" }'),
          'shared:  / a', 'and the other way round');
SELECT is(pg_temp.pair('SELECT ?o { ?s :p ?o FILTER(?o > 1) }', 'SELECT ?o { ?s :p ?o FILTER(?o > 2) }'),
          'shared: 03 2 3 / 03 3', 'another number');
SELECT is(pg_temp.pair('SELECT ?o { VALUES ?o { :a :nobody :b } }', 'SELECT ?o { VALUES ?o { :unheard :c :of } }'),
          'shared: a b nobody / c of unheard', 'VALUES with terms that nobody knows');
SELECT is(pg_temp.pair('SELECT ?o { :a a :C BIND("long enough a text" AS ?o) }', 'SELECT ?o { :b a :D BIND("another of these texts" AS ?o) }'),
          'shared: long enough a text / another of these texts', 'classes and BIND');
SELECT is(pg_temp.pair('SELECT ?o { ?o :q ?t FILTER regex(?t, "^a r") }', 'SELECT ?o { ?o :q ?t FILTER regex(?t, "^an") }'),
          'shared: a / b', 'another pattern');
SELECT is(pg_temp.pair('SELECT ?o { :a :p+ ?o FILTER isIRI(?o) }', 'SELECT ?o { :b :p+ ?o FILTER isIRI(?o) }'),
          'shared: b c d / c d', 'the start of a path');
SELECT is(pg_temp.pair('SELECT ?o { ?s :p ?o FILTER(?o = "one"@en) }', 'SELECT ?o { ?s :p ?o FILTER(?o = "two"@en) }'),
          'shared: one / two', 'another language string');

-- What is not.
SELECT is(pg_temp.pair('SELECT ?o { ?o :p 1 }', 'SELECT ?o { ?o :p "one"@en }'), 'apart: a / a', 'a number and a string');
SELECT is(pg_temp.pair('SELECT ?o { ?o :p 3 }', 'SELECT ?o { ?o :p 03 }'), 'apart: c / c', 'a number and another way to write it');
SELECT is(pg_temp.pair('SELECT ?o { ?o :p 1 }', 'SELECT ?o { ?o :p :b }'), 'apart: a / a', 'a number and an IRI');
SELECT is(pg_temp.pair('SELECT ?o { ?o :q "short" }', 'SELECT ?o { ?o :q "a rather long string" }'),
          'apart: c / a', 'a string that its id holds and one that it does not');
SELECT is(pg_temp.pair('SELECT ?o { ?s :p ?o FILTER(?o = "one"@en) }', 'SELECT ?o { ?s :p ?o FILTER(?o = "three"@de) }'),
          'apart: one / three', 'another language');
SELECT is(pg_temp.pair('SELECT ?o { :a :q ?o }', 'SELECT ?o { :a :p ?o FILTER isIRI(?o) }'),
          'apart: a rather long string / b', 'another predicate');
SELECT is(pg_temp.pair('SELECT ?o { ?o :p* :c FILTER(?o != :b) }', 'SELECT ?o { ?o :p* :c FILTER(?o != :c) }'),
          'apart: a c / a b', 'equal constants');
SELECT is(pg_temp.pair('SELECT ?o { ?s :p ?o } ORDER BY ?o LIMIT 1', 'SELECT ?o { ?s :p ?o } ORDER BY ?o LIMIT 2'),
          'apart: b / b c', 'another limit');
SELECT is(pg_temp.pair('SELECT ?o { :a a :C BIND(true AS ?o) FILTER(?o) }', 'SELECT ?o { :a a :C BIND(false AS ?o) FILTER(?o) }'),
          'apart: true / ', 'booleans');
SELECT is(pg_temp.pair('SELECT (GROUP_CONCAT(?n; SEPARATOR="+") AS ?o) { SELECT ?n { :a :p ?n FILTER isNumeric(?n) } }',
                       'SELECT (GROUP_CONCAT(?n; SEPARATOR="-") AS ?o) { SELECT ?n { :b :p ?n FILTER isNumeric(?n) } }'),
          'apart: 1 / 2', 'separators');
SELECT is(pg_temp.pair('SELECT ?o { ?x :p 1 BIND(xsd:string("5") AS ?o) }', 'SELECT ?o { ?x :p 1 BIND(xsd:integer("5") AS ?o) }'),
          'apart: 5 / 5', 'functions');
SELECT is(pg_temp.pair('PREFIX y: <http://x/> SELECT ?o { y:a :q ?o }', 'PREFIX y: <http://y/> SELECT ?o { y:a :q ?o }'),
          'apart: a rather long string / ', 'another meaning of a prefix');
SELECT is(pg_temp.pair('SELECT ?o { ?x a :C ; a ?o }', 'PREFIX r: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> SELECT ?o { ?x a :C ; a ?o }'),
          'apart: C / C', 'another prologue');
-- A constant that is as good as a predicate of the template.
SELECT is(pg_temp.pair('SELECT ?o { ?s :p ?x . ?x :q ?o FILTER(?s = :a) }', 'SELECT ?o { ?s :p ?x . ?x :q ?o FILTER(?s = :p) }'),
          'apart: another rather long string / ', 'a constant that equals a predicate');
SELECT is(pg_temp.pair('SELECT ?o { VALUES ?o { :unknown1 :unknown2 } FILTER(?o = :unknown3) }',
                       'SELECT ?o { VALUES ?o { :unknown4 :unknown5 } FILTER(?o = :unknown5) }'),
          'apart:  / unknown5', 'equal constants that are not in the dictionary');

-- The base IRI and the settings are part of the template.
SELECT quad.template_cache_reset();
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { <a> ?p ?o }', base => 'http://x/')), 5::bigint, 'a base');
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { <a> ?p ?o }', base => 'http://y/')), 0::bigint, 'and another one');
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { <a> ?p ?o }', base => 'http://x/')), 5::bigint, 'and the first again');
SELECT results_eq('SELECT hits, misses FROM quad.template_cache_stats()', 'VALUES (1::bigint, 2::bigint)', 'are two templates');

-- What can be seen of the cache.
SELECT quad.template_cache_reset();
SELECT pg_temp.o('SELECT ?o { :a :p ?o }'), pg_temp.o('SELECT ?o { :b :p ?o }'), pg_temp.o('SELECT ?o { :c :p ?o }');
SELECT results_eq('SELECT kind, store, template, hits FROM quad.template_cache()',
    $$VALUES ('SELECT', 'quad_stores.main', 'PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?o { $1 :p ?o }', 2::bigint)$$,
    'the template and its hits');
SELECT ok((SELECT generic_plans + custom_plans FROM quad.template_cache()) >= 3, 'its plans');
SELECT results_eq('SELECT templates, hits, misses, evictions FROM quad.template_cache_stats()', 'VALUES (1::bigint, 2::bigint, 1::bigint, 0::bigint)', 'the counters');
SELECT ok(quad.ask('ASK { <http://x/a> ?p ?o }') AND NOT quad.ask('ASK { <http://x/x> ?p ?o }'), 'ASK');
SELECT is((SELECT count(*) FROM quad.construct('CONSTRUCT { ?s ?p <http://x/new1> } { ?s ?p "a rather long string" }')), 1::bigint, 'CONSTRUCT');
SELECT is((SELECT object::text FROM quad.construct('CONSTRUCT { ?s ?p <http://x/new2> } { ?s ?p "another rather long string" }')),
          'http://x/new2', 'CONSTRUCT with another constant');
SELECT is((SELECT count(*) FROM quad.describe('DESCRIBE <http://x/a>')), 5::bigint, 'DESCRIBE');
SELECT is((SELECT count(*) FROM quad.describe('DESCRIBE <http://x/c>')), 5::bigint, 'DESCRIBE with another constant');
SELECT results_eq('SELECT kind, hits FROM quad.template_cache() ORDER BY kind COLLATE "C"',
    $$VALUES ('ASK', 1::bigint), ('CONSTRUCT', 1::bigint), ('DESCRIBE', 1::bigint), ('SELECT', 2::bigint)$$, 'all forms have templates');

-- Size and order of eviction.
SET LOCAL quad.template_cache_size = 2;
SELECT quad.template_cache_reset();
SELECT pg_temp.o('SELECT ?o { :a :p ?o }'), pg_temp.o('SELECT ?o { :a :q ?o }'), pg_temp.o('SELECT ?o { :b :p ?o }'), pg_temp.o('SELECT ?o { ?o :p :b }');
SELECT results_eq('SELECT substring(template FROM ''{.*'') FROM quad.template_cache()', $$VALUES ('{ ?o :p $1 }'), ('{ $1 :p ?o }')$$,
    'the one that was not used for longest has gone');
SELECT is((SELECT evictions FROM quad.template_cache_stats()), 1::bigint, 'and was counted');
SET LOCAL quad.template_cache_size = 0;
SELECT is(pg_temp.o('SELECT ?o { :a :p ?o FILTER isIRI(?o) }'), 'b', 'no cache, same answer');
SET LOCAL quad.template_cache_size = 200;

-- Generic and custom plans.
SET LOCAL quad.template_plans = generic;
SELECT quad.template_cache_reset();
SELECT is(pg_temp.o('SELECT ?o { :a :p ?o FILTER isIRI(?o) }') || pg_temp.o('SELECT ?o { :b :p ?o FILTER isIRI(?o) }'), 'bc', 'a generic plan');
SELECT is((SELECT custom_plans FROM quad.template_cache()), 0::bigint, 'is the only one');
SET LOCAL quad.template_plans = custom;
SELECT is(pg_temp.o('SELECT ?o { :a :p ?o FILTER isIRI(?o) }') || pg_temp.o('SELECT ?o { :b :p ?o FILTER isIRI(?o) }'), 'bc', 'custom plans');
SELECT results_eq('SELECT generic_plans, custom_plans, hits FROM quad.template_cache()', 'VALUES (0::bigint, 2::bigint, 3::bigint)', 'of the same template');
SET LOCAL quad.template_plans = auto;

-- Where Quad Join does all joins there is one plan for all constants.
SELECT quad.template_cache_reset();
SELECT pg_temp.o('SELECT ?o { :a :p ?x . ?x :p ?o . ?o :q ?t }'), pg_temp.o('SELECT ?o { :b :p ?x . ?x :p ?o . ?o :q ?t }');
SELECT is((SELECT custom_plans FROM quad.template_cache()), 0::bigint, 'a plan for all constants');
SET LOCAL quad.enable_quad_join = off;
SELECT pg_temp.o('SELECT ?o { :a :p ?x . ?x :p ?o . ?o :q ?t }');
SELECT is((SELECT custom_plans FROM quad.template_cache()), 1::bigint, 'planned anew under other settings');
SET LOCAL quad.enable_quad_join = on;

-- A text that is its own template is kept when it comes again.
SELECT quad.template_cache_reset();
SELECT is(pg_temp.o('SELECT ?o { ?o :p 1 BIND("unused" AS ?x) }'), 'a', 'a constant that is not used');
SELECT is((SELECT templates FROM quad.template_cache_stats()), 0::bigint, 'makes no template');
SELECT is(pg_temp.o('SELECT ?o { ?o :p 1 BIND("unused" AS ?x) }'), 'a', 'a second time');
SELECT is(pg_temp.o('SELECT ?o { ?o :p 1 BIND("unused" AS ?x) }'), 'a', 'a third time');
SELECT results_eq('SELECT templates, hits FROM quad.template_cache_stats()', 'VALUES (1::bigint, 1::bigint)', 'it is kept');

-- Operators and functions are PostgreSQL's own, whatever the path.
CREATE SCHEMA evil;
CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
SET LOCAL search_path = evil, pg_catalog, public;
SELECT quad.template_cache_reset();
SELECT is((SELECT count(*)::text FROM quad.sparql('SELECT * { <http://x/a> <http://x/p> ?x . ?x <http://x/p> ?y }')), '3', 'under a hostile path');
SELECT is((SELECT count(*)::text FROM quad.sparql('SELECT * { <http://x/b> <http://x/p> ?x . ?x <http://x/p> ?y }')), '4', 'with a plan that is there');
SELECT ok(quad.sparql_json('SELECT * { <http://x/a> <http://x/p> ?x . ?x <http://x/p> ?y }') LIKE '%http://x/b%', 'in JSON');
RESET search_path;

-- A query within the run of another one of the same template.
CREATE FUNCTION pg_temp.next(term text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(coalesce(x ->> 'o', '') || ' ' || pg_temp.next(x ->> 'o'), ''), '')
    FROM quad.sparql(format('SELECT ?o { %s <http://x/p> ?o FILTER isIRI(?o) }', term)) x
$$;
SELECT is(pg_temp.next('<http://x/a>'), '<http://x/b> <http://x/c> <http://x/d> ', 'recursion');

-- Terms that come and go with a subtransaction.
SAVEPOINT s;
SELECT quad.load_text('<http://x/a> <http://x/p> <http://x/late> .', 'nt');
SELECT is(pg_temp.o('SELECT ?o { ?o :p :late }'), 'a', 'a new term');
ROLLBACK TO s;
SELECT is(pg_temp.o('SELECT ?o { ?o :p :late }'), '', 'is gone after a rollback');
SELECT quad.load_text('<http://x/b> <http://x/p> <http://x/late> .', 'nt');
SELECT is(pg_temp.o('SELECT ?o { ?o :p :late }'), 'b', 'and there again');

-- Updates keep the plans of their statements.
SELECT quad.template_cache_reset();
SELECT is(quad.update('PREFIX : <http://x/> INSERT DATA { :u1 :p 1 , 2 }'), 2::bigint, 'data');
SELECT is(quad.update('PREFIX : <http://x/> INSERT DATA { :u2 :p 1 . :u1 :p 1 }'), 1::bigint, 'other data');
SELECT is(quad.update('PREFIX : <http://x/> DELETE { :u1 :p ?o } INSERT { :u1 :r ?o } WHERE { :u1 :p ?o }'), 4::bigint, 'a pattern');
SELECT is(quad.update('PREFIX : <http://x/> DELETE { :u2 :p ?o } INSERT { :u2 :r ?o } WHERE { :u2 :p ?o }'), 2::bigint, 'the same with other constants');
SELECT is(quad.update('PREFIX : <http://x/> DELETE { :u3 :p ?o } INSERT { :u3 :r ?o } WHERE { :u3 :p ?o }'), 0::bigint, 'and with some that are new');
SELECT results_eq('SELECT update_plans, update_hits FROM quad.template_cache_stats()', 'VALUES (2::bigint, 3::bigint)', 'two plans');
SELECT is(pg_temp.o('SELECT ?o { :u1 :r ?o }') || '/' || pg_temp.o('SELECT ?o { :u2 :r ?o }') || '/' || pg_temp.o('SELECT ?o { :u1 :p ?o }'),
          '1 2/1/', 'did what they should');
SELECT is(quad.update('PREFIX : <http://x/> DELETE WHERE { ?s :r ?o }'), 3::bigint, 'and away');

-- A store that is dropped and made again.
SELECT quad.create_store('brief');
SELECT quad.load_text('<http://x/a> <http://x/p> <http://x/old> .', 'nt', store => 'brief');
SELECT is(pg_temp.o('SELECT ?o { :a :p ?o }', 'brief'), 'old', 'a store');
SELECT quad.drop_store('brief');
SELECT throws_ok($$SELECT pg_temp.o('SELECT ?o { :a :p ?o }', 'brief')$$, '42P01', NULL, 'is dropped');
SELECT quad.create_store('brief', orders => 'spog,ospg');
SELECT quad.load_text('<http://x/a> <http://x/p> <http://x/young> .', 'nt', store => 'brief');
SELECT is(pg_temp.o('SELECT ?o { :a :p ?o }', 'brief'), 'young', 'and made again');

-- Rights are those of whoever asks, each time.
CREATE ROLE template_reader;
GRANT SELECT ON quad_stores.brief TO template_reader;
SET LOCAL ROLE template_reader;
SELECT is((SELECT count(*) FROM quad.sparql('PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?o { :a :p ?o }', 'brief')),
          1::bigint, 'who may read');
RESET ROLE;
REVOKE SELECT ON quad_stores.brief FROM template_reader;
SET LOCAL ROLE template_reader;
SELECT throws_ok($$SELECT quad.sparql('PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?o { :a :p ?o }', 'brief')$$,
                 '42501', NULL, 'who may not any more');
RESET ROLE;
-- An error that is caught leaves the settings of the caller as they were.
CREATE SCHEMA own;
CREATE TABLE own.here (x int);
GRANT USAGE ON SCHEMA own TO template_reader;
GRANT SELECT ON own.here TO template_reader;
SET LOCAL search_path = own, public;
SET LOCAL ROLE template_reader;
DO $$ BEGIN PERFORM quad.sparql_json('SELECT * { ?s ?p ?o }', 'brief'); EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
SELECT lives_ok('SELECT * FROM here', 'the path is the one of the caller');
SELECT is(current_setting('join_collapse_limit'), '8', 'and so are the settings of the planner');
RESET ROLE;
RESET search_path;
GRANT SELECT ON quad_stores.brief TO template_reader;
SELECT quad.load_text('<http://x/b> <http://x/p> <http://x/other> .', 'nt', store => 'brief');
ALTER TABLE quad_stores.brief ENABLE ROW LEVEL SECURITY;
CREATE POLICY only_a ON quad_stores.brief FOR SELECT TO template_reader USING (s = quad.find('<http://x/a>'));
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { ?s ?p ?o }', 'brief')), 2::bigint, 'the owner sees all rows');
SET LOCAL ROLE template_reader;
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { ?s ?p ?o }', 'brief')), 1::bigint, 'the other role those of its policy');
RESET ROLE;
SELECT is((SELECT count(*) FROM quad.sparql('SELECT * { ?s ?p ?o }', 'brief')), 2::bigint, 'and the owner all again');

-- A plan for all constants that was chosen is chosen anew when PostgreSQL drops it: one plan to choose, one run of it.
SELECT quad.template_cache_reset();
SELECT pg_temp.o('SELECT ?o { :a :p ?x . ?x :p ?o . ?o :q ?t }'), pg_temp.o('SELECT ?o { :b :p ?x . ?x :p ?o . ?o :q ?t }');
SELECT results_eq('SELECT generic_plans, custom_plans FROM quad.template_cache()', 'VALUES (3::bigint, 0::bigint)', 'two runs of a plan for all');
ANALYZE quad_stores.main;
SELECT is(pg_temp.o('SELECT ?o { :a :p ?x . ?x :p ?o . ?o :q ?t }'), 'c', 'after an ANALYZE');
SELECT results_eq('SELECT generic_plans, custom_plans FROM quad.template_cache()', 'VALUES (2::bigint, 0::bigint)', 'chosen anew');
SELECT is(pg_temp.o('SELECT ?o { :a :p ?x . ?x :p ?o . ?o :q ?t }'), 'c', 'and once more');
SELECT results_eq('SELECT generic_plans, custom_plans FROM quad.template_cache()', 'VALUES (3::bigint, 0::bigint)', 'which is kept');

-- Where PostgreSQL orders patterns, what its plan for all constants costs is not what it costs for the first.
SELECT quad.load_text(string_agg(format('<http://x/s%1$s> <http://x/t> <http://x/%2$s> ; <http://x/label> <http://x/l%3$s> .', n,
           CASE WHEN n <= 3 THEN 'rare' WHEN n % 2 = 0 THEN 'common' ELSE 'other' END, n % 10), E'\n'), 'ttl')
FROM generate_series(1, 20000) n;
ANALYZE quad_stores.main;
CREATE FUNCTION pg_temp.labels(class text) RETURNS text LANGUAGE sql AS $$
    SELECT x ->> 'n' FROM quad.sparql(format(
        'PREFIX : <http://x/> SELECT (COUNT(*) AS ?n) { ?x :t :%s . ?x :label ?l FILTER EXISTS { :s1 :t ?any } }', class)) x
$$;
SELECT quad.template_cache_reset();
SELECT pg_temp.labels('rare') FROM generate_series(1, 5);
SELECT is(substring(pg_temp.labels('common') FROM '[0-9]+'), '9999', 'a constant that is like none before');
SELECT results_eq('SELECT generic_plans, custom_plans FROM quad.template_cache()', 'VALUES (0::bigint, 6::bigint)', 'is planned for');

-- Answers of more than a batch.
SELECT quad.load_text(string_agg(format('<http://x/many> <http://x/n> %s .', n), E'\n'), 'ttl') FROM generate_series(1, 2000) n;
SELECT results_eq($$SELECT count(*), count(DISTINCT object::text) FROM quad.construct('CONSTRUCT { ?s ?p ?o } { ?s <http://x/n> ?o . ?s ?p ?o }')$$,
    'VALUES (2000::bigint, 2000::bigint)', 'two batches and an empty one');

SELECT * FROM finish();
ROLLBACK;
