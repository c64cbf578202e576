//! The table access method `quad`: callbacks of `access/tableam.h` over the trees of `storage`.

mod analyze;
pub mod ddl;
mod modify;
mod not_null;
mod refuse;
mod scan;
pub mod shape;
mod size;
pub mod table_as;
pub mod table_options;
pub mod tid;
mod vacuum;

use crate::catalog::access_method::ROUTINE;
use crate::pg::ffi::Methods;
use pgrx::pg_sys;
use pgrx::prelude::*;
pub use refuse::no_index;

fn routine() -> &'static pg_sys::TableAmRoutine {
    &ROUTINE
        .get_or_init(|| {
            Methods(pg_sys::TableAmRoutine {
                type_: pg_sys::NodeTag::T_TableAmRoutine,
                slot_callbacks: Some(slot_callbacks),
                scan_begin: Some(scan::begin),
                scan_end: Some(scan::end),
                scan_rescan: Some(scan::rescan),
                scan_getnextslot: Some(scan::getnextslot),
                parallelscan_estimate: Some(scan::parallel_estimate),
                parallelscan_initialize: Some(scan::parallel_initialize),
                parallelscan_reinitialize: Some(scan::parallel_reinitialize),
                index_fetch_begin: Some(refuse::index_fetch_begin),
                index_fetch_reset: Some(refuse::index_fetch_reset),
                index_fetch_end: Some(refuse::index_fetch_end),
                index_fetch_tuple: Some(refuse::index_fetch_tuple),
                tuple_fetch_row_version: Some(modify::fetch_row_version),
                tuple_tid_valid: Some(modify::tid_valid),
                tuple_get_latest_tid: Some(modify::get_latest_tid),
                tuple_satisfies_snapshot: Some(modify::satisfies_snapshot),
                index_delete_tuples: Some(refuse::index_delete_tuples),
                tuple_insert: Some(modify::insert),
                tuple_insert_speculative: Some(refuse::insert_speculative),
                tuple_complete_speculative: Some(refuse::complete_speculative),
                multi_insert: Some(modify::multi_insert),
                tuple_delete: Some(modify::delete),
                tuple_update: Some(modify::update),
                tuple_lock: Some(modify::lock),
                finish_bulk_insert: Some(modify::finish_bulk_insert),
                #[cfg(feature = "pg15")]
                relation_set_new_filenode: Some(ddl::set_new_file),
                #[cfg(not(feature = "pg15"))]
                relation_set_new_filelocator: Some(ddl::set_new_file),
                relation_nontransactional_truncate: Some(ddl::nontransactional_truncate),
                relation_copy_data: Some(ddl::copy_data),
                relation_copy_for_cluster: Some(ddl::copy_for_cluster),
                relation_vacuum: Some(vacuum::vacuum),
                scan_analyze_next_block: Some(analyze::next_block),
                scan_analyze_next_tuple: Some(analyze::next_tuple),
                index_build_range_scan: Some(refuse::index_build_range_scan),
                index_validate_scan: Some(refuse::index_validate_scan),
                relation_size: Some(size::relation_size),
                relation_needs_toast_table: Some(size::needs_toast_table),
                relation_estimate_size: Some(size::estimate_size),
                scan_sample_next_block: Some(refuse::sample_next_block),
                scan_sample_next_tuple: Some(refuse::sample_next_tuple),
                ..Default::default()
            })
        })
        .0
}

pgrx::extension_sql!(
    r#"
CREATE FUNCTION quad.quad_am_handler(internal) RETURNS pg_catalog.table_am_handler
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'quad_am_handler';
CREATE ACCESS METHOD quad TYPE TABLE HANDLER quad.quad_am_handler;
COMMENT ON ACCESS METHOD quad IS 'index-organised RDF quads: one B-link tree per order';
"#,
    name = "quad_access_method"
);

/// Call convention of the handler (`fmgr.h`, version 1). PostgreSQL calls a handler without arguments, which the
/// wrappers of pgrx would refuse.
#[no_mangle]
pub extern "C-unwind" fn pg_finfo_quad_am_handler() -> &'static pg_sys::Pg_finfo_record {
    const RECORD: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &RECORD
}

/// Handler function of the access method.
#[no_mangle]
pub extern "C-unwind" fn quad_am_handler(_call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    pg_sys::Datum::from(std::ptr::from_ref(routine()).cast_mut())
}

#[pg_guard]
unsafe extern "C-unwind" fn slot_callbacks(
    _rel: pg_sys::Relation,
) -> *const pg_sys::TupleTableSlotOps {
    &raw const pg_sys::TTSOpsVirtual
}
