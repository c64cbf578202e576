-- Every function, aggregate and cast of the extension, with NULL, empty, huge, odd and mistyped arguments. Each call
-- gives a result or an error that is not an internal one (SQLSTATE class XX), and the session lives on. What is called
-- comes from pg_proc, so new functions are, too.
begin;
select plan(7);
select quad.create_store('probe');
select quad.load_text('<http://x/a> <http://x/b> "a literal that is in no id", 1, 2.5, "x"@en, _:n .', 'turtle', store => 'probe');
create table probe_heap (s bigint); create view probe_view as select 1 as x; create sequence probe_sequence; create index probe_index on probe_heap (s);
create role quad_probe; grant create, usage on schema public to quad_probe;

-- Values of each type, as SQL.
create temp table samples (type regtype, value text);
insert into samples select 'quad.term', v from unnest(array['null', $$'""'$$, $$'<http://x/a>'$$, $$'_:b'$$, $$'"text"@en-GB'$$, '''1''', '''1e400''', '''-0.0''',
    $$'"NaN"^^<http://www.w3.org/2001/XMLSchema#double>'$$, $$'"99999999999999999999999999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer>'$$,
    $$'"2020-02-30"^^<http://www.w3.org/2001/XMLSchema#date>'$$, $$'"-292277022399-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'$$,
    $$'"P99999999999Y"^^<http://www.w3.org/2001/XMLSchema#duration>'$$, $$'"(("^^<http://x/odd>'$$, $$('"' || repeat('x(', 200000) || '"')$$]) v;
insert into samples select 'bigint', v from unnest(array['null', '0', '1', '-1', '9223372036854775807', '(-9223372036854775808)', '(select min(s) from quad_stores.probe)']) v;
insert into samples select 'integer', v from unnest(array['null', '0', '-1', '2147483647', '(-2147483648)']) v;
insert into samples select 'smallint', v from unnest(array['null', '0', '(-32768)', '32767']) v;
insert into samples select 'boolean', v from unnest(array['null', 'true', 'false']) v;
insert into samples select 'numeric', v from unnest(array['null', '0', '1e1000', '(-1e-1000)', '''NaN''', '''Infinity''', 'repeat(''9'', 1000)::numeric']) v;
insert into samples select 'double precision', v from unnest(array['null', '0', '''NaN''', '''-Infinity''', '1e308', '5e-324']) v;
insert into samples select 'real', v from unnest(array['null', '''NaN''', '3e38']) v;
insert into samples select 'text', v from unnest(array['null', '''''', '''probe''', $$'SELECT * { ?s ?p ?o }'$$, $$'SELECT * {'$$, $$'turtle'$$, $$E'\x01''; \\ "'$$,
    $$repeat('((', 100000)$$, $$'/nowhere/at/all.nt'$$, $$'spog,posg'$$, '''-1''', $$E'\U0010FFFF'$$]) v;
insert into samples select 'cstring', v from unnest(array['null', '''''', $$'"a"'$$, $$'"a'$$, $$repeat('x', 300000)$$]) v;
insert into samples select 'bytea', v from unnest(array['null', '''''', '''\x00ff''', 'decode(repeat(''00'', 100000), ''hex'')', '''\x0100000000''', '''\xffffffffffffffff''']) v;
insert into samples select 'jsonb', v from unnest(array['null', '''{}''', '''[]''', '''{"s": "no such type"}''', '''{"s": 1}''', '''null''']) v;
insert into samples select 'date', v from unnest(array['null', '''infinity''', '''4713-01-01 BC''', '''5874897-12-31''']) v;
insert into samples select 'timestamptz', v from unnest(array['null', '''infinity''', '''-infinity''', '''4713-01-01 BC''', '''294276-12-31''']) v;
insert into samples select 'regclass', v from unnest(array['null', '0', '4294967295::oid', '''quad_stores.probe''', '''probe_heap''', '''probe_view''', '''probe_sequence''',
    '''probe_index''', '''pg_class''', '''quad.term_ids''']) v;
insert into samples select 'oid', v from unnest(array['null', '0', '4294967295']) v;
insert into samples select t, v from unnest(array['text[]', 'bigint[]', 'integer[]', 'quad.term[]', 'bytea[]']::regtype[]) t, unnest(array['null', '''{}''', '''{NULL}''', '''{1,2}''', '''{{1},{2}}''', '''[5:6]={3,4}''']) v;

