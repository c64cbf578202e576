-- INSERT, COPY, DELETE, UPDATE, TRUNCATE, savepoints, cursors, and the set semantics, inside one transaction.
begin;
select plan(66);
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;

-- Insert and select.
select is((select count(*) from q), 0::bigint, 'a new table is empty');
insert into q values (1, 2, 3, 4), (5, 6, 7, 8);
select set_eq('select * from q', 'values (1::bigint, 2::bigint, 3::bigint, 4::bigint), (5, 6, 7, 8)', 'insert');
select is((select count(*) from q where s = 1 and p = 2 and o = 3 and g = 4), 1::bigint, 'point look-up');
select throws_ok('insert into q values (1, null, 3, 4)', '23502', null::text, 'null is refused');
select throws_ok('insert into q (s, p, o) values (1, 2, 3)', '23502', null::text, 'a missing column is refused');

-- The set: a quad is in or not.
insert into q values (1, 2, 3, 4);
select is((select count(*) from q), 2::bigint, 'inserting a quad that is there changes nothing');
insert into q values (9, 9, 9, 9), (9, 9, 9, 9), (9, 9, 9, 9);
select is((select count(*) from q where s = 9), 1::bigint, 'duplicates within a statement are one quad');
insert into q select 9, 9, 9, 9 from generate_series(1, 5000);
select is((select count(*) from q where s = 9), 1::bigint, 'many duplicates within a statement are one quad');
insert into q select * from q;
select is((select count(*) from q), 3::bigint, 'a table inserted into itself');
select is((select count(*) from (select distinct * from q) d), (select count(*) from q), 'a scan gives distinct quads');

-- Extreme values.
insert into q values (-9223372036854775808, -1, 0, 9223372036854775807);
select set_eq('select * from q where s < 0', 'values (-9223372036854775808, -1::bigint, 0::bigint, 9223372036854775807)', 'extremes');
select set_eq('select o from q where g = 9223372036854775807', 'values (0::bigint)', 'extreme in the last column');
select results_eq('select s from q order by s', 'values ((-9223372036854775808)::bigint), (1), (5), (9)', 'signed order');
delete from q where s < 0;

-- Delete.
delete from q where s = 9;
select is((select count(*) from q), 2::bigint, 'delete');
delete from q where s = 9;
select is((select count(*) from q), 2::bigint, 'delete of what is not there');
insert into q values (9, 9, 9, 9);
select is((select count(*) from q where p = 9), 1::bigint, 'insert after delete in one transaction');
select results_eq('with gone as (delete from q where s = 9 returning *) select * from gone',
    'values (9::bigint, 9::bigint, 9::bigint, 9::bigint)', 'delete returning');
select is((select count(*) from q where o = 9), 0::bigint, 'it is gone in another order, too');
select results_eq('with new as (insert into q values (21, 22, 23, 24) returning s, g) select * from new',
    'values (21::bigint, 24::bigint)', 'insert returning');
delete from q where s = 21;

-- Update is delete and insert.
update q set o = o + 100 where s = 1;
select set_eq('select * from q', 'values (1::bigint, 2::bigint, 103::bigint, 4::bigint), (5, 6, 7, 8)', 'update');
update q set s = 5, p = 6, o = 7, g = 8;
select set_eq('select * from q', 'values (5::bigint, 6::bigint, 7::bigint, 8::bigint)', 'an update that makes quads equal');
update q set s = s where s = 5;
select is((select count(*) from q), 1::bigint, 'an update to the same value');
insert into q select i, 1, 1, 1 from generate_series(100, 199) i;
update q set s = s + 1 where s >= 100;
select is((select count(*) from q where s between 101 and 200), 100::bigint, 'an update that walks over its own new quads');
update q set s = 301 - s where s >= 100;
select is((select count(*) from q where s between 101 and 200), 100::bigint, 'an update that swaps quads');
with gone as (delete from q where s between 101 and 200 returning *) insert into q select s + 1, p, o, g from gone;
select is((select count(*) from q where s between 102 and 201), 100::bigint, 'a deletion and an insertion that meet in one command');
delete from q where s >= 100;
select results_eq('with u as (update q set g = 1 where s = 5 returning s, g) select * from u', 'values (5::bigint, 1::bigint)', 'update returning');
update q set g = x.g from (values (5::bigint, 8::bigint)) x (s, g) where x.s = q.s;
select set_eq('select g from q', 'values (8::bigint)', 'update from');

