-- Bindings that reach subqueries which group or remove duplicates, VALUES that leave variables open, and equalities of
-- computed values between groups of patterns. Tested are the answers, and that nothing is computed whole.
begin;
select plan(43);
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':p%s :author :a%s , :a%s ; :about :t%s ; :year %s ; a :Paper . :a%s :name "name %s" ; a :Author ; :born "%s-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .',
    n, n % 700, n % 311, n % 40, 1980 + n % 37, n % 700, n % 50, 1940 + n % 60), E'\n'), format => 'turtle') from generate_series(1, 3000) n;

create function pg_temp.plan(query text) returns text language sql as
    $f$ select string_agg(x, E'\n') from quad.explain('PREFIX : <http://e/> ' || query, "analyze" => true) x $f$;
create function pg_temp.answer(query text) returns text language sql as
    $f$ select string_agg(x::text, E'\n' order by x::text) from quad.sparql('PREFIX : <http://e/> ' || query) x $f$;

-- The same answer is made in another way: a FILTER in the place of the constant, which nothing pushes down.
create temp table pushed (name text, fast text, plain text);
insert into pushed values
    ('groups', '{ :p7 :author ?a { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a } }',
        '{ ?x :author ?a { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a } FILTER(?x = :p7) }'),
    ('groups by two keys', '{ :p7 :author ?a ; :about ?t { SELECT ?a ?t (COUNT(*) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a ?t } }',
        '{ ?x :author ?a ; :about ?t { SELECT ?a ?t (COUNT(*) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a ?t } FILTER(?x = :p7) }'),
    ('groups with HAVING', '{ :p7 :author ?a { SELECT ?a (COUNT(DISTINCT ?t) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a HAVING(COUNT(*) > 8) } }',
        '{ ?x :author ?a { SELECT ?a (COUNT(DISTINCT ?t) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a HAVING(COUNT(*) > 8) } FILTER(?x = :p7) }'),
    ('distinct', '{ :p7 :author ?a { SELECT DISTINCT ?a ?t { ?p :author ?a ; :about ?t } } }',
        '{ ?x :author ?a { SELECT DISTINCT ?a ?t { ?p :author ?a ; :about ?t } } FILTER(?x = :p7) }'),
    ('optional groups', '{ :p7 :author ?a OPTIONAL { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a ; :about :t3 } GROUP BY ?a } }',
        '{ ?x :author ?a OPTIONAL { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a ; :about :t3 } GROUP BY ?a } FILTER(?x = :p7) }'),
    ('optional distinct', '{ :p7 :about ?t OPTIONAL { SELECT DISTINCT ?a ?t { ?p :author ?a ; :about ?t } } }',
        '{ ?x :about ?t OPTIONAL { SELECT DISTINCT ?a ?t { ?p :author ?a ; :about ?t } } FILTER(?x = :p7) }'),
    ('groups of a union', '{ :p7 :author ?a { SELECT ?a (COUNT(*) AS ?n) { { ?p :author ?a } UNION { ?a :name ?l } } GROUP BY ?a } }',
        '{ ?x :author ?a { SELECT ?a (COUNT(*) AS ?n) { { ?p :author ?a } UNION { ?a :name ?l } } GROUP BY ?a } FILTER(?x = :p7) }'),
    ('groups of which a key may be unbound', '{ :p7 :author ?a { SELECT ?a (COUNT(*) AS ?n) { ?p :year 1999 OPTIONAL { ?p :author ?a ; :about :t5 } } GROUP BY ?a } }',
        '{ ?x :author ?a { SELECT ?a (COUNT(*) AS ?n) { ?p :year 1999 OPTIONAL { ?p :author ?a ; :about :t5 } } GROUP BY ?a } FILTER(?x = :p7) }'),
    ('values', '{ VALUES ?a { :a1 :a2 :a2 :none } { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a } }',
        '{ { { ?a :name ?l FILTER(?a = :a1) } UNION { ?a :name ?l FILTER(?a = :a2) } UNION { ?a :name ?l FILTER(?a = :a2) } } { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a ; :about ?t } GROUP BY ?a } }');
select is(pg_temp.answer('SELECT ' || v || fast), pg_temp.answer('SELECT ' || v || plain), name)
    from pushed, lateral (select case when fast like '%DISTINCT ?a ?t%' then '?a ?t ' when fast like '%?a ?t (%' then '?a ?t ?n ' else '?a ?n ' end) x(v);
select doesnt_match(pg_temp.plan('SELECT * ' || fast), 'rows=[0-9]{4} loops', name || ' are not computed whole') from pushed where name in
    ('groups', 'groups by two keys', 'groups with HAVING', 'distinct', 'groups of a union', 'values');
select is(pg_temp.answer('SELECT ?n { GRAPH ?g { :p7 :author ?a { SELECT ?a (COUNT(*) AS ?n) { ?p :author ?a } GROUP BY ?a } } }'), null, 'in any named graph');

