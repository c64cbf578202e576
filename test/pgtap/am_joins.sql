-- Joins of many quad patterns. The greedy join search gives the same answers as joins of a heap table, outer joins and
-- patterns without a common variable included.
begin;
select plan(12);
create table h (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into h select distinct i % 40, i * 7 % 5, i * 11 % 60, 0 from generate_series(1, 400) i;
insert into h values (3, 9, 3, 0), (4, 9, 4, 0), (3, 4, 9, 0);
create table q using quad as select * from h;
analyze h;
analyze q;

create function same(query text, what text) returns text language sql as $$
    select bag_eq(format(query, 'q'), format(query, 'h'), what)
$$;

create temporary table queries (n int, what text, body text);
insert into queries values
(1, 'a star of six', 'select count(*) n, sum(a.o) a, sum(f.o) f from %1$s a, %1$s b, %1$s c, %1$s d, %1$s e, %1$s f
    where a.s = b.s and a.s = c.s and a.s = d.s and a.s = e.s and a.s = f.s
      and a.p = 0 and b.p = 1 and c.p = 2 and d.p = 3 and e.p = 4 and f.p = 0 and a.o < 20'),
(2, 'a chain of six', 'select count(*) from %1$s a, %1$s b, %1$s c, %1$s d, %1$s e, %1$s f
    where a.o = b.s and b.o = c.s and c.o = d.s and d.o = e.s and e.o = f.s and a.s = 1 and a.p = 2'),
(3, 'a cycle of five', 'select count(*) from %1$s a, %1$s b, %1$s c, %1$s d, %1$s e
    where a.o = b.s and b.o = c.s and c.o = d.s and d.o = e.s and e.o = a.s and a.p = 1'),
(4, 'optional parts', 'select a.s, b.o bo, c.o co, d.o d_o, e.o eo from %1$s a
    left join %1$s b on b.s = a.o and b.p = 1
    left join (%1$s c join %1$s d on d.s = c.o and d.p = 2 join %1$s x on x.s = d.s and x.p = 3) on c.s = a.s and c.p = 4
    left join %1$s e on e.s = a.s and e.p = 3
    where a.p = 0 and a.s < 15'),
(5, 'nested optional parts', 'select a.s, b.o bo, c.o co, d.o d_o, e.o eo from %1$s a
    left join (%1$s b left join (%1$s c left join %1$s d on d.s = c.o and d.p = 0) on c.s = b.o and c.p = 1) on b.s = a.o and b.p = 2
    left join %1$s e on e.s = a.o and e.p = 4 and e.o > 30
    where a.p = 3'),
(6, 'parts that share no variable', 'select count(*) from %1$s a, %1$s b, %1$s c, %1$s d, %1$s e, %1$s f
    where a.o = b.s and c.o = d.s and e.o = f.s and a.s = 1 and c.s = 2 and e.s = 3 and a.p = 2 and c.p = 1 and e.p = 4'),
(7, 'an empty pattern in the middle', 'select count(*) from %1$s a, %1$s b, %1$s c, %1$s d, %1$s e
    where a.o = b.s and b.o = c.s and c.p = 77 and c.o = d.s and d.o = e.s'),
(8, 'exists and not exists', 'select a.s, a.o from %1$s a, %1$s b, %1$s c, %1$s d
    where a.o = b.s and b.o = c.s and c.o = d.s and a.p = 1 and b.p = 2
      and exists (select from %1$s x where x.s = d.o and x.p = 1) and not exists (select from %1$s y where y.s = a.s and y.p = 4)'),
(9, 'equal columns of one pattern', 'select a.s, b.o from %1$s a, %1$s b where a.s = a.o and a.s = b.s and b.p = a.o'),
(10, 'equal columns and an order', 'select a.s, b.o from %1$s a, %1$s b where a.s = a.o and a.o = b.s order by a.s, a.o, b.o'),
(11, 'other relations between', 'select count(*) from %1$s a, %1$s b, %1$s c, %1$s d, %1$s e, (values (1), (2), (3)) v(n)
    where a.s = v.n and a.o = b.s and b.o = c.s and c.o = d.s and d.o = e.s and a.p = 1'),
(12, 'full join of groups', 'select count(*) n, sum(x.s) x, sum(y.s) y from
    (select a.s from %1$s a, %1$s b, %1$s c where a.o = b.s and b.o = c.s and a.p = 1) x full join
    (select d.s from %1$s d, %1$s e, %1$s f where d.o = e.s and e.o = f.s and d.p = 2) y on x.s = y.s');
select same(body, what) from queries order by n;
select * from finish();
rollback;
