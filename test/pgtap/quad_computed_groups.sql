-- Groups and distinct rows by what is computed from columns of a join (Quad Count).
\set setting quad.enable_quad_join
begin;
select plan(91);
\ir lib/plan_of.sql
\ir lib/same.sql
\ir lib/same_answer.sql

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, 1, (i * 7919) % 1000, 0 from generate_series(1, 20000) i;
insert into q select i, 2, i % 37, 0 from generate_series(1, 20000) i where i % 5 > 0;
insert into q select i, 3, i % 20, 0 from generate_series(1, 20000) i;
analyze q;
create temp table shapes (name text, query text);
insert into shapes
select name, what || ' from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 ' || rest from (values
    ('counts', 'select a.o % 10 as k, count(*) as n', 'group by 1'),
    ('no aggregates', 'select a.o % 10 as k', 'group by 1'),
    ('least and greatest', 'select a.o % 10 as k, min(a.o + b.o) as l, max(a.o) as m, count(b.o) as n', 'group by 1'),
    ('a key of two columns', 'select (a.o + b.o) % 13 as k, count(*) as n', 'group by 1'),
    ('two keys of one column', 'select a.o % 7 as k, a.o % 3 as l, count(*) as n', 'group by 1, 2'),
    ('a key twice', 'select a.o % 7 as k, count(*) as n, a.o % 7 as l', 'group by a.o % 7, a.o % 7'),
    ('texts', 'select ''k'' || a.o % 7 as k, count(*) as n', 'group by 1'),
    ('texts of any case', 'select (case when a.o % 2 = 0 then ''x'' else ''X'' end collate caseless) as k, count(*) as n',
        'group by 1'),
    ('numbers that are equal and look different', 'select round((a.o % 5)::numeric, (b.o % 3)::int) as k, count(*) as n',
        'group by 1'),
    ('no value', 'select nullif(a.o % 5, 0) as k, count(*) as n', 'group by 1'),
    ('equal columns', 'select a.s % 10 as k, b.s % 10 as l, count(*) as n', 'group by 1, 2'),
    ('HAVING', 'select a.o % 10 as k, count(*) as n', 'group by 1 having a.o % 10 > 3 and max(a.o) < 999'),
    ('what is made of keys', 'select (a.o % 10) * 2 + count(*) as k, abs(a.o % 10) as l', 'group by a.o % 10'),
    ('distinct values', 'select distinct a.o % 10 as k', ''),
    ('distinct rows', 'select distinct b.o, a.o % 10 as k, ''k'' || b.o as l', ''),
    ('nothing', 'select a.o % 10 as k, count(*) as n', 'and b.o < 0 group by 1')
) x(name, what, rest);
insert into shapes values
    ('a column beside', 'select b.o, b.o / 5 as k, max(a.o) as m'
        ' from q a, q b where a.s = b.s and a.p = 3 and b.p = 2 group by 1, 2'),
    ('what may be unbound', 'select b.o % 5 as k, coalesce(b.o, -1) as l, count(b.o) as n, count(*) as m'
        ' from q a left join q b on b.s = a.s and b.p = 2 where a.p = 1 group by 1, 2');
create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
-- Whatever the costs.
set local enable_hashagg = off;
set local enable_sort = off;
select matches(pg_temp.plan_of(query), 'Quad Count', 'Quad Count for ' || name) from shapes where name <> 'nothing';
select pg_temp.same(query, name) from shapes;
reset enable_hashagg;
reset enable_sort;
select matches(pg_temp.plan_of('select a.o % 10, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1', 'analyze, costs off, timing off, summary off'),
    E'rows=8 .*\n +Column Groups: 800\n', 'EXPLAIN tells the groups by columns');

