-- Costs of plans are in PostgreSQL's unit, a page read in sequence, so that JIT does not start for plans of milliseconds.
begin;
select plan(9);
create function pg_temp.prefixed(request text) returns text language sql as $$
    select 'PREFIX : <http://e/> ' || request $$;
select quad.update(pg_temp.prefixed('INSERT DATA {' || string_agg(format(
    ':i%s :cat "category %s of things" ; :kind :k%s ; :name "name %s" .', n, n % 10, n % 50, n), ' ') || '}')) from generate_series(1, 6000) n;
-- Before ANALYZE, the default graph is not taken for one of two hundred.
create function pg_temp.rows_of(query text) returns numeric language plpgsql as $$
declare plan json;
begin
    execute 'EXPLAIN (FORMAT JSON) ' || query into plan;
    return plan->0->'Plan'->>'Plan Rows';
end $$;
select is(pg_temp.rows_of('select * from quad_stores.main where p = quad.find(''<http://e/cat>'') and g = 0'), 6000::numeric, 'quads of the default graph, before ANALYZE');
analyze quad_stores.main;
select is(pg_temp.rows_of('select * from quad_stores.main where p = quad.find(''<http://e/cat>'') and g = 0'), 6000::numeric, 'and after it');
-- The total cost of the plan of a query.
create function pg_temp.cost(query text) returns numeric language plpgsql as $$
declare line text;
begin
    execute 'EXPLAIN ' || quad.sparql_to_sql(pg_temp.prefixed(query)) into line;
    return (regexp_match(line, 'cost=[0-9.]+[.][.]([0-9.]+)'))[1];
end $$;

-- The join costs what its cheapest order costs, whatever pair of patterns the planner looks at first. 600 rows meet
-- 6000 by a key of ten.
select cmp_ok(pg_temp.cost('SELECT (COUNT(*) AS ?n) { ?a :cat ?c . ?b :cat ?c . ?a :kind :k7 }'), '<', 1000::numeric, 'a selective pattern makes a join cheap');
-- Decoding and functions of literals are some hundred nanoseconds, a tenth of a page.
select cmp_ok(pg_temp.cost('SELECT (SUM(STRLEN(?x)) AS ?n) { ?a :name ?x }'), '<', 6000 * 0.2, 'a function of a literal');
select cmp_ok(pg_temp.cost('SELECT (SUM(STRLEN(?x)) AS ?n) { ?a :name ?x }'), '>', 6000 * 0.05, 'is not free');

-- A subquery that is joined with several patterns: each of its rows meets those with its value, not a 200th of all.
select cmp_ok(pg_temp.rows_of('select * from (select s from quad_stores.main where g = 0 group by s) a join quad_stores.main b on b.s = a.s and b.p = quad.find(''<http://e/cat>'')
                                   and b.g = 0 join quad_stores.main c on c.s = b.s and c.p = quad.find(''<http://e/kind>'') and c.g = 0'), '<', 50000::numeric, 'rows of a subquery with patterns');

create function pg_temp.jit(query text, above float8) returns boolean language plpgsql as $$
begin
    perform set_config('jit_above_cost', above::text, true), set_config('jit', 'on', true);
    return exists (select from quad.explain(pg_temp.prefixed(query), "analyze" => true) line where line ~ 'JIT');
end $$;
select set_config('quad.template_cache_size', '0', true);
create temp table plans as select query, pg_temp.cost(query)::float8 as cost
    from (values ('SELECT ?k (SUM(STRLEN(?x)) AS ?n) { ?a :name ?x ; :kind ?k } GROUP BY ?k')) as queries(query);
select is(pg_temp.jit(query, cost / 2), false, 'what JIT costs, SPARQL statements do not win back soon') from plans;
select case when pg_jit_available() then is(pg_temp.jit(query, cost / 50), true, 'but in the end they may') else skip('no JIT here', 1) end from plans;
select case when pg_jit_available() then is(current_setting('jit_above_cost'), set_config('jit_above_cost', (cost / 50)::text, true), 'the setting is as it was')
    else skip('no JIT here', 1) end from plans;
select * from finish();
rollback;
