//! The quads of a load on their way into the table of a store.

use pgrx::pg_sys;

use crate::catalog::distributed_store::sides_of_relid;
use crate::cluster::write::Changes;
use crate::pg::ffi;
use crate::storage::bulk::BulkLoad;
use crate::storage::Table;
use crate::store::Store;
use crate::table::pending;

/// Collects the quads of a large document.
pub enum Rows {
    /// For the trees of this node.
    Here {
        /// The table, open.
        table: pg_sys::Relation,
        /// Its load.
        load: BulkLoad,
    },
    /// For the shards of a distributed store.
    Elsewhere(Changes),
}

impl Rows {
    /// Opens the table and locks it against other writers (a distributed store is not locked); about `memory` bytes may
    /// be used for sorting.
    pub fn new(store: &Store, memory: usize) -> Self {
        if let Some(sides) = sides_of_relid(store.oid) {
            pending::flush(store.oid);
            return Rows::Elsewhere(Changes::with_memory(sides, memory));
        }
        let table = open(store);
        // SAFETY: the table stays open until the load is finished; after an error PostgreSQL closes it.
        let load = unsafe { BulkLoad::with_memory(table, memory) };
        Rows::Here { table, load }
    }

    /// Adds quads.
    pub fn push(&mut self, quads: &[[i64; 4]]) {
        match self {
            Rows::Here { load, .. } => load.push(quads),
            Rows::Elsewhere(changes) => changes.insert(quads),
        }
    }

    /// Writes everything. Returns the number of quads that were not in the table before.
    pub fn finish(self) -> u64 {
        match self {
            Rows::Here { table, load } => {
                let added = load.finish();
                // SAFETY: the table is open.
                unsafe { ffi::check_readers_of(table) };
                close(table);
                added
            }
            Rows::Elsewhere(changes) => changes.write(),
        }
    }
}

/// Inserts the quads of a small document, beside other writers. Returns the number of those that were not in the table
/// before.
pub fn insert(store: &Store, mut quads: Vec<[i64; 4]>) -> u64 {
    if let Some(sides) = sides_of_relid(store.oid) {
        pending::flush(store.oid);
        let mut changes = Changes::new(sides);
        changes.insert(&quads);
        return changes.write();
    }
    let table = open(store);
    // SAFETY: the table is open, and the transaction may write.
    let added = unsafe {
        let xid = pg_sys::GetCurrentTransactionId().into_inner();
        let command = pg_sys::GetCurrentCommandId(true);
        let added = Table::open(table).insert(&mut quads, xid, command);
        pg_sys::pgstat_count_heap_insert(table, added as i64);
        ffi::check_readers_of(table);
        added
    };
    close(table);
    added as u64
}

/// Opens the table for writing: what the session still holds back for it is written.
fn open(store: &Store) -> pg_sys::Relation {
    pending::flush(store.oid);
    // SAFETY: the store exists and is locked; raises an error otherwise.
    unsafe { pg_sys::table_open(store.oid, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE) }
}

fn close(table: pg_sys::Relation) {
    // SAFETY: opened by `open`; the lock is kept.
    unsafe { pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE) };
}
