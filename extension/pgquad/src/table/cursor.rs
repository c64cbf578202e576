//! Ordered reading of one order of a table.

use super::pending;
use crate::catalog::distributed_store::sides_of;
use crate::cluster::ShardedReader;
use crate::pg::error::raise;
use crate::pg::ffi;
use crate::pg::interrupt::interrupt;
use crate::storage::fail;
use crate::storage::tree_to_read;
use crate::storage::RelationStore;
use crate::storage::{is_serializable, PgSnapshot};
use pgquad_btree::{
    Batch, Cursor, Direction, Key, Order, Span, Tree, ALL_COLUMNS, KEY_MAX, KEY_MIN,
};
use pgquad_cluster::{Reading, Traffic};
use pgrx::{pg_sys, PgSqlErrorCode};

/// A scan of key ranges in one order, as one snapshot sees them. Holds no page between calls. The quads of a
/// distributed store come in no order.
pub struct OrderCursor {
    from: From,
    active: bool,
    batch: Batch,
}

/// Where the quads are. One a scan: the room that the larger kind takes does not matter.
#[allow(clippy::large_enum_variant)]
enum From {
    Tree {
        tree: Tree<RelationStore>,
        snapshot: PgSnapshot,
        cursor: Cursor,
    },
    Shards(Box<Sharded>),
}

/// A scan of the shards of a store.
struct Sharded {
    reader: ShardedReader,
    number: usize,
    columns: u8,
    reading: Reading,
    /// The ranges that are being read.
    ranges: Vec<(Key, Key)>,
    /// Ranges that are read at once, if there are more.
    at_once: usize,
    spans: Vec<Span>,
    /// Rows that the next batch should have.
    enough: usize,
}

/// Rows of the first batch from shards (a LIMIT reads little), and of later ones at most.
const FIRST_ROWS: usize = 100;
const MAX_ROWS: usize = 16 * 1024;
/// Ranges of the first messages to other nodes, and of later ones at most. Ten thousand keys one by one are 6,600
/// messages and 250 ms on three nodes of one machine.
const FIRST_RANGES: usize = 1024;
const MAX_RANGES: usize = 16 * 1024;

impl Sharded {
    /// Starts the first of these ranges, and returns how many.
    fn seek(&mut self, ranges: &[(Key, Key)]) -> usize {
        let count = ranges.len().min(self.at_once);
        if count == self.at_once {
            self.at_once = (self.at_once * 4).min(MAX_RANGES);
        }
        self.ranges.clear();
        self.ranges.extend_from_slice(&ranges[..count]);
        self.reading = Reading::new(self.columns);
        // Most ranges of many have a row or so: the answer is to have room for all.
        self.enough = self.enough.max(2 * count).min(MAX_ROWS);
        count
    }

    /// Reads on; false at the end.
    fn next_batch(&mut self, batch: &mut Batch) -> bool {
        loop {
            interrupt();
            let (reading, spans) = (&mut self.reading, &mut self.spans);
            let (reader, ranges) = (&self.reader, &self.ranges);
            let more = reader.read(self.number, reading, ranges, self.enough, batch, spans);
            self.enough = (self.enough * 4).min(MAX_ROWS);
            if !batch.is_empty() || !more {
                return !batch.is_empty();
            }
        }
    }
}

impl OrderCursor {
    /// Ranges that will be read soon: those on other nodes need no message of their own then.
    pub fn read_ahead(&self, ranges: &[(Key, Key)]) {
        if let From::Shards(sharded) = &self.from {
            sharded.reader.read_ahead(sharded.number, ranges);
        }
    }

    /// Whether some quads are on other nodes.
    pub fn is_remote(&self) -> bool {
        matches!(&self.from, From::Shards(sharded) if sharded.reader.is_remote())
    }

