-- Makes a cluster of nodes that all run Citus and pgquad. Run on the coordinator; can be run again.
--   psql -v coordinator=HOST:PORT -v workers='HOST:PORT HOST:PORT ...' [-v shards_on_coordinator=false] -f cluster.sql
\set ON_ERROR_STOP on
\if :{?shards_on_coordinator}
\else
  \set shards_on_coordinator true
\endif
SET client_min_messages = warning;

CREATE EXTENSION IF NOT EXISTS citus;

SELECT citus_set_coordinator_host(split_part(:'coordinator', ':', 1), split_part(:'coordinator', ':', 2)::int);

-- Shards on the coordinator too: what is there is read without a message.
SELECT citus_set_node_property(split_part(:'coordinator', ':', 1), split_part(:'coordinator', ':', 2)::int,
    'shouldhaveshards', :shards_on_coordinator);

-- A node that is there already stays as it is.
SELECT citus_add_node(split_part(worker, ':', 1), split_part(worker, ':', 2)::int)
FROM regexp_split_to_table(trim(:'workers'), '\s+') AS worker;

-- Citus makes the extension on the workers as well.
CREATE EXTENSION IF NOT EXISTS pgquad;

SELECT nodename, nodeport, noderole, groupid = 0 AS coordinator FROM pg_dist_node WHERE isactive ORDER BY groupid;
