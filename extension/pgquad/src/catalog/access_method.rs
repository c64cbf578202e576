//! Which relations are of the access method `quad`.

use crate::pg::ffi::Methods;
use pgrx::pg_sys;
use std::sync::OnceLock;

/// The table of callbacks, filled in when PostgreSQL first asks for it: relations of the access method point at it.
pub static ROUTINE: OnceLock<Methods<pg_sys::TableAmRoutine>> = OnceLock::new();

/// Whether `relid` is a table of this access method.
pub fn is_quad_relid(relid: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups; the tuple is released before the end.
    unsafe {
        let am = pg_sys::get_am_oid(c"quad".as_ptr(), true);
        if am == pg_sys::InvalidOid {
            return false;
        }
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            pg_sys::Datum::from(relid),
        );
        if tuple.is_null() {
            return false;
        }
        let class = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>();
        let found = (*class).relam == am;
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// Whether an open relation is of this access method.
///
/// # Safety
/// `rel` is open.
pub unsafe fn is_quad(rel: pg_sys::Relation) -> bool {
    ROUTINE
        .get()
        // SAFETY: the caller's promise.
        .is_some_and(|routine| unsafe { std::ptr::eq((*rel).rd_tableam, &raw const routine.0) })
}
