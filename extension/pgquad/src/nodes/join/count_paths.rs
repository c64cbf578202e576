//! Planning of `Quad Count`: aggregates of the rows of a `Quad Join`, all together or grouped by columns of its quads.
//! The join then counts the rows of its last pattern instead of making them, where nothing is needed of them.
//!
//! The node stands where PostgreSQL would put an Aggregate; its child is the plan of the join. Only a query level gets
//! it whose GROUP BY has columns of quads, or what is computed from them, and whose aggregates are all known: counts of
//! rows, columns and distinct values, least and greatest ids or terms, sums and averages. SELECT DISTINCT is a grouping
//! without aggregates. Over distributed stores each node aggregates its own rows.
//!
//! Where a key is computed, rows are grouped by the columns that it is computed from, and then these groups by the
//! keys. That pays where there are fewer such groups than rows: PostgreSQL chooses by the costs.

use super::aggregate::{is_column, is_of_columns, Aggregate};
use super::columns::{columns_of, INT8_EQUAL};
use super::computed_groups::SHARES_OF_MEMORY;
use super::count_exec::{self, QuadCount};
use super::paths::quad_join_of;
use super::{plan, single_pattern};
use crate::nodes::counts::{self};
use crate::nodes::custom::{self, ChosenPath, PlanPath};
use crate::pg::ffi::{self, Methods};
use crate::pg::list::list_iter;
use pgquad_exec::{CountData, Oid};
use pgrx::{pg_guard, pg_sys};

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
/// What a group by columns costs where keys are computed from it, beside the expressions: it is made, taken out, and
/// put together with others. In `cpu_tuple_cost`: 55,000 groups of one row each took 1.2 times as long as PostgreSQL's
/// HashAggregate over these rows, with an expression that costs next to nothing.
const REGROUPING_TUPLES: f64 = 2.0;
/// What making a group of the rows of a single pattern costs in addition, in `cpu_tuple_cost`: they are read in an
/// order in which PostgreSQL may have equal ones side by side, and then what comes out is sorted. 19,374 groups of one
/// row each took as long as a GroupAggregate, and five times as long to sort.
const SINGLE_PATTERN_TUPLES: f64 = 2.0;
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
        let Some(child) = CountedJoin::of(root, input) else {
            return;
        };
        let Some(parts) = counted_parts(root, output).filter(|parts| child.is_worth_it(parts))
        else {
            return;
        };
        let path = new_path(root, (&child, output), &PATH_METHODS, &parts);
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
        let Some(child) = CountedJoin::of(root, input) else {
            return;
        };
        let target = (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_DISTINCT as usize];
        let Some(parts) = distinct_parts(root).filter(|parts| child.is_worth_it(parts)) else {
            return;
        };
        if !list_iter((*target).exprs).all(|expr| contains(&parts.keys, expr)) {
            return;
        }
        let path = new_path(root, (&child, output), &DISTINCT_METHODS, &parts);
        if let Some(path) = path {
            (*path).path.pathtarget = target;
            if hands_out_early(root, (*path).path.rows, &parts) {
                (*path).path.startup_cost = (*child.path).startup_cost;
            }
            pg_sys::add_path(output, path.cast());
        }
    }
}

/// A `Quad Join` whose rows are counted.
struct CountedJoin {
    path: *mut pg_sys::Path,
    /// It reads a single pattern, and is not worth it for its rows alone.
    is_single: bool,
}

impl CountedJoin {
    /// That of a relation.
    unsafe fn of(root: *mut pg_sys::PlannerInfo, input: *mut pg_sys::RelOptInfo) -> Option<Self> {
        // SAFETY: live planner nodes.
        unsafe {
            let join = quad_join_of(input);
            let is_single = join.is_none();
            let join = join.or_else(|| single_pattern::whole(root, input))?;
            let path = join.cast();
            Some(Self { path, is_single })
        }
    }

