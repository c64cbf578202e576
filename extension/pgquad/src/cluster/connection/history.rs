//! What this session remembers of the reads of its queries, for when they run again.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};

use pgquad_cluster::read_history::{Reads, Run};
use pgquad_cluster::ReadHistory;
use pgrx::pg_sys;
use rustc_hash::FxBuildHasher;

use crate::cluster::map;

thread_local! {
    static HISTORY: RefCell<ReadHistory> = RefCell::default();
}

/// What tells queries apart: what the caller says, the role that may have rights to other stores, and where shards are.
/// A read that was right under other circumstances could fail.
pub fn identity(query: impl Hash) -> u64 {
    // SAFETY: plain session state.
    let role = unsafe { pg_sys::GetUserId() };
    FxBuildHasher.hash_one((query, role, map::generation()))
}

/// What `body` makes of the reads that a query is expected to make. `None` where they are not known, or the tables of
/// their shards cannot be locked at once. Whoever locks a store locks these tables, and then the shards: a session that
/// waited here, while other nodes hold shards for it, could wait for ever.
pub fn with_lockable<T>(query: u64, body: impl FnOnce(&Reads) -> T) -> Option<T> {
    let generation = map::generation();
    HISTORY.with_borrow(|history| {
        let reads = history.expected(query)?;
        // Locking may show that shards are elsewhere.
        let is_right =
            reads.tables.iter().all(|&table| can_lock(table)) && map::generation() == generation;
        is_right.then(|| body(reads))
    })
}

fn can_lock(table: u32) -> bool {
    // SAFETY: a lock of a number, whether a relation has it or not, which lasts as long as the transaction.
    unsafe {
        pg_sys::ConditionalLockRelationOid(pg_sys::Oid::from(table), pg_sys::AccessShareLock as i32)
    }
}

/// Keeps what a run has read for the next one.
pub fn add(run: Run) {
    HISTORY.with_borrow_mut(|history| history.add(run));
}

/// The reads of a query were made in vain.
pub fn distrust(query: u64) {
    HISTORY.with_borrow_mut(|history| history.distrust(query));
}
