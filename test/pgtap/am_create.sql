-- The one table shape of the access method: s, p, o, g bigint not null; everything else is refused.
begin;
select plan(29);

select lives_ok($$create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad$$,
    'the table shape is accepted');
select is((select amname::text from pg_class c join pg_am a on a.oid = c.relam where c.oid = 'q'::regclass), 'quad',
    'the table uses the access method');
select lives_ok($$create table q_dflt (s bigint not null, p bigint not null, o bigint not null, g bigint not null default 0) using quad$$,
    'a default value is no change of shape');
insert into q_dflt (s, p, o) values (1, 2, 3);
select results_eq('select s, p, o, g from q_dflt', $$values (1::bigint, 2::bigint, 3::bigint, 0::bigint)$$, 'the default is used');
select lives_ok($$create table if not exists q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad$$,
    'if not exists');
select lives_ok($$set local default_table_access_method = quad;
    create table q_by_setting (s int8 not null, p int8 not null, o int8 not null, g int8 not null);
    set local default_table_access_method = heap$$, 'default_table_access_method works');
select is((select amname::text from pg_class c join pg_am a on a.oid = c.relam where c.oid = 'q_by_setting'::regclass), 'quad',
    'and gives a quad table');

create function pg_temp.refuses(columns text, what text) returns setof text language plpgsql as $f$
begin
    return next throws_ok(format('create table bad (%s) using quad', columns), '0A000', null::text, what);
end $f$;

select pg_temp.refuses('', 'no column');
select pg_temp.refuses('s bigint not null', 'one column');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null', 'three columns');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null, g bigint not null, x int', 'five columns');
select pg_temp.refuses('s bigint not null, o bigint not null, p bigint not null, g bigint not null', 'another order of columns');
select pg_temp.refuses('a bigint not null, p bigint not null, o bigint not null, g bigint not null', 'another name');
select pg_temp.refuses('"S" bigint not null, p bigint not null, o bigint not null, g bigint not null', 'another case');
select pg_temp.refuses('s int not null, p bigint not null, o bigint not null, g bigint not null', 'int');
select pg_temp.refuses('s bigint not null, p text not null, o bigint not null, g bigint not null', 'text');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null, g numeric not null', 'numeric');
select pg_temp.refuses('s bigint, p bigint not null, o bigint not null, g bigint not null', 's may be null');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null, g bigint', 'g may be null');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint[] not null, g bigint not null', 'an array');
create domain positive as bigint check (value > 0);
select pg_temp.refuses('s positive not null, p bigint not null, o bigint not null, g bigint not null', 'a domain');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null, g bigint generated always as (s + 1) stored not null', 'a generated column');
select pg_temp.refuses('s bigint not null primary key, p bigint not null, o bigint not null, g bigint not null', 'a primary key');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null unique, g bigint not null', 'a unique constraint');
select pg_temp.refuses('s bigint not null, p bigint not null, o bigint not null, g bigint not null, exclude using btree (s with =)', 'an exclusion constraint');
select throws_like($$create table bad (s bigint not null, p text not null, o bigint not null, g bigint not null) using quad$$,
    '%"bad"%"p"%bigint%', 'the message names table and column');
select throws_like($$create table bad (s bigint not null) using quad$$, '%"bad"%1 column%', 'the message names the number of columns');

-- Orders and page limits are read from the settings when the table is made.
select lives_ok($$set local quad.orders = 'ospg,posg'; set local quad.inner_fanout = '8'; set local quad.leaf_quads = '16,0';
    create table q_options (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
    reset quad.orders; reset quad.inner_fanout; reset quad.leaf_quads$$, 'orders and page limits by settings');
select throws_ok($$set local quad.orders = 'spog,xyzg';
    create table bad (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad$$, null::char(5), null::text,
    'an order that is no permutation');

select * from finish();
rollback;