-- A statement does not see its own work.
insert into q select s + 1000, p, o, g from q;
select is((select count(*) from q), 2::bigint, 'insert from itself ends');
with moved as (delete from q where s > 1000 returning *) insert into q select s - 500, p, o, g from moved;
select set_eq('select s from q', 'values (5::bigint), (505)', 'delete and insert in one statement');

-- ON CONFLICT DO NOTHING needs no arbiter here: a quad that is there is there.
select lives_ok('insert into q values (5, 6, 7, 8) on conflict do nothing', 'on conflict do nothing without arbiter');
select is((select count(*) from q), 2::bigint, 'and nothing is added');

-- Savepoints.
truncate q;
insert into q values (1, 1, 1, 1);
savepoint a;
insert into q values (2, 2, 2, 2);
savepoint b;
insert into q values (3, 3, 3, 3);
delete from q where s = 1;
select set_eq('select s from q', 'values (2::bigint), (3)', 'before rollback to');
rollback to b;
select set_eq('select s from q', 'values (1::bigint), (2)', 'rollback to the inner savepoint');
insert into q values (3, 3, 3, 3);
release b;
rollback to a;
select set_eq('select s from q', 'values (1::bigint)', 'rollback to the outer savepoint takes released ones with it');
delete from q;
savepoint c;
insert into q values (1, 1, 1, 1);
rollback to c;
select is_empty('select * from q', 'rolled back insertion of a quad deleted before');
insert into q values (1, 1, 1, 1);
savepoint d;
delete from q;
rollback to d;
select is((select count(*) from q), 1::bigint, 'rolled back deletion');
delete from q;
insert into q values (1, 1, 1, 1);
select is((select count(*) from q), 1::bigint, 'delete and insert again after a rolled back deletion');

-- Truncate.
insert into q select i, i % 7, i % 11, 0 from generate_series(1, 5000) i;
savepoint t;
truncate q;
select is((select count(*) from q), 0::bigint, 'truncate');
insert into q values (1, 2, 3, 4);
select is((select count(*) from q), 1::bigint, 'insert after truncate');
rollback to t;
select is((select count(*) from q), 5001::bigint, 'rolled back truncate');

-- Cursors, forward and backward, while the table changes.
truncate q;
insert into q select i, 1, 1, 1 from generate_series(1, 1000) i;
declare c scroll cursor for select s from q order by s, p, o, g;
select results_eq('fetch 3 from c', 'values (1::bigint), (2), (3)', 'fetch forward');
move forward 500 in c;
select results_eq('fetch backward 2 from c', 'values (502::bigint), (501)', 'fetch backward');
select results_eq('fetch absolute 1000 from c', 'values (1000::bigint)', 'fetch absolute');
delete from q where s between 400 and 600;
insert into q select i, 2, 2, 2 from generate_series(1, 3000) i;
select results_eq('fetch absolute 450 from c', 'values (450::bigint)', 'a cursor keeps its snapshot');
close c;
declare d scroll cursor for select s from q where p = 1;
move forward all in d;
select is((select count(*) from q where p = 1), 799::bigint, 'rows left');
select results_eq('fetch backward 1 from d', 'select s from q where p = 1 order by s desc limit 1', 'unsorted scroll cursor backward');
select isnt_empty('fetch first from d', 'unsorted scroll cursor to the start');
close d;
declare k cursor for select * from q where s = 7 and p = 1 for update;
fetch 1 from k \gset fetched_
delete from q where current of k;
close k;
select set_eq('select p from q where s = 7', 'values (2::bigint)', 'delete where current of, within the transaction');
insert into q values (7, 1, 1, 1);

