//! Bulk load: many quads at once, sorted per order on threads, built bottom-up into an empty table or merged leaf by
//! leaf into a filled one.

use super::quad_sorter::{sort_failed, QuadSorter, SortedQuads};
use super::run_files::RunFiles;
use super::table::Table;
use pgquad_btree::{quad_of, Key, Quad, FROZEN_XID};
use pgquad_cluster::taken::Taken;
use pgrx::pg_sys;

/// How full bulk build makes pages, in percent: a little room, so that the first single inserts split nothing.
const FILL_PERCENT: u32 = 98;

/// A bulk load into one table, within one command of one transaction.
pub struct BulkLoad {
    rel: pg_sys::Relation,
    bytes: usize,
    /// Sorts in all orders for an empty table. What a filled one has already is known by the first order only.
    sorter: QuadSorter,
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
        let table = unsafe {
            pg_sys::LockRelationOid((*rel).rd_id, pg_sys::ShareRowExclusiveLock as i32);
            Table::open(rel)
        };
        let orders = table.orders();
        let sorted = if table.is_empty() { orders.len() } else { 1 };
        Self {
            rel,
            bytes,
            sorter: QuadSorter::new(&orders[..sorted], bytes),
        }
    }

    /// Adds quads in any order; quads given twice or in the table already are loaded once.
    pub fn push(&mut self, quads: &[Quad]) {
        self.sorter.push(quads);
    }

    /// Sorts and writes everything as the current command. Returns the number of quads that were not in the table
    /// before.
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

    /// The table.
    pub fn table(&self) -> Table {
        // SAFETY: the relation is open, see `new`.
        unsafe { Table::open(self.rel) }
    }

    /// As [`BulkLoad::finish`], for a given transaction and command.
    pub fn finish_as(self, xid: u32, cid: u32) -> u64 {
        self.finish_noting(xid, cid, &mut Taken::default(), false)
    }

    /// As [`BulkLoad::finish_as`], and notes what the table takes: see [`Table::note`].
    pub fn finish_noting(self, xid: u32, cid: u32, taken: &mut Taken, again: bool) -> u64 {
        // SAFETY: the relation is open, see `new`.
        let table = unsafe { Table::open(self.rel) };
        let sorted = self.sorter.finish();
        // Other commands of this transaction may have written meanwhile.
        let added = if table.is_empty() && sorted.orders() == table.orders().len() {
            let added = build(&table, &sorted, xid, cid);
            taken.push_new(added);
            added
        } else {
            let mut note = |keys: &[Key], new: &[Key]| table.note(keys, new, again, taken);
            merge(&table, &sorted, self.bytes, (xid, cid), &mut note)
        };
        sorted.close();
        // SAFETY: the relation is open.
        unsafe { pg_sys::pgstat_count_heap_insert(self.rel, added as i64) };
        added
    }
}

/// Builds all orders of an empty table. Returns the number of quads.
pub fn build(table: &Table, sorted: &SortedQuads, xid: u32, cid: u32) -> u64 {
    let fill = f64::from(FILL_PERCENT) / 100.0;
    let added = sorted.build(table.trees(), (xid, cid), fill);
    table.built(added);
    added
}

/// Builds all orders of an empty table from keys that come sorted: [`pgquad_sort::build_arriving`]. Returns the number
/// of quads. They are visible to all at once, as after COPY FREEZE, and stay should the transaction fail.
///
/// # Safety
/// `rel` is an open quad table, locked against other writers; nobody uses it until this transaction has committed, or
/// ever if it does not.
pub unsafe fn build_arriving(
    rel: pg_sys::Relation,
    next: impl FnMut() -> Option<(usize, Vec<Key>)>,
) -> u64 {
    let fill = f64::from(FILL_PERCENT) / 100.0;
    // SAFETY: the caller's promise; within a transaction.
    unsafe {
        // Only the commit of a transaction that has a number is flushed to disk.
        pg_sys::GetCurrentTransactionId();
        let table = Table::open(rel);
        let host = RunFiles::default();
        let added = pgquad_sort::build_arriving(table.trees(), next, (FROZEN_XID, 0), fill, &host)
            .unwrap_or_else(|e| sort_failed(e));
        table.built(added);
        pg_sys::pgstat_count_heap_insert(rel, added as i64);
        added
    }
}

/// Inserts the keys of the first order, and what of them is new into the other orders. Returns the number of new quads.
fn merge(
    table: &Table,
    sorted: &SortedQuads,
    bytes: usize,
    (xid, cid): (u32, u32),
    note: &mut dyn FnMut(&[Key], &[Key]),
) -> u64 {
    let orders = table.orders();
    let mut added = 0;
    let mut others = (orders.len() > 1).then(|| QuadSorter::new(&orders[1..], bytes));
    for_chunks(sorted, 0, |chunk| {
        let new = table.insert_first(&chunk, xid, cid);
        note(&chunk, &new);
        added += new.len() as u64;
        if let Some(others) = &mut others {
            let quads: Vec<Quad> = new.iter().map(|key| quad_of(orders[0], key)).collect();
            others.push(&quads);
        }
    });
    if let Some(others) = others {
        let sorted = others.finish();
        for n in 1..orders.len() {
            for_chunks(&sorted, n - 1, |chunk| {
                table.insert_other(n, &chunk, xid, cid)
            });
        }
        sorted.close();
    }
    added
}

/// Calls `each` with the ascending keys of order `n` of `sorted`, some at a time.
fn for_chunks(sorted: &SortedQuads, n: usize, mut each: impl FnMut(Vec<Key>)) {
    let mut chunks = sorted.chunks(n);
    while let Some(chunk) = sorted.next(&mut chunks) {
        each(chunk);
    }
}
