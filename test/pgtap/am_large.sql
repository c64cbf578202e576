-- More than fits: many subtransactions, row identities beyond work_mem, changes to every row, parallel plans, small pages.
begin;
select plan(23);
create table h (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into h select i, i % 23, (i * 7919) % 60013, i % 2 from generate_series(1, 60000) i;
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
set local work_mem = '64kB';
set local maintenance_work_mem = '1MB';

insert into q select * from h order by md5(s::text);
select results_eq('select count(*), sum(s), sum(p), sum(o), sum(g) from q', 'select count(*), sum(s), sum(p), sum(o), sum(g) from h', 'insert in random order');
update q set o = o + 1;
update h set o = o + 1;
select is((select count(*) from (select * from q except select * from h) x), 0::bigint, 'update of every row');
select is((select count(*) from q), 60000::bigint, 'and no row twice');
delete from q using (select s from h where p = 7) x where x.s = q.s;
delete from h where p = 7;
select is((select count(*) from q), (select count(*) from h), 'delete with a join');
select is((select count(*) from (select * from h except select * from q) x), 0::bigint, 'the right ones');
select is_empty($$select * from quad.verify('q')$$, 'verify');
select lives_ok('select * from q order by s for update', 'for update of every row');
declare c scroll cursor for select * from q order by o;
move forward all in c;
select results_eq('fetch backward 1 from c', 'select * from h order by o desc limit 1', 'scroll over a sort that spills');
close c;

-- Many subtransactions: beyond the 64 that a backend keeps in shared memory.
do $$
begin
    for i in 1..300 loop
        begin
            insert into q values (1000000 + i, 1, 1, 1);
            if i % 3 = 0 then raise exception 'undo'; end if;
        exception when raise_exception then null;
        end;
    end loop;
end $$;
select is((select count(*) from q where s > 1000000), 200::bigint, 'three hundred subtransactions, a third of them undone');
do $$
begin
    for i in 1..300 loop
        begin
            delete from q where s = 1000000 + i;
            if i % 2 = 0 then raise exception 'undo'; end if;
        exception when raise_exception then null;
        end;
    end loop;
end $$;
select is((select count(*) from q where s > 1000000), 100::bigint, 'deletions in subtransactions');
do $$
begin
    for i in 1..100 loop
        insert into q values (2000000, 1, 1, i);
        begin
            delete from q where s = 2000000;
            insert into q values (2000000, 2, 2, i);
            raise exception 'undo';
        exception when raise_exception then null;
        end;
    end loop;
end $$;
select is((select count(*) from q where s = 2000000), 100::bigint, 'one quad set deleted and undone a hundred times');
select is((select count(*) from q where s = 2000000 and p = 2), 0::bigint, 'nothing undone is seen');
select is_empty($$select * from quad.verify('q')$$, 'verify after subtransactions');

-- Small pages: deep trees, many splits.
set local quad.leaf_quads = '4';
set local quad.inner_fanout = '4';
create table tiny (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
reset quad.leaf_quads;
reset quad.inner_fanout;
insert into tiny select * from h where s <= 3000 order by md5(s::text);
select is((select count(*) from (select * from tiny except select * from h) x), 0::bigint, 'four quads a leaf, four children a page');
select is((select count(*) from tiny), (select count(*) from h where s <= 3000), 'none is missing');
select is_empty($$select * from quad.verify('tiny')$$, 'verify of a deep tree');
delete from tiny where s % 3 <> 0;
insert into tiny select s, p, o, 5 from h where s <= 500;
select is_empty($$select * from quad.verify('tiny')$$, 'verify of a deep tree after changes');
select is((select count(*) from tiny where g = 5), (select count(*) from h where s <= 500), 'filtered by the last column');

-- Parallel plans.
set local max_parallel_workers_per_gather = 2;
set local parallel_setup_cost = 0;
set local parallel_tuple_cost = 0;
set local min_parallel_table_scan_size = 0;
set local work_mem = '4MB';
select is((select count(*) from q), (select count(*) from h) + 200, 'count, parallel if it likes');
select is((select sum(o) from q where g = 1 and s <= 60000), (select sum(o) from h where g = 1), 'sum, parallel if it likes');
select set_config(name, 'on', true) from pg_settings where name in ('force_parallel_mode', 'debug_parallel_query') \g /dev/null
select is((select count(*) from q where p = 3), (select count(*) from h where p = 3), 'force_parallel_mode');
select set_config(name, 'off', true) from pg_settings where name in ('force_parallel_mode', 'debug_parallel_query') \g /dev/null

-- Every key the same but the last column, and the same with the first.
truncate q;
insert into q select 1, 1, 1, i from generate_series(1, 20000) i;
insert into q select i, 1, 1, 1 from generate_series(1, 20000) i;
select is((select count(*) from q where s = 1), 20000::bigint, 'twenty thousand quads that differ in the last column');
select is_empty($$select * from quad.verify('q')$$, 'verify of long runs of equal prefixes');

select * from finish();
rollback;
