-- Joins that are taken apart: with a union, on a variable that may be unbound, with VALUES, and walks from many starts.
begin;
select plan(21);
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':p%s :number %s ; :kind :k%s . :r%s :of :p%s ; :by :w%s . :o%s :for :p%s ; :from :v%s . :w%s :name "reviewer %s" . :v%s :name "vendor %s" .',
    n, n % 500, n % 7, n, n / 3, n % 90, n, n / 2, n % 40, n % 90, n % 90, n % 40, n % 40), E'\n'), format => 'turtle') from generate_series(1, 3000) n;
select quad.load_text('@prefix : <http://e/> .
' || string_agg(format(':n%s :next :n%s .', n, n + 1), E'\n') || string_agg(format(':s%s :start :n%s .', n, n % 100), E'\n'), format => 'turtle')
    from generate_series(1, 400) n;
select quad.load_text('@prefix : <http://e/> . :x1 :a 1 ; :b :y1 , :y2 . :x2 :a 2 . :x3 :a 3 ; :b :y3 . :z1 :c :y1 . :z2 :c :y3 . :z3 :c :y4 .', format => 'turtle');

create function pg_temp.plan(query text) returns text language sql as
    $f$ select string_agg(x, E'\n') from quad.explain('PREFIX : <http://e/> ' || query, "analyze" => true) x $f$;
create function pg_temp.answer(query text) returns text language sql as
    $f$ select string_agg(x::text, ' ' order by x::text) from quad.sparql('PREFIX : <http://e/> ' || query) x $f$;
create function pg_temp.count(query text) returns int language sql as
    $f$ select x.n::int8::int from quad.sparql('PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) ' || query) y, jsonb_to_record(y) as x(n quad.term) $f$;

-- A union.
create temp table shapes (name text, query text, n int);
insert into shapes values
    ('a union of joins', '{ ?p :number 7 { ?r :of ?p ; :by ?w . ?w :name ?l } UNION { ?o :for ?p ; :from ?w . ?w :name ?l } }', 30),
    ('an optional union', '{ ?p :number 7 OPTIONAL { { ?r :of ?p ; :by ?w } UNION { ?o :for ?p ; :from ?w } } }', 31),
    ('what no branch matches', '{ ?p :number 7 MINUS { { ?r :of ?p ; :by ?w } UNION { ?o :for ?p ; :from ?w } } }', 1),
    ('what does not exist in a union', '{ ?p :number 7 FILTER NOT EXISTS { { ?r :of ?p ; :by ?w } UNION { ?o :for ?p ; :from ?w } } }', 1),
    ('values', '{ VALUES ?k { :k1 :k2 } ?p :kind ?k . ?r :of ?p ; :by :w3 }', null),
    ('values of two', '{ VALUES (?k ?w) { (:k1 :w3) (:k2 :w4) } ?p :kind ?k . ?r :of ?p ; :by ?w }', null);
update shapes set n = (select count(*) from generate_series(1, 3000) n where n / 3 between 1 and 3000 and (n / 3) % 7 in (1, 2) and n % 90 = 3) where name = 'values';
update shapes set n = (select count(*) from generate_series(1, 3000) n where n / 3 >= 1 and ((n / 3) % 7, n % 90) in ((1, 3), (2, 4))) where name = 'values of two';
update shapes set n = (select count(*) from generate_series(1, 3000) p, lateral (select count(*) from generate_series(1, 3000) r where r / 3 = p) x(r),
    lateral (select count(*) from generate_series(1, 3000) o where o / 2 = p) y(o), lateral (select x.r + y.o) z(m) , generate_series(1, m) where p % 500 = 7)
    where name = 'a union of joins';
update shapes set n = (select sum(greatest(x.r + y.o, 1)) from generate_series(1, 3000) p, lateral (select count(*) from generate_series(1, 3000) r where r / 3 = p) x(r),
    lateral (select count(*) from generate_series(1, 3000) o where o / 2 = p) y(o) where p % 500 = 7) where name = 'an optional union';
update shapes set n = (select count(*) from generate_series(1, 3000) p where p % 500 = 7 and p > 1500) where name like 'what%';
select is(pg_temp.count(query), n, name) from shapes;
-- Rows that are found, not those that are expected.
select doesnt_match(pg_temp.plan('SELECT * ' || query), '(actual [^)]*|estimate=[0-9]+ )rows=[0-9]{4}', name || ' reads what is asked for') from shapes where name like '%union%';
select doesnt_match(pg_temp.plan('SELECT * ' || query), 'Values Scan', name || ' do not fix the order') from shapes where name like 'values%';

-- A variable that may be unbound.
select is(pg_temp.answer('SELECT ?x ?y ?z { ?x :a ?n OPTIONAL { ?x :b ?y } ?z :c ?y }'),
    '{"x": "<http://e/x1>", "y": "<http://e/y1>", "z": "<http://e/z1>"} {"x": "<http://e/x2>", "y": "<http://e/y1>", "z": "<http://e/z1>"} '
    '{"x": "<http://e/x2>", "y": "<http://e/y3>", "z": "<http://e/z2>"} {"x": "<http://e/x2>", "y": "<http://e/y4>", "z": "<http://e/z3>"} '
    '{"x": "<http://e/x3>", "y": "<http://e/y3>", "z": "<http://e/z2>"}', 'rows with and without the value are two joins');
select is(pg_temp.count('{ ?x :a ?n OPTIONAL { ?x :b ?y } OPTIONAL { ?z :c ?y } }'), 6, 'also before an OPTIONAL');
select is(pg_temp.answer('SELECT ?x ?y { ?x :a ?n OPTIONAL { ?x :b ?y } MINUS { ?z :c ?y } }'),
    '{"x": "<http://e/x1>", "y": "<http://e/y2>"} {"x": "<http://e/x2>"}', 'and in MINUS');
select is(pg_temp.count('{ OPTIONAL { ?r :of ?p } ?r :by :w3 }'), 34, 'an OPTIONAL that comes first');
select doesnt_match(pg_temp.plan('SELECT * ' || query), 'IS NULL\) OR', 'no test of pairs: ' || query)
    from (values ('{ OPTIONAL { ?r :of ?p } ?r :by :w3 }'), ('{ ?p :number 7 OPTIONAL { ?r :of ?p } ?r :by ?w }'),
        ('{ ?p :number 7 OPTIONAL { ?r :of ?p } MINUS { ?r :by :w3 } }')) x(query);

-- Walks from many starts are one.
select is(pg_temp.count('{ ?s :start ?n . ?n :next+ ?m }'), (select sum(400 - (n % 100) + case when n % 100 = 0 then 0 else 1 end)::int
    from generate_series(1, 400) n where n % 100 > 0), 'paths from each start');
select matches(pg_temp.plan('SELECT * { ?s :start ?n . ?n :next+ ?m }'), 'Quad Walk\).*\n?.*loops=1\)', 'in one walk');
select is(pg_temp.count('{ ?s :start/:next* ?m FILTER(?s = :s7) }'), 395, 'a sequence that ends in a path');

select * from finish();
rollback;