    /// A cursor over order number `order` of a table. Takes the predicate lock of a SERIALIZABLE reader.
    ///
    /// # Safety
    /// `rel` is open and `snapshot` registered (or active) while the cursor is used.
    pub unsafe fn new(rel: pg_sys::Relation, snapshot: pg_sys::Snapshot, order: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            pending::flush((*rel).rd_id);
            if let Some(sides) = sides_of(rel) {
                let sharded = Sharded {
                    reader: ShardedReader::new(sides, snapshot),
                    number: order,
                    columns: ALL_COLUMNS,
                    reading: Reading::new(ALL_COLUMNS),
                    ranges: Vec::new(),
                    at_once: FIRST_RANGES,
                    spans: Vec::new(),
                    enough: FIRST_ROWS,
                };
                return Self {
                    from: From::Shards(Box::new(sharded)),
                    active: false,
                    batch: Batch::new(),
                };
            }
            let is_mvcc = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC;
            if is_serializable() && is_mvcc {
                ffi::PredicateLockRelation(rel, snapshot);
            }
            Self {
                from: From::Tree {
                    tree: tree_to_read(rel, order),
                    snapshot: PgSnapshot::new(rel, snapshot),
                    cursor: Cursor::new(KEY_MIN, KEY_MAX, Direction::Forward),
                },
                active: false,
                batch: Batch::new(),
            }
        }
    }

    /// The order that is read.
    pub fn order(&self) -> Order {
        match &self.from {
            From::Tree { tree, .. } => tree.order(),
            From::Shards(shards) => shards.reader.order(shards.number),
        }
    }

    /// What has gone over the wire, where the quads are in shards.
    pub fn traffic(&self) -> Option<Traffic> {
        match &self.from {
            From::Tree { .. } => None,
            From::Shards(shards) => Some(shards.reader.traffic()),
        }
    }

    /// Reads only these columns (bit `i` = column `i` of the order) from now on.
    pub fn set_columns(&mut self, mask: u8) {
        match &mut self.from {
            From::Tree { cursor, .. } => cursor.set_columns(mask),
            From::Shards(shards) => shards.columns = mask,
        }
    }

    /// Starts a range, both bounds included; [`Self::next_batch`] reads it forward.
    pub fn seek(&mut self, low: Key, high: Key) {
        match &mut self.from {
            From::Tree { cursor, .. } => cursor.seek(low, high, Direction::Forward),
            From::Shards(shards) => {
                shards.seek(&[(low, high)]);
            }
        }
        self.active = true;
    }

    /// Starts the first of these ranges, which ascend, or as many as are best read at once. Returns how many that are:
    /// where the quads are in shards, each node is asked for many in one message.
    pub fn seek_some(&mut self, ranges: &[(Key, Key)]) -> usize {
        match (&mut self.from, ranges) {
            (_, []) => 0,
            (From::Shards(shards), ranges) => {
                self.active = true;
                shards.seek(ranges)
            }
            (_, [(low, high), ..]) => {
                self.seek(*low, *high);
                1
            }
        }
    }

    /// Starts a range, both bounds included; [`Self::previous_batch`] reads it from its end.
    pub fn seek_last(&mut self, low: Key, high: Key) {
        match &mut self.from {
            From::Tree { cursor, .. } => cursor.seek(low, high, Direction::Backward),
            From::Shards(_) => raise(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "a distributed store is not read backwards",
            ),
        }
        self.active = true;
    }

    /// Reads the visible keys of the next leaf of the range into [`Self::batch`]; false at the end.
    pub fn advance(&mut self) -> bool {
        self.active = self.active
            && match &mut self.from {
                From::Tree {
                    tree,
                    snapshot,
                    cursor,
                } => cursor
                    .next_batch(tree, snapshot, &mut self.batch)
                    .unwrap_or_else(|e| fail(e)),
                From::Shards(shards) => shards.next_batch(&mut self.batch),
            };
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

    /// Keeps those keys of [`Self::batch`] whose place in `keep` is true.
    pub fn retain(&mut self, keep: &[bool]) {
        self.batch.retain(keep);
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
        if let From::Shards(shards) = &mut self.from {
            shards.reader.close();
        }
    }
}
