//! A pattern that no other one is joined with. `Quad Scan` reads it, which knows the orders of its columns; but where filters can be
//! tested on ids, a `Quad Join` of one pattern does that a batch at a time, and reads nothing but the ranges that can pass.

use super::describe::Described;
use super::native::Native;
use super::{level, paths};
use crate::scan::conditions::{self, list_iter};
use pgrx::pg_sys;

/// A path that reads a relation on its own, for which costs are still to be set, with the conditions that PostgreSQL evaluates for each
/// row. None where ids tell nothing of any filter, or the relation is to be joined with others.
///
/// # Safety
/// `rel` is a base relation of the level, which is past the setting up of base relations.
pub unsafe fn read_alone(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<(*mut pg_sys::CustomPath, *mut pg_sys::List)> {
    // SAFETY: the caller's promise.
    unsafe {
        let rti = (*rel).relid;
        let (on_ids, others): (Vec<_>, Vec<_>) =
            list_iter::<pg_sys::RestrictInfo>((*rel).baserestrictinfo).partition(|&clause| {
                conditions::match_clause(root, rti, clause).is_none()
                    && Native::knows((*clause).clause, rti)
            });
        let joined = pg_sys::bms_is_member(rti as i32, level::candidates(root));
        if on_ids.is_empty() || joined || !level::may_join(root, rel) {
            return None;
        }
        let mut evaluated = std::ptr::null_mut();
        for clause in others {
            evaluated = pg_sys::lappend(evaluated, clause.cast());
        }
        let path = paths::make(rel, Described::relation(rel));
        Some((path.cast(), evaluated))
    }
}
