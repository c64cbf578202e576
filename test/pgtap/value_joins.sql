-- Joins by the equality of values: FILTER(?a = ?b), LCASE(?a) = LCASE(?b) and their kin look values up instead of testing pair by pair.
begin;
select plan(49);

-- Terms of which some are equal in value and others only look so; each stands once on both sides.
create temp table terms (term text);
insert into terms values
    ('1'), ('"01"^^xsd:integer'), ('1.0'), ('"1.00"^^xsd:decimal'), ('1e0'), ('"1.0"^^xsd:double'), ('"1"^^xsd:float'), ('"1"^^xsd:byte'),
    ('"0.1"^^xsd:decimal'), ('"0.1"^^xsd:float'), ('"0.1"^^xsd:double'), ('"16777217"^^xsd:integer'), ('"16777216"^^xsd:float'),
    ('"16777217.0000000001"^^xsd:decimal'), ('"16777218"^^xsd:float'), ('"16777217"^^xsd:double'), ('"9007199254740993"^^xsd:integer'),
    ('"9007199254740992"^^xsd:double'), ('"NaN"^^xsd:double'), ('"NaN"^^xsd:float'), ('"INF"^^xsd:double'), ('"INF"^^xsd:float'), ('0'), ('-0.0'),
    ('"-0"^^xsd:double'), ('"0"^^xsd:float'), ('true'), ('"1"^^xsd:boolean'), ('false'), ('"nonsense"^^xsd:boolean'), ('"nonsense"^^xsd:integer'),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime'), ('"2020-01-01T01:00:00+01:00"^^xsd:dateTime'), ('"2019-12-31T24:00:00Z"^^xsd:dateTime'),
    ('"2020-01-01T00:00:00"^^xsd:dateTime'), ('"2020-01-01Z"^^xsd:date'), ('"2020-01-01"^^xsd:date'), ('"2020-01-01+00:00"^^xsd:date'),
    ('"P1Y"^^xsd:duration'), ('"P12M"^^xsd:duration'), ('"P12M"^^xsd:yearMonthDuration'), ('"PT24H"^^xsd:dayTimeDuration'), ('"P1D"^^xsd:duration'),
    ('"a"'), ('"A"'), ('"a"@en'), ('"a"@EN'), ('"a"@de'), ('"A"@en'), ('"a string that no id holds"'), ('"A string that no id holds"@en'), ('"1"'),
    ('"a"^^:unknown'), ('"A"^^:unknown'), (':a'), (':A'), ('<http://e/1>');
select quad.load_text('@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
' || string_agg(format(':l%s :left %s ; :group %s . :r%s :right %s ; :group %s .', n, term, n % 3, n, term, n % 2), E'\n'), format => 'turtle')
    from (select term, row_number() over () n from terms) x;
-- Plenty of others.
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':l%s :left "some text number %s"; :group 9 . :r%s :right "some text number %s"; :group 9 . :l%s :number %s . :r%s :size %s.0 .',
    n, n, n, n + 1500, n, n, n, n * 2), E'\n'), format => 'turtle') from generate_series(1000, 3999) n;
-- All of one kind.
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':x%s :name "name number %s" . :y%s :label "Name Number %s"@en ; :alias "name number %s" .', n, n % 2000, n, n % 1500, n % 1500), E'\n'),
    format => 'turtle') from generate_series(1, 3000) n;

create function pg_temp.answer(query text) returns text language sql as
    $f$ select string_agg(x::text, E'\n' order by x::text) from quad.sparql('PREFIX : <http://e/> ' || query) x $f$;
create function pg_temp.plan(query text) returns text language sql as
    $f$ select string_agg(x, E'\n') from quad.explain('PREFIX : <http://e/> ' || query, "analyze" => true) x $f$;
-- PostgreSQL's own joins test the same filters.
create function pg_temp.same(query text, what text) returns text language plpgsql as $f$
declare found text; expected text;
begin
    found := pg_temp.answer(query);
    perform set_config('quad.enable_quad_join', 'off', true);
    expected := pg_temp.answer(query);
    perform set_config('quad.enable_quad_join', 'on', true);
    return is(found, expected, what);
end $f$;