-- VALUES that leave variables open.
create temp table open_values (name text, query text, plain text);
insert into open_values values
    ('one or the other', '{ VALUES (?y ?t) { (1999 UNDEF) (UNDEF :t3) (2001 :t4) (2001 :t4) } ?p :year ?y ; :about ?t }',
        '{ { ?p :year ?y ; :about ?t FILTER(?y = 1999) } UNION { ?p :year ?y ; :about ?t FILTER(?t = :t3) } UNION { ?p :year ?y ; :about ?t FILTER(?y = 2001 && ?t = :t4) } UNION { ?p :year ?y ; :about ?t FILTER(?y = 2001 && ?t = :t4) } }'),
    ('none at all', '{ VALUES (?y ?t) { (UNDEF UNDEF) (UNDEF :t3) } ?p :year ?y ; :about ?t FILTER(?p IN (:p3, :p4)) }',
        '{ { ?p :year ?y ; :about ?t } UNION { ?p :year ?y ; :about ?t FILTER(?t = :t3) } FILTER(?p IN (:p3, :p4)) }'),
    ('what no pattern binds', '{ VALUES (?y ?z) { (1999 UNDEF) (2000 1) } ?p :year ?y ; :about :t3 }',
        '{ { ?p :year ?y ; :about :t3 FILTER(?y = 1999) } UNION { ?p :year ?y ; :about :t3 FILTER(?y = 2000) BIND(1 AS ?z) } }'),
    ('what an OPTIONAL binds', '{ ?p :year ?y ; :about :t3 OPTIONAL { ?p :author ?a FILTER(?y > 2000) } VALUES (?y ?a) { (1999 UNDEF) (UNDEF :a1) } }',
        '{ { ?p :year ?y ; :about :t3 OPTIONAL { ?p :author ?a FILTER(?y > 2000) } FILTER(?y = 1999) } UNION { ?p :year ?y ; :about :t3 OPTIONAL { ?p :author ?b FILTER(?y > 2000) } FILTER(!BOUND(?b) || ?b = :a1) BIND(:a1 AS ?a) } }');
select is(pg_temp.answer('SELECT ?p ?y ?t ?z ?a ' || query), pg_temp.answer('SELECT ?p ?y ?t ?z ?a ' || plain), 'VALUES, ' || name) from open_values;
select doesnt_match(pg_temp.plan('SELECT * { VALUES (?p ?t) { (:p1 UNDEF) (:p2 :t2) (UNDEF :t3) } ?p :about ?t }'), 'rows=[0-9]{4} loops', 'each row looks up what it binds');

-- Computed values that connect groups of patterns.
create temp table computed (name text, query text, n int);
insert into computed values
    ('texts', '{ ?a a :Author ; :name ?x . ?b a :Author ; :name ?y FILTER(UCASE(?x) = UCASE(?y)) }',
        (select sum(k * k) from (select count(*) k from (select distinct n % 700, n % 50 m from generate_series(1, 3000) n) x group by m) y)),
    ('integers', '{ ?a a :Author ; :born ?x . ?b a :Author ; :born ?y FILTER(YEAR(?x) * 2 + 1 = YEAR(?y) * 2 - 9) }',
        (select count(*) from (select distinct n % 700 a, 1940 + n % 60 y from generate_series(1, 3000) n) x join (select distinct n % 700 a, 1940 + n % 60 y from generate_series(1, 3000) n) z on x.y * 2 + 1 = z.y * 2 - 9)),
    ('bound integers', '{ ?a a :Author ; :born ?x . ?b a :Author ; :born ?y BIND(YEAR(?x) - 5 AS ?i) BIND(YEAR(?y) AS ?j) FILTER(?i = ?j) }',
        (select count(*) from (select distinct n % 700 a, 1940 + n % 60 y from generate_series(1, 3000) n) x join (select distinct n % 700 a, 1940 + n % 60 y from generate_series(1, 3000) n) z on x.y - 5 = z.y)),
    ('bound texts', '{ ?a a :Author ; :name ?x BIND(SUBSTR(?x, 6) AS ?i) ?p a :Paper ; :about ?t BIND(SUBSTR(STR(?t), 11) AS ?j) FILTER(?i = ?j) }',
        (select count(*) from (select distinct n % 700 a, n % 50 y from generate_series(1, 3000) n) x join (select n p, n % 40 y from generate_series(1, 3000) n) z on x.y = z.y));
select is(pg_temp.answer('SELECT (COUNT(*) AS ?n) ' || query), format('{"n": "\"%s\"^^<http://www.w3.org/2001/XMLSchema#integer>"}', n), 'equal ' || name) from computed;
select matches(pg_temp.plan('SELECT * ' || query), '(Hash|Merge) Cond: .*quad\.', 'equal ' || name || ' are joined by their value') from computed;

