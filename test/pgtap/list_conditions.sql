-- A list among the conditions is a range for each member, or one range that is tested against the list, whichever is
-- less to read. The choice is made when the list is known.
begin;
select plan(35);
\ir lib/plan_of.sql
create table h (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into h select n, 1, n % 7, 0 from generate_series(1, 60000) n;
insert into h select n, 2, n * 2, 0 from generate_series(1, 60000) n;
insert into h select n, 3, n, 0 from generate_series(1, 30) n;
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select * from h;
analyze h;
analyze q;
create table few as select unnest(array[17, 4711, 59999, 4711, 70000]::bigint[]) as s;
analyze few;

create function pg_temp.differs(condition text) returns bigint language plpgsql as $f$
declare n bigint;
begin
    execute format('with a as (select * from q where %1$s), b as (select * from h where %1$s)
        select (select count(*) from (select * from a except all select * from b) x)
             + (select count(*) from (select * from b except all select * from a) x)', condition) into n;
    return n;
end $f$;
-- What a query has read: figure of EXPLAIN ANALYZE.
create function pg_temp.figure(query text, name text) returns bigint language sql as $f$
    select (regexp_match(pg_temp.plan_of(query, 'analyze, costs off, timing off, summary off'), name || ': (\d+)'))[1]::bigint $f$;

-- The list of a subquery.
\set subquery 'select s, o from q where s = any (array(select s from few)) and p = 1'
select results_eq(:'subquery' || ' order by s', 'values (17::bigint, 3::bigint), (4711, 0), (59999, 2)', 'list of a subquery: rows');
select is(pg_temp.figure(:'subquery', 'Leaves'), 3::bigint, 'a leaf for each subject');
select matches(pg_temp.plan_of(:'subquery', 'analyze, costs off, timing off, summary off'), 'Index Order: spog.*Other Index Order: posg', 'both orders are named');
\set long 'select count(*) from (select s, o from q where s = any (array(select s from h where p = 1 and s % 10 <> 0)) and p = 1 offset 0) x'
select results_eq(:'long', 'values (54000::bigint)', 'a long list: rows');
select ok(pg_temp.figure(:'long', 'Probes') = 1, 'is one range');
select is(pg_temp.figure(:'long', 'Rows Removed by Filter on Ids'), 6000::bigint, 'tested against the list');
select ok(pg_temp.figure('select s from q where s = any (array(select s from h where p = 1 and s % 2 = 0)) and p = 3', 'Probes') = 1,
    'a predicate with few quads is read, however few the subjects');

-- A constant list, and one in the plan for all lists.
select is(pg_temp.figure('select s from q where s in (1, 100, 10000) and p = 2', 'Leaves'), 3::bigint, 'constants');
set plan_cache_mode = force_generic_plan;
prepare listed(bigint[], bigint) as select s, p, o from q where s = any ($1) and p = $2;
create function pg_temp.array_of(condition text) returns text language plpgsql as $f$
declare a text;
begin execute format('select coalesce(array_agg(distinct s), ''{}'')::text from h where %s', condition) into a; return quote_literal(a); end $f$;
select is(pg_temp.figure(format('execute listed(%s, 1)', pg_temp.array_of('s in (5, 50000)')), 'Leaves'), 2::bigint, 'generic plan, two members');
select is(pg_temp.figure(format('execute listed(%s, 1)', pg_temp.array_of('s % 3 > 0')), 'Probes'), 1::bigint, 'the same plan, 40,000 members');
select is(pg_temp.figure(format('execute listed(%s, 3)', pg_temp.array_of('s % 3 > 0')), 'Probes'), 1::bigint, 'of a predicate with few quads');
select is(pg_temp.figure(format('execute listed(%s, 1)', pg_temp.array_of('false')), 'Leaves'), 0::bigint, 'no members');
select is(pg_temp.figure('execute listed(null, 1)', 'Leaves'), 0::bigint, 'NULL instead of a list');
select is(pg_temp.figure('execute listed(''{1,null,2}'', null)', 'Leaves'), 0::bigint, 'NULL instead of a predicate');
select results_eq('execute listed(''{30,null,17,30}'', 3)', 'values (17::bigint, 3::bigint, 17::bigint), (30, 3, 30)', 'members that are NULL or come twice');
reset plan_cache_mode;

-- Other conditions beside the list.
select is(pg_temp.differs(c), 0::bigint, c) from unnest(array[
    's = any (array(select s from few)) and p = 2 and o > 100', 's = any (array(select s from h where s % 50 = 0)) and p = 2 and o between 100 and 900',
    's = any (array(select s from h where s % 50 = 0)) and p = any (array[1, 3]) and o < 5', 's = any (array(select s from few)) and p in (1, 2, 9) and g = 0',
    's = any (array(select s from few)) and o = 3', 's = any (array(select s from h where p = 3)) and o = any (array[1, 2, 3]) and p = 1',
    's = any (array(select s from few)) and s = any (array[17, 18]) and p = 1', 's = any (array(select s from few)) and p = 1 and s <> 17 and o % 2 = 1']) c;

-- A list for each row of another table, short and long in turn: the order changes from one to the next.
select results_eq(
    $$select n, count(q.s) from generate_series(1, 6) n, lateral (select array_agg(m * 3)::bigint[] as list
        from generate_series(1, case n % 2 when 0 then 3 else 15000 end) m) l, lateral (select s from q where s = any (l.list) and p = 1 offset 0) q group by n order by n$$,
    'values (1, 15000::bigint), (2, 3), (3, 15000), (4, 3), (5, 15000), (6, 3)', 'lists of rows');

-- The order of rows, and rows that are changed.
select results_eq('select o, s from q where s = any (array(select s from h where p = 3)) and p = 1 order by o, s limit 3',
    'select o, s from h where s <= 30 and p = 1 order by o, s limit 3', 'ORDER BY the order of the predicate');
select results_eq('select s from q where s = any (array(select s from few)) and p = 1 order by s desc', 'values (59999::bigint), (4711), (17)', 'descending');
select results_eq('select s from q where s = any (array(select s from few)) and p = 1 for update', 'values (17::bigint), (4711), (59999)', 'FOR UPDATE');
with changed as (update q set o = -1 where s = any (array(select s from few)) and p = 1 returning s)
    select is(count(*), 3::bigint, 'UPDATE by a short list') from changed;
with changed as (delete from q where s = any (array(select s from h where p = 1 and s % 2 = 0)) and p = 1 returning s)
    select is(count(*), 30000::bigint, 'DELETE by a long one') from changed;
select is((select count(*) from q), 90030::bigint, 'what is left');
select is((select count(*) from quad.verify('q')), 0::bigint, 'sound');

-- Quad Join does the same with its lists.
select matches(pg_temp.plan_of('select a.s, b.o from q a join q b on b.s = a.s where a.s = any (array(select s from few)) and a.p = 2 and b.p = 1',
    'analyze, costs off, timing off, summary off'), 'Pattern: a .* index_order=spog [^\n]*rows=3 ', 'a join looks a short list up');

-- Two lists beside a constant: the pairs of their members would be four million ranges.
set local quad.orders = 'spog,posg,ospg,gspo';
create table wide (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into wide select n, 1, n, 1 from generate_series(1, 5000) n;
prepare pairs(bigint[], bigint[]) as select count(*) from wide where g = 1 and s = any ($1) and o = any ($2);
set local plan_cache_mode = force_generic_plan;
select format('execute pairs(%L, %L)', (select array_agg(n) from generate_series(1, 2000) n), (select array_agg(n) from generate_series(1001, 3000) n)) as call \gset
select results_eq(:'call', array[1000::bigint], 'two long lists beside a constant');
-- Lists of several columns multiply.
set local quad.enable_quad_join = off;
select is((select count(*) from q where s = any (array(select generate_series(1, 1000)::bigint)) and p = any (array(select generate_series(1, 1000)::bigint))),
    1530::bigint, 'two lists of a thousand');
select throws_ok($$select count(*) from q where s = any (array(select generate_series(1, 1000)::bigint)) and p = any (array(select generate_series(1, 1000)::bigint))
    and o = any (array(select generate_series(1, 1000)::bigint))$$, '54000', null, 'three make too many ranges of keys');

select * from finish();
rollback;
