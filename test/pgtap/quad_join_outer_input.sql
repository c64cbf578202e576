-- Quad Join fed by another plan, and equality of values as a key.
begin;
select plan(48);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, 1, i + 1, 0 from generate_series(1, 20000) i;
insert into q select i, 2, i % 10, i % 2 from generate_series(1, 20000) i;
insert into q select i, 3, i % 7, 0 from generate_series(1, 20000, 3) i;
analyze q;
create table names (id bigint, name text, n integer);
insert into names select case when i % 10 = 0 then null else i * 7 end, repeat('name ' || i, i % 5), i from generate_series(1, 300) i;
insert into names values (7, 'again', 1000), (-5, 'negative', 1001), (null, null, 1002);
analyze names;

\set setting quad.enable_quad_join
\ir lib/plan_of.sql
\ir lib/same.sql

create table shapes (name text, query text);
insert into shapes values
    ('a table', 'select n.name, b.o from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2'),
    ('a single pattern', 'select n.*, a.o from names n, q a where a.s = n.id and a.p = 1'),
    ('two keys', 'select n.n, a.o, b.o bo from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.s and b.p = 2 and b.o = n.n % 10 + 0 * n.id'),
    ('two columns', 'select x.n, a.o from (select id, id + 1 as next, n from names limit 200) x, q a, q b where a.s = x.id and a.o = x.next and b.s = a.o and b.p = 2'),
    ('conditions across', 'select n.n, b.o from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 and b.o + n.n > 100 and length(n.name) > b.o'),
    ('left', 'select n.n, n.name, b.o from names n left join (q a join q b on b.s = a.o and b.p = 3) on a.s = n.id and a.p = 1'),
    ('left, tested above', 'select n.n, b.o from names n left join q b on b.s = n.id and b.p = 3 where b.o is null or b.o > 2'),
    ('exists', 'select n.* from names n where exists (select from q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 3)'),
    ('not exists', 'select n.* from names n where not exists (select from q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 3)'),
    ('a subquery with a limit', 'select t.m, b.o from (select a.o, max(a.s) m from q a where a.p = 2 group by a.o order by 2 limit 5) t, q a, q b where a.s = t.m and a.p = 1 and b.s = a.o and b.p = 2'),
    ('values', 'select v.name, b.o from (values (1::bigint, ''a''), (null, ''b''), (77, ''c''), (77, ''d'')) v(x, name), q a, q b where a.s = v.x and a.p = 1 and b.s = a.o and b.p = 2'),
    ('a function', 'select f.x, b.o from generate_series(1, 500) f(x), q a, q b where a.s = f.x and b.s = a.o and a.p = 1 and b.p = 2'),
    ('nothing', 'select n.n, b.o from names n, q a, q b where a.s = n.id and a.p = 77 and b.s = a.o'),
    ('aggregates above', 'select b.o, count(*), max(n.name) from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 group by b.o'),
    ('counts', 'select count(*) from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2'),
    ('lateral', 'select k, x.* from generate_series(1, 3) k, lateral (select n.n, b.o from (select * from names where n % 3 = k % 3 limit 40) n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 limit 30) x where x.n >= 0');
-- What limits leave is not the same every time.
update shapes set query = replace(query, 'limit 40', 'order by n limit 40') where name = 'lateral';
update shapes set query = replace(query, 'limit 30', 'order by 1, 2 limit 30') where name = 'lateral';
update shapes set query = replace(query, 'limit 200', 'order by n limit 200') where name = 'two columns';
select pg_temp.same(query, 'same answer: ' || name) from shapes;
set local quad.join_batch_size = 1;
select pg_temp.same(query, 'batches of one row: ' || name) from shapes;
reset quad.join_batch_size;

-- Values of any size: a batch has as many rows as there is memory for their values.
create table large (name text, query text);
insert into large values
    ('inner', 'select n.n, length(n.big) as size, right(n.big, 3) as last, b.o from (select id, n, repeat(''x'', 50000) || n as big from names offset 0) n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2'),
    ('left', 'select n.n, length(n.big) as size, right(n.big, 3) as last, b.o from (select id, n, repeat(''x'', 50000) || n as big from names offset 0) n left join (q a join q b on b.s = a.o and b.p = 3) on a.s = n.id and a.p = 1');
set local work_mem = '64kB';
select pg_temp.same(query, 'large values: ' || name) from large;
select matches(pg_temp.plan_of(query), 'Quad Join.*\n *Pattern: .*\n *Pattern: .*\n *->  Subquery Scan', 'large values are fed: ' || name) from large;
set local cursor_tuple_fraction = 1;
declare big cursor for select n.n, length(n.big), b.o from (select id, n, repeat('x', 50000) || n as big from names offset 0) n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2;
select is((select count(*) from pg_backend_memory_contexts where name = 'outer input of Quad Join'), 1::bigint, 'rows are fed to the cursor');
move 5 in big;
select cmp_ok((select max(total_bytes) from pg_backend_memory_contexts where name = 'outer input of Quad Join'), '<', 2 * 64 * 1024::bigint, 'a batch of large values is small');
close big;
reset cursor_tuple_fraction;
reset work_mem;

select matches(pg_temp.plan_of('select n.name, b.o from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2'),
    'Quad Join.*\n *Pattern: .*\n *Pattern: .*\n *->  Seq Scan on names', 'the patterns are fed by the table');
prepare fed(bigint) as select count(n.name), sum(b.o) from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = $1;
select results_eq('execute fed(2)', 'select count(n.name), sum((n.id + 1) % 10) from names n where n.id between 1 and 20000', 'a prepared statement');
declare c cursor for select n.n from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 order by n.n;
select results_eq('fetch 3 from c', 'values (1), (2), (3)', 'a cursor');
select throws_ok('select 1 / (n.n - 3) from names n, q a, q b where a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2 and 1 / (n.n - 3) > b.o - 100',
    '22012', null, 'an error above the join');
select throws_ok('select b.o from (select 1 / (n - 3) as x, id from names offset 0) n, q a, q b where a.s = n.id + 0 * n.x and a.s = n.id and a.p = 1 and b.s = a.o and b.p = 2',
    '22012', null, 'an error below the join');

-- Equality of values.
create table v (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into v select i, 1, i % 50 + 100, 0 from generate_series(1, 500) i;
insert into v select i, 2, quad.encode(quad.from_int(i % 20)), 0 from generate_series(1, 200) i;
insert into v select i, 3, quad.encode((i % 20 || '.0')::quad.term), 0 from generate_series(1, 200) i;
insert into v select i, 4, quad.encode(('"0' || i % 20 || '"^^<http://www.w3.org/2001/XMLSchema#integer>')::quad.term), 0 from generate_series(1, 200) i;
insert into v select i, 5, case when i % 2 = 0 then i % 50 + 100 else quad.encode(quad.from_int(i % 20)) end, 0 from generate_series(1, 200) i;
analyze v;
select pg_temp.same(format('select a.s, b.s bs from v a, v b where a.p = %s and a.s < 30 and b.p = %s and quad.eq(a.o, b.o)', x, y),
    format('values of %s and %s', x, y)) from (values (1, 1), (1, 5), (2, 3), (3, 4), (5, 2)) pairs(x, y);

select * from finish();
rollback;
