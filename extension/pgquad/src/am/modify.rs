//! INSERT, COPY, DELETE, UPDATE, row locks and refetching by row identity.

use super::scan::store_quad;
use super::{refuse, shape, tid};
use crate::catalog::distributed_store::sides_of;
use crate::cluster::protocol::damaged;
use crate::cluster::write::{self, Changes};
use crate::pg::error::{raise, raise_hint};
use crate::pg::{compat, ffi};
use crate::rights::notes;
use crate::storage::{pending::flush_earlier, stop_points, Deleted, PgSnapshot, Table};
use crate::table::pending;
use pgquad_btree::{Quad, FROZEN_XID};
use pgquad_cluster::quad_batches;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

/// The quad in a slot; NULLs are refused here for tables made by CREATE TABLE AS, whose columns cannot be declared NOT
/// NULL.
///
/// # Safety
/// `slot` holds a row of `rel`.
unsafe fn quad_of(rel: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) -> Quad {
    // SAFETY: the caller's promise.
    unsafe {
        if (*slot).tts_nvalid < 4 {
            pg_sys::slot_getsomeattrs_int(slot, 4);
        }
        std::array::from_fn(|i| {
            if *(*slot).tts_isnull.add(i) {
                let (column, table) = (shape::COLUMNS[i], shape::relation_name(rel));
                raise_hint(
                    PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION,
                    format!("null value in column \"{column}\" of quad table \"{table}\""),
                    "The default graph is 0, not NULL.",
                );
            }
            (*(*slot).tts_values.add(i)).value() as i64
        })
    }
}

/// The quads that a row of a shard stands for with its column [`shape::QUADS`]; `None` for a row that is a quad. An
/// empty list: the shard has got all quads of the statement.
///
/// # Safety
/// `slot` holds a row of `rel`.
unsafe fn quads_of(rel: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) -> Option<Vec<Quad>> {
    // SAFETY: the caller's promise; the bytes are not kept. No row of a quad table has values out of line.
    unsafe {
        if !shape::has_quads(rel) {
            return None;
        }
        if (*slot).tts_nvalid < 5 {
            pg_sys::slot_getsomeattrs_int(slot, 5);
        }
        let datum = *(*slot).tts_values.add(4);
        let bytes = <&[u8]>::from_datum(datum, *(*slot).tts_isnull.add(4))?;
        let quads = quad_batches::decode(bytes).unwrap_or_else(|e| damaged(e));
        (*slot).tts_tableOid = (*rel).rd_id;
        Some(quads)
    }
}

/// Whether triggers may refetch inserted rows by their identity.
///
/// # Safety
/// `rel` is open.
unsafe fn has_row_triggers(rel: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe { !(*rel).trigdesc.is_null() }
}

/// Makes a slot look inserted and gives its quad.
///
/// # Safety
/// `slot` holds a row of `rel`.
unsafe fn take(rel: pg_sys::Relation, slot: *mut pg_sys::TupleTableSlot) -> Quad {
    // SAFETY: the caller's promise.
    unsafe {
        let quad = quad_of(rel, slot);
        (*slot).tts_tableOid = (*rel).rd_id;
        if has_row_triggers(rel) {
            (*slot).tts_tid = tid::remember(quad);
        }
        quad
    }
}

