-- Quad Scan backward: ORDER BY ... DESC, max().
begin;
select plan(12);
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, i % 7, i % 1000 - 500, i % 2 from generate_series(1, 30000) i;
analyze q;
\set setting quad.enable_quad_scan
\ir lib/plan_of.sql
\ir lib/same.sql
select matches(pg_temp.plan_of('select max(o) from q where p = 3'), 'Index Order: posg.*Scan Direction: Backward', 'max() reads one leaf at the end');
select unalike(pg_temp.plan_of('select s from q order by s desc limit 3'), '%Sort%', 'descending without a sort');
select unalike(pg_temp.plan_of('select min(o) from q where p = 3'), '%Backward%', 'min() reads forward');
select pg_temp.same(query, query) from (values
    ('select max(s), min(s) from q'),
    ('select max(o), min(o) from q where p = 3'),
    ('select max(o) from q where p = 3 and g = 1 and o < 100'),
    ('select max(o) from q where p = 77'),
    ('select max(p) from q where g = 0'),
    ('select * from (select s, p, o from q order by s desc, p desc limit 25) x'),
    ('select * from (select o, s from q where p = 2 order by o desc, s desc limit 700) x')) v(query);
declare c scroll cursor for select s from q order by s desc;
move forward 5000 in c;
select results_eq('fetch 2 from c', 'values (25000::bigint), (24999)', 'a cursor goes on');
select results_eq('fetch backward 1 from c', 'values (25000::bigint)', 'and back');
select * from finish();
rollback;
