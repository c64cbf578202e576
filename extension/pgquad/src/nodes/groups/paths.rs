//! Planning of `Quad Groups`: a path beside PostgreSQL's own for grouping, aggregates and DISTINCT.

use super::plan::GroupsPath;
use super::shape::{Shape, Wanted};
use crate::catalog::access_method;
use crate::nodes::counts::parts;
use crate::nodes::custom;
use crate::nodes::scan::conditions;
use crate::nodes::scan::{estimate, pathkeys_of};
use crate::pg::exit::keep_in_context;
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use crate::settings;
use pgquad_btree::Direction;
use pgrx::pg_sys;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods::<GroupsPath>();

/// Adds a path for the distinct rows of a level.
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
        if is_quad_table(root, input) {
            let target =
                (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_DISTINCT as usize];
            if let Some(wanted) = distinct(root, input, target) {
                add(root, (input, output), target, wanted, std::ptr::null_mut());
            }
        }
    }
}

/// Adds a path for the groups and aggregates of a level.
///
/// # Safety
/// Arguments are those of `create_upper_paths_hook`, at that stage.
pub unsafe fn add_grouping(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if is_quad_table(root, input) {
            let target = (*output).reltarget;
            if let Some(wanted) = grouping(root, input, target) {
                let having = (*(*root).parse).havingQual.cast();
                add(root, (input, output), target, wanted, having);
            }
        }
    }
}

/// Adds the path of a shape that gives what is wanted, if there is one.
unsafe fn add(
    root: *mut pg_sys::PlannerInfo,
    (input, output): (*mut pg_sys::RelOptInfo, *mut pg_sys::RelOptInfo),
    target: *mut pg_sys::PathTarget,
    wanted: Wanted,
    having: *mut pg_sys::List,
) {
    // SAFETY: live planner nodes.
    unsafe {
        let Some(shape) = Shape::find(root, input, wanted, having) else {
            return;
        };
        let path: *mut GroupsPath = custom::new_path(output, &PATH_METHODS);
        (*path).path.path.pathtarget = target;
        let scattered = shape.scattered.map(|column| [column as u8]);
        let columns = match &scattered {
            Some(column) => &column[..],
            None => &shape.columns[shape.exact.min(shape.depth)..shape.depth],
        };
        (*path).path.path.pathkeys = pathkeys_of(root, input, columns, Direction::Forward);
        cost(root, input, path, &shape);
        (*path).shape = keep_in_context(shape);
        pg_sys::add_path(output, path.cast());
    }
}

/// Whether a level reads one quad table and nothing else, and hands on its rows as they are.
unsafe fn is_quad_table(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        if !settings::ENABLE_QUAD_GROUPS.get()
            || !settings::ENABLE_QUAD_SCAN.get()
            || (*rel).reloptkind != pg_sys::RelOptKind::RELOPT_BASEREL
            || (*rel).rtekind != pg_sys::RTEKind::RTE_RELATION
            || pg_sys::is_dummy_rel(rel)
        {
            return false;
        }
        let rte = *(*root).simple_rte_array.add((*rel).relid as usize);
        let parse = (*root).parse;
        !(*rte).inh
            && (*rte).tablesample.is_null()
            && access_method::is_quad_relid((*rte).relid)
            && (*parse).commandType == pg_sys::CmdType::CMD_SELECT
            && (*parse).rowMarks.is_null()
            && (*root).rowMarks.is_null()
            && !(*parse).hasTargetSRFs
            && (*parse).groupingSets.is_null()
            && !(*root).hasPseudoConstantQuals
    }
}

/// The columns that a list of `SortGroupClause`s names, if it names nothing else.
unsafe fn columns(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    clauses: *mut pg_sys::List,
) -> Option<Vec<usize>> {
    // SAFETY: live planner nodes.
    unsafe {
        let mut found = Vec::new();
        for clause in list_iter::<pg_sys::SortGroupClause>(clauses) {
            let expr = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
            let column = conditions::own_column((*rel).relid, expr)?;
            if !found.contains(&column) {
                found.push(column);
            }
        }
        Some(found)
    }
}

/// What SELECT DISTINCT wants, if it is distinct values of columns.
unsafe fn distinct(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::PathTarget,
) -> Option<Wanted> {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        let plain = !(*parse).hasDistinctOn
            && !(*parse).hasAggs
            && !(*parse).hasWindowFuncs
            && (*parse).groupClause.is_null()
            && (*parse).havingQual.is_null();
        if !plain {
            return None;
        }
        let mut wanted = Wanted {
            columns: columns(root, rel, (*parse).distinctClause)?,
            distinct: None,
            counting: false,
            grouped: true,
        };
        wanted.ask((*rel).relid, list_iter((*target).exprs))?;
        (!wanted.columns.is_empty()).then_some(wanted)
    }
}