create temp table shapes (name text, query text);
insert into shapes values
    ('all kinds of terms', '{ ?a :left ?x ; :group ?g . ?b :right ?y FILTER(?x = ?y && ?g < 9) }'),
    ('both sides in several patterns', '{ ?a :left ?x ; :group ?g . ?b :right ?y ; :group ?h FILTER(?x = ?y && ?g < 9 && ?h < 9) }'),
    ('two equalities', '{ ?a :left ?x ; :group ?g . ?b :right ?y ; :group ?h FILTER(?x = ?y && ?g = ?h && ?h < 9) }'),
    ('numbers of different types', '{ ?a :number ?x . ?b :size ?y FILTER(?x = ?y) }'),
    ('one value', '{ :l3 :left ?x . ?b :right ?y FILTER(?x = ?y) }'),
    ('a few values', '{ ?a :left ?x . ?b :right ?y FILTER(?x = ?y && ?a IN (:l3, :l5, :l7, :l32, :l44)) }'),
    ('names', '{ ?a :name ?x . ?b :alias ?y FILTER(?x = ?y) }'),
    ('an optional side', '{ ?a :left ?x ; :group ?g OPTIONAL { ?b :right ?y FILTER(?x = ?y) } FILTER(?g < 9) }'),
    ('an optional group', '{ ?a :left ?x ; :group ?g OPTIONAL { ?b :right ?y ; :group ?h FILTER(?x = ?y && ?g = ?h) } FILTER(?g < 9) }'),
    ('what exists', '{ ?a :left ?x ; :group ?g FILTER EXISTS { ?b :right ?y FILTER(?x = ?y && ?a != ?b) } }'),
    ('what does not exist', '{ ?a :left ?x FILTER NOT EXISTS { ?b :right ?y ; :group ?h FILTER(?x = ?y) } }'),
    ('three sides', '{ ?a :number ?x . ?b :size ?y . ?c :left ?z FILTER(?x = ?y && ?z = ?x) }'),
    ('a subquery', '{ { SELECT DISTINCT ?x { ?a :left ?x ; :group ?g FILTER(?g < 9) } } ?b :right ?y ; :group ?h FILTER(?x = ?y && ?h < 9) }'),
    ('an optional side of a subquery', '{ { SELECT DISTINCT ?x { ?a :left ?x ; :group ?g FILTER(?g < 9) } } OPTIONAL { ?b :right ?y FILTER(?x = ?y) } }'),
    ('a subquery of which nothing exists', '{ { SELECT DISTINCT ?x { ?a :left ?x } } FILTER NOT EXISTS { ?b :right ?y FILTER(?x = ?y) } }'),
    ('a subquery and two equalities', '{ { SELECT DISTINCT ?x ?g { ?a :left ?x ; :group ?g } } OPTIONAL { ?b :right ?y ; :group ?g FILTER(?x = ?y) } }'),
    ('values that may be unbound', '{ { SELECT DISTINCT ?x ?g { ?a :group ?g OPTIONAL { ?a :left ?x FILTER(?g = 1) } } } OPTIONAL { ?b :right ?y FILTER(?x = ?y) } }'),
    ('lower case', '{ ?a :left ?x . ?b :right ?y FILTER(LCASE(?x) = LCASE(?y)) }'),
    ('texts', '{ ?a :left ?x ; :group ?g . ?b :right ?y FILTER(STR(?x) = STR(?y) && ?g < 9) }'),
    ('a text and a term', '{ ?a :left ?x . ?b :right ?y FILTER(STR(?x) = ?y) }'),
    ('years and months', '{ ?a :left ?x . ?b :right ?y FILTER(YEAR(?x) = YEAR(?y)) }'),
    ('lengths', '{ ?a :left ?x ; :group ?g . ?b :right ?y ; :group ?h FILTER(STRLEN(?x) = STRLEN(?y) && ?g < 9 && ?h < 9) }'),
    ('optional texts', '{ ?a :left ?x ; :group ?g OPTIONAL { ?b :right ?y FILTER(LCASE(STR(?x)) = LCASE(STR(?y))) } FILTER(?g < 9) }'),
    ('texts that exist', '{ ?a :left ?x FILTER EXISTS { ?b :right ?y FILTER(STR(?x) = LCASE(?y)) } }'),
    ('texts that do not exist', '{ ?a :left ?x FILTER NOT EXISTS { ?b :right ?y FILTER(STR(?x) = LCASE(?y)) } }');
select pg_temp.same('SELECT * ' || query, 'same answer for ' || name) from shapes;
select pg_temp.same('SELECT DISTINCT ?x ' || query, 'distinct: same answer for ' || name) from shapes where name in ('names', 'all kinds of terms');
select pg_temp.same('SELECT (COUNT(*) AS ?n) ' || query, 'same count for ' || name) from shapes where name in ('names', 'all kinds of terms', 'lower case');

select matches(pg_temp.plan('SELECT * { ?a :name ?x . ?b :alias ?y FILTER(?x = ?y) }'), 'Pattern: q2 .* index_order=posg method=(probe:1,)?(merge|hash)',
    'names are looked up');
