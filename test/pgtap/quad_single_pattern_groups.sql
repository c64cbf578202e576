-- Groups, distinct rows and sums of a single pattern by what is computed from its columns (Quad Count over a Quad Join
-- of one pattern).
\set setting quad.enable_quad_join
begin;
select plan(77);
\ir lib/plan_of.sql
\ir lib/same.sql
\ir lib/same_answer.sql

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i % 4000, i % 7, (i * 7919) % 500, i % 2 from generate_series(1, 40000) i;
analyze q;
create function pg_temp.rows_of(query text) returns setof record language plpgsql as $f$
declare line record;
begin
    for line in execute query loop return next line; end loop;
end $f$;
create temp table shapes (name text, query text);
insert into shapes values
    ('counts', 'select o % 10 as k, count(*) as n from q group by 1'),
    ('no aggregates', 'select o % 10 as k from q group by 1'),
    ('least and greatest', 'select o % 10 as k, min(o) as l, max(s) as m, count(p) as n from q group by 1'),
    ('two keys', 'select p, o % 9 as k, count(*) as n from q group by 1, 2'),
    ('a key of two columns', 'select (o + p) % 9 as k, count(*) as n from q group by 1'),
    ('texts', 'select ''k'' || o % 7 as k, max(o) as m from q group by 1'),
    ('a condition on a column', 'select o % 10 as k, count(*) as n from q where p = 3 group by 1'),
    ('a condition on two columns', 'select o % 10 as k, count(*) as n from q where s < o group by 1'),
    ('a list and a range', 'select o % 10 as k, count(*) as n from q where p in (1, 3, 5) and o between 7 and 300 group by 1'),
    ('one column twice', 'select s % 5 as k, count(*) as n from q where s = o group by 1'),
    ('no value', 'select nullif(o % 5, 0) as k, count(*) as n from q group by 1'),
    ('HAVING', 'select o % 10 as k, count(*) as n from q group by 1 having count(*) > 3 and max(o) < 499'),
    ('distinct values', 'select distinct o % 10 as k from q where g = 0'),
    ('distinct rows', 'select distinct p, o % 10 as k, ''k'' || p as l from q'),
    ('nothing', 'select o % 10 as k, count(*) as n from q where p = 99 group by 1'),
    ('least and greatest by a column', 'select p, min(o) as l, max(s + o) as m from q group by 1'),
    ('a constant', 'select p, min(5::bigint) as l, max(o) as m from q group by 1'),
    ('distinct values with a limit', 'select count(*) from (select distinct o % 10 from q limit 3) x'),
    ('places of the groups', 'select o % 10 as k, count(*) as n, row_number() over (order by o % 10) as r from q group by 1'),
    ('HAVING without groups', 'select min(o + s) as l from q having count(*) > 1'),
    ('HAVING of nothing', 'select min(o + s) as l from q having count(*) < 1'),
    ('least of all', 'select min(o + s) as l, max(p) as m, count(*) as n from q where g = 1'),
    ('least of nothing', 'select min(o + s) as l, count(*) as n from q where p = 99');
-- Whatever the costs.
set local enable_hashagg = off;
set local enable_sort = off;
select matches(pg_temp.plan_of(query), E'Quad Count.*\n.*Quad Join', 'Quad Count for ' || name) from shapes
    where name not in ('nothing', 'one column twice', 'least of all', 'least of nothing', 'HAVING without groups', 'HAVING of nothing');
select pg_temp.same(query, name) from shapes;
set local work_mem = '64kB';
create temp table large (name text, query text);
insert into large values
    ('many keys', 'select s % 3000 + o % 3 as k, count(*) as n, max(o) as m from q group by 1'),
    ('many texts', 'select repeat(''k'', 50) || s % 3000 as k, p, count(*) as n from q group by 1, 2');
select pg_temp.same(query, 'little memory: ' || name) from large;
select matches(pg_temp.plan_of(query, 'analyze, costs off, timing off, summary off'), E'Quad Count(.|\n)*Spilled: \\d', 'files for ' || name) from large;
reset work_mem;
reset enable_hashagg;
reset enable_sort;
select matches(pg_temp.plan_of('select o % 10, count(*) from q group by 1', 'analyze, costs off, timing off, summary off'),
    E'rows=10 .*\n +Column Groups: 500\n', 'by costs, and EXPLAIN tells the groups by columns');

-- Counts by columns are read off the order of the quads. Nearly as many groups as rows are sorted ones.
select doesnt_match(pg_temp.plan_of(query), 'Quad Count', name || ' is not') from (values
    ('a count', 'select count(*) from q'),
    ('counts by a column', 'select p, count(*) from q group by 1'),
    ('distinct columns', 'select distinct p from q'),
    ('the whole row', 'select o % 10, count(q) from q group by 1'),
    ('the table of a row', 'select o % 10, min(tableoid) from q group by 1'),
    ('what is different for each row', 'select o % 2 + (random() * 2)::int, count(*) from q group by 1'),
    ('a sample', 'select o % 10, count(*) from q tablesample system (50) group by 1')
) x(name, query);

