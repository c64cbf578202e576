-- quad.query: the answer to a SPARQL query as a table, inlined by the planner.
BEGIN;
SELECT plan(224);
SET search_path = public, quad;

SELECT quad.load_text($$
    PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    :ada :name "Ada"; :born 1815; :knows :grace, :alan .
    :grace :name "Grace"; :born 1906; :knows :alan .
    :alan :name "Alan"@en; :born "1912.0"^^xsd:decimal .
    :nobody :name "Nobody" .
    :v :smallint 7; :fraction 1.5; :double 2.5e3; :float "0.1"^^xsd:float; :infinite "INF"^^xsd:double; :huge 9223372036854775808;
       :true true; :one "1"^^xsd:boolean; :date "1815-12-10Z"^^xsd:date; :time "1815-12-10T06:30:00Z"^^xsd:dateTime; :wall "1815-12-10T06:30:00"^^xsd:dateTime;
       :uuid "0e37df36-f698-11e6-8dd4-cb9ced3df976"; :number "42"; :text "abc"; :german "abc"@de; :blank [] ; :duration "P1Y2M"^^xsd:duration; :json "{\"a\": 1}" .
$$);

-- Columns by name and by position
SELECT results_eq($$SELECT * FROM quad.query('PREFIX : <http://x/> SELECT ?name ?born { ?p :name ?name OPTIONAL { ?p :born ?born } }') AS t(name text, born int) ORDER BY name$$,
    $$VALUES ('Ada', 1815), ('Alan', 1912), ('Grace', 1906), ('Nobody', NULL)$$, 'columns by name; unbound is NULL');
SELECT results_eq($$SELECT * FROM quad.query('PREFIX : <http://x/> SELECT ?name ?born { ?p :name ?name ; :born ?born }') AS t(born bigint, name text) ORDER BY born$$,
    $$VALUES (1815::bigint, 'Ada'), (1906, 'Grace'), (1912, 'Alan')$$, 'in another order');
SELECT results_eq($$SELECT * FROM quad.query('PREFIX : <http://x/> SELECT ?name ?born { ?p :name ?name ; :born ?born }') AS t(born numeric) ORDER BY born$$,
    $$VALUES (1815::numeric), (1906), (1912.0)$$, 'and not all of them');
SELECT results_eq($$SELECT * FROM quad.query('PREFIX : <http://x/> SELECT ?name ?born { ?p :name ?name ; :born ?born }') AS t(a text, b int) ORDER BY b$$,
    $$VALUES ('Ada', 1815), ('Grace', 1906), ('Alan', 1912)$$, 'columns by position');
SELECT results_eq($$SELECT * FROM quad.query('PREFIX : <http://x/> SELECT ?firstName { ?p :name ?firstName }') AS t(firstName text) ORDER BY 1$$,
    $$VALUES ('Ada'), ('Alan'), ('Grace'), ('Nobody')$$, 'SQL folds names that are not quoted');
SELECT results_eq($$SELECT * FROM quad.query('PREFIX : <http://x/> SELECT ?n ?N { ?N :name ?n }') AS t("N" text, n text) ORDER BY 1 LIMIT 1$$,
    $$VALUES ('http://x/ada', 'Ada')$$, 'quoted ones count as they are written');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?name ?born { ?p <http://x/name> ?name ; <http://x/born> ?born }') AS t(nmae text, born int)$$, '42703',
    'the query has no column ?nmae', 'a name that the query does not have');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?ab ?aB { ?ab ?p ?aB }') AS t("AB" text)$$, '42702', NULL, 'a name that could be two');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?s ?o { ?s ?p ?o }') AS t(a text)$$, '42804', NULL, 'too few columns by position');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?s ?o { ?s ?p ?o }') AS t(a text, b text, c text)$$, '42804', NULL, 'too many');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?s { ?s ?p ?o }')$$, '42601', NULL, 'no column definition list');