    /// Whether there is more to do than to count by columns: `Quad Groups` reads that off the order of the quads.
    unsafe fn is_worth_it(&self, parts: &Parts) -> bool {
        // SAFETY: live planner nodes.
        unsafe { !self.is_single || parts.is_computed() || parts.adds_up() }
    }
}

/// What a level groups by, and its aggregates.
#[derive(Default)]
struct Parts {
    /// Columns, or expressions of columns; each once.
    keys: Vec<*mut pg_sys::Node>,
    /// The operator by which each key is equal. A column's hashes, whatever order is asked for: `quad.<#` has an
    /// operator of its own for equal ids, which does not.
    operators: Vec<pg_sys::Oid>,
    /// Each once.
    aggregates: Vec<*mut pg_sys::Node>,
}

/// Whether one of the nodes is equal to another one.
unsafe fn contains(nodes: &[*mut pg_sys::Node], node: *mut pg_sys::Node) -> bool {
    // SAFETY: live planner nodes.
    let is = |known: &*mut pg_sys::Node| unsafe { pg_sys::equal((*known).cast(), node.cast()) };
    nodes.iter().any(is)
}

impl Parts {
    /// The keys of GROUP BY or DISTINCT; none where one of them is neither a column nor computed from columns.
    unsafe fn of_clause(root: *mut pg_sys::PlannerInfo, clause: *mut pg_sys::List) -> Option<Self> {
        let mut parts = Self::default();
        // SAFETY: live planner nodes.
        unsafe {
            for entry in list_iter::<pg_sys::SortGroupClause>(clause) {
                let expr = pg_sys::get_sortgroupclause_expr(entry, (*root).processed_tlist);
                let is_computed =
                    || (*entry).hashable && is_of_columns(expr) && !columns_of(expr).is_empty();
                (is_column(expr) || is_computed()).then_some(())?;
                if !contains(&parts.keys, expr) {
                    parts.keys.push(expr);
                    parts.operators.push(match is_column(expr) {
                        true => INT8_EQUAL,
                        false => (*entry).eqop,
                    });
                }
            }
        }
        // SAFETY: live planner nodes.
        let columns = unsafe { list_iter::<pg_sys::Node>(parts.columns()).count() };
        (columns <= MAX_COLUMNS).then_some(parts)
    }

    /// Whether a key is no column.
    unsafe fn is_computed(&self) -> bool {
        // SAFETY: live planner nodes.
        self.keys.iter().any(|&key| unsafe { !is_column(key) })
    }

    /// Whether an aggregate does more than to count.
    unsafe fn adds_up(&self) -> bool {
        // SAFETY: aggregates have been looked at.
        self.aggregates.iter().any(|&node| unsafe {
            let aggregate = Aggregate::of(node.cast());
            !matches!(aggregate, Some(Aggregate::Count | Aggregate::CountDistinct))
        })
    }

    /// The columns of the keys.
    unsafe fn columns(&self) -> *mut pg_sys::List {
        let mut columns = std::ptr::null_mut();
        // SAFETY: live planner nodes; keys have no aggregates.
        unsafe {
            for &key in &self.keys {
                let of_key = pg_sys::pull_var_clause(key, 0);
                columns = pg_sys::list_concat_unique(columns, of_key);
            }
        }
        columns
    }

    /// What computing the arguments of the aggregates costs for a row.
    unsafe fn argument_cost(&self, root: *mut pg_sys::PlannerInfo) -> f64 {
        let cost_of = |&node: &*mut pg_sys::Node| {
            let mut cost = pg_sys::QualCost::default();
            // SAFETY: aggregates have been looked at.
            unsafe {
                let arguments = (*node.cast::<pg_sys::Aggref>()).args;
                pg_sys::cost_qual_eval_node(&mut cost, arguments.cast(), root);
            }
            cost.per_tuple
        };
        self.aggregates.iter().map(cost_of).sum()
    }

