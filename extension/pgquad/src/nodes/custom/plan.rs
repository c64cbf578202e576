//! New paths and plans of nodes, how paths become plans, and the private data of a plan.

use super::node::ScanNode;
use crate::pg::error::raise_hint;
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use pgquad_exec::PlanData;
use pgrx::{pg_guard, pg_sys, PgSqlErrorCode};

/// A path that the planner has chosen: the arguments of PlanCustomPath.
#[derive(Clone, Copy)]
pub struct ChosenPath {
    /// The query level.
    pub root: *mut pg_sys::PlannerInfo,
    /// What the path gives the rows of.
    pub rel: *mut pg_sys::RelOptInfo,
    /// The path itself, one of the node's own.
    pub path: *mut pg_sys::CustomPath,
    /// The columns of the plan.
    pub tlist: *mut pg_sys::List,
    /// Conditions on the relation: `RestrictInfo`s.
    pub clauses: *mut pg_sys::List,
    /// The plans of `custom_paths`.
    pub plans: *mut pg_sys::List,
}

/// How paths of one kind become plans.
///
/// # Safety
/// [`PlanPath::plan`] is called from the callback of this module only, under pgrx's guard, with a path of that kind.
pub trait PlanPath {
    /// The node that plans of the path run.
    type Node: ScanNode;

    /// PlanCustomPath: turns the chosen path into a plan.
    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan;
}

/// The table that paths of one kind point at.
pub const fn path_methods<P: PlanPath>() -> Methods<pg_sys::CustomPathMethods> {
    Methods(pg_sys::CustomPathMethods {
        CustomName: P::Node::NAME.as_ptr(),
        PlanCustomPath: Some(plan_custom_path::<P>),
        ReparameterizeCustomPathByChild: None,
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn plan_custom_path<P: PlanPath>(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    tlist: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    let chosen = ChosenPath {
        root,
        rel,
        path,
        tlist,
        clauses,
        plans,
    };
    // SAFETY: arguments are the planner's own, and the path points at the methods of its kind.
    unsafe { P::plan(chosen).cast() }
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

/// Gives a plan its private data, which [`private_data`] reads back.
///
/// PostgreSQL copies and prints what is made of its own nodes: the name of the plan node as a string, then a list of
/// integers. The name comes first because of Citus. In a plan that also reads its tables, Citus reads the first element
/// of every custom scan as a node, to find its own scans (`IsCitusCustomScan`).
///
/// # Safety
/// `scan` comes from [`new_plan`].
pub unsafe fn set_private(scan: *mut pg_sys::CustomScan, data: &impl PlanData) {
    // SAFETY: the caller's promise; the name is that of a static table, and nobody changes the string.
    unsafe {
        let name = (*(*scan).methods).CustomName.cast_mut();
        let mut integers = std::ptr::null_mut();
        for word in data.encode() {
            integers = pg_sys::lappend_int(integers, word);
        }
        let private = pg_sys::lappend(std::ptr::null_mut(), pg_sys::makeString(name).cast());
        (*scan).custom_private = pg_sys::lappend(private, integers.cast());
    }
}

/// The private data of a plan.
///
/// # Safety
/// `scan` is a plan node of ours that carries a `D`, or a copy of one.
pub unsafe fn private_data<D: PlanData>(scan: *const pg_sys::CustomScan) -> D {
    // SAFETY: the caller's promise: what stands behind the name is a list of integers.
    let words: Vec<i32> = unsafe {
        match list_iter::<pg_sys::List>((*scan).custom_private).nth(1) {
            Some(list) if !list.is_null() => {
                std::slice::from_raw_parts((*list).elements, (*list).length as usize)
                    .iter()
                    .map(|cell| cell.int_value)
                    .collect()
            }
            _ => Vec::new(),
        }
    };
    D::decode(&words).unwrap_or_else(|_| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "the plan of a custom scan of pgquad is damaged, or was made by another version of the library",
            "Reconnect: plans that a session keeps are made anew.",
        )
    })
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
