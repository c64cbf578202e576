-- Shards of a hash-distributed table: number, least and greatest hash, group of the node, and the relation where the
-- shard is on this node. Last, the transaction that has told this node where it is.
SELECT s.shardid, s.shardminvalue::pg_catalog.int4, s.shardmaxvalue::pg_catalog.int4, p.groupid,
  CASE WHEN p.groupid OPERATOR(pg_catalog.=) {this}
    THEN pg_catalog.to_regclass(pg_catalog.shard_name(s.logicalrelid, s.shardid))::pg_catalog.oid END,
  p.xmin::pg_catalog.text::pg_catalog.int8
FROM pg_catalog.pg_dist_partition t
JOIN pg_catalog.pg_dist_shard s ON s.logicalrelid OPERATOR(pg_catalog.=) t.logicalrelid
JOIN pg_catalog.pg_dist_placement p ON p.shardid OPERATOR(pg_catalog.=) s.shardid
WHERE t.logicalrelid OPERATOR(pg_catalog.=) {table}::pg_catalog.oid AND t.partmethod OPERATOR(pg_catalog.=) 'h'
