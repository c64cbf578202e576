//! Planning of `Quad Count`: aggregates of the rows of a `Quad Join`, all together or grouped by columns of its quads.
//! The join then counts the rows of its last pattern instead of making them, where nothing is needed of them.
//!
//! The node stands where PostgreSQL would put an Aggregate; its child is the plan of the join. Only a query level gets
//! it whose GROUP BY names columns of quads and whose aggregates are all known: counts of rows, columns and distinct
//! values, least and greatest ids or terms, sums and averages. SELECT DISTINCT of columns is a grouping without
//! aggregates. Over distributed stores each node aggregates its own rows.

use super::aggregate::{is_column, Aggregate};
use super::count_exec::{self, QuadCount};
use super::paths::quad_join_of;
use super::plan;
use crate::nodes::counts::{self};
use crate::nodes::custom::{self, ChosenPath, PlanPath};
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use pgrx::pg_sys;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods::<Grouping>();
static DISTINCT_METHODS: Methods<pg_sys::CustomPathMethods> =
    custom::path_methods::<DistinctRows>();

/// Most columns that rows are grouped by. A word has a bit for each of them, and for a value that is counted once:
/// whether it is unbound.
const MAX_COLUMNS: usize = 62;

/// About the bytes of a group apart from its columns and aggregates.
const GROUP_BYTES: f64 = 16.0;
/// Bytes of a column.
const COLUMN_BYTES: f64 = 8.0;
/// Times that a group is written where memory has no room for all.
const SPILL_WRITES: f64 = 2.0;

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
        let Some(parts) = counted_parts(root, output) else {
            return;
        };
        let is_grouped = !(*(*root).parse).groupClause.is_null();
        let path = new_path(
            (join.cast(), output),
            &PATH_METHODS,
            parts.iter().map(|&part| bytes_of(part)).sum(),
            is_grouped,
        );
        if let Some(path) = path {
            pg_sys::add_path(output, path.cast());
        }
    }
}

/// Adds a path for the distinct rows of a `Quad Join`.
///
/// # Safety
/// Arguments are those of `create_upper_paths_hook`, at that stage.
pub unsafe fn add_distinct(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(join) = quad_join_of(input) else {
            return;
        };
        let target = (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_DISTINCT as usize];
        let Some(parts) = distinct_parts(root) else {
            return;
        };
        let is_part = |node: *mut pg_sys::Node| {
            let is = |part: &*mut pg_sys::Node| pg_sys::equal(part.cast(), node.cast());
            parts.iter().any(is)
        };
        if !list_iter((*target).exprs).all(is_part) {
            return;
        }
        let columns = COLUMN_BYTES * parts.len() as f64;
        let path = new_path((join.cast(), output), &DISTINCT_METHODS, columns, true);
        if let Some(path) = path {
            (*path).path.pathtarget = target;
            if hands_out_early(root, (*path).path.rows, columns) {
                (*path).path.startup_cost = (*join.cast::<pg_sys::Path>()).startup_cost;
            }
            pg_sys::add_path(output, path.cast());
        }
    }
}

/// Whether so many distinct rows are handed out as they are found: not all are wanted, nobody sorts them, and memory
/// has room for them. `part_bytes`: of the columns of one.
unsafe fn hands_out_early(root: *mut pg_sys::PlannerInfo, rows: f64, part_bytes: f64) -> bool {
    // SAFETY: the planner's own; a setting.
    unsafe {
        // A number of rows from 1 on, or a fraction of them; 0 for all.
        let wanted = (*root).tuple_fraction;
        let is_part = if wanted < 1.0 {
            wanted > 0.0
        } else {
            wanted < rows
        };
        is_part && (*(*root).parse).sortClause.is_null() && !spills(rows, part_bytes)
    }
}

/// Whether memory has no room for so many groups.
fn spills(groups: f64, part_bytes: f64) -> bool {
    // SAFETY: a setting.
    let room = unsafe { pg_sys::get_hash_memory_limit() };
    groups * (part_bytes + GROUP_BYTES) > room as f64
}

/// Bytes that a group has of a column or an aggregate.
unsafe fn bytes_of(part: *mut pg_sys::Node) -> f64 {
    // SAFETY: a live node, cast after a look at its tag.
    let aggregate = unsafe {
        let is_aggregate = (*part).type_ == pg_sys::NodeTag::T_Aggref;
        is_aggregate.then(|| Aggregate::of(part.cast())).flatten()
    };
    aggregate.map_or(COLUMN_BYTES, Aggregate::bytes)
}

