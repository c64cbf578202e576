
-- What makes another version of the current one, for the test of the comparison. Each `found` is a part of a line that
-- the comparison has to print when the upgrade script is empty: `<` of a fresh installation, `>` of an updated one.

-- found: < function | quad.id_kind(bigint)
DROP FUNCTION quad.id_kind(bigint);

-- found: > function | quad.left_over()
CREATE FUNCTION quad.left_over() RETURNS int LANGUAGE sql AS 'SELECT 1';

-- found: FUNCTION quad.fn_abs(term quad.term) RETURNS quad.term LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT COST 11
ALTER FUNCTION quad.fn_abs(quad.term) COST 11;

-- found: > function | quad.iri(pg_catalog.text) | EXECUTE to postgres |
REVOKE EXECUTE ON FUNCTION quad.iri(text) FROM PUBLIC;

-- found: < aggregate | quad.agg_sample(quad.term)
DROP AGGREGATE quad.agg_sample(quad.term);

-- found: > table | quad.languages | comment forgotten
COMMENT ON TABLE quad.languages IS 'forgotten';

-- found: SELECT to public, SELECT to postgres, TRIGGER to postgres, TRUNCATE to postgres, UPDATE to postgres | r p heap {fillfactor=50}
GRANT SELECT ON quad.term_extents TO PUBLIC;

-- found: forgotten_column integer
ALTER TABLE quad.symbol_tables ADD COLUMN forgotten_column int;

-- found: configuration t WHERE id > 3
SELECT pg_catalog.pg_extension_config_dump('quad.languages', 'WHERE id > 3');

-- found: > view | quad.stores |
ALTER VIEW quad.stores SET (security_barrier = true);

-- found: < cast | (quad.term AS pg_catalog.text)
DROP CAST (quad.term AS text);

-- found: > operator | quad.<(quad.term,quad.term)
ALTER OPERATOR quad.< (quad.term, quad.term) SET (RESTRICT = NONE);

-- found: > type | quad.term |
ALTER TYPE quad.term SET (STORAGE = main);

-- found: > schema | quad_shards |
REVOKE CREATE ON SCHEMA quad_shards FROM PUBLIC;
