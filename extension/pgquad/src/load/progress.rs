//! Progress of loads for other sessions: view `quad.load_progress`.
//!
//! A load is reported as PostgreSQL reports COPY, in `pg_stat_progress_copy`, so that it ends with the command however that ends. The
//! parameters that COPY does not use tell the rest; the last ones hold the end of the document's name, eight bytes each.

use pgrx::pg_sys;
use pgrx::prelude::*;

extension_sql!(
    r#"
CREATE VIEW quad.load_progress AS
SELECT i.pid,
       d.datname,
       c.relname AS store,
       pg_catalog.rtrim(pg_catalog.convert_from(
           pg_catalog.int8send(i.param11) || pg_catalog.int8send(i.param12) || pg_catalog.int8send(i.param13) ||
           pg_catalog.int8send(i.param14) || pg_catalog.int8send(i.param15) || pg_catalog.int8send(i.param16) ||
           pg_catalog.int8send(i.param17) || pg_catalog.int8send(i.param18) || pg_catalog.int8send(i.param19) ||
           pg_catalog.int8send(i.param20), 'UTF8')) AS path,
       CASE i.param8 WHEN 0 THEN 'reading' WHEN 1 THEN 'writing terms' WHEN 2 THEN 'writing quads' END AS phase,
       i.param1 AS bytes_done,
       NULLIF(i.param2, 0) AS bytes_total,
       i.param9 AS quads
FROM pg_catalog.pg_stat_get_progress_info('COPY') i
LEFT JOIN pg_catalog.pg_database d ON d.oid = i.datid
LEFT JOIN pg_catalog.pg_class c ON i.datid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
                               AND c.oid = i.param10::pg_catalog.oid
WHERE i.param7 = 5498867;
COMMENT ON VIEW quad.load_progress IS 'loads under way: bytes read (as they are in the file) and quads so far';
GRANT SELECT ON quad.load_progress TO PUBLIC;
"#,
    name = "load_progress"
);

/// Tells loads from COPY.
const MARK: i64 = 5_498_867;

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

fn mark(name: &str) {
    for (index, value) in name_parameters(name).into_iter().enumerate() {
        set(NAME + index as i32, value);
    }
    set(PHASE, 0);
    set(MARKED, MARK);
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
