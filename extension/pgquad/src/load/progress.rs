//! Progress of loads for other sessions: view `quad.load_progress`.
//!
//! A load is reported as PostgreSQL reports COPY, in `pg_stat_progress_copy`, so that it ends with the command however
//! that ends. The parameters that COPY does not use tell the rest; the last ones hold the end of the document's name,
//! eight bytes each.

use crate::storage::has_transaction_snapshot;
use pgrx::pg_sys;
use pgrx::prelude::*;

extension_sql_file!("../../../../sql/load_progress.sql", name = "load_progress");

/// Tells loads from COPY.
const MARK: i64 = 5_498_867;
/// The mark of a load whose session uses no older snapshot than that of the load's own statement.
const MARK_OF_ONE_SNAPSHOT: i64 = 5_498_868;

const BYTES_DONE: i32 = 0;
const BYTES_TOTAL: i32 = 1;
const TUPLES: i32 = 2;
const COMMAND: i32 = 4;
const TYPE: i32 = 5;
const MARKED: i32 = 6;
const PHASE: i32 = 7;
const QUADS: i32 = 8;
const STORE: i32 = 9;
const NAME: i32 = 10;
const NAME_PARAMETERS: usize = 10;
const COPY_FROM: i64 = 1;
const COPY_FROM_FILE: i64 = 1;

/// What a load is doing.
#[derive(Clone, Copy)]
pub enum Phase {
    /// Writing the ids of terms.
    Terms = 1,
    /// Sorting and writing quads.
    Quads = 2,
}

/// The progress of the load of this session.
pub struct Progress {
    /// COPY itself reports bytes and lines, and ends the report.
    within_copy: bool,
}

impl Progress {
    /// Begins the report of a load. `bytes`: size of the document where known.
    pub fn start(name: &str, bytes: Option<u64>) -> Self {
        // SAFETY: plain call that starts to report this command.
        unsafe {
            pg_sys::pgstat_progress_start_command(
                pg_sys::ProgressCommandType::PROGRESS_COMMAND_COPY,
                pg_sys::InvalidOid,
            );
        }
        set(COMMAND, COPY_FROM);
        set(TYPE, COPY_FROM_FILE);
        set(BYTES_TOTAL, bytes.unwrap_or(0) as i64);
        mark(name);
        Progress { within_copy: false }
    }

    /// Adds to the report of the COPY command that is running.
    pub fn start_within_copy(name: &str) -> Self {
        mark(name);
        Progress { within_copy: true }
    }

    /// The store that is loaded.
    pub fn set_store(&self, store: pg_sys::Oid) {
        set(STORE, i64::from(u32::from(store)));
    }

    /// What goes on now.
    pub fn set_phase(&self, phase: Phase) {
        set(PHASE, phase as i64);
    }

    /// How far the load is.
    pub fn update(&self, bytes: u64, quads: u64) {
        set(QUADS, quads as i64);
        if !self.within_copy {
            set(BYTES_DONE, bytes as i64);
            set(TUPLES, quads as i64);
        }
    }

    /// Ends the report. (After an error PostgreSQL does.)
    pub fn finish(self) {
        if self.within_copy {
            set(MARKED, 0);
        } else {
            // SAFETY: ends what `start` began.
            unsafe { pg_sys::pgstat_progress_end_command() };
        }
    }
}

/// Whether a session, which has this status, is loading now, and uses no older snapshot than that of the load's own
/// statement.
pub fn is_load_of_one_snapshot(status: &pg_sys::PgBackendStatus) -> bool {
    status.st_progress_command == pg_sys::ProgressCommandType::PROGRESS_COMMAND_COPY
        && status.st_progress_param[MARKED as usize] == MARK_OF_ONE_SNAPSHOT
}

/// Whether this session uses no older snapshot than that of the statement: no cursor and no transaction has one.
fn has_one_snapshot() -> bool {
    // SAFETY: plain session state; the active snapshot is that of the statement.
    unsafe {
        !has_transaction_snapshot()
            && pg_sys::ActiveSnapshotSet()
            && (*pg_sys::MyProc).xmin == (*pg_sys::GetActiveSnapshot()).xmin
    }
}

fn mark(name: &str) {
    for (index, value) in name_parameters(name).into_iter().enumerate() {
        set(NAME + index as i32, value);
    }
    set(PHASE, 0);
    set(
        MARKED,
        if has_one_snapshot() {
            MARK_OF_ONE_SNAPSHOT
        } else {
            MARK
        },
    );
}

/// The end of the name, filled up with blanks.
fn name_parameters(name: &str) -> [i64; NAME_PARAMETERS] {
    let mut bytes = [b' '; NAME_PARAMETERS * 8];
    let mut start = name.len().saturating_sub(bytes.len());
    while !name.is_char_boundary(start) {
        start += 1;
    }
    let end = &name.as_bytes()[start..];
    bytes[..end.len()].copy_from_slice(end);
    std::array::from_fn(|index| {
        i64::from_be_bytes(std::array::from_fn(|byte| bytes[index * 8 + byte]))
    })
}

fn set(parameter: i32, value: i64) {
    // SAFETY: the parameter is below PGSTAT_NUM_PROGRESS_PARAM.
    unsafe { pg_sys::pgstat_progress_update_param(parameter, value) };
}
