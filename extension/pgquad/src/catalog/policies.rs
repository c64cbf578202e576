//! Row-level security of quad tables.

use pgrx::pg_sys;

/// Whether policies decide which rows of a relation the current user sees (`utils/misc/rls.c`). With `row_security` off
/// that is an error for whom they do, unless `silent`.
pub fn are_in_force(relid: pg_sys::Oid, silent: bool) -> bool {
    // SAFETY: look-ups in the catalogue.
    let found = unsafe { pg_sys::check_enable_rls(relid, pg_sys::InvalidOid, silent) };
    found == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
}
