-- SPARQL 1.1 operators and functions (sections 17.3 to 17.5) as SQL functions. NULL is the error.
begin;
select plan(245);
set local search_path = public, quad;
create function pg_temp.term(text) returns quad.term language sql as $$
    select case when $1 ~ '^[^"<_].*\^\^' then
        quad.term_in(format('"%s"^^<http://www.w3.org/2001/XMLSchema#%s>', split_part($1, '^^', 1), split_part($1, '^^', 2))::cstring)
    else quad.term_in($1::cstring) end
$$;
-- Calls a function with terms and compares the term it returns.
create function pg_temp.gives(func text, args text[], expected text) returns text language plpgsql as $$
declare
    result quad.term;
    list text;
begin
    select string_agg(coalesce(quote_literal(term_out(pg_temp.term(a))::text), 'null') || '::quad.term', ', ' order by n)
        into list from unnest(args) with ordinality x(a, n);
    execute format('select quad.%I(%s)', func, list) into result;
    return is(result, pg_temp.term(expected), format('%s(%s) = %s', func, array_to_string(args, ', ', 'null'), expected));
end $$;
-- The same for a function that returns a boolean.
create function pg_temp.holds(func text, args text[], expected boolean) returns text language plpgsql as $$
declare
    result boolean;
    list text;
begin
    select string_agg(coalesce(quote_literal(term_out(pg_temp.term(a))::text), 'null') || '::quad.term', ', ' order by n)
        into list from unnest(args) with ordinality x(a, n);
    execute format('select quad.%I(%s)', func, list) into result;
    return is(result, expected, format('%s(%s) = %s', func, array_to_string(args, ', ', 'null'), expected));
end $$;

-- Comparison: SPARQL's three-valued operators
select pg_temp.holds(f, array[a, b], expected) from (values
    ('eq', '1', '1.0', true), ('eq', '1', '1e0', true), ('eq', '1', '"1"', false), ('eq', '"a"', '"a"@en', false),
    ('eq', 'NaN^^double', 'NaN^^double', false), ('eq', '<urn:a>', '<urn:a>', true), ('eq', '<urn:a>', '"urn:a"', false),
    ('eq', '"a"^^<urn:t>', '"a"^^<urn:t>', true), ('eq', '"a"^^<urn:t>', '"b"^^<urn:t>', null), ('eq', '"a"^^<urn:t>', '"a"', null),
    ('eq', 'x^^integer', '1', null), ('eq', '1', null, null),
    ('eq', '2020-01-01T00:00:00Z^^dateTime', '2020-01-01T01:00:00+01:00^^dateTime', true),
    ('eq', '2020-01-01T00:00:00Z^^dateTime', '2020-01-01T00:00:00^^dateTime', null),
    ('eq', '2020-01-01T00:00:00Z^^dateTime', '2020-01-03T00:00:00^^dateTime', false),
    ('ne', '1', '2', true), ('ne', '1', '1.0', false), ('ne', '"a"^^<urn:t>', '"b"^^<urn:t>', null), ('ne', '"a"@en', '"a"@de', true),
    ('lt', '1', '1.5', true), ('lt', '"a"', '"b"', true), ('lt', 'false', 'true', true), ('lt', '"a"@en', '"b"@en', true), ('lt', '"a"@en', '"b"@de', null),
    ('lt', '1', '"2"', null), ('lt', '<urn:a>', '<urn:b>', null), ('lt', '_:a', '_:b', null), ('lt', '1', 'NaN^^double', false),
    ('lt', '2020-01-01^^date', '2020-01-02^^date', true), ('lt', null, '1', null),
    ('le', '1', '1.0', true), ('le', '2', '1', false), ('le', '1', 'NaN^^double', false),
    ('gt', '2', '1e0', true), ('gt', '"b"', '"a"', true), ('gt', '1', 'true', null),
    ('ge', '1', '1', true), ('ge', '1', '2', false)) v(f, a, b, expected);

