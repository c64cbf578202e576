//! New paths and plans of nodes, and the private data of a plan.

use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The table that the path of a node points at.
pub const fn path_methods(
    name: &'static CStr,
    plan: unsafe extern "C-unwind" fn(
        *mut pg_sys::PlannerInfo,
        *mut pg_sys::RelOptInfo,
        *mut pg_sys::CustomPath,
        *mut pg_sys::List,
        *mut pg_sys::List,
        *mut pg_sys::List,
    ) -> *mut pg_sys::Plan,
) -> Methods<pg_sys::CustomPathMethods> {
    Methods(pg_sys::CustomPathMethods {
        CustomName: name.as_ptr(),
        PlanCustomPath: Some(plan),
        ReparameterizeCustomPathByChild: None,
    })
}

/// A path of `size` bytes, `P` being PostgreSQL's path or one that starts with it, that can project.
///
/// # Safety
/// `parent` is a live planner node; all bytes of a `P` behind PostgreSQL's part may be zero.
pub unsafe fn new_path<P>(
    parent: *mut pg_sys::RelOptInfo,
    methods: &'static Methods<pg_sys::CustomPathMethods>,
) -> *mut P {
    // SAFETY: the caller's promise; zeroed memory is a valid path apart from what is set.
    unsafe {
        let path = pg_sys::palloc0(size_of::<P>()).cast::<pg_sys::CustomPath>();
        (*path).path.type_ = pg_sys::NodeTag::T_CustomPath;
        (*path).path.pathtype = pg_sys::NodeTag::T_CustomScan;
        (*path).path.parent = parent;
        (*path).path.pathtarget = (*parent).reltarget;
        (*path).path.rows = (*parent).rows;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).methods = &raw const methods.0;
        path.cast()
    }
}

/// The plan node of a path.
///
/// # Safety
/// Arguments are those of PlanCustomPath.
pub unsafe fn new_plan(
    path: *mut pg_sys::CustomPath,
    tlist: *mut pg_sys::List,
    methods: &'static Methods<pg_sys::CustomScanMethods>,
) -> *mut pg_sys::CustomScan {
    // SAFETY: the caller's promise; zeroed memory is a valid plan apart from what is set.
    unsafe {
        let scan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        (*scan).scan.plan.type_ = pg_sys::NodeTag::T_CustomScan;
        (*scan).scan.plan.targetlist = tlist;
        (*scan).flags = (*path).flags;
        (*scan).methods = &raw const methods.0;
        scan
    }
}

/// Gives a plan its private data: lists of integers, read back by [`private_integers`].
///
/// The first element of the list is a node, a string with the name of the plan node. Citus reads the first element of
/// every custom scan in a plan that also reads its tables as a node, to find its own scans (`IsCitusCustomScan`).
///
/// # Safety
/// `scan` comes from [`new_plan`].
pub unsafe fn set_private(scan: *mut pg_sys::CustomScan, lists: &[Vec<i32>]) {
    // SAFETY: the caller's promise; the name is that of a static table, and nobody changes the string.
    unsafe {
        let name = (*(*scan).methods).CustomName.cast_mut();
        let mut private = pg_sys::lappend(std::ptr::null_mut(), pg_sys::makeString(name).cast());
        for list in lists {
            let mut integers = std::ptr::null_mut();
            for &word in list {
                integers = pg_sys::lappend_int(integers, word);
            }
            private = pg_sys::lappend(private, integers.cast());
        }
        (*scan).custom_private = private;
    }
}

/// The integers of a list that [`set_private`] has put into a plan; empty where the plan has no such list.
///
/// # Safety
/// `scan` is a plan node of ours, or a copy of one.
pub unsafe fn private_integers(scan: *const pg_sys::CustomScan, list: usize) -> Vec<i32> {
    // SAFETY: the caller's promise; all elements behind the name are lists of integers, an empty one being NULL.
    unsafe {
        let list = list_iter::<pg_sys::List>((*scan).custom_private).nth(list + 1);
        match list.filter(|list| !list.is_null()) {
            None => Vec::new(),
            Some(list) => std::slice::from_raw_parts((*list).elements, (*list).length as usize)
                .iter()
                .map(|cell| cell.int_value)
                .collect(),
        }
    }
}

/// A list of target entries with one more.
///
/// # Safety
/// Live planner nodes.
pub unsafe fn with_entry(list: *mut pg_sys::List, expr: *mut pg_sys::Expr) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe {
        let place = pg_sys::list_length(list) as i16 + 1;
        let entry = pg_sys::makeTargetEntry(expr, place, std::ptr::null_mut(), false);
        pg_sys::lappend(list, entry.cast())
    }
}
