-- Names of the caller's search path never take the place of PostgreSQL's or of the extension's own.
BEGIN;
SELECT plan(28);
SELECT quad.load_text($$
    PREFIX : <http://x/>
    :ada :name "Ada"; :born 1815; :knows :grace . :grace :name "Grace"@en; :born 1906 . :g { :s :p :o . }
$$, 'trig');

-- Everything that the SQL of a query might call, with a trap in its place.
CREATE SCHEMA evil;
CREATE FUNCTION evil.trap_int(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
CREATE FUNCTION evil.trap_text(text, text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
CREATE FUNCTION evil.trap_term(quad.term, quad.term) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
DO $$
DECLARE op text; kind text;
BEGIN
    FOREACH op IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>='] LOOP
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.trap_int)', op);
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.trap_text)', op);
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = evil.trap_term)', op);
    END LOOP;
END $$;
CREATE FUNCTION evil.find(quad.term) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
CREATE FUNCTION evil.decode(bigint) RETURNS quad.term LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
CREATE FUNCTION evil.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
CREATE FUNCTION evil.format(text, VARIADIC "any") RETURNS text LANGUAGE internal AS 'text_format' STABLE;
CREATE FUNCTION evil.row_number() RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'XX999'; END$$;
CREATE AGGREGATE evil.count(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '1000000');
CREATE AGGREGATE evil.count("any") (SFUNC = int8inc_any, STYPE = bigint, INITCOND = '1000000');
CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
CREATE DOMAIN evil.int8 AS pg_catalog.int8 CHECK (false);
CREATE TABLE evil.main (s bigint, p bigint, o bigint, g bigint);
CREATE TABLE evil.pg_class (oid oid);
CREATE TABLE evil.terms (n int); CREATE TABLE evil.term_ids (n int); CREATE TABLE evil.described (n bigint);
CREATE TEMP TABLE described (n bigint); CREATE TEMP TABLE solutions (s bigint);

CREATE FUNCTION public.text_of(query pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$
DECLARE answer pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'evil, quad_stores, pg_temp, pg_catalog, quad', true);
    EXECUTE query INTO answer;
    PERFORM pg_catalog.set_config('search_path', 'public', true);
    RETURN answer;
END $$;
CREATE FUNCTION public.under_attack(query pg_catalog.text, expected pg_catalog.text) RETURNS SETOF pg_catalog.text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT public.is(public.text_of(query), expected, query);
EXCEPTION WHEN OTHERS THEN
    PERFORM pg_catalog.set_config('search_path', 'public', true);
    RETURN NEXT public.fail(query || ': ' || SQLERRM);
END $$;

