-- Blocks of terms with consecutive numbers; `first_id` is the number of the first, `extent` its upper bits, which all
-- numbers of the block share. One block fills a page at most: only terms that are too long for that are stored out of
-- line. The text is compressed already.
CREATE TABLE quad.terms (
    extent bigint NOT NULL,
    first_id bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (first_id, extent)
) USING heap WITH (toast_tuple_target = 8160);
ALTER TABLE quad.terms ALTER data SET STORAGE EXTERNAL;
COMMENT ON TABLE quad.terms IS 'dictionary: blocks of compressed terms by the number of the first';

-- Only the shards of a distributed dictionary take their numbers from here; a local one takes them from
-- quad.term_numbers.
CREATE TABLE quad.term_extents (
    extent bigint PRIMARY KEY,
    next bigint NOT NULL
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE quad.term_extents IS
    'dictionary: extents of numbers that were begun, with the next number of each that is free';

CREATE TABLE quad.symbol_tables (
    id bigint PRIMARY KEY,
    data bytea NOT NULL
) USING heap;
COMMENT ON TABLE quad.symbol_tables IS 'dictionary: symbol tables by which the terms are compressed';

CREATE TABLE quad.languages (
    id integer PRIMARY KEY,
    tag text NOT NULL UNIQUE
) USING heap;
COMMENT ON TABLE quad.languages IS 'dictionary: numbers of language tags';

CREATE SEQUENCE quad.term_numbers INCREMENT 64 MINVALUE 1 MAXVALUE 140737488355327;
COMMENT ON SEQUENCE quad.term_numbers IS 'dictionary: numbers of terms and blank nodes, 64 at a time';

SELECT pg_catalog.pg_extension_config_dump('quad.terms', '');
SELECT pg_catalog.pg_extension_config_dump('quad.term_extents', '');
SELECT pg_catalog.pg_extension_config_dump('quad.symbol_tables', '');
SELECT pg_catalog.pg_extension_config_dump('quad.languages', '');
SELECT pg_catalog.pg_extension_config_dump('quad.term_numbers', '');
