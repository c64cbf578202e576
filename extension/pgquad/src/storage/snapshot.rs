//! Visibility: PostgreSQL's snapshots and transaction status behind the traits of the tree crate.
//! The rules are those of `access/heap/heapam_visibility.c`.

use crate::pg::ffi;
use pgquad_btree::{Snapshot, TxnStatus, XidStatus, FROZEN_XID};
use pgrx::pg_sys;
use std::cell::Cell;

const FIRST_NORMAL: u32 = 3;

fn xid(value: u32) -> pg_sys::TransactionId {
    pg_sys::TransactionId::from(value)
}

/// Whether the transaction is SERIALIZABLE.
pub fn is_serializable() -> bool {
    // SAFETY: plain session state.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 }
}

/// Whether all statements of the transaction see the same snapshot (`IsolationUsesXactSnapshot`).
pub fn has_transaction_snapshot() -> bool {
    // SAFETY: plain session state.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// What a PostgreSQL snapshot sees.
pub struct PgSnapshot {
    snapshot: pg_sys::Snapshot,
    kind: pg_sys::SnapshotType::Type,
    curcid: u32,
    /// Set when SERIALIZABLE needs to hear of versions that are not seen.
    conflicts: Option<pg_sys::Relation>,
    last_insert: Cell<(u32, bool)>,
    last_delete: Cell<(u32, bool)>,
}

impl PgSnapshot {
    /// What `snapshot` sees of `rel`.
    ///
    /// # Safety
    /// `snapshot` is valid and registered or active while the value lives, and so is `rel` open.
    pub unsafe fn new(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            // The setting is looked at first: the call costs more than the look, and a statement may open many shards.
            let conflicts = (is_serializable()
                && (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
                && ffi::CheckForSerializableConflictOutNeeded(rel, snapshot))
            .then_some(rel);
            Self {
                snapshot,
                kind: (*snapshot).snapshot_type,
                curcid: (*snapshot).curcid,
                conflicts,
                last_insert: Cell::new((0, false)),
                last_delete: Cell::new((0, false)),
            }
        }
    }

    /// The view of a statement that adds quads: the statement's snapshot plus everything this transaction wrote so far,
    /// this command included. So a quad given twice in one command is added once.
    ///
    /// # Safety
    /// As for [`PgSnapshot::new`].
    pub unsafe fn for_insert(snapshot: pg_sys::Snapshot) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                snapshot,
                kind: (*snapshot).snapshot_type,
                curcid: u32::MAX,
                conflicts: None,
                last_insert: Cell::new((0, false)),
                last_delete: Cell::new((0, false)),
            }
        }
    }

    /// Whether this snapshot sees what transaction `x` did, for a transaction that is not this one.
    fn sees_other(&self, x: u32) -> bool {
        // SAFETY: the snapshot is valid; transaction status calls are always allowed.
        unsafe {
            match self.kind {
                pg_sys::SnapshotType::SNAPSHOT_MVCC => {
                    !pg_sys::XidInMVCCSnapshot(xid(x), self.snapshot)
                        && pg_sys::TransactionIdDidCommit(xid(x))
                }
                _ => {
                    !pg_sys::TransactionIdIsInProgress(xid(x))
                        && pg_sys::TransactionIdDidCommit(xid(x))
                }
            }
        }
    }

    /// Takes the predicate lock of a SERIALIZABLE transaction that has read the relation.
    ///
    /// # Safety
    /// `rel` is open.
    pub unsafe fn lock_relation(&self, rel: pg_sys::Relation) {
        if is_serializable() {
            // SAFETY: the caller's promise; the snapshot is valid while `self` lives.
            unsafe { ffi::PredicateLockRelation(rel, self.snapshot) }
        }
    }

    fn report_unseen(&self, x: u32) {
        if let Some(rel) = self.conflicts {
            // SAFETY: relation and snapshot are valid while `self` lives.
            unsafe { ffi::CheckForSerializableConflictOut(rel, xid(x), self.snapshot) }
        }
    }
}

