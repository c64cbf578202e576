//! Rows straight from the executor: no portal, no copies of tuples.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::answer::Batch;
use super::parameters::values;
use super::plan::{Plan, Planning};
use super::prepared::Prepared;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 1000;

/// A row, valid until the next one comes.
pub struct Slot(*mut pg_sys::TupleTableSlot);

impl Slot {
    /// The datum of column `place` (from 0), `None` for NULL.
    pub fn datum(&self, place: usize) -> Option<pg_sys::Datum> {
        // SAFETY: `receive` has unpacked all columns, of which this is one.
        unsafe {
            let (values, nulls) = ((*self.0).tts_values, (*self.0).tts_isnull);
            (!*nulls.add(place)).then(|| *values.add(place))
        }
    }
}

/// A destination of PostgreSQL's executor.
#[repr(C)]
struct Receiver<'a> {
    /// What PostgreSQL sees of it. It must come first.
    destination: pg_sys::_DestReceiver,
    /// In force until the plan begins to run: what policies and triggers call runs with the settings of the caller.
    planning: Option<Planning>,
    row: &'a mut dyn FnMut(&Slot),
}

/// Runs a statement to its end and calls `row` with each of its rows.
fn each_row(plan: &Plan, values: &[pg_sys::Datum], read_only: bool, row: &mut dyn FnMut(&Slot)) {
    let mut receiver = Receiver {
        destination: pg_sys::_DestReceiver {
            receiveSlot: Some(receive),
            rStartup: Some(start),
            rShutdown: Some(nothing),
            rDestroy: Some(nothing),
            mydest: pg_sys::CommandDest::DestTuplestore,
        },
        planning: None,
        row,
    };
    Spi::connect(|_| {
        receiver.planning = Some(Planning::begin());
        plan.run_into(values, read_only, (&raw mut receiver).cast());
    });
    receiver.planning = None;
}

/// Runs a statement to its end and reads its rows.
pub fn run<T>(
    plan: &Plan,
    values: &[pg_sys::Datum],
    read_only: bool,
    mut read: impl FnMut(&Slot) -> T,
) -> Vec<T> {
    let mut rows = Vec::new();
    each_row(plan, values, read_only, &mut |row| rows.push(read(row)));
    rows
}

impl Prepared {
    /// Runs the query to its end and calls `flush` with batches of its rows.
    pub fn stream(&self, mut flush: impl FnMut(&Batch)) {
        let (plan, values) = (self.plan(), values(&self.params));
        let mut batch = Batch::new(self.outputs());
        each_row(&plan, &values, true, &mut |row| {
            batch.push(|place| row.datum(place));
            if batch.len() == BATCH_ROWS {
                flush(&batch);
                batch.clear();
            }
        });
        if !batch.is_empty() {
            flush(&batch);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn receive(
    slot: *mut pg_sys::TupleTableSlot,
    destination: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: the destination is the first field of a `Receiver` that nothing else uses while the executor runs; the
    // slot holds a row with the columns of the query.
    unsafe {
        let receiver = &mut *destination.cast::<Receiver<'_>>();
        let columns = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < columns {
            pg_sys::slot_getsomeattrs_int(slot, columns);
        }
        (receiver.row)(&Slot(slot));
    }
    true
}

#[pg_guard]
unsafe extern "C-unwind" fn start(
    destination: *mut pg_sys::DestReceiver,
    _operation: core::ffi::c_int,
    _columns: pg_sys::TupleDesc,
) {
    // SAFETY: as in `receive`.
    unsafe { (*destination.cast::<Receiver<'_>>()).planning = None };
}

unsafe extern "C-unwind" fn nothing(_destination: *mut pg_sys::DestReceiver) {}
