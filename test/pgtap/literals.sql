-- Functions of literals: what ids tell is not decoded, terms are decoded in batches, each once, and the first of many are sorted by ids.
begin;
select plan(47);
create function pg_temp.prefixed(request text) returns text language sql as $$
    select 'PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ' || request $$;
select quad.update(pg_temp.prefixed($$INSERT DATA {
    :s :mixed "Zoë", "zoe", "", "a string longer than seven bytes", "another string, with É", "12", "12"@en,
        "Étude en do"@fr, "étude"@fr, "a label in English"@en, "b"@en, "a label"@zh-hans-cn, ""@de, :iri, <urn:x>, [], true, false,
        1, 01, -5, 1.5, 1.50, 2e0, "3.5"^^xsd:float, "07"^^xsd:integer, "9"^^xsd:int, "x"^^xsd:integer, "INF"^^xsd:double, "NaN"^^xsd:double,
        "2020-02-29T23:59:59.5Z"^^xsd:dateTime, "2021-01-01T00:00:00+14:00"^^xsd:dateTime, "2021-01-01T00:00:00"^^xsd:dateTime,
        "-0044-03-15T12:30:00Z"^^xsd:dateTime, "2020-02-30T00:00:00Z"^^xsd:dateTime, "1999-12-31"^^xsd:date, "1999-12-31-05:00"^^xsd:date,
        "12:34:56"^^xsd:time, "2020"^^xsd:gYear, "P1D"^^xsd:dayTimeDuration, "POINT(1 2)"^^:wkt, ""^^:wkt }$$));
create temp view mixed as select o from quad_stores.main where p = quad.find('<http://e/mixed>');
select is((select count(*) from mixed), 42::bigint, 'terms of all kinds');

-- Functions of ids are those of terms.
create function pg_temp.agree(function text, arguments text default '', result text default 'term') returns text language plpgsql as $$
declare
    of_id text := format('quad.id_%s(o%s)', function, arguments);
    of_term text := format('quad.fn_%s(quad.decode(o)%s)', function, arguments);
    differing bigint;
begin
    if result = 'id' then of_id := format('quad.decode(%s)', of_id); end if;
    execute format('select count(*) from mixed where (%s)::text is distinct from (%s)::text', of_id, of_term) into differing;
    return is(differing, 0::bigint, format('%s%s of ids', function, arguments));
end $$;
select pg_temp.agree(f) from unnest('{str,lang,datatype,ucase,lcase,encode_for_uri,isnumeric}'::text[]) f;
select pg_temp.agree(f, '', 'id') from unnest('{strlen,year,month,day,hours,minutes}'::text[]) f;
select pg_temp.agree(f, a) from (values
    ('substr', $$, '2'::quad.term$$), ('substr', $$, '2'::quad.term, '3'::quad.term$$), ('substr', $$, '"x"'::quad.term$$),
    ('strbefore', $$, '"e"'::quad.term$$), ('strbefore', $$, '"e"@fr'::quad.term$$), ('strafter', $$, '"a"'::quad.term$$),
    ('strstarts', $$, '"a"'::quad.term$$), ('strstarts', $$, '"a"@en'::quad.term$$), ('strends', $$, '"e"'::quad.term$$),
    ('contains', $$, '"l"'::quad.term$$), ('regex', $$, '"^A"'::quad.term$$), ('regex', $$, '"^A"'::quad.term, '"i"'::quad.term$$),
    ('replace', $$, '"[aeiou]"'::quad.term, '"_"'::quad.term$$), ('replace', $$, '"[AEIOU]"'::quad.term, '"_"'::quad.term, '"i"'::quad.term$$)
) as calls(f, a);
select is(array[quad.id_str(0)::text, quad.id_lang(0)::text, quad.id_datatype(0)::text, quad.id_strlen(0)::text, quad.id_year(0)::text,
    quad.id_isnumeric(0)::text], array_fill(null::text, array[6]), 'the default graph is no term');
select throws_ok($$select quad.id_strlen(1152921504606846976 + 123456789)$$, '22023', null::text, 'an id that is not in the dictionary');
select throws_ok($$select quad.id_lang(-1)$$, '22023', null::text, 'no id at all');

