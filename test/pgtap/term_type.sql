-- The type quad.term: text and binary form, operators, operator classes, casts.
begin;
select plan(95);
set local search_path = public, quad;
set local timezone = 'Europe/Paris';
create function pg_temp.term(text) returns quad.term language sql as 'select quad.term_in($1::cstring)';

-- Text form
select is(format('%s', pg_temp.term(input)), output, 'text form of ' || input) from (values
    ('<http://example.org/a>', '<http://example.org/a>'),
    (' <urn:x:\u00E9> ', '<urn:x:é>'),
    ('_:b17', '_:b17'),
    ('_:x', '_:x'),
    ('"chat"', '"chat"'),
    ('"chat"@FR-be', '"chat"@fr-be'),
    ('"a\tb\n\u0001\""', '"a\tb\n\u0001\""'),
    ('"x"^^<http://www.w3.org/2001/XMLSchema#string>', '"x"'),
    ('"01"^^<http://www.w3.org/2001/XMLSchema#integer>', '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ('"x"^^<urn:t>', '"x"^^<urn:t>'),
    ('true', '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
    ('-1', '"-1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ('1.50', '"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
    ('1e0', '"1e0"^^<http://www.w3.org/2001/XMLSchema#double>')
) v(input, output);
select throws_ok(format('select %L::quad.term', input), '22P02',
    format('invalid input syntax for type quad.term: "%s"', input), 'refused: ' || input) from (values
    (''), ('abc'), ('<a>'), ('<http://a b>'), ('"a'), ('"a\q"'), ('"a"@'), ('"a"^^xsd:int'), ('1.'), ('_:'), ('"a" "b"')
) v(input);
create function pg_temp.complaint(input text) returns text language plpgsql as $$
declare
    detail text;
    hint text;
begin
    execute format('select %L::quad.term', input);
    return 'accepted';
exception when invalid_text_representation then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    return detail || ' ' || hint;
end $$;
select is(pg_temp.complaint('"é\q"'), 'Character 3: invalid escape. Escapes are \t \b \n \r \f \" \'' \\ \uXXXX and \UXXXXXXXX.',
    'the position and what to write are told');

-- Binary form
select is(convert_from(term_send('"é"@fr'), 'UTF8'), '"é"@fr', 'the binary form is the text');
create table binary_out (t quad.term);
insert into binary_out values ('<urn:a>'), ('"a"@en'), (null), ('_:b3'), (repeat('x', 100000)::text::quad.term);
create table binary_in (t quad.term);
\set file `mktemp`
\setenv QUAD_FILE :file
\copy binary_out to program 'cat > "$QUAD_FILE"' (format binary)
\copy binary_in from program 'cat "$QUAD_FILE"' (format binary)
\! rm -f "$QUAD_FILE"
select set_eq('table binary_in', 'table binary_out', 'binary copy round trip');
select is((select max(length(t::text)) from binary_in), 100000, 'a long literal survives');

-- sameTerm and the order
select ok('1'::quad.term = '1', 'the same term');
select ok('1'::quad.term <> '01', 'one value, two terms');
select ok('"a"'::quad.term = '"a"^^<http://www.w3.org/2001/XMLSchema#string>', 'a simple literal is an xsd:string');
select ok('"a"@en'::quad.term = '"a"@EN', 'language tags are in lower case');
select ok('"a"'::quad.term < '"b"' and '"a"'::quad.term <= '"a"' and '"b"'::quad.term > '"a"' and '"b"'::quad.term >= '"b"',
    'comparison operators');
create temp table terms (n serial, t quad.term);
insert into terms (t) values
    (null), ('_:b2'), ('_:b10'), ('<urn:a>'), ('<urn:b>'), ('-1'), ('0.1'), ('01'), ('1'), ('1.0'), ('2e0'), ('10'),
    ('"2020-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
    ('"2020-01-01T00:00:00-01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
    ('false'), ('true'), ('"a"'), ('"a"@en'), ('"b"'), ('"a"^^<urn:t>');
select is((select array_agg(n order by t nulls first) from terms), (select array_agg(n order by n) from terms), 'the order of ORDER BY');
select is((select array_agg(n order by t desc nulls last) from terms), (select array_agg(n order by n desc) from terms), 'descending');
select is((select bool_and(sign(term_cmp(a.t, b.t)) = sign(a.n - b.n)) from terms a, terms b where a.t is not null and b.t is not null), true,
    'term_cmp agrees');
create index on terms (t);
set local enable_seqscan = off;
select is((select n from terms where t = '1.0'), 10, 'looked up in an index');
select is((select array_agg(n order by t) from terms where t >= '2e0' and t < 'true'), array[11, 12, 13, 14, 15], 'range of an index');
create index on terms using hash (t);
select is((select n from terms where t = '"a"@en'), 18, 'looked up in a hash index');
reset enable_seqscan;
set local enable_mergejoin = off;
set local enable_nestloop = off;
select is((select count(*) from terms a join terms b using (t)), 19::bigint, 'hash join');
set local enable_hashjoin = off;
reset enable_mergejoin;
select is((select count(*) from terms a join terms b using (t)), 19::bigint, 'merge join');
select is((select count(distinct t) from (table terms union all table terms) x), 19::bigint, 'distinct');
select ok((select bool_and((term_hash_extended(t, 0) & 4294967295) = (term_hash(t)::bigint & 4294967295)) from terms where t is not null),
    'the extended hash has the hash as its low half');
create table parts (t quad.term) partition by hash (t);
create table part0 partition of parts for values with (modulus 2, remainder 0);
create table part1 partition of parts for values with (modulus 2, remainder 1);
insert into parts select from_int(i) from generate_series(1, 100) i;
select is((select count(*) from parts where t = '42'), 1::bigint, 'hash partitions');

-- Casts to SQL types
select is(pg_temp.term(t)::text, expected, 'text of ' || t) from (values
    ('"a\nb"@en', E'a\nb'), ('<urn:x>', 'urn:x'), ('1.50', '1.50'), ('_:b7', '_:b7')) v(t, expected);
select is('"a"@en'::quad.term::varchar, 'a', 'varchar');
create temp table assigned (x text);
select lives_ok($$insert into assigned values ('"a"@en'::quad.term)$$, 'assignment to text');
select throws_ok($$select '"\u0000"'::quad.term::text$$, '22P05', null, 'U+0000 is no text');
select is('1.50'::quad.term::numeric, 1.5, 'numeric');
select is('12345678901234567890123'::quad.term::numeric, 12345678901234567890123, 'numeric of a long integer');
select is('1.5e3'::quad.term::numeric, 1500::numeric, 'numeric of a double');
select is('1.5e3'::quad.term::double precision, 1500::double precision, 'double precision');
select is('"INF"^^<http://www.w3.org/2001/XMLSchema#float>'::quad.term::double precision, 'Infinity'::double precision, 'infinity');
select is('42'::quad.term::bigint, 42::bigint, 'bigint');
select is('-2.5'::quad.term::bigint, -3::bigint, 'bigint rounds as numeric does');
select is('2.49e0'::quad.term::bigint, 2::bigint, 'bigint of a double');
select is('true'::quad.term::boolean, true, 'boolean');
select is('"0"^^<http://www.w3.org/2001/XMLSchema#boolean>'::quad.term::boolean, false, 'boolean written as a number');
select is(pg_temp.term('"' || t || '"^^<http://www.w3.org/2001/XMLSchema#dateTime>')::timestamptz, expected::timestamptz, 'timestamptz of ' || t) from (values
    ('2020-06-01T12:00:00Z', '2020-06-01 12:00:00+00'),
    ('2020-06-01T12:00:00.1234567-05:00', '2020-06-01 12:00:00.123457-05'),
    ('2020-06-01T12:00:00', '2020-06-01 12:00:00+02'),
    ('1900-01-01T24:00:00Z', '1900-01-02 00:00:00+00'),
    ('-0043-03-15T00:00:00Z', '0044-03-15 00:00:00+00 BC'),
    ('12020-01-01T00:00:00Z', '12020-01-01 00:00:00+00')) v(t, expected);
select is('"2020-02-29+14:00"^^<http://www.w3.org/2001/XMLSchema#date>'::quad.term::date, '2020-02-29'::date, 'date');
select is('"-0043-03-15"^^<http://www.w3.org/2001/XMLSchema#date>'::quad.term::date, '0044-03-15 BC'::date, 'date before our era');
select is('"2020-02-29T23:00:00-05:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>'::quad.term::date, '2020-02-29'::date, 'date of a dateTime');
select throws_ok(format('select %L::quad.term::%s', t, type), state, null, format('no %s: %s', type, t)) from (values
    ('"1"', 'numeric', '22018'), ('<urn:a>', 'bigint', '22018'), ('x', 'numeric', '22P02'), ('1', 'boolean', '22018'), ('1', 'date', '22018'),
    ('"a"', 'timestamptz', '22018'), ('1e30', 'bigint', '22003'), ('99999999999999999999', 'bigint', '22003'),
    ('"99999999-01-01"^^<http://www.w3.org/2001/XMLSchema#date>', 'date', '22003')) v(t, type, state);

-- Casts from SQL types
select is('<x>'::text::quad.term, '"<x>"', 'from text');
select is('x'::varchar::quad.term, '"x"', 'from varchar');
select is(1.50::quad.term, '1.5', 'from numeric');
select is(5::numeric::quad.term, '"5"^^<http://www.w3.org/2001/XMLSchema#decimal>', 'from a whole numeric');
select is(7::quad.term, '7', 'from integer');
select is(7::bigint::quad.term, '7', 'from bigint');
select is(true::quad.term, 'true', 'from boolean');
select is(0.1::double precision::quad.term, '1.0E-1', 'from double precision');
select is('-Infinity'::double precision::quad.term, '"-INF"^^<http://www.w3.org/2001/XMLSchema#double>', 'from infinity');
select is('2020-06-01 12:00:00.5+02'::timestamptz::quad.term, '"2020-06-01T10:00:00.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>', 'from timestamptz');
select is('2020-02-29'::date::quad.term, '"2020-02-29"^^<http://www.w3.org/2001/XMLSchema#date>', 'from date');
select is('0001-01-01 BC'::date::quad.term, '"0000-01-01"^^<http://www.w3.org/2001/XMLSchema#date>', 'from a date before our era');
select throws_ok($$select 'NaN'::numeric::quad.term$$, '22003', null, 'NaN is no decimal');
select throws_ok($$select 'infinity'::timestamptz::quad.term$$, '22008', null, 'infinity is no dateTime');
select throws_ok($$select 'infinity'::date::quad.term$$, '22008', null, 'infinity is no date');

select * from finish();
rollback;
