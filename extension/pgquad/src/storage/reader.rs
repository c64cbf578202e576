//! Reading all orders of a table by sorted batches of key ranges.

use super::snapshot::PgSnapshot;
use super::table::{fail, trees_to_read, Table};
use super::{pending, RelationStore};
use crate::ffi;
use pgquad_btree::{Batch, Filter, GroupCursor, Groups, Key, Probe, Span, Tree, Work, SIGN};
use pgrx::pg_sys;

/// The orders of an open table, as one snapshot sees them. Holds no page between calls.
pub struct TableReader {
    trees: Vec<Tree<RelationStore>>,
    orders: Vec<[u8; 4]>,
    snapshot: PgSnapshot,
}

impl TableReader {
    /// A reader of `rel`. Takes the predicate lock of a SERIALIZABLE reader.
    ///
    /// # Safety
    /// `rel` is open and `snapshot` registered (or active) while the reader is used.
    pub unsafe fn new(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            pending::flush((*rel).rd_id);
            if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC {
                ffi::PredicateLockRelation(rel, snapshot);
            }
            let trees = trees_to_read(rel);
            Self {
                orders: trees.iter().map(|tree| tree.order().columns()).collect(),
                trees,
                snapshot: PgSnapshot::new(rel, snapshot),
            }
        }
    }

    /// The column permutations.
    pub fn orders(&self) -> &[[u8; 4]] {
        &self.orders
    }

    /// The place of a column (0 = subject .. 3 = graph) in the keys of an order.
    pub fn place(&self, order: usize, column: usize) -> usize {
        self.trees[order].order().position(column)
    }

    /// About how many entries an order has between two keys (inclusive), visible or not.
    pub fn count(&self, order: usize, low: &Key, high: &Key) -> u64 {
        self.trees[order]
            .range_estimate(low, high)
            .unwrap_or_else(|e| fail(e))
    }

    /// Keys of an order between two keys (inclusive) that the snapshot sees and that pass the filters.
    pub fn count_visible(
        &self,
        order: usize,
        (low, high): (&Key, &Key),
        filters: &[Filter],
        work: &mut Work,
    ) -> u64 {
        self.trees[order]
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
        self.trees[order]
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
                &self.trees[order],
                &self.snapshot,
                filters,
                enough,
                groups,
                work,
            )
            .unwrap_or_else(|e| fail(e))
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
                &self.trees[order],
                &self.snapshot,
                ranges,
                enough,
                batch,
                spans,
            )
            .unwrap_or_else(|e| fail(e))
    }
}

/// Number of quads matching `key` (NULL = any) that the current snapshot sees, from the smallest range that an order has for them.
///
/// # Safety
/// `rel` is an open quad table; a snapshot is active.
pub unsafe fn count_matching(rel: pg_sys::Relation, key: [Option<i64>; 4]) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let table = Table::open(rel);
        let order = table.best_order(key);
        let (low, high) = table.bounds(order, key);
        let reader = TableReader::new(rel, pg_sys::GetActiveSnapshot());
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
        reader.count_visible(order, (&low, &high), &filters, &mut Work::default())
    }
}
