-- Query 1 of the mix.
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
select bsbm.bi_1(:r1, :r2) as query \gset
select quad.sparql_json(:query);
