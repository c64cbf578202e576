-- The nodes that are active: primaries or secondaries, as `citus.use_secondary_nodes` says.
SELECT groupid, nodeid, nodename, nodeport FROM pg_catalog.pg_dist_node
WHERE isactive
  AND noderole OPERATOR(pg_catalog.=) (CASE pg_catalog.current_setting('citus.use_secondary_nodes')
    WHEN 'always' THEN 'secondary' ELSE 'primary' END)::pg_catalog.noderole
  AND nodecluster OPERATOR(pg_catalog.=) pg_catalog.current_setting('citus.cluster_name')::pg_catalog.name
