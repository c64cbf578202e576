//! Rows of a running INSERT that have not reached the trees of their table yet. The executor hands over one row at a
//! time; inserting them in sorted batches touches each leaf once per batch instead of once per row.
//!
//! Invariant: whoever reads or changes a table in this session first calls [`flush`] for it, and every executor run
//! flushes before it returns. So no statement (and no trigger) can tell the difference. What an aborted subtransaction
//! left is dropped.

use super::bulk::BulkLoad;
use super::executor_depth::{depth, may_delete};
use super::pending_work::{Pending, PendingWork};
use super::relation::with_open;
use super::stop_points;
use super::table::Table;
use crate::pg::error::raise_hint;
use crate::pg::ffi;
use pgquad_btree::{key_of, Key, Quad};
use pgquad_cluster::taken::Taken;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::cell::RefCell;
use std::collections::HashMap;

/// Most rows kept back for a table, 32 bytes each (2 MB). Chosen, not measured.
const MAX_PENDING_ROWS: usize = 64 * 1024;
/// Rows: from so many on, those of one command are built bottom-up into an empty table: inserted one by one they leave
/// leaves three fifths full. A shard gets no more than that of a load of some hundred thousand quads.
const MIN_BUILT_ROWS: usize = 4096;

enum Rows {
    /// Inserted through the trees.
    Few(Vec<Quad>),
    /// Many rows for an empty table: built bottom-up at the end.
    NewTable(BulkLoad),
}

/// Rows of one command and writer.
struct Insertion {
    xid: u32,
    rows: Rows,
    /// The command changes tables in several parts: it may yet delete what is there now.
    may_delete: bool,
}

thread_local! {
    static PENDING: PendingWork<Insertion> = const { PendingWork::empty() };
    /// Whose rows subtransactions within them are writing, or have failed to write.
    static DOOMED: RefCell<Vec<Doomed>> = const { RefCell::new(Vec::new()) };
    /// Shards by subject that this transaction has inserted into.
    static TAKEN: RefCell<HashMap<pg_sys::Oid, Insertions>> = RefCell::new(HashMap::new());
}

/// A statement whose rows are in some trees only when an error is caught that its subtransactions do not know of.
#[derive(Clone, Copy)]
struct Doomed {
    subtransaction: u32,
    depth: usize,
}

/// What commands of this transaction have inserted into a shard.
#[derive(Default)]
struct Insertions {
    /// The subtransaction of the last command.
    subtransaction: u32,
    /// The last command.
    cid: u32,
    taken: Taken,
    /// There were commands before it.
    again: bool,
}

/// What became of the quads that the last command of this transaction brought to a shard by subject.
pub fn taken(relid: pg_sys::Oid) -> String {
    TAKEN.with_borrow(|all| {
        all.get(&relid)
            .map_or_else(String::new, |last| last.taken.to_string())
    })
}

/// Runs `insert`, which notes what it inserts into a shard by subject as the command `cid`.
fn noting<T>(relid: pg_sys::Oid, cid: u32, insert: impl FnOnce(&mut Taken, bool) -> T) -> T {
    let before = TAKEN.with_borrow_mut(|all| all.remove(&relid));
    // SAFETY: within a transaction.
    let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
    let mut last = before.map_or_else(
        || Insertions {
            subtransaction,
            cid,
            ..Insertions::default()
        },
        |before| {
            if before.cid == cid {
                return before;
            }
            Insertions {
                subtransaction,
                cid,
                taken: Taken::default(),
                again: true,
            }
        },
    );
    let result = insert(&mut last.taken, last.again);
    TAKEN.with_borrow_mut(|all| all.insert(relid, last));
    result
}

/// The innermost executor run ends without error: its rows go to the trees.
pub fn flush_run() {
    let depth = depth();
    check_doomed(depth);
    flush_if(|p| p.depth >= depth, true);
}

/// Raises an error where a statement at this depth, or a deeper one, has lost rows.
fn check_doomed(depth: usize) {
    if DOOMED.with_borrow(|all| all.iter().any(|doomed| doomed.depth >= depth)) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "rows that this statement has inserted could not be written",
            "A function that it calls has read the table, and has caught the error that came of it.",
        );
    }
}

/// Keeps rows back.
///
/// # Safety
/// `rel` is an open quad table of this node; the caller runs within an executor run, or will call [`flush`] itself when
/// `new_table`.
pub unsafe fn add(rel: pg_sys::Relation, quads: &[Quad], xid: u32, cid: u32, new_table: bool) {
    // SAFETY: the caller's promise.
    let relid = unsafe { (*rel).rd_id };
    let new = || {
        let rows = if new_table {
            // SAFETY: the caller's promise; the table stays open until the command ends, which flushes.
            Rows::NewTable(unsafe { BulkLoad::new(rel) })
        } else {
            Rows::Few(Vec::new())
        };
        Insertion {
            xid,
            rows,
            may_delete: may_delete(),
        }
    };
    let add = |insertion: &mut Insertion| {
        match &mut insertion.rows {
            Rows::Few(rows) => {
                rows.extend_from_slice(quads);
                if rows.len() < MAX_PENDING_ROWS {
                    return false;
                }
                // SAFETY: the caller's promise.
                let Some(mut load) = (unsafe { build_instead(rel) }) else {
                    return true;
                };
                load.push(rows);
                insertion.rows = Rows::NewTable(load);
            }
            Rows::NewTable(load) => load.push(quads),
        }
        false
    };
    let full = PENDING.with(|pending| pending.add(relid, cid, |i| i.xid == xid, new, add));
    if full {
        flush(relid);
    }
}