-- In the order of ids a column has an operator of its own for equal ones, which does not hash. The ids are of numbers.
create table of_numbers (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into of_numbers select i, 3476778912330022912 + i % 7, i % 500, 0 from generate_series(1, 40000) i;
analyze of_numbers;
\set query 'select p, o % 9 as k, count(*) as n from of_numbers group by 1, 2 order by p using operator(quad.<#)'
select matches(pg_temp.plan_of(:'query'), 'Quad Count', 'Quad Count for a column in the order of ids');
select pg_temp.same(:'query', 'a column in the order of ids');

-- What is not.
select doesnt_match(pg_temp.plan_of(query), 'Quad Count', name || ' is not') from (values
    ('what is different for each row', 'select a.o % 2 + (random() * 2)::int as k, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1'),
    ('a column that is not a key', 'select a.o % 10, a.o + 0 * a.o, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by a.o % 10, a.o, random()'),
    ('COUNT(DISTINCT)', 'select a.o % 10, count(distinct b.o) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1'),
    ('a value for nearly each row', 'select a.s % 19999 as k, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1'),
    ('a key of too many columns', (select format('select (%s) %% 10 as k, count(*) from %s where %s group by 1', string_agg(format('a%s.p + a%1$s.o + a%1$s.g', n), ' + '),
        string_agg('q a' || n, ', '), string_agg(format('a%s.s = a1.s and a%1$s.p = 1', n), ' and ')) from generate_series(1, 22) n)),
    ('GROUPING SETS', 'select a.o % 10, b.o, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by grouping sets (1, 2)')
) x(name, query);

-- Groups that memory has no room for, by columns and by keys. Nothing else may be chosen.
set local enable_hashagg = off;
set local enable_sort = off;
set local work_mem = '64kB';
insert into shapes values
    ('many keys', 'select a.s % 7000 + 1 as k, count(*) as n, max(a.o) as m from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1'),
    ('many texts', 'select repeat(''k'', 50) || a.s % 3000 as k, b.o, count(*) as n from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1, 2'),
    ('many distinct texts', 'select distinct repeat(''k'', 50) || a.s % 3000 as k from q a, q b where a.s = b.s and a.p = 1 and b.p = 2');
select matches(pg_temp.plan_of(query), 'Quad Count', 'Quad Count for ' || name) from shapes where name like 'many %';
select matches(pg_temp.plan_of(query, 'analyze, costs off, timing off, summary off'), 'Spilled: \d', 'files for ' || name) from shapes where name like 'many %';
select pg_temp.same(query, 'little memory: ' || name) from shapes;
select bag_eq('select k, count(*) as n from (' || query || ') x group by 1', 'select repeat(''k'', 2000) || s % 600 as k, 1::bigint as n from q group by 1', 'each key comes once: ' || name)
    from (values ('long keys', 'select repeat(''k'', 2000) || a.s % 600 as k, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 3 group by 1')) x(name, query);
declare some_keys scroll cursor with hold for select a.s % 7000 as k, count(*) as n from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1;
select isnt_empty('fetch 10 from some_keys', 'a cursor over some of them');
close some_keys;
reset work_mem;
reset enable_hashagg;
reset enable_sort;

-- Values from outside, errors, rights.
select results_eq('select v, (select count(*) from (select a.o % v from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1) x) from generate_series(3, 9, 3) v',
    'values (3, 3::bigint), (6, 6), (9, 9)', 'a key with a value of the row outside');
prepare with_parameter(bigint) as select count(*) from (select a.o % $1 from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1) x;
set local plan_cache_mode = force_generic_plan;
select results_eq('execute with_parameter(4)', 'values (4::bigint)', 'a key with a parameter');
select results_eq('execute with_parameter(8)', 'values (8::bigint)', 'and with another one');
reset plan_cache_mode;
select throws_ok('select 100 / (a.o - 7), count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1', '22012', null, 'an error of a key');
select lives_ok('select 100 / (b.o - 3), count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 and b.o <> 3 group by 1', 'no error of rows that are filtered out');
create function pg_temp.tenth(n bigint) returns bigint language sql immutable as 'select n / 10 from generate_series(1, 1)';
create role reader_of_groups;
grant select on q to reader_of_groups;
revoke execute on function pg_temp.tenth from public;
create policy some_rows on q for select to reader_of_groups using (o <> 999);
alter table q enable row level security;
set local role reader_of_groups;
select results_eq('select max(k) from (select a.o % 1000 as k, count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1) x', 'values (998::bigint)', 'rows that a policy hides');
select throws_ok('select pg_temp.tenth(a.o), count(*) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by 1', '42501', null, 'a function without the right to execute it');
reset role;
alter table q disable row level security;

-- SPARQL.
select quad.load_text('@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
' || string_agg(format(':r%s :of :p%s ; :at "20%s-0%s-01"^^xsd:date ; :stars %s ; :price %s ; :text "%s" . :p%s :label "%s"@en .', i, i % 50,
    to_char(10 + i % 9, 'FM00'), 1 + i % 3, i % 5, (i % 7) * 1.5, repeat('t', i % 40), i % 50, chr(65 + i % 50 % 26) || ' label'), E'\n'), format => 'turtle')
    from generate_series(1, 6000) i;
analyze quad_stores.main;
create temp table questions (name text, query text);
insert into questions values
    ('sums and averages by year', 'SELECT ?y ?p (SUM(?s) AS ?a) (AVG(?x) AS ?b) (COUNT(*) AS ?n) (MIN(?t) AS ?c) (MAX(?x) AS ?d) (SAMPLE(?p) AS ?e)
        { ?r :of ?p ; :at ?t ; :stars ?s ; :price ?x } GROUP BY (YEAR(?t) AS ?y) ?p'),
    ('first letters', 'SELECT ?k (COUNT(*) AS ?n) (MAX(?l) AS ?m) { ?r :of ?p . ?p :label ?l } GROUP BY (SUBSTR(?l, 1, 1) AS ?k)'),
    ('languages and datatypes', 'SELECT ?k ?d (COUNT(*) AS ?n) { ?r :of ?p . ?p :label ?l } GROUP BY (LANG(?l) AS ?k) (DATATYPE(?l) AS ?d)'),
    ('keys that are errors', 'SELECT ?k (COUNT(*) AS ?n) (SUM(?x) AS ?a) { ?r :price ?x ; :of ?p . ?p :label ?l } GROUP BY (?l + ?x AS ?k)'),
    ('lengths', 'SELECT ?k (COUNT(?t) AS ?n) { ?r :text ?t ; :of ?p } GROUP BY (STRLEN(?t) AS ?k) HAVING (COUNT(*) > 100 && STRLEN(?t) > 3)'),
    ('an optional value', 'SELECT ?k (COUNT(*) AS ?n) (COUNT(?l) AS ?m) { ?r :of ?p OPTIONAL { ?p :label ?l FILTER(STRSTARTS(?l, "B")) } } GROUP BY (COALESCE(?l, "none") AS ?k)'),
    ('distinct values', 'SELECT DISTINCT (SUBSTR(?l, 1, 1) AS ?k) (YEAR(?t) AS ?y) { ?r :of ?p ; :at ?t . ?p :label ?l }'),
    ('distinct values counted', 'SELECT (COUNT(DISTINCT SUBSTR(?l, 1, 1)) AS ?n) { ?r :of ?p . ?p :label ?l }');
select pg_temp.same_answer(query, name) from questions;
select matches((select string_agg(line, E'\n') from quad.explain('PREFIX : <http://e/> ' || query) line), 'Quad Count', 'Quad Count for ' || name)
    from questions where name in ('sums and averages by year', 'first letters', 'distinct values counted');
select * from finish();
rollback;
