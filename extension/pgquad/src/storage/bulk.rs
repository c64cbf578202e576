//! Bulk load: many quads at once, sorted per order, built bottom-up into an empty table or merged leaf by leaf into a filled one.

use super::sorter::Sorter;
use super::table::Table;
use pgquad_btree::{key_of, quad_of, Key, Order, Quad};
use pgrx::pg_sys;

/// Keys handed to a tree at a time when merging.
const CHUNK: usize = 16 * 1024;
/// How full bulk build makes pages, in percent: a little room, so that the first single inserts split nothing.
pub const FILL: u32 = 98;

/// A bulk load into one table, within one command of one transaction.
pub struct BulkLoad {
    rel: pg_sys::Relation,
    order: Order,
    /// Everything pushed so far, while it fits in memory.
    quads: Vec<Key>,
    limit: usize,
    /// Takes over beyond the limit.
    sorter: Option<Sorter>,
}

impl BulkLoad {
    /// Starts a load and locks the table against other writers until the transaction ends; readers go on.
    ///
    /// # Safety
    /// `rel` is an open quad table and stays open until the load is finished or the transaction fails.
    pub unsafe fn new(rel: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise; a setting of PostgreSQL.
        unsafe { Self::with_memory(rel, pg_sys::maintenance_work_mem as usize * 1024) }
    }

    /// As [`BulkLoad::new`], with about `bytes` of memory for sorting.
    ///
    /// # Safety
    /// As for [`BulkLoad::new`].
    pub unsafe fn with_memory(rel: pg_sys::Relation, bytes: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            pg_sys::LockRelationOid((*rel).rd_id, pg_sys::ShareRowExclusiveLock as i32);
            let order = Table::open(rel).meta().orders()[0].order;
            Self {
                rel,
                order,
                quads: Vec::new(),
                limit: bytes / size_of::<Key>(),
                sorter: None,
            }
        }
    }

    /// Adds quads in any order; quads given twice or in the table already are loaded once.
    pub fn push(&mut self, quads: &[Quad]) {
        for quad in quads {
            let key = key_of(self.order, quad);
            if let Some(sorter) = &mut self.sorter {
                sorter.push(key);
            } else {
                if self.quads.len() >= self.limit {
                    self.start_sorter();
                }
                match &mut self.sorter {
                    Some(sorter) => sorter.push(key),
                    None => self.quads.push(key),
                }
            }
        }
    }

    fn start_sorter(&mut self) {
        let mut sorter = Sorter::new(self.sorter_bytes());
        for key in std::mem::take(&mut self.quads) {
            sorter.push(key);
        }
        self.sorter = Some(sorter);
    }

    /// Memory for each of the sorters that are alive at once: one per order.
    fn sorter_bytes(&self) -> usize {
        // SAFETY: the relation is open, see `new`.
        let orders = unsafe { Table::open(self.rel) }.meta().orders().len();
        self.limit * size_of::<Key>() / orders
    }

    /// Sorts and writes everything as the current command. Returns the number of quads that were not in the table before.
    pub fn finish(self) -> u64 {
        // SAFETY: a load runs in a transaction.
        let (xid, cid) = unsafe {
            (
                pg_sys::GetCurrentTransactionId().into_inner(),
                pg_sys::GetCurrentCommandId(true),
            )
        };
        self.finish_as(xid, cid)
    }

    /// As [`BulkLoad::finish`], for a given transaction and command.
    pub fn finish_as(mut self, xid: u32, cid: u32) -> u64 {
        // SAFETY: the relation is open, see `new`.
        let table = unsafe { Table::open(self.rel) };
        let orders: Vec<Order> = table.meta().orders().iter().map(|o| o.order).collect();
        let added = match self.sorter.take() {
            None => in_memory(&table, &orders, std::mem::take(&mut self.quads), xid, cid),
            Some(sorter) => spilled(&table, &orders, sorter, self.sorter_bytes(), xid, cid),
        };
        // SAFETY: the relation is open.
        unsafe { pg_sys::pgstat_count_heap_insert(self.rel, added as i64) };
        added
    }
}

/// All keys in one array: sort it for the first order, keep what is new, sort again for each other order.
fn in_memory(table: &Table, orders: &[Order], mut keys: Vec<Key>, xid: u32, cid: u32) -> u64 {
    let empty = table.is_empty();
    for (n, &order) in orders.iter().enumerate() {
        if n > 0 {
            let before = orders[n - 1];
            for key in &mut keys {
                *key = key_of(order, &quad_of(before, key));
            }
        }
        keys.sort_unstable();
        super::interrupt();
        if n == 0 {
            keys.dedup();
        }
        if empty {
            table.build(n, keys.iter().copied(), xid, cid, FILL);
        } else if n == 0 {
            let mut new = Vec::with_capacity(keys.len());
            for chunk in keys.chunks(CHUNK) {
                new.extend(table.insert_first(chunk, xid, cid));
            }
            keys = new;
        } else {
            for chunk in keys.chunks(CHUNK) {
                table.insert_other(n, chunk, xid, cid);
            }
        }
    }
    if empty {
        table.built(keys.len() as u64);
    }
    keys.len() as u64
}

/// The first order's keys stream out of its sorter into the tree, and what is new into the sorters of the other orders.
fn spilled(
    table: &Table,
    orders: &[Order],
    first: Sorter,
    bytes: usize,
    xid: u32,
    cid: u32,
) -> u64 {
    let empty = table.is_empty();
    let mut others: Vec<(Order, Sorter)> = orders[1..]
        .iter()
        .map(|&order| (order, Sorter::new(bytes)))
        .collect();
    let mut tee = |key: &Key| {
        let quad = quad_of(orders[0], key);
        for (order, sorter) in &mut others {
            sorter.push(key_of(*order, &quad));
        }
    };
    let mut added = 0;
    let mut sorted = first.finish();
    if empty {
        let counted = sorted.by_ref().inspect(|key| {
            added += 1;
            tee(key);
        });
        table.build(0, counted, xid, cid, FILL);
    } else {
        for_chunks(&mut sorted, |chunk| {
            for key in table.insert_first(chunk, xid, cid) {
                added += 1;
                tee(&key);
            }
        });
    }
    drop(sorted);
    for (n, (_, sorter)) in others.into_iter().enumerate() {
        let mut sorted = sorter.finish();
        if empty {
            table.build(n + 1, sorted, xid, cid, FILL);
        } else {
            for_chunks(&mut sorted, |chunk| {
                table.insert_other(n + 1, chunk, xid, cid)
            });
        }
    }
    if empty {
        table.built(added);
    }
    added
}

fn for_chunks(keys: &mut impl Iterator<Item = Key>, mut each: impl FnMut(&[Key])) {
    loop {
        let chunk: Vec<Key> = keys.take(CHUNK).collect();
        if chunk.is_empty() {
            return;
        }
        each(&chunk);
    }
}
