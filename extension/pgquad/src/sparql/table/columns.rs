//! The columns that the caller of `quad.query` has defined.

use std::ffi::CStr;

use pgquad_sparql::{listed, match_columns, ColumnMismatch};
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::pg::error::raise_hint;
use crate::pg::list::list_iter;

/// A column of the column definition list.
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub oid: pg_sys::Oid,
    /// Its type modifier, -1 for none.
    pub typmod: i32,
    /// Its collation, 0 for none.
    pub collation: pg_sys::Oid,
}

/// A column definition list.
pub struct Columns(pub Vec<Column>);

impl Columns {
    /// The columns of a row type.
    ///
    /// # Safety
    /// A live descriptor.
    pub unsafe fn of_descriptor(descriptor: pg_sys::TupleDesc) -> Self {
        // SAFETY: the caller's promise; a descriptor has as many attributes as it says.
        let columns = unsafe {
            let attributes = (*descriptor)
                .attrs
                .as_slice((*descriptor).natts as usize)
                .iter();
            attributes.map(|attribute| Column {
                name: CStr::from_ptr(attribute.attname.data.as_ptr())
                    .to_string_lossy()
                    .into_owned(),
                oid: attribute.atttypid,
                typmod: attribute.atttypmod,
                collation: attribute.attcollation,
            })
        };
        Self(columns.collect())
    }

    /// The columns that the call of a function in FROM gives.
    ///
    /// # Safety
    /// A live node.
    pub unsafe fn of_function(function: *mut pg_sys::RangeTblFunction) -> Self {
        // SAFETY: the caller's promise; the lists are of one length.
        unsafe {
            let names = list_iter::<pg_sys::Node>((*function).funccolnames);
            let columns = names.enumerate().map(|(place, name)| {
                let place = place as i32;
                Column {
                    name: string_of(name),
                    oid: pg_sys::list_nth_oid((*function).funccoltypes, place),
                    typmod: pg_sys::list_nth_int((*function).funccoltypmods, place),
                    collation: pg_sys::list_nth_oid((*function).funccolcollations, place),
                }
            });
            Self(columns.collect())
        }
    }

    /// The places of the columns among those of the answer. Raises an error for names that the query does not have
    /// (42703), that fit several of its names (42702), and for a wrong number of columns (42804).
    pub fn places(&self, has: &[String]) -> Vec<usize> {
        let asked: Vec<String> = self.0.iter().map(|column| column.name.clone()).collect();
        match_columns(&asked, has).unwrap_or_else(|mismatch| {
            let (code, advice) = match mismatch {
                ColumnMismatch::Unknown(_) => (
                    PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                    "Name all columns as the query does, or none of them to take them by position.",
                ),
                ColumnMismatch::Ambiguous { .. } => (
                    PgSqlErrorCode::ERRCODE_AMBIGUOUS_COLUMN,
                    "Write the name in quotes to tell upper and lower case.",
                ),
                ColumnMismatch::Count { .. } => (
                    PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                    "Name the columns as the query does, or ask for all of them in their order.",
                ),
            };
            let columns = match has {
                [] => "The query has no columns.".to_owned(),
                has => format!("The query has the columns {}.", listed(has)),
            };
            raise_hint(code, mismatch.to_string(), format!("{columns} {advice}"))
        })
    }
}

/// # Safety
/// A live string node.
unsafe fn string_of(node: *mut pg_sys::Node) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        CStr::from_ptr((*node.cast::<pg_sys::String>()).sval)
            .to_string_lossy()
            .into_owned()
    }
}
