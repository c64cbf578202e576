-- Every node, whether it has answered, and the transactions that Citus has prepared on it, one a line.
SELECT n.nodename || ':' || n.nodeport, r.success::text, r.result FROM run_command_on_all_nodes(
  'SELECT coalesce(string_agg(gid, E''\n''), '''') FROM pg_prepared_xacts
   WHERE database = current_database() AND starts_with(gid, ''citus_'')') AS r JOIN pg_dist_node AS n USING (nodeid)
