-- Aggregates of joins (Quad Count), and the casts of terms that they add up.
\set setting quad.enable_quad_join
begin;
select plan(65);
\ir lib/plan_of.sql
\ir lib/same.sql

-- SQL.
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, 1, (i * 7919) % 1000, 0 from generate_series(1, 5000) i;
insert into q select i, 2, i % 37, 0 from generate_series(1, 5000) i where i % 5 > 0;
insert into q select i, 3, i * 31 % 1009, 0 from generate_series(0, 999) i;
analyze q;
create temp table shapes (name text, query text);
insert into shapes values
    ('COUNT(DISTINCT) by group', 'select b.o, count(distinct a.o) as n from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by b.o'),
    ('COUNT(DISTINCT) of all', 'select count(distinct a.o) as n, count(*) as m from q a, q b where a.s = b.s and a.p = 1 and b.p = 2'),
    ('least and greatest ids', 'select b.o, min(a.o) as l, max(a.o) as m from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by b.o'),
    ('least ids of nothing', 'select min(a.o) as l, max(a.o) as m, count(distinct a.o) as n from q a, q b where a.s = b.s and a.p = 1 and b.p = 3 and b.o < 0'),
    ('an optional value', 'select a.o, max(b.o) as m, count(distinct b.o) as n, count(b.o) as k from q a left join q b on b.s = a.s and b.p = 2 where a.p = 1 group by a.o'),
    ('groups that HAVING picks', 'select b.o, max(a.o) as m from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by b.o having max(a.o) < 995 and count(distinct a.s) > 100'),
    ('distinct rows', 'select distinct a.o as x, b.o as y from q a, q b where a.s = b.s and a.p = 1 and b.p = 2'),
    ('distinct rows with what is not bound', 'select distinct b.o as y from q a left join q b on b.s = a.s and b.p = 2 where a.p = 1'),
    ('expressions', 'select b.o, max(a.o * 2 - b.o) as m from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 group by b.o');
select matches(pg_temp.plan_of(query), 'Quad Count', 'Quad Count for ' || name) from shapes;
select pg_temp.same(query, name) from shapes;
set local work_mem = '64kB';
select pg_temp.same(query, 'little memory: ' || name) from shapes;
reset work_mem;
select doesnt_match(pg_temp.plan_of('select distinct on (b.o) b.o, a.o from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 order by 1, 2'), 'Quad Count', 'DISTINCT ON is not');
select doesnt_match(pg_temp.plan_of('select b.o, a.o + random() from q a, q b where a.s = b.s group by b.o, a.o + random()'), 'Quad Count', 'groups of what differs from row to row are not');
select doesnt_match(pg_temp.plan_of('select b.o, max(a.o) from q a, q b where a.s = b.s group by rollup (b.o)'), 'Quad Count', 'ROLLUP is not');

-- The first few distinct rows.
create temp table firsts (name text, query text, rows int);
insert into firsts values
    ('a LIMIT', 'select distinct a.o as x, b.o as y from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', 3),
    ('a LIMIT beyond the first batches', 'select distinct a.o as x from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', 700),
    ('a LIMIT that all are within', 'select distinct b.o as y from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', 1000),
    ('what may be unbound', 'select distinct a.o as x, b.o as y from q a left join q b on b.s = a.s and b.p = 2 where a.p = 1', 50);
create function pg_temp.is_part(query text, rows int) returns boolean language plpgsql as $f$
declare found int; different int; expected int; foreign_rows int;
begin
    execute format('create temp table part as select * from (%s limit %s) x', query, rows);
    execute format('select count(*) from (%s) x', query) into expected;
    execute format('select count(*) from (select * from part except select * from (%s) x) y', query) into foreign_rows;
    select count(*) into found from part;
    select count(*) into different from (select distinct * from part) x;
    drop table part;
    return found = least(rows, expected) and different = found and foreign_rows = 0;
end $f$;
create function pg_temp.join_rows(query text) returns int language sql as $f$
    select substring(pg_temp.plan_of(query, 'analyze, costs off, timing off, summary off') from 'Quad Join\) \(actual rows=(\d+)')::int
