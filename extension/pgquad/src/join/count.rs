//! `Quad Count`: `count(*)` over a `Quad Join`, which then counts the rows of its last pattern instead of making them.
//!
//! The node stands where PostgreSQL would put an Aggregate; its child is the plan of the join. Only a query level without GROUP BY and
//! HAVING whose aggregates are all `count(*)` gets it.

use super::exec;
use super::paths::quad_join_of;
use crate::custom::{self, clear, Callbacks};
use crate::ffi::Methods;
use crate::scan::conditions::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::create_upper_paths_hook_type = None;

const NAME: &std::ffi::CStr = c"Quad Count";

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods(NAME, plan_path);

static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods(NAME, create_state);

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods(
    NAME,
    Callbacks {
        begin,
        exec,
        end,
        rescan,
        explain: None,
    },
);

/// `count(*)` (`pg_proc.dat`).
const COUNT_ROWS: pg_sys::Oid = pg_sys::Oid::from_u32(2803);

/// Registers node and hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any planning.
    unsafe {
        PREVIOUS = pg_sys::create_upper_paths_hook;
        pg_sys::create_upper_paths_hook = Some(create_upper_paths);
    }
    custom::register(&SCAN_METHODS);
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
        let path: *mut pg_sys::CustomPath = custom::new_path(output, &PATH_METHODS);
        (*path).path.rows = 1.0;
        // The rows that the join would have to make and pass on are what is saved.
        (*path).path.startup_cost =
            (*child).total_cost - (*child).rows * 0.5 * pg_sys::cpu_tuple_cost;
        (*path).path.total_cost = (*path).path.startup_cost + pg_sys::cpu_tuple_cost;
        (*path).custom_paths = pg_sys::lappend(std::ptr::null_mut(), child.cast());
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
        let scan = custom::new_plan(path, tlist, &SCAN_METHODS);
        (*scan).custom_plans = plans;
        (*scan).custom_scan_tlist = columns;
        scan.cast()
    }
}

/// The node's own part.
struct QuadCount {
    done: bool,
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: called where PostgreSQL makes the state.
    unsafe { custom::new_state::<QuadCount>(&EXEC_METHODS) }
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
        custom::set_own(node, QuadCount { done: false });
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
        let count = custom::own::<QuadCount, _>(node);
        let slot = (*node).ss.ss_ScanTupleSlot;
        clear(slot);
        if (*count).done {
            return if (*node).ss.ps.ps_ProjInfo.is_null() {
                slot
            } else {
                clear((*node).ss.ps.ps_ResultTupleSlot)
            };
        }
        (*count).done = true;
        let child = child(node);
        let instrument = (*child).instrument;
        if !instrument.is_null() {
            pg_sys::InstrStartNode(instrument);
        }
        let counted = exec::count_rows(child);
        if !instrument.is_null() {
            pg_sys::InstrStopNode(instrument, counted as f64);
        }
        for place in 0..(*(*slot).tts_tupleDescriptor).natts as usize {
            *(*slot).tts_values.add(place) = pg_sys::Datum::from(counted as i64);
            *(*slot).tts_isnull.add(place) = false;
        }
        pg_sys::ExecStoreVirtualTuple(slot);
        custom::project(node)
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
        (*custom::own::<QuadCount, _>(node)).done = false;
        let child = child(node);
        if !(*node).ss.ps.chgParam.is_null() {
            pg_sys::UpdateChangedParamSet(child, (*node).ss.ps.chgParam);
        }
        pg_sys::ExecReScan(child);
    }
}
