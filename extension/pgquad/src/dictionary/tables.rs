//! The tables of the dictionary: their definitions and how to find them.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::error::raise_hint;

extension_sql!(
    r#"
-- Blocks of terms with consecutive numbers; `first_id` is the number of the first. One block fills a page at most: only terms that
-- are too long for that are stored out of line. The text is compressed already.
CREATE TABLE quad.terms (
    first_id bigint PRIMARY KEY,
    data bytea NOT NULL
) USING heap WITH (toast_tuple_target = 8160);
ALTER TABLE quad.terms ALTER data SET STORAGE EXTERNAL;
COMMENT ON TABLE quad.terms IS 'dictionary: blocks of compressed terms by the number of the first';

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

/// Oids of the dictionary's relations in this database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables {
    /// `quad.terms`.
    pub terms: pg_sys::Oid,
    /// Its primary key.
    pub terms_key: pg_sys::Oid,
    /// `quad.term_ids`.
    pub term_ids: pg_sys::Oid,
    /// `quad.symbol_tables`.
    pub symbol_tables: pg_sys::Oid,
    /// Its primary key.
    pub symbol_tables_key: pg_sys::Oid,
    /// `quad.languages`.
    pub languages: pg_sys::Oid,
    /// `quad.term_numbers`.
    pub numbers: pg_sys::Oid,
}

thread_local! {
    /// The oids last looked up, for as long as PostgreSQL has not said that one of them changed.
    static KNOWN: Cell<Option<Tables>> = const { Cell::new(None) };
}

impl Tables {
    /// The relations of this database; an error when the extension is not installed.
    pub fn get() -> Tables {
        if let Some(tables) = KNOWN.get() {
            return tables;
        }
        // SAFETY: syscache look-up with a constant string.
        let schema = unsafe { pg_sys::get_namespace_oid(c"quad".as_ptr(), true) };
        let find = |name: &CStr| {
            // SAFETY: as above.
            let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
            if oid == pg_sys::InvalidOid {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                    format!("relation \"quad.{}\" does not exist", name.to_string_lossy()),
                    "The extension pgquad must be installed in this database: CREATE EXTENSION pgquad.",
                );
            }
            oid
        };
        let tables = Tables {
            terms: find(c"terms"),
            terms_key: find(c"terms_pkey"),
            term_ids: find(c"term_ids"),
            symbol_tables: find(c"symbol_tables"),
            symbol_tables_key: find(c"symbol_tables_pkey"),
            languages: find(c"languages"),
            numbers: find(c"term_numbers"),
        };
        KNOWN.set(Some(tables));
        tables
    }

    /// Whether `relation` is one of them. `InvalidOid` stands for every relation.
    fn contains(&self, relation: pg_sys::Oid) -> bool {
        relation == pg_sys::InvalidOid
            || [
                self.terms,
                self.terms_key,
                self.term_ids,
                self.symbol_tables,
                self.symbol_tables_key,
                self.languages,
                self.numbers,
            ]
            .contains(&relation)
    }
}

/// Watches for changes of the tables; called once per process.
pub fn init() {
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0)) };
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    if KNOWN.get().is_some_and(|tables| tables.contains(relation)) {
        KNOWN.set(None);
    }
}
