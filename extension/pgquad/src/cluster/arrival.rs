//! Shards that have been moved after the snapshot of a statement was taken. Where they are is known by the latest state
//! of the catalogue, so that a statement may well be led to one.

use pgrx::{pg_sys, PgSqlErrorCode};

use super::map;
use crate::am::shape;
use crate::pg::error::raise_hint;
use crate::storage::{has_transaction_snapshot, LocalReader};

/// Whether a snapshot does not see that a shard is where it is: `arrived` is one of [`map::Table::arrived`].
///
/// # Safety
/// `snapshot` is registered or active.
pub unsafe fn is_late(arrived: u32, snapshot: pg_sys::Snapshot) -> bool {
    let arrived = pg_sys::TransactionId::from(arrived);
    // SAFETY: the caller's promise; status calls.
    unsafe {
        arrived != pg_sys::InvalidTransactionId
            && (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
            && !pg_sys::TransactionIdPrecedes(arrived, (*snapshot).xmin)
            && !pg_sys::TransactionIdIsCurrentTransactionId(arrived)
            && pg_sys::XidInMVCCSnapshot(arrived, snapshot)
    }
}

fn refuse(shard: &str) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        format!("{shard} has been moved after the snapshot of the statement was taken"),
        "Run it again, in a new transaction.",
    )
}

/// Refuses to write to a shard that has been moved since a REPEATABLE READ or SERIALIZABLE transaction took its
/// snapshot. That snapshot may not see what has been copied. Statements of other transactions have taken theirs after
/// the move.
pub fn check_write(table: &map::Table, shard: usize) {
    // SAFETY: in a transaction, whose snapshot is one and the same; it is looked at at once.
    let is_late = unsafe {
        has_transaction_snapshot()
            && is_late(table.arrived[shard], pg_sys::GetTransactionSnapshot())
    };
    if is_late {
        refuse(&format!("shard {}", table.placement.shards()[shard].id));
    }
}

/// Whether a shard is not one that a query would take for empty because Citus has copied its rows here after the
/// snapshot was taken.
///
/// # Safety
/// As [`check_read`].
pub unsafe fn is_readable(arrived: u32, snapshot: pg_sys::Snapshot, reader: &LocalReader) -> bool {
    // SAFETY: the caller's promise.
    unsafe { !is_late(arrived, snapshot) || reader.sees_some() }
}

/// Raises an error where a query would take a shard for empty because Citus has copied its rows here after the snapshot
/// was taken. What arrives as sorted runs ([`super::moves`]) is visible to every snapshot.
///
/// # Safety
/// `rel` is an open shard, of which `arrived` is [`map::Table::arrived`]; `snapshot` is registered or active.
pub unsafe fn check_read(
    rel: pg_sys::Relation,
    arrived: u32,
    snapshot: pg_sys::Snapshot,
    reader: &LocalReader,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if !is_readable(arrived, snapshot, reader) {
            refuse(&format!("shard \"{}\"", shape::relation_name(rel)));
        }
    }
}
