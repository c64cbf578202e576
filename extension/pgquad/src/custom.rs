//! What the custom scan nodes share: tables of callbacks, a state with a part of its own behind PostgreSQL's, new paths
//! and plans.

use crate::exit::keep_in_context;
use crate::ffi::Methods;
use crate::scan::conditions::list_iter;
use pgquad_cluster::Traffic;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// PostgreSQL's node with our part behind it; the first field must be the node.
#[repr(C)]
pub struct State<T> {
    /// PostgreSQL's part.
    pub css: pg_sys::CustomScanState,
    /// Ours, set by BeginCustomScan; in the executor's per-query context.
    pub own: *mut T,
}

/// The callbacks of a node; those that it has no use for are not set.
pub struct Callbacks {
    /// BeginCustomScan.
    pub begin: unsafe extern "C-unwind" fn(
        *mut pg_sys::CustomScanState,
        *mut pg_sys::EState,
        core::ffi::c_int,
    ),
    /// ExecCustomScan.
    pub exec:
        unsafe extern "C-unwind" fn(*mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot,
    /// EndCustomScan.
    pub end: unsafe extern "C-unwind" fn(*mut pg_sys::CustomScanState),
    /// ReScanCustomScan.
    pub rescan: unsafe extern "C-unwind" fn(*mut pg_sys::CustomScanState),
    /// ExplainCustomScan.
    pub explain: Option<
        unsafe extern "C-unwind" fn(
            *mut pg_sys::CustomScanState,
            *mut pg_sys::List,
            *mut pg_sys::ExplainState,
        ),
    >,
}

/// The table that the state of a node points at.
pub const fn exec_methods(
    name: &'static CStr,
    callbacks: Callbacks,
) -> Methods<pg_sys::CustomExecMethods> {
    Methods(pg_sys::CustomExecMethods {
        CustomName: name.as_ptr(),
        BeginCustomScan: Some(callbacks.begin),
        ExecCustomScan: Some(callbacks.exec),
        EndCustomScan: Some(callbacks.end),
        ReScanCustomScan: Some(callbacks.rescan),
        MarkPosCustomScan: None,
        RestrPosCustomScan: None,
        EstimateDSMCustomScan: None,
        InitializeDSMCustomScan: None,
        ReInitializeDSMCustomScan: None,
        InitializeWorkerCustomScan: None,
        ShutdownCustomScan: None,
        ExplainCustomScan: callbacks.explain,
    })
}

/// The table that the plan of a node points at.
pub const fn scan_methods(
    name: &'static CStr,
    create: unsafe extern "C-unwind" fn(*mut pg_sys::CustomScan) -> *mut pg_sys::Node,
) -> Methods<pg_sys::CustomScanMethods> {
    Methods(pg_sys::CustomScanMethods {
        CustomName: name.as_ptr(),
        CreateCustomScanState: Some(create),
    })
}

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

/// Makes plans with a node readable by copies (parallel workers, plan trees sent as text). To be called from
/// `_PG_init`.
pub fn register(methods: &'static Methods<pg_sys::CustomScanMethods>) {
    // SAFETY: the table lives as long as the process.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const methods.0) }
}

/// The state of a node without its own part.
///
/// # Safety
/// `methods` is the table of a node whose part is a `T`. Called where PostgreSQL makes the state.
pub unsafe fn new_state<T>(
    methods: &'static Methods<pg_sys::CustomExecMethods>,
) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a valid state apart from tag and methods, which are set.
    unsafe {
        let state = pg_sys::palloc0(size_of::<State<T>>()).cast::<State<T>>();
        (*state).css.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*state).css.methods = &raw const methods.0;
        state.cast()
    }
}

/// Gives a node its own part, which is dropped with the current memory context.
///
/// # Safety
/// `node` comes from [`new_state`] for a `T`.
pub unsafe fn set_own<T>(node: *mut pg_sys::CustomScanState, own: T) {
    // SAFETY: the caller's promise.
    unsafe {
        (*node.cast::<State<T>>()).own = keep_in_context(own);
    }
}

/// The own part of a node; NULL before it has begun.
///
/// # Safety
/// `node` comes from [`new_state`] for a `T`; it may be the node as any of the types that its state starts with.
#[inline]
pub unsafe fn own<T, N>(node: *mut N) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { (*node.cast::<State<T>>()).own }
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

/// The recheck of nodes that are not used where rows are locked: EvalPlanQual never asks them.
///
/// # Safety
/// None is needed; the executor's type asks for it.
pub unsafe extern "C-unwind" fn never_rechecked(
    _state: *mut pg_sys::ScanState,
    _slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    true
}

/// Begins the plans below a node; returns them in their order.
///
/// # Safety
/// Arguments are those of BeginCustomScan.
pub unsafe fn begin_children(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: core::ffi::c_int,
) -> Vec<*mut pg_sys::PlanState> {
    // SAFETY: the caller's promise.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let begin = |plan| {
            let child = pg_sys::ExecInitNode(plan, estate, eflags);
            (*node).custom_ps = pg_sys::lappend((*node).custom_ps, child.cast());
            child
        };
        list_iter((*scan).custom_plans).map(begin).collect()
    }
}

