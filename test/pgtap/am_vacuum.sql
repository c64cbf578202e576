-- VACUUM, VACUUM FULL, ANALYZE, freezing, reuse of space, exact range counts, COPY. Outside transactions, since VACUUM has to be.
\set ON_ERROR_STOP 1
select plan(48);
drop table if exists v;
create table v (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad with (autovacuum_enabled = false);
insert into v select i, i % 17, i % 101, i % 3 from generate_series(1, 50000) i;

vacuum v;
select is((select count(*) from v), 50000::bigint, 'vacuum removes nothing that is there');
select is(quad.range_count('v', null, null, null, null), 50000::bigint, 'range count of everything after vacuum');
select is(quad.range_count('v', 77, null, null, null), (select count(*) from v where s = 77), 'range count for s');
select is(quad.range_count('v', null, 5, null, null), (select count(*) from v where p = 5), 'range count for p');
select is(quad.range_count('v', null, 5, 7, null), (select count(*) from v where p = 5 and o = 7), 'range count for p, o');
select is(quad.range_count('v', null, null, 7, null), (select count(*) from v where o = 7), 'range count for o');
select is(quad.range_count('v', 77, null, 77, null), (select count(*) from v where s = 77 and o = 77), 'range count for s, o');
select is(quad.range_count('v', 77, 9, 77, 2), 1::bigint, 'range count of one quad');
select is(quad.range_count('v', 77, 9, 77, 1), 0::bigint, 'range count of no quad');
select is(quad.range_count('v', 60000, null, null, null), 0::bigint, 'range count beyond the end');
select is((select reltuples::bigint from pg_class where oid = 'v'::regclass), 50000::bigint, 'vacuum sets reltuples');
select cmp_ok((select relpages::bigint from pg_class where oid = 'v'::regclass), '>', 0::bigint, 'vacuum sets relpages');
select is_empty($$select * from quad.verify('v')$$, 'verify after vacuum');

-- Deleted quads leave, their space is used again.
delete from v where s % 2 = 0;
vacuum v;
select is(quad.range_count('v', null, null, null, null), 25000::bigint, 'range count after delete and vacuum');
select is(quad.range_count('v', null, 5, null, null), (select count(*) from v where p = 5), 'range count for p after delete and vacuum');
select is_empty($$select * from quad.verify('v')$$, 'verify after delete and vacuum');
select pg_relation_size('v') as size_before \gset
do $$
begin
    for round in 1..6 loop
        delete from v;
        insert into v select i + round * 100000, i % 17, i % 101, i % 3 from generate_series(1, 25000) i;
        commit;
    end loop;
end $$;
vacuum v;
delete from v where s < 700000;
insert into v select i, i % 17, i % 101, i % 3 from generate_series(1, 25000) i;
vacuum v;
vacuum v;
select pg_relation_size('v') as size_once \gset
create procedure pg_temp.churn(n int) language plpgsql as $$
begin
    delete from v;
    commit;
    insert into v select i + n * 100000, i % 17, i % 101, i % 3 from generate_series(1, 25000) i;
    commit;
end $$;
call pg_temp.churn(1); vacuum v;
call pg_temp.churn(2); vacuum v;
select pg_relation_size('v') as size_warm \gset
call pg_temp.churn(3); vacuum v;
call pg_temp.churn(4); vacuum v;
call pg_temp.churn(5); vacuum v;
call pg_temp.churn(6); vacuum v;
call pg_temp.churn(7); vacuum v;
call pg_temp.churn(8); vacuum v;
select cmp_ok(pg_relation_size('v')::numeric, '<=', :size_warm * 1.5, 'pages of deleted quads are used again');
select is((select count(*) from v), 25000::bigint, 'content after the churn');
select is_empty($$select * from quad.verify('v')$$, 'verify after the churn');

-- VACUUM FULL rebuilds.
delete from v where p <> 3;
select pg_relation_size('v') as size_loose \gset
select count(*) as n from v \gset
vacuum full v;
select is((select count(*) from v), :n::bigint, 'vacuum full keeps the content');
select cmp_ok(pg_relation_size('v'), '<', :size_loose::bigint, 'vacuum full gives space back');
select is(quad.range_count('v', null, 3, null, null), :n::bigint, 'range count after vacuum full');
select is_empty($$select * from quad.verify('v')$$, 'verify after vacuum full');
insert into v values (1, 2, 3, 4);
select is((select count(*) from v where s = 1 and p = 2), 1::bigint, 'insert after vacuum full');

-- Freezing.
vacuum freeze v;
select cmp_ok(age((select relfrozenxid from pg_class where oid = 'v'::regclass)), '<=', 10, 'vacuum freeze advances relfrozenxid');
select is((select count(*) from v), :n::bigint + 1, 'content after freezing');
vacuum (disable_page_skipping, parallel 0) v;
vacuum (index_cleanup off, truncate off) v;
select is_empty($$select * from quad.verify('v')$$, 'verify after vacuum with options');

-- Empty tables.
delete from v;
vacuum v;
select is(quad.range_count('v', null, null, null, null), 0::bigint, 'range count of an emptied table');
select is((select count(*) from v), 0::bigint, 'emptied table');
select is_empty($$select * from quad.verify('v')$$, 'verify of an emptied table');
vacuum full v;
insert into v select i, 1, 1, 1 from generate_series(1, 1000) i;
select is((select count(*) from v), 1000::bigint, 'insert into an emptied, rebuilt table');

-- ANALYZE.
truncate v;
insert into v select i, i % 10, i % 1000, 0 from generate_series(1, 30000) i;
analyze v;
select is((select reltuples::bigint from pg_class where oid = 'v'::regclass), 30000::bigint, 'analyze counts');
select is((select n_distinct::int from pg_stats where tablename = 'v' and attname = 'p'), 10, 'analyze sees the ten values of p');
select cmp_ok((select case when n_distinct < 0 then -n_distinct * 30000 else n_distinct end from pg_stats where tablename = 'v' and attname = 's')::numeric, '>', 20000::numeric,
    'analyze sees that s differs');
-- Rows are sampled with their positions: the leading column of the first order grows with them.
select cmp_ok((select correlation from pg_stats where tablename = 'v' and attname = 's'), '>', 0.99::real,
    'correlation of the leading column, every row sampled');
set default_statistics_target = 10;
analyze v;
select cmp_ok((select correlation from pg_stats where tablename = 'v' and attname = 's'), '>', 0.99::real,
    'correlation of the leading column, a tenth of the rows sampled');
reset default_statistics_target;
truncate v;
insert into v select i, 1, 1, 1 from generate_series(1, 50) i;
analyze v;
select cmp_ok((select correlation from pg_stats where tablename = 'v' and attname = 's'), '>', 0.99::real,
    'correlation of the leading column within one page');
truncate v;
insert into v select i, i % 10, i % 1000, 0 from generate_series(1, 30000) i;
vacuum analyze v;
select is((select reltuples::bigint from pg_class where oid = 'v'::regclass), 30000::bigint, 'vacuum analyze counts');

-- COPY, both ways.
\copy (select i, 2, 3, 4 from generate_series(1, 20000) i) to '/tmp/pgquad_copy.txt'
truncate v;
\copy v from '/tmp/pgquad_copy.txt'
\copy v from '/tmp/pgquad_copy.txt'
\! rm -f /tmp/pgquad_copy.txt
select is((select count(*) from v), 20000::bigint, 'the same copy twice gives one set');
copy v (s, p, o, g) from stdin with (format csv);
20001,1,1,1
20001,1,1,1
20002,1,1,1
\.
select is((select count(*) from v where s > 20000), 2::bigint, 'copy with duplicates');
begin;
truncate v;
copy v from stdin with (freeze);
1	1	1	1
2	2	2	2
\.
commit;
select is((select count(*) from v), 2::bigint, 'copy freeze');
select is_empty($$select * from quad.verify('v')$$, 'verify after copy');

-- In parallel workers, one order each; they see what the transaction itself has changed.
set min_parallel_table_scan_size = 0;
set max_parallel_maintenance_workers = 2;
truncate v;
insert into v select i, i % 17, i % 101, i % 3 from generate_series(1, 50000) i;
delete from v where s % 5 = 0;
select is_empty($$select * from quad.verify('v')$$, 'workers verify');
vacuum v;
select is(quad.range_count('v', null, 5, null, null), (select count(*) from v where p = 5), 'counts are exact after workers have vacuumed');
select is((select count(distinct quads) from quad.store_info('v')), 1::bigint, 'every order has been vacuumed');
begin;
insert into v values (-1, 1, 1, 1);
delete from v where p = 3;
select is_empty($$select * from quad.verify('v')$$, 'workers verify what the transaction sees');
rollback;
vacuum (parallel 0) v;
vacuum (parallel 1, freeze) v;
select is_empty($$select * from quad.verify('v')$$, 'verify after more vacuums');
create temp table w (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into w select i, i, i, 0 from generate_series(1, 1000) i;
vacuum w;
select is_empty($$select * from quad.verify('w')$$, 'workers do not see temporary tables, which are verified all the same');
drop table v, w;
select * from finish();
