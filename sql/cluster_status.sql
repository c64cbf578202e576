CREATE VIEW quad.cluster_stats AS
SELECT n.node, n.address, s.kind, s.messages_sent, s.bytes_sent, s.messages_received, s.bytes_received,
       s.bytes_sent / NULLIF(s.messages_sent, 0) AS average_message_bytes,
       s.batches, s.blocked_writes, s.blocked_ms, s.waited_ms, s.since
FROM quad.all_node_stats(false) AS n,
     pg_catalog.json_to_recordset(n.stats::json) AS s (
       kind text, messages_sent bigint, bytes_sent bigint, messages_received bigint, bytes_received bigint,
       batches bigint, blocked_writes bigint, blocked_ms double precision, waited_ms double precision,
       since timestamptz);
COMMENT ON VIEW quad.cluster_stats IS
    'messages between nodes by node and kind, since the server started or quad.cluster_stats_reset() was called';

CREATE FUNCTION quad.cluster_stats_reset() RETURNS SETOF quad.cluster_stats
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT n.node, n.address, s.kind, s.messages_sent, s.bytes_sent, s.messages_received, s.bytes_received,
       s.bytes_sent / NULLIF(s.messages_sent, 0) AS average_message_bytes,
       s.batches, s.blocked_writes, s.blocked_ms, s.waited_ms, s.since
FROM quad.all_node_stats(true) AS n,
     json_to_recordset(n.stats::json) AS s (
       kind text, messages_sent bigint, bytes_sent bigint, messages_received bigint, bytes_received bigint,
       batches bigint, blocked_writes bigint, blocked_ms double precision, waited_ms double precision,
       since timestamptz)
$$;
COMMENT ON FUNCTION quad.cluster_stats_reset() IS 'sets the counters of all nodes to zero and returns what they were';

REVOKE ALL ON quad.cluster_stats FROM PUBLIC;
GRANT SELECT ON quad.cluster_stats TO pg_read_all_stats;
REVOKE EXECUTE ON FUNCTION quad.cluster_status(double precision), quad.node_status(double precision),
    quad.all_node_stats(boolean), quad.node_stats(boolean), quad.cluster_stats_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION quad.cluster_status(double precision), quad.node_status(double precision),
    quad.all_node_stats(boolean), quad.node_stats(boolean), quad.cluster_stats_reset() TO pg_read_all_stats;
