-- What the functions tell about a table, and rebuilding with other orders and page limits.
begin;
create extension if not exists pg_prewarm;
select plan(17);
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, i % 7, i % 1000, 0 from generate_series(1, 30000) i;

select set_eq($$select order_name from quad.store_info('q')$$, array['spog', 'posg', 'ospg'], 'one row for each order');
select is((select count(*) from quad.store_info('q') where quads = 30000), 3::bigint, 'quads in each order');
select is((select count(*) from quad.store_info('q') where height >= 2), 3::bigint, 'height of each order');
select cmp_ok((select max(bytes_per_quad) from quad.store_info('q'))::numeric, '<', 40::numeric, 'bytes per quad');
select is((select count(*) from quad.store_info('q') where fill > 0 and fill <= 100), 3::bigint, 'fill of each order');
select is_empty($$select * from quad.verify('q')$$, 'verify');

select lives_ok($$select quad.rebuild('q', 'ospg,spog', '16', '64')$$, 'rebuild with other options');
select set_eq($$select order_name from quad.store_info('q')$$, array['spog', 'ospg'], 'the new orders');
select is((select count(*) from q), 30000::bigint, 'the content is the same');
select is((select count(*) from q where p = 3 and o = 10), (select count(*) from generate_series(1, 30000) i where i % 7 = 3 and i % 1000 = 10), 'look-up after the rebuild');
select is_empty($$select * from quad.verify('q')$$, 'verify after the rebuild');
select cmp_ok((select min(leaf_pages) from quad.store_info('q'))::numeric, '>=', 30000 / 64.0, 'small leaves after the rebuild');
select cmp_ok((select min(height) from quad.store_info('q'))::int, '>=', 3, 'a small fanout makes a higher tree');
insert into q select i, 8, 8, 8 from generate_series(1, 5000) i;
delete from q where p = 0;
select is_empty($$select * from quad.verify('q')$$, 'verify after changes with a small fanout');

create table later (like q) using quad;
select set_eq($$select order_name from quad.store_info('later')$$, array['spog', 'posg', 'ospg'], 'another table has the default orders');
select cmp_ok(pg_prewarm('q'), '>', 0::bigint, 'pg_prewarm');
select cmp_ok(pg_prewarm('q', 'read'), '>', 0::bigint, 'pg_prewarm by reading');

select * from finish();
rollback;
