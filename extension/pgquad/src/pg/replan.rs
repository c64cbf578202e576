//! Invalidation of plans that depend on a setting: PostgreSQL's plan cache watches tables and functions only.

use std::cell::Cell;

use pgrx::pg_sys;
use pgrx::prelude::*;

thread_local! {
    /// Plans that were made for the settings of the moment are noted to depend on this: the hash of `quad.query` in the
    /// catalogue cache of functions.
    static DEPENDED_ON: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The catalogue cache of functions.
pub const PROCEDURES: i32 = pg_sys::SysCacheIdentifier::PROCOID as i32;

/// Makes a plan depend on the settings of the moment. `hash`: that of `quad.query` in the catalogue cache of functions.
///
/// # Safety
/// A live plan of the current memory context.
pub unsafe fn note_dependency(planned: *mut pg_sys::PlannedStmt, hash: u32) {
    // SAFETY: the caller's promise; the item is of the current memory context.
    unsafe {
        let mut item = PgBox::<pg_sys::PlanInvalItem>::alloc_node(pg_sys::NodeTag::T_PlanInvalItem);
        item.cacheId = PROCEDURES;
        item.hashValue = hash;
        (*planned).invalItems = pg_sys::lappend((*planned).invalItems, item.into_pg().cast());
    }
    DEPENDED_ON.set(Some(hash));
}

/// The store or the default graph of queries that name none is about to change. Plans with a query in them that was
/// translated for the old one are to be made anew.
pub fn settings_change() {
    if let Some(hash) = DEPENDED_ON.take() {
        // SAFETY: calls back those who depend on the entry of the cache, as its invalidation does.
        unsafe { pg_sys::CallSyscacheCallbacks(PROCEDURES, hash) }
    }
}
