-- ORDER BY .. LIMIT above Quad Join: rows that are none of the first are not handed out.
begin;
select plan(78);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, 1, i + 1, 0 from generate_series(1, 3000) i;
insert into q select i, 2, i * 7 % 40 - 20, 0 from generate_series(1, 3000) i;
insert into q select i, 3, i % 5, 0 from generate_series(1, 3000, 3) i;
analyze q;
create table numbers (id bigint, n bigint, small integer);
insert into numbers select i * 5, case when i % 11 = 0 then null else i * 13 % 50 end, i * 17 % 60
        from generate_series(1, 500) i;
analyze numbers;

\set setting quad.enable_quad_join
\ir lib/same.sql

create table shapes (name text, query text);
insert into shapes values
    ('ascending', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2 order by b.o, a.s limit 10'),
    ('descending', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2
            order by b.o desc, a.s limit 10'),
    ('with an offset', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2
            order by b.o desc, a.s limit 10 offset 2900'),
    ('more than there are', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2
            order by b.o desc, a.s limit 9000'),
    ('none', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2 order by b.o desc, a.s limit 0'),
    ('no limit', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2 order by b.o desc, a.s
            limit null'),
    ('with ties', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2
            order by b.o desc fetch first 10 rows with ties'),
    ('nulls first', 'select a.s, c.o from q a left join q c on c.s = a.o and c.p = 3 where a.p = 1
            order by c.o desc nulls first, a.s limit 2100'),
    ('nulls last', 'select a.s, c.o from q a left join q c on c.s = a.o and c.p = 3 where a.p = 1
            order by c.o desc nulls last, a.s limit 1010'),
    ('above a left join', 'select a.s, c.o from q a left join q c on c.s = a.o and c.p = 3 where a.p = 1
            order by c.o desc nulls last, a.s limit 100'),
    ('a column from below', 'select n.id, n.n, b.o from (select * from numbers offset 0) n, q a, q b
            where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 order by n.n desc nulls last, n.id limit 20'),
    ('nulls from below first', 'select n.id, n.n, b.o from (select * from numbers offset 0) n, q a, q b
            where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 order by n.n nulls first, n.id limit 60'),
    ('left', 'select n.id, n.n, b.o from (select * from numbers offset 0) n left join (q a join q b on b.s = a.o
            and b.p = 3) on a.s = n.id and a.p = 1 order by n.n desc, n.id limit 70'),
    ('left, tested above', 'select n.id, n.n, b.o from (select * from numbers offset 0) n
            left join q b on b.s = n.id and b.p = 3 where b.o is null or b.o > 2
            order by n.n desc nulls last, n.id limit 20'),
    ('exists', 'select n.id, n.n from (select * from numbers offset 0) n where exists (select from q a, q b
            where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 3) order by n.n desc nulls last, n.id limit 20'),
    ('not exists', 'select n.id, n.n from (select * from numbers offset 0) n where not exists (select
            from q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 3)
            order by n.n desc nulls last, n.id limit 20'),
    ('a column from below, of which few rows match', 'select n.id, n.n, b.o from (select * from numbers offset 0) n,
            q b where b.s = n.id and b.p = 3 and b.o = 4 order by n.n desc nulls last, n.id limit 20'),
    ('left, some without a key', 'select n.id, n.n, b.o from (select case when id % 3 > 0 then id end id, n
            from numbers offset 0) n left join q b on b.s = n.id and b.p = 3 order by n.n desc nulls last, n.id limit 20'),
    ('from below for each of some', 'select k, x.* from generate_series(1, 4) k, lateral (select n.id, n.n, b.o
            from (select * from numbers where id % 4 <> k offset 0) n, q b
            where b.s = n.id and b.p = 2 order by n.n desc nulls last, n.id limit 7) x'),
    ('of another type', 'select n.id, n.small, b.o from (select * from numbers offset 0) n, q a, q b
            where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 order by n.small desc, n.id limit 20'),
    ('an expression', 'select a.s, b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2
            order by abs(b.o) desc, a.s limit 10'),
    ('distinct', 'select distinct b.o from q a, q b where a.p = 1 and b.s = a.o and b.p = 2 order by b.o desc
            limit 10'),
    ('grouped', 'select b.o, count(*) from q a, q b where a.p = 1 and b.s = a.o and b.p = 2 group by b.o
            order by b.o desc limit 10'),
    ('for each of some', 'select k, x.* from generate_series(1, 4) k, lateral (select a.s, b.o from q a, q b
            where a.p = 1 and a.s % 7 = k and b.s = a.o and b.p = 2 order by b.o desc, a.s limit 5) x');
select pg_temp.same(query, 'same answer: ' || name) from shapes;
set local quad.join_batch_size = 7;
select pg_temp.same(query, 'small batches: ' || name) from shapes;
-- The rows from below are two batches, each of which is divided.
set local quad.join_batch_size = 260;
select pg_temp.same(query, 'batches of 260: ' || name) from shapes;
reset quad.join_batch_size;

-- Rows that Sort gets.
create function pg_temp.removed(query text) returns bigint language plpgsql as $$
declare line text;
begin
    for line in execute 'explain (analyze, costs off, timing off, summary off) ' || query loop
        if line ~ 'Rows Removed by Leading Sort Key' then
            return substring(line from '\d+$')::bigint;
        end if;
    end loop;
    return 0;
end $$;
select cmp_ok(pg_temp.removed(query), '>', 2000::bigint, 'removed: ' || name) from shapes where name
        in ('ascending', 'descending') order by name;
select cmp_ok(pg_temp.removed(query), '>', 300::bigint, 'removed: ' || name) from shapes where name
        in ('a column from below', 'above a left join') order by name;
select is((select sum(pg_temp.removed(query)) from shapes where name
        in ('no limit', 'with ties', 'left, tested above', 'of another type', 'an expression', 'distinct', 'grouped')),
        0::numeric, 'all rows are handed out where any may be wanted');

-- Rows from below that come first are joined first; the others are not looked up where enough have a match.
create function pg_temp.looked_up(query text) returns bigint language plpgsql as $$
declare line text; keys bigint := 0;
begin
    for line in execute 'explain (analyze, costs off, timing off, summary off) ' || query loop
        keys := greatest(keys, coalesce(substring(line from ' keys=(\d+)')::bigint, 0));
    end loop;
    return keys;
end $$;
select cmp_ok(pg_temp.looked_up(query), '<', 100::bigint, 'keys looked up: ' || name) from shapes
        where name = 'a column from below';

select * from finish();
rollback;
