-- Options of a quad table in its definition: given by WITH, kept in pg_class, so that dumps and shards are built alike.
begin;
select plan(24);

create function pg_temp.built(rel regclass) returns text language sql as
    $$select string_agg(format('%s %s %s', order_name, inner_fanout, leaf_quads), ', ') from quad.store_info(rel)$$;
create function pg_temp.kept(rel regclass) returns text[] language sql as
    $$select reloptions from pg_class where oid = rel$$;

create table q_with (s bigint not null, p bigint not null, o bigint not null, g bigint not null)
    using quad with (orders = 'spog,psog', inner_fanout = 64, leaf_quads = '100,200');
select is(pg_temp.built('q_with'), 'spog 64 100, psog 64 200', 'WITH says how the table is built');
select is(pg_temp.kept('q_with'), '{"orders=spog,psog",inner_fanout=64,"leaf_quads=100,200"}', 'and is kept in pg_class');
select is(current_setting('quad.orders'), 'spog,posg,ospg', 'the settings are as before');

set local quad.orders = 'ospg';
set local quad.inner_fanout = '32';
create table q_set (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
select is(pg_temp.kept('q_set'), '{orders=ospg,inner_fanout=32,leaf_quads=0}', 'what the settings gave is kept, too');
create table q_both (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad with (orders = 'posg');
select is(pg_temp.built('q_both'), 'posg 32 0', 'WITH goes before settings');
reset quad.orders;
reset quad.inner_fanout;

create table q_as using quad with (orders = 'gspo', autovacuum_enabled = off) as
    select n as s, 2::bigint as p, 3::bigint as o, 4::bigint as g from generate_series(1::bigint, 10) n;
select is(pg_temp.built('q_as'), 'gspo 0 0', 'CREATE TABLE AS with options');
select is(pg_temp.kept('q_as'), '{autovacuum_enabled=off,orders=gspo,inner_fanout=0,leaf_quads=0}', 'PostgreSQL''s own options stay');
select is(count(*), 10::bigint, 'and the rows are there') from q_as;

set local default_table_access_method = quad;
create table q_dflt (s bigint not null, p bigint not null, o bigint not null, g bigint not null) with (orders = 'opsg');
set local default_table_access_method = heap;
select is(pg_temp.built('q_dflt'), 'opsg 0 0', 'the default access method takes options');

-- The statement is kept between the calls and must not be changed.
create function pg_temp.again() returns text language plpgsql as $$
declare answer text;
begin
    create table q_again (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad with (orders = 'pgso');
    answer := pg_temp.built('q_again');
    drop table q_again;
    return answer;
end $$;
select is(pg_temp.again(), 'pgso 0 0', 'in a function, call ' || n) from generate_series(1, 3) n;

select throws_ok($$create table bad (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad with (orders = 'sspo')$$,
    '22023', null, 'an order that is no permutation');
select is(current_setting('quad.orders'), 'spog,posg,ospg', 'after the error the settings are as before');
select throws_like($$create table bad (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad with (order = 'spog')$$,
    '%unrecognized parameter "order"%', 'an unknown option');
select throws_like($$create table bad (s bigint not null) using heap with (orders = 'spog')$$,
    '%unrecognized parameter "orders"%', 'a heap table has no orders');

alter table q_with set (autovacuum_enabled = off);
select is(pg_temp.kept('q_with'), '{autovacuum_enabled=off,"orders=spog,psog",inner_fanout=64,"leaf_quads=100,200"}', 'ALTER TABLE SET');
alter table q_with reset (autovacuum_enabled);
select is(pg_temp.kept('q_with'), '{"orders=spog,psog",inner_fanout=64,"leaf_quads=100,200"}', 'ALTER TABLE RESET');
select throws_ok($$alter table q_with set (inner_fanout = 8)$$, '0A000', null, 'an option of the trees is not altered');
select throws_ok($$alter table q_with reset (orders)$$, '0A000', null, 'nor reset');

insert into q_with values (1, 2, 3, 4);
truncate q_with;
select is(pg_temp.built('q_with'), 'spog 64 100, psog 64 200', 'TRUNCATE keeps the options');
insert into q_with values (1, 2, 3, 4);
alter table q_with set access method heap;
select is(pg_temp.kept('q_with'), null, 'a heap table has none of them');
set local quad.orders = 'ogps';
alter table q_with set access method quad;
select is(pg_temp.kept('q_with'), '{orders=ogps,inner_fanout=0,leaf_quads=0}', 'a table that becomes a quad table has them again');
select quad.rebuild('q_with', orders => 'psog,spog', inner_fanout => '16,32');
select is(pg_temp.kept('q_with'), '{"orders=psog,spog","inner_fanout=16,32",leaf_quads=0}', 'quad.rebuild writes the new ones down');

select * from finish();
rollback;
