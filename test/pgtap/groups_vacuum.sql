-- Quad Groups: after a vacuum leaves are counted without reading them.
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, i % 7, i % 100, 0 from generate_series(1, 100000) i;
vacuum q;
begin;
select plan(11);
create function pg_temp.skipped(query text) returns bigint language plpgsql as $f$
declare found json;
begin
    execute 'explain (analyze, costs off, timing off, format json) ' || query into found;
    return (found -> 0 -> 'Plan' ->> 'Leaves Skipped')::bigint - 10 * (found -> 0 -> 'Plan' ->> 'Leaves')::bigint;
end $f$;
select ok(pg_temp.skipped('select count(*) from q') > 20, 'a count skips leaves');
select ok(pg_temp.skipped('select count(*) from q where g = 0') > 20, 'a count of the default graph skips leaves');
select ok(pg_temp.skipped('select count(*) from q where g <> 0') > 20, 'a count of the other graphs skips leaves');
select results_eq('select count(*) from q where g = 0', 'values (100000::bigint)', 'exactly');
select ok(pg_temp.skipped('select distinct g from q where g <> 0') > 20, 'a list of named graphs skips leaves');
select results_eq('select g, count(*) from q group by g', 'values (0::bigint, 100000::bigint)', 'quads by graph');
select results_eq('select count(*) from q where g <> 0', 'values (0::bigint)', 'exactly, the others');
delete from q where s between 500 and 600;
insert into q values (7, 7, 7, 7);
select results_eq('select count(*) from q', 'values (99900::bigint)', 'changed leaves are read');
select results_eq('select count(*) from q where g = 0', 'values (99899::bigint)', 'changed leaves are read for a graph');
select results_eq('select p, count(*) from q group by p order by 1', 'select p + 0, count(*) from q group by 1 order by 1', 'and for groups');
select is_empty($$select * from quad.verify('q')$$, 'verified');
select * from finish();
rollback;
drop table q;
