//! The quads of a load on their way into the table of a store.

use pgrx::{check_for_interrupts, pg_sys};

use crate::store::Store;

/// Rows inserted by one call.
const SLOTS: usize = 1000;

/// Collects quads for a table.
pub struct Rows {
    table: pg_sys::Relation,
    slots: Vec<*mut pg_sys::TupleTableSlot>,
    count: u64,
}

impl Rows {
    /// Opens the table.
    pub fn new(store: &Store) -> Self {
        // SAFETY: the store exists and is locked; raises an error otherwise.
        unsafe {
            let table = pg_sys::table_open(store.oid, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
            let slots = (0..SLOTS)
                .map(|_| pg_sys::table_slot_create(table, std::ptr::null_mut()))
                .collect();
            Rows {
                table,
                slots,
                count: 0,
            }
        }
    }

    /// Adds quads.
    pub fn push(&mut self, quads: &[[u64; 4]]) {
        for quads in quads.chunks(SLOTS) {
            check_for_interrupts!();
            // SAFETY: the slots belong to the open table, which has four columns of type bigint that are not null.
            unsafe {
                for (slot, quad) in self.slots.iter().zip(quads) {
                    pg_sys::ExecClearTuple(*slot);
                    for (column, id) in quad.iter().enumerate() {
                        *(**slot).tts_values.add(column) = pg_sys::Datum::from(*id as i64);
                        *(**slot).tts_isnull.add(column) = false;
                    }
                    pg_sys::ExecStoreVirtualTuple(*slot);
                }
                pg_sys::table_multi_insert(
                    self.table,
                    self.slots.as_mut_ptr(),
                    quads.len() as i32,
                    pg_sys::GetCurrentCommandId(true),
                    0,
                    std::ptr::null_mut(),
                );
            }
            self.count += quads.len() as u64;
        }
    }

    /// Closes the table. Returns the number of new quads.
    pub fn finish(self) -> u64 {
        // SAFETY: created and opened in `new`.
        unsafe {
            for slot in &self.slots {
                pg_sys::ExecDropSingleTupleTableSlot(*slot);
            }
            pg_sys::table_close(self.table, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
        self.count
    }
}
