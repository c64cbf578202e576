-- Ids by the 128-bit hash of the term: s and p are its halves, o is the id, g is 0.
SET LOCAL quad.orders = 'spog';
SET LOCAL quad.inner_fanout = '0';
SET LOCAL quad.leaf_quads = '0';
CREATE TABLE quad.term_ids (
    s bigint NOT NULL,
    p bigint NOT NULL,
    o bigint NOT NULL,
    g bigint NOT NULL
) USING quad;
RESET quad.orders;
RESET quad.inner_fanout;
RESET quad.leaf_quads;
COMMENT ON TABLE quad.term_ids IS 'dictionary: ids by the hash of the term';
SELECT pg_catalog.pg_extension_config_dump('quad.term_ids', '');
