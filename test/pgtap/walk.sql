-- Quad Walk: where it is used, that its answers are those of PostgreSQL's own recursive union, and that it keeps within its memory.
begin;
select plan(65);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
-- A chain, a tree, cycles, and a wide random graph.
insert into q select i, 1, i + 1, 0 from generate_series(1, 300) i;
insert into q select i, 2, i / 3, 0 from generate_series(1, 1000) i;
insert into q select i, 3, (i * 7 + 3) % 50, i % 2 from generate_series(0, 49) i;
insert into q select i % 3000, 4, (i * 7919 + i / 3000) % 3000, 0 from generate_series(1, 12000) i;
insert into q values (-5, 5, -6, 0), (-6, 5, -7, 0), (-7, 5, -5, 0);
analyze q;

\set setting quad.enable_quad_walk
\ir lib/plan_of.sql
\ir lib/same.sql

create table shapes (name text, query text);
insert into shapes values
    ('a chain', 'with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = 1) select * from w'),
    ('backward', 'with recursive w(n) as (select 250::bigint union select q.s from w, q where q.o = w.n and q.p = 1 and q.g = 0) select * from w'),
    ('a tree', 'with recursive w(n) as (select 1::bigint union select q.s from w, q where q.o = w.n and q.p = 2) select count(*), sum(n) from w'),
    ('a cycle', 'with recursive w(n) as (select 3::bigint union select q.o from w, q where q.s = w.n and q.p = 3) select * from w'),
    ('one graph of a cycle', 'with recursive w(n) as (select 3::bigint union select q.o from w, q where q.s = w.n and q.p = 3 and q.g = 1) select * from w'),
    ('several predicates', 'with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p in (1, 2, 1)) select * from w'),
    ('all but one predicate', 'with recursive w(n) as (select 7::bigint union select q.o from w, q where q.s = w.n and q.p <> 4 and q.p <> 1) select * from w'),
    ('any predicate', 'with recursive w(n) as (select 7::bigint union select q.o from w, q where q.s = w.n and q.g = 0) select * from w'),
    ('a range of objects', 'with recursive w(n) as (select 900::bigint union select q.o from w, q where q.s = w.n and q.p = 2 and q.o > 5) select * from w'),
    ('negative ids', 'with recursive w(n) as (select -5::bigint union select q.o from w, q where q.s = w.n and q.p = 5) select * from w'),
    ('pairs', 'with recursive w(a, b) as (select s, o from q where p = 3 union select w.a, q.o from w, q where q.s = w.b and q.p = 3) select * from w'),
    ('pairs backward', 'with recursive w(a, b) as (select s, o from q where p = 2 and s < 200 union select q.s, w.b from w, q where q.o = w.a and q.p = 2) select * from w'),
    ('two quads a step', 'with recursive w(n) as (select 1::bigint union select y.o from w, q x, q y where x.s = w.n and x.p = 1 and y.s = x.o and y.p = 1) select * from w'),
    ('two quads a step, forth and back', 'with recursive w(a, b) as (select 5::bigint, 5::bigint union select w.a, y.s from w, q x, q y where x.s = w.b and x.p = 2 and y.o = x.o and y.p = 2 and y.g = 0) select * from w'),
    ('many starts', 'with recursive w(n) as (select s from q where p = 4 and s < 40 union select q.o from w, q where q.s = w.n and q.p = 1) select * from w'),
    ('null among the starts', 'with recursive w(n) as (select n::bigint from (values (null), (1), (null), (299)) v(n) union select q.o from w, q where q.s = w.n and q.p = 1) select * from w'),
    ('null beside the starts', 'with recursive w(a, b) as (select null::bigint, n::bigint from (values (null), (1), (1), (290)) v(n) union select w.a, q.o from w, q where q.s = w.b and q.p = 1) select * from w'),
    ('rescans', 'select x, (with recursive w(n) as (select x::bigint union select q.o from w, q where q.s = w.n and q.p = 2) select count(*) from w) from generate_series(1, 30) x'),
    ('rescans with a condition', 'select x, l.* from generate_series(1, 3) x, lateral (with recursive w(n) as (select 3::bigint union select q.o from w, q where q.s = w.n and q.p = x) select count(*) from w) l'),
    ('no steps at all', 'with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = (select null::bigint)) select * from w'),
    ('alternatives', 'with recursive w(n) as (select 250::bigint union select u.b from w, (select s as a, o as b from q where p = 1 and g = 0 union all select o, s from q where p = 2) u where u.a = w.n) select count(*), sum(n) from w'),
    ('pairs by alternatives', 'with recursive w(a, b) as (select s, o from q where p = 3 union select w.a, u.b from w, (select x.s as a, y.o as b from q x, q y where x.p = 3 and y.s = x.o and y.p = 3 union all select o, s from q where p in (3, 5) union all select s, o from q where p = 2 and o <> 4) u where u.a = w.b) select a, count(*), sum(b) from w group by a'),
    ('subqueries that read nothing', 'with recursive w(n) as (select 1::bigint union select u.b from w, (select s as a, o as b from q where p = (select 1) union all select s, o from q where p in ((select 2), (select coalesce(null, 1)))) u where u.a = w.n) select count(*), sum(n) from w'),
    ('one alternative leads nowhere', 'with recursive w(n) as (select 1::bigint union select u.b from w, (select s as a, o as b from q where p = 99 union all select s, o from q where p = 1) u where u.a = w.n) select count(*), sum(n) from w'),
    ('the random graph', 'with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = 4) select count(*), sum(n) from w');
