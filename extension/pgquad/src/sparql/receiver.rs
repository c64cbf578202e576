//! Rows straight from the executor: no portal, no copies of tuples.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::answer::Batch;
use super::parameters::values;
use super::plan::Planning;
use super::prepared::Prepared;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 1000;

/// A destination of PostgreSQL's executor.
#[repr(C)]
struct Receiver<'a> {
    /// What PostgreSQL sees of it. It must come first.
    destination: pg_sys::_DestReceiver,
    /// In force until the plan begins to run: what policies call runs with the settings of the caller.
    planning: Option<Planning>,
    batch: Batch,
    flush: &'a mut dyn FnMut(&Batch),
}

impl Receiver<'_> {
    fn flush(&mut self) {
        if !self.batch.is_empty() {
            (self.flush)(&self.batch);
            self.batch.clear();
        }
    }
}

impl Prepared {
    /// Runs the query to its end and calls `flush` with batches of its rows.
    pub fn stream(&self, mut flush: impl FnMut(&Batch)) {
        let (plan, values) = (self.plan(), values(&self.params));
        let mut receiver = Receiver {
            destination: pg_sys::_DestReceiver {
                receiveSlot: Some(receive),
                rStartup: Some(start),
                rShutdown: Some(nothing),
                rDestroy: Some(nothing),
                mydest: pg_sys::CommandDest::DestTuplestore,
            },
            planning: None,
            batch: Batch::new(self.outputs()),
            flush: &mut flush,
        };
        Spi::connect(|_| {
            receiver.planning = Some(Planning::begin());
            plan.run_into(&values, (&raw mut receiver).cast());
        });
        receiver.planning = None;
        receiver.flush();
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
        let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
        receiver
            .batch
            .push(|place| (!*nulls.add(place)).then(|| *values.add(place)));
        if receiver.batch.len() == BATCH_ROWS {
            receiver.flush();
        }
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
