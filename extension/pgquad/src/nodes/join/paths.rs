//! Paths of `Quad Join`.

use super::join_tree::JoinTree;
use super::outer_input_paths::OuterInputPath;
use super::path::QuadJoinPath;
use super::{computed_equality, eligible_relations, row_estimates};
use crate::nodes::custom;
use crate::pg::compat;
use crate::pg::exit::keep_in_context;
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;

static mut PREVIOUS: pg_sys::set_join_pathlist_hook_type = None;

thread_local! {
    /// The level whose quad relations are being joined; other levels and other joins are none of our business.
    static JOINING: Cell<*mut pg_sys::PlannerInfo> = const { Cell::new(std::ptr::null_mut()) };
    /// The level in which the node's results or single quad tables are being joined with what it cannot read.
    static ABOVE: Cell<(*mut pg_sys::PlannerInfo, Above)> =
        const { Cell::new((std::ptr::null_mut(), Above::Tables)) };
}

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods::<QuadJoinPath>();

/// The path of a join with an outer input, told from the others by its methods.
static OUTER_INPUT_METHODS: Methods<pg_sys::CustomPathMethods> =
    custom::path_methods::<QuadJoinPath>();

/// Installs the hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any planning.
    unsafe {
        PREVIOUS = pg_sys::set_join_pathlist_hook;
        pg_sys::set_join_pathlist_hook = Some(set_join_pathlist);
    }
}

/// What is being joined in a level, besides other relations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Above {
    /// Single quad tables at most. PostgreSQL's estimates of their joins stand.
    Tables,
    /// Results of patterns, or of subqueries over them, of which more rows are expected than PostgreSQL does.
    Results,
}

/// While it lives, joins of a level may take the rows of other relations into a `Quad Join`.
pub struct JoiningAbove((*mut pg_sys::PlannerInfo, Above));

impl JoiningAbove {
    /// Begins.
    pub fn new(root: *mut pg_sys::PlannerInfo, above: Above) -> Self {
        Self(ABOVE.replace((root, above)))
    }
}

impl Drop for JoiningAbove {
    fn drop(&mut self) {
        ABOVE.set(self.0);
    }
}

/// While it lives, joins of described relations get a `Quad Join` and nothing else.
pub struct Joining {
    root: *mut pg_sys::PlannerInfo,
    merge: bool,
    hash: bool,
    material: bool,
    memoize: bool,
}

