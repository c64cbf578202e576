-- Query 9 of the mix.
\set r1 random(0, 2000000000)
select bsbm.explore_9(:r1) as query \gset
select subject, predicate, object from quad.describe(:query);
