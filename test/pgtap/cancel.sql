-- Statements that would run for minutes end soon after they are cancelled, whatever step they are in.
begin;
select plan(24);

-- Three predicates of a dense graph: 2,000 nodes, 50 edges of each.
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i % 2000, p, (i / 2000 * 7919 + i * 31 + p) % 2000, 0 from generate_series(0, 99999) i, generate_series(1, 3) p;
insert into q select i, p, i, 0 from generate_series(0, 1999) i, generate_series(4, 6) p;
analyze q;

\ir lib/plan_of.sql
-- The statement's timeout is a cancel at a time of the server's choosing.
create function pg_temp.cancelled(query text) returns text language plpgsql as $f$
declare began timestamptz := clock_timestamp();
begin
    execute query;
    return 'ended by itself';
exception when query_canceled then
    return case when clock_timestamp() - began < '30 s' then 'soon' else 'after ' || clock_timestamp() - began end;
end $f$;

create temp table long (name text, node text, query text);
insert into long values
    ('batched probes', 'Quad Join',
     'select a.s from q a, q b, q c, q d where a.p = 1 and b.p = 2 and c.p = 3 and d.p = 1 and b.s = a.o and c.s = b.o and d.s = c.o offset 1000000000000'),
    ('cycles', 'Quad Join',
     'select a.s from q a, q b, q c, q d where a.p = 1 and b.p = 2 and c.p = 3 and b.s = a.o and c.s = b.o and d.s = c.o and d.o = a.s and d.p = 1 offset 1000000000000'),
    ('a Cartesian product', 'Quad Join', 'select a.s from q a, q b where a.p = 1 and b.p = 2 offset 1000000000000'),
    ('a filter that nothing passes', 'Quad Join',
     'select a.s from q a, q b, q c where a.p = 1 and b.p = 2 and c.p = 3 and b.s = a.o and c.s = b.o and a.s + b.s + c.s < 0'),
    ('a filter on ids that nothing passes', 'Quad Join',
     'select a.s from q a, q b, q c, q d where a.p = 1 and b.p = 2 and c.p = 3 and d.p = 1 and b.s = a.o and c.s = b.o and d.s = c.o and d.o < a.s and d.o > a.s'),
    ('an optional part', 'Quad Join',
     'select a.s from q a left join (q b join q c on c.s = b.o and c.p = 3 join q d on d.s = c.o and d.p = 1) on b.s = a.o and b.p = 2 where a.p = 1 offset 1000000000000'),
    ('NOT EXISTS', 'Quad Join',
     'select a.s from q a, q e where a.p = 1 and e.p = 2 and e.s = a.o and not exists (select 1 from q b, q c, q d'
     ' where b.p = 2 and b.s = e.o and c.p = 3 and c.s = b.o and d.p = 1 and d.s = c.o and a.s + b.o + c.o + d.o < 0) offset 1000000000000'),
    ('DISTINCT rows', 'Quad Join',
     'select distinct a.s, c.o, d.o from q a, q b, q c, q d where a.p = 1 and b.p = 2 and c.p = 3 and d.p = 1 and b.s = a.o and c.s = b.o and d.s = c.o'),
    ('counting with groups', 'Quad Count',
     'select a.s, count(*) from q a, q b, q c, q d where a.p = 1 and b.p = 2 and c.p = 3 and d.p = 1 and b.s = a.o and c.s = b.o and d.s = c.o and d.o > a.o group by 1'),
    ('the inner side of a nested loop', 'Quad Join',
     'select n from generate_series(1, 100000) n, lateral (select count(*) from q a, q b, q c where a.s = n % 2000 and a.p = 1 and b.p = 2 and b.s = a.o and c.p = 3 and c.s = b.o and c.o > n) x offset 1000000000'),
    ('stars', 'Quad Join',
     'select n from generate_series(1, 100000) n, lateral (select count(a.g + b.g) from q a, q b, q c where a.s = n % 2000 and a.p = 4 and b.s = n % 2000 and b.p = 5 and c.s = n % 2000 and c.p = 6) x offset 1000000000'),
    ('paths', 'Quad Walk',
     'with recursive reached(start, node) as (select s, o from q where p in (1, 2, 3) union select r.start, e.o from reached r join q e on e.s = r.node and e.p in (1, 2, 3)) select * from reached offset 1000000000');

select matches(pg_temp.plan_of(query), node, name || ': the plan') from long;
set local statement_timeout = '100ms';
select format('select is(pg_temp.cancelled(%L), ''soon'', %L)', query, name) from long \gexec
set local statement_timeout = 0;

select * from finish();
rollback;
