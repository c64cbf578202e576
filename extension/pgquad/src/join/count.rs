//! `Quad Count`: `count(*)` over a `Quad Join`, which then counts the rows of its last pattern instead of making them.
//!
//! The node stands where PostgreSQL would put an Aggregate; its child is the plan of the join. Only a query level without GROUP BY and
//! HAVING whose aggregates are all `count(*)` gets it.

use super::exec::{self, QuadJoinState};
use super::paths::quad_join_of;
use crate::ffi::Methods;
use crate::scan::clear;
use crate::scan::conditions::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::create_upper_paths_hook_type = None;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = Methods(pg_sys::CustomPathMethods {
    CustomName: c"Quad Count".as_ptr(),
    PlanCustomPath: Some(plan_path),
    ReparameterizeCustomPathByChild: None,
});

static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = Methods(pg_sys::CustomScanMethods {
    CustomName: c"Quad Count".as_ptr(),
    CreateCustomScanState: Some(create_state),
});

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = Methods(pg_sys::CustomExecMethods {
    CustomName: c"Quad Count".as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(exec),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: None,
    InitializeDSMCustomScan: None,
    ReInitializeDSMCustomScan: None,
    InitializeWorkerCustomScan: None,
    ShutdownCustomScan: None,
    ExplainCustomScan: None,
});

/// `count(*)` (`pg_proc.dat`).
const COUNT_ROWS: pg_sys::Oid = pg_sys::Oid::from_u32(2803);

/// Registers node and hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any planning.
    unsafe {
        PREVIOUS = pg_sys::create_upper_paths_hook;
        pg_sys::create_upper_paths_hook = Some(create_upper_paths);
        pg_sys::RegisterCustomScanMethods(&raw const SCAN_METHODS.0);
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
        if stage != pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG || !only_counts_rows(root, output)
        {
            return;
        }
        let Some(join) = quad_join_of(input) else {
            return;
        };
        let child = join.cast::<pg_sys::Path>();
        if !(*child).param_info.is_null() {
            return;
        }
        let path = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast::<pg_sys::CustomPath>();
        (*path).path.type_ = pg_sys::NodeTag::T_CustomPath;
        (*path).path.pathtype = pg_sys::NodeTag::T_CustomScan;
        (*path).path.parent = output;
        (*path).path.pathtarget = (*output).reltarget;
        (*path).path.rows = 1.0;
        // The rows that the join would have to make and pass on are what is saved.
        (*path).path.startup_cost =
            (*child).total_cost - (*child).rows * 0.5 * pg_sys::cpu_tuple_cost;
        (*path).path.total_cost = (*path).path.startup_cost + pg_sys::cpu_tuple_cost;
        (*path).flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        (*path).custom_paths = pg_sys::lappend(std::ptr::null_mut(), child.cast());
        (*path).methods = &raw const PATH_METHODS.0;
        pg_sys::add_path(output, path.cast());
    }
}

/// Whether a level does nothing with its joined rows but count them.
unsafe fn only_counts_rows(
    root: *mut pg_sys::PlannerInfo,
    output: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        let plain = (*parse).groupClause.is_null()
            && (*parse).groupingSets.is_null()
            && (*parse).havingQual.is_null()
            && !(*parse).hasTargetSRFs;
        let aggregates = counts(output);
        plain
            && !aggregates.is_empty()
            && aggregates.iter().all(|&aggregate| {
                (*aggregate).aggfnoid == COUNT_ROWS
                    && (*aggregate).aggstar
                    && (*aggregate).aggfilter.is_null()
                    && (*aggregate).agglevelsup == 0
            })
    }
}

/// The aggregates of a relation's target, or none where it uses columns outside of them.
unsafe fn counts(output: *mut pg_sys::RelOptInfo) -> Vec<*mut pg_sys::Aggref> {
    // SAFETY: live planner nodes; the tag tells aggregates from columns.
    unsafe {
        let flags = pg_sys::PVC_INCLUDE_AGGREGATES
            | pg_sys::PVC_INCLUDE_WINDOWFUNCS
            | pg_sys::PVC_RECURSE_PLACEHOLDERS;
        let found = pg_sys::pull_var_clause((*(*output).reltarget).exprs.cast(), flags as i32);
        let nodes: Vec<*mut pg_sys::Node> = list_iter(found).collect();
        if nodes
            .iter()
            .any(|&node| (*node).type_ != pg_sys::NodeTag::T_Aggref)
        {
            return Vec::new();
        }
        nodes.into_iter().map(|node| node.cast()).collect()
    }
}