/// The transaction to insert as.
fn writer(options: core::ffi::c_int) -> u32 {
    // SAFETY: within a transaction that may write.
    unsafe {
        if options & pg_sys::TABLE_INSERT_FROZEN as i32 != 0 {
            // Visible to everybody at once, as COPY FREEZE asks for on a table made by this transaction.
            FROZEN_XID
        } else {
            pg_sys::GetCurrentTransactionId().into_inner()
        }
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn insert(
    rel: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    cid: pg_sys::CommandId,
    options: core::ffi::c_int,
    bistate: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: PostgreSQL passes an open relation and a filled slot.
    unsafe {
        if quads_of(rel, slot).is_some() {
            let mut slots = [slot];
            return multi_insert(rel, slots.as_mut_ptr(), 1, cid, options, bistate);
        }
        let quad = take(rel, slot);
        notes::check_writes(rel, &[quad]);
        let xid = writer(options);
        // Commands that fill a table of their own making say so, and call `finish_bulk_insert` at the end. COPY of
        // single rows does not: `hooks.rs` does it.
        let new_table = options & pg_sys::TABLE_INSERT_SKIP_FSM as i32 != 0;
        if new_table || pending::within_executor() {
            pending::add(rel, &[quad], xid, cid, new_table);
            return;
        }
        if let Some(sides) = sides_of(rel) {
            let mut changes = Changes::new(sides);
            changes.insert(&[quad]);
            changes.write();
        } else {
            let added = Table::open(rel).insert(&mut vec![quad], xid, cid);
            pg_sys::pgstat_count_heap_insert(rel, added as i64);
        }
        ffi::check_readers_of(rel);
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn finish_bulk_insert(
    rel: pg_sys::Relation,
    _options: core::ffi::c_int,
) {
    // SAFETY: PostgreSQL passes an open relation.
    unsafe { pending::finish((*rel).rd_id) }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn multi_insert(
    rel: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    nslots: core::ffi::c_int,
    cid: pg_sys::CommandId,
    options: core::ffi::c_int,
    _bistate: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: PostgreSQL passes `nslots` filled slots.
    unsafe {
        let slots = std::slice::from_raw_parts(slots, nslots as usize);
        let xid = writer(options);
        // Every caller (COPY, CREATE TABLE AS ..) ends with `finish_bulk_insert`.
        let add = |quads: &[Quad]| {
            if !quads.is_empty() {
                notes::check_writes(rel, quads);
                pending::add(rel, quads, xid, cid, false);
            }
        };
        let mut single: Vec<Quad> = Vec::new();
        let mut is_complete = false;
        for &slot in slots {
            match quads_of(rel, slot) {
                // Rows that are many quads go on one by one: together they may be a whole shard.
                Some(many) => {
                    is_complete |= many.is_empty();
                    add(&many);
                }
                None => single.push(take(rel, slot)),
            }
        }
        add(&single);
        if is_complete {
            pending::flush((*rel).rd_id);
        }
    }
}

/// The quad a row identity stands for.
fn recall(tid: &pg_sys::ItemPointerData) -> Quad {
    tid::recall(tid).unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "row identity of a quad table is not known in this transaction",
            "A ctid of a quad table is valid only within the statement that reads it.",
        )
    })
}

/// # Safety
/// As for the table AM callback `tuple_delete`.
unsafe fn delete_quad(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    cid: u32,
    snapshot: pg_sys::Snapshot,
    wait: bool,
    tmfd: *mut pg_sys::TM_FailureData,
) -> pg_sys::TM_Result::Type {
    // SAFETY: the caller's promise.
    unsafe {
        let quad = recall(&*tid);
        if let Some(sides) = sides_of(rel) {
            if pending::delete_elsewhere((*rel).rd_id, sides, quad, cid) {
                pg_sys::pgstat_count_heap_delete(rel);
                return pg_sys::TM_Result::TM_Ok;
            }
            return by_this_command(tid, cid, tmfd);
        }
        let xid = pg_sys::GetCurrentTransactionId().into_inner();
        flush_earlier((*rel).rd_id, cid);
        let table = Table::open(rel);
        let view = PgSnapshot::new(rel, snapshot);
        loop {
            match table.delete(&quad, xid, cid, &view) {
                Deleted::Done => {
                    ffi::check_readers_of(rel);
                    pg_sys::pgstat_count_heap_delete(rel);
                    // A look at the descriptor: this is done for each row.
                    if shape::has_quads(rel) {
                        write::note_marked(table.marked(&quad, xid, cid));
                    }
                    return pg_sys::TM_Result::TM_Ok;
                }
                other => {
                    if let Some(result) = conflict(rel, tid, other, wait, tmfd) {
                        return result;
                    }
                }
            }
        }
    }
}

/// Reports a deletion by this transaction, in the command `cmax`.
///
/// # Safety
/// As for the table AM callbacks `tuple_delete` and `tuple_lock`.
unsafe fn by_this_command(
    tid: pg_sys::ItemPointer,
    cmax: u32,
    tmfd: *mut pg_sys::TM_FailureData,
) -> pg_sys::TM_Result::Type {
    // SAFETY: the caller's promise.
    unsafe {
        (*tmfd).ctid = *tid;
        (*tmfd).traversed = false;
        (*tmfd).cmax = cmax;
        // By this MERGE knows that it meets a row a second time.
        (*tmfd).xmax = pg_sys::GetCurrentTransactionId();
    }
    pg_sys::TM_Result::TM_SelfModified
}

/// Reports or waits out what stands against a deletion or lock; `None` = try again.
///
/// # Safety
/// As for the table AM callbacks `tuple_delete` and `tuple_lock`.
unsafe fn conflict(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    found: Deleted,
    wait: bool,
    tmfd: *mut pg_sys::TM_FailureData,
) -> Option<pg_sys::TM_Result::Type> {
    // SAFETY: the caller's promise.
    unsafe {
        (*tmfd).ctid = *tid;
        (*tmfd).traversed = false;
        (*tmfd).xmax = pg_sys::InvalidTransactionId;
        (*tmfd).cmax = 0;
        match found {
            Deleted::Done => Some(pg_sys::TM_Result::TM_Ok),
            Deleted::NotVisible => Some(pg_sys::TM_Result::TM_Invisible),
            Deleted::BySelf { cmax } => Some(by_this_command(tid, cmax, tmfd)),
            Deleted::Committed { xid } => {
                (*tmfd).xmax = pg_sys::TransactionId::from(xid);
                Some(pg_sys::TM_Result::TM_Deleted)
            }
            Deleted::InProgress { xid } => {
                (*tmfd).xmax = pg_sys::TransactionId::from(xid);
                if !wait {
                    return Some(pg_sys::TM_Result::TM_BeingModified);
                }
                stop_points::reach("delete-before-wait");
                pg_sys::XactLockTableWait(
                    pg_sys::TransactionId::from(xid),
                    rel,
                    tid,
                    pg_sys::XLTW_Oper::XLTW_Delete,
                );
                None
            }
        }
    }
}

#[pg_guard]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C-unwind" fn delete(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    cid: pg_sys::CommandId,
    snapshot: pg_sys::Snapshot,
    _crosscheck: pg_sys::Snapshot,
    wait: bool,
    tmfd: *mut pg_sys::TM_FailureData,
    _changing_part: bool,
) -> pg_sys::TM_Result::Type {
    // SAFETY: PostgreSQL passes an open relation, a row identity of this statement and a valid snapshot.
    unsafe { delete_quad(rel, tid, cid, snapshot, wait, tmfd) }
}

/// An update is a deletion and an insertion: the row has no identity that could outlive its columns.
#[pg_guard]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C-unwind" fn update(
    rel: pg_sys::Relation,
    otid: pg_sys::ItemPointer,
    slot: *mut pg_sys::TupleTableSlot,
    cid: pg_sys::CommandId,
    snapshot: pg_sys::Snapshot,
    _crosscheck: pg_sys::Snapshot,
    wait: bool,
    tmfd: *mut pg_sys::TM_FailureData,
    lockmode: *mut pg_sys::LockTupleMode::Type,
    update_indexes: *mut compat::UpdateIndexes,
) -> pg_sys::TM_Result::Type {
    // SAFETY: PostgreSQL passes an open relation, a row identity of this statement, the new row and a valid snapshot.
    unsafe {
        *lockmode = pg_sys::LockTupleMode::LockTupleExclusive;
        *update_indexes = compat::UPDATE_NO_INDEX;
        let result = delete_quad(rel, otid, cid, snapshot, wait, tmfd);
        if result == pg_sys::TM_Result::TM_Ok {
            let quad = take(rel, slot);
            let xid = writer(0);
            if sides_of(rel).is_some() {
                pending::add(rel, &[quad], xid, cid, false);
            } else {
                Table::open(rel).insert_updated(&mut vec![quad], xid, cid);
                ffi::check_readers_of(rel);
            }
            compat::count_update(rel);
        }
        result
    }
}

