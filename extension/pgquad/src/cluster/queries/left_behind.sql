-- The relation of a shard that Citus' metadata no longer places on this node. Its name is that of the
-- table with the number.
SELECT s.relation::pg_catalog.oid
FROM pg_catalog.pg_dist_partition t
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.logicalrelid
JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.relam,
  pg_catalog.to_regclass(pg_catalog.shard_name(t.logicalrelid, {shard})) s(relation)
WHERE t.partmethod OPERATOR(pg_catalog.=) 'h' AND a.amname OPERATOR(pg_catalog.=) 'quad' AND s.relation IS NOT NULL