    /// Bytes that a group has of the aggregates.
    unsafe fn aggregate_bytes(&self) -> f64 {
        // SAFETY: aggregates have been looked at.
        let bytes = |&node: &*mut pg_sys::Node| unsafe {
            Aggregate::of(node.cast()).map_or(0.0, Aggregate::bytes)
        };
        self.aggregates.iter().map(bytes).sum()
    }
}

/// Puts a constant in the place of each of some keys, so that what an expression is made of beside them is left.
#[pg_guard]
unsafe extern "C-unwind" fn without_keys(
    node: *mut pg_sys::Node,
    keys: *mut core::ffi::c_void,
) -> *mut pg_sys::Node {
    // SAFETY: live planner nodes; `keys` is what `parts_beside` passes.
    unsafe {
        let known = &*keys.cast::<Vec<*mut pg_sys::Node>>();
        if node.is_null() || (*node).type_ == pg_sys::NodeTag::T_Aggref {
            return node;
        }
        if contains(known, node) {
            let (of_type, collation) = (pg_sys::exprType(node), pg_sys::exprCollation(node));
            return pg_sys::makeNullConst(of_type, -1, collation).cast();
        }
        ffi::expression_tree_mutator(node, without_keys, keys)
    }
}

/// The columns and aggregates of expressions, without those columns that are in keys.
unsafe fn parts_beside(
    exprs: *mut pg_sys::List,
    keys: &Vec<*mut pg_sys::Node>,
) -> Vec<*mut pg_sys::Node> {
    let keys = std::ptr::from_ref(keys).cast_mut();
    // SAFETY: live planner nodes; the keys are only read.
    unsafe { counts::parts(without_keys(exprs.cast(), keys.cast()).cast()) }
}