-- All functions with their arguments; those that take what SQL has no values of are PostgreSQL's to call.
create temp table functions as
    select p.oid, p.proname, p.prokind, p.proretset, array_replace(string_to_array(p.proargtypes::text, ' ')::oid[]::regtype[], 'anyarray', 'bigint[]') as arguments
    from pg_proc p where p.pronamespace = 'quad'::regnamespace and p.prokind in ('f', 'a', 'w');
select is((select array_agg(distinct a order by a) from functions f, unnest(f.arguments) a where a not in (select type from samples)
    and a::text not in ('internal')), null, 'there are values of every type of argument');

create function pg_temp.calls(arguments regtype[], most int) returns setof text language plpgsql as $$
declare
    n int := cardinality(arguments);
    counts bigint[]; total numeric := 1; lists text[][]; one text; k bigint; i int; rest bigint; parts text[]; values_of text[];
begin
    if n = 0 then return next ''; return; end if;
    for i in 1..n loop
        total := total * (select count(*) from samples where type = arguments[i]);
    end loop;
    -- All combinations, or as many of them, spread over all by a stride that meets each value of each argument.
    for k in 0..least(total, most)::bigint - 1 loop
        rest := case when total <= most then k else (k * 7919 + k / 3) % total::bigint end;
        parts := '{}';
        for i in 1..n loop
            values_of := (select array_agg(value order by ctid) from samples where type = arguments[i]);
            parts := parts || format('%s::%s', values_of[1 + rest % cardinality(values_of)], arguments[i]);
            rest := rest / cardinality(values_of);
        end loop;
        return next array_to_string(parts, ', ');
    end loop;
end $$;

create temp table failures (call text, state text, message text);
create temp table tally (calls bigint, results bigint);
insert into tally values (0, 0);
grant all on samples, functions, failures, tally to quad_probe;

-- Calls it in a part of the transaction of its own, which is rolled back.
create function pg_temp.try(call text) returns void language plpgsql as $$
declare message text; state text;
begin
    begin
        execute call;
        raise exception sqlstate 'UNDO0';
    exception when others then
        get stacked diagnostics state = returned_sqlstate, message = message_text;
    end;
    update tally set calls = calls + 1, results = results + (state = 'UNDO0')::int;
    if state like 'XX%' then insert into failures values (left(call, 300), state, left(message, 300)); end if;
end $$;

create function pg_temp.try_all(most int) returns void language plpgsql as $$
declare f record; list text;
begin
    for f in select * from functions where not 'internal'::regtype = any(arguments) order by proname, arguments::text loop
        for list in select pg_temp.calls(f.arguments, most) loop
            perform pg_temp.try(format('select quad.%I(%s)', f.proname, list));
            if f.prokind = 'a' then
                perform pg_temp.try(format('select quad.%I(%s) over (order by n rows between 1 preceding and current row) from generate_series(1, 3) n', f.proname, list));
            elsif f.proretset then
                perform pg_temp.try(format('select * from quad.%I(%s) x limit 3', f.proname, list));
            end if;
        end loop;
        -- Arguments of other types.
        for i in 1..cardinality(f.arguments) loop
            for list in select wrong from unnest(array['row(1, 2)', '''{}''::point[]', 'now()', '''x''::xml', 'null::void', '1::bit(3)']) wrong loop
                perform pg_temp.try(format('select quad.%I(%s)', f.proname,
                    (select string_agg(case when n = i then list else format('null::%s', a) end, ', ' order by n) from unnest(f.arguments) with ordinality x(a, n))));
            end loop;
        end loop;
    end loop;
end $$;

set local statement_timeout = 0;
set local work_mem = '4MB';
select pg_temp.try_all(120);
select is((select string_agg(format('%s %s: %s', state, message, call), E'\n') from (select distinct on (message, split_part(call, '(', 1)) * from failures limit 20) x), null, 'no internal error by a superuser');
select cmp_ok((select calls from tally), '>', 5000::bigint, (select format('%s calls, %s with a result', calls, results) from tally));
set local role quad_probe;
select pg_temp.try_all(40);
reset role;
select is((select string_agg(format('%s %s: %s', state, message, call), E'\n') from (select distinct on (message, split_part(call, '(', 1)) * from failures limit 20) x), null, 'nor by somebody without rights');

-- What only PostgreSQL may call cannot be called.
select is((select string_agg(proname, ' ') from functions f where 'internal'::regtype = any(arguments) and prokind = 'f'
    and not has_function_privilege('quad_probe', oid, 'execute')), null, 'functions of internal values are there');
select throws_ok('select quad.term_sortsupport(null::internal)', '42846', null, 'but SQL has no such values');
select is((select count(*) from quad.verify('quad_stores.probe')), 0::bigint, 'and the store is as it was');
select * from finish();
rollback;
