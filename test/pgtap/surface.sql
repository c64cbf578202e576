-- The functions that users and their programs rely on, with the names of their parameters and their result types.
begin;
select plan(33);

create function pg_temp.signature(name text) returns setof text language sql as $$
    select format('(%s) %s', pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid))
    from pg_proc p where p.proname = name and p.pronamespace = 'quad'::regnamespace
$$;
-- Has quad.<name> these parameters, in this order, all but the first `required` with a default?
create function pg_temp.has(name text, parameters text[], required int, result text) returns text language plpgsql as $$
declare f record;
begin
    select p.pronargs, p.pronargdefaults, pg_get_function_result(p.oid) as result,
        (select array_agg(x.a order by x.n) from unnest(p.proargnames) with ordinality x (a, n) where x.n <= p.pronargs) as parameters
    into f from pg_proc p where p.proname = name and p.pronamespace = 'quad'::regnamespace
    order by (select array_agg(x.a order by x.n) from unnest(p.proargnames) with ordinality x (a, n) where x.n <= p.pronargs) [1:array_length(parameters, 1)] = parameters desc nulls last limit 1;
    if not found then return fail(format('quad.%s is there', name)); end if;
    return is(format('(%s) %s defaults -> %s', array_to_string(f.parameters[1:array_length(parameters, 1)], ', '), f.pronargdefaults >= array_length(parameters, 1) - required, f.result),
        format('(%s) %s defaults -> %s', array_to_string(parameters, ', '), true, result), format('quad.%s', name));
end $$;

select pg_temp.has('create_store', '{store}', 1, 'void');
select pg_temp.has('drop_store', '{store}', 1, 'void');
select pg_temp.has('load', '{path,format,graph,base,store}', 1, 'bigint');
select pg_temp.has('load_text', '{document,format,graph,base,store}', 1, 'bigint');
select pg_temp.has('export', '{store,graph}', 0, 'SETOF text');
select pg_temp.has('sparql', '{query,store,base}', 1, 'SETOF jsonb');
select pg_temp.has('sparql_json', '{query,store,base}', 1, 'text');
select pg_temp.has('ask', '{query,store,base}', 1, 'boolean');
select pg_temp.has('construct', '{query,store,base}', 1, 'TABLE(subject quad.term, predicate quad.term, object quad.term)');
select pg_temp.has('describe', '{query,store,base}', 1, 'TABLE(subject quad.term, predicate quad.term, object quad.term)');
select pg_temp.has('construct_text', '{query,format,store,base}', 1, 'text');
select pg_temp.has('describe_text', '{query,format,store,base}', 1, 'text');
select pg_temp.has('create_view', '{name,query,store,base,types}', 2, 'void');
select pg_temp.has('update', '{request,store,base}', 1, 'bigint');
select pg_temp.has('sparql_to_sql', '{query,store,base}', 1, 'text');
select pg_temp.has('explain', '{query,store,base}', 1, 'SETOF text');
select pg_temp.has('explain_json', '{query,store,base}', 1, 'text');
select has_view('quad', 'load_progress', 'quad.load_progress');
select has_type('quad', 'term', 'quad.term');
select is((select amtype::text || ' ' || amname::text from pg_am where amname = 'quad'), 't quad', 'the access method');
select lives_ok('select quad.verify(c.oid::regclass), quad.store_info(c.oid::regclass) from pg_class c where false', 'quad.verify and quad.store_info of a regclass');
select has_function('quad', 'range_count', array['regclass', 'bigint', 'bigint', 'bigint', 'bigint'], 'quad.range_count');
select has_function('quad', 'encode', array['quad.term'], 'quad.encode');
select has_function('quad', 'decode', array['bigint'], 'quad.decode');
select has_function('quad', 'find', array['quad.term'], 'quad.find');
select is(current_setting('quad.store'), 'main', 'setting quad.store');
select is(current_setting('quad.orders'), 'spog,posg,ospg', 'setting quad.orders');
select is(current_setting('quad.inner_fanout'), '0', 'setting quad.inner_fanout');
select is(current_setting('quad.leaf_quads'), '0', 'setting quad.leaf_quads');

-- Everything is transactional.
savepoint a;
select quad.create_store('brief');
select quad.load_text('<http://x/s> <http://x/p> "never heard of before" .', 'nt', store => 'brief');
rollback to a;
select is((select count(*) from pg_class where relname = 'brief' and relnamespace = 'quad_stores'::regnamespace), 0::bigint, 'a rolled back store is gone');
select is(quad.find('"never heard of before"'), null, 'and so are its terms');
select quad.load_text('<http://x/s> <http://x/p> "default store" .', 'nt');
select is((select count(*) from quad.export('main')), 1::bigint, 'the default store is made at the first write');
select throws_ok($$select * from quad.export('none')$$, '42P01', null::text, 'a store that is not there');

select * from finish();
rollback;
