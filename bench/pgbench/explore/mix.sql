-- The whole mix in its order: 1 2 2 3 2 2 4 2 2 5 7 7 5 7 7 8 9 9 8 9 9 10 10 11 12.
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
\set r3 random(0, 2000000000)
select bsbm.explore_1(:r1, :r2, :r3) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
\set r3 random(0, 2000000000)
select bsbm.explore_3(:r1, :r2, :r3) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
\set r3 random(0, 2000000000)
select bsbm.explore_4(:r1, :r2, :r3) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_2(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_5(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_7(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_7(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_5(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_7(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_7(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_8(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_9(:r1) as query \gset
select subject, predicate, object from quad.describe(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_9(:r1) as query \gset
select subject, predicate, object from quad.describe(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_8(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_9(:r1) as query \gset
select subject, predicate, object from quad.describe(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_9(:r1) as query \gset
select subject, predicate, object from quad.describe(:query);
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
select bsbm.explore_10(:r1, :r2) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
\set r2 random(0, 2000000000)
select bsbm.explore_10(:r1, :r2) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_11(:r1) as query \gset
select quad.sparql_json(:query);
\set r1 random(0, 2000000000)
select bsbm.explore_12(:r1) as query \gset
select subject, predicate, object from quad.construct(:query);
