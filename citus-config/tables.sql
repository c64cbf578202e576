-- The two distributed quad tables, by subject and by object; shard n of both is on the same node. Run on the
-- coordinator, once.
--   psql -v shards=32 -f tables.sql
\set ON_ERROR_STOP on
\if :{?shards}
\else
  \set shards 32
\endif

BEGIN;
-- Orders of the tables: each shard can answer by subject or by predicate, and by object or by predicate.
SET LOCAL quad.orders = 'spog,psog';
CREATE TABLE quads_s (s bigint NOT NULL, p bigint NOT NULL, o bigint NOT NULL, g bigint NOT NULL) USING quad;
SET LOCAL quad.orders = 'ospg,posg';
CREATE TABLE quads_o (s bigint NOT NULL, p bigint NOT NULL, o bigint NOT NULL, g bigint NOT NULL) USING quad;

SELECT create_distributed_table('quads_s', 's', shard_count => :shards, colocate_with => 'none');
SELECT create_distributed_table('quads_o', 'o', colocate_with => 'quads_s');
COMMIT;
