//! Reading all orders of a table by sorted batches of key ranges, wherever its quads are.

use super::pending;
use crate::catalog::distributed_store::sides_of;
use crate::cluster::groups::ShardedGroups;
use crate::cluster::ShardedReader;
use crate::storage::{range_for, LocalReader};
use pgquad_btree::{Batch, Filter, GroupCursor, Groups, Key, Order, Span, Work, SIGN};
use pgquad_cluster::{Reading, Traffic};
use pgrx::pg_sys;

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
            match sides_of(rel) {
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
    pub fn orders(&self) -> &[Order] {
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

    /// Whether a range of an order is counted without asking other nodes.
    pub fn is_counted_here(&self, order: usize, range: &(Key, Key)) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Sharded(sharded) => sharded.is_counted_here(order, range),
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

    /// How many groups a loose scan finds, and how many keys they have, where that takes less than to read them: where
    /// each node can count its own.
    pub fn count_groups(
        &self,
        order: usize,
        range: (Key, Key),
        (depth, counting): (usize, bool),
        filters: &[Filter],
    ) -> Option<[u64; 2]> {
        match self {
            Self::Local(_) => None,
            Self::Sharded(sharded) => {
                sharded.count_groups(order, range, (depth, counting), filters)
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
        let columns = reader.orders()[order].columns().into_iter().enumerate();
        // What the range does not say already.
        let filters: Vec<Filter> = columns
            .filter(|&(place, _)| low[place] != high[place])
            .filter_map(|(place, column)| {
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
