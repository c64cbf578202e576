-- Query 12 of the mix.
\set r1 random(0, 2000000000)
select bsbm.explore_12(:r1) as query \gset
select subject, predicate, object from quad.construct(:query);
