//! Changes of distributed stores that running statements have collected and not written yet. Citus writes them when the
//! statement ends.

use pgquad_btree::Quad;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::write::Changes;
use crate::catalog::distributed_store::Sides;
use crate::catalog::names::table_name;
use crate::pg::error::raise_hint;
use crate::storage::executor_depth::depth;
use crate::storage::pending_work::{Pending, PendingWork};

thread_local! {
    static PENDING: PendingWork<Box<Changes>> = const { PendingWork::empty() };
}

/// Keeps insertions into a distributed store back.
pub fn insert(relid: pg_sys::Oid, sides: Sides, quads: &[Quad], cid: u32) {
    change(relid, sides, cid, |changes| changes.insert(quads));
}

/// Keeps the deletion of a quad of a distributed store back. False when the same command has deleted it already. The
/// caller runs within an executor run.
pub fn delete(relid: pg_sys::Oid, sides: Sides, quad: Quad, cid: u32) -> bool {
    let (new, overflow) = change(relid, sides, cid, |changes| {
        (changes.delete(quad), changes.overflow())
    });
    if let Some(due) = overflow {
        due.write();
    }
    new
}

/// Adds to the changes that a command has kept back for a distributed store.
fn change<T>(relid: pg_sys::Oid, sides: Sides, cid: u32, f: impl FnOnce(&mut Changes) -> T) -> T {
    let new = || Box::new(Changes::new(sides));
    PENDING.with(|pending| pending.add(relid, cid, |_| true, new, |changes| f(changes)))
}

/// Writes the changes kept back for a store, before it is read. Those that the innermost executor run collects stay. No
/// reader of that run may see them, and their deletions have to be written before their insertions.
pub fn flush(relid: pg_sys::Oid) {
    let depth = depth();
    let is_due = |p: &Pending<Box<Changes>>| p.relid == relid && (depth == 0 || p.depth < depth);
    // SAFETY: within a transaction.
    let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
    let is_outer = |p: &Pending<Box<Changes>>| p.subtransaction != subtransaction;
    if PENDING.with(|pending| pending.any(|p| is_due(p) && is_outer(p))) {
        refuse_subtransaction(relid);
    }
    flush_if(is_due);
}

/// What other nodes write now, they undo with the subtransaction; the statement that changes the store goes on.
fn refuse_subtransaction(relid: pg_sys::Oid) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!(
            "cannot read {}, which is distributed, in a subtransaction of a statement that changes it",
            table_name(relid)
        ),
        "Read it outside of the block that catches errors, or in a statement before.",
    )
}

/// Writes all changes kept back for a store: the command that made them ends.
pub fn finish(relid: pg_sys::Oid) {
    flush_if(|p| p.relid == relid);
}

/// The innermost executor run ends without error: its changes are written.
pub fn flush_run() {
    let depth = depth();
    flush_if(|p| p.depth >= depth);
}

/// Writes all changes; a transaction is about to commit.
pub fn flush_all() {
    flush_if(|_| true);
}

fn flush_if(is_due: impl Fn(&Pending<Box<Changes>>) -> bool) {
    for due in PENDING.with(|pending| pending.take_due(is_due)) {
        due.work.write();
    }
}

/// Drops what an aborted subtransaction changed.
pub fn forget_subtransaction(subtransaction: u32) {
    PENDING.with(|pending| pending.forget_subtransaction(subtransaction));
}

/// Drops everything; called when a transaction ends.
pub fn forget_all() {
    PENDING.with(PendingWork::forget_all);
}
