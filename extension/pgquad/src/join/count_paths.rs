//! Planning of `Quad Count`: counts of the rows of a `Quad Join`, all together or grouped by columns of its quads. The join then counts the
//! rows of its last pattern instead of making them, where nothing is needed of them.
//!
//! The node stands where PostgreSQL would put an Aggregate; its child is the plan of the join. Only a query level without HAVING gets it,
//! whose GROUP BY names columns of quads and whose aggregates are all `count(*)` or counts of such columns.

use super::count_exec;
use super::paths::quad_join_of;
use crate::counts::{self, COUNT_ROWS, COUNT_VALUES};
use crate::custom;
use crate::ffi::Methods;
use crate::scan::conditions::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> =
    custom::path_methods(count_exec::NAME, plan_path);

/// About the bytes of a group apart from its columns and counts.
const GROUP: f64 = 16.0;
/// Times that a group is written where memory has no room for all.
const SPILLS: f64 = 2.0;

/// Adds a path that counts the rows of a `Quad Join`.
///
/// # Safety
/// Arguments are those of `create_upper_paths_hook`, at the stage of grouping.
pub unsafe fn add(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(join) = quad_join_of(input) else {
            return;
        };
        let child = join.cast::<pg_sys::Path>();
        if !(*child).param_info.is_null() {
            return;
        }
        let Some(parts) = counted_parts(root, output) else {
            return;
        };
        let (mut groups, mut spilling) = (1.0, 0.0);
        if !(*(*root).parse).groupClause.is_null() {
            // What PostgreSQL expects.
            let other = list_iter::<pg_sys::Path>((*output).pathlist).next();
            let Some(other) = other else {
                return;
            };
            groups = (*other).rows;
            let bytes = groups * (8.0 * parts.len() as f64 + GROUP);
            if bytes > pg_sys::get_hash_memory_limit() as f64 {
                let records = (SPILLS * groups).min((*child).rows);
                let pages = records * bytes / groups / f64::from(pg_sys::BLCKSZ);
                // Each is written and read.
                spilling = 2.0 * (pages * pg_sys::seq_page_cost + records * pg_sys::cpu_tuple_cost);
            }
        }
        let path: *mut pg_sys::CustomPath = custom::new_path(output, &PATH_METHODS);
        (*path).path.rows = groups;
        // The rows that the join would have to make and pass on are what is saved.
        (*path).path.startup_cost =
            (*child).total_cost + spilling - (*child).rows * 0.5 * pg_sys::cpu_tuple_cost;
        (*path).path.total_cost = (*path).path.startup_cost + groups * pg_sys::cpu_tuple_cost;
        (*path).custom_paths = pg_sys::lappend(std::ptr::null_mut(), child.cast());
        pg_sys::add_path(output, path.cast());
    }
}

/// The columns that a level groups by, then the aggregates; none where the level wants something else.
unsafe fn counted_parts(
    root: *mut pg_sys::PlannerInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Option<Vec<*mut pg_sys::Node>> {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        let plain = (*parse).groupingSets.is_null()
            && (*parse).havingQual.is_null()
            && !(*parse).hasTargetSRFs;
        if !plain {
            return None;
        }
        let mut parts = Vec::new();
        for clause in list_iter::<pg_sys::SortGroupClause>((*parse).groupClause) {
            let expr = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
            is_column(expr).then(|| parts.push(expr))?;
        }
        let columns = parts.len();
        for node in counts::parts((*(*output).reltarget).exprs) {
            if (*node).type_ == pg_sys::NodeTag::T_Aggref {
                is_count(node.cast()).then(|| parts.push(node))?;
            } else {
                let grouped = parts[..columns]
                    .iter()
                    .any(|&part| pg_sys::equal(part.cast(), node.cast()));
                grouped.then_some(())?;
            }
        }
        (!parts.is_empty()).then_some(parts)
    }
}

/// Whether an expression is a column of this level's quads.
unsafe fn is_column(expr: *mut pg_sys::Node) -> bool {
    // SAFETY: a live node, cast after its tag was checked. All relations of a `Quad Join` are quad tables, whose columns are these.
    unsafe {
        if expr.is_null() || (*expr).type_ != pg_sys::NodeTag::T_Var {
            return false;
        }
        let var = expr.cast::<pg_sys::Var>();
        (*var).varlevelsup == 0 && (1..=4).contains(&(*var).varattno)
    }
}

/// Whether an aggregate is `count(*)` or the count of a column.
unsafe fn is_count(aggregate: *mut pg_sys::Aggref) -> bool {
    // SAFETY: a live node.
    unsafe {
        let plain = (*aggregate).aggfilter.is_null()
            && (*aggregate).aggdistinct.is_null()
            && (*aggregate).aggorder.is_null()
            && (*aggregate).agglevelsup == 0;
        plain
            && match (*aggregate).aggfnoid {
                COUNT_ROWS => (*aggregate).aggstar,
                COUNT_VALUES => is_column(argument(aggregate)),
                _ => false,
            }
    }
}

/// What an aggregate of one argument counts, NULL for `count(*)`.
///
/// # Safety
/// `aggregate` is a live node.
pub unsafe fn argument(aggregate: *mut pg_sys::Aggref) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe {
        let mut arguments = list_iter::<pg_sys::TargetEntry>((*aggregate).args);
        let first = arguments.next();
        first.map_or(std::ptr::null_mut(), |entry| (*entry).expr.cast())
    }
}

/// PlanCustomPath: `custom_scan_tlist` = the columns that rows are grouped by, then the aggregates.
#[pg_guard]
unsafe extern "C-unwind" fn plan_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    tlist: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: arguments are the planner's own.
    unsafe {
        let mut columns = std::ptr::null_mut();
        for part in counted_parts(root, rel).into_iter().flatten() {
            columns = custom::with_entry(columns, part.cast());
        }
        let scan = custom::new_plan(path, tlist, &count_exec::SCAN_METHODS);
        (*scan).custom_plans = plans;
        (*scan).custom_scan_tlist = columns;
        scan.cast()
    }
}
