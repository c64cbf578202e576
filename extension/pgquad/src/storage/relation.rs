//! A quad table by its relation: opening it for a moment, and its options.

use super::table::Table;
use crate::catalog::access_method;
use crate::pg::compat::{self, FileLocator};
use pgquad_btree::Options;
use pgrx::pg_sys;

/// Runs `f` on a quad table that the current statement has locked already.
pub fn with_open<T>(relid: pg_sys::Oid, f: impl FnOnce(pg_sys::Relation) -> T) -> T {
    // SAFETY: opened and closed here; callers hold a lock, so none is taken.
    unsafe {
        let rel = pg_sys::table_open(relid, pg_sys::NoLock as i32);
        let result = f(rel);
        pg_sys::table_close(rel, pg_sys::NoLock as i32);
        result
    }
}

/// The options of a quad table that the current statement has locked.
pub fn options_of(relid: pg_sys::Oid) -> Option<Options> {
    // SAFETY: the relation is open during the call.
    with_open(relid, |rel| unsafe {
        access_method::is_quad(rel).then(|| Table::open(rel).meta().options())
    })
}

/// The options of the file that a new file of the same table replaces (TRUNCATE), if there is one.
///
/// # Safety
/// `rel` is open; `new` is the file about to be made for it.
pub unsafe fn replaced_options(rel: pg_sys::Relation, new: &FileLocator) -> Option<Options> {
    // SAFETY: the caller's promise; a relation of ours whose file is another than the new one has a metapage.
    unsafe {
        (!compat::same_file(&*compat::file_of(rel), new) && access_method::is_quad(rel))
            .then(|| Table::open(rel).meta().options())
    }
}
