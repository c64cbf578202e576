-- EXPLAIN of the nodes: PostgreSQL's words in the text, and real properties in the formats that programs read.
begin;
select plan(18);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, 1, i % 10, 0 from generate_series(1, 1000) i;
insert into q select i, 2, i * 2, 0 from generate_series(1, 1000) i;
insert into q select i, 3, i + 1, 0 from generate_series(1, 9) i;
analyze q;

-- The first node of a plan that has this property (or the whole of it as text).
create function pg_temp.node(query text, property text, options text default 'analyze, timing off, format json') returns jsonb language plpgsql as $f$
declare
    found jsonb;
begin
    execute format('explain (%s) %s', options, query) into found;
    return jsonb_path_query_first(found, format('$.**?(exists(@.%s))', to_jsonb(property))::jsonpath);
end $f$;
create function pg_temp.lines(query text) returns text language plpgsql as $f$
declare
    line text;
    found text := '';
begin
    for line in execute 'explain (analyze, costs off, timing off, summary off) ' || query loop found := found || line || E'\n'; end loop;
    return found;
end $f$;
create function pg_temp.figures(query text) returns table (pattern jsonb) language sql as
    $f$ select jsonb_array_elements(pg_temp.node(query, 'Patterns') -> 'Patterns') $f$;

prepare joined as select a.s, b.o, c.o from q a join q b on b.s = a.s left join q c on c.s = a.s and c.p = 3
    where a.p = 1 and a.o = 4 and b.p = 2 and b.o % 3 = 0;
create temporary table figures as select pattern from pg_temp.figures('execute joined');
select results_eq($$ select pattern ->> 'Alias', pattern ->> 'Join Type' from figures order by 1 $$,
    $$ values ('a', 'Inner'), ('b', 'Inner'), ('c', 'Left') $$, 'each pattern is an object with its alias and its kind of join');
select is((select pattern ->> 'Index Order' from figures where pattern ->> 'Alias' = 'a'), 'posg', 'with the index permutation');
select is((select count(*) from figures where jsonb_typeof(pattern -> 'Actual Rows') = 'number' and jsonb_typeof(pattern -> 'Plan Rows') = 'number'
    and jsonb_typeof(pattern -> 'Probe Batches') = 'number'), 3::bigint, 'with figures that are numbers');
select is((select (pattern -> 'Actual Rows')::bigint from figures where pattern ->> 'Alias' = 'a'), 100::bigint, 'and are right');
select is((pg_temp.node('execute joined', 'Rows Removed by Filter') -> 'Rows Removed by Filter')::bigint,
    100 - (select count(*) from q a, q b where a.s = b.s and a.p = 1 and a.o = 4 and b.p = 2 and b.o % 3 = 0), 'a filter says how many rows it has removed');
select is(pg_temp.node('select a.s from q a, q b where a.p = 1 and b.s = a.s', 'Patterns', 'format json') #> '{Patterns,0,Actual Rows}', null,
    'no figures without ANALYZE');

select matches(pg_temp.lines('execute joined'), 'Pattern: a \([^)]*\): index_order=posg method=\w+ estimate=\d+ rows=100 ', 'the text has a line for each pattern');
select matches(pg_temp.lines('execute joined'), 'Filter: [^\n]*% [^\n]*\n *Rows Removed by Filter: \d+', 'and the filters as PostgreSQL shows them');
select matches(pg_temp.lines('select a.s from q a, q b where a.p = 1 and b.s = a.s and b.p = 2 and a.o < b.o'),
    'Filter on Ids: [^\n]*<[^\n]*\n', 'filters on ids have a word of their own');

select is(pg_temp.node('select * from q where p = 3', 'Index Order') ->> 'Index Cond', '(p = 3)', 'Quad Scan: Index Order and Index Cond');
select is(pg_temp.node('select * from q where p = 3 order by o desc limit 1', 'Index Order') ->> 'Scan Direction', 'Backward', 'and Scan Direction');
select is(pg_temp.node('select p, count(*) from q where g = 0 group by p', 'Group Key') ->> 'Filter on Ids', '(g = 0)', 'Quad Groups: Group Key and Filter on Ids');

select is(pg_temp.node('with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = 3 and q.g = 0) select n from w', 'Hops')
    #>> '{Hops,0,Index Order}', 'spog', 'Quad Step: each hop is an object');
select is((pg_temp.node('with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = 3 and q.g = 0) select n from w', 'Hops')
    #> '{Hops,0,Actual Rows}')::bigint, 9::bigint, 'with its figures');

select quad.create_store('explained');
select quad.load_text('<http://x/a> <http://x/p> <http://x/b> . <http://x/b> <http://x/p> "a \"quoted\" text" .', 'turtle', store => 'explained');
create temporary table explained as select quad.explain_json('SELECT * { ?a <http://x/p> ?b . ?b <http://x/p> "a \"quoted\" text" }', 'explained', "analyze" => a) as shown
    , a from unnest(array[true, false]) a;
select is((select jsonb_path_query_first(shown::jsonb -> 'plan', '$.**.Patterns') #>> '{0,Actual Rows}' from explained where a), '1', 'quad.explain_json: the plan with its figures');
select is((select jsonb_path_query_first(shown::jsonb -> 'plan', '$.**.Patterns') #> '{0,Actual Rows}' from explained where not a), null, 'without them');
select matches((select shown::jsonb ->> 'sql' from explained where a), 'q1[.]p = .*http://x/p.*quoted', 'the SQL');
select matches((select shown::jsonb ->> 'algebra' from explained where a), 'http://x/p', 'and the algebra');

select * from finish();
rollback;