/// Row locks are exclusive ones: `FOR SHARE` and the key locks wait as `FOR UPDATE` does.
#[pg_guard]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C-unwind" fn lock(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    cid: pg_sys::CommandId,
    _mode: pg_sys::LockTupleMode::Type,
    policy: pg_sys::LockWaitPolicy::Type,
    _flags: pg_sys::uint8,
    tmfd: *mut pg_sys::TM_FailureData,
) -> pg_sys::TM_Result::Type {
    // SAFETY: PostgreSQL passes an open relation, a row identity of this statement and a valid snapshot.
    unsafe {
        let quad = recall(&*tid);
        if sides_of(rel).is_some() {
            raise_hint(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!(
                    "rows of distributed store \"{}\" cannot be locked",
                    shape::relation_name(rel)
                ),
                "Lock the relation instead (LOCK TABLE), or use an advisory lock. Both are of one node of a cluster.",
            );
        }
        let xid = pg_sys::GetCurrentTransactionId().into_inner();
        pending::flush((*rel).rd_id);
        let table = Table::open(rel);
        let view = PgSnapshot::new(rel, snapshot);
        let result = loop {
            let found = table.lock(&quad, xid, cid, &view);
            if let Deleted::InProgress { xid: other } = found {
                let other = pg_sys::TransactionId::from(other);
                match policy {
                    pg_sys::LockWaitPolicy::LockWaitBlock => {}
                    pg_sys::LockWaitPolicy::LockWaitSkip => {
                        if !pg_sys::ConditionalXactLockTableWait(other) {
                            break pg_sys::TM_Result::TM_WouldBlock;
                        }
                        continue;
                    }
                    _ => {
                        if !pg_sys::ConditionalXactLockTableWait(other) {
                            raise(
                                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                                format!(
                                    "could not obtain lock on row in relation \"{}\"",
                                    shape::relation_name(rel)
                                ),
                            );
                        }
                        continue;
                    }
                }
            }
            if let Some(result) = conflict(rel, tid, found, true, tmfd) {
                break result;
            }
        };
        if result == pg_sys::TM_Result::TM_Ok {
            fill(rel, slot, quad, *tid);
        }
        result
    }
}

