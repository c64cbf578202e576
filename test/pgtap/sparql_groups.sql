-- Translated SPARQL that is a Quad Groups or a Quad Walk.
begin;
select plan(20);
select quad.update('INSERT DATA { <http://x/s> <http://x/p> 1 }') is not null as stored;
insert into quad_stores.main select i, i % 7, i % 100, 0 from generate_series(1, 20000) i;
insert into quad_stores.main select i, 3, i % 10, i % 3 + 1 from generate_series(1, 300) i;
analyze quad_stores.main;
\ir lib/plan_of.sql
select matches(pg_temp.plan_of(quad.sparql_to_sql(q)), 'Quad Groups', q) from (values
    ('SELECT (COUNT(*) AS ?n) {?s ?p ?o}'),
    ('SELECT (COUNT(*) AS ?n) {?s a <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/Offer>}'),
    ('SELECT DISTINCT ?p {?s ?p ?o}'),
    ('SELECT ?p (COUNT(*) AS ?n) {?s ?p ?o} GROUP BY ?p'),
    ('SELECT ?p (COUNT(?o) AS ?n) {?s ?p ?o} GROUP BY ?p ORDER BY DESC(?n)'),
    ('SELECT ?p (COUNT(DISTINCT ?o) AS ?n) {?s ?p ?o} GROUP BY ?p'),
    ('SELECT (COUNT(DISTINCT ?s) AS ?n) {?s ?p ?o}'),
    ('SELECT (COUNT(DISTINCT ?p) AS ?n) {?s ?p ?o}'),
    ('SELECT DISTINCT ?type {?s a ?type}'),
    ('SELECT DISTINCT ?s {?s a ?type}'),
    ('SELECT ?type (COUNT(?s) AS ?n) {?s a ?type} GROUP BY ?type'),
    ('SELECT DISTINCT ?g {GRAPH ?g {?s ?p ?o}}'),
    ('SELECT ?g (COUNT(*) AS ?n) {GRAPH ?g {?s ?p ?o}} GROUP BY ?g'),
    ('SELECT (COUNT(*) AS ?n) {GRAPH ?g {?s ?p ?o}}'),
    ('SELECT (COUNT(*) AS ?n) {GRAPH <http://x/g> {?s ?p ?o}}'),
    ('SELECT DISTINCT ?p {?s ?p ?o FILTER(?p != <http://x/p>)}')) v(q);
select matches(pg_temp.plan_of(quad.sparql_to_sql(q)), 'Quad Walk', q) from (values
    ('SELECT ?c {<http://x/a> <http://x/sub>* ?c}'),
    ('SELECT ?s ?c {?s <http://x/sub>+ ?c}'),
    ('SELECT ?s {?s a/<http://x/sub>* <http://x/a>}')) v(q);
-- A path with a constant end is walked from there, once.
select unalike(quad.sparql_to_sql('SELECT ?s {?s a/<http://x/sub>* <http://x/a>}'), '%LATERAL%', 'a walk from a constant');
select * from finish();
rollback;