/// Whether so many distinct rows are handed out as they are found: not all are wanted, nobody sorts them, memory has
/// room for them, and they are columns.
unsafe fn hands_out_early(root: *mut pg_sys::PlannerInfo, rows: f64, parts: &Parts) -> bool {
    // SAFETY: the planner's own; a setting.
    unsafe {
        if parts.is_computed() {
            return false;
        }
        let part_bytes = COLUMN_BYTES * parts.keys.len() as f64;
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

/// A path over the join `child` for `output`.
unsafe fn new_path(
    root: *mut pg_sys::PlannerInfo,
    (join, output): (&CountedJoin, *mut pg_sys::RelOptInfo),
    methods: &'static Methods<pg_sys::CustomPathMethods>,
    parts: &Parts,
) -> Option<*mut pg_sys::CustomPath> {
    // SAFETY: live planner nodes; reads of settings.
    unsafe {
        let child = join.path;
        if !(*child).param_info.is_null() {
            return None;
        }
        let rows = (*child).rows;
        let (mut groups, mut spilling, mut computing) = (1.0, 0.0, 0.0);
        if !parts.keys.is_empty() {
            // What PostgreSQL expects.
            groups = (*list_iter::<pg_sys::Path>((*output).pathlist).next()?).rows;
            // Those that the join makes.
            let mut made = groups;
            let columns = parts.columns();
            let is_computed = parts.is_computed();
            if is_computed {
                let (all, unknown) = (std::ptr::null_mut(), std::ptr::null_mut());
                made = pg_sys::estimate_num_groups(root, columns, rows, all, unknown);
                let mut cost = pg_sys::QualCost::default();
                for &key in &parts.keys {
                    let mut of_key = pg_sys::QualCost::default();
                    pg_sys::cost_qual_eval_node(&mut of_key, key, root);
                    cost.per_tuple += of_key.per_tuple + pg_sys::cpu_operator_cost;
                }
                let regrouping = REGROUPING_TUPLES * pg_sys::cpu_tuple_cost;
                computing = made * (cost.per_tuple + regrouping);
            }
            if join.is_single {
                computing += made * SINGLE_PATTERN_TUPLES * pg_sys::cpu_tuple_cost;
            }
            let columns = f64::from((*columns).length);
            let part_bytes = COLUMN_BYTES * columns + parts.aggregate_bytes();
            // Each record is written and read.
            let cost_of = |records: f64| {
                let pages = records * (part_bytes + GROUP_BYTES) / f64::from(pg_sys::BLCKSZ);
                2.0 * (pages * pg_sys::seq_page_cost + records * pg_sys::cpu_tuple_cost)
            };
            let shares = if is_computed { SHARES_OF_MEMORY } else { 1 } as f64;
            if spills(shares * made, part_bytes) {
                spilling = cost_of((SPILL_WRITES * made).min(rows));
            }
            let key_bytes = f64::from((*(*output).reltarget).width);
            if is_computed && spills(shares * groups, key_bytes) {
                // Keys of groups that wait are computed again.
                spilling += cost_of(SPILL_WRITES * made) + computing;
            }
        }
        let path: *mut pg_sys::CustomPath = custom::new_path(output, methods);
        (*path).path.rows = groups;
        // The rows that the join would have to make and pass on are what is saved.
        let of_row = parts.argument_cost(root) - 0.5 * pg_sys::cpu_tuple_cost;
        (*path).path.startup_cost = (*child).total_cost + spilling + computing + rows * of_row;
        (*path).path.total_cost = (*path).path.startup_cost + groups * pg_sys::cpu_tuple_cost;
        (*path).custom_paths = pg_sys::lappend(std::ptr::null_mut(), child.cast());
        Some(path)
    }
}

/// What SELECT DISTINCT groups by; none where the level wants something else.
unsafe fn distinct_parts(root: *mut pg_sys::PlannerInfo) -> Option<Parts> {
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
        Parts::of_clause(root, (*parse).distinctClause).filter(|parts| !parts.keys.is_empty())
    }
}

/// What a level groups by, and its aggregates; none where the level wants something else.
unsafe fn counted_parts(
    root: *mut pg_sys::PlannerInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Option<Parts> {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        if !(*parse).groupingSets.is_null() || (*parse).hasTargetSRFs {
            return None;
        }
        let mut parts = Parts::of_clause(root, (*parse).groupClause)?;
        let is_computed = parts.is_computed();
        let wanted = parts_beside((*(*output).reltarget).exprs, &parts.keys).into_iter();
        for node in wanted.chain(parts_beside((*parse).havingQual.cast(), &parts.keys)) {
            if contains(&parts.aggregates, node) {
                continue;
            }
            ((*node).type_ == pg_sys::NodeTag::T_Aggref).then_some(())?;
            let aggregate = Aggregate::of(node.cast())?;
            // Distinct values of groups cannot be put together.
            (!is_computed || aggregate != Aggregate::CountDistinct).then_some(())?;
            parts.aggregates.push(node);
        }
        (!(parts.keys.is_empty() && parts.aggregates.is_empty())).then_some(parts)
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
            if hands_out_early(chosen.root, (*chosen.path).path.rows, &parts) {
                list_iter(chosen.plans).for_each(|join| plan::expect_few_rows(join));
            }
            plan_parts(chosen, parts)
        }
    }
}

/// The plan: `custom_scan_tlist` = the keys, then the aggregates; private data are [`CountData`].
unsafe fn plan_parts(chosen: ChosenPath, parts: Parts) -> *mut pg_sys::CustomScan {
    // SAFETY: arguments are the planner's own.
    unsafe {
        let mut columns = std::ptr::null_mut();
        for &part in parts.keys.iter().chain(&parts.aggregates) {
            columns = custom::with_entry(columns, part.cast());
        }
        let operators = parts
            .operators
            .iter()
            .map(|operator| Oid(operator.to_u32()));
        let equal = match parts.is_computed() {
            true => operators.collect(),
            false => Vec::new(),
        };
        let scan = custom::new_plan(chosen.path, chosen.tlist, &count_exec::SCAN_METHODS);
        (*scan).custom_plans = chosen.plans;
        (*scan).custom_scan_tlist = columns;
        custom::set_private(scan, &CountData { equal });
        scan
    }
}