/// Rescans a plan below at once, for a node that uses it past the executor's entry, which would do so when it is next
/// asked.
///
/// # Safety
/// `child` is a begun node; `changed` are the parameters that have changed, or NULL.
pub unsafe fn rescan_now(child: *mut pg_sys::PlanState, changed: *mut pg_sys::Bitmapset) {
    // SAFETY: the caller's promise.
    unsafe {
        if !changed.is_null() {
            pg_sys::UpdateChangedParamSet(child, changed);
        }
        pg_sys::ExecReScan(child);
    }
}

/// The slot, empty: what a node returns at its end.
///
/// # Safety
/// `slot` is a live slot.
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            clear(slot);
        }
    }
    slot
}

/// The scan slot of a node as its target list wants it. The memory of the row before is the caller's to give up.
///
/// # Safety
/// `node` is a begun node whose scan slot has been filled.
pub unsafe fn project(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        let (slot, projection) = ((*node).ss.ss_ScanTupleSlot, (*node).ss.ps.ps_ProjInfo);
        if projection.is_null() {
            return slot;
        }
        (*(*node).ss.ps.ps_ExprContext).ecxt_scantuple = slot;
        pg_sys::ExecProject(projection)
    }
}

/// The name of a relation in the query that EXPLAIN shows.
///
/// # Safety
/// EXPLAIN's own state; `member` is a member of a set of relations of a plan.
pub unsafe fn relation_name(member: i32, es: *mut pg_sys::ExplainState) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        let name = pg_sys::list_nth((*es).rtable_names, member - 1).cast::<core::ffi::c_char>();
        if name.is_null() {
            String::from("?")
        } else {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    }
}

/// Shows a property of a node in EXPLAIN.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_text(label: &str, value: &str, es: *mut pg_sys::ExplainState) {
    let label = CString::new(label).unwrap_or_default();
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: the caller's promise; both strings live during the call.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) }
}

/// Shows a number of a node in EXPLAIN.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_integer(label: &CStr, value: i64, es: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value, es) }
}

/// Shows a time of a node in EXPLAIN; `nanoseconds` become milliseconds.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_milliseconds(label: &CStr, nanoseconds: u64, es: *mut pg_sys::ExplainState) {
    let milliseconds = nanoseconds as f64 / 1e6;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExplainPropertyFloat(label.as_ptr(), c"ms".as_ptr(), milliseconds, 3, es) }
}

/// Shows a group of properties in EXPLAIN: an object (`is_object`), or a list of groups.
///
/// # Safety
/// `es` is the state that EXPLAIN passes; `content` shows properties by it and nothing else.
pub unsafe fn explain_group(
    label: &CStr,
    is_object: bool,
    es: *mut pg_sys::ExplainState,
    content: impl FnOnce(),
) {
    // A member of a list has no label of its own.
    let own_label = if is_object {
        std::ptr::null()
    } else {
        label.as_ptr()
    };
    // SAFETY: the caller's promise; the group is closed as it was opened.
    unsafe {
        pg_sys::ExplainOpenGroup(label.as_ptr(), own_label, is_object, es);
        content();
        pg_sys::ExplainCloseGroup(label.as_ptr(), own_label, is_object, es);
    }
}

/// Expressions of a plan as SQL, for EXPLAIN.
///
/// # Safety
/// EXPLAIN's own arguments for a begun node; the expressions are of its plan.
pub unsafe fn deparse(
    node: *mut pg_sys::CustomScanState,
    exprs: &[*mut pg_sys::Node],
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) -> Vec<String> {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = (*node).ss.ps.plan;
        let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, plan, ancestors);
        let prefix = pg_sys::list_length((*es).rtable) > 1 || (*es).verbose;
        let text = |&expr| {
            let text = pg_sys::deparse_expression(expr, context, prefix, false);
            CStr::from_ptr(text).to_string_lossy().into_owned()
        };
        exprs.iter().map(text).collect()
    }
}

/// Shows how the quads of shards were read.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_traffic(went: &Traffic, es: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe {
        let text = traffic(went, (*es).timing);
        explain_text("Shards", text.trim_start(), es);
    }
}

/// How the quads of shards were read, for EXPLAIN: ` read=here` without messages, else ` read=pull` with what went over
/// the wire.
pub fn traffic(traffic: &Traffic, timing: bool) -> String {
    if traffic.messages == 0 {
        return " read=here".to_owned();
    }
    let mut text = format!(
        " read=pull messages={} sent={}B received={}B",
        traffic.messages, traffic.sent, traffic.received
    );
    if timing {
        text += &format!(" waiting={:.3} ms", traffic.waited as f64 / 1e6);
    }
    text
}
