-- Whose term an id may be: a role decodes what it sees through a store, and no id that it has counted up to.
begin;
select plan(110);
select quad.create_store('open'), quad.create_store('secret');
select quad.load_text($$<http://x/a> <http://x/knows> <http://x/b> . <http://x/b> <http://x/knows> <http://x/c> .
    <http://x/a> <http://x/name> "a name that fits into no id" . <http://x/b> <http://x/name> "another such name of some length"@en .
    <http://x/a> <http://x/size> 1.5 . GRAPH <http://x/hidden> { <http://x/a> <http://x/name> "hidden by a policy in the graph" } $$, 'trig', store => 'open');
select quad.load_text($$<http://x/secret/a> <http://x/secret/p> "nobody may read this literal here" .$$, 'turtle', store => 'secret');
create role quad_terms_reader; create role quad_terms_nobody; create role quad_terms_all;
grant select on quad_stores.open to quad_terms_reader;
grant all on schema public to quad_terms_reader, quad_terms_nobody;
grant select on quad.terms to quad_terms_all;
create temp table ids as select q.s as id from quad_stores.secret q union select q.p from quad_stores.secret q union select q.o from quad_stores.secret q;
grant select on ids to public;
select s as secret from quad_stores.secret \gset
create function pg_temp.refused(sql text, why text) returns text language sql as $$select throws_ok(sql, '42501', null, why)$$;
create function pg_temp.text_of(sql text) returns text language plpgsql as $$declare t text; begin execute sql into t; return t; end$$;
grant create on schema public to public;

-- 1. Counting shows nothing.
set role quad_terms_nobody;
create function pg_temp.read(id bigint) returns text language plpgsql as $$
begin return quad.decode(id)::text; exception when insufficient_privilege then return null; when others then return sqlstate; end $$;
select is((select count(pg_temp.read(id)) from ids), 0::bigint, 'ids from a table of numbers');
select is((select count(pg_temp.read(n)) from generate_series(1, 2000) n), 0::bigint, 'ids from counting');
select pg_temp.refused('select quad.decode(id) from ids', 'in a query');
select pg_temp.refused(format('select quad.decode(%s)', :secret), 'a constant');
select pg_temp.refused(format('select quad.decode(%s - 1 + 1)', :secret), 'a sum');
select pg_temp.refused(format('select quad.%s(%s, quad.encode(''"m"''))', f, :secret), 'a comparison: ' || f) from unnest(array['eq', 'ne', 'lt', 'le', 'gt', 'ge']) f;
select pg_temp.refused('select quad.agg_min(id), quad.agg_max(id) from ids', 'the least term of ids');
select pg_temp.refused('select quad.agg_min(id) over () from ids', 'in a window');
select pg_temp.refused(format('select quad.cast_float_of_str(%s)', (select id from ids order by id desc limit 1)), 'what it is as a number');
select pg_temp.refused('select id from ids order by id using operator(quad.<#)', 'sorted by their terms');
select pg_temp.refused('select array_agg(id order by id using operator(quad.>#)) from ids', 'within an aggregate');
select pg_temp.refused('create table t as select * from ids; create index on t (id quad.id_term_ops)', 'in an index');
select pg_temp.refused('select count(*) from ids where id operator(quad.<#) quad.encode(''"m"'')', 'compared by an operator');
select pg_temp.refused(format('select quad.id_contains(%s, ''"may"'')', (select max(id) from ids)), 'what is in it');
select pg_temp.refused(format('prepare bare as select quad.decode($1); execute bare(%s)', :secret), 'a parameter');
select pg_temp.refused(format('prepare other(quad.term) as select $1; execute other(quad.decode(%s))', :secret), 'the value of a parameter');
select pg_temp.refused('create temp table t (id bigint check (quad.decode(id) is not null)); insert into t select id from ids', 'a check');
select pg_temp.refused(format('create temp table t (x quad.term default quad.decode(%s)); insert into t default values', :secret), 'a default');
select pg_temp.refused('create operator public.@@@ (rightarg = bigint, function = quad.decode); select operator(public.@@@) id from ids', 'an operator');
select pg_temp.refused('create aggregate public.leak(bigint) (sfunc = int8larger, stype = bigint, finalfunc = quad.decode); select public.leak(id) from ids', 'the end of an aggregate');
select pg_temp.refused('create function public.leak(bigint) returns quad.term language sql stable as ''select quad.decode($1)''; select public.leak(id) from ids', 'a function');
select pg_temp.refused('select quad.decode(lag(id) over ()) from ids', 'a window function');
create domain public.number as bigint;
select pg_temp.refused('select quad.decode(lag(id::number) over ()) from ids', 'of a domain');
select pg_temp.refused('select quad.decode(first_value(id::number) over (partition by id)) from ids', 'of a domain, the first one');
select pg_temp.refused('select quad.decode(u) from (select unnest(array_agg(id::number)) as u from ids) x', 'an array of a domain');
select pg_temp.refused('select quad.decode((first_value(array[id]) over ())[1]) from ids', 'an array in a window');
select pg_temp.refused('select id from (select id::number from ids) x order by id using operator(quad.<#)', 'a domain, sorted by its terms');
select pg_temp.refused('select quad.find(''<http://x/secret/p>'') as id union all select id from ids order by 1 using operator(quad.<#)', 'a union, sorted by its terms');
select is((select count(*) from (select quad.find('<http://x/a>') as id union all select quad.find('<http://x/b>') order by 1 using operator(quad.<#)) x), 2::bigint,
    'a union of ids of terms may be sorted');
select pg_temp.refused('select quad.decode(id) from (select quad.find(''<http://x/secret/p>'') as id union all select id from ids) x', 'half of a union');
select pg_temp.refused('with recursive w(id) as (select quad.find(''<http://x/secret/p>'') union all select w.id + 1 from w where w.id < 1e9::bigint) select quad.decode(id) from w limit 100',
    'a recursion that counts');
select pg_temp.refused('with recursive w(id, n) as (select 1::bigint, 1 union all select w.id, w.n + 1 from w where n < 5) select quad.decode(id) from w', 'a recursion from a number');
select pg_temp.refused('select quad.decode(quad.range_count(''quad_stores.secret'', null, null, null, null))', 'rights on a store come first');

-- 2. Terms as such, and ids that hold their term, are nobody's secret.
select is(quad.decode(quad.encode('<http://x/new/term/of/nobody>'))::text, 'http://x/new/term/of/nobody', 'the id of a term');
select is(quad.decode(quad.find('<http://x/a>'))::text, 'http://x/a', 'that is found');
select is(quad.decode(quad.encode('5'))::text, '5', 'a number in its id');
select is((select quad.decode(id)::text from (values (quad.encode('"7"')), (quad.int_id(7))) v(id) order by 1 limit 1), '7', 'in a list');
select is((select count(quad.decode(x)) from unnest(array[quad.encode('<http://x/new/1>'), quad.encode('<http://x/new/2>')]) x), 2::bigint, 'in an array');
select is((select count(quad.decode(x)) from (select unnest(array_agg(id order by quad.decode(id)::text, 'text')) as x
    from (values (quad.encode('<http://x/new/1>')), (quad.encode('<http://x/new/2>'))) v(id)) y), 2::bigint, 'in an array in the order of a text');
select is((select count(quad.decode(x)) from (select lead(id, 1, id) over () as x from (values (quad.encode('<http://x/new/1>')), (quad.encode('"7"'))) v(id)) y), 2::bigint,
    'in a window with a default');

-- 3. No table of one's own helps.
create table own (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
create table heap as select id as s, 1::bigint as p, 2::bigint as o, 0::bigint as g from ids;
select pg_temp.refused(format('insert into own values (%s, 1, 2, 0)', :secret), 'INSERT of numbers');
select pg_temp.refused('insert into own select s, p, o, g from heap', 'INSERT of another table');
select pg_temp.refused('with x as (insert into own select s, p, o, g from heap returning *) select count(*) from x', 'INSERT in WITH');
select pg_temp.refused('with x as (insert into own select s, p, o, g from heap) select 1', 'INSERT in WITH that nobody reads');
select pg_temp.refused('merge into own using heap h on own.s = h.s when not matched then insert values (h.s, h.p, h.o, h.g)', 'MERGE');
select pg_temp.refused(format('insert into own values (quad.encode(''<http://x/1>''), 2, 3, 0); update own set s = %s', :secret), 'UPDATE');
select pg_temp.refused(format('insert into own values (quad.encode(''<http://x/1>''), quad.encode(''<http://x/2>''), %s, 0)', n), n || ' is no term')
from unnest(array[-1, 0, 9223372036854775807]) n;
select pg_temp.refused('create table made using quad as select * from heap', 'CREATE TABLE AS');
set application_name = 'citus_internal gpid=1';
select pg_temp.refused('insert into own select * from heap', 'in the name of another node');
select pg_temp.refused('create table made using quad as select * from heap', 'CREATE TABLE AS in the name of another node');
reset application_name;
select pg_temp.refused('prepare rows as select * from heap; create table made using quad as execute rows', 'CREATE TABLE AS EXECUTE');
select pg_temp.refused('create materialized view made using quad as select * from heap', 'CREATE MATERIALIZED VIEW');
select pg_temp.refused('explain analyze create table made using quad as select * from heap',
    'EXPLAIN ANALYZE CREATE TABLE AS');
-- The name of the table that PostgreSQL itself makes of another one.
select pg_temp.refused(format(sql, 'own'::regclass::oid), sql) from (values
    ('create table public.pg_temp_%s using quad as select * from heap'),
    ('explain analyze create table public.pg_temp_%s using quad as select * from heap'),
    ('lock table own in access exclusive mode;
      explain analyze create table public.pg_temp_%s using quad as select * from heap'),
    ('lock table own in access exclusive mode;
      create table public.pg_temp_%1$s (like own) using quad;
      insert into public.pg_temp_%1$s select * from heap')) v(sql);
select pg_temp.refused('create table strict (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using heap; insert into strict select * from heap;
    alter table strict set access method quad', 'ALTER TABLE');
select pg_temp.refused('create function public.other() returns trigger language plpgsql as ''begin select id into new.s from ids; return new; end'';
    create trigger other before insert on own for each row execute function public.other(); insert into own values (quad.encode(''<http://x/1>''), 5 << 57, 0, 0)', 'a trigger');
select pg_temp.refused('do $d$ begin insert into own values (quad.encode(''<http://x/1>''), quad.encode(''<http://x/2>''), quad.encode(''3''), 0);
    begin insert into own values (quad.encode(''"1"''), quad.encode(''<http://x/2>''), 1 / 0, 0); exception when division_by_zero then null; end;
    insert into own select s, p, o, g from heap; end $d$', 'after an error within a function');
select pg_temp.refused('create table parent (s bigint not null, p bigint not null, o bigint not null, g bigint not null) partition by hash (s);
    create table part partition of parent for values with (modulus 1, remainder 0) using quad; insert into parent select * from heap', 'a partition');
select is((select count(*) from own), 0::bigint, 'nothing came in');
-- A heap table that is read with a quad table.
create table above (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
create table below () inherits (above) using heap;
insert into below select * from heap;
select pg_temp.refused('select quad.decode(s) from above', 'a table that inherits');
drop table below, above;
-- What comes from terms goes in.
select lives_ok('insert into own values (quad.encode(''<http://x/new/1>''), quad.encode(''<http://x/new/2>''), quad.encode(''3''), 0)', 'ids of terms go in');
select lives_ok($$select quad.create_store('mine'), quad.update('INSERT DATA { <http://x/new/1> <http://x/new/2> "a literal of this very role" }', 'mine')$$, 'and those of SPARQL');
select is(quad.update('DELETE { ?s ?p ?o } INSERT { ?o ?p ?s . GRAPH <http://x/new/g> { ?s ?p <http://x/new/9> } } WHERE { ?s ?p ?o FILTER(isIRI(?s)) }', 'mine'), 2::bigint, 'changed by SPARQL');
select is((select count(*) from quad.load_text('<http://x/l> <http://x/l> "a longer literal in a document" .', 'turtle', store => 'mine')), 1::bigint, 'and loads');
select lives_ok('insert into own select * from quad_stores.mine; create table copy using quad as select * from own', 'and copies of quads');
select is((select count(quad.decode(s)) from copy), 3::bigint, 'which are decoded');
select lives_ok('explain analyze create table explained using quad with (orders = ''spog'') as select * from own;
    alter table copy set unlogged', 'by EXPLAIN, into a new file');

-- 4. What a role sees through a store.
set role quad_terms_reader;
select is(pg_temp.text_of('select string_agg(t, '' '' order by t) from (' || sql || ') x(t)'), expected, sql) from (values
    ('select quad.decode(s)::text from quad_stores.open where p = quad.find(''<http://x/knows>'')', 'http://x/a http://x/b'),
    ('select quad.decode(x.id)::text from (select distinct o as id from quad_stores.open q) x where quad.id_kind(x.id) = 0', 'http://x/b http://x/c'),
    ('with w as materialized (select min(s) as low, max(s) as high from quad_stores.open) select quad.decode(unnest(array[low, high]))::text from w', 'http://x/a http://x/b'),
    ('with recursive w(n) as (select quad.find(''<http://x/a>'') union select q.o from w join quad_stores.open q on q.s = w.n and q.p = quad.find(''<http://x/knows>'')) select quad.decode(n)::text from w', 'http://x/a http://x/b http://x/c'),
    ('select quad.decode(case when a.o = b.s then a.o else coalesce(b.o, 0) end)::text from quad_stores.open a join quad_stores.open b on a.o = b.s where a.p = b.p', 'http://x/b'),
    ('select quad.decode(u)::text from (select array_agg(distinct s) as l from quad_stores.open) x, unnest(x.l) u', 'http://x/a http://x/b'),
    ('select quad.decode(first_value(s) over (order by s))::text from quad_stores.open where g = 0 limit 1', 'http://x/a'),
    ('select quad.decode((select s from quad_stores.open order by s limit 1))::text', 'http://x/a')) v(sql, expected);
select is((select count(*) from quad.sparql('SELECT * { ?s ?p ?o FILTER(?o > "a" || ?o < <http://x/z> || ?o = 1.5) }', 'open')), 2::bigint, 'by SPARQL with comparisons');
select is((select count(*) from quad.sparql('SELECT (MIN(?o) AS ?a) (MAX(?o) AS ?b) ?s { VALUES ?s { <http://x/a> <http://x/b> <http://x/none> } ?s <http://x/name> ?o } GROUP BY ?s ORDER BY ?a', 'open')), 2::bigint, 'with aggregates and values');
select is((select count(*) from quad.sparql('SELECT * { <http://x/a> <http://x/knows>* ?o BIND(STRLEN(STR(?o)) AS ?n) OPTIONAL { ?o <http://x/name> ?name } }', 'open')), 3::bigint, 'with paths');
select is((select count(*) from quad.sparql('SELECT ?o (STRLEN(?o) AS ?n) { ?s <http://x/name> ?o FILTER(CONTAINS(?o, "name") && LANG(?o) != "de") } ORDER BY DESC(?o) LIMIT 1', 'open')), 1::bigint, 'with functions and the first of an order');
select is((select count(*) from (select o from quad_stores.open order by o using operator(quad.<#) limit 3) x), 3::bigint, 'in the order of terms');
select is((select count(*) from quad.construct('CONSTRUCT WHERE { ?s ?p ?o }', 'open')), 5::bigint, 'CONSTRUCT');
select is((select count(*) from quad.describe('DESCRIBE <http://x/a>', 'open')), 3::bigint, 'DESCRIBE');
select is((select count(*) from quad.export('open')), 6::bigint, 'export');
select is(pg_temp.text_of(format('select count(*) from (%s) x', quad.sparql_to_sql(q, 'open'))), n, 'sparql_to_sql: ' || q) from (values
    ('SELECT * { ?s ?p ?o }', '5'), ('SELECT ?n (COUNT(*) AS ?c) { ?s <http://x/name> ?n } GROUP BY ?n ORDER BY ?n', '2'),
    ('SELECT * { { ?s <http://x/name> ?o } UNION { ?s <http://x/size> ?o } FILTER(?o != "x") }', '3'),
    ('SELECT * { VALUES ?x { <http://x/a> <http://x/none> } OPTIONAL { ?x <http://x/knows>+ ?y } }', '3')) v(q, n);
select quad.create_view('public.terms_view', 'SELECT ?s ?name { ?s <http://x/name> ?name }', 'open');
select is((select count(*) from terms_view where name operator(quad.=) '"a name that fits into no id"'), 1::bigint, 'a view');
select pg_temp.refused('select quad.decode(id) from ids', 'and no other ids');
grant select on terms_view to quad_terms_nobody;
set role quad_terms_nobody;
select is((select count(*) from terms_view), 2::bigint, 'a view with the rights of its owner');
reset role;

-- 5. Policies.
alter table quad_stores.open enable row level security;
create policy of_default on quad_stores.open for all to quad_terms_reader using (g = 0);
select o as hidden from quad_stores.open where g <> 0 \gset
set role quad_terms_reader;
select is((select count(quad.decode(o)) from quad_stores.open), 5::bigint, 'what a policy lets through');
select pg_temp.refused(format('select quad.decode(%s)', :hidden), 'and not what it hides');
select is((select count(*) from quad.sparql('SELECT * { ?s ?p ?o }', 'open')), 5::bigint, 'by SPARQL');
select is((select count(*) from terms_view), 2::bigint, 'by a view');
reset role;

-- 6. Those who may read the dictionary. A plan that was made for them is not theirs when somebody else runs it.
set role quad_terms_all;
select is((select count(quad.decode(id)) from ids), 3::bigint, 'SELECT on quad.terms is the right to decode any id');
reset role;
select is((select count(quad.decode(id)) from ids), 3::bigint, 'and so is to be a superuser');
prepare any_id(bigint) as select quad.decode($1);
prepare any_quad(bigint) as insert into own values ($1, 1, 2, 0);
set role quad_terms_nobody;
select pg_temp.refused(format('execute any_id(%s)', :secret), 'a plan of a superuser');
select pg_temp.refused(format('execute any_quad(%s)', :secret), 'one that writes');
reset role;
-- Those who may write any number are told what it is when it is read.
reset role;
select quad.create_store('numbers');
insert into quad_stores.numbers values (-1, -1, -1, 0);
select throws_ok('select quad.sparql(''SELECT * { ?s ?p ?o }'', ''numbers'')', '22023', '-1 is not a term id', 'a number that is no term id, in SPARQL');
delete from quad_stores.numbers;
insert into quad_stores.numbers values (0, 0, 0, 0);
select throws_ok('select quad.export(''numbers'')', '22023', '0 is not a term id', 'a quad of the default graph''s id, in an export');
select * from finish();
rollback;
