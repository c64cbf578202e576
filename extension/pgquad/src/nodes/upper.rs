//! The planner's hook for paths above scans and joins. It offers every node of ours that answers grouping, DISTINCT or
//! a recursive union.

use crate::nodes::{groups, join, walk};
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::create_upper_paths_hook_type = None;

/// Installs the hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any planning.
    unsafe {
        PREVIOUS = pg_sys::create_upper_paths_hook;
        pg_sys::create_upper_paths_hook = Some(create_upper_paths);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn create_upper_paths(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut core::ffi::c_void,
) {
    // SAFETY: arguments are the planner's own.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, stage, input, output, extra);
        }
        use pg_sys::UpperRelationKind::{UPPERREL_DISTINCT, UPPERREL_FINAL, UPPERREL_GROUP_AGG};
        match stage {
            UPPERREL_GROUP_AGG => {
                join::add_count(root, input, output);
                groups::add_grouping(root, input, output);
            }
            UPPERREL_DISTINCT => {
                join::add_distinct(root, input, output);
                groups::add_distinct(root, input, output);
            }
            UPPERREL_FINAL => walk::add(root, output),
            _ => (),
        }
    }
}