SELECT throws_ok($$SELECT quad.query('SELECT ?s { ?s ?p ?o }')$$, '0A000', NULL, 'in a list of columns');
CREATE FUNCTION pg_temp.hint(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE hint text;
BEGIN
    EXECUTE statement;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
SELECT matches(pg_temp.hint($$SELECT * FROM quad.query('SELECT ?name ?born { ?p <http://x/name> ?name ; <http://x/born> ?born }') AS t(nmae text, born int)$$),
    'has the columns \?name, \?born', 'the hint has the names');

-- Each type. As a parameter of a plan for all values, the text is not known to the planner, and the function runs.
CREATE FUNCTION pg_temp.one(predicate text, type text, inlined bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text; query text := format('SELECT ?o { <http://x/v> <http://x/%s> ?o }', predicate);
BEGIN
    IF inlined THEN
        EXECUTE format('SELECT o::text FROM quad.query(%L) AS t(o %s)', query, type) INTO result;
    ELSE
        EXECUTE format('SELECT o::text FROM (VALUES (%L)) q(q), LATERAL quad.query(q.q) AS t(o %s)', query, type) INTO result;
    END IF;
    RETURN result;
END $$;
SET LOCAL timezone = 'UTC';
CREATE DOMAIN public.small AS int CHECK (VALUE < 10);
CREATE TYPE public.letters AS ENUM ('abc', 'def');
CREATE TABLE public.wanted (predicate text, type text, value text);
INSERT INTO wanted VALUES
    ('smallint', 'smallint', '7'), ('smallint', 'int', '7'), ('smallint', 'bigint', '7'), ('smallint', 'numeric', '7'), ('smallint', 'real', '7'),
    ('smallint', 'float8', '7'), ('smallint', 'text', '7'), ('smallint', 'varchar', '7'), ('smallint', 'public.small', '7'),
     ('smallint', 'quad.term', '7'), ('smallint', 'numeric(6,2)', '7.00'),
    ('fraction', 'numeric', '1.5'), ('fraction', 'float8', '1.5'), ('fraction', 'numeric(3,0)', '2'), ('double', 'int', '2500'), ('double', 'numeric', '2500'),
    ('float', 'real', '0.1'), ('infinite', 'float8', 'Infinity'), ('infinite', 'numeric', 'Infinity'), ('huge', 'numeric', '9223372036854775808'),
    ('true', 'boolean', 'true'), ('one', 'boolean', 'true'), ('true', 'text', 'true'),
    ('date', 'date', '1815-12-10'), ('time', 'date', '1815-12-10'), ('time', 'timestamptz', '1815-12-10 06:30:00+00'),
    ('time', 'timestamp', '1815-12-10 06:30:00'), ('wall', 'timestamp', '1815-12-10 06:30:00'), ('wall', 'timestamptz', '1815-12-10 06:30:00+00'),
    ('uuid', 'uuid', '0e37df36-f698-11e6-8dd4-cb9ced3df976'), ('number', 'int', '42'), ('number', 'float8', '42'), ('number', 'text', '42'),
    ('text', 'text', 'abc'), ('text', 'varchar(3)', 'abc'), ('text', 'char(5)', 'abc'), ('german', 'text', 'abc'), ('german', 'quad.term', 'abc'),
    ('text', 'name', 'abc'), ('text', 'public.letters', 'abc'), ('duration', 'interval', '1 year 2 mons'), ('json', 'jsonb', '{"a": 1}'),
    ('text', 'text COLLATE "C"', 'abc');
SELECT is(pg_temp.one(predicate, type, true), value, format('%s as %s', predicate, type)) FROM wanted;
SELECT is(pg_temp.one(predicate, type, false), value, format('%s as %s by the function', predicate, type)) FROM wanted;
SELECT results_eq($$SELECT quad.fn_lang(o) FROM quad.query('SELECT ?o { <http://x/v> <http://x/german> ?o }') AS t(o quad.term)$$, $$VALUES ('"de"'::quad.term)$$, 'a term is the term itself');
SELECT matches(pg_temp.one('blank', 'text', true), '^_:', 'a blank node as it is written');

CREATE TABLE public.unfit (predicate text, type text, state text);
INSERT INTO unfit VALUES ('text', 'int', '22P02'), ('text', 'numeric', '22P02'), ('text', 'boolean', '22P02'), ('text', 'uuid', '22P02'), ('text', 'date', '22007'),
    ('text', 'timestamptz', '22007'), ('fraction', 'int', '22P02'), ('infinite', 'bigint', '22P02'), ('huge', 'bigint', '22003'), ('double', 'public.small', '23514'),
    ('text', 'varchar(2)', '22001'), ('text', 'int[]', '42804'), ('text', 'pg_class', '42804'), ('text', 'record', '42804');
SELECT throws_ok(format('SELECT pg_temp.one(%L, %L, %L)', predicate, type, inlined), state, NULL, format('%s as %s%s', predicate, type, CASE WHEN inlined THEN '' ELSE ' by the function' END))
    FROM unfit, (VALUES (true), (false)) i(inlined);
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?o { <http://x/v> <http://x/german> ?o }') AS t(o int)$$, '22P02',
    'term "abc"@de does not fit column "o" of type integer', 'the error names the term');

-- What the planner sees
SELECT quad.load_text(string_agg(format('<http://x/p%s> <http://x/label> "label %s" ; <http://x/year> %s .', i, i, i % 100 + 1900), E'\n')) FROM generate_series(1, 20000) i;
ANALYZE quad_stores.main;
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP lines := lines || line || E'\n'; END LOOP;
    RETURN lines;
END $$;
-- Of a distributed store few look-ups cost more than reading it once: the condition is on ids, but may be that of a hash join.
CREATE FUNCTION pg_temp.kind_of_condition() RETURNS text LANGUAGE sql AS $$SELECT CASE WHEN distributed THEN '' ELSE 'Index ' END FROM quad.stores WHERE store = 'main'$$;
CREATE TABLE badges (iri text PRIMARY KEY, number int);
INSERT INTO badges SELECT 'http://x/p' || i, i FROM generate_series(10, 20) i;
ANALYZE badges;
SELECT matches(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text)$$), 'Quad Scan', 'the patterns are scanned by the statement');
SELECT unalike(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text)$$), '%Function Scan%', 'and no function');
SELECT matches(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s quad.term, l text) WHERE s = '<http://x/p17>'$$),
    'Index Cond: [^\n]*s = id_of\(''<http://x/p17>''::term\)', 'a filter on a term is a condition of the scan');