/// PlanCustomPath: `custom_scan_tlist` = the aggregates, all with the same value.
#[pg_guard]
unsafe extern "C-unwind" fn plan_path(
    _root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    tlist: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: arguments are the planner's own.
    unsafe {
        let mut columns = std::ptr::null_mut();
        for (at, aggregate) in counts(rel).into_iter().enumerate() {
            let entry = pg_sys::makeTargetEntry(
                aggregate.cast(),
                at as i16 + 1,
                std::ptr::null_mut(),
                false,
            );
            columns = pg_sys::lappend(columns, entry.cast());
        }
        let scan = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        (*scan).scan.plan.type_ = pg_sys::NodeTag::T_CustomScan;
        (*scan).scan.plan.targetlist = tlist;
        (*scan).scan.scanrelid = 0;
        (*scan).flags = (*path).flags;
        (*scan).custom_plans = plans;
        (*scan).custom_scan_tlist = columns;
        (*scan).methods = &raw const SCAN_METHODS.0;
        scan.cast()
    }
}

/// PostgreSQL's node with our part behind it; the first field must be the node.
#[repr(C)]
struct QuadCountState {
    css: pg_sys::CustomScanState,
    done: bool,
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a valid state apart from tag and methods, which are set.
    unsafe {
        let state = pg_sys::palloc0(size_of::<QuadCountState>()).cast::<QuadCountState>();
        (*state).css.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*state).css.methods = &raw const EXEC_METHODS.0;
        state.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: core::ffi::c_int,
) {
    // SAFETY: the node was made by `create_state` from a plan made by `plan_path`.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        for plan in list_iter::<pg_sys::Plan>((*scan).custom_plans) {
            let child = pg_sys::ExecInitNode(plan, estate, eflags);
            (*node).custom_ps = pg_sys::lappend((*node).custom_ps, child.cast());
        }
    }
}

/// The child, a begun `Quad Join`.
unsafe fn child(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::PlanState {
    // SAFETY: `begin` has put one there.
    unsafe {
        list_iter((*node).custom_ps)
            .next()
            .unwrap_or(std::ptr::null_mut())
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn exec(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a begun node, whose scan slot is a virtual one with a place for each aggregate.
    unsafe {
        let state = node.cast::<QuadCountState>();
        let slot = (*node).ss.ss_ScanTupleSlot;
        clear(slot);
        let projection = (*node).ss.ps.ps_ProjInfo;
        if (*state).done {
            return if projection.is_null() {
                slot
            } else {
                clear((*node).ss.ps.ps_ResultTupleSlot)
            };
        }
        (*state).done = true;
        let child = child(node);
        let instrument = (*child).instrument;
        if !instrument.is_null() {
            pg_sys::InstrStartNode(instrument);
        }
        let counted = exec::count_rows(child.cast::<QuadJoinState>());
        if !instrument.is_null() {
            pg_sys::InstrStopNode(instrument, counted as f64);
        }
        for place in 0..(*(*slot).tts_tupleDescriptor).natts as usize {
            *(*slot).tts_values.add(place) = pg_sys::Datum::from(counted as i64);
            *(*slot).tts_isnull.add(place) = false;
        }
        pg_sys::ExecStoreVirtualTuple(slot);
        if projection.is_null() {
            return slot;
        }
        let context = (*node).ss.ps.ps_ExprContext;
        pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
        (*context).ecxt_scantuple = slot;
        pg_sys::ExecProject(projection)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a begun node.
    unsafe { pg_sys::ExecEndNode(child(node)) }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a begun node. A child whose parameters have changed is rescanned when it is next asked, which this node does past the
    // executor's entry: so it is told at once.
    unsafe {
        (*node.cast::<QuadCountState>()).done = false;
        let child = child(node);
        if !(*node).ss.ps.chgParam.is_null() {
            pg_sys::UpdateChangedParamSet(child, (*node).ss.ps.chgParam);
        }
        pg_sys::ExecReScan(child);
    }
}
