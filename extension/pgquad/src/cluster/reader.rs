//! Reading the orders of a store whose quads are in shards: those of this node as local tables, the others by messages.

use std::cell::RefCell;
use std::rc::Rc;

use pgquad_btree::{Batch, Filter, Key, Order, Probe, Span, Work};
use pgquad_cluster::message::{self, Count, Kind, Part, Read, Rows};
use pgquad_cluster::{key_column_place, shard_of_range, Deal, Placement, Reading, Shards};
use pgrx::pg_sys;

use super::answer::damaged;
use super::connection::{Scope, Traffic};
use super::map;
use super::store::Sides;
use crate::storage::{range_for, LocalReader};

/// The column permutations of a distributed store, and which of its tables has each: those of the table distributed by subject, then
/// those of the one by object.
pub const ORDERS: [[u8; 4]; 4] = [[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [1, 2, 0, 3]];

/// Column by which the rows of a side are placed: subject, object.
const PLACED_BY: [u8; 2] = [0, 2];

/// Shards here that are counted to estimate a range that all shards may have quads of.
const SAMPLED_SHARDS: usize = 4;

/// The tables of a distributed store, as one snapshot sees them.
pub struct ShardedReader {
    sides: [Rc<map::Table>; 2],
    snapshot: pg_sys::Snapshot,
    scope: Rc<Scope>,
    /// Shards of this node that have been used, by side.
    open: RefCell<[Vec<Option<Open>>; 2]>,
}

/// A shard of this node.
struct Open {
    rel: pg_sys::Relation,
    reader: Rc<LocalReader>,
}

impl ShardedReader {
    /// A reader of the tables behind a store.
    ///
    /// # Safety
    /// `snapshot` is registered (or active) while the reader is used.
    pub unsafe fn new(sides: Sides, snapshot: pg_sys::Snapshot) -> Self {
        let sides = [sides.by_subject, sides.by_object].map(|relid| {
            map::table_of(relid).unwrap_or_else(|| {
                crate::error::raise_hint(
                    pgrx::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the shards of a distributed store are not known on this node",
                    "SELECT start_metadata_sync_to_all_nodes() on the coordinator tells all nodes where shards are.",
                )
            })
        });
        let none = |side: usize| {
            let shards = sides[side].placement.shards().len();
            (0..shards).map(|_| None).collect()
        };
        Self {
            open: RefCell::new([none(0), none(1)]),
            sides,
            snapshot,
            scope: Scope::of_snapshot(snapshot),
        }
    }

    /// The column permutations.
    pub fn orders(&self) -> &[[u8; 4]] {
        &ORDERS
    }

    /// The place of a column (0 = subject .. 3 = graph) in the keys of an order.
    pub fn place(&self, order: usize, column: usize) -> usize {
        key_column_place(&ORDERS[order], column as u8)
    }

    /// An order of the store.
    pub fn order(&self, order: usize) -> Order {
        Order::new(ORDERS[order]).unwrap_or_else(|e| crate::storage::fail(e))
    }

    /// What has gone over the wire for the statement.
    pub fn traffic(&self) -> Traffic {
        self.scope.traffic()
    }

    fn side(&self, order: usize) -> Side<'_> {
        Side {
            reader: self,
            number: order / 2,
            order: order % 2,
        }
    }

    /// Reads on in sorted ranges of an order: [`Reading::read`].
    pub fn read(
        &self,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        reading.read(&self.side(order), ranges, enough, batch, spans)
    }

    /// About how many entries an order has in ranges, visible or not; one message to each other node that has some.
    pub fn counts(&self, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        let side = self.side(order);
        let table = &self.sides[side.number];
        let mut counts = vec![0; ranges.len()];
        let mut asked = Deal {
            shards: Vec::new(),
            aligned: true,
        };
        for (n, range) in ranges.iter().enumerate() {
            match shard_of_range(&table.placement, side.key_place(), range) {
                Some(shard) if table.here[shard].is_some() => {
                    counts[n] = side.local(shard).count(side.order, &range.0, &range.1);
                }
                Some(_) => {
                    let deal = Deal::new(&table.placement, side.key_place(), &[*range], n, 1);
                    asked.shards.extend(deal.shards);
                }
                None => match side.sampled(range) {
                    Some(count) => counts[n] = count,
                    None => {
                        let deal = Deal::new(&table.placement, side.key_place(), &[*range], n, 1);
                        asked.shards.extend(deal.shards);
                    }
                },
            }
        }
        side.ask(&asked, &[], Kind::Estimate, |numbers, found| {
            for (number, count) in numbers.iter().zip(found) {
                counts[*number as usize] += count;
            }
        });
        counts
    }

    /// About how many entries an order has between two keys (inclusive), visible or not.
    pub fn count(&self, order: usize, low: &Key, high: &Key) -> u64 {
        self.counts(order, &[(*low, *high)])[0]
    }

    /// Keys of an order between two keys (inclusive) that the snapshot sees and that pass the filters.
    pub fn count_visible(
        &self,
        order: usize,
        (low, high): (&Key, &Key),
        filters: &[Filter],
        work: &mut Work,
    ) -> u64 {
        let side = self.side(order);
        let placement = &self.sides[side.number].placement;
        let deal = Deal::new(placement, side.key_place(), &[(*low, *high)], 0, 1);
        let mut sum = 0;
        for of_shard in &deal.shards {
            if side.is_here(of_shard.shard) {
                let local = side.local(of_shard.shard);
                sum += local.count_visible(side.order, (low, high), filters, work);
            }
        }
        side.ask(&deal, filters, Kind::CountVisible, |_, found| {
            sum += found.iter().sum::<u64>();
        });
        sum
    }

    /// Closes the shards of this node; to be called where the node that reads ends.
    pub fn close(&mut self) {
        for open in self
            .open
            .get_mut()
            .iter_mut()
            .flat_map(std::mem::take)
            .flatten()
        {
            drop(open.reader);
            // SAFETY: opened by `local`; the lock stays with the transaction.
            unsafe { pg_sys::table_close(open.rel, pg_sys::NoLock as i32) };
        }
    }
}