-- Effective boolean value
select pg_temp.holds('ebv', array[a], expected) from (values
    ('true', true), ('false', false), ('"x"^^<http://www.w3.org/2001/XMLSchema#boolean>', false), ('""', false), ('"a"', true),
    ('""@en', false), ('0', false), ('0.0', false), ('NaN^^double', false), ('-1', true), ('x^^integer', false), ('<urn:a>', null),
    ('_:a', null), ('"a"^^<urn:t>', null), ('2020-01-01^^date', null), (null, null)) v(a, expected);
select is(from_bool(true), 'true', 'from_bool');
select is(from_int(-7), '-7', 'from_int');

-- Arithmetic
select pg_temp.gives(f, array[a, b], expected) from (values
    ('add', '1', '2', '3'), ('add', '1', '0.5', '1.5'), ('add', '0.1', '0.2', '0.3'), ('add', '1', '1e0', '2.0E0'),
    ('add', '1^^float', '0.5', '1.5E0^^float'), ('add', '1^^byte', '1^^long', '2'), ('add', '1', '"2"', null), ('add', '1', null, null),
    ('add', '170141183460469231731687303715884105727', '1', null),
    ('add', '2020-01-31^^date', 'P1M^^yearMonthDuration', '2020-02-29^^date'),
    ('sub', '1', '2', '-1'), ('sub', '2020-01-02T00:00:00Z^^dateTime', '2020-01-01T00:00:00Z^^dateTime', 'P1D^^dayTimeDuration'),
    ('mul', '3', '1.50', '4.5'), ('mul', '0.0000000001', '0.0000000001', '0^^decimal'),
    ('div', '1', '2', '0.5'), ('div', '1', '3', '0.333333333333333333'), ('div', '4', '2', '2^^decimal'), ('div', '1', '0', null),
    ('div', '1', '0e0', 'INF^^double'), ('div', '<urn:a>', '1', null)) v(f, a, b, expected);
select pg_temp.gives(f, array[a], expected) from (values
    ('neg', '1', '-1'), ('neg', '"a"', null), ('pos', '01', '1'), ('fn_abs', '-1.5', '1.5'), ('fn_abs', '"a"', null),
    ('fn_round', '2.5', '3^^decimal'), ('fn_round', '-2.5', '-2^^decimal'), ('fn_ceil', '1.1', '2^^decimal'),
    ('fn_floor', '-1.1', '-2^^decimal'), ('fn_floor', '7', '7'), ('fn_ceil', null, null)) v(f, a, expected);

-- Terms
select pg_temp.holds(f, array[a], expected) from (values
    ('fn_isiri', '<urn:a>', true), ('fn_isiri', '"a"', false), ('fn_isiri', null, null),
    ('fn_isblank', '_:a', true), ('fn_isblank', '_:b1', true), ('fn_isblank', '1', false),
    ('fn_isliteral', '"a"@en', true), ('fn_isliteral', '<urn:a>', false),
    ('fn_isnumeric', '1', true), ('fn_isnumeric', '1^^byte', true), ('fn_isnumeric', '1000^^byte', false),
    ('fn_isnumeric', '"1"', false), ('fn_isnumeric', '<urn:a>', false)) v(f, a, expected);
select pg_temp.gives(f, array[a], expected) from (values
    ('fn_str', '<urn:a>', '"urn:a"'), ('fn_str', '01', '"01"'), ('fn_str', '_:a', null), ('fn_str', '"a"@en', '"a"'),
    ('fn_lang', '"a"@en-US', '"en-us"'), ('fn_lang', '"a"', '""'), ('fn_lang', '<urn:a>', null),
    ('fn_datatype', '"a"', '<http://www.w3.org/2001/XMLSchema#string>'),
    ('fn_datatype', '"a"@en', '<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>'),
    ('fn_datatype', '"a"^^<urn:t>', '<urn:t>'), ('fn_datatype', '_:a', null)) v(f, a, expected);
