//! The tables of the dictionary: their definitions and how to find them.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::pg::error::raise_hint;

extension_sql_file!(
    "../../../../sql/dictionary_tables.sql",
    name = "dictionary_tables"
);

extension_sql_file!(
    "../../../../sql/dictionary_term_ids.sql",
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