SELECT under_attack($$SELECT quad.ask('ASK { ?s <http://x/born> ?y FILTER(?y > 1900) }')$$, 'true');
SELECT under_attack($$SELECT quad.sparql('SELECT ?n { <http://x/ada> <http://x/name> ?n }')$$, '{"n": "\"Ada\""}');
SELECT under_attack($$SELECT quad.sparql('SELECT (COUNT(*) AS ?n) { ?s ?p ?o }')$$, '{"n": "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>"}');
SELECT under_attack($$SELECT quad.sparql('SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o }')$$, '{"n": "\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>"}');
SELECT under_attack($$SELECT quad.sparql('SELECT ?n { ?s <http://x/name> ?n FILTER(?n = "Ada" && STR(?s) >= "h") } ORDER BY ?n')$$, '{"n": "\"Ada\""}');
SELECT under_attack($$SELECT quad.sparql('SELECT ?x { <http://x/ada> <http://x/knows>+/<http://x/name> ?x }')$$, '{"x": "\"Grace\"@en"}');
SELECT under_attack($$SELECT quad.sparql('SELECT ?x { { BIND(BNODE("a") AS ?x) } MINUS { ?y ?x ?z } FILTER(isBlank(?x)) }') IS NOT NULL$$, 'true');
SELECT under_attack($$SELECT quad.sparql('SELECT ?s { VALUES ?s { <http://x/ada> <http://x/no> } OPTIONAL { ?s <http://x/q> ?z } FILTER EXISTS { ?s ?p ?o } }')$$, '{"s": "<http://x/ada>"}');
SELECT under_attack($$SELECT quad.sparql('SELECT ?g { GRAPH ?g { ?s ?p ?o } }')$$, '{"g": "<http://x/g>"}');
SELECT under_attack($$SELECT quad.sparql_json('SELECT ?n { <http://x/ada> <http://x/name> ?n }')$$, '{"head":{"vars":["n"]},"results":{"bindings":[{"n":{"type":"literal","value":"Ada"}}]}}');
SELECT under_attack($$SELECT object FROM quad.construct('CONSTRUCT { _:b <http://x/n> ?n } WHERE { <http://x/ada> <http://x/name> ?n }')$$, 'Ada');
SELECT under_attack($$SELECT pg_catalog.count(*) FROM quad.describe('DESCRIBE <http://x/ada>')$$, '3');
SELECT under_attack($$SELECT quad.update('INSERT DATA { <http://x/n> <http://x/n> 1, 2 }')$$, '2');
SELECT under_attack($$SELECT quad.update('DELETE DATA { <http://x/n> <http://x/n> 2 }')$$, '1');
SELECT under_attack($$SELECT quad.update('DELETE { ?s ?p ?o } INSERT { ?s ?p 3 } WHERE { ?s ?p ?o FILTER(?p = <http://x/n>) }')$$, '2');
SELECT under_attack($$SELECT quad.update('CLEAR GRAPH <http://x/g>')$$, '1');
SELECT under_attack($$SELECT quad.load_text('<http://x/t> <http://x/t> "t" .')$$, '1');
SELECT under_attack($$SELECT pg_catalog.count(*) FROM quad.export()$$, '7');
SELECT under_attack($$SELECT pg_catalog.count(*) FROM quad.verify('quad_stores.main')$$, '0');
SELECT under_attack($$SELECT quad.create_view('public.safe', 'SELECT ?n (COUNT(*) AS ?c) { ?s <http://x/name> ?n FILTER(?n = "Ada") } GROUP BY ?n', types => '{"n": "pg_catalog.text"}')$$, '');
SELECT under_attack($$SELECT pg_catalog.concat(n, ' ', c) FROM public.safe$$, 'Ada 1');
SELECT under_attack($$SELECT quad.create_store('another')$$, '');
SELECT under_attack($$SELECT running IS NOT NULL FROM quad.node_status(0.01)$$, 'true');
SELECT under_attack($$SELECT pg_catalog.count(*) > 0 FROM quad.cluster_status(0.01)$$, 'true');
SELECT under_attack($$SELECT pg_catalog.count(*) > 0 FROM quad.stores$$, 'true');

-- What triggers and policies call runs under the path of the caller, or its own.
CREATE TABLE public.audit (n int);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
BEGIN INSERT INTO audit VALUES (1); RETURN NULL; END$$;
CREATE TRIGGER note AFTER INSERT ON quad_stores.main FOR EACH ROW EXECUTE FUNCTION public.note();
SELECT lives_ok($$SELECT quad.update('INSERT DATA { <http://x/a> <http://x/b> 1 }')$$, 'a trigger of an update');
SELECT is((SELECT count(*) FROM public.audit), 1::bigint, 'has run');
DROP TRIGGER note ON quad_stores.main;
CREATE TABLE public.acl (g bigint);
INSERT INTO public.acl VALUES (0);
CREATE FUNCTION public.may(g bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN RETURN EXISTS (SELECT FROM acl WHERE acl.g = may.g); END$$;
CREATE ROLE quad_path_reader;
GRANT SELECT ON quad_stores.main, public.acl TO quad_path_reader;
CREATE POLICY listed ON quad_stores.main USING (public.may(g));
ALTER TABLE quad_stores.main ENABLE ROW LEVEL SECURITY;
SET ROLE quad_path_reader;
SELECT ok(quad.ask('ASK { <http://x/a> ?p ?o }'), 'a policy of ASK');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