select doesnt_match(pg_temp.plan('SELECT * { ?a :name ?x . ?b :alias ?y FILTER(?x = ?y) }'), '(actual [^)]*|estimate=[0-9]+ )rows=[0-9]{7}', 'not tested pair by pair');
select matches(pg_temp.plan('SELECT * { ?a :number ?x . ?b :size ?y FILTER(?x = ?y) }'), 'method=hash', 'numbers are joined by a hash of the value');
select doesnt_match(pg_temp.plan('SELECT * { ?a :number ?x . ?b :size ?y FILTER(?x = ?y) }'), '(actual [^)]*|estimate=[0-9]+ )rows=[0-9]{6}', 'nor are they tested pair by pair');
select matches(pg_temp.plan('SELECT * { ?a :name ?x . ?b :label ?y FILTER(LCASE(?x) = LCASE(STR(?y))) }'), 'Hash Join|Merge Join', 'computed values are hashed');
select matches(pg_temp.plan('SELECT * { ?a :name ?x OPTIONAL { ?b :label ?y FILTER(LCASE(?x) = LCASE(STR(?y))) } }'), 'Hash (Right|Left) Join|Merge',
    'so are optional ones');
select matches(pg_temp.plan('SELECT * { ?a :name ?x FILTER NOT EXISTS { ?b :label ?y FILTER(LCASE(?x) = LCASE(STR(?y))) } }'), 'Hash.*Anti|Merge.*Anti',
    'and those that must not exist');
select matches(pg_temp.plan('SELECT * { { SELECT DISTINCT ?x { ?a :name ?x } } ?b :alias ?y FILTER(?x = ?y) }'), 'Quad Join.*\n(.*\n)*.*Pattern: q2 .*\n(.*\n)*.*Quad ',
    'a subquery feeds the join');
-- Within a graph, that the graph is the same is not what the join looks up: it reads all quads of the graph for each row.
select quad.create_store('graphs');
select quad.load_text(string_agg(format(E'<http://e/s%s> <http://e/key> "%s" <http://e/g%s> .\n<http://e/e%s> <http://e/q> <http://e/t%s> <http://e/g%s> .\n', i, i, i % 3, i, i % 100, i % 4), ''),
    format => 'nq', store => 'graphs') from generate_series(1, 3000) i;
create temp table in_graphs (query text, n text);
insert into in_graphs values
    ('GRAPH ?g { ?s <http://e/key> ?v BIND(IRI(CONCAT("http://e/e", ?v)) AS ?e) ?e <http://e/q> ?t }', 750),
    ('GRAPH ?g { ?s <http://e/key> ?v . ?e <http://e/q> ?t FILTER(STR(?e) = CONCAT("http://e/e", ?v)) }', 750),
    ('GRAPH ?g { ?s <http://e/key> ?v BIND(IRI(CONCAT("http://e/e", ?v)) AS ?e) OPTIONAL { ?e <http://e/q> ?t } }', 3000);
select is(x ->> 'n', format('"%s"^^<http://www.w3.org/2001/XMLSchema#integer>', n), query)
    from in_graphs, quad.sparql('SELECT (COUNT(*) AS ?n) { ' || query || ' }', 'graphs') x;
select doesnt_match((select string_agg(line, E'\n') from quad.explain('SELECT * { ' || query || ' }', 'graphs', "analyze" => true) line),
    '(actual [^)]*|estimate=[0-9]+ )rows=[0-9]{5}|Removed by [a-zA-Z ]*: [0-9]{5}', query || ' is not tested pair by pair') from in_graphs;
-- In little memory a part of the quads at a time is joined.
set local work_mem = '64kB';
select is(pg_temp.answer('SELECT (COUNT(*) AS ?n) { ?a :number ?x . ?b :size ?y FILTER(?x = ?y) }'),
    '{"n": "\"1000\"^^<http://www.w3.org/2001/XMLSchema#integer>"}', 'memory is bounded');
reset work_mem;
-- A policy is applied below.
create role value_reader;
grant usage on schema quad, quad_stores to value_reader;
grant select on quad_stores.main to value_reader;
alter table quad_stores.main enable row level security;
create policy even on quad_stores.main to value_reader using (s % 2 = 0);
set local role value_reader;
select isnt(current_setting('role'), 'postgres', 'as a role that sees some rows');
select pg_temp.same('SELECT (COUNT(*) AS ?n) { ?a :number ?x . ?b :size ?y FILTER(?x = ?y) }',
    'values are looked up among the rows that a policy shows');
reset role;

-- Filters leave other quads for one row than for another: no table of the ones serves the others.
select quad.load_text('@prefix : <http://e/> . :v1 :wanted 20 . :v2 :wanted 5 .
' || string_agg(format('_:k%s :kind %s . :k%s :kind %s .', n, n % 40, n, n % 40), E'\n'), format => 'turtle') from generate_series(1, 1500) n;
select pg_temp.same('SELECT * { ?x :wanted ?a . ?y ?p ?b FILTER(?a = ?b) FILTER(isIRI(?y) || ?a > 10) }', 'a filter that depends on the row');
select pg_temp.same('SELECT * { ?x :wanted ?a . ?y ?p ?b FILTER(?a = ?b) FILTER(isBlank(?y) || ?a < 10) }', 'and the other way around');

select * from finish();
rollback;
