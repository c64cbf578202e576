//! Reading all orders of a table by sorted batches of key ranges.

use super::snapshot::{is_serializable, PgSnapshot};
use super::table::{fail, trees_to_read, ReadTrees};
use super::{pending, RelationStore};
use crate::cluster::groups::ShardedGroups;
use crate::cluster::{store, ShardedReader};
use crate::pg::ffi;
use pgquad_btree::{
    prefix_range, Batch, Filter, GroupCursor, Groups, Key, Probe, Span, Tree, Work, ALL_COLUMNS,
    KEY_MAX, KEY_MIN, SIGN,
};
use pgquad_cluster::{Reading, Traffic};
use pgrx::pg_sys;
use std::rc::Rc;

/// The orders of a table that a node reads, wherever its quads are.
pub enum TableReader {
    /// The table itself has them.
    Local(LocalReader),
    /// They are in the shards of a distributed store.
    Sharded(Box<ShardedReader>),
}

/// Progress of a loose scan.
pub enum GroupScan {
    /// In a table.
    Tree(GroupCursor),
    /// In the shards of a distributed store.
    Shards(ShardedGroups),
}

impl TableReader {
    /// A reader of `rel`. Takes the predicate lock of a SERIALIZABLE reader.
    ///
    /// # Safety
    /// `rel` is open and `snapshot` registered (or active) while the reader is used.
    pub unsafe fn new(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match store::sides_of(rel) {
                Some(sides) => {
                    pending::flush((*rel).rd_id);
                    Self::Sharded(Box::new(ShardedReader::new(sides, snapshot)))
                }
                None => Self::Local(LocalReader::new(rel, snapshot)),
            }
        }
    }

    /// The column permutations.
    #[inline]
    pub fn orders(&self) -> &[[u8; 4]] {
        match self {
            Self::Local(local) => local.orders(),
            Self::Sharded(sharded) => sharded.orders(),
        }
    }

    /// The place of a column (0 = subject .. 3 = graph) in the keys of an order.
    #[inline]
    pub fn place(&self, order: usize, column: usize) -> usize {
        match self {
            Self::Local(local) => local.place(order, column),
            Self::Sharded(sharded) => sharded.place(order, column),
        }
    }

    /// Counts ranges of orders ahead, so that [`Self::counts`] of them needs no further message.
    pub fn count_ahead(&self, wanted: &[(usize, Key, Key)]) {
        if let Self::Sharded(sharded) = self {
            sharded.estimates(wanted);
        }
    }

    /// Ranges of orders that will be read soon: those on other nodes need no message of their own then.
    pub fn read_ahead(&self, order: usize, ranges: &[(Key, Key)]) {
        if let Self::Sharded(sharded) = self {
            sharded.read_ahead(order, ranges);
        }
    }

    /// Whether some quads are on other nodes.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::Sharded(sharded) => sharded.is_remote(),
        }
    }

    /// What has gone over the wire.
    pub fn traffic(&self) -> Traffic {
        match self {
            Self::Local(_) => Traffic::default(),
            Self::Sharded(sharded) => sharded.traffic(),
        }
    }

    /// Whether the quads of a range come in the order of their keys.
    pub fn ranges_are_sorted(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// About how many entries an order has between two keys (inclusive), visible or not.
    pub fn count(&self, order: usize, low: &Key, high: &Key) -> u64 {
        match self {
            Self::Local(local) => local.count(order, low, high),
            Self::Sharded(sharded) => sharded.count(order, low, high),
        }
    }

    /// The same for many ranges at once.
    pub fn counts(&self, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        match self {
            Self::Local(local) => local.counts(order, ranges),
            Self::Sharded(sharded) => sharded.counts(order, ranges),
        }
    }

    /// Keys of an order between two keys (inclusive) that the snapshot sees and that pass the filters.
    pub fn count_visible(
        &self,
        order: usize,
        range: (&Key, &Key),
        filters: &[Filter],
        work: &mut Work,
    ) -> u64 {
        match self {
            Self::Local(local) => local.count_visible(order, range, filters, work),
            Self::Sharded(sharded) => sharded.count_visible(order, range, filters, work),
        }
    }

    /// Reads on in sorted ranges of an order: [`Reading::read`].
    #[inline]
    pub fn read(
        &self,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        match self {
            Self::Local(local) => local.read(order, reading.local(), ranges, enough, batch, spans),
            Self::Sharded(sharded) => sharded.read(order, reading, ranges, enough, batch, spans),
        }
    }

    /// A loose scan of the keys between two keys (inclusive) by their first `depth` columns; `counting`: with the
    /// number of keys of each group.
    pub fn group_scan(
        &self,
        order: usize,
        range: (Key, Key),
        (depth, counting): (usize, bool),
        filters: &[Filter],
    ) -> GroupScan {
        match self {
            Self::Local(_) => GroupScan::Tree(GroupCursor::new(range.0, range.1, depth, counting)),
            Self::Sharded(sharded) => {
                GroupScan::Shards(sharded.groups(order, range, (depth, counting), filters))
            }
        }
    }

    /// Reads on in a loose scan of an order: the next groups, about `enough`; false at the end.
    pub fn groups(
        &self,
        order: usize,
        scan: &mut GroupScan,
        filters: &[Filter],
        enough: usize,
        groups: &mut Groups,
        work: &mut Work,
    ) -> bool {
        match (self, scan) {
            (_, GroupScan::Shards(shards)) => shards.next_batch(enough, groups),
            (Self::Local(local), GroupScan::Tree(cursor)) => {
                local.groups(order, cursor, filters, enough, groups, work)
            }
            (Self::Sharded(_), GroupScan::Tree(_)) => crate::pg::error::raise(
                pgrx::PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                "a scan of a table's groups goes on in shards",
            ),
        }
    }

    /// The values of a key column between two keys (inclusive), with numbers of keys; a value may come several times.
    pub fn values(
        &self,
        order: usize,
        range: (&Key, &Key),
        column: usize,
        filters: &[Filter],
        work: &mut Work,
        each: impl FnMut(u64, u64),
    ) {
        match self {
            Self::Local(local) => local.values(order, range, column, filters, work, each),
            Self::Sharded(sharded) => sharded.values(order, range, column, filters, work, each),
        }
    }

    /// The reader of shards, where the quads are in some.
    pub fn sharded(&self) -> Option<&ShardedReader> {
        match self {
            Self::Local(_) => None,
            Self::Sharded(sharded) => Some(sharded),
        }
    }

    /// Lets the reader of shards know who holds them in a join of participants on these groups of nodes.
    pub fn take_part(&mut self, groups: &[i32]) {
        if let Self::Sharded(sharded) = self {
            sharded.take_part(groups);
        }
    }

    /// Closes the shards that were opened; to be called where the node that reads ends.
    pub fn close(&mut self) {
        if let Self::Sharded(sharded) = self {
            sharded.close();
        }
    }
}

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

    /// The column permutations.
    pub fn orders(&self) -> &[[u8; 4]] {
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

/// Number of quads matching `key` (NULL = any) that the current snapshot sees, from the smallest range that an order
/// has for them.
///
/// # Safety
/// `rel` is an open quad table; a snapshot is active.
pub unsafe fn count_matching(rel: pg_sys::Relation, key: [Option<i64>; 4]) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut reader = TableReader::new(rel, pg_sys::GetActiveSnapshot());
        let (order, low, high) = range_for(reader.orders(), key);
        let columns = reader.orders()[order].iter().enumerate();
        // What the range does not say already.
        let filters: Vec<Filter> = columns
            .filter(|&(place, _)| low[place] != high[place])
            .filter_map(|(place, &column)| {
                let value = key[usize::from(column)]? as u64 ^ SIGN;
                Some(Filter {
                    column: place as u8,
                    low: value,
                    high: value,
                    outside: false,
                })
            })
            .collect();
        let count = reader.count_visible(order, (&low, &high), &filters, &mut Work::default());
        reader.close();
        count
    }
}

/// The order that has the most columns of `key` (NULL = any) as a prefix, the first of the best ones, and the range of
/// them.
pub fn range_for(orders: &[[u8; 4]], key: [Option<i64>; 4]) -> (usize, Key, Key) {
    let prefix = |order: usize| -> Vec<u64> {
        let columns = orders[order].iter();
        let values = columns.map_while(|&c| key[usize::from(c)]);
        values.map(|v| v as u64 ^ SIGN).collect()
    };
    let best = (0..orders.len()).rev().max_by_key(|&n| prefix(n).len());
    let order = best.unwrap_or(0);
    let (low, high) = prefix_range(&prefix(order));
    (order, low, high)
}
