-- The relation on this node of a table that Citus keeps on every node.
SELECT pg_catalog.to_regclass(pg_catalog.shard_name(s.logicalrelid, s.shardid))::pg_catalog.oid
FROM pg_catalog.pg_dist_shard s
JOIN pg_catalog.pg_dist_placement p ON p.shardid OPERATOR(pg_catalog.=) s.shardid
WHERE s.logicalrelid OPERATOR(pg_catalog.=) {table}::pg_catalog.oid AND p.groupid OPERATOR(pg_catalog.=) {this}