select matches(pg_temp.plan_of(query, 'costs off, verbose'), 'Quad Walk', 'Quad Walk for ' || name) from shapes;
-- These look like walks and are none.
insert into shapes values
    ('a row of two values',
        'with recursive w(n) as (select 3::bigint
        union select u.b from w, (select s as a, o as b from q where (p, g) = (select 3::bigint, 0::bigint)
        union all select s, o from q where p = 99) u where u.a = w.n) select count(*), sum(n) from w'),
    ('an array of a subquery',
        'with recursive w(n) as (select 30::bigint
        union select u.b from w, (select s as a, o as b from q where p = any (array(select 2::bigint))
        union all select s, o from q where p = 99) u where u.a = w.n) select count(*), sum(n) from w'),
    ('a chain that comes back',
        'with recursive w(n) as (select -5::bigint
        union select u.b from w, (select x.s as a, x.o as b from q x, q y, q z
        where x.p = 5 and y.p = 5 and y.s = x.o and y.o = x.s and z.p = 99
        union all select s, o from q where p = 99) u where u.a = w.n) select count(*), sum(n) from w'),
    ('a step that comes back',
        'with recursive w(n) as (select 1::bigint
        union select x.o from w, q x, q y, q z
        where x.s = w.n and x.p = 1 and y.p = 1 and y.s = x.o and y.o = x.g and z.p = 99)
        select count(*), sum(n) from w');

select pg_temp.same(query, 'same answer for ' || name) from shapes where name not like 'rescans%';
select pg_temp.same(query, 'same answer for ' || name) from shapes where name like 'rescans%';

-- Next to no memory: the rows found so far go to files.
set local work_mem = '64kB';
select pg_temp.same('with recursive w(a, b) as (select s, o from q where p = 4 and s < 30 union select w.a, q.o from w, q where q.s = w.b and q.p = 4) select a, count(*), sum(b) from w group by a',
    'the same with little memory');
select matches(pg_temp.plan_of('with recursive w(a, b) as (select s, o from q where p = 4 and s < 30 union select w.a, q.o from w, q where q.s = w.b and q.p = 4) select count(*) from w', 'analyze, costs off, timing off'),
    'Runs Spilled: [1-9]', 'which is in files then');
reset work_mem;

-- A LIMIT stops the walk.
select unalike(pg_temp.plan_of('with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = 4) select * from w limit 3', 'analyze, costs off, timing off'),
    '%Frontiers: 9%', 'a limit stops early');

