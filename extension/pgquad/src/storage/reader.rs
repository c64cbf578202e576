//! Reading all orders of a table of this node by sorted batches of key ranges.

use super::buffers::RelationStore;
use super::error::fail;
use super::inner_page_cache::ReadTrees;
use super::pending;
use super::snapshot::{is_serializable, PgSnapshot};
use super::trees::trees_to_read;
use crate::pg::ffi;
use pgquad_btree::{
    Batch, Filter, GroupCursor, Groups, Key, Order, Probe, Span, Tree, Work, ALL_COLUMNS, KEY_MAX,
    KEY_MIN,
};
use pgrx::pg_sys;
use std::rc::Rc;

/// The orders of an open table, as one snapshot sees them. Holds no page between calls.
pub struct LocalReader {
    read: Rc<ReadTrees>,
    snapshot: PgSnapshot,
}

impl LocalReader {
    /// A reader of `rel`. Takes the predicate lock of a SERIALIZABLE reader.
    ///
    /// # Safety
    /// `rel` is open and `snapshot` registered (or active) while the reader is used.
    pub unsafe fn new(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            pending::flush((*rel).rd_id);
            let is_mvcc = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC;
            if is_serializable() && is_mvcc {
                ffi::PredicateLockRelation(rel, snapshot);
            }
            Self {
                read: trees_to_read(rel),
                snapshot: PgSnapshot::new(rel, snapshot),
            }
        }
    }

    /// The orders.
    pub fn orders(&self) -> &[Order] {
        &self.read.orders
    }

    fn tree(&self, order: usize) -> &Tree<RelationStore> {
        &self.read.trees[order]
    }

    /// An order will be read soon, first at this key.
    pub fn expect(&self, order: usize, key: &Key) {
        self.tree(order).expect(key).unwrap_or_else(|e| fail(e));
    }

    /// The place of a column (0 = subject .. 3 = graph) in the keys of an order.
    pub fn place(&self, order: usize, column: usize) -> usize {
        self.tree(order).order().position(column)
    }

    /// About how many entries an order has between two keys (inclusive), visible or not.
    pub fn count(&self, order: usize, low: &Key, high: &Key) -> u64 {
        self.tree(order)
            .range_estimate(low, high)
            .unwrap_or_else(|e| fail(e))
    }

    /// The same for many ranges at once, best ascending.
    pub fn counts(&self, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        let mut counts = vec![0; ranges.len()];
        self.tree(order)
            .range_estimates(ranges, |n, count| counts[n] = count)
            .unwrap_or_else(|e| fail(e));
        counts
    }

    /// Keys of an order between two keys (inclusive) that the snapshot sees and that pass the filters.
    pub fn count_visible(
        &self,
        order: usize,
        (low, high): (&Key, &Key),
        filters: &[Filter],
        work: &mut Work,
    ) -> u64 {
        self.tree(order)
            .count_visible(low, high, filters, &self.snapshot, work)
            .unwrap_or_else(|e| fail(e))
    }

    /// The values of a key column between two keys (inclusive), with numbers of keys: [`Tree::column_values`].
    pub fn values(
        &self,
        order: usize,
        range: (&Key, &Key),
        column: usize,
        filters: &[Filter],
        work: &mut Work,
        each: impl FnMut(u64, u64),
    ) {
        self.tree(order)
            .column_values(range, column, filters, &self.snapshot, work, each)
            .unwrap_or_else(|e| fail(e))
    }

    /// Reads on in a loose scan of an order: [`GroupCursor::next_batch`].
    pub fn groups(
        &self,
        order: usize,
        cursor: &mut GroupCursor,
        filters: &[Filter],
        enough: usize,
        groups: &mut Groups,
        work: &mut Work,
    ) -> bool {
        cursor
            .next_batch(
                self.tree(order),
                &self.snapshot,
                filters,
                enough,
                groups,
                work,
            )
            .unwrap_or_else(|e| fail(e))
    }

    /// As [`Self::read`], with rows added to those of the batch: [`Probe::append`].
    pub fn append(
        &self,
        order: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        probe
            .append(
                self.tree(order),
                &self.snapshot,
                ranges,
                enough,
                batch,
                spans,
            )
            .unwrap_or_else(|e| fail(e))
    }

    /// Whether the snapshot sees some quad, if there are any.
    pub fn sees_some(&self) -> bool {
        let (mut batch, mut spans) = (Batch::new(), Vec::new());
        let all = [(KEY_MIN, KEY_MAX)];
        self.count(0, &KEY_MIN, &KEY_MAX) == 0 || {
            let probe = &mut Probe::new(ALL_COLUMNS);
            self.read(0, probe, &all, 1, &mut batch, &mut spans);
            !batch.is_empty()
        }
    }

    /// Reads on in sorted ranges of an order: [`Probe::read`].
    pub fn read(
        &self,
        order: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        probe
            .read(
                self.tree(order),
                &self.snapshot,
                ranges,
                enough,
                batch,
                spans,
            )
            .unwrap_or_else(|e| fail(e))
    }
}
