//! Running SQL with the constants of a SPARQL request as parameters.

use std::ffi::CString;

use pgquad_sparql::Param;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::answer::{Batch, Row};
use super::parameters::values;
use super::plan::{name_of, Plan};
use super::prepared::Prepared;
use crate::pg::error::raise_hint;

/// A row of SPI, valid while its batch is.
pub struct Tuple {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl Tuple {
    /// The datum of column `place` (from 0), `None` for NULL.
    pub fn datum(&self, place: usize) -> Option<pg_sys::Datum> {
        let mut null = false;
        // SAFETY: the tuple belongs to the current SPI result, whose descriptor this is.
        let datum = unsafe {
            pg_sys::SPI_getbinval(self.tuple, self.descriptor, place as i32 + 1, &mut null)
        };
        (!null).then_some(datum)
    }
}

/// An answer being read, a batch at a time, from a cursor of its own. It ends with the transaction at the latest.
pub struct Cursor {
    /// `None` when all rows have been taken from it.
    portal: Option<CString>,
    /// Rows that have been taken and not been read yet.
    batch: Batch,
    params: Vec<Param>,
}

/// Rows that are asked for at once.
const BATCH_ROWS: i64 = 1000;

impl Cursor {
    /// Starts a query and takes its first rows, which most often are all.
    pub fn open(prepared: Prepared) -> Self {
        let plan = prepared.plan();
        let mut values = values(&prepared.params);
        let mut batch = Batch::new(prepared.outputs());
        let portal = Spi::connect(|_| {
            let portal = plan.open(&mut values);
            // SAFETY: SPI is connected, and the portal has just been opened.
            unsafe {
                outlive_commit(portal);
                take(portal, &mut batch).then(|| name_of(portal))
            }
        });
        Self {
            portal,
            batch,
            params: prepared.params,
        }
    }

    /// The next batch, each row read by `read`; empty at the end.
    pub fn fetch<T>(&mut self, read: impl FnMut(&Row<'_>) -> T) -> Vec<T> {
        self.fill();
        let rows = self.batch.read(&self.params, read);
        self.batch.clear();
        rows
    }

    /// What `read` makes of the next batch and of the query's parameters; `None` at the end.
    pub fn fetch_batch<T>(&mut self, read: impl FnOnce(&Batch, &[Param]) -> T) -> Option<T> {
        self.fill();
        let result = (!self.batch.is_empty()).then(|| read(&self.batch, &self.params));
        self.batch.clear();
        result
    }

    /// Takes rows where there are none that wait.
    fn fill(&mut self) {
        if self.batch.is_empty() {
            if let Some(name) = self.portal.take() {
                let more = Spi::connect(|_| {
                    // SAFETY: SPI is connected, and the portal is looked up each time: it may have ended with a
                    // subtransaction.
                    unsafe {
                        let portal = pg_sys::SPI_cursor_find(name.as_ptr());
                        if portal.is_null() {
                            raise_hint(
                                PgSqlErrorCode::ERRCODE_INVALID_CURSOR_STATE,
                                "the transaction or savepoint in which the query was started is over",
                                "The query of a cursor starts with its first FETCH: fetch before the savepoint.",
                            );
                        }
                        take(portal, &mut self.batch)
                    }
                });
                self.portal = more.then_some(name);
            }
        }
    }
}

/// Makes a portal one that a commit keeps, where the statement that reads it is one. A cursor WITH HOLD is read to its
/// end while the transaction commits. Other portals may have been closed by then.
///
/// # Safety
/// The portal has just been opened.
unsafe fn outlive_commit(portal: pg_sys::Portal) {
    // SAFETY: the active portal is the one whose statement runs, or none.
    unsafe {
        let reader = pg_sys::ActivePortal;
        if !reader.is_null() && (*reader).cursorOptions & pg_sys::CURSOR_OPT_HOLD as i32 != 0 {
            (*portal).cursorOptions |= pg_sys::CURSOR_OPT_HOLD as i32;
        }
    }
}

/// Takes rows from a portal and says whether there may be more; if not, the portal is closed.
///
/// # Safety
/// SPI is connected, the portal is open.
unsafe fn take(portal: pg_sys::Portal, batch: &mut Batch) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::SPI_cursor_fetch(portal, true, BATCH_ROWS);
        for tuple in current_tuples() {
            batch.push(|place| tuple.datum(place));
        }
        let more = batch.len() == BATCH_ROWS as usize;
        if !more {
            pg_sys::SPI_cursor_close(portal);
        }
        more
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let Some(name) = self.portal.take() else {
            return;
        };
        // SAFETY: plain look at the state of the transaction. One that is being aborted closes its portals itself.
        if unsafe { pg_sys::IsTransactionState() } && !std::thread::panicking() {
            Spi::connect(|_| {
                // SAFETY: SPI is connected; a portal that is not there any more needs no closing.
                unsafe {
                    let portal = pg_sys::SPI_cursor_find(name.as_ptr());
                    if !portal.is_null() {
                        pg_sys::SPI_cursor_close(portal);
                    }
                }
            });
        }
    }
}

/// Runs the EXPLAIN of a query and reads its rows.
pub fn run_explain<T>(
    plan: &Plan,
    mut values: Vec<pg_sys::Datum>,
    mut read: impl FnMut(&Tuple) -> T,
) -> Vec<T> {
    Spi::connect(|_| {
        plan.explain(&mut values);
        current_tuples().map(|tuple| read(&tuple)).collect()
    })
}

/// The rows of the SPI call that has just been made.
fn current_tuples() -> impl Iterator<Item = Tuple> {
    // SAFETY: the globals of SPI describe the last call; the table has as many tuples as it says.
    unsafe {
        let table = pg_sys::SPI_tuptable;
        let count = if table.is_null() {
            0
        } else {
            pg_sys::SPI_processed as usize
        };
        (0..count).map(move |place| Tuple {
            tuple: *(*table).vals.add(place),
            descriptor: (*table).tupdesc,
        })
    }
}