-- Keys that are computed from the values of one property: the same as from the solutions one by one.
create temp table keyed (name text, fast text, plain text);
insert into keyed values
    ('a decade', '?k (COUNT(*) AS ?n) { ?p :year ?y } GROUP BY (FLOOR(?y / 10) * 10 AS ?k)', '?k (COUNT(*) AS ?n) { ?p :year ?y FILTER(?p != :none) } GROUP BY (FLOOR(?y / 10) * 10 AS ?k)'),
    ('what has a value', '?k (COUNT(?p) AS ?n) { ?p :year ?y } GROUP BY (FLOOR(?y / 10) * 10 AS ?k)', '?k (COUNT(*) AS ?n) { ?p :year ?y FILTER(?p != :none) } GROUP BY (FLOOR(?y / 10) * 10 AS ?k)'),
    ('parts of dates', '?k ?m (COUNT(?a) AS ?n) { ?a :born ?d } GROUP BY (YEAR(?d) AS ?k) (MONTH(?d) AS ?m)', '?k ?m (COUNT(*) AS ?n) { ?a :born ?d FILTER(?a != :none) } GROUP BY (YEAR(?d) AS ?k) (MONTH(?d) AS ?m)'),
    ('parts of what is no date', '?k (COUNT(*) AS ?n) { ?p :year|:born ?d } GROUP BY (DAY(?d) AS ?k)', '?k (COUNT(*) AS ?n) { ?p :year|:born ?d FILTER(?p != :none) } GROUP BY (DAY(?d) AS ?k)'),
    ('a filter and more', '?k (COUNT(?y) AS ?n) (MAX(?y) AS ?m) (COUNT(DISTINCT ?y) AS ?d) { ?p :year ?y FILTER(?y - 1990 > 3) } GROUP BY (FLOOR(?y / 7) AS ?k)',
        '?k (COUNT(*) AS ?n) (MAX(?y) AS ?m) (COUNT(DISTINCT ?y) AS ?d) { ?p :year ?y FILTER(?y - 1990 > 3 && ?p != :none) } GROUP BY (FLOOR(?y / 7) AS ?k)'),
    ('errors', '?k (COUNT(*) AS ?n) { ?p :name ?y } GROUP BY (-?y AS ?k)', '?k (COUNT(*) AS ?n) { ?p :name ?y FILTER(?p != :none) } GROUP BY (-?y AS ?k)'),
    ('parts of predicates', '?k (COUNT(*) AS ?n) (MIN(?p) AS ?m) { ?a ?p ?o } GROUP BY (SUBSTR(STR(?p), 1, 11) AS ?k)',
        '?k (COUNT(*) AS ?n) (MIN(?p) AS ?m) { ?a ?p ?o FILTER(?a != :none) } GROUP BY (SUBSTR(STR(?p), 1, 11) AS ?k)'),
    ('some predicates', '(COUNT(*) AS ?n) (COUNT(?o) AS ?m) { ?a ?p ?o FILTER(CONTAINS(STR(?p), "n")) }',
        '(COUNT(*) AS ?n) (COUNT(?o) AS ?m) { ?a ?p ?o FILTER(CONTAINS(STR(?p), "n") && ?a != :none) }'),
    ('values of any property', '?k (COUNT(?p) AS ?n) { ?a ?p ?o FILTER(isNumeric(?o)) } GROUP BY (FLOOR(?o / 10) AS ?k)',
        '?k (COUNT(?p) AS ?n) { ?a ?p ?o FILTER(isNumeric(?o) && ?a != :none) } GROUP BY (FLOOR(?o / 10) AS ?k)'),
    ('what is joined with itself', '?k (COUNT(*) AS ?n) { ?a ?p ?a } GROUP BY (STRLEN(STR(?p)) AS ?k)',
        '?k (COUNT(*) AS ?n) { ?a ?p ?a FILTER(?a != :none) } GROUP BY (STRLEN(STR(?p)) AS ?k)'),
    ('no solutions', '(COUNT(*) AS ?n) { ?p :none ?y FILTER(?y + 1 > 3) }', '(COUNT(?p) AS ?n) { ?p :none ?y FILTER(?y + 1 > 3 && ?p != :none) }'),
    ('having', '?k (COUNT(*) AS ?n) { ?p :name ?y } GROUP BY (REPLACE(?y, "[0-9]$", "") AS ?k) HAVING(COUNT(*) > 130)',
        '?k (COUNT(*) AS ?n) { ?p :name ?y FILTER(?p != :none) } GROUP BY (REPLACE(?y, "[0-9]$", "") AS ?k) HAVING(COUNT(?p) > 130)');
select is(pg_temp.answer('SELECT ' || fast), pg_temp.answer('SELECT ' || plain), 'keys over values: ' || name) from keyed;

select matches(pg_temp.plan('SELECT ?k (COUNT(*) AS ?n) { ?a ?p ?o } GROUP BY (STR(?p) AS ?k)'), 'Quad Groups', 'predicates are counted before their texts are');
select doesnt_match(pg_temp.plan('SELECT ?k (COUNT(?a) AS ?n) { ?a :born ?d } GROUP BY (YEAR(?d) AS ?k)'), 'rows=700 loops', 'dates are counted before their years are');

select * from finish();
rollback;