$f$;
select ok(pg_temp.is_part(query, rows), name) from firsts;
select cmp_ok(pg_temp.join_rows(query || ' limit ' || rows), '<', case when rows < 100 then 700 else 6000 end, 'the join stops: ' || name) from firsts;
set local work_mem = '64kB';
select ok(pg_temp.is_part('select distinct a.s as x, b.o as y from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', rows), rows || ' rows, of which some leave memory')
    from (values (3), (2500), (3999), (4000), (9000)) x(rows);
reset work_mem;
select results_eq('select distinct a.o as x from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 order by x desc limit 3',
    'values (999::bigint), (998), (997)', 'DISTINCT with ORDER BY and LIMIT');
declare some_distinct scroll cursor with hold for select distinct a.s, b.o from q a, q b where a.s = b.s and a.p = 1 and b.p = 2;
select isnt_empty('fetch 10 from some_distinct', 'a cursor over distinct rows');
close some_distinct;
select results_eq('select v, (select count(*) from (select distinct b.o from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 and b.o >= v limit 5) x) from generate_series(30, 40, 5) v',
    'values (30, 5::bigint), (35, 2), (40, 0)', 'again for each row outside');

-- Arguments with values from outside, constants, and rows that do not join.
select results_eq('select v, (select max(a.o + v) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2) from generate_series(1, 3) v',
    'values (1, 1000::bigint), (2, 1001), (3, 1002)', 'an argument with a value of the row outside');
select results_eq('select max(5::bigint), count(distinct b.p) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', 'values (5::bigint, 1::bigint)', 'a constant argument');
prepare with_parameter(bigint) as select max(a.o * $1) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 having max(a.o) < $1 * 1000;
set local plan_cache_mode = force_generic_plan;
select results_eq('execute with_parameter(2)', 'values (1998::bigint)', 'parameters in argument and HAVING');
select is_empty('execute with_parameter(0)', 'a HAVING that is false');
reset plan_cache_mode;
select lives_ok('select max(100 / (a.o - 7919 % 1000)) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 and a.s > 1 and a.s < 900', 'no error of rows that do not join');
select throws_ok('select max(100 / (b.o - 3)) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', '22012', null, 'an error of a row that does');

-- Rights.
create role reader_of_aggregates;
grant select on q to reader_of_aggregates;
create policy some_rows on q for select to reader_of_aggregates using (o <> 999);
alter table q enable row level security;
revoke execute on function pg_catalog.min(bigint) from public;
set local role reader_of_aggregates;
select results_eq('select max(a.o), count(distinct a.o) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2',
    'select max(o), count(distinct o) from (select a.o from q a, q b where a.s = b.s and a.p = 1 and b.p = 2 offset 0) x', 'row security');
select results_eq('select max(a.o) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', 'values (998::bigint)', 'rows that a policy hides');
select throws_ok('select min(a.o) from q a, q b where a.s = b.s and a.p = 1 and b.p = 2', '42501', 'permission denied for aggregate min', 'an aggregate without the right to execute it');
reset role;
alter table q disable row level security;

-- Casts of terms of which a block holds many, in no order of their numbers.
create temp table prices as
    select i, (i * 7919) % 6000 as at, i % 50 as product, (i % 1500) * 0.25 as price from generate_series(0, 5999) i;
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':o%s :product :p%s ; :price "%s"^^:usd ; :comment "no number, offer %s" .', i, product, price, i), E'\n' order by at), format => 'turtle')
    from prices;