/// About how many quads a store has for `key` (NULL = any), and the columns that the number takes account of; for the planner.
pub fn range_count(sides: Sides, key: [Option<i64>; 4]) -> (u64, [bool; 4]) {
    let (order, low, high) = range_for(&ORDERS, key);
    let mut covered = [false; 4];
    for &c in &ORDERS[order] {
        if key[usize::from(c)].is_none() {
            break;
        }
        covered[usize::from(c)] = true;
    }
    // SAFETY: the snapshot is not looked at by estimates, and lasts as long as the process.
    let mut reader = unsafe { ShardedReader::new(sides, &raw mut pg_sys::SnapshotSelfData) };
    let count = reader.count(order, &low, &high);
    reader.close();
    (count, covered)
}

/// One of the two tables of a store, in one of its orders.
struct Side<'a> {
    reader: &'a ShardedReader,
    number: usize,
    /// Number of the order in the shards.
    order: usize,
}

impl Side<'_> {
    fn table(&self) -> &map::Table {
        &self.reader.sides[self.number]
    }

    /// A shard of this node, opened when it is first used.
    fn local(&self, shard: usize) -> Rc<LocalReader> {
        let mut open = self.reader.open.borrow_mut();
        let place = &mut open[self.number][shard];
        if let Some(open) = place {
            return open.reader.clone();
        }
        let oid = self.table().here[shard].unwrap_or(pg_sys::InvalidOid);
        // SAFETY: the shard is locked like any relation that is read, so that the clean-up of a move waits; the snapshot is that of the
        // statement. `close` closes it, or PostgreSQL after an error.
        let opened = unsafe {
            let rel = pg_sys::table_open(oid, pg_sys::AccessShareLock as i32);
            Open {
                rel,
                reader: Rc::new(LocalReader::new(rel, self.reader.snapshot)),
            }
        };
        place.insert(opened).reader.clone()
    }

    /// The count of a range of all shards from some of those of this node: rows are placed by a hash, so that they are alike. `None` where
    /// this node has none.
    fn sampled(&self, (low, high): &(Key, Key)) -> Option<u64> {
        let table = self.table();
        let here: Vec<usize> = (0..table.here.len()).filter(|&n| self.is_here(n)).collect();
        let some = here
            .iter()
            .step_by(here.len().div_ceil(SAMPLED_SHARDS).max(1));
        let sampled = some.len();
        let sum: u64 = some
            .map(|&shard| self.local(shard).count(self.order, low, high))
            .sum();
        (sampled > 0).then(|| sum * table.here.len() as u64 / sampled as u64)
    }

    /// Asks the other nodes for counts; `each` gets the numbers of the ranges and their counts.
    fn ask(
        &self,
        deal: &Deal,
        filters: &[Filter],
        kind: Kind,
        mut each: impl FnMut(&[u32], &[u64]),
    ) {
        let placement = &self.table().placement;
        let mut asked: Vec<(i32, Count, Vec<u32>)> = Vec::new();
        for of_shard in deal.shards.iter().filter(|s| !self.is_here(s.shard)) {
            let shard = placement.shards()[of_shard.shard];
            let at = asked.iter().position(|a| a.0 == shard.group);
            let at = at.unwrap_or_else(|| {
                let count = Count {
                    order: self.order as u8,
                    filters: filters.to_vec(),
                    parts: Vec::new(),
                };
                asked.push((shard.group, count, Vec::new()));
                asked.len() - 1
            });
            asked[at].1.parts.push(Part {
                shard: shard.id,
                ranges: of_shard.ranges.clone(),
            });
            asked[at].2.extend(&of_shard.numbers);
        }
        for (group, count, _) in &asked {
            self.reader.scope.send(*group, &count.encode(kind));
        }
        for (group, _, numbers) in &asked {
            let answer = self.reader.scope.receive(*group);
            let expected = match kind {
                Kind::CountVisible => 1,
                _ => numbers.len(),
            };
            let found = message::decode_numbers(&answer, expected).unwrap_or_else(|e| damaged(e));
            each(numbers, &found);
        }
    }
}

impl Shards for Side<'_> {
    fn placement(&self) -> &Placement {
        &self.table().placement
    }

    fn is_here(&self, shard: usize) -> bool {
        self.table().here[shard].is_some()
    }

    fn key_place(&self) -> usize {
        let columns = &ORDERS[2 * self.number + self.order];
        key_column_place(columns, PLACED_BY[self.number])
    }

    fn order(&self) -> u8 {
        self.order as u8
    }

    fn read_here(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let local = self.local(shard);
        local.read(self.order, probe, ranges, enough, batch, spans)
    }

    fn send(&self, group: i32, request: &Read) {
        self.reader.scope.send(group, &request.encode());
    }

    fn receive(&self, group: i32) -> Rows {
        let bytes = self.reader.scope.receive(group);
        Rows::decode(&bytes).unwrap_or_else(|e| damaged(e))
    }
}
