//! Size callbacks.

use crate::table;
use pgrx::pg_sys;
use pgrx::prelude::*;

#[pg_guard]
pub unsafe extern "C-unwind" fn relation_size(
    rel: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
) -> pg_sys::uint64 {
    // SAFETY: PostgreSQL passes an open relation.
    unsafe { pg_sys::table_block_relation_size(rel, fork) }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn needs_toast_table(_rel: pg_sys::Relation) -> bool {
    false
}

#[pg_guard]
pub unsafe extern "C-unwind" fn estimate_size(
    rel: pg_sys::Relation,
    _attr_widths: *mut pg_sys::int32,
    pages: *mut pg_sys::BlockNumber,
    tuples: *mut f64,
    allvisfrac: *mut f64,
) {
    // SAFETY: PostgreSQL passes an open relation and places for the answers.
    unsafe {
        *pages = pg_sys::RelationGetNumberOfBlocksInFork(rel, pg_sys::ForkNumber::MAIN_FORKNUM);
        *tuples = table::entry_count(rel) as f64;
        *allvisfrac = 0.0;
    }
}
