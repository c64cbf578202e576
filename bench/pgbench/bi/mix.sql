-- The whole mix in its order: 1 3 2 2 4 5 5 6 5 6 6 7 8 7 6.
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
select bsbm.bi_1(:r1, :r2) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_3(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_4(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_5(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_5(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_6(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_5(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_6(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_6(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
select bsbm.bi_7(:r1, :r2) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_8(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
select bsbm.bi_7(:r1, :r2) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.bi_6(:r1) as query \gset
select quad.sparql_json(:query);
