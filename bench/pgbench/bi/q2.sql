-- Query 2 of the mix.
\set r1 random(0, 2000000000)
select bsbm.bi_2(:r1) as query \gset
select quad.sparql_json(:query);
