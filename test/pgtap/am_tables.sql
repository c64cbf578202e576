-- Tables made and changed in other ways: CTAS, SELECT INTO, SET ACCESS METHOD, temporary, unlogged, partitions, views, names,
-- table spaces, sizes, and rolled back DDL.
begin;
select plan(45);
create table h (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into h select i, i % 17, i % 101, i % 3 from generate_series(1, 20000) i;

create table q using quad as select * from h;
select set_eq('select * from q', 'select * from h', 'create table as');
select is_empty($$select * from quad.verify('q')$$, 'and it is sound');
select throws_ok($$insert into q values (null, 1, 1, 1)$$, '23502', null::text, 'a null is refused, although CTAS declares no NOT NULL');
select is((select count(*) from pg_attribute where attrelid = 'q'::regclass and attnum > 0 and attnotnull), 4::bigint, 'the columns are NOT NULL afterwards');
select throws_ok($$create table bad using quad as select 1::bigint as s$$, '0A000', null::text, 'CTAS of another shape');
select throws_ok($$create table bad using quad as select null::bigint as s, 1::bigint as p, 1::bigint as o, 1::bigint as g$$,
    null::char(5), null::text, 'CTAS of nulls');
create table q_empty using quad as select * from h with no data;
select is((select count(*) from q_empty), 0::bigint, 'CTAS with no data');
create materialized view mv using quad as select s, p, o, g from h where s <= 100;
select is((select count(*) from mv), 100::bigint, 'materialized view');
refresh materialized view mv;
select is((select count(*) from mv), 100::bigint, 'refreshed');
set local default_table_access_method = quad;
select s, p, o, g into q_into from h where s < 50;
set local default_table_access_method = heap;
select is((select count(*) from q_into), 49::bigint, 'select into');
select is((select count(*) from pg_attribute where attrelid = 'q_into'::regclass and attnum > 0 and attnotnull), 4::bigint, 'select into: columns are NOT NULL');

-- Between heap and quad, both ways.
create table t (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into t select * from h;
insert into t select * from h where s <= 10;
alter table t set access method quad;
select set_eq('select * from t', 'select * from h', 'heap to quad: duplicates become one');
select is((select count(*) from t), 20000::bigint, 'number of quads');
select is_empty($$select * from quad.verify('t')$$, 'and it is sound');
delete from t where s % 2 = 0;
insert into t values (-1, -1, -1, -1);
alter table t set access method heap;
select is((select count(*) from t), 10001::bigint, 'quad to heap');
select is((select amname::text from pg_class c join pg_am a on a.oid = c.relam where c.oid = 't'::regclass), 'heap', 'is heap');
alter table t set access method quad;
select is((select count(*) from t), 10001::bigint, 'and back');
alter table t set access method quad;
select is((select count(*) from t), 10001::bigint, 'to what it is');
create table wrong (a text);
select throws_ok('alter table wrong set access method quad', '0A000',
    'table "wrong" cannot use access method "quad": it has 1 columns', 'a heap table of another shape, by its name');
create table nullable (s bigint, p bigint, o bigint, g bigint);
select throws_ok('alter table nullable set access method quad', '0A000',
    'table "nullable" cannot use access method "quad": column "s" must be declared NOT NULL',
    'a heap table with nullable columns, by its name');
create table indexed (s bigint not null primary key, p bigint not null, o bigint not null, g bigint not null);
select throws_ok('alter table indexed set access method quad', '0A000', null::text, 'a heap table with a primary key');

-- Temporary tables.
create temp table tt (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into tt select * from h;
select is((select count(*) from tt), 20000::bigint, 'temporary table');
select is((select count(*) from tt where p = 3), (select count(*) from h where p = 3), 'temporary table, by predicate');
select is_empty($$select * from quad.verify('tt')$$, 'temporary table is sound');
create temp table td (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad on commit drop;
insert into td values (1, 2, 3, 4);
select is((select count(*) from td), 1::bigint, 'on commit drop');

-- Unlogged tables.
create unlogged table u (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into u select * from h;
select is((select count(*) from u), 20000::bigint, 'unlogged table');
alter table u set logged;
select is((select count(*) from u), 20000::bigint, 'set logged');
alter table u set unlogged;
select is((select count(*) from u), 20000::bigint, 'set unlogged');
select is_empty($$select * from quad.verify('u')$$, 'unlogged table is sound');

-- Partitions, inheritance, views.
create table part (s bigint not null, p bigint not null, o bigint not null, g bigint not null) partition by hash (s);
create table part0 partition of part for values with (modulus 2, remainder 0) using quad;
create table part1 partition of part for values with (modulus 2, remainder 1) using quad;
insert into part select * from h;
select set_eq('select * from part', 'select * from h', 'hash partitions');
update part set s = s + 1 where s <= 1000;
select is((select count(*) from part), 20000::bigint, 'update that moves rows between partitions');
create view v as select s, o from q where p = 5;
select is((select count(*) from v), (select count(*) from h where p = 5), 'view');

-- Rolled back DDL and new names.
savepoint x;
drop table q cascade;
rollback to x;
select is((select count(*) from q), 20000::bigint, 'rolled back drop');
alter table q rename to q2;
select is((select count(*) from q2), 20000::bigint, 'renamed table');
create schema other;
alter table q2 set schema other;
select is((select count(*) from other.q2), 20000::bigint, 'table in another schema');
create table same (like h) using quad;
select is((select count(*) from same), 0::bigint, 'create table like');

-- COPY of single rows (a volatile condition makes it so) into a table of this transaction.
create table single (like h) using quad;
copy single from program 'printf "1\t2\t3\t0\n2\t2\t3\t0\n"' where random() >= 0;
truncate single;
select is((select count(*) from single), 0::bigint, 'TRUNCATE after COPY of single rows');
copy single from program 'printf "1\t2\t3\t0\n2\t2\t3\t0\n"' where random() >= 0;
select lives_ok($$select quad.rebuild('single', 'spog,ospg')$$, 'rebuild after COPY of single rows');
select is((select count(*) from single where o = 3), 2::bigint, 'the new order has the rows');
create function hidden() returns trigger language plpgsql as
    $$begin create temp table if not exists veiled(x int); return new; end$$;
create table public.veiled (like h) using quad;
create trigger hides before insert on public.veiled for each row execute function hidden();
copy veiled from program 'printf "1\t2\t3\t0\n"';
truncate public.veiled;
select is((select count(*) from public.veiled), 0::bigint,
          'COPY into a table whose name another one has taken meanwhile');
savepoint a;
create table gone (like h) using quad;
savepoint b;
copy gone from program 'printf "1\t2\t3\t0\n"' where random() >= 0;
release b;
select is((select count(*) from gone), 1::bigint, 'COPY of single rows within a savepoint');
rollback to a;
select is(to_regclass('gone'), null, 'which has been rolled back');

-- Sizes.
select cmp_ok(pg_table_size('other.q2'), '>', 0::bigint, 'pg_table_size');
select is(pg_relation_size('other.q2') % 8192, 0::bigint, 'pg_relation_size is whole pages');
select cmp_ok(pg_total_relation_size('other.q2'), '<', pg_total_relation_size('h'), 'three orders take less room than the heap');

select * from finish();
rollback;
