-- Quad Groups: where it is used, where it stays out of the way, and that its answers are those of PostgreSQL's own aggregates.
begin;
select plan(103);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, i % 7, i % 100, 0 from generate_series(1, 20000) i;
insert into q select i, 3, i % 10, i % 3 + 1 from generate_series(1, 3000) i;
insert into q values (-5, -6, -7, -8);
analyze q;

\set setting quad.enable_quad_groups
\ir lib/plan_of.sql
\ir lib/same.sql
create function pg_temp.groups(query text) returns bigint language sql as
    $f$ select count(*) from regexp_matches(pg_temp.plan_of(query), 'Quad Groups', 'g') $f$;

create table shapes (name text, query text);
insert into shapes values
    ('count(*)', 'select count(*) from q'),
    ('count of a column, and of a constant', 'select count(s) as a, count(1) as b, count(*) + 1 as n from q'),
    ('a prefix', 'select count(*) from q where p = 3'),
    ('a prefix, and a graph', 'select count(*) from q where p = 3 and o = 5 and g = 0'),
    ('a range', 'select count(*) from q where p = 3 and o between 10 and 40 and g = 0'),
    ('a graph', 'select count(*) from q where g = 0'),
    ('other graphs', 'select count(*) from q where g <> 0'),
    ('several graphs', 'select count(*) from q where g > 0 and g < 3 and p = 3'),
    ('a list', 'select count(*) from q where p = any (array[3, 1, 3, 77]) and g = 0'),
    ('contradictions', 'select count(*) from q where p = 3 and p = 4'),
    ('null', 'select count(*) from q where p = null::bigint'),
    ('nothing there', 'select count(*) from q where s = 123456789'),
    ('negative numbers', 'select count(*) from q where s < 0 and g < 0'),
    ('distinct predicates', 'select distinct p from q'),
    ('distinct predicates of a graph', 'select distinct p from q where g = 0'),
    ('distinct predicates of other graphs', 'select distinct p from q where g <> 0'),
    ('distinct pairs', 'select distinct p, o from q where g = 0'),
    ('pairs the other way', 'select distinct o, p from q'),
    ('distinct subjects', 'select distinct s from q where g = 0'),
    ('distinct objects of a predicate', 'select distinct o from q where p = 3'),
    ('distinct objects of predicates', 'select distinct p, o from q where p in (1, 3) and g = 0'),
    ('a condition on groups', 'select distinct p from q where p % 2 = 1 and g = 0'),
    ('an inequality on groups', 'select distinct p from q where p <> 3'),
    ('a constant among the groups', 'select distinct p, o from q where p = 3'),
    ('group by', 'select p, count(*) from q group by p'),
    ('group by with a graph', 'select p, count(*) from q where g = 0 group by p'),
    ('group by two', 'select p, o, count(*) from q where g = 0 group by o, p'),
    ('group by without counts', 'select p from q group by p'),
    ('group by an object', 'select o, count(s) from q where p = 3 and g = 0 group by o'),
    ('group by in a range', 'select o, count(*) from q where p = 3 and o > 95 group by o'),
    ('having', 'select p, count(*) from q group by p having count(*) > 2900'),
    ('expressions of counts', 'select p + 1 as p, count(*) * 2 as n from q group by p'),
    ('group by a constant', 'select p, count(*) from q where p = 3 group by p'),
    ('group by nothing there', 'select p, count(*) from q where p = 77 group by p'),
    ('graphs', 'select distinct g from q'),
    ('named graphs', 'select distinct g from q where g <> 0'),
    ('quads by graph', 'select g, count(*) from q group by g'),
    ('quads of a predicate by graph', 'select g, count(*) from q where p = 3 and o < 8 group by g'),
    ('subjects of an object', 'select p from q where s between 5 and 5000 group by p having count(*) > 3'),
    ('count distinct', 'select count(distinct s) from q'),
    ('count distinct of a graph', 'select count(distinct s) from q where g = 0'),
    ('count distinct with rows', 'select count(distinct p) as d, count(*) from q where g <> 0'),
    ('count distinct of objects', 'select count(distinct o) from q where p = 3'),
    ('count distinct by group', 'select p, count(distinct o) as d, count(*) from q where g = 0 group by p'),
    ('count distinct of nothing', 'select count(distinct s) as d, count(*) from q where g = 99');