select is(fn_iri(a, base), expected, format('IRI(%s) on <%s>', a, base)) from (values
    ('<urn:a>'::quad.term, 'http://a/', '<urn:a>'::quad.term), ('"b"', 'http://a/x', '<http://a/b>'), ('"b"', '', null),
    ('"http://a/b"', '', '<http://a/b>'), ('"a b"', 'http://a/', null), ('1', 'http://a/', null)) v(a, base, expected);
select pg_temp.gives(f, array[a, b], expected) from (values
    ('fn_strdt', '"1"', '<http://www.w3.org/2001/XMLSchema#integer>', '1'), ('fn_strdt', '"1"@en', '<urn:t>', null), ('fn_strdt', '"1"', '"t"', null),
    ('fn_strlang', '"a"', '"EN"', '"a"@en'), ('fn_strlang', '"a"', '"no tag"', null), ('fn_strlang', '1', '"en"', null)) v(f, a, b, expected);
select matches(fn_uuid()::text, '^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', 'UUID');
select ok(fn_isiri(fn_uuid()), 'UUID is an IRI');
select matches(fn_struuid()::text, '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', 'STRUUID');
select is((select count(distinct u) from (select fn_uuid() u from generate_series(1, 100)) x), 100::bigint, 'UUIDs differ');
select is((select count(distinct b) from (select fn_bnode() b from generate_series(1, 100)) x), 100::bigint, 'fresh blank nodes differ');
select ok(fn_isblank(fn_bnode()), 'BNODE() is a blank node');
select is((select array_agg(distinct n order by n) from (
    select count(distinct b) n from (select i, fn_bnode(label, i) b from generate_series(1, 3) i, (values ('"a"'::quad.term), ('"a"'), ('"b"')) v(label)) x
    group by i) y), array[2::bigint], 'BNODE(label): one blank node for each label in a row');
select is((select count(distinct fn_bnode('"a"', i)) from generate_series(1, 10) i), 10::bigint, 'BNODE(label): another in each row');
select is(fn_bnode('1', 1), null, 'BNODE of a number');
select is(id_kind(id), kind, 'id_kind of ' || id) from (values
    (0, 0::smallint), (5, 0::smallint), ((1::bigint << 59) + 7, 1::smallint), (6::bigint << 59, 6::smallint), (12::bigint << 59, 12::smallint)) v(id, kind);
select throws_ok('select id_kind(-1)', '22003', null, 'ids are not negative');

-- Strings
select pg_temp.gives(f, args, expected) from (values
    ('fn_strlen', array['"食べ物"@ja'], '3'), ('fn_strlen', array['1'], null),
    ('fn_substr', array['"foobar"', '4'], '"bar"'), ('fn_substr', array['"foobar"@en', '4', '1'], '"b"@en'),
    ('fn_substr', array['"foobar"', '"1"'], null), ('fn_substr', array['"foobar"', null], null),
    ('fn_ucase', array['"été"@fr'], '"ÉTÉ"@fr'), ('fn_lcase', array['"BAR"'], '"bar"'), ('fn_lcase', array['<urn:A>'], null),
    ('fn_strbefore', array['"abc"@en', '"b"'], '"a"@en'), ('fn_strbefore', array['"abc"@en', '"z"'], '""'), ('fn_strbefore', array['"abc"', '"b"@en'], null),
    ('fn_strafter', array['"abc"', '"b"'], '"c"'), ('fn_strafter', array['"abc"@en', '""'], '"abc"@en'),
    ('fn_encode_for_uri', array['"a é/~"@fr'], '"a%20%C3%A9%2F~"'), ('fn_encode_for_uri', array['_:a'], null),
    ('fn_concat', array['"a"', '"b"', '"c"'], '"abc"'), ('fn_concat', array['"a"@en', '"b"@en'], '"ab"@en'),
    ('fn_concat', array['"a"@en', '"b"'], '"ab"'), ('fn_concat', array['"a"', '1'], null), ('fn_concat', array['"a"', null], null),
    ('fn_replace', array['"abcd"@en', '"b"', '"Z"'], '"aZcd"@en'), ('fn_replace', array['"abcd"', '"B"', '"Z"', '"i"'], '"aZcd"'),
    ('fn_replace', array['"abcd"', '"(ab)|(a)"', '"[1=$1][2=$2]"'], '"[1=ab][2=]cd"'), ('fn_replace', array['"abcd"', '"x*"', '"-"'], null),
    ('fn_replace', array['"abcd"', '"("', '"-"'], null)) v(f, args, expected);