select quad.load_text('@prefix : <http://e/> .
    :x1 :product :odd ; :price "1.5"^^:usd . :x2 :product :odd ; :price "nonsense"^^:usd .
    :y1 :product :nan ; :price "NaN"^^:usd . :y2 :product :nan ; :price "2"^^:usd .
    :z1 :product :inf ; :price "-INF"^^:usd . :z2 :product :inf ; :price "3" .', format => 'turtle');
analyze quad_stores.main;

create function pg_temp.answer(query text) returns table (a text, b text, c text) language sql as $f$
    select x.row -> 'a' ->> 'value', x.row -> 'b' ->> 'value', x.row -> 'c' ->> 'value'
    from jsonb_array_elements(quad.sparql_json('PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ' || query)::jsonb
        -> 'results' -> 'bindings') x(row)
$f$;

select bag_eq($$select a, b::real, c::int from pg_temp.answer('SELECT (STR(?p) AS ?a) (SUM(xsd:float(STR(?x))) AS ?b) (COUNT(*) AS ?c)
        { ?o :product ?p ; :price ?x FILTER(?p NOT IN (:odd, :nan, :inf)) } GROUP BY ?p')$$,
    $$select 'http://e/p' || product, sum(price)::real, count(*)::int from prices group by product$$, 'sums of casts by group');
select bag_eq($$select a, b::real from pg_temp.answer('SELECT (STR(?o) AS ?a) (xsd:float(STR(?x)) AS ?b) { ?o :product ?p ; :price ?x FILTER(?p = :p7) }')$$,
    $$select 'http://e/o' || i, price::real from prices where product = 7$$, 'casts row by row');
select bag_eq($$select a, b::int from pg_temp.answer('SELECT (STR(?p) AS ?a) (COUNT(*) AS ?b)
        { ?o :product ?p ; :price ?x FILTER(xsd:float(STR(?x)) < 100) FILTER(?p NOT IN (:odd, :nan, :inf)) } GROUP BY ?p')$$,
    $$select 'http://e/p' || product, count(*)::int from prices where price < 100 group by product$$, 'filters of casts');
select bag_eq($$select a, b from pg_temp.answer('SELECT (STR(?p) AS ?a) (SUM(xsd:float(STR(?x))) AS ?b) { VALUES ?p { :odd :nan :inf } ?o :product ?p ; :price ?x } GROUP BY ?p')$$,
    $$values ('http://e/odd', null::text), ('http://e/nan', 'NaN'), ('http://e/inf', '-INF')$$, 'errors, NaN and infinity');
select bag_eq($$select a::int from pg_temp.answer('SELECT (COUNT(?b) AS ?a) { ?o :product ?p ; :price ?x BIND(xsd:float(?x) AS ?b) }')$$,
    'values (1)', 'a custom datatype is cast by its text only');
select bag_eq($$select a::int from pg_temp.answer('SELECT (COUNT(?b) AS ?a) { ?o :product ?p ; :price ?x BIND(xsd:float(STR(?x)) AS ?b) }')$$,
    'values (6005)', 'the same terms by their texts');
set local quad.dictionary_cache = '64kB';
set local work_mem = '64kB';
select bag_eq($$select a, b::real from pg_temp.answer('SELECT (STR(?p) AS ?a) (SUM(xsd:float(STR(?x))) AS ?b)
        { ?o :product ?p ; :price ?x FILTER(?p NOT IN (:odd, :nan, :inf)) } GROUP BY ?p')$$,
    $$select 'http://e/p' || product, sum(price)::real from prices group by product$$, 'casts that memory has no room for');
reset work_mem;
reset quad.dictionary_cache;

-- MIN and MAX by text, of more groups than are compared with at a time, and of long texts.
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':m%s :of :k%s ; :text "%s" .', i, i % 700, repeat('text ', case when i % 3 = 0 then 300 else 3 end) || md5(i::text)), E'\n'), format => 'turtle')
    from generate_series(1, 4000) i;
select bag_eq($$select a, md5(b) as b, md5(c) as c from pg_temp.answer('SELECT (STR(?k) AS ?a) (MIN(?t) AS ?b) (MAX(?t) AS ?c) { ?m :of ?k ; :text ?t } GROUP BY ?k')$$,
    $$select 'http://e/k' || i % 700, md5(min(t collate "C")) as b, md5(max(t collate "C")) as c
      from (select i, repeat('text ', case when i % 3 = 0 then 300 else 3 end) || md5(i::text) as t from generate_series(1, 4000) i) x group by i % 700$$,
    'least and greatest texts of many groups');

-- Terms that have been compared and are rolled back: their ids may come to stand for others.
create function pg_temp.order_of_new(first text, second text) returns text[] language sql volatile as $f$
    select array_agg(t) from (select quad.decode(id)::text as t from (values (quad.encode(first::quad.term)), (quad.encode(second::quad.term))) x(id)
        order by id using operator(quad.<#) limit 2) y
$f$;
savepoint before;
select is(pg_temp.order_of_new('"a text of the first attempt"', '"b text of the first attempt"'),
    array['"a text of the first attempt"', '"b text of the first attempt"'], 'new terms are sorted');
rollback to savepoint before;
select is(pg_temp.order_of_new('"z text of the second attempt"', '"c text of the second attempt"'),
    array['"c text of the second attempt"', '"z text of the second attempt"'], 'others after a rollback');
select * from finish();
rollback;
