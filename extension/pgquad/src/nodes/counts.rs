//! What the planning of nodes that count has in common.

use crate::pg::list::list_iter;
use pgrx::pg_sys;

/// `count(*)` (`pg_proc.dat`).
pub const COUNT_ROWS: pg_sys::Oid = pg_sys::Oid::from_u32(2803);
/// `count(any)` (`pg_proc.dat`).
pub const COUNT_VALUES: pg_sys::Oid = pg_sys::Oid::from_u32(2147);

/// The columns outside of aggregates and the aggregates of expressions.
///
/// # Safety
/// `exprs` is a list of live expressions.
pub unsafe fn parts(exprs: *mut pg_sys::List) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the caller's promise.
    unsafe {
        let flags = pg_sys::PVC_INCLUDE_AGGREGATES
            | pg_sys::PVC_INCLUDE_WINDOWFUNCS
            | pg_sys::PVC_RECURSE_PLACEHOLDERS;
        list_iter(pg_sys::pull_var_clause(exprs.cast(), flags as i32)).collect()
    }
}
