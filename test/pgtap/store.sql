-- Stores: making, finding and dropping them.
BEGIN;
SELECT plan(26);

SELECT has_schema('quad_stores');
SELECT is(current_setting('quad.store'), 'main', 'the default store is main');
SELECT lives_ok($$SELECT quad.create_store('a')$$, 'create a store');
SELECT is((SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = 'quad_stores.a'::regclass),
          'quad', 'its table has the access method quad');
SELECT columns_are('quad_stores', 'a', ARRAY['s', 'p', 'o', 'g']);
SELECT throws_ok($$SELECT quad.create_store('a')$$, '42P07', 'store "a" already exists');
SELECT lives_ok($$SELECT quad.create_store('Odd "name"; drop')$$, 'any identifier is a name');
SELECT has_table('quad_stores', 'Odd "name"; drop', 'and is taken literally');
SELECT lives_ok($$SELECT quad.drop_store('Odd "name"; drop')$$, 'drop it');
SELECT hasnt_table('quad_stores', 'Odd "name"; drop', 'it is gone');
SELECT throws_ok($$SELECT quad.create_store('')$$, '42602', 'the name of a store must not be empty');
SELECT throws_ok($$SELECT quad.create_store(repeat('x', 64))$$, '42622',
                 'the name of a store has at most 63 bytes, this one has 64');
SELECT lives_ok($$SELECT quad.create_store(repeat('x', 63))$$, 'a name of 63 bytes');
SELECT throws_ok($$SELECT quad.drop_store('b')$$, '42P01', 'store "b" does not exist');

SELECT lives_ok($$SELECT quad.create_store('two', 'spog,ospg', '64', '100,200')$$, 'options');
SELECT results_eq(
    $$SELECT order_name, inner_fanout, leaf_quads FROM quad.store_info('quad_stores.two') ORDER BY order_name DESC$$,
    $$VALUES ('spog', 64, 100), ('ospg', 64, 200)$$, 'are those of the table');
SELECT is(current_setting('quad.orders'), 'spog,posg,ospg', 'and the settings are as before');
SELECT throws_ok($$SELECT quad.create_store('bad', 'spox')$$, '22023', NULL, 'an order that is none');
SELECT hasnt_table('quad_stores', 'bad', 'makes no store');

-- The default store
SELECT throws_ok($$SELECT count(*) FROM quad.export()$$, '42P01', 'store "main" does not exist');
SELECT is(quad.load_text('<http://x/s> <http://x/p> 1 .'), 1::bigint, 'the first write makes the default store');
SELECT has_table('quad_stores', 'main', 'it is there');
SELECT set_config('quad.store', 'other', true);
SELECT is(quad.load_text('<http://x/s> <http://x/p> 1 .'), 1::bigint, 'the setting names another one');
SELECT has_table('quad_stores', 'other', 'which is made as well');

CREATE VIEW quad_stores.no_store AS SELECT 1;
SELECT throws_ok($$SELECT count(*) FROM quad.export('no_store')$$, '42809', 'quad_stores.no_store is not a store');

-- Rights are those of the table.
CREATE ROLE store_test_user;
SET LOCAL ROLE store_test_user;
SELECT throws_ok($$SELECT quad.drop_store('a')$$, '42501', NULL, 'a stranger cannot drop a store');

SELECT finish();
ROLLBACK;
