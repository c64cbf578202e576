-- SPARQL aggregates over quad.term.
begin;
select plan(31);
set local search_path = public, quad;
create temp table rows (g text, n serial, t quad.term);
insert into rows (g, t) values
    ('ints', '1'), ('ints', '2'), ('ints', '3'),
    ('decimals', '1.0'), ('decimals', '2.2'), ('decimals', '3.5'),
    ('doubles', '1.0E2'), ('doubles', '2.0E3'), ('doubles', '3.0E4'),
    ('mixed', '2E-1'), ('mixed', '2.2'),
    ('blank', '1'), ('blank', '_:b2'), ('blank', '3'),
    ('null', '1'), ('null', null), ('null', '3'),
    ('texts', '"b"'), ('texts', '"a"@en'), ('texts', '<urn:c>'), ('texts', '4'),
    ('nulls', null);
create function pg_temp.agg(func text, grp text) returns quad.term language plpgsql as $$
declare result quad.term;
begin
    execute format('select quad.%I(t order by n) from rows where g = %L', func, grp) into result;
    return result;
end $$;
select is(pg_temp.agg(f, g), expected, format('%s of %s', f, g)) from (values
    ('agg_sum', 'ints', '6'::quad.term), ('agg_sum', 'decimals', '6.7'), ('agg_sum', 'doubles', '3.21E4'), ('agg_sum', 'mixed', '2.4000000000000004E0'),
    ('agg_sum', 'blank', null), ('agg_sum', 'null', null), ('agg_sum', 'texts', null), ('agg_sum', 'none', '0'), ('agg_sum', 'nulls', null),
    ('agg_avg', 'ints', '"2"^^<http://www.w3.org/2001/XMLSchema#decimal>'), ('agg_avg', 'decimals', '2.233333333333333333'), ('agg_avg', 'blank', null), ('agg_avg', 'none', '0'),
    ('agg_min', 'ints', '1'), ('agg_min', 'mixed', '2E-1'), ('agg_min', 'blank', '_:b2'), ('agg_min', 'null', null), ('agg_min', 'none', null), ('agg_min', 'texts', '<urn:c>'),
    ('agg_max', 'mixed', '2.2'), ('agg_max', 'blank', '3'), ('agg_max', 'null', null), ('agg_max', 'texts', '"b"'),
    ('agg_sample', 'ints', '1'), ('agg_sample', 'null', '1'), ('agg_sample', 'none', null)) v(f, g, expected);
select is((select agg_group_concat(t, ', ' order by n) from rows where g = 'texts'), '"b, a, urn:c, 4"', 'GROUP_CONCAT');
select is((select agg_group_concat(t, '' order by n) from rows where g = 'blank'), null, 'GROUP_CONCAT of a blank node');
select is((select agg_group_concat(t, '') from rows where g = 'none'), '""', 'GROUP_CONCAT of nothing');
select is((select agg_sum(distinct t) from (table rows union all table rows) x where g = 'ints'), '6', 'distinct');
select is((select array_agg(s order by n) from (select n, agg_sum(t) over (order by n) s from rows where g = 'ints') x),
    array['1', '3', '6']::quad.term[], 'running sum');

select * from finish();
rollback;
