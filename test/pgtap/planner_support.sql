-- What the planner makes of comparisons of terms (quad.term_eq_support).
begin;
select plan(16);
\ir lib/plan_of.sql
select quad.create_store('support');
select quad.load_text('<urn:a> <urn:p> "one", "two", 3 .', 'turtle', store => 'support');
create function pg_temp.ids(condition text) returns bigint language plpgsql as $$
declare n bigint;
begin execute 'select count(*) from quad_stores.support q where ' || condition into n; return n; end $$;

-- Calls without arguments, on either side, wherever an expression may stand.
select ok(not quad.term_eq('1'::quad.term, quad.fn_struuid()), 'a call without arguments on the right');
select ok(not quad.term_eq(quad.fn_uuid(), '1'::quad.term), 'on the left');
select ok(not quad.term_eq(quad.fn_uuid(), quad.fn_struuid()), 'on both sides');
select is(pg_temp.ids('quad.decode(q.o) operator(quad.=) quad.fn_struuid()'), 0::bigint, 'beside a decoded column');
select is(pg_temp.ids('quad.fn_rand() operator(quad.=) quad.decode(q.o)'), 0::bigint, 'the other way round');
select is((select count(*) from (select max(o) as m from quad_stores.support having quad.decode(max(o)) operator(quad.=) quad.fn_uuid()) x), 0::bigint,
    'beside an aggregate');
select is((select quad.term_eq(quad.agg_max(quad.decode(o)), quad.fn_now()) from quad_stores.support), false, 'beside an aggregate of terms');
select is((select count(*) from quad_stores.support q, (select quad.fn_uuid() as t offset 0) x where quad.decode(q.o) operator(quad.=) x.t), 0::bigint,
    'a term of a subquery');
select is((select array_agg(quad.term_eq(quad.decode(o), quad.fn_bnode()) order by o) from quad_stores.support), array[false, false, false], 'in a target list');

-- The plan: ids are compared where a term is the same for all rows, terms elsewhere.
select ok(pg_temp.plan_of($$select 1 from quad_stores.support q where quad.decode(q.o) operator(quad.=) '"one"'$$) like '%id_of%', 'a constant becomes its id');
select ok(pg_temp.plan_of($$select 1 from quad_stores.support q where quad.decode(q.o) operator(quad.=) quad.fn_uuid()$$) not like '%id_of%',
    'a volatile term does not');
select is(pg_temp.ids($$quad.decode(q.o) operator(quad.=) '"one"'$$), 1::bigint, 'a constant that is there');
select is(pg_temp.ids($$quad.decode(q.o) operator(quad.=) '"three"'$$), 0::bigint, 'a constant that is not');

-- An id that changes from call to call is asked for once, and so is one that gives several rows.
create temp sequence asked;
create function pg_temp.next_id() returns bigint language sql volatile as $$select quad.find('"one"') from nextval('asked')$$;
select ok(quad.term_eq(quad.decode(pg_temp.next_id()), '"one"'), 'a volatile id');
select is((select last_value from asked), 1::bigint, 'is asked for once');
select is((select count(*) from (select quad.term_eq(quad.decode(unnest(array[quad.find('"one"'), quad.find('"two"')])), '"one"') as same) x where same), 1::bigint,
    'ids of a set');

select * from finish();
rollback;
