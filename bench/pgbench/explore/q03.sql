-- Query 3 of the mix.
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
\set r3 random(0, 2000000000)
select bsbm.explore_3(:r1, :r2, :r3) as query \gset
select quad.sparql_json(:query);
