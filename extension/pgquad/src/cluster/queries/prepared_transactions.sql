-- The transactions that Citus has prepared on any node.
SELECT t.gid FROM run_command_on_all_nodes(
  'SELECT coalesce(array_agg(gid), ''{}'') FROM pg_prepared_xacts
   WHERE database = current_database() AND starts_with(gid, ''citus_'')') AS r,
  unnest(r.result::text[]) AS t(gid) WHERE r.success