-- Elsewhere PostgreSQL does it.
select unalike(string_agg(pg_temp.plan_of(query), ''), '%Quad Walk%', 'stays out of the way') from (values
    ('with recursive w(n) as (select 1::bigint union all select q.o from w, q where q.s = w.n and q.p = 1) select * from w'),
    ('with recursive w(n, d) as (select 1::bigint, 0 union select q.o, d + 1 from w, q where q.s = w.n and q.p = 1) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select q.o + 1 from w, q where q.s = w.n and q.p = 1) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = 1 and w.n < 20) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s > w.n and q.p = 1) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select q.o from w, q where q.s = w.n and q.p = q.o) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select u.b from w, (select s as a, o as b from q where p = 1 union all select s, o + 1 from q where p = 2) u where u.a = w.n) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select u.b from w, (select s as a, o as b from q where p = 1 union all select s, o from q where p = (select max(s) from q)) u where u.a = w.n) select * from w'),
    ('with recursive w(n) as (select 1::bigint
        union select u.b from w, (select s as a, o as b from q where p = (select 1 + floor(random())::bigint)
        union all select s, o from q where p = 2) u where u.a = w.n) select * from w'),
    ('with recursive w(n) as (select 1::bigint
        union select u.b from w, (select x.s as a, x.o as b from q x, q y, q z where y.s = x.o and y.o = x.s and z.p = 9
        union all select s, o from q where p = 2) u where u.a = w.n) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select u.b from w, (select s as a, o as b from q where p = 1 union all select 1, 2) u where u.a = w.n) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select u.b from w, (select s as a, o as b from q where p = 1 union all select s, o from q where p = 2) u where u.a = w.n and u.b < 40) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select u.b from w, q x, (select s as a, o as b from q where p = 1 union all select s, o from q where p = 2) u where x.s = w.n and u.a = x.o) select * from w'),
    ('with recursive w(n) as (select 1::bigint union select q.o from w left join q on q.s = w.n and q.p = 1) select * from w')) v(query);

-- A parameter of the statement in an alternative.
prepare alternatives(bigint) as with recursive w(n) as (select 20::bigint union select u.b from w, (select s as a, o as b from q where p = $1 union all select o, s from q where p = 3) u where u.a = w.n) select array_agg(n order by n) from w;
set local plan_cache_mode = force_generic_plan;
select matches(pg_temp.plan_of('execute alternatives(2)', 'costs off'), 'Quad Walk', 'parameters in an alternative');
create temp table with_walk as execute alternatives(2);
set local quad.enable_quad_walk = off;
deallocate alternatives;
prepare alternatives(bigint) as with recursive w(n) as (select 20::bigint union select u.b from w, (select s as a, o as b from q where p = $1 union all select o, s from q where p = 3) u where u.a = w.n) select array_agg(n order by n) from w;
select results_eq('execute alternatives(2)', 'table with_walk', 'same answer with parameters in an alternative');
reset quad.enable_quad_walk;
reset plan_cache_mode;

-- Rights, policies and the own transaction's changes.
insert into q values (301, 1, 302, 0);
delete from q where s = 100 and p = 1;
select pg_temp.same(query, 'own changes') from shapes where name = 'a chain';
create role walker;
grant select on q, shapes to walker;
alter table q enable row level security;
create policy of_a_graph on q to walker using (g = 0);
set local role walker;
select results_eq('with recursive w(n) as (select 3::bigint union select q.o from w, q where q.s = w.n and q.p = 3) select n from w order by 1',
    'select n from (values (3::bigint)) v(n) order by 1', 'a policy holds inside');
select results_eq('with recursive w(n) as (select 3::bigint union select u.b from w, (select s as a, o as b from q where p = 3 union all select o, s from q where p = 3) u where u.a = w.n) select n from w order by 1',
    'with recursive w(n) as (select 3::bigint union select u.b from w, (select s as a, o as b from q where p = 3 and g = 0 union all select o, s from q where p = 3 and g = 0) u where u.a = w.n) select n from w order by 1', 'a policy holds inside of alternatives');
reset role;
revoke select on q from walker;
set local role walker;
select throws_ok('with recursive w(n) as (select 3::bigint union select q.o from w, q where q.s = w.n and q.p = 3) select n from w', '42501', null, 'rights are checked');
select throws_ok('with recursive w(n) as (select 3::bigint union select u.b from w, (select s as a, o as b from q where p = 3 union all select o, s from q where p = 3) u where u.a = w.n) select n from w', '42501', null, 'rights are checked of alternatives');
reset role;
select * from finish();
rollback;
