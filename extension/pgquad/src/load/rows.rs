//! The quads of a load on their way into the table of a store.

use pgrx::pg_sys;

use crate::storage::bulk::BulkLoad;
use crate::store::Store;

/// Collects quads for a table.
pub struct Rows {
    table: pg_sys::Relation,
    load: BulkLoad,
}

impl Rows {
    /// Opens the table and locks it against other writers.
    pub fn new(store: &Store) -> Self {
        // SAFETY: the store exists and is locked. The table stays open until the load is finished; after an error PostgreSQL closes it.
        unsafe {
            let table = pg_sys::table_open(store.oid, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
            Rows {
                table,
                load: BulkLoad::new(table),
            }
        }
    }

    /// Adds quads.
    pub fn push(&mut self, quads: &[[i64; 4]]) {
        self.load.push(quads);
    }

    /// Writes everything. Returns the number of quads that were not in the table before.
    pub fn finish(self) -> u64 {
        let added = self.load.finish();
        // SAFETY: opened in `new`.
        unsafe { pg_sys::table_close(self.table, pg_sys::NoLock as pg_sys::LOCKMODE) };
        added
    }
}