-- What needs terms, or may, is tested row by row.
set local enable_hashagg = off;
set local enable_sort = off;
select doesnt_match(pg_temp.plan_of(query), 'Quad Count', name || ' is not') from (values
    ('a condition that is computed', 'select o % 10 as k, count(*) as n from q where abs(o - 100) < 30 group by 1'),
    ('a condition that is different for each row', 'select o % 10 as k, count(*) as n from q where o > random() group by 1')
) x(name, query);

-- Values from outside, changes of the transaction itself, errors, rights.
prepare with_parameters(bigint, bigint) as select o % $1, max(o) from q where p = $2 group by 1 having max(o) > $2;
set local plan_cache_mode = force_generic_plan;
select results_eq('select count(*) from (select o % 3, max(o + 1) from q where p = 2 group by 1 having max(o + 1) > 2) x', 'values (3::bigint)', 'keys of three values');
select is((select count(*) from pg_temp.rows_of('execute with_parameters(3, 2)') x(k bigint, m bigint)), 3::bigint, 'a key, a condition and HAVING with parameters');
select is((select count(*) from pg_temp.rows_of('execute with_parameters(5, 4)') x(k bigint, m bigint)), 5::bigint, 'and with other ones');
reset plan_cache_mode;
select results_eq('select v, (select count(*) from (select o % v from q where p = v group by 1) x) from generate_series(2, 6, 2) v',
    'values (2, 2::bigint), (4, 4), (6, 6)', 'a key and a condition with a value of the row outside');
insert into q values (1, 100, 7, 0), (2, 100, 17, 0), (3, 100, 8, 0);
delete from q where p = 100 and s = 3;
select results_eq('select o % 10, count(*), max(s) from q where p = 100 group by 1', 'values (7::bigint, 2::bigint, 2::bigint)', 'changes of this transaction');
insert into q select o % 10, 101, count(*), 0 from q where p < 7 group by 1;
select results_eq('select count(*), sum(o) from q where p = 101', 'values (10::bigint, 28000::numeric)', 'groups of a table that go into it');
declare some_keys scroll cursor for select s % 3000 + o, count(*) from q group by 1;
select isnt_empty('fetch 10 from some_keys', 'a cursor over some keys');
close some_keys;
select throws_ok('select 100 / (o - 7), count(*) from q group by 1', '22012', null, 'an error of a key');
select lives_ok('select 100 / (o - 7), count(*) from q where o <> 7 group by 1', 'no error of rows that are filtered out');
create role reader_of_groups;
grant select on q to reader_of_groups;
create policy some_rows on q for select to reader_of_groups using (o < 490);
alter table q enable row level security;
set local role reader_of_groups;
select matches(pg_temp.plan_of('select o % 500 as k, count(*) from q group by 1'), 'Quad Count', 'Quad Count with a policy');
select lives_ok('select p, max(100 / (o - 495)) from q group by p', 'no error of rows that a policy hides');
select results_eq('select max(k) from (select o % 500 as k, count(*) from q group by 1) x', 'values (489::bigint)', 'rows that a policy hides');
reset role;
reset enable_hashagg;
reset enable_sort;

-- SPARQL.
select quad.load_text('@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
' || string_agg(format(':r%s :of :p%s ; :stars %s ; :price %s ; :text "%s" ; :label "%s"@en .', i, i % 50, i % 5, (i % 7) * 1.5, repeat('t', i % 40),
    chr(65 + i % 26) || ' label'), E'\n'), format => 'turtle') from generate_series(1, 6000) i;
analyze quad_stores.main;
create temp table questions (name text, query text);
insert into questions values
    ('datatypes', 'SELECT ?t (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (DATATYPE(?o) AS ?t)'),
    ('datatypes by predicate', 'SELECT ?p ?t (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p (DATATYPE(?o) AS ?t)'),
    ('kinds', 'SELECT ?i ?l (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY (isIRI(?o) AS ?i) (LANG(?o) AS ?l)'),
    ('distinct datatypes', 'SELECT DISTINCT (DATATYPE(?o) AS ?t) { ?s ?p ?o }'),
    ('lengths by predicate', 'SELECT ?p (AVG(STRLEN(STR(?o))) AS ?a) (SUM(STRLEN(STR(?s))) AS ?b) { ?s ?p ?o } GROUP BY ?p'),
    ('sums', 'SELECT (SUM(?o) AS ?a) (AVG(?o) AS ?b) (MIN(?o) AS ?c) (MAX(?o) AS ?d) { ?s :price ?o }'),
    ('sums with errors', 'SELECT ?p (SUM(?o) AS ?a) (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?p'),
    ('first letters', 'SELECT ?k (COUNT(*) AS ?n) { ?s :label ?l } GROUP BY (SUBSTR(?l, 1, 1) AS ?k) HAVING (COUNT(*) > 1)');
select pg_temp.same_answer(query, name) from questions;
select matches((select string_agg(line, E'\n') from quad.explain('PREFIX : <http://e/> ' || query) line), E'Quad Count.*\n.*Quad Join', 'Quad Count for ' || name)
    from questions where name in ('datatypes', 'lengths by predicate', 'sums');
select * from finish();
rollback;
