//! The tables of the dictionary: their definitions and how to find them.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::error::raise_hint;

extension_sql!(
    r#"
-- Blocks of terms with consecutive numbers; `first_id` is the number of the first, `extent` its upper bits, which all numbers of the
-- block share. One block fills a page at most: only terms that are too long for that are stored out of line. The text is compressed
-- already.
CREATE TABLE quad.terms (
    extent bigint NOT NULL,
    first_id bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (first_id, extent)
) USING heap WITH (toast_tuple_target = 8160);
ALTER TABLE quad.terms ALTER data SET STORAGE EXTERNAL;
COMMENT ON TABLE quad.terms IS 'dictionary: blocks of compressed terms by the number of the first';

-- Only the shards of a distributed dictionary take their numbers from here; a local one takes them from quad.term_numbers.
CREATE TABLE quad.term_extents (
    extent bigint PRIMARY KEY,
    next bigint NOT NULL
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE quad.term_extents IS 'dictionary: extents of numbers that were begun, with the next number of each that is free';

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
"#,
    name = "dictionary_tables"
);

extension_sql!(
    r#"
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
"#,
    name = "dictionary_term_ids",
    requires = ["dictionary_tables", "quad_access_method"]
);

/// Oids of the relations that a dictionary, or one shard of it, consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables {
    /// `quad.terms`.
    pub terms: pg_sys::Oid,
    /// `quad.term_ids`.
    pub term_ids: pg_sys::Oid,
    /// `quad.term_extents`.
    pub extents: pg_sys::Oid,
    /// `quad.symbol_tables`, whole on every node.
    pub symbol_tables: pg_sys::Oid,
    /// `quad.languages`, whole on every node.
    pub languages: pg_sys::Oid,
    /// `quad.term_numbers`, which numbers terms where the dictionary is not distributed.
    pub numbers: pg_sys::Oid,
}

impl Tables {
    /// The relations with these names in this database; an error when the extension is not installed.
    pub fn by_name() -> Tables {
        Self::look_up().unwrap_or_else(|name| {
            raise_hint(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!(
                    "relation \"quad.{}\" does not exist",
                    name.to_string_lossy()
                ),
                "The extension pgquad must be installed in this database: CREATE EXTENSION pgquad.",
            )
        })
    }

    /// As [`Self::by_name`]; `None` when the extension is not installed.
    pub fn find() -> Option<Tables> {
        Self::look_up().ok()
    }

    /// The relations, or the name of one that is not there.
    fn look_up() -> Result<Tables, &'static CStr> {
        // SAFETY: syscache look-up with a constant string.
        let schema = unsafe { pg_sys::get_namespace_oid(c"quad".as_ptr(), true) };
        let find = |name: &'static CStr| {
            // SAFETY: as above.
            let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
            (oid != pg_sys::InvalidOid).then_some(oid).ok_or(name)
        };
        Ok(Tables {
            terms: find(c"terms")?,
            term_ids: find(c"term_ids")?,
            extents: find(c"term_extents")?,
            symbol_tables: find(c"symbol_tables")?,
            languages: find(c"languages")?,
            numbers: find(c"term_numbers")?,
        })
    }

    /// The relations.
    pub fn relations(&self) -> [pg_sys::Oid; 6] {
        [
            self.terms,
            self.term_ids,
            self.extents,
            self.symbol_tables,
            self.languages,
            self.numbers,
        ]
    }

    /// Whether `relation` is one of them. `InvalidOid` stands for every relation.
    pub fn contains(&self, relation: pg_sys::Oid) -> bool {
        relation == pg_sys::InvalidOid || self.relations().contains(&relation)
    }
}