/// A path over the join `child` for `output`, whose groups have so many bytes of columns and aggregates.
unsafe fn new_path(
    (child, output): (*mut pg_sys::Path, *mut pg_sys::RelOptInfo),
    methods: &'static Methods<pg_sys::CustomPathMethods>,
    part_bytes: f64,
    is_grouped: bool,
) -> Option<*mut pg_sys::CustomPath> {
    // SAFETY: live planner nodes; reads of settings.
    unsafe {
        if !(*child).param_info.is_null() {
            return None;
        }
        let (mut groups, mut spilling) = (1.0, 0.0);
        if is_grouped {
            // What PostgreSQL expects.
            let other = list_iter::<pg_sys::Path>((*output).pathlist).next()?;
            groups = (*other).rows;
            if spills(groups, part_bytes) {
                let records = (SPILL_WRITES * groups).min((*child).rows);
                let pages = records * (part_bytes + GROUP_BYTES) / f64::from(pg_sys::BLCKSZ);
                // Each is written and read.
                spilling = 2.0 * (pages * pg_sys::seq_page_cost + records * pg_sys::cpu_tuple_cost);
            }
        }
        let path: *mut pg_sys::CustomPath = custom::new_path(output, methods);
        (*path).path.rows = groups;
        // The rows that the join would have to make and pass on are what is saved.
        (*path).path.startup_cost =
            (*child).total_cost + spilling - (*child).rows * 0.5 * pg_sys::cpu_tuple_cost;
        (*path).path.total_cost = (*path).path.startup_cost + groups * pg_sys::cpu_tuple_cost;
        (*path).custom_paths = pg_sys::lappend(std::ptr::null_mut(), child.cast());
        Some(path)
    }
}

/// The columns of SELECT DISTINCT; none where the level wants something else.
unsafe fn distinct_parts(root: *mut pg_sys::PlannerInfo) -> Option<Vec<*mut pg_sys::Node>> {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        let plain = !(*parse).hasDistinctOn
            && !(*parse).hasAggs
            && !(*parse).hasWindowFuncs
            && !(*parse).hasTargetSRFs
            && (*parse).groupClause.is_null()
            && (*parse).groupingSets.is_null()
            && (*parse).havingQual.is_null();
        if !plain {
            return None;
        }
        let mut parts: Vec<*mut pg_sys::Node> = Vec::new();
        for clause in list_iter::<pg_sys::SortGroupClause>((*parse).distinctClause) {
            let expr = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
            is_column(expr).then_some(())?;
            if !parts
                .iter()
                .any(|&part| pg_sys::equal(part.cast(), expr.cast()))
            {
                parts.push(expr);
            }
        }
        (1..=MAX_COLUMNS).contains(&parts.len()).then_some(parts)
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
        (columns <= MAX_COLUMNS).then_some(())?;
        let wanted = counts::parts((*(*output).reltarget).exprs).into_iter();
        for node in wanted.chain(counts::parts((*parse).havingQual.cast())) {
            let known = parts
                .iter()
                .any(|&part| pg_sys::equal(part.cast(), node.cast()));
            if known {
                continue;
            }
            if (*node).type_ == pg_sys::NodeTag::T_Aggref {
                Aggregate::of(node.cast())?;
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

/// The path of groups.
struct Grouping;

impl PlanPath for Grouping {
    type Node = QuadCount;

    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        let root = chosen.root;
        // SAFETY: arguments are the planner's own.
        unsafe {
            let parts = counted_parts(root, chosen.rel).unwrap_or_default();
            let scan = plan_parts(chosen, parts);
            (*scan).scan.plan.qual = (*(*root).parse).havingQual.cast();
            scan
        }
    }
}

/// The path of SELECT DISTINCT.
struct DistinctRows;

impl PlanPath for DistinctRows {
    type Node = QuadCount;

    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        // SAFETY: arguments are the planner's own.
        unsafe {
            let parts = distinct_parts(chosen.root).unwrap_or_default();
            let columns = COLUMN_BYTES * parts.len() as f64;
            if hands_out_early(chosen.root, (*chosen.path).path.rows, columns) {
                list_iter(chosen.plans).for_each(|join| plan::expect_few_rows(join));
            }
            plan_parts(chosen, parts)
        }
    }
}

/// The plan: `custom_scan_tlist` = the columns that rows are grouped by, then the aggregates.
unsafe fn plan_parts(chosen: ChosenPath, parts: Vec<*mut pg_sys::Node>) -> *mut pg_sys::CustomScan {
    // SAFETY: arguments are the planner's own.
    unsafe {
        let mut columns = std::ptr::null_mut();
        for part in parts {
            columns = custom::with_entry(columns, part.cast());
        }
        let scan = custom::new_plan(chosen.path, chosen.tlist, &count_exec::SCAN_METHODS);
        (*scan).custom_plans = chosen.plans;
        (*scan).custom_scan_tlist = columns;
        scan
    }
}