impl Joining {
    /// Begins; paths that would be thrown away are not even made.
    pub fn new(root: *mut pg_sys::PlannerInfo) -> Self {
        let outer = JOINING.replace(root);
        // SAFETY: plain settings of this backend, put back when the value is dropped.
        unsafe {
            let settings = Self {
                root: outer,
                merge: pg_sys::enable_mergejoin,
                hash: pg_sys::enable_hashjoin,
                material: pg_sys::enable_material,
                memoize: pg_sys::enable_memoize,
            };
            pg_sys::enable_mergejoin = false;
            pg_sys::enable_hashjoin = false;
            pg_sys::enable_material = false;
            pg_sys::enable_memoize = false;
            settings
        }
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        JOINING.set(self.root);
        // SAFETY: as in `new`.
        unsafe {
            pg_sys::enable_mergejoin = self.merge;
            pg_sys::enable_hashjoin = self.hash;
            pg_sys::enable_material = self.material;
            pg_sys::enable_memoize = self.memoize;
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn set_join_pathlist(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: arguments are the planner's own.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, joined, outer, inner, kind, extra);
        }
        if JOINING.get() != root {
            let (level, above) = ABOVE.get();
            if level == root {
                add_outer_input(root, joined, outer, inner, kind, extra);
                if above == Above::Results {
                    row_estimates::expect_of_join(joined);
                }
            }
            return;
        }
        if let Some(known) = quad_join_of(joined) {
            if join_tree(root, outer).is_some() && join_tree(root, inner).is_some() {
                cost_no_more(known, outer, inner);
            }
            keep_only(joined, known);
            return;
        }
        let (Some(left), Some(right)) = (join_tree(root, outer), join_tree(root, inner)) else {
            return;
        };
        let restrictions = (*extra).restrictlist;
        let of_triples = (kind == pg_sys::JoinType::JOIN_ANTI)
            .then(|| left.without_repeats(root, &right, restrictions))
            .flatten();
        if of_triples.is_some() {
            // PostgreSQL takes the test for one that hardly a row passes.
            (*joined).rows = (*outer).rows;
        }
        let join_tree = of_triples.or_else(|| left.join(right, kind, joined, restrictions));
        let Some(join_tree) = join_tree.filter(|tree| tree.size((*joined).relids).fits(None))
        else {
            return;
        };
        if kind == pg_sys::JoinType::JOIN_INNER {
            row_estimates::expect_of_patterns(root, joined, &join_tree);
        }
        let path = make(joined, join_tree);
        cost(path, outer, inner);
        keep_only(joined, path);
    }
}

/// What a relation joins, if a `Quad Join` can read it.
unsafe fn join_tree(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<JoinTree> {
    // SAFETY: live planner nodes.
    unsafe {
        match (*rel).reloptkind {
            pg_sys::RelOptKind::RELOPT_BASEREL => {
                pg_sys::bms_is_member((*rel).relid as i32, eligible_relations::candidates(root))
                    .then(|| JoinTree::relation(rel))
            }
            pg_sys::RelOptKind::RELOPT_JOINREL => {
                quad_join_of(rel).map(|path| (*(*path).join_tree).clone())
            }
            _ => None,
        }
    }
}

/// The `Quad Join` of a join relation that needs nothing from outside.
///
/// # Safety
/// `rel` is a live planner node.
pub unsafe fn quad_join_of(rel: *mut pg_sys::RelOptInfo) -> Option<*mut QuadJoinPath> {
    // SAFETY: the caller's promise; a path with our methods is one of ours.
    unsafe {
        list_iter::<pg_sys::Path>((*rel).pathlist)
            .map(|path| unprojected(path))
            .find(|&path| {
                (*path).type_ == pg_sys::NodeTag::T_CustomPath
                    && (*path).param_info.is_null()
                    && std::ptr::eq(
                        (*path.cast::<pg_sys::CustomPath>()).methods,
                        &raw const PATH_METHODS.0,
                    )
            })
            .map(|path| path.cast())
    }
}

/// The path whose rows a path only projects: the same columns in another order, for one.
///
/// # Safety
/// `path` is a live planner node.
pub unsafe fn unprojected(path: *mut pg_sys::Path) -> *mut pg_sys::Path {
    // SAFETY: a live planner node, cast after its tag was checked.
    unsafe {
        if (*path).type_ == pg_sys::NodeTag::T_ProjectionPath {
            (*path.cast::<pg_sys::ProjectionPath>()).subpath
        } else {
            path
        }
    }
}

unsafe fn keep_only(rel: *mut pg_sys::RelOptInfo, path: *mut QuadJoinPath) {
    // SAFETY: live planner nodes.
    unsafe {
        (*rel).pathlist = pg_sys::lappend(std::ptr::null_mut(), path.cast());
    }
}

/// A path of `rel` that joins what is described and needs nothing from outside; its costs are not set.
///
/// # Safety
/// `rel` is a live planner node.
pub unsafe fn make(rel: *mut pg_sys::RelOptInfo, join_tree: JoinTree) -> *mut QuadJoinPath {
    // SAFETY: the caller's promise; both live in the planner's context.
    unsafe {
        let path: *mut QuadJoinPath = custom::new_path(rel, &PATH_METHODS);
        (*path).join_tree = keep_in_context(join_tree);
        path
    }
}

/// CPU cost of one probe, in units of `cpu_operator_cost`.
const PROBE_OPERATORS: f64 = 10.0;

/// CPU cost of beginning a `Quad Join` anew for a row of a nested loop, and of each of its patterns, in units of
/// `cpu_operator_cost`. It stands for 15 to 30 microseconds for two patterns, where a page read in sequence is five
/// (2026-11, release build).
const BEGIN_OPERATORS: f64 = 800.0;
const PATTERN_OPERATORS: f64 = 400.0;

/// The inner relation is either read once or probed for every outer row. A guess for what lies above; within the node,
/// nothing depends on it.
unsafe fn cost(
    path: *mut QuadJoinPath,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: live planner nodes with their cheapest paths set; reads of cost settings.
    unsafe {
        let (outer, inner) = ((*outer).cheapest_total_path, (*inner).cheapest_total_path);
        let probes = (*outer).rows * PROBE_OPERATORS * pg_sys::cpu_operator_cost;
        let path = &mut (*path).path.path;
        let out = path.rows * 0.5 * pg_sys::cpu_tuple_cost;
        path.startup_cost = (*outer).startup_cost + (*inner).startup_cost;
        path.total_cost =
            path.startup_cost + (*outer).total_cost + probes.min((*inner).total_cost) + out;
    }
}

/// Lowers the costs of a path to those of joining these two relations: the node joins in whatever order is cheapest.
unsafe fn cost_no_more(
    path: *mut QuadJoinPath,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the caller's promise, that of `cost`.
    unsafe {
        let known = (*path).path.path;
        cost(path, outer, inner);
        if known.total_cost <= (*path).path.path.total_cost {
            (*path).path.path = known;
        }
    }
}

/// Adds a path for the join of any relation with patterns, where an equality connects them.
///
/// # Safety
/// Arguments are those of `set_join_pathlist_hook`.
unsafe fn add_outer_input(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
    kind: pg_sys::JoinType::Type,
    extra: *mut pg_sys::JoinPathExtraData,
) {
    // SAFETY: live planner nodes.
    unsafe {
        let below = (*outer).cheapest_total_path;
        if below.is_null() || !(*below).param_info.is_null() {
            return;
        }
        let Some(join_tree) = patterns(root, inner) else {
            return;
        };
        // To look up the graph alone is to read all patterns for each row.
        if computed_equality::is_best(root, outer, inner) {
            return;
        }
        if let Some(outer_input) =
            OuterInputPath::new(joined, outer, inner, kind, (*extra).restrictlist)
        {
            let mut size = join_tree.size((*inner).relids);
            size.conditions += outer_input.keys.len();
            size.equalities += outer_input.keys.len();
            if size.fits(Some(outer_input.columns.len())) {
                add_with_outer_input(joined, below, join_tree, outer_input);
            }
        }
    }
}

/// What an inner side joins, when it is nothing but patterns.
unsafe fn patterns(
    root: *mut pg_sys::PlannerInfo,
    inner: *mut pg_sys::RelOptInfo,
) -> Option<JoinTree> {
    // SAFETY: live planner nodes.
    unsafe {
        if (*inner).reloptkind == pg_sys::RelOptKind::RELOPT_JOINREL {
            return quad_join_of(inner).map(|path| (*(*path).join_tree).clone());
        }
        eligible_relations::is_eligible(root, inner).then(|| JoinTree::relation(inner))
    }
}

/// Adds the path of a join with the rows of `below`.
///
/// # Safety
/// Live planner nodes of one join.
unsafe fn add_with_outer_input(
    joined: *mut pg_sys::RelOptInfo,
    below: *mut pg_sys::Path,
    join_tree: JoinTree,
    outer_input: OuterInputPath,
) {
    // SAFETY: live planner nodes; what the path points at lives in the planner's context.
    unsafe {
        let patterns = join_tree.patterns() as f64;
        let path: *mut QuadJoinPath = custom::new_path(joined, &OUTER_INPUT_METHODS);
        (*path).join_tree = keep_in_context(join_tree);
        (*path).outer_input = keep_in_context(outer_input);
        (*path).path.custom_paths = pg_sys::lappend(std::ptr::null_mut(), below.cast());
        // Keys of a batch are sorted, so that a probe costs less than one of a nested loop.
        let probe = 0.5 * PROBE_OPERATORS * pg_sys::cpu_operator_cost;
        // For a few rows, a nested loop with a single table is done before the node has begun.
        let begin = match (*path).join_tree.as_ref() {
            Some(tree) if tree.patterns() == 1 => BEGIN_OPERATORS * pg_sys::cpu_operator_cost,
            _ => 0.0,
        };
        let cost = &mut (*path).path.path;
        let out = cost.rows * (0.5 * pg_sys::cpu_tuple_cost + patterns * pg_sys::cpu_operator_cost);
        cost.startup_cost = (*below).startup_cost + begin;
        cost.total_cost = begin + (*below).total_cost + (*below).rows * patterns * probe + out;
        pg_sys::add_path(joined, path.cast());
    }
}

/// Adds paths that take values of relations outside: for each relation that conditions connect with `joined`, and for
/// all of them.
///
/// # Safety
/// `joined` is a live join relation with a `Quad Join`; `others` are the relations that it will be joined with.
pub unsafe fn add_parameterised(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    others: &[*mut pg_sys::RelOptInfo],
) {
    // SAFETY: live planner nodes.
    unsafe {
        let Some(plain) = quad_join_of(joined) else {
            return;
        };
        let mut every: pg_sys::Relids = std::ptr::null_mut();
        let mut sets: Vec<pg_sys::Relids> = Vec::new();
        for &other in others {
            // To test an equality of computed values for each row outside would be to read all patterns for each.
            let in_vain = || {
                computed_equality::is_best(root, other, joined)
                    && !computed_equality::is_lookup(root, other, joined)
            };
            if crate::pg::ffi::have_relevant_joinclause(root, joined, other) && !in_vain() {
                sets.push((*other).relids);
                every = pg_sys::bms_union(every, (*other).relids);
            }
        }
        if sets.len() > 1 {
            sets.push(every);
        }
        for set in sets {
            let clauses = movable(root, joined, set);
            if clauses.is_null() {
                continue;
            }
            let mut join_tree = (*(*plain).join_tree).clone();
            let mut needed: pg_sys::Relids = std::ptr::null_mut();
            for clause in list_iter::<pg_sys::RestrictInfo>(clauses) {
                join_tree.clauses.push(clause);
                needed = pg_sys::bms_union(needed, (*clause).clause_relids);
            }
            let needed = pg_sys::bms_difference(needed, (*joined).relids);
            let known = list_iter::<pg_sys::ParamPathInfo>((*joined).ppilist)
                .any(|info| pg_sys::bms_equal((*info).ppi_req_outer, needed));
            let fits = join_tree.size((*joined).relids).fits(None);
            if known || compat::is_empty(needed) || !fits {
                continue;
            }
            // Without a join to be part of, `a = b` would count as a restriction, whose guess each clause remembers.
            let mut join = pg_sys::SpecialJoinInfo {
                type_: pg_sys::NodeTag::T_SpecialJoinInfo,
                min_lefthand: needed,
                min_righthand: (*joined).relids,
                syn_lefthand: needed,
                syn_righthand: (*joined).relids,
                jointype: pg_sys::JoinType::JOIN_INNER,
                ..std::mem::zeroed()
            };
            let selectivity = pg_sys::clauselist_selectivity(
                root,
                clauses,
                0,
                pg_sys::JoinType::JOIN_INNER,
                &raw mut join,
            );
            let info =
                pg_sys::palloc0(size_of::<pg_sys::ParamPathInfo>()).cast::<pg_sys::ParamPathInfo>();
            (*info).type_ = pg_sys::NodeTag::T_ParamPathInfo;
            (*info).ppi_req_outer = needed;
            (*info).ppi_rows = ((*joined).rows * selectivity).max(1.0).round();
            (*info).ppi_clauses = clauses;
            (*joined).ppilist = pg_sys::lappend((*joined).ppilist, info.cast());
            let path = make(joined, join_tree);
            let patterns = (*(*path).join_tree).relations.len() as f64;
            (*path).path.path.param_info = info;
            (*path).path.path.rows = (*info).ppi_rows;
            let begin = BEGIN_OPERATORS + patterns * PATTERN_OPERATORS;
            let probes = (1.0 + (*info).ppi_rows) * patterns * PROBE_OPERATORS;
            (*path).path.path.total_cost = (begin + probes) * pg_sys::cpu_operator_cost;
            pg_sys::add_path(joined, path.cast());
        }
    }
}

/// Conditions between `joined` and `outer` that can be tested inside `joined`, given a row of `outer`.
unsafe fn movable(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    outer: pg_sys::Relids,
) -> *mut pg_sys::List {
    // SAFETY: live planner nodes.
    unsafe {
        let both = pg_sys::bms_union((*joined).relids, outer);
        let mut clauses = std::ptr::null_mut();
        for clause in list_iter::<pg_sys::RestrictInfo>((*joined).joininfo) {
            if pg_sys::join_clause_is_movable_into(clause, (*joined).relids, both) {
                clauses = pg_sys::lappend(clauses, clause.cast());
            }
        }
        let implied = compat::implied_equalities(root, both, outer, joined);
        for clause in list_iter::<pg_sys::RestrictInfo>(implied) {
            if pg_sys::join_clause_is_movable_into(clause, (*joined).relids, both) {
                clauses = pg_sys::lappend(clauses, clause.cast());
            }
        }
        clauses
    }
}
