-- The number of the shard of a hash-distributed table that a relation of this node is.
SELECT s.shardid FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_dist_shard s ON s.shardid::pg_catalog.text OPERATOR(pg_catalog.=)
  pg_catalog.substring(c.relname::pg_catalog.text, '[0-9]+$')
JOIN pg_catalog.pg_dist_partition t ON t.logicalrelid OPERATOR(pg_catalog.=) s.logicalrelid
WHERE c.oid OPERATOR(pg_catalog.=) {0}::pg_catalog.oid AND t.partmethod OPERATOR(pg_catalog.=) 'h'
  AND pg_catalog.to_regclass(pg_catalog.shard_name(s.logicalrelid, s.shardid))::pg_catalog.oid
    OPERATOR(pg_catalog.=) {0}::pg_catalog.oid
