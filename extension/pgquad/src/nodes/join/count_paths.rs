//! Planning of `Quad Count`: counts of the rows of a `Quad Join`, all together or grouped by columns of its quads. The
//! join then counts the rows of its last pattern instead of making them, where nothing is needed of them.
//!
//! The node stands where PostgreSQL would put an Aggregate; its child is the plan of the join. Only a query level gets
//! it whose GROUP BY names columns of quads and whose aggregates are all `count(*)` or counts of such columns. Over
//! distributed stores they may be sums and averages of ids of numbers too: the nodes add up their own.

use super::count_exec::{self, QuadCount};
use super::paths::quad_join_of;
use crate::cluster::store;
use crate::nodes::counts::{self, COUNT_ROWS, COUNT_VALUES};
use crate::nodes::custom::{self, ScanNode};
use crate::pg::compat;
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use crate::rights::SEEN;
use pgrx::pg_sys;
use pgrx::prelude::*;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> =
    custom::path_methods(QuadCount::NAME, plan_path);

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
        if !(*parse).groupingSets.is_null() || (*parse).hasTargetSRFs {
            return None;
        }
        let mut parts = Vec::new();
        for clause in list_iter::<pg_sys::SortGroupClause>((*parse).groupClause) {
            let expr = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
            is_column(expr).then(|| parts.push(expr))?;
        }
        let columns = parts.len();
        let mut of_nodes = None;
        let wanted = counts::parts((*(*output).reltarget).exprs).into_iter();
        for node in wanted.chain(counts::parts((*parse).havingQual.cast())) {
            let known = parts
                .iter()
                .any(|&part| pg_sys::equal(part.cast(), node.cast()));
            if known {
                continue;
            }
            if (*node).type_ == pg_sys::NodeTag::T_Aggref {
                match Aggregate::of(node.cast())? {
                    Aggregate::Count => {}
                    _ => of_nodes
                        .get_or_insert_with(|| is_distributed(root))
                        .then_some(())?,
                }
                parts.push(node);
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
    // SAFETY: a live node, cast after its tag was checked. All relations of a `Quad Join` are quad tables, whose
    // columns are these.
    unsafe {
        if expr.is_null() || (*expr).type_ != pg_sys::NodeTag::T_Var {
            return false;
        }
        let var = expr.cast::<pg_sys::Var>();
        (*var).varlevelsup == 0 && (1..=4).contains(&(*var).varattno)
    }
}

/// What the node makes of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aggregate {
    /// Their number, or how many have a value in a column.
    Count,
    /// The sum of numbers, as a term.
    Sum,
    /// The average.
    Average,
    /// The sum, as an id.
    SumId,
    /// The average, as an id.
    AverageId,
}

impl Aggregate {
    /// What an aggregate is, if it is one that the node knows.
    ///
    /// # Safety
    /// `aggregate` is a live node.
    pub unsafe fn of(aggregate: *mut pg_sys::Aggref) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let plain = (*aggregate).aggfilter.is_null()
                && (*aggregate).aggdistinct.is_null()
                && (*aggregate).aggorder.is_null()
                && (*aggregate).agglevelsup == 0;
            if !plain {
                return None;
            }
            match (*aggregate).aggfnoid {
                COUNT_ROWS => (*aggregate).aggstar.then_some(Self::Count),
                COUNT_VALUES => is_column(argument(aggregate)).then_some(Self::Count),
                _ => Self::of_ids(aggregate),
            }
        }
    }

    /// An aggregate of this extension that takes ids of numbers.
    unsafe fn of_ids(aggregate: *mut pg_sys::Aggref) -> Option<Self> {
        // SAFETY: a live node; look-ups in the catalogue.
        unsafe {
            let argument = argument(aggregate);
            let takes_ids = !argument.is_null() && pg_sys::exprType(argument) == pg_sys::INT8OID;
            // Ids that nobody has found to come from this statement's quads are checked by the aggregate's own
            // function, row by row.
            let is_seen = (*aggregate).inputcollid == SEEN;
            let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
            if !takes_ids
                || !is_seen
                || pg_sys::get_func_namespace((*aggregate).aggfnoid) != schema
                || pg_sys::contain_volatile_functions(argument)
                || pg_sys::contain_subplans(argument)
            {
                return None;
            }
            let name = pg_sys::get_func_name((*aggregate).aggfnoid);
            match std::ffi::CStr::from_ptr(name).to_bytes() {
                b"agg_sum" => Some(Self::Sum),
                b"agg_avg" => Some(Self::Average),
                b"agg_sum_float" => Some(Self::SumId),
                b"agg_avg_float" => Some(Self::AverageId),
                _ => None,
            }
        }
    }
}

/// Whether the level reads stores whose quads are on several nodes.
unsafe fn is_distributed(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        list_iter::<pg_sys::RangeTblEntry>((*(*root).parse).rtable)
            .filter_map(|rte| compat::relation_of(rte))
            .any(|relid| store::mark_of(relid).is_some())
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
        (*scan).scan.plan.qual = (*(*root).parse).havingQual.cast();
        scan.cast()
    }
}