-- Ids in the order of their terms.
select is(array(select o from mixed order by o using operator(quad.<#)), array(select o from mixed order by quad.decode(o)), 'ascending');
select is(array(select o from mixed order by o using operator(quad.>#) limit 20), array(select o from mixed order by quad.decode(o) desc limit 20), 'descending');
select is((select count(*) from mixed a, mixed b where (a.o operator(quad.<#) b.o, a.o operator(quad.<=#) b.o, a.o operator(quad.>#) b.o, a.o operator(quad.>=#) b.o, a.o operator(quad.=#) b.o)
    is distinct from (quad.decode(a.o) operator(quad.<) quad.decode(b.o), quad.decode(a.o) operator(quad.<=) quad.decode(b.o), quad.decode(a.o) operator(quad.>) quad.decode(b.o),
        quad.decode(a.o) operator(quad.>=) quad.decode(b.o), quad.decode(a.o) operator(quad.=) quad.decode(b.o))), 0::bigint, 'operators');

-- Data for batches: labels in four languages, each of six texts; texts that only the dictionary has.
select quad.update(pg_temp.prefixed('INSERT DATA {' || string_agg(format(
    ':i%s :label "label number %s"@%s ; :text "text of item %s, river" ; :kind "a kind of %s of things" .',
    n, n, (array['en', 'fr', 'de', 'nl'])[n % 4 + 1], n, n % 6), ' ') || '}')) from generate_series(1, 6000) n;
create function pg_temp.decoded(query text) returns bigint language plpgsql as $$
declare
    before bigint := decoded from quad.dictionary_stats();
begin
    perform quad.sparql_json(pg_temp.prefixed(query));
    return (select decoded from quad.dictionary_stats()) - before;
end $$;
set quad.dictionary_cache = 64;
select is(pg_temp.decoded('SELECT (COUNT(DISTINCT lang(?l)) AS ?n) { ?s :label ?l }'), 0::bigint, 'COUNT(DISTINCT lang()) decodes nothing');
select is(pg_temp.decoded('SELECT (COUNT(?k) AS ?n) { { SELECT ?k { ?s :label ?l } GROUP BY (lang(?l) AS ?k) } }'), 0::bigint, 'GROUP BY lang() decodes nothing');
select is(pg_temp.decoded('SELECT (COUNT(DISTINCT datatype(?l)) AS ?n) { ?s :label|:text|:kind ?l FILTER(isLiteral(?l)) }'), 0::bigint, 'COUNT(DISTINCT datatype()) decodes nothing');
select is(pg_temp.decoded('SELECT (COUNT(*) AS ?n) { ?s :label ?l FILTER(lang(?l) = "fr" && datatype(?l) != xsd:string) }'), 0::bigint, 'nor does a filter by both');
select cmp_ok(pg_temp.decoded('SELECT (SUM(strlen(?l)) AS ?n) { ?s :label ?l FILTER(CONTAINS(?l, "number") && STRLEN(?l) > 3 && STRSTARTS(?l, "label")) }'), '<', 6600::bigint,
    'four functions of a label decode it once');
select cmp_ok(pg_temp.decoded('SELECT (COUNT(DISTINCT UCASE(?k)) AS ?n) { ?s :kind ?k }'), '<', 100::bigint, 'few different terms are decoded a few times');
select is(quad.sparql_csv(pg_temp.prefixed('SELECT (SUM(strlen(?l)) AS ?n) (COUNT(*) AS ?c) { ?s :label ?l FILTER(CONTAINS(?l, "number") && STRSTARTS(?l, "label")) }')),
    E'n,c\r\n100893,6000\r\n', 'and the answer is right');
select is(quad.sparql_csv(pg_temp.prefixed('SELECT ?k (COUNT(*) AS ?c) (MIN(strlen(?l)) AS ?m) { ?s :label ?l } GROUP BY (lang(?l) AS ?k) ORDER BY ?k')),
    E'k,c,m\r\nde,1500,14\r\nen,1500,14\r\nfr,1500,14\r\nnl,1500,14\r\n', 'groups by language');
select is(quad.sparql_csv(pg_temp.prefixed('SELECT ?y (COUNT(DISTINCT SUBSTR(?x, 1, 1)) AS ?n) { ?s ?y ?x FILTER(?y IN (:label, :kind)) } GROUP BY ?y ORDER BY ?y')),
    E'y,n\r\nhttp://e/kind,1\r\nhttp://e/label,4\r\n', 'distinct computed terms within groups');

-- The first few of many.
create function pg_temp.plan_of(query text) returns setof text language plpgsql as $$
begin
    return query execute 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || quad.sparql_to_sql(pg_temp.prefixed(query));
end $$;
select is((select count(*) from pg_temp.plan_of('SELECT ?x { ?s :text ?x } ORDER BY ?x LIMIT 10 OFFSET 50') line
    where line ~ 'Sort Key: .*USING <#|Sort Method: top-N heapsort'), 2::bigint, 'a limited ORDER BY sorts ids and keeps the first');
select is(quad.sparql_csv(pg_temp.prefixed('SELECT ?x { ?s :text ?x } ORDER BY DESC(?x) LIMIT 2 OFFSET 1')),
    E'x\r\n"text of item 998, river"\r\n"text of item 997, river"\r\n', 'descending, with an offset');
select cmp_ok(pg_temp.decoded('SELECT ?x { ?s :text ?x } ORDER BY ?x LIMIT 10'), '<', 6600::bigint, 'each text is decoded once');
select is(quad.sparql_csv(pg_temp.prefixed('SELECT ?k ?s { ?s :kind ?k } ORDER BY DESC(?k) ?s LIMIT 2')),
    E'k,s\r\na kind of 5 of things,http://e/i1001\r\na kind of 5 of things,http://e/i1007\r\n', 'two keys');
select * from finish();
rollback;