/// What GROUP BY and aggregates want, if it is columns and counts.
unsafe fn grouping(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::PathTarget,
) -> Option<Wanted> {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        let mut wanted = Wanted {
            columns: columns(root, rel, (*parse).groupClause)?,
            distinct: None,
            counting: false,
            grouped: !(*parse).groupClause.is_null(),
        };
        for list in [(*target).exprs, (*parse).havingQual.cast()] {
            wanted.ask((*rel).relid, parts(list).into_iter())?;
        }
        (wanted.grouped || wanted.counting || wanted.distinct.is_some()).then_some(wanted)
    }
}

/// CPU cost of a leaf or inner page, in units of `cpu_operator_cost`. Chosen, not measured, as for a descent of a
/// `Quad Scan`.
const PAGE_OPERATORS: f64 = 20.0;
/// Cost of the first leaf, in units of `random_page_cost`. Chosen, not measured, as for that of a `Quad Scan`.
const FIRST_LEAF_PAGES: f64 = 0.1;
/// CPU cost of a quad whose columns are compared with those of the one before, in units of `cpu_operator_cost`.
/// Chosen, not measured.
const QUAD_OPERATORS: f64 = 0.1;

/// The leaves of the range are read where groups are small; large ones cost a descent or two. Counts of all-visible
/// leaves are not foreseen.
unsafe fn cost(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut GroupsPath,
    shape: &Shape,
) {
    // SAFETY: live planner nodes; reads of cost settings.
    unsafe {
        // Only the bounds keep quads from being read: other conditions are tested on the way.
        let quads = estimate::passing(root, rel, &shape.bounds).max((*rel).rows);
        let share = (quads / (*rel).tuples.max(1.0)).min(1.0);
        let leaves = (f64::from((*rel).pages) / shape.orders as f64 * share)
            .ceil()
            .max(1.0);
        let inner = groups(root, rel, shape, shape.inner_depth, quads);
        let read = match shape.inner_depth {
            0 => leaves,
            _ => leaves.min(2.0 * inner),
        };
        let io = FIRST_LEAF_PAGES * pg_sys::random_page_cost + (read - 1.0) * pg_sys::seq_page_cost;
        let each = PAGE_OPERATORS * pg_sys::cpu_operator_cost;
        let compared = quads * (read / leaves) * QUAD_OPERATORS * pg_sys::cpu_operator_cost;
        let made = groups(root, rel, shape, shape.depth, (*rel).rows);
        let mut qual = pg_sys::QualCost::default();
        pg_sys::cost_qual_eval(&mut qual, shape.having, root);
        let having = pg_sys::clauselist_selectivity(
            root,
            shape.having,
            0,
            pg_sys::JoinType::JOIN_INNER,
            std::ptr::null_mut(),
        );
        let path = &mut (*path).path.path;
        path.rows = pg_sys::clamp_row_est(made * having);
        path.startup_cost = qual.startup + PAGE_OPERATORS * pg_sys::cpu_operator_cost;
        path.total_cost = path.startup_cost
            + io
            + read * each
            + compared
            + made * (qual.per_tuple + 0.5 * pg_sys::cpu_tuple_cost);
        if !shape.wanted.grouped {
            path.startup_cost = path.total_cost;
        }
    }
}

/// How many groups the first columns of the order make of `quads` quads.
unsafe fn groups(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    shape: &Shape,
    depth: usize,
    quads: f64,
) -> f64 {
    // SAFETY: live planner nodes.
    unsafe {
        let mut exprs = std::ptr::null_mut();
        let scattered = shape.scattered.map(|column| column as u8);
        let prefix = &shape.columns[shape.exact.min(depth)..depth];
        for &column in prefix.iter().chain(&scattered) {
            let attribute = i16::from(column) + 1;
            let (kind, none) = (pg_sys::INT8OID, pg_sys::InvalidOid);
            let var = pg_sys::makeVar(shape.relid as i32, attribute, kind, -1, none, 0);
            exprs = pg_sys::lappend(exprs, var.cast());
        }
        if exprs.is_null() {
            return 1.0;
        }
        // The estimate looks at the rows that the relation is expected to have.
        let rows = std::mem::replace(&mut (*rel).rows, quads);
        let none = std::ptr::null_mut();
        let found = pg_sys::estimate_num_groups(root, exprs, quads, none, none.cast());
        (*rel).rows = rows;
        found
    }
}