-- Row locks and joins.
select lives_ok('select * from q where s = 7 for update', 'for update');
select lives_ok('select * from q where s = 7 for share', 'for share');
select is((select count(*) from q where s = 7), 2::bigint, 'a row lock is no deletion');
delete from q where s = 7;
select is((select count(*) from q where s = 7), 0::bigint, 'a locked row can be deleted');

-- Triggers see rows.
create table log (what text, s bigint);
create function note() returns trigger language plpgsql as $$
begin
    insert into log values (tg_op, coalesce(new.s, old.s));
    return coalesce(new, old);
end $$;
create trigger after_change after insert or delete or update on q for each row execute function note();
truncate q;
insert into q values (1, 1, 1, 1);
update q set s = 2;
delete from q;
select results_eq('select what, s from log', $$values ('INSERT', 1::bigint), ('UPDATE', 2), ('DELETE', 2)$$, 'row triggers');
create constraint trigger at_end after insert on q deferrable initially deferred for each row execute function note();
truncate log;
insert into q values (3, 3, 3, 3);
set constraints all immediate;
select is((select count(*) from log where s = 3), 2::bigint, 'deferred constraint trigger fetches its row');
drop trigger after_change on q;
drop trigger at_end on q;

-- Foreign key from a quad table, check constraint, rules of rights.
alter table q add constraint positive check (s > 0);
select throws_ok('insert into q values (-1, 1, 1, 1)', '23514', null::text, 'check constraint');
select throws_ok($$insert into q values ('x', 1, 1, 1)$$, '22P02', null::text, 'no number');
insert into q values (11, 12, 13, 14);
select is_empty($$select * from quad.verify('q')$$, 'verify finds no fault');
delete from q;
select is_empty($$select * from quad.verify('q')$$, 'verify finds no fault in a table of deleted quads');

-- MERGE meets a quad a second time.
insert into q values (70, 1, 2, 0);
select throws_ok('merge into q using (values (70::bigint), (70)) v (x) on q.s = v.x when matched then update set o = q.o',
    '21000', null, 'MERGE cannot affect a quad a second time');

-- Statements that change a table in several parts.
create table parts (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into parts select n, 1, 1, 0 from generate_series(1, 150000) n;
with gone as (delete from parts returning *) insert into parts select s + 1, p, o, g from gone;
select is((select count(*) from parts), 150000::bigint, 'so many rows are deleted and inserted that some are written before');
select is((select min(s) from parts), 2::bigint, 'and all of them are others');
with gone as (delete from parts where s = 2) insert into parts values (2, 1, 1, 0);
select is((select count(*) from parts where s = 2), 1::bigint, 'a deletion that nobody reads comes last, and the insertion stays');
select is((select count(*) from quad.verify('parts')), 0::bigint, 'all orders are the same');
create function pg_temp.filled_and_emptied() returns void language plpgsql as $f$
declare v int;
begin
    with x as (insert into parts values (-7, 7, 7, 0)) select 1 into v;
    truncate parts;
end $f$;
select pg_temp.filled_and_emptied();
select is((select count(*) from parts), 0::bigint, 'what a part that nobody reads inserts is written when its statement ends');
create function pg_temp.caught(n bigint) returns bigint language plpgsql as $f$
begin
    if n % 100 = 0 then
        perform count(*) / (n - n) from parts;
    end if;
    return n;
exception when division_by_zero then
    return n;
end $f$;
insert into parts select n, 1, pg_temp.caught(n), 0 from generate_series(1, 1000) n;
select is((select count(*) from parts), 1000::bigint, 'a function that reads the table and catches errors loses nothing');

-- COPY remembers no rows: an error would end this file.
insert into parts select n, 2, 1, 0 from generate_series(1, 20000) n;
set local work_mem = '64kB';
set local temp_file_limit = '100kB';
copy parts to '/dev/null';
select pass('COPY needs no files for the identities of rows');
reset temp_file_limit;
reset work_mem;

select * from finish();
rollback;
