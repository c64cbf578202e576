//! What a statement has changed and not written yet, wherever the quads of a table are: rows for the trees of this node
//! ([`pending`]), changes of a distributed store ([`pending_changes`]).

use crate::catalog::distributed_store::{sides_of, Sides};
use crate::cluster::pending_changes;
use crate::pg::ffi;
use crate::storage::executor_depth::{self, Running};
use crate::storage::pending;
use pgquad_btree::Quad;
use pgrx::pg_sys;

/// Counts a running executor in; gives what [`leave_executor`] wants. `may_delete`: its statement changes tables in
/// several parts.
pub fn enter_executor(may_delete: bool) -> Running {
    executor_depth::enter(may_delete)
}

/// The innermost executor run is over without error, but its statement is not: parts of it that nobody reads are run at
/// its end. What it has kept back is written then, for they may delete what it inserts anew.
pub fn pause_executor(outer: Running) {
    executor_depth::leave(outer);
}

/// The innermost executor run is over without error: what it has kept back is written.
pub fn leave_executor(outer: Running) {
    pending::flush_run();
    pending_changes::flush_run();
    executor_depth::leave(outer);
}

/// Whether a row given now will be flushed by an executor run.
pub fn within_executor() -> bool {
    executor_depth::depth() > 0
}

/// Keeps rows back.
///
/// # Safety
/// `rel` is an open quad table; the caller runs within an executor run, or will call [`flush`] itself when `new_table`.
pub unsafe fn add(rel: pg_sys::Relation, quads: &[Quad], xid: u32, cid: u32, new_table: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        match sides_of(rel) {
            Some(sides) => {
                ffi::check_readers_of(rel);
                pending_changes::insert((*rel).rd_id, sides, quads, cid);
            }
            None => pending::add(rel, quads, xid, cid, new_table),
        }
    }
}

/// Keeps the deletion of a quad of a distributed store back: [`pending_changes::delete`].
pub fn delete_elsewhere(relid: pg_sys::Oid, sides: Sides, quad: Quad, cid: u32) -> bool {
    pending_changes::delete(relid, sides, quad, cid)
}

/// Writes what is kept back for a table, before it is read; not what the running statement collects for a distributed
/// store: [`pending_changes::flush`].
pub fn flush(relid: pg_sys::Oid) {
    pending::flush(relid);
    pending_changes::flush(relid);
}

/// Writes all that is kept back for a table: the command that inserted it ends.
pub fn finish(relid: pg_sys::Oid) {
    pending::finish(relid);
    pending_changes::finish(relid);
}

/// Writes everything; a transaction is about to commit.
pub fn flush_all() {
    pending::flush_all();
    pending_changes::flush_all();
}

/// A subtransaction begins.
pub fn begin_subtransaction() {
    executor_depth::begin_subtransaction();
}

/// A subtransaction ends; what it changed is dropped when it `failed`.
pub fn end_subtransaction(subtransaction: u32, failed: bool) {
    executor_depth::end_subtransaction(failed);
    if failed {
        pending::forget_subtransaction(subtransaction);
        pending_changes::forget_subtransaction(subtransaction);
    }
}

/// Drops everything; called when a transaction ends.
pub fn forget_all() {
    executor_depth::reset();
    pending::forget_all();
    pending_changes::forget_all();
}