/// Puts the quad and its identity into a slot.
///
/// # Safety
/// `slot` is a virtual slot of `rel`.
unsafe fn fill(
    rel: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    quad: Quad,
    tid: pg_sys::ItemPointerData,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            clear(slot);
        }
        store_quad(slot, quad);
        (*slot).tts_tid = tid;
        (*slot).tts_tableOid = (*rel).rd_id;
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn fetch_row_version(
    rel: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: PostgreSQL passes an open relation, a row identity and a valid snapshot.
    unsafe {
        let quad = recall(&*tid);
        // SnapshotAny asks for the row as it was, whatever became of it since: the identity itself holds all of it. So
        // it does for a distributed store, where this very statement has read the row and goes on collecting changes.
        let any = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_ANY;
        if sides_of(rel).is_none() {
            pending::flush((*rel).rd_id);
            if !any && !Table::open(rel).exists(&quad, &PgSnapshot::new(rel, snapshot)) {
                return false;
            }
        }
        fill(rel, slot, quad, *tid);
        true
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn satisfies_snapshot(
    rel: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: PostgreSQL passes a filled slot and a valid snapshot.
    unsafe {
        if sides_of(rel).is_some() {
            return true;
        }
        pending::flush((*rel).rd_id);
        Table::open(rel).exists(&quad_of(rel, slot), &PgSnapshot::new(rel, snapshot))
    }
}

/// Asked for `WHERE CURRENT OF`; conditions on `ctid` are refused when a query is planned.
#[pg_guard]
pub unsafe extern "C-unwind" fn tid_valid(
    _scan: pg_sys::TableScanDesc,
    tid: pg_sys::ItemPointer,
) -> bool {
    // SAFETY: PostgreSQL passes a row identity.
    if unsafe { tid::recall(&*tid) }.is_none() {
        refuse::no_current_row();
    }
    true
}

/// A quad never changes in place, so an identity is its own latest.
#[pg_guard]
pub unsafe extern "C-unwind" fn get_latest_tid(
    _scan: pg_sys::TableScanDesc,
    _tid: pg_sys::ItemPointer,
) {
}
