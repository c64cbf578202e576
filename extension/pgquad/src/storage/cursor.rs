//! Ordered reading of one order of a table.

use super::snapshot::PgSnapshot;
use super::table::{fail, tree_to_read};
use super::{pending, RelationStore};
use crate::ffi;
use pgquad_btree::{Batch, Cursor, Direction, Key, Order, Tree, KEY_MAX, KEY_MIN};
use pgrx::pg_sys;

/// A scan of key ranges in one order, as one snapshot sees them. Holds no page between calls.
pub struct OrderCursor {
    tree: Tree<RelationStore>,
    snapshot: PgSnapshot,
    cursor: Cursor,
    active: bool,
    batch: Batch,
}

impl OrderCursor {
    /// A cursor over order number `order` of a table. Takes the predicate lock of a SERIALIZABLE reader.
    ///
    /// # Safety
    /// `rel` is open and `snapshot` registered (or active) while the cursor is used.
    pub unsafe fn new(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot, order: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            pending::flush((*rel).rd_id);
            if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC {
                ffi::PredicateLockRelation(rel, snapshot);
            }
            Self {
                tree: tree_to_read(rel, order),
                snapshot: PgSnapshot::new(rel, snapshot),
                cursor: Cursor::new(KEY_MIN, KEY_MAX, Direction::Forward),
                active: false,
                batch: Batch::new(),
            }
        }
    }

    /// The order that is read.
    pub fn order(&self) -> Order {
        self.tree.order()
    }

    /// Reads only these columns (bit `i` = column `i` of the order) from now on.
    pub fn set_columns(&mut self, mask: u8) {
        self.cursor.set_columns(mask);
    }

    /// Starts a range, both bounds included; [`Self::next_batch`] reads it forward.
    pub fn seek(&mut self, low: Key, high: Key) {
        self.cursor.seek(low, high, Direction::Forward);
        self.active = true;
    }

    /// Starts a range, both bounds included; [`Self::previous_batch`] reads it from its end.
    pub fn seek_last(&mut self, low: Key, high: Key) {
        self.cursor.seek(low, high, Direction::Backward);
        self.active = true;
    }

    /// Reads the visible keys of the next leaf of the range into [`Self::batch`]; false at the end.
    pub fn advance(&mut self) -> bool {
        self.active = self.active
            && self
                .cursor
                .next_batch(&self.tree, &self.snapshot, &mut self.batch)
                .unwrap_or_else(|e| fail(e));
        if !self.active {
            self.batch.clear(pgquad_btree::ALL_COLUMNS);
        }
        self.active
    }

    /// What [`Self::advance`] read, as columns in the order of the tree.
    #[inline]
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Appends the visible keys of the next leaf of the range, ascending; false at the end.
    pub fn next_batch(&mut self, out: &mut Vec<Key>) -> bool {
        let more = self.advance();
        out.extend((0..self.batch.len()).map(|i| self.batch.key(i)));
        more
    }

    /// Appends the visible keys of the previous leaf of the range, ascending too; false at the start.
    pub fn previous_batch(&mut self, out: &mut Vec<Key>) -> bool {
        let more = self.advance();
        out.extend((0..self.batch.len()).rev().map(|i| self.batch.key(i)));
        more
    }

    /// Ends the range before its end.
    pub fn finish_range(&mut self) {
        self.active = false;
    }

    /// Gives memory back; the cursor is not used again.
    pub fn close(&mut self) {
        self.active = false;
        self.batch = Batch::default();
    }
}