select is(fn_concat(), '""', 'CONCAT()');
select pg_temp.holds(f, args, expected) from (values
    ('fn_strstarts', array['"foobar"@en', '"foo"'], true), ('fn_strstarts', array['"foobar"', '"foo"@en'], null),
    ('fn_strends', array['"foobar"', '"bar"'], true), ('fn_strends', array['"foobar"', '1'], null),
    ('fn_contains', array['"foobar"', '"ob"'], true), ('fn_contains', array['"foobar"', '"bo"'], false),
    ('fn_langmatches', array['"en-GB"', '"en"'], true), ('fn_langmatches', array['"en"', '"de"'], false),
    ('fn_langmatches', array['""', '"*"'], false), ('fn_langmatches', array['"en"', null], null),
    ('fn_regex', array['"Alice"', '"^ali"'], false), ('fn_regex', array['"Alice"@en', '"^ali"', '"i"'], true),
    ('fn_regex', array['"a.b"', '".b"', '"q"'], true), ('fn_regex', array['"a b"', '"a\\sb"'], true), ('fn_regex', array['"a"', '"["'], null),
    ('fn_regex', array['"a"', '"a"', '"z"'], null), ('fn_regex', array['1', '"1"'], null), ('fn_regex', array['"a"', '"a"@en'], null)) v(f, args, expected);
select throws_ok($$select fn_regex('"aa"', '"(a)\\1"')$$, '0A000', 'a back reference in a regular expression is not supported', 'back references');
select throws_ok($$select fn_regex('"a"', '"\\p{IsBasicLatin}"')$$, '0A000', null, 'Unicode blocks');
select ok((select bool_and(fn_regex(t, ('^a' || i % 100)::text::quad.term) = (i % 100 = 1)) from generate_series(0, 999) i, (values ('"a1"'::quad.term)) v(t)
    where i % 100 in (0, 1, 2)), 'many patterns');

-- Dates and times
select pg_temp.gives(f, array[a], expected) from (values
    ('fn_year', '2011-01-10T14:45:13.815-05:00^^dateTime', '2011'), ('fn_month', '2011-01-10T14:45:13.815-05:00^^dateTime', '1'),
    ('fn_day', '2011-01-10T14:45:13.815-05:00^^dateTime', '10'), ('fn_hours', '2011-01-10T14:45:13.815-05:00^^dateTime', '14'),
    ('fn_minutes', '2011-01-10T14:45:13.815-05:00^^dateTime', '45'), ('fn_seconds', '2011-01-10T14:45:13.815-05:00^^dateTime', '13.815'),
    ('fn_timezone', '2011-01-10T14:45:13.815-05:00^^dateTime', '-PT5H^^dayTimeDuration'), ('fn_tz', '2011-01-10T14:45:13.815-05:00^^dateTime', '"-05:00"'),
    ('fn_timezone', '2011-01-10T14:45:13^^dateTime', null), ('fn_tz', '2011-01-10T14:45:13^^dateTime', '""'),
    ('fn_year', '2011-01-10^^date', '2011'), ('fn_hours', '10:00:00^^time', '10'), ('fn_year', '"2011"', null), ('fn_day', 'x^^dateTime', null))
    v(f, a, expected);