impl Snapshot for PgSnapshot {
    fn sees_insert(&self, xmin: u32, cmin: u32) -> bool {
        if xmin < FIRST_NORMAL {
            return xmin != 0;
        }
        if self.kind == pg_sys::SnapshotType::SNAPSHOT_ANY {
            return true;
        }
        let (last, seen) = self.last_insert.get();
        if last == xmin {
            return seen;
        }
        // SAFETY: a status call.
        if unsafe { pg_sys::TransactionIdIsCurrentTransactionId(xid(xmin)) } {
            return self.kind != pg_sys::SnapshotType::SNAPSHOT_MVCC || cmin < self.curcid;
        }
        let mut seen = self.sees_other(xmin);
        if !seen && self.kind == pg_sys::SnapshotType::SNAPSHOT_DIRTY {
            // SAFETY: a status call.
            seen = unsafe { pg_sys::TransactionIdIsInProgress(xid(xmin)) };
        }
        if !seen {
            self.report_unseen(xmin);
        }
        self.last_insert.set((xmin, seen));
        seen
    }

    fn is_of_statement(&self) -> bool {
        !has_transaction_snapshot()
    }

    fn sees_delete(&self, xmax: u32, cmax: u32) -> bool {
        if xmax < FIRST_NORMAL {
            return xmax == FROZEN_XID;
        }
        if self.kind == pg_sys::SnapshotType::SNAPSHOT_ANY {
            return false;
        }
        let (last, seen) = self.last_delete.get();
        if last == xmax {
            return seen;
        }
        // SAFETY: a status call.
        if unsafe { pg_sys::TransactionIdIsCurrentTransactionId(xid(xmax)) } {
            return self.kind != pg_sys::SnapshotType::SNAPSHOT_MVCC || cmax < self.curcid;
        }
        let seen = self.sees_other(xmax);
        if !seen {
            self.report_unseen(xmax);
        }
        self.last_delete.set((xmax, seen));
        seen
    }
}

/// Transaction status as of now, and the horizon below which everybody sees the same.
pub struct PgStatus {
    horizon: *mut pg_sys::GlobalVisState,
    /// Everybody sees the same below this transaction too, 0 = none.
    own_horizon: u32,
    last_visible: Cell<u32>,
}

impl PgStatus {
    /// The status for versions of `rel`.
    ///
    /// # Safety
    /// `rel` is open.
    pub unsafe fn new(rel: pg_sys::Relation) -> Self {
        Self {
            // SAFETY: the caller's promise; the state is a static of PostgreSQL's.
            horizon: unsafe { pg_sys::GlobalVisTestFor(rel) },
            own_horizon: 0,
            last_visible: Cell::new(0),
        }
    }

    /// Sets a horizon that may be later than PostgreSQL's. Who has an older snapshot does not read the relation
    /// with it.
    pub fn set_horizon(&mut self, xid: pg_sys::TransactionId) {
        self.own_horizon = xid.into_inner();
    }
}

impl TxnStatus for PgStatus {
    fn status(&self, x: u32) -> XidStatus {
        if x < FIRST_NORMAL {
            return XidStatus::Committed;
        }
        // SAFETY: status calls, in the order heap asks them (in progress before committed).
        unsafe {
            if pg_sys::TransactionIdIsCurrentTransactionId(xid(x)) {
                XidStatus::Own
            } else if pg_sys::TransactionIdIsInProgress(xid(x)) {
                XidStatus::InProgress
            } else if pg_sys::TransactionIdDidCommit(xid(x)) {
                XidStatus::Committed
            } else {
                XidStatus::Aborted
            }
        }
    }

    fn all_visible(&self, x: u32) -> bool {
        if x < FIRST_NORMAL || self.last_visible.get() == x {
            return true;
        }
        let visible = self.own_horizon != 0 && self.precedes(x, self.own_horizon)
            // SAFETY: `horizon` is a static of PostgreSQL's.
            || unsafe { pg_sys::GlobalVisTestIsRemovableXid(self.horizon, xid(x)) };
        if visible {
            self.last_visible.set(x);
        }
        visible
    }

    fn precedes(&self, a: u32, b: u32) -> bool {
        // SAFETY: pure arithmetic.
        unsafe { pg_sys::TransactionIdPrecedes(xid(a), xid(b)) }
    }
}

/// Sees every version that is not marked deleted.
pub struct Everything;

impl Snapshot for Everything {
    fn sees_insert(&self, _xmin: u32, _cmin: u32) -> bool {
        true
    }

    fn sees_delete(&self, _xmax: u32, _cmax: u32) -> bool {
        true
    }
}