SELECT matches(pg_temp.plan($$SELECT * FROM badges b JOIN quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s quad.term, l text) ON t.s = quad.iri(b.iri)$$),
    pg_temp.kind_of_condition() || 'Cond: [^\n]*id_of\(iri\(b\.iri\)\)', 'a join with a table looks terms up');
SELECT results_eq($$SELECT b.number, t.l FROM badges b JOIN quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s quad.term, l text) ON t.s = quad.iri(b.iri)
    WHERE b.number < 12 ORDER BY 1$$, $$VALUES (10, 'label 10'), (11, 'label 11')$$, 'and gives its rows');
SELECT matches(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text) WHERE s = 'http://x/p17'$$),
    'Index Cond: [^\n]*s = id_of_resource\(''http://x/p17''::text\)', 'a filter on the text of a subject is a condition of the scan');
SELECT matches(pg_temp.plan($$SELECT * FROM badges b JOIN quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text) ON t.s = b.iri$$),
    pg_temp.kind_of_condition() || 'Cond: [^\n]*id_of_resource\(b\.iri\)', 'a join of texts looks terms up');
SELECT unalike(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text) WHERE l = 'label 17'$$), '%id_of_resource%',
    'the text of a literal is not the only one of its terms');
SELECT unalike(pg_temp.plan($$SELECT * FROM quad.query('SELECT DISTINCT ?s { ?s <http://x/label> ?l }') AS t(s text) WHERE s = 'x'$$), '%by_id%', 'conditions that stay are as they were');
SELECT results_eq($$SELECT b.number, t.l FROM badges b JOIN quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text) ON t.s = b.iri
    WHERE b.number < 12 ORDER BY 1$$, $$VALUES (10, 'label 10'), (11, 'label 11')$$, 'rows of a join of texts');