/// A bottom-up build, when many rows come for a table that is empty and that nobody else is writing to.
///
/// # Safety
/// `rel` is an open quad table, and stays open until the command ends.
unsafe fn build_instead(rel: pg_sys::Relation) -> Option<BulkLoad> {
    // SAFETY: the caller's promise.
    unsafe {
        if !Table::open(rel).is_empty() {
            return None;
        }
        stop_points::reach("bulk-before-lock");
        let alone =
            pg_sys::ConditionalLockRelationOid((*rel).rd_id, pg_sys::ShareRowExclusiveLock as i32);
        alone.then(|| BulkLoad::new(rel))
    }
}

/// Brings the rows kept back for a table into its trees, before it is read.
pub fn flush(relid: pg_sys::Oid) {
    flush_if(|p| p.relid == relid, false);
}

/// Brings the rows that commands before `cid` kept back for a table into its trees. Rows that `cid` itself inserts have
/// to wait. The same command may first delete these very quads (`WITH gone AS (DELETE ...) INSERT ...`), and then the
/// insertion stays.
pub fn flush_earlier(relid: pg_sys::Oid, cid: u32) {
    flush_if(|p| p.relid == relid && p.cid < cid, false);
}

/// As [`flush`], where the command that inserts into the table ends.
pub fn finish(relid: pg_sys::Oid) {
    check_doomed(depth());
    flush(relid);
}

/// Brings all rows kept back into their trees; a transaction is about to commit.
pub fn flush_all() {
    check_doomed(0);
    flush_if(|_| true, true);
}

/// `is_over`: their commands delete nothing any more.
fn flush_if(is_due: impl Fn(&Pending<Insertion>) -> bool, is_over: bool) {
    let due = PENDING.with(|pending| pending.take_due(is_due));
    for pending in due {
        // An error that a subtransaction within the statement catches takes back nothing of the statement.
        // SAFETY: within a transaction.
        let is_within = pending.subtransaction != unsafe { pg_sys::GetCurrentSubTransactionId() };
        let doomed = Doomed {
            subtransaction: pending.subtransaction,
            depth: pending.depth,
        };
        if is_within {
            DOOMED.with_borrow_mut(|all| all.push(doomed));
        }
        write(pending, is_over);
        if is_within {
            DOOMED.with_borrow_mut(Vec::pop);
        }
    }
}

fn write(pending: Pending<Insertion>, is_over: bool) {
    let (relid, cid) = (pending.relid, pending.cid);
    let Insertion {
        xid,
        rows,
        may_delete,
    } = pending.work;
    match rows {
        Rows::Few(mut quads) => with_open(relid, |rel| {
            // SAFETY: the relation is open, and locked by the statement that inserts.
            unsafe {
                let many = quads.len() >= MIN_BUILT_ROWS;
                if let Some(mut load) = many.then(|| build_instead(rel)).flatten() {
                    load.push(&quads);
                    return build(relid, load, xid, cid);
                }
                let table = Table::open(rel);
                let keys = table.decides().then(|| first_keys(&table, &quads));
                let added = if may_delete && !is_over {
                    table.insert_updated(&mut quads, xid, cid)
                } else {
                    table.insert(&mut quads, xid, cid)
                };
                pg_sys::pgstat_count_heap_insert(rel, added as i64);
                if let Some(keys) = keys {
                    noting(relid, cid, |taken, again| {
                        table.note(&keys, &first_keys(&table, &quads), again, taken);
                    });
                }
            }
        }),
        Rows::NewTable(load) => build(relid, load, xid, cid),
    }
    // SAFETY: the relation is open, and changed by this transaction.
    with_open(relid, |rel| unsafe { ffi::check_readers_of(rel) });
}

fn build(relid: pg_sys::Oid, load: BulkLoad, xid: u32, cid: u32) {
    if load.table().decides() {
        noting(relid, cid, |taken, again| {
            load.finish_noting(xid, cid, taken, again)
        });
    } else {
        load.finish_as(xid, cid);
    }
}

/// The keys of quads in the first order of a table, ascending, each once.
fn first_keys(table: &Table, quads: &[Quad]) -> Vec<Key> {
    let order = table.orders()[0];
    let mut keys: Vec<Key> = quads.iter().map(|quad| key_of(order, quad)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Drops what an aborted subtransaction inserted. The command that failed in it has ended: the next one may have the
/// same number, for only a command that succeeds counts the number up.
pub fn forget_subtransaction(subtransaction: u32) {
    PENDING.with(|pending| pending.forget_subtransaction(subtransaction));
    DOOMED.with_borrow_mut(|all| all.retain(|doomed| doomed.subtransaction != subtransaction));
    TAKEN.with_borrow_mut(|all| {
        let failed = |last: &&mut Insertions| last.subtransaction == subtransaction;
        for last in all.values_mut().filter(failed) {
            last.cid = pg_sys::InvalidCommandId;
        }
    });
}

/// Drops everything; called when a transaction ends.
pub fn forget_all() {
    PENDING.with(PendingWork::forget_all);
    DOOMED.take();
    TAKEN.take();
}
