-- Quad Join of a single pattern, where filters can be tested on ids; Quad Scan where that is of no use.
begin;
select plan(102);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
create table terms as select i, quad.encode(t) as id from unnest(array[
    '"2"^^<http://www.w3.org/2001/XMLSchema#int>', '"07"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"1.5E0"^^<http://www.w3.org/2001/XMLSchema#double>',
    '"NaN"^^<http://www.w3.org/2001/XMLSchema#double>', '"2.5"^^<http://www.w3.org/2001/XMLSchema#float>',
    '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>', '"2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date>',
    '"2020-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>', '"x"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"12"^^<http://example.org/money>', '""', '"a"', '"a rather long string"', '"a"@en', '"b"@en', '"c"@de', '"d"@en-gb-oxendict',
    '<http://example.org/a>', '<http://www.w3.org/2001/XMLSchema#integer>', '_:b7']::quad.term[]) with ordinality x(t, i);
insert into q select n, 1, quad.encode(quad.from_int(n % 997)), n % 2 from generate_series(1, 20000) n;
insert into q select 100 * i + n, 2, id, n % 2 from terms, generate_series(1, 30) n;
insert into q values (5, 2, 0, 0);
analyze q;
create table by_graph (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad with (orders = 'gspo');
insert into by_graph select n, 1, 1, case when n % 100 = 0 then 0 else quad.encode('<http://example.org/a>') end from generate_series(1, 20000) n;
analyze by_graph;

\set setting quad.enable_quad_join
\ir lib/plan_of.sql
\ir lib/same.sql

create table shapes (name text, query text);
insert into shapes values
    ('a comparison', 'select s, o from q where p = 1 and quad.gt(o, quad.find(''990''))'),
    ('any predicate', 'select s, o from q where quad.lt(o, quad.find(''2''))'),
    ('arithmetic', 'select s from q where p = 1 and quad.lt(quad.add(quad.decode(o), ''2''), ''5'')'),
    ('no column at all', 'select 1 from q where p = 1 and quad.gt(o, quad.find(''990''))'),
    ('a count', 'select count(*) from q where quad.gt(o, quad.find(''990''))'),
    ('counts of groups', 'select g, count(*) from q where p = 1 and quad.gt(o, quad.find(''990'')) group by g'),
    ('distinct', 'select distinct s % 10 from q where quad.gt(o, quad.find(''990''))'),
    ('sums', 'select sum(s), min(o) from q where quad.gt(o, quad.find(''990''))'),
    ('more conditions', 'select s from q where g = 1 and s > 400 and s % 3 = 1 and quad.gt(o, quad.find(''990'')) and o <> s'),
    ('one column twice', 'select s from q where p = g and quad.lt(o, quad.find(''990''))'),
    ('either', 'select s from q where quad.gt(o, quad.find(''990'')) or quad.fn_isiri(quad.decode(o))'),
    ('neither', 'select s from q where p = 2 and not (quad.gt(o, quad.find(''990'')) or quad.fn_isiri(quad.decode(o)))'),
    ('a datatype', 'select s, o from q where quad.eq(quad.fn_datatype(quad.decode(o)), ''<http://www.w3.org/2001/XMLSchema#integer>'')'),
    ('another one', 'select s, o from q where quad.ne(quad.fn_datatype(quad.decode(o)), ''<http://www.w3.org/2001/XMLSchema#integer>'')'),
    ('one that is not in the dictionary', 'select s, o from q where quad.eq(quad.fn_datatype(quad.decode(o)), ''<http://www.w3.org/2001/XMLSchema#double>'')'),
    ('the one of strings', 'select s, o from q where quad.eq(quad.fn_datatype(quad.decode(o)), ''<http://www.w3.org/2001/XMLSchema#string>'')'),
    ('the one of language strings', 'select s, o from q where quad.eq(quad.fn_datatype(quad.decode(o)), ''<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>'')'),
    ('one of others', 'select s, o from q where quad.eq(quad.fn_datatype(quad.decode(o)), ''<http://example.org/money>'')'),
    ('equal datatypes', 'select s from q where p = 2 and quad.eq(quad.fn_datatype(quad.decode(o)), quad.fn_datatype(''"4"^^<http://www.w3.org/2001/XMLSchema#double>''))'),
    ('a language', 'select s, o from q where quad.eq(quad.fn_lang(quad.decode(o)), ''"en"'')'),
    ('a language that no id tells', 'select s, o from q where quad.eq(quad.fn_lang(quad.decode(o)), ''"en-gb-oxendict"'')'),
    ('languages', 'select s, o from q where quad.fn_langmatches(quad.fn_lang(quad.decode(o)), ''"*"'')'),
    ('a text', 'select s, o from q where quad.eq(quad.fn_str(quad.decode(o)), ''"a"'')'),
    ('the text of an IRI', 'select s, o from q where quad.eq(''"http://example.org/a"'', quad.fn_str(quad.decode(o)))'),
    ('the text of a number', 'select s, o from q where quad.eq(quad.fn_str(quad.decode(o)), ''"2"'')'),
    ('other texts', 'select s, o from q where p = 2 and quad.ne(quad.fn_str(quad.decode(o)), ''"a"'')'),
    ('texts and numbers', 'select s, o from q where p = 2 and quad.eq(quad.fn_str(quad.decode(o)), ''2'')'),
    ('IRIs', 'select s, o from q where quad.fn_isiri(quad.decode(o))'),
    ('blank nodes', 'select s, o from q where quad.fn_isblank(quad.decode(o))'),
    ('literals that are no numbers', 'select s, o from q where quad.fn_isliteral(quad.decode(o)) and not quad.fn_isnumeric(quad.decode(o))'),
    ('what is bound', 'select s, o from q where p = 2 and quad.fn_isiri(quad.decode(o)) is not null'),
    ('no graph', 'select s from by_graph where quad.fn_isiri(quad.decode(g)) is null'),
    ('a subquery per row', 'select x, (select count(*) from q where p = 1 and s < x and quad.gt(o, quad.find(''990''))) from generate_series(1, 3000, 500) x'),
    ('a value per row', 'select x, (select count(*) from q where p = 1 and quad.lt(o, quad.find(quad.from_int(x)))) from generate_series(1, 5) x'),
    ('exists, or not', 'select x from generate_series(1, 5) x where x = 2 or exists (select from q where p = 1 and quad.eq(o, quad.find(quad.from_int(x * 333))))'),
    ('beside other relations', 'select x, s from generate_series(1, 5) x, q where p = 1 and quad.eq(quad.decode(o), ''1'') and s % 5 = x'),
    ('an outer join', 'select x, s from generate_series(1, 5) x left join q on p = 1 and quad.eq(quad.decode(o), ''1'') and s % 7 = x'),
    ('a part of a union', 'select s from q where quad.fn_isiri(quad.decode(o)) union all select s from q where quad.fn_isblank(quad.decode(o))');
select matches(pg_temp.plan_of(query), 'Quad Join.*Filter on Ids', name) from shapes where name not in ('a subquery per row', 'exists, or not');
select pg_temp.same(query, 'same answer: ' || name) from shapes;
set local quad.join_batch_size = 1;
select pg_temp.same(query, 'batches of one row: ' || name) from shapes where name in ('a datatype', 'more conditions', 'counts of groups', 'a value per row');
reset quad.join_batch_size;

select matches(pg_temp.plan_of('select s from q where p = 1 and quad.gt(quad.decode(o), ''990'') and quad.decode(o)::text like ''%9%'''),
    'Filter on Ids: quad.gt[^\n]*\n *Filter: [^\n]*~~', 'EXPLAIN tells which filters ids decide');
-- Ranges of the tree, not all of it.
create function pg_temp.rows_read(query text) returns bigint language sql as
    $f$ select substring(pg_temp.plan_of(query, 'analyze, costs off, timing off') from 'Pattern: .* rows=(\d+)')::bigint $f$;
select cmp_ok(pg_temp.rows_read('select s from q where p = 1 and quad.gt(o, quad.find(''990''))'), '<', 200::bigint, 'numbers above a limit');
select cmp_ok(pg_temp.rows_read('select s from q where quad.eq(quad.fn_lang(quad.decode(o)), ''"en"'')'), '<', 300::bigint, 'one language');
select cmp_ok(pg_temp.rows_read('select s from q where quad.eq(quad.fn_str(quad.decode(o)), ''"b"'')'), '<', 200::bigint, 'one text');
select cmp_ok(pg_temp.rows_read('select s from q where quad.fn_isiri(quad.decode(o))'), '<', 100::bigint, 'IRIs only');

-- What Quad Scan does better, or alone.
select doesnt_match(pg_temp.plan_of(query), 'Quad Join', query) from (values
    ('select s from q where p = 1 and o > 5'),
    ('select s from q where s = 5 and p = 1 and quad.gt(o, 7)'),
    ('select s from q where quad.gt(o, quad.find(''990'')) and random() < 0.5'),
    ('select s from q where quad.gt(o, quad.find(''990'')) for update'),
    ('select q from q where quad.gt(o, quad.find(''990''))')) v(query);
select doesnt_match(pg_temp.plan_of('select s, o from q where p = 1 and quad.lt(o, quad.find(''990'')) order by o limit 5'), 'Sort', 'an order is kept');
set local quad.enable_quad_join = off;
select doesnt_match(pg_temp.plan_of(query), 'Quad Join', 'turned off: ' || name) from shapes where name = 'a comparison';
reset quad.enable_quad_join;

-- Generic plans, cursors, own changes.
prepare generic(bigint, quad.term) as select count(*) from q where p = $1 and quad.ge(quad.decode(o), $2);
set local plan_cache_mode = force_generic_plan;
select results_eq('execute generic(1, ''990'')', 'values (140::bigint)', 'a generic plan');
select results_eq('execute generic(1, ''996'')', 'values (20::bigint)', 'with another value');
select results_eq('execute generic(1, null)', 'values (0::bigint)', 'with NULL');
reset plan_cache_mode;
declare c cursor for select s from q where p = 1 and quad.eq(quad.decode(o), '5');
delete from q where s = 1002 and p = 1;
select is((select count(*) from q where p = 1 and quad.eq(quad.decode(o), '5')), 20::bigint, 'a deleted quad is gone');
move forward 20 in c;
select isnt_empty('fetch 1 from c', 'an open cursor still sees it');
close c;

-- What stands behind the first argument of a COALESCE is evaluated where the first is NULL, not before.
create function pg_temp.fails() returns quad.term language plpgsql stable as $f$ begin raise exception 'evaluated'; end $f$;
select lives_ok($$select a.s from q a join q b on b.s = a.s
    where a.p = 1 and b.p = 1 and quad.lt(coalesce(quad.decode(a.o), pg_temp.fails()), '5')$$, 'a fallback that fails is not evaluated');
select lives_ok($$select a.s from q a join q b on b.s = a.s
    where a.p = 1 and b.p = 1 and quad.lt(coalesce(quad.decode(a.o), coalesce(pg_temp.fails(), '7')), '5')$$, 'nor one inside another');
select matches(pg_temp.plan_of($$select a.s from q a join q b on b.s = a.s
    where a.p = 1 and b.p = 1 and quad.lt(coalesce(quad.decode(a.o), '7'), '5')$$), 'Filter on Ids', 'a constant is as good as before');

-- Rights and policies.
create role reader_alone;
grant usage on schema quad to reader_alone;
grant select (s, o) on q to reader_alone;
create policy odd on q using (g = 1);
alter table q enable row level security;
create function peek(bigint) returns boolean language plpgsql cost 0.0001 as
    $f$ begin if $1 % 2 = 0 then raise 'seen %', $1; end if; return true; end $f$;
set local role reader_alone;
select throws_ok('select p from q where quad.fn_isiri(quad.decode(o))', '42501', null, 'a column without a right');
select is((select count(*) from q where quad.eq(quad.decode(o), '5')), 11::bigint, 'a policy hides rows');
select lives_ok('select s from q where quad.lt(o, 3476778912330023000) and peek(s)', 'conditions do not see what a policy hides');
select matches(pg_temp.plan_of('select s from q where quad.lt(o, 3476778912330023000) and peek(s)'), 'Quad Join', 'in the same node');
reset role;
select * from finish();
rollback;