SELECT results_eq($$SELECT l FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s varchar, l text) WHERE s = 'http://x/p17' AND l <> ''$$, $$VALUES ('label 17')$$, 'of varchar');
SELECT is_empty($$SELECT l FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text) WHERE s = 'no IRI'$$, 'a text that is no IRI');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS t(s text, l text) WHERE NOT s = 'no IRI'), 20000::bigint, 'nor under NOT');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?b { ?s <http://x/blank> ?b . ?b ?p ?o }') AS t(b text)), 0::bigint, 'no blank node');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?g { GRAPH ?g { ?s ?p ?o } }') AS t(g text) WHERE g = ''), 0::bigint, 'no graph');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?s { ?s <http://x/label> ?l }') AS a(s text) FULL JOIN badges b ON a.s = b.iri), 20000::bigint, 'a full join');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?s { ?s <http://x/label> ?l }') AS a(s text) JOIN quad.query('SELECT ?s { ?s <http://x/year> 1915 }') AS b(s text) USING (s)), 200::bigint,
    'texts of two queries');
SELECT matches(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?l { ?s <http://x/label> ?l }') AS a(s quad.term, l text)
    JOIN quad.query('SELECT ?s ?y { ?s <http://x/year> ?y }') AS b(s quad.term, y int) ON a.s = b.s$$), 'Quad Join', 'two queries are one join of patterns');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?s ?y { ?s <http://x/year> ?y }') AS t(s text, y int) WHERE y >= 1990), 2000::bigint, 'a filter on a number');

-- Filters on integers: ids tell the value of integers, and only ranges of them are read. Everything else is left to the conversion.
SELECT matches(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?y { ?s <http://x/year> ?y }') AS t(s text, y int) WHERE y > 1990$$), 'Filter on Ids: [^\n]*term_value',
    'a filter on an integer is one on ids');
SELECT matches(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?y ?l { ?s <http://x/year> ?y ; <http://x/label> ?l }') AS t(s text, y bigint, l text) WHERE 1990 = y$$),
    'Filter on Ids: [^\n]*term_value', 'of a join too');
SELECT unalike(pg_temp.plan($$SELECT * FROM quad.query('SELECT ?s ?y { ?s <http://x/year> ?y }') AS t(s text, y text) WHERE y > '1990'$$), '%Filter on Ids%', 'not one on a text');
CREATE TABLE limits (value int);
INSERT INTO limits VALUES (NULL), (-1), (0), (1899), (1900), (1901), (1950), (1998), (1999), (2000), (2147483647);
CREATE TYPE counted AS (type text, operator text, value int, rows bigint);
CREATE FUNCTION pg_temp.counts(query text) RETURNS SETOF counted LANGUAGE plpgsql AS $$
DECLARE type text; operator text; value int; rows bigint; other text;
BEGIN
    FOREACH type IN ARRAY '{smallint,int,bigint}'::text[] LOOP
        FOREACH operator IN ARRAY '{=,<>,<,<=,>,>=}'::text[] LOOP
            FOREACH other IN ARRAY '{int,bigint}'::text[] LOOP
                FOR value IN SELECT l.value FROM limits l LOOP
                    EXECUTE format('SELECT count(*) FROM quad.query(%L) AS t(y %s) WHERE y %s $1::%s', query, type, operator, other) INTO rows USING value;
                    RETURN NEXT (type || ' ' || other, operator, value, rows)::counted;
                    EXECUTE format('SELECT count(*) FROM quad.query(%L) AS t(y %s) WHERE %L::%s %s y', query, type, value, other, operator) INTO rows;
                    RETURN NEXT ('of ' || type || ' ' || other, operator, value, rows)::counted;
                END LOOP;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;
SELECT quad.load_text($$ PREFIX : <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    :m1 :mixed 1900 . :m2 :mixed "1900" . :m3 :mixed 1900.0 . :m4 :mixed 1.9e3 . :m5 :mixed "1900"^^xsd:short . :m6 :mixed "01900"^^xsd:integer . :m7 :mixed "1950"@en . :m8 :mixed -1 .
    :m9 :mixed 2000.0 . :m10 :mixed "0"^^xsd:unsignedByte . :m11 :mixed <http://x/1951> ; :large 40000 . $$);
CREATE TEMP TABLE on_ids AS SELECT * FROM pg_temp.counts('SELECT ?y { ?s <http://x/mixed> ?y FILTER isLiteral(?y) }')
    UNION ALL SELECT * FROM pg_temp.counts('SELECT ?y { ?s <http://x/year> ?y FILTER(?y > 1996 || ?y < 1902) }');
SET LOCAL quad.enable_quad_join = off;
CREATE TEMP TABLE on_values AS SELECT * FROM pg_temp.counts('SELECT ?y { ?s <http://x/mixed> ?y FILTER isLiteral(?y) }')
    UNION ALL SELECT * FROM pg_temp.counts('SELECT ?y { ?s <http://x/year> ?y FILTER(?y > 1996 || ?y < 1902) }');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?y { ?s <http://x/mixed> ?y }') AS t(y int) WHERE y > 2000$$, '22P02', NULL, 'a term that does not fit is an error');
SET LOCAL quad.enable_quad_join = on;
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?y { ?s <http://x/mixed> ?y }') AS t(y int) WHERE y > 2000$$, '22P02',
    'term <http://x/1951> does not fit column "y" of type integer', 'where the filter is on ids too');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?y { ?s <http://x/huge> ?y }') AS t(y bigint) WHERE y = 7$$, '22003', NULL, 'as is a number that is too large');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?y { ?s <http://x/large> ?y }') AS t(y smallint) WHERE y < 0$$, '22003', NULL, 'for the type');
SELECT is((SELECT count(*) FROM on_ids), 1584::bigint, 'answers of all kinds');
SELECT bag_eq('TABLE on_ids', 'TABLE on_values', 'filters on ids pass what filters on values do');
SELECT cmp_ok((SELECT count(*) FROM on_ids WHERE rows > 0), '>', 100::bigint, 'which is something');
PREPARE years(int, bigint) AS SELECT count(*) FROM quad.query('SELECT ?s ?y { ?s <http://x/year> ?y }') AS t(s text, y int) WHERE y >= $1 AND y <> $2;
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT results_eq('EXECUTE years(1998, 1999)', 'VALUES (200::bigint)', 'limits that are known when the plan runs');
SELECT results_eq('EXECUTE years(1990, 1)', 'VALUES (2000::bigint)', 'others');
SELECT results_eq('EXECUTE years(1990, NULL)', 'VALUES (0::bigint)', 'and NULL');
RESET plan_cache_mode;
SELECT is((SELECT count(*) FROM quad.query('SELECT ?y (COUNT(*) AS ?n) { ?s <http://x/year> ?y } GROUP BY ?y') AS t(y int, n int) WHERE n = 200), 100::bigint, 'aggregates');
SELECT results_eq($$SELECT * FROM quad.query('SELECT DISTINCT ?y { ?s <http://x/year> ?y } ORDER BY DESC(?y) LIMIT 2') AS t(y int)$$, $$VALUES (1999), (1998)$$, 'DISTINCT, ORDER BY, LIMIT');
SELECT is((SELECT count(*) FROM quad.query('SELECT (RAND() AS ?r) { ?s <http://x/born> ?y }') AS t("r" float8, "R" float8) WHERE "r" = "R"), 3::bigint, 'one value of a volatile expression');
SELECT is((SELECT count(*) FROM badges WHERE iri IN (SELECT s FROM quad.query('SELECT ?s { ?s <http://x/year> 1915 }') AS t(s text))), 1::bigint, 'in a subquery');
WITH q AS (SELECT * FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS t(n text)) SELECT is((SELECT count(*) FROM q), 4::bigint, 'in WITH');
SELECT is((SELECT count(*) FROM badges b LEFT JOIN quad.query('SELECT ?s ?l { ?s <http://x/name> ?l }') AS t(s text, l text) ON t.s = b.iri WHERE t.l IS NULL), 11::bigint, 'on the side of a join that may have no row');

-- Other arguments
SELECT quad.create_store('other');
SELECT quad.load_text('<http://x/a> <http://x/name> "other" . <http://x/g> { <http://x/a> <http://x/name> "named" }', 'trig', store => 'other');
SELECT is((SELECT n FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }', 'other') AS t(n text)), 'other', 'store');
SELECT is((SELECT n FROM quad.query(store => 'other', query => 'SELECT ?n { ?s <name> ?n }', base => 'http://x/') AS t(n text)), 'other', 'arguments by name, base');
SELECT is((SELECT n FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }', 'other', default_graphs => '{http://x/g}') AS t(n text)), 'named', 'default graphs');
SELECT is((SELECT count(*) FROM quad.query('SELECT ?g ?n { GRAPH ?g { ?s <http://x/name> ?n } }', 'other', named_graphs => '{http://x/h}') AS t(g text, n text)), 0::bigint, 'named graphs');
SELECT is((SELECT n FROM quad.query('SELECT ?n { ?s <http://x/' || 'name' || '> ?n }', 'other') AS t(n text)), 'other', 'a text that is put together');
SELECT throws_ok($$SELECT * FROM quad.query(NULL) AS t(n text)$$, '22004', NULL, 'no text');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?s { ?s ?p }') AS t(s text)$$, '42601', NULL, 'no SPARQL');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?s { ?s ?p ?o }', 'nowhere') AS t(s text)$$, '42P01', NULL, 'no such store');
SELECT results_eq($$SELECT o, n FROM (VALUES ('SELECT ?n { ?s <http://x/name> ?n } ORDER BY ?n LIMIT 1', 'other'), ('SELECT ?n { <http://x/ada> <http://x/name> ?n }', 'main')) q(q, o),
    LATERAL quad.query(q.q, q.o) AS t(n text) ORDER BY o$$, $$VALUES ('main', 'Ada'), ('other', 'other')$$, 'texts out of a table');

-- Other forms
SELECT results_eq($$SELECT * FROM quad.query('ASK { ?s <http://x/name> "Ada" }') AS t(ask boolean)$$, 'VALUES (true)', 'ASK');
SELECT results_eq($$SELECT * FROM quad.query('ASK { ?s <http://x/name> "Nemo" }') AS t(a text)$$, $$VALUES ('false')$$, 'ASK as text');
SELECT results_eq($$SELECT t.* FROM (VALUES ('ASK { ?s <http://x/name> "Nemo" }')) q(q), LATERAL quad.query(q) AS t(ask boolean)$$, 'VALUES (false)', 'ASK by the function');
SELECT results_eq($$SELECT * FROM quad.query('CONSTRUCT { ?s <http://x/of> ?n } WHERE { ?s <http://x/name> ?n }') AS t(subject text, object text) ORDER BY 2 LIMIT 1$$,
    $$VALUES ('http://x/ada', 'Ada')$$, 'CONSTRUCT');
SELECT results_eq($$SELECT * FROM quad.query('DESCRIBE <http://x/nobody>') AS t(s text, p text, o text)$$, $$VALUES ('http://x/nobody', 'http://x/name', 'Nobody')$$, 'DESCRIBE');
SELECT throws_ok($$SELECT * FROM quad.query('INSERT DATA { <a:a> <a:b> 1 }') AS t(s text)$$, '42601', NULL, 'an update');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT * { <a:b> <a:c> <a:d> }') AS t(s text)$$, '42804', NULL, 'a query without columns');

-- Prepared statements
PREPARE fixed AS SELECT n FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }', 'other') AS t(n text);
SELECT results_eq('EXECUTE fixed', $$VALUES ('other')$$, 'a prepared statement');
SELECT quad.drop_store('other');
SELECT throws_ok('EXECUTE fixed', '42P01', NULL, 'whose store is dropped');
SELECT quad.create_store('other');
SELECT is_empty('EXECUTE fixed', 'and made again');
SELECT quad.load_text('<http://x/a> <http://x/name> "again" .', store => 'other');
SELECT results_eq('EXECUTE fixed', $$VALUES ('again')$$, 'and filled');
PREPARE asked(text, text) AS SELECT n FROM quad.query($1, $2) AS t(n text) ORDER BY n;
SELECT results_eq($$EXECUTE asked('SELECT ?n { ?s <http://x/name> ?n }', 'other')$$, $$VALUES ('again')$$, 'the text as a parameter');
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT results_eq($$EXECUTE asked('SELECT ?n { ?s <http://x/name> ?n }', 'other')$$, $$VALUES ('again')$$, 'with a plan for all texts');
SELECT results_eq($$EXECUTE asked('SELECT ?n { <http://x/ada> <http://x/name> ?n }', 'main')$$, $$VALUES ('Ada')$$, 'and another text');
SELECT matches(pg_temp.plan($$EXECUTE asked('SELECT ?n { <http://x/ada> <http://x/name> ?n }', 'main')$$), 'Function Scan on query', 'runs the function');
PREPARE defaults AS SELECT n FROM quad.query('SELECT ?n { <http://x/a> <http://x/name> ?n }') AS t(n text);
SELECT is_empty('EXECUTE defaults', 'the default store');
SET LOCAL quad.store = 'other';
SELECT results_eq('EXECUTE defaults', $$VALUES ('again')$$, 'is that of the moment of execution');
SET LOCAL quad.store = 'main';
SELECT is_empty('EXECUTE defaults', 'each time');
SELECT quad.load_text('<http://x/g> { <http://x/a> <http://x/name> "in a graph" }', 'trig');
SELECT is_empty('EXECUTE defaults', 'the default graph');
SET LOCAL quad.default_graph = 'union';
SELECT results_eq('EXECUTE defaults', $$VALUES ('in a graph')$$, 'too');
SET LOCAL quad.default_graph = 'default';
SELECT is_empty('EXECUTE defaults', 'each time, too');
RESET plan_cache_mode;

-- Statements of other kinds
CREATE VIEW names AS SELECT * FROM quad.query('SELECT ?s ?name { ?s <http://x/name> ?name }') AS t(s quad.term, name text);
SELECT is((SELECT count(*) FROM names), 4::bigint, 'a view');
SELECT matches(pg_temp.plan($$SELECT * FROM names WHERE s = '<http://x/ada>'$$), 'Index Cond: [^\n]*s = id_of', 'into which filters go');
DO $$BEGIN EXECUTE 'CREATE VIEW copy AS ' || pg_get_viewdef('names'); END$$;
SELECT results_eq('SELECT * FROM copy ORDER BY s', 'SELECT * FROM names ORDER BY s', 'its definition is whole');
CREATE MATERIALIZED VIEW stored AS SELECT name FROM names;
SELECT is((SELECT count(*) FROM stored), 4::bigint, 'a materialized view');
CREATE TABLE taken AS SELECT * FROM quad.query('SELECT ?name { ?s <http://x/name> ?name }') AS t(name text);
INSERT INTO taken SELECT name FROM quad.query('SELECT ?name { ?s <http://x/name> ?name }') AS t(name text) WHERE name <> 'Ada';
SELECT is((SELECT count(*) FROM taken), 7::bigint, 'CREATE TABLE AS and INSERT .. SELECT');
UPDATE taken SET name = q.n || '!' FROM quad.query('SELECT ?n { <http://x/ada> <http://x/name> ?n }') AS q(n text) WHERE q.n = name;
DELETE FROM taken USING quad.query('SELECT ?n { <http://x/grace> <http://x/name> ?n }') AS q(n text) WHERE q.n = name;
SELECT is((SELECT string_agg(name, ',' ORDER BY name) FROM taken), 'Ada!,Alan,Alan,Nobody,Nobody', 'UPDATE .. FROM and DELETE .. USING');
DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT name FROM names ORDER BY name;
SELECT results_eq('FETCH 2 FROM c', $$VALUES ('Ada'), ('Alan')$$, 'a cursor');
SELECT results_eq('FETCH PRIOR FROM c', $$VALUES ('Ada')$$, 'that goes back');
CLOSE c;
DO $$
DECLARE r record; found text := ''; query text;
BEGIN
    FOR i IN 1..8 LOOP
        query := format('SELECT ?n { ?s <http://x/name> ?n } ORDER BY ?n LIMIT %s', i % 3);
        FOR r IN SELECT * FROM quad.query(query) AS t(n text) LOOP found := found || r.n || ' '; END LOOP;
    END LOOP;
    CREATE TEMP TABLE loops AS SELECT found;
END $$;
SELECT is((SELECT found FROM loops), 'Ada Ada Alan Ada Ada Alan Ada Ada Alan ', 'a loop whose text changes');
CREATE FUNCTION pg_temp.sql_function() RETURNS SETOF text LANGUAGE sql STABLE AS $$SELECT n FROM quad.query('SELECT ?n { <http://x/ada> <http://x/name> ?n }') AS t(n text)$$;
SELECT results_eq('SELECT * FROM pg_temp.sql_function()', $$VALUES ('Ada')$$, 'a function of language SQL');
SELECT lives_ok($$EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM names$$, 'EXPLAIN (ANALYZE)');
SELECT is((SELECT count(*) FROM ROWS FROM (quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS (n text), generate_series(1, 5)) AS t), 5::bigint, 'among other functions');
SELECT is((SELECT max(ordinality) FROM ROWS FROM (quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS (n text)) WITH ORDINALITY AS t), 4::bigint, 'WITH ORDINALITY');

-- Rights are those of the user.
CREATE ROLE quad_query_reader;
CREATE ROLE quad_query_stranger;
GRANT SELECT ON quad_stores.main, names TO quad_query_reader;
GRANT SELECT ON names TO quad_query_stranger;
GRANT ALL ON ALL TABLES IN SCHEMA public TO quad_query_reader, quad_query_stranger;
PREPARE shared AS SELECT n FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS t(n text) ORDER BY n;
SELECT is((SELECT count(*) FROM (SELECT 1 FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS t(n text)) x), 4::bigint, 'all names');
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT results_eq('EXECUTE shared', $$VALUES ('Ada'), ('Alan'), ('Grace'), ('Nobody')$$, 'the owner sees all');
SET LOCAL ROLE quad_query_stranger;
SELECT throws_ok('EXECUTE shared', '42501', NULL, 'a plan that is kept is checked for the user');
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS t(n text)$$, '42501', NULL, 'a role without rights');
SELECT throws_ok($$SELECT t.* FROM (VALUES ('SELECT ?n { ?s <http://x/name> ?n }')) q(q), LATERAL quad.query(q) AS t(n text)$$, '42501', NULL, 'nor by the function');
SELECT throws_ok($$SELECT * FROM names$$, '42501', NULL, 'nor by a view: functions in views run as the user');
SET LOCAL ROLE quad_query_reader;
SELECT results_eq('EXECUTE shared', $$VALUES ('Ada'), ('Alan'), ('Grace'), ('Nobody')$$, 'a role with SELECT on the store');
RESET ROLE;
ALTER TABLE quad_stores.main ENABLE ROW LEVEL SECURITY;
CREATE POLICY hide_ada ON quad_stores.main FOR SELECT TO quad_query_reader USING (s <> quad.find('<http://x/ada>'));
SELECT results_eq('EXECUTE shared', $$VALUES ('Ada'), ('Alan'), ('Grace'), ('Nobody')$$, 'policies: the owner');
SET LOCAL ROLE quad_query_reader;
SELECT results_eq('EXECUTE shared', $$VALUES ('Alan'), ('Grace'), ('Nobody')$$, 'and the reader');
SELECT results_eq($$SELECT t.n FROM (VALUES ('SELECT ?n { ?s <http://x/name> ?n }')) q(q), LATERAL quad.query(q) AS t(n text) ORDER BY 1$$, $$VALUES ('Alan'), ('Grace'), ('Nobody')$$, 'by the function');
RESET ROLE;
SELECT results_eq('EXECUTE shared', $$VALUES ('Ada'), ('Alan'), ('Grace'), ('Nobody')$$, 'and the owner again');
REVOKE EXECUTE ON FUNCTION quad.query FROM PUBLIC;
SET LOCAL ROLE quad_query_reader;
SELECT throws_ok($$SELECT * FROM quad.query('SELECT ?n { ?s <http://x/name> ?n }') AS t(n text)$$, '42501', NULL, 'a role that may not call it');
RESET ROLE;

-- Names of the caller are no names of the query.
CREATE SCHEMA decoy;
CREATE FUNCTION decoy.term_to_text(quad.term) RETURNS text LANGUAGE sql AS $$SELECT 'decoy'$$;
SET LOCAL search_path = decoy, public, pg_catalog;
SELECT is((SELECT n FROM quad.query('SELECT ?n { <http://x/ada> <http://x/name> ?n }') AS t(n text)), 'Ada', 'the search path does not count');

SELECT * FROM finish();
ROLLBACK;
