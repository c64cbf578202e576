-- The upgrade script that takes back what before.sql has changed.
CREATE FUNCTION quad.id_kind(id bigint) RETURNS smallint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'id_kind_wrapper';
DROP FUNCTION quad.left_over();
ALTER FUNCTION quad.fn_abs(quad.term) COST 10;
GRANT EXECUTE ON FUNCTION quad.iri(text) TO PUBLIC;
CREATE AGGREGATE quad.agg_sample(quad.term) (SFUNC = quad.agg_sample_step, STYPE = quad.term, PARALLEL = SAFE);
COMMENT ON TABLE quad.languages IS 'dictionary: numbers of language tags';
REVOKE SELECT ON quad.term_extents FROM PUBLIC;
ALTER TABLE quad.symbol_tables DROP COLUMN forgotten_column;
SELECT pg_catalog.pg_extension_config_dump('quad.languages', '');
ALTER VIEW quad.stores RESET (security_barrier);
CREATE CAST (quad.term AS text) WITH FUNCTION quad.term_to_text(quad.term) AS ASSIGNMENT;
ALTER OPERATOR quad.< (quad.term, quad.term) SET (RESTRICT = scalarltsel);
ALTER TYPE quad.term SET (STORAGE = extended);
GRANT CREATE ON SCHEMA quad_shards TO PUBLIC;
