//! What quad tables refuse, each with its own message.

use crate::pg::error::raise_hint;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

fn refuse(what: &str, hint: &str) -> ! {
    raise_hint(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, what, hint)
}

/// Refuses an index.
pub fn no_index() -> ! {
    refuse(
        "quad tables have no secondary indexes",
        "Every order of a quad table is an index already; choose them with the setting quad.orders when the table is created.",
    )
}

/// Refuses `WHERE CURRENT OF` a cursor that notes no identity of its rows.
pub fn no_current_row() -> ! {
    refuse(
        "rows of a quad table have no position that a cursor keeps without FOR UPDATE",
        "Declare the cursor FOR UPDATE, or select by s, p, o, g.",
    )
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_begin(
    _rel: pg_sys::Relation,
) -> *mut pg_sys::IndexFetchTableData {
    no_index()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_reset(_data: *mut pg_sys::IndexFetchTableData) {
    no_index()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_end(_data: *mut pg_sys::IndexFetchTableData) {
    no_index()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_fetch_tuple(
    _scan: *mut pg_sys::IndexFetchTableData,
    _tid: pg_sys::ItemPointer,
    _snapshot: pg_sys::Snapshot,
    _slot: *mut pg_sys::TupleTableSlot,
    _call_again: *mut bool,
    _all_dead: *mut bool,
) -> bool {
    no_index()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_delete_tuples(
    _rel: pg_sys::Relation,
    _state: *mut pg_sys::TM_IndexDeleteOp,
) -> pg_sys::TransactionId {
    no_index()
}

#[pg_guard]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C-unwind" fn index_build_range_scan(
    _table: pg_sys::Relation,
    _index: pg_sys::Relation,
    _info: *mut pg_sys::IndexInfo,
    _allow_sync: bool,
    _any_visible: bool,
    _progress: bool,
    _start: pg_sys::BlockNumber,
    _blocks: pg_sys::BlockNumber,
    _callback: pg_sys::IndexBuildCallback,
    _state: *mut core::ffi::c_void,
    _scan: pg_sys::TableScanDesc,
) -> f64 {
    no_index()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn index_validate_scan(
    _table: pg_sys::Relation,
    _index: pg_sys::Relation,
    _info: *mut pg_sys::IndexInfo,
    _snapshot: pg_sys::Snapshot,
    _state: *mut pg_sys::ValidateIndexState,
) {
    no_index()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn insert_speculative(
    _rel: pg_sys::Relation,
    _slot: *mut pg_sys::TupleTableSlot,
    _cid: pg_sys::CommandId,
    _options: core::ffi::c_int,
    _bistate: *mut pg_sys::BulkInsertStateData,
    _token: pg_sys::uint32,
) {
    no_arbiter()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn complete_speculative(
    _rel: pg_sys::Relation,
    _slot: *mut pg_sys::TupleTableSlot,
    _token: pg_sys::uint32,
    _succeeded: bool,
) {
    no_arbiter()
}

fn no_arbiter() -> ! {
    refuse(
        "quad tables have no ON CONFLICT arbiter",
        "A quad table is a set: inserting a quad that is there changes nothing, so plain INSERT is enough.",
    )
}

#[pg_guard]
pub unsafe extern "C-unwind" fn sample_next_block(
    _scan: pg_sys::TableScanDesc,
    _state: *mut pg_sys::SampleScanState,
) -> bool {
    no_sample()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn sample_next_tuple(
    _scan: pg_sys::TableScanDesc,
    _state: *mut pg_sys::SampleScanState,
    _slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    no_sample()
}

fn no_sample() -> ! {
    refuse(
        "TABLESAMPLE is not supported for quad tables",
        "Use ORDER BY random() LIMIT n, or a range of s.",
    )
}
