-- SPARQL aggregates over quad.term.
begin;
select plan(69);
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

-- By ids.
create temp table ids as select g, n, t, quad.encode(t) as id from rows where g <> 'blank';
select is(quad.agg_sum(id order by n), quad.agg_sum(t order by n), 'sum by ids: ' || g) from ids group by g;
select is(quad.agg_avg(id order by n), quad.agg_avg(t order by n), 'average by ids: ' || g) from ids group by g;
select is(quad.decode(quad.agg_min(id)), quad.agg_min(t), 'least by ids: ' || g) from ids group by g;
select is(quad.decode(quad.agg_max(id)), quad.agg_max(t), 'greatest by ids: ' || g) from ids group by g;
select is(quad.decode(quad.agg_avg_float(quad.cast_float(id) order by n)), quad.agg_avg(quad.cast_float(t) order by n), 'average of floats: ' || g)
    from ids group by g;
insert into ids select 'more', i, v.t, quad.encode(v.t) from (values (1, '"1.50"^^<urn:usd>'::quad.term), (2, '"0150"'), (3, '" 7 "'), (4, 'true'), (5, '"x"'),
    (6, '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'), (7, '"1e3"^^<http://www.w3.org/2001/XMLSchema#float>'), (8, '"NaN"^^<http://www.w3.org/2001/XMLSchema#float>')) v(i, t);
select is((select count(*) from ids, generate_series(1, 2) where quad.decode(quad.cast_float(id)) is distinct from quad.cast_float(t)), 0::bigint, 'casts of ids');
select is((select count(*) from ids, generate_series(1, 2) where quad.decode(quad.cast_float_of_str(id)) is distinct from quad.cast_float(quad.fn_str(t))),
    0::bigint, 'casts of texts of ids');
select is((select count(*) from ids a, ids b, lateral (values
        (quad.add_float(quad.cast_float(a.id), b.id), quad.add(quad.cast_float(a.t), b.t)), (quad.sub_float(b.id, quad.cast_float(a.id)), quad.sub(b.t, quad.cast_float(a.t))),
        (quad.mul_float(quad.cast_float(a.id), b.id), quad.mul(quad.cast_float(a.t), b.t)), (quad.div_float(quad.cast_float(a.id), b.id), quad.div(quad.cast_float(a.t), b.t))) v(x, y)
    where b.g in ('ints', 'decimals') and quad.decode(v.x) is distinct from v.y), 0::bigint, 'arithmetic with floats');

select * from finish();
rollback;
