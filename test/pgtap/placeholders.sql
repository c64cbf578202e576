-- Expressions of the nullable side of outer joins become placeholders: below the nodes of quads, in their conditions
-- and in their answers. Compared with a heap table of the same rows.
begin;
\ir lib/plan_of.sql
create table h (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into h select i, 1, i + 1, 0 from generate_series(1, 3000) i;
insert into h select i, 2, i % 10, i % 2 from generate_series(1, 3000, 3) i;
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select * from h;
create table few as select i as s, i % 3 as k from generate_series(1, 30, 2) i;
analyze h;
analyze q;
analyze few;

-- %1$s stands for the table.
create table shapes (name text, query text);
insert into shapes values
    ('a constant, compared with a column', 'select a.s, x.k from few f left join (select s, 2::bigint as k from few where k = 1) x on x.s = f.s
        join %1$s a on a.s = f.s and a.p = x.k'),
    ('a constant of an option, compared above it', 'select a.s, x.k from %1$s a left join (select s, 7::bigint as k from %1$s where p = 2) x on x.s = a.o
        where a.p = 1 and (a.o <> x.k or x.k is null)'),
    ('a constant in a condition of a lateral query', 'select f.s, y.o from few f left join (select s, 1::bigint as k from few where k = 1) x on x.s = f.s
        left join lateral (select a.o from %1$s a where a.s = f.s and a.p = x.k) y on true'),
    ('a constant in exists', 'select f.s from few f left join (select s, 1::bigint as k from few where k = 1) x on x.s = f.s
        where exists (select from %1$s a join %1$s b on b.s = a.o where a.s = f.s and a.p = x.k and b.p = 1)'),
    ('coalesce over an option', 'select a.s, coalesce(x.v, -1) as v from %1$s a left join (select s, coalesce(o, 0) as v from %1$s where p = 2) x
        on x.s = a.o where a.p = 1 and coalesce(x.v, 3) < 5'),
    ('an option of an expression in a join', 'select a.s, x.v, c.o from %1$s a left join (select b.s, b.o + 1 as v, true as yes from %1$s b where b.p = 2) x
        on x.s = a.o join %1$s c on c.s = a.s and c.p = 1 where a.p = 1 and (x.yes is null or x.v > 4)'),
    ('whole rows', 'select a.s, x is null as none, (x).o from %1$s a left join (select b.* from %1$s b where b.p = 2) x on x.s = a.o where a.p = 1'),
    ('whole rows of a lateral query', 'select f.s, y::text as y from few f left join lateral (select a.s, a.o, f.k as k from %1$s a where a.s = f.s and a.p = 2) y on true'),
    ('a lateral query below a lateral query', 'select f.s, z.o from few f left join lateral (select a.o, 1::bigint as p from %1$s a where a.s = f.s and a.p = 1) y on true
        left join lateral (select b.o from %1$s b where b.s = y.o and b.p = y.p) z on true'),
    ('placeholders in a list', 'select a.s, a.p from few f left join (select s, 2::bigint as k from few where k = 1) x on x.s = f.s
        join %1$s a on a.s = f.s and a.p = any (array[x.k, 5])'),
    ('groups by a placeholder', 'select x.k, count(*) as n from %1$s a left join (select s, 2::bigint as k from %1$s where p = 2) x on x.s = a.o
        where a.p = 1 group by x.k'),
    ('groups by columns, aggregates of a placeholder', 'select a.p, count(x.k) as n, sum(x.v) as v from %1$s a
        left join (select s, 2::bigint as k, o + 1 as v from %1$s where p = 2) x on x.s = a.o group by a.p'),
    ('groups inside an option', 'select f.s, x.n, x.yes from few f left join (select o, count(*) as n, true as yes from %1$s where p = 2 group by o) x on x.o = f.s'),
    ('a count inside an option', 'select f.s, x.n, x.k from few f left join (select count(*) + 1 as n, 1::bigint as k from %1$s where p = 2) x on f.k = x.k'),
    ('a count of a pattern inside an option', 'select f.s, x.n, x.n is null as none from few f
        left join (select count(*) as n from %1$s where p = 2) x on x.n = f.s + 999'),
    ('a join inside an option', 'select f.s, x.v, x.k from few f left join (select a.s, b.o + 1 as v, 2::bigint as k from %1$s a
        join %1$s b on b.s = a.o and b.p = 2 join %1$s c on c.s = b.s and c.p = 1 where a.p = 1) x on x.s = f.s'),
    ('options in a chain, a condition above', 'select a.s, coalesce(x.v, 0) as v, c.o from %1$s a
        left join (select b.s, b.o + 1 as v, 5::bigint as k from %1$s b where b.p = 2) x on x.s = a.o
        join %1$s c on c.s = a.o and c.p = 1 where a.p = 1 and (a.o > x.k or x.k is null)'),
    ('a join of its own below an option', 'select f.s, x.v, x.k from few f left join (select y.*, 2::bigint as k from (select a.s, b.o + 1 as v from %1$s a
        join %1$s b on b.s = a.o and b.p = 2 join %1$s c on c.s = b.s and c.p = 1 where a.p = 1 offset 0) y) x on x.s = f.s'),
    ('a count of a join, lateral', 'select f.s, y.n from few f left join (select s, 2::bigint as k from few where k = 1) x on x.s = f.s
        left join lateral (select count(*) as n from %1$s a join %1$s b on b.s = a.o join %1$s c on c.s = b.s where a.o <> x.k and b.p = x.k and c.p = 1) y on true'),
    ('groups of a join inside an option', 'select f.s, x.n, x.k from few f left join (select b.o, count(*) as n, 1::bigint as k from %1$s a
        join %1$s b on b.s = a.o and b.p = 2 join %1$s c on c.s = b.s and c.p = 1 where a.p = 1 group by b.o) x on x.o = f.s'),
    ('a count over an option', 'select count(x.k) as n from %1$s a left join (select s, 2::bigint as k from %1$s where p = 2) x on x.s = a.o where a.p = 1'),
    ('a walk inside an option', 'select f.s, x.n, x.k from few f left join (with recursive w(n) as (select 2995::bigint union
        select a.o from w join %1$s a on a.s = w.n and a.p = 1) select n, 4::bigint as k from w) x on x.n = f.s + 2970'),
    ('a walk from a placeholder', 'select f.s, y.n from few f left join (select s, 2997::bigint as k from few where k = 1) x on x.s = f.s
        left join lateral (with recursive w(n) as (select x.k union select a.o from w join %1$s a on a.s = w.n and a.p = 1) select n from w) y on true'),
    ('a full join', 'select x.s, y.s as t, x.k, y.k as l from (select s, 1::bigint as k from %1$s where p = 1) x
        full join (select o as s, 2::bigint as k from %1$s where p = 2) y on x.s = y.s'),
    ('a filter of the option itself, which makes it an inner join', 'select f.s, x.o from few f left join (select s, o, p, 12::bigint as k from %1$s) x
        on x.s = f.s where x.o <> x.k'),
    ('a filter of a scan with nothing but a placeholder', 'select f.s, x.o from few f left join (select s, o, 39 as k from %1$s) x
        on x.s = f.s where x.k <> (select count(*) from few)'),
    ('a filter of a join', 'select f.s, x.o from few f left join (select a.s, b.o, 12::bigint as k from %1$s a join %1$s b on b.s = a.o) x
        on x.s = f.s where x.o <> x.k and x.o > x.k - 9'),
    ('a condition that no table is in', 'select a.s from few f right join %1$s a on f.s = a.s left join (select 9::bigint as k from few where s = 1) x on f.s = 1
        left join %1$s b on b.o = x.k and b.p = 2 where a.p = 1');

select plan((select count(*)::int from shapes) * 2 + 1);

create function pg_temp.answers(name text, query text) returns setof text language sql as $f$
    select bag_eq(format(query, 'q'), format(query, 'h'), name) $f$;
select pg_temp.answers(name, query) from shapes;
-- As the answer of one node after the other.
set enable_hashjoin = off;
set enable_mergejoin = off;
select pg_temp.answers(name || ', nested loops', query) from shapes;
reset enable_hashjoin;
reset enable_mergejoin;

create function pg_temp.nodes() returns setof text language sql as $f$
    select distinct (regexp_matches(pg_temp.plan_of(format(query, 'q')), 'Quad (?:Scan|Join|Groups|Count|Walk)', 'g'))[1] from shapes $f$;
select bag_eq('select pg_temp.nodes()', $$values ('Quad Scan'), ('Quad Join'), ('Quad Groups'), ('Quad Count'), ('Quad Walk')$$, 'all nodes are met');

select * from finish();
rollback;
