-- Every access path gives what a heap table gives: any subset of bound columns, ranges, arrays, parameters, joins, in
-- every order and with orders left out. EXPLAIN shows Quad Scan and the order.
begin;
select plan(34);
create table h (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
select setseed(0.42);
insert into h select distinct (random() * 300)::bigint, (random() * 12)::bigint, (random() * 400 - 200)::bigint, (random() * 3)::bigint
    from generate_series(1, 20000);
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select * from h order by random();
-- Some churn, so that deltas, deletion marks and packed runs are all there.
delete from h where s % 13 = 4;
delete from q where s % 13 = 4;
insert into h select distinct s, p, o, 77 from h where p = 5;
insert into q select distinct s, p, o, 77 from q where p = 5;
analyze h;
analyze q;
select set_eq('select * from q', 'select * from h', 'same content');

-- Compares the answers of q and h for a WHERE clause.
create function pg_temp.differs(condition text) returns bigint language plpgsql as $f$
declare n bigint;
begin
    execute format('with a as (select * from q where %1$s), b as (select * from h where %1$s)
        select (select count(*) from (select * from a except all select * from b) x)
             + (select count(*) from (select * from b except all select * from a) x)', condition) into n;
    return n;
end $f$;

-- All sixteen subsets of bound columns, forty rows each as the constants.
create function pg_temp.subsets() returns bigint language plpgsql as $f$
declare r record; mask int; condition text; bad bigint := 0;
begin
    for r in select * from h order by md5(s || ',' || p || ',' || o || ',' || g) limit 40 loop
        for mask in 0..15 loop
            condition := concat_ws(' and ', 'true',
                case when mask & 1 > 0 then 's = ' || r.s end, case when mask & 2 > 0 then 'p = ' || r.p end,
                case when mask & 4 > 0 then 'o = ' || r.o end, case when mask & 8 > 0 then 'g = ' || r.g end);
            bad := bad + pg_temp.differs(condition);
        end loop;
    end loop;
    return bad;
end $f$;
select is(pg_temp.subsets(), 0::bigint, 'every subset of bound columns');

create function pg_temp.conditions() returns setof text language plpgsql as $f$
declare c text;
begin
    foreach c in array array[
        's > 100', 's >= 100 and s < 110', 's between 5 and 5', 's < 0', 's > 1000000', 'p = 3 and o > 0', 'p = 3 and o between -10 and 10',
        'p = 3 and o <= -100 and s > 50', 's = 7 and o < 0', 'o = 5 and s > 200', 'o > 190', 'g = 77 and p = 5', 'g <> 0 and s = 9',
        's in (1, 2, 3, 299, 12345)', 's = any (array[7, 7, 8, 7])', 'p = 2 and s in (10, 20, 30)', 'o in (1, 2) and p in (3, 4)',
        's = any (''{}''::bigint[])', 's = 5 or o = 5', 'not (s = 5)', 's = o', 's = 7 and s = 8', 's > 10 and s > 20 and s < 30 and s < 25',
        's = 3.0', 's > 7.5 and s < 9.5', 's = 7::int and p = 3::smallint', '5 = s', '100 > s and 90 < s', 's is not null', 's is null',
        's = any (array[1, null, 3])', 's = null', 's = 9223372036854775807', 's >= -9223372036854775808 and p = 1',
        's = (select min(s) from h)', 's in (select s from h where o = 7)', 'exists (select from h x where x.o = s)'] loop
        if pg_temp.differs(c) <> 0 then return next c; end if;
    end loop;
end $f$;
select is_empty('select pg_temp.conditions()', 'ranges, arrays, casts, contradictions, subqueries');

-- The same with orders left out: the rest of the condition is a filter.
set local quad.orders = 'ospg';
create table one_order (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
reset quad.orders;
insert into one_order select * from h;
alter table q rename to q_all;
alter table one_order rename to q;
select is(pg_temp.subsets(), 0::bigint, 'every subset with one order only');
select is_empty('select pg_temp.conditions()', 'conditions with one order only');
alter table q rename to one_order;
alter table q_all rename to q;

-- EXPLAIN.
\ir lib/plan_of.sql
select matches(pg_temp.plan_of('select * from q where s = 5'), 'Quad Scan', 'Quad Scan for s');
select matches(pg_temp.plan_of('select * from q where s = 5'), 'spog', 'order for s');
select matches(pg_temp.plan_of('select * from q where p = 5'), 'posg', 'order for p');
select matches(pg_temp.plan_of('select * from q where o = 5'), 'ospg', 'order for o');
select matches(pg_temp.plan_of('select * from q where p = 5 and o = 6'), 'posg', 'order for p, o');
select matches(pg_temp.plan_of('select * from q where s = 5 and o = 6'), 'ospg', 'order for s, o');
select matches(pg_temp.plan_of('select * from q where s = 5 and p = 6 and o = 7 and g = 8'), 'Quad Scan', 'point look-up');
select matches(pg_temp.plan_of('select * from q where s = any (array[1, 2, 3])'), 'Quad Scan', '= any');
select matches(pg_temp.plan_of('select * from q where p = 3 and o between 5 and 10'), 'posg', 'equality, then a range');
select unalike(pg_temp.plan_of('select * from q where p = 3 and o between 5 and 10'), '%Seq Scan%', 'no sequential scan for it');
set local quad.enable_quad_scan = off;
select unalike(pg_temp.plan_of('select * from q where s = 5'), '%Quad Scan%', 'quad.enable_quad_scan = off');
select is(pg_temp.subsets(), 0::bigint, 'every subset without Quad Scan');
set local quad.enable_quad_scan = on;

-- Inner side of a nested loop, with parameters; Quad Join would do without the loop.
set local quad.enable_quad_join = off;
set local enable_hashjoin = off;
set local enable_mergejoin = off;
select matches(pg_temp.plan_of('select count(*) from q a join q b on b.s = a.o where a.p = 3 and a.s < 20'), 'Nested Loop(.|\n)*Quad Scan(.|\n)*Quad Scan',
    'nested loop over a parameterised Quad Scan');
select is((select count(*) from q a join q b on b.s = a.o where a.p = 3 and a.s < 20),
          (select count(*) from h a join h b on b.s = a.o where a.p = 3 and a.s < 20), 'its answer');
select is((select count(*) from q a join q b on b.o = a.o and b.p = a.p where a.s = 7),
          (select count(*) from h a join h b on b.o = a.o and b.p = a.p where a.s = 7), 'two parameters');
select is((select count(*) from q a left join q b on b.s = a.o and b.p = 2 where a.s < 20),
          (select count(*) from h a left join h b on b.s = a.o and b.p = 2 where a.s < 20), 'left join');
select is((select count(*) from h a, lateral (select * from q where q.s = a.s limit 1) x where a.p = 1),
          (select count(*) from h a, lateral (select * from h b where b.s = a.s limit 1) x where a.p = 1), 'lateral with limit');
set local enable_hashjoin = on;
set local enable_mergejoin = on;
set local enable_nestloop = off;
select is((select count(*) from q a join q b on b.s = a.o), (select count(*) from h a join h b on b.s = a.o), 'hash or merge join');
set local enable_nestloop = on;
set local quad.enable_quad_join = on;

-- Prepared statements, custom and generic plans.
prepare by_s(bigint) as select count(*) from q where s = $1;
prepare by_any(bigint[]) as select count(*) from q where p = any ($1);
set local plan_cache_mode = force_generic_plan;
select results_eq('execute by_s(7)', 'select count(*) from h where s = 7', 'generic plan');
select results_eq('execute by_s(null)', 'values (0::bigint)', 'generic plan, null');
select results_eq('execute by_any(array[1, 5, null, 5])', 'select count(*) from h where p in (1, 5)', 'generic plan, array');
set local plan_cache_mode = force_custom_plan;
select results_eq('execute by_s(7)', 'select count(*) from h where s = 7', 'custom plan');

-- Sorted output and aggregates.
select results_eq('select * from q where p = 3 order by o, s, g', 'select * from h where p = 3 order by o, s, g', 'sorted');
select results_eq('select * from q order by s desc, p desc, o desc, g desc limit 50', 'select * from h order by s desc, p desc, o desc, g desc limit 50', 'sorted backward');
select results_eq('select p, count(*), min(o), max(o) from q group by p order by p', 'select p, count(*), min(o), max(o) from h group by p order by p', 'grouped');
select is((select max(s) from q), (select max(s) from h), 'max');

-- Estimates come from range counts.
create function pg_temp.estimate(query text) returns float8 language plpgsql as $f$
declare j json;
begin
    execute 'explain (format json) ' || query into j;
    return (j -> 0 -> 'Plan' ->> 'Plan Rows')::float8;
end $f$;
select cmp_ok(abs(pg_temp.estimate('select * from q where p = 3') / (select count(*) from h where p = 3) - 1)::numeric, '<', 0.3::numeric, 'estimate for p = 3');
select cmp_ok(abs(pg_temp.estimate('select * from q where s < 50') / (select count(*) from h where s < 50) - 1)::numeric, '<', 0.3::numeric, 'estimate for a range');
select cmp_ok(abs(pg_temp.estimate('select * from q') / (select count(*) from h) - 1)::numeric, '<', 0.3::numeric, 'estimate of the whole');

select * from finish();
rollback;
