//! Bulk load: many quads at once, sorted per order on threads, built bottom-up into an empty table or merged leaf by
//! leaf into a filled one.

use super::error::fail;
use super::run_files::RunFiles;
use super::table::Table;
use crate::pg::error::{raise, raise_detail};
use pgquad_btree::{quad_of, Key, Order, Quad, FROZEN_XID};
use pgquad_cluster::taken::Taken;
use pgquad_sort::{Chunks, Error, Sorted, Sorter};
use pgrx::{pg_sys, PgSqlErrorCode};

/// How full bulk build makes pages, in percent: a little room, so that the first single inserts split nothing.
const FILL_PERCENT: u32 = 98;

/// A bulk load into one table, within one command of one transaction.
pub struct BulkLoad {
    rel: pg_sys::Relation,
    bytes: usize,
    /// Sorts in all orders for an empty table. What a filled one has already is known by the first order only.
    sorter: Sorter,
    files: RunFiles,
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
            sorter: Sorter::new(&orders[..sorted], bytes),
            files: RunFiles::default(),
        }
    }

    /// Adds quads in any order; quads given twice or in the table already are loaded once.
    pub fn push(&mut self, quads: &[Quad]) {
        self.sorter
            .push(quads, &mut self.files)
            .unwrap_or_else(|e| sort_failed(e));
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
    pub fn finish_noting(mut self, xid: u32, cid: u32, taken: &mut Taken, again: bool) -> u64 {
        // SAFETY: the relation is open, see `new`.
        let table = unsafe { Table::open(self.rel) };
        let sorted = self
            .sorter
            .finish(&mut self.files)
            .unwrap_or_else(|e| sort_failed(e));
        // Other commands of this transaction may have written meanwhile.
        let added = if table.is_empty() && sorted.orders() == table.orders().len() {
            let added = build(&table, &sorted, xid, cid, &self.files);
            taken.push_new(added);
            added
        } else {
            let mut note = |keys: &[Key], new: &[Key]| table.note(keys, new, again, taken);
            merge(
                &table,
                &sorted,
                self.bytes,
                (xid, cid),
                &self.files,
                &mut note,
            )
        };
        self.files.close();
        // SAFETY: the relation is open.
        unsafe { pg_sys::pgstat_count_heap_insert(self.rel, added as i64) };
        added
    }
}

/// Builds all orders of an empty table. Returns the number of quads.
pub fn build(table: &Table, sorted: &Sorted, xid: u32, cid: u32, files: &RunFiles) -> u64 {
    let fill = f64::from(FILL_PERCENT) / 100.0;
    let added = pgquad_sort::build(table.trees(), sorted, (xid, cid), fill, files)
        .unwrap_or_else(|e| sort_failed(e));
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
    sorted: &Sorted,
    bytes: usize,
    (xid, cid): (u32, u32),
    files: &RunFiles,
    note: &mut dyn FnMut(&[Key], &[Key]),
) -> u64 {
    let orders = table.orders();
    let mut others = Others::new(&orders[1..], bytes);
    let mut added = 0;
    for_chunks(sorted, 0, files, |chunk| {
        let new = table.insert_first(&chunk, xid, cid);
        note(&chunk, &new);
        added += new.len() as u64;
        others.push(orders[0], &new);
    });
    if let Some((sorted, files)) = others.finish() {
        for n in 1..orders.len() {
            for_chunks(&sorted, n - 1, &files, |chunk| {
                table.insert_other(n, &chunk, xid, cid);
            });
        }
        files.close();
    }
    added
}

/// The orders of a table that follow its first one.
struct Others(Option<(Sorter, RunFiles)>);

impl Others {
    fn new(orders: &[Order], bytes: usize) -> Self {
        let sorter = (!orders.is_empty()).then(|| Sorter::new(orders, bytes));
        Others(sorter.map(|sorter| (sorter, RunFiles::default())))
    }

    fn push(&mut self, order: Order, keys: &[Key]) {
        if let Some((sorter, files)) = &mut self.0 {
            let quads: Vec<Quad> = keys.iter().map(|key| quad_of(order, key)).collect();
            sorter
                .push(&quads, files)
                .unwrap_or_else(|e| sort_failed(e));
        }
    }

    fn finish(self) -> Option<(Sorted, RunFiles)> {
        let (sorter, mut files) = self.0?;
        let sorted = sorter.finish(&mut files).unwrap_or_else(|e| sort_failed(e));
        Some((sorted, files))
    }
}

/// Calls `each` with the ascending keys of order `n` of `sorted`, some at a time.
fn for_chunks(sorted: &Sorted, n: usize, files: &RunFiles, mut each: impl FnMut(Vec<Key>)) {
    let mut chunks =
        Chunks::start(sorted.stream(n, files), files).unwrap_or_else(|e| sort_failed(e));
    while let Some(chunk) = chunks.next(files).unwrap_or_else(|e| sort_failed(e)) {
        each(chunk);
    }
}

/// Raises an error of the sort with its SQLSTATE.
pub fn sort_failed(error: Error) -> ! {
    match error {
        Error::Tree(error) => fail(error),
        Error::Read(_) => raise(PgSqlErrorCode::ERRCODE_IO_ERROR, error.to_string()),
        Error::Thread(what) => raise_detail(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
            "a thread that sorts or builds failed",
            what,
        ),
        Error::Differ { .. } => raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string()),
    }
}