select is(fn_now()::timestamptz, now(), 'NOW is the start of the transaction');
select is(fn_datatype(fn_now()), '<http://www.w3.org/2001/XMLSchema#dateTime>', 'NOW is a dateTime');
select ok((select bool_and(r::double precision >= 0 and r::double precision < 1) and count(distinct r) > 90 from (select fn_rand() r from generate_series(1, 100)) x),
    'RAND');

-- Hashes
select pg_temp.gives(f, array[a], expected) from (values
    ('fn_md5', '"abc"', '"900150983cd24fb0d6963f7d28e17f72"'), ('fn_sha1', '"abc"', '"a9993e364706816aba3e25717850c26c9cd0d89d"'),
    ('fn_sha256', '"abc"', '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"'),
    ('fn_sha384', '"abc"', '"cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"'),
    ('fn_sha512', '"abc"', '"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"'),
    ('fn_md5', '1', null), ('fn_sha1', '"abc"@en', null)) v(f, a, expected);

-- Casts of section 17.5
select pg_temp.gives('cast_' || target, array[a], expected) from (values
    ('string', '<urn:a>', '"urn:a"'), ('string', '1.0', '"1"'), ('string', '1E0', '"1"'), ('string', '0^^boolean', '"false"'), ('string', '_:a', null),
    ('boolean', '"1"', 'true'), ('boolean', '"yes"', null), ('boolean', '0.0', 'false'),
    ('integer', '" 13 "', '13'), ('integer', '"13.0"', null), ('integer', '-7.9', '-7'), ('integer', 'INF^^double', null), ('integer', 'true', '1'),
    ('decimal', '"+33.3300"', '33.33'), ('decimal', '"1E0"', null), ('decimal', '1.25^^float', '1.25'),
    ('double', '"-10.2E3"', '-1.02E4'), ('double', '1', '1.0E0'), ('double', '"x"', null), ('float', '0.1', '1.0E-1^^float'),
    ('datetime', '"2002-10-10T17:00:00Z"', '2002-10-10T17:00:00Z^^dateTime'), ('datetime', '"2002"', null),
    ('date', '2002-10-10T17:00:00Z^^dateTime', '2002-10-10Z^^date'), ('time', '2002-10-10T17:00:00Z^^dateTime', '17:00:00Z^^time'),
    ('int', '"42"', '42^^int'), ('byte', '300', null), ('unsignedlong', '"18446744073709551615"', '18446744073709551615^^unsignedLong'),
    ('duration', '"P1Y"', 'P1Y^^duration'), ('yearmonthduration', 'P1Y3D^^duration', 'P1Y^^yearMonthDuration'),
    ('daytimeduration', 'P1Y3D^^duration', 'P3D^^dayTimeDuration'), ('gyear', '2002-10-10^^date', '2002^^gYear'),
    ('integer', '"1"@en', null), ('integer', null, null)) v(target, a, expected);

-- Declarations
select is((select array_agg(distinct proname::text order by proname::text) from pg_proc p join pg_namespace n on n.oid = pronamespace
    join pg_language l on l.oid = prolang where nspname = 'quad' and lanname not in ('c', 'internal')
    and (quad_term.oid = any(proargtypes) or quad_term.oid = prorettype) and prokind = 'f'), null, 'all functions on terms are in C')
    from (select 'quad.term'::regtype::oid) quad_term(oid);
select is((select array_agg(distinct proname::text order by proname::text) from pg_proc p join pg_namespace n on n.oid = pronamespace
    where nspname = 'quad' and proname ~ '^(fn_|cast_|eq$|ne$|lt$|le$|gt$|ge$|add$|sub$|mul$|div$|neg$|pos$|ebv$)' and (provolatile <> 'i' or proparallel <> 's' or not proisstrict and pronargs > 0)
    and 'quad.term'::regtype = any (proargtypes::oid[] || prorettype)), array['fn_bnode', 'fn_now', 'fn_rand', 'fn_struuid', 'fn_uuid'],
    'all but these are immutable, strict and parallel safe');

select * from finish();
rollback;