select ok(pg_temp.groups(query) = 1, 'Quad Groups for ' || name) from shapes
    where name not in ('contradictions', 'null', 'nothing there', 'negative numbers', 'group by nothing there');
select pg_temp.same(query, 'same answer for ' || name) from shapes;

-- In and around other queries.
select results_eq('select p from (select distinct p from q) x order by p desc limit 2', 'values (6::bigint), (5)', 'in a subquery');
select results_eq('select distinct p from q order by p limit 3', 'values (-6::bigint), (0), (1)', 'in order');
select unalike(pg_temp.plan_of('select distinct p from q order by p limit 3'), '%Sort%', 'without a sort');
prepare counts(bigint) as select count(*) from q where p = $1 and g = 0;
set local plan_cache_mode = force_generic_plan;
select results_eq('execute counts(3)', 'select count(*) from q where p + 0 = 3 and g = 0', 'parameters');
select results_eq('select x, (select count(*) from q where p = x) from generate_series(2, 4) x',
    'select x, (select count(*) from q where p + 0 = x) from generate_series(2, 4) x', 'rescans');

-- Many values, next to no memory.
set local work_mem = '64kB';
select pg_temp.same('select s, count(*) from q where o >= 0 and g >= 0 group by s', 'scattered groups in files');
reset work_mem;

-- A condition that leaves few quads is no reason to read a whole order for them.
create table far (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into far select i, i % 7, i * 31, 0 from generate_series(1, 200000) i;
insert into far select i * 200, 50, i, 0 from generate_series(1, 1000) i;
insert into far select 15001, i, i, 0 from generate_series(1000, 2000) i;
analyze far;
select is(pg_temp.groups(query), 0::bigint, 'few quads in another order: ' || query) from (values
    ('select distinct s from far where p = 50'), ('select distinct o from far where s = 15001'),
    ('select count(distinct o) from far where s = 15001'), ('select o, count(*) from far where s = 15001 group by o'),
    ('select distinct s from far where p = 50 and s > 2')) v(query);
select alike(pg_temp.plan_of('select count(*) from q where p = 3 and g <> 0'), E'%Index Cond: (p = 3)\n%Filter on Ids: (g <> 0)%', 'EXPLAIN shows conditions');
select is(quad.range_count('q', null, 3, null, 1), (select count(*) from q where p + 0 = 3 and g + 0 = 1), 'a count that no order has at hand');
-- A condition without columns is none on groups.
select results_eq('select count(*) from q where s is null', 'values (0::bigint)', 'no column is ever null');
select unalike(pg_temp.plan_of('select s, x.x from q, (values (1), (2)) x(x) where s = null::bigint'), '%Quad%', 'nothing is read where nothing can be');

-- Elsewhere PostgreSQL does it.
select is(sum(pg_temp.groups(query)), 0::numeric, 'stays out of the way') from (values
    ('select count(*) from q where s = o'), ('select sum(s) from q'), ('select count(distinct g) from q'),
    ('select count(*) filter (where s > 3) from q'), ('select s, count(*) from q group by rollup (s)'),
    ('select distinct on (p) p, o from q'), ('select p % 2, count(*) from q group by 1'), ('select count(*) from q where g = any (array[1, 2])')) v(query);

-- Changes of the own transaction, and after a vacuum those of others.
insert into q values (1, 1000, 1, 0);
delete from q where p = 2;
select pg_temp.same('select p, count(*) from q where g = 0 group by p', 'own changes are counted');
savepoint a;
delete from q where p = 3;
rollback to a;
select pg_temp.same('select p, count(*), count(distinct o) as d from q group by p', 'what was rolled back is not');
select * from finish();
rollback;
