//! Planning of `Quad Scan`: for every quad relation, one path per order and per useful set of outer relations.

use super::conditions::{self, Condition};
use crate::pg::list::list_iter;
use crate::table;

use super::{estimate, exec};
use crate::catalog::access_method;
use crate::nodes::custom::{self, ChosenPath, PlanPath};
use crate::pg::compat;
use crate::pg::error::raise_hint;
use crate::pg::ffi::Methods;
use crate::settings;
use pgquad_btree::{Direction, Order};
use pgquad_exec::{candidate_orders, match_order, Bound, OrderMatch, Prefix, ScanData};
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::cmp::Reverse;

static mut PREVIOUS: pg_sys::set_rel_pathlist_hook_type = None;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods::<ScanPath>();

/// `>` of `bigint` (`pg_operator.dat`).
const INT8_GREATER: pg_sys::Oid = pg_sys::Oid::from_u32(413);

/// CPU cost of one descent from the root, in units of `cpu_operator_cost`. Chosen, not measured: PostgreSQL takes 50
/// for each page of a descent (`btcostestimate`), and inner pages are remembered here.
const DESCENT_OPERATORS: f64 = 20.0;
/// Cost of the leaf of a probe, in units of `random_page_cost`. Chosen, not measured: inner pages and most leaves are
/// cached.
const PROBE_LEAF_PAGES: f64 = 0.1;

/// Cost of asking another node for the quads of a row of a nested loop, in units of `seq_page_cost`. That takes 25
/// microseconds, and a page read in sequence five (2026-11, three nodes of one machine).
const MESSAGE_PAGES: f64 = 5.0;

/// CPU cost of beginning a `Quad Join` of one pattern, in units of `cpu_operator_cost`. Chosen, not measured.
const JOIN_OPERATORS: f64 = 40.0;

/// Installs the planner hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any planning.
    unsafe {
        PREVIOUS = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(set_rel_pathlist);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn set_rel_pathlist(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: arguments are the planner's own.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, rel, rti, rte);
        }
        if (*rte).rtekind != pg_sys::RTEKind::RTE_RELATION
            || (*rte).inh
            || !(*rte).tablesample.is_null()
            || !access_method::is_quad_relid((*rte).relid)
            || pg_sys::is_dummy_rel(rel)
        {
            return;
        }
        // Parallel workers would each need a share of one ordered walk.
        (*rel).consider_parallel = false;
        (*rel).partial_pathlist = std::ptr::null_mut();
        let current_of = refuse_row_positions(root, rel, rti);
        if current_of || !settings::ENABLE_QUAD_SCAN.get() {
            return;
        }
        let Some(orders) = table::orders_of((*rte).relid) else {
            return;
        };
        (*rel).pathlist = std::ptr::null_mut();
        Planning {
            root,
            rel,
            rti,
            relid: (*rte).relid,
            sharded: table::is_sharded((*rte).relid),
            orders,
        }
        .add_paths();
    }
}

/// A condition on `ctid` is refused. A TID of a quad table means something only within the statement that was given it,
/// and each scan of a quad gives it another one. So `ctid IN (SELECT ctid ..)` holds for none. Returns whether the
/// relation is read by `WHERE CURRENT OF`, which stays with the planner's own path.
unsafe fn refuse_row_positions(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        let clauses = list_iter::<pg_sys::RestrictInfo>((*rel).baserestrictinfo)
            .chain(list_iter::<pg_sys::RestrictInfo>((*rel).joininfo))
            .map(|clause| (*clause).clause.cast::<pg_sys::Node>());
        for expr in clauses.chain(equated(root)) {
            if (*expr).type_ == pg_sys::NodeTag::T_CurrentOfExpr {
                return true;
            }
            if uses_system_column(expr, rti) {
                raise_hint(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                    "rows of a quad table cannot be selected by their position",
                    "Quads move within the table; a ctid is valid only within the statement that reads it. Select by s, p, o, g.");
            }
        }
    }
    false
}

/// What conditions of the query equate with something else.
unsafe fn equated(root: *mut pg_sys::PlannerInfo) -> impl Iterator<Item = *mut pg_sys::Node> {
    // SAFETY: a live planner state. A class of one member is an order's.
    unsafe {
        list_iter::<pg_sys::EquivalenceClass>((*root).eq_classes)
            .filter(|&class| {
                list_iter::<pg_sys::EquivalenceMember>((*class).ec_members)
                    .nth(1)
                    .is_some()
            })
            .flat_map(|class| list_iter::<pg_sys::EquivalenceMember>((*class).ec_members))
            .map(|member| (*member).em_expr.cast())
    }
}

/// Whether `node` uses `ctid` of relation `rti`.
unsafe fn uses_system_column(node: *mut pg_sys::Node, rti: pg_sys::Index) -> bool {
    // SAFETY: a live planner node (or list); attribute numbers are offset by FirstLowInvalidHeapAttributeNumber.
    unsafe {
        let mut attributes = std::ptr::null_mut();
        pg_sys::pull_varattnos(node, rti, &mut attributes);
        let ctid =
            pg_sys::SelfItemPointerAttributeNumber - pg_sys::FirstLowInvalidHeapAttributeNumber;
        pg_sys::bms_is_member(ctid, attributes)
    }
}

/// The columns that the query reads of `rel` (bit `n` = column `n`): the others of a plan's target list are there for
/// its shape only.
unsafe fn needed_columns(rel: *mut pg_sys::RelOptInfo, clauses: *mut pg_sys::List) -> i32 {
    // SAFETY: live planner nodes; attribute numbers are offset by FirstLowInvalidHeapAttributeNumber.
    unsafe {
        let mut attributes = std::ptr::null_mut();
        pg_sys::pull_varattnos(
            (*(*rel).reltarget).exprs.cast(),
            (*rel).relid,
            &mut attributes,
        );
        for clause in list_iter::<pg_sys::RestrictInfo>(clauses) {
            pg_sys::pull_varattnos((*clause).clause.cast(), (*rel).relid, &mut attributes);
        }
        let uses = |n: i32| {
            pg_sys::bms_is_member(n - pg_sys::FirstLowInvalidHeapAttributeNumber, attributes)
        };
        if uses(0) {
            return 0b1111;
        }
        (0..4).filter(|&n| uses(n + 1)).map(|n| 1 << n).sum()
    }
}

/// Adds the paths of a relation that take values of other relations of its level. [`set_rel_pathlist`] leaves these out
/// where it expects a `Quad Join`.
///
/// # Safety
/// `rel` is a live base relation, a quad table that the statement has locked.
pub unsafe fn complete(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: the caller's promise.
    unsafe {
        let rti = (*rel).relid;
        let relid = (**(*root).simple_rte_array.add(rti as usize)).relid;
        let Some(orders) = table::orders_of(relid) else {
            return;
        };
        Planning {
            root,
            rel,
            rti,
            relid,
            sharded: table::is_sharded(relid),
            orders,
        }
        .add_parameterised(std::ptr::null_mut());
        pg_sys::set_cheapest(rel);
    }
}

struct Planning {
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
    relid: pg_sys::Oid,
    /// Its quads are in shards.
    sharded: bool,
    orders: Vec<Order>,
}

impl Planning {
    unsafe fn add_paths(&self) {
        // SAFETY: live planner nodes throughout.
        unsafe {
            let base: Vec<Condition> = list_iter((*self.rel).baserestrictinfo)
                .filter_map(|c| conditions::match_clause(self.root, self.rti, c))
                .collect();
            let clauses = (*self.rel).baserestrictinfo;
            if self.sharded {
                estimate::count_ahead(self.root, self.rti);
            }
            if let Some(rows) = estimate::counted(self.root, self.relid, &base, clauses) {
                (*self.rel).rows = rows.round();
            }
            self.add_for(&base, (*self.rel).lateral_relids);
            self.add_quad_join(&base);
            self.add_parameterised(crate::nodes::join::outer_candidates(self.root, self.rel));
        }
    }

    /// Adds the path of a `Quad Join` that reads this relation and no other.
    unsafe fn add_quad_join(&self, conditions: &[Condition]) {
        // SAFETY: live planner nodes.
        unsafe {
            let Some((path, evaluated)) =
                crate::nodes::join::single_pattern_path(self.root, self.rel)
            else {
                return;
            };
            let candidates = candidate_orders(&self.orders, &bounds(conditions));
            self.cost_least(path, &candidates, conditions, evaluated);
            let more = JOIN_OPERATORS * pg_sys::cpu_operator_cost;
            (*path).path.startup_cost += more;
            (*path).path.total_cost += more;
            pg_sys::add_path(self.rel, path.cast());
        }
    }

    /// Adds paths that take values of other relations, but of none in `left_out`.
    unsafe fn add_parameterised(&self, left_out: pg_sys::Relids) {
        // SAFETY: live planner nodes throughout.
        unsafe {
            let base: Vec<Condition> = list_iter((*self.rel).baserestrictinfo)
                .filter_map(|c| conditions::match_clause(self.root, self.rti, c))
                .collect();
            let mut joins = self.join_conditions();
            joins.retain(|c| !pg_sys::bms_overlap(c.outer(self.rti), left_out));
            for outer in self.outer_sets(&joins) {
                let mut usable = base.clone();
                usable.extend(
                    joins
                        .iter()
                        .filter(|c| pg_sys::bms_is_subset(c.outer(self.rti), outer)),
                );
                self.add_for(&usable, outer);
            }
        }
    }

    /// Conditions from join clauses and equivalence classes.
    unsafe fn join_conditions(&self) -> Vec<Condition> {
        // SAFETY: live planner nodes; the callback's argument is the column number, alive during the call.
        unsafe {
            let mut found: Vec<Condition> = Vec::new();
            for clause in list_iter::<pg_sys::RestrictInfo>((*self.rel).joininfo) {
                if pg_sys::join_clause_is_movable_to(clause, self.rel) {
                    found.extend(conditions::match_clause(self.root, self.rti, clause));
                }
            }
            if (*self.rel).has_eclass_joins {
                for column in 0..4usize {
                    let mut wanted = ColumnOf {
                        rti: self.rti,
                        column,
                    };
                    let clauses = pg_sys::generate_implied_equalities_for_column(
                        self.root,
                        self.rel,
                        Some(member_is_column),
                        (&raw mut wanted).cast(),
                        (*self.rel).lateral_referencers,
                    );
                    found.extend(
                        list_iter(clauses)
                            .filter_map(|c| conditions::match_clause(self.root, self.rti, c)),
                    );
                }
            }
            found.retain(|c| !compat::is_empty(c.outer(self.rti)));
            found
        }
    }

    /// The sets of outer relations worth a parameterised path: each condition's own, the union with each other one, and
    /// all together.
    unsafe fn outer_sets(&self, joins: &[Condition]) -> Vec<pg_sys::Relids> {
        // SAFETY: bitmapsets of live planner nodes.
        unsafe {
            /// Most sets of outer relations that get paths: each set is a path for each order. Chosen, not measured.
            const MAX_OUTER_SETS: usize = 24;
            let lateral = (*self.rel).lateral_relids;
            let mut sets: Vec<pg_sys::Relids> = Vec::new();
            let mut add = |set: pg_sys::Relids| {
                if sets.len() < MAX_OUTER_SETS
                    && !compat::is_empty(set)
                    && !sets.iter().any(|s| pg_sys::bms_equal(*s, set))
                {
                    sets.push(set);
                }
            };
            for c in joins {
                add(pg_sys::bms_union(c.outer(self.rti), lateral));
            }
            for (i, c) in joins.iter().enumerate() {
                for d in &joins[i + 1..] {
                    if c.column != d.column {
                        let both = pg_sys::bms_union(c.outer(self.rti), d.outer(self.rti));
                        add(pg_sys::bms_union(both, lateral));
                    }
                }
            }
            sets
        }
    }

    /// Adds the paths that use `conditions` with the given outer relations: the best order, and every other order whose
    /// output sequence the query can use. Where a list leaves a choice of orders, it is made when the scan begins.
    unsafe fn add_for(&self, conditions: &[Condition], outer: pg_sys::Relids) {
        // SAFETY: live planner nodes.
        unsafe {
            let bounds = bounds(conditions);
            let parameterised = !compat::is_empty(outer);
            let matches = self.orders.iter().enumerate().map(|(n, order)| OrderMatch {
                order: n,
                prefix: match_order(*order, &bounds),
            });
            let mut useful: Vec<OrderMatch> = matches.collect();
            useful.sort_by_key(|one| Reverse(rank(&one.prefix)));
            let candidates = candidate_orders(&self.orders, &bounds);
            let contested = candidates.len() > 1;
            if contested {
                let forward = (Direction::Forward, std::ptr::null_mut());
                let path = self.path(&candidates, conditions, outer, forward);
                pg_sys::add_path(self.rel, path.cast());
            }
            for (rank, only) in useful.into_iter().enumerate() {
                for way in self.ways() {
                    let pathkeys = self.pathkeys(&only, way);
                    let other = contested || rank > 0 || way == Direction::Backward;
                    if other && (parameterised || pathkeys.is_null()) {
                        continue;
                    }
                    let only = std::slice::from_ref(&only);
                    let path = self.path(only, conditions, outer, (way, pathkeys));
                    pg_sys::add_path(self.rel, path.cast());
                }
            }
        }
    }

    /// The directions in which a walk can be of use: backward where the query wants something in descending order.
    unsafe fn ways(&self) -> impl Iterator<Item = Direction> {
        // SAFETY: live planner nodes.
        let descending = unsafe {
            list_iter::<pg_sys::PathKey>((*self.root).query_pathkeys)
                .any(|key| (*key).pk_strategy == pg_sys::BTGreaterStrategyNumber as i32)
        };
        let backward = descending.then_some(Direction::Backward);
        std::iter::once(Direction::Forward).chain(backward)
    }

    /// The sequence the walk delivers: the columns after those bound to one value.
    unsafe fn pathkeys(&self, read: &OrderMatch, way: Direction) -> *mut pg_sys::List {
        let OrderMatch { order, prefix } = read;
        // The quads of shards come one shard after the other.
        if prefix.bound > prefix.exact || self.sharded {
            return std::ptr::null_mut();
        }
        // SAFETY: live planner nodes.
        unsafe {
            let columns = self.orders[*order].columns();
            let keys = pathkeys_of(self.root, self.rel, &columns[prefix.exact..], way);
            pg_sys::truncate_useless_pathkeys(self.root, self.rel, keys)
        }
    }

    /// A path that reads one of these orders; its private integers are the direction and the orders, the cheapest
    /// first.
    unsafe fn path(
        &self,
        candidates: &[OrderMatch],
        conditions: &[Condition],
        outer: pg_sys::Relids,
        (way, pathkeys): (Direction, *mut pg_sys::List),
    ) -> *mut pg_sys::CustomPath {
        // SAFETY: live planner nodes.
        unsafe {
            let path: *mut pg_sys::CustomPath = custom::new_path(self.rel, &PATH_METHODS);
            (*path).path.param_info = pg_sys::get_baserel_parampathinfo(self.root, self.rel, outer);
            (*path).path.pathkeys = pathkeys;
            (*path).path.rows = if (*path).path.param_info.is_null() {
                (*self.rel).rows
            } else {
                (*(*path).path.param_info).ppi_rows
            };
            let evaluated = (*self.rel).baserestrictinfo;
            let cheapest = self.cost_least(path, candidates, conditions, evaluated);
            let mut numbers: Vec<usize> = candidates.iter().map(|c| c.order).collect();
            numbers.swap(0, cheapest);
            let backward = i32::from(way == Direction::Backward);
            let mut private = pg_sys::lappend_int(std::ptr::null_mut(), backward);
            for order in numbers {
                private = pg_sys::lappend_int(private, order as i32);
            }
            (*path).custom_private = private;
            path
        }
    }

    /// Sets the costs of a path to those of the cheapest of these orders, and returns its place.
    unsafe fn cost_least(
        &self,
        path: *mut pg_sys::CustomPath,
        candidates: &[OrderMatch],
        conditions: &[Condition],
        evaluated: *mut pg_sys::List,
    ) -> usize {
        // SAFETY: live planner nodes.
        unsafe {
            let mut costs = candidates.iter().map(|candidate| {
                self.cost(path, &candidate.prefix, conditions, evaluated);
                (*path).path.total_cost
            });
            let first = costs.next().unwrap_or_default();
            let cheapest = usize::from(costs.next().is_some_and(|second| second < first));
            if let Some(candidate) = candidates.get(cheapest) {
                self.cost(path, &candidate.prefix, conditions, evaluated);
            }
            cheapest
        }
    }

    /// Sets the costs of a path; `evaluated` are the conditions that are evaluated for each row.
    unsafe fn cost(
        &self,
        path: *mut pg_sys::CustomPath,
        prefix: &Prefix,
        conditions: &[Condition],
        evaluated: *mut pg_sys::List,
    ) {
        // SAFETY: live planner nodes; reads of cost settings.
        unsafe {
            let mut index_clauses = std::ptr::null_mut();
            for &i in &prefix.used {
                index_clauses = pg_sys::lappend(index_clauses, conditions[i].clause.cast());
            }
            let selectivity = pg_sys::clauselist_selectivity(
                self.root,
                index_clauses,
                (*self.rel).relid as i32,
                pg_sys::JoinType::JOIN_INNER,
                std::ptr::null_mut(),
            );
            let total = (*self.rel).tuples.max(1.0);
            // A range read can yield no fewer quads than the path returns.
            let read = (total * selectivity)
                .max((*path).path.rows)
                .min(total.max((*path).path.rows))
                .max(1.0);
            let pages_in_order = f64::from((*self.rel).pages) / self.orders.len() as f64;
            let pages = (pages_in_order * read / total).ceil();
            let probes: f64 = prefix
                .used
                .iter()
                .filter(|&&i| conditions[i].bound == Bound::Any)
                .map(|&i| compat::array_length(self.root, conditions[i].value.cast()).max(1.0))
                .product();
            let mut qual = pg_sys::QualCost::default();
            pg_sys::cost_qual_eval(&mut qual, evaluated, self.root);
            let startup = qual.startup + DESCENT_OPERATORS * pg_sys::cpu_operator_cost;
            let io = if prefix.used.is_empty() {
                pages * pg_sys::seq_page_cost
            } else {
                probes * PROBE_LEAF_PAGES * pg_sys::random_page_cost
                    + (pages - 1.0).max(0.0) * pg_sys::seq_page_cost
            };
            let cpu = probes * DESCENT_OPERATORS * pg_sys::cpu_operator_cost
                + read * (0.5 * pg_sys::cpu_index_tuple_cost + qual.per_tuple)
                + (*path).path.rows * 0.5 * pg_sys::cpu_tuple_cost;
            let is_inner = !(*path).path.param_info.is_null();
            let message = match self.sharded && is_inner {
                true => MESSAGE_PAGES * pg_sys::seq_page_cost,
                false => 0.0,
            };
            (*path).path.startup_cost = startup;
            (*path).path.total_cost = startup + message + io + cpu;
        }
    }
}

fn bounds(conditions: &[Condition]) -> Vec<(usize, Bound)> {
    conditions.iter().map(|c| (c.column, c.bound)).collect()
}

/// How much of an order the conditions bind: more is better.
fn rank(prefix: &Prefix) -> impl Ord {
    (prefix.exact, prefix.bound, prefix.range)
}

/// Whether a single new pathkey says nothing more: its class is constant, or among the earlier ones
/// (`pathkey_is_redundant` of `optimizer/path/pathkeys.c`).
unsafe fn is_redundant(new: *mut pg_sys::List, earlier: *mut pg_sys::List) -> bool {
    // SAFETY: lists of live pathkeys.
    unsafe {
        let class = (*crate::pg::list::list_node(new, 0).cast::<pg_sys::PathKey>()).pk_eclass;
        compat::is_constant(class)
            || list_iter::<pg_sys::PathKey>(earlier).any(|key| (*key).pk_eclass == class)
    }
}

/// The pathkeys of these columns of a relation one after the other, as far as the query has a use for them.
///
/// # Safety
/// Live planner nodes; `rel` is a quad table.
pub unsafe fn pathkeys_of(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    columns: &[u8],
    way: Direction,
) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe {
        let operator = match way {
            Direction::Forward => pg_sys::Oid::from(pg_sys::Int8LessOperator),
            Direction::Backward => INT8_GREATER,
        };
        let mut keys = std::ptr::null_mut();
        for &column in columns {
            let var = pg_sys::makeVar(
                (*rel).relid as i32,
                i16::from(column) + 1,
                pg_sys::INT8OID,
                -1,
                pg_sys::InvalidOid,
                0,
            );
            let one = compat::expression_pathkey(root, var.cast(), operator, (*rel).relids);
            if one.is_null() {
                break;
            }
            if !is_redundant(one, keys) {
                keys = pg_sys::list_concat(keys, one);
            }
        }
        keys
    }
}

struct ColumnOf {
    rti: pg_sys::Index,
    column: usize,
}

#[pg_guard]
unsafe extern "C-unwind" fn member_is_column(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    _ec: *mut pg_sys::EquivalenceClass,
    em: *mut pg_sys::EquivalenceMember,
    arg: *mut core::ffi::c_void,
) -> bool {
    // SAFETY: the planner passes live nodes and the argument given by `join_conditions`.
    unsafe {
        let wanted = &*arg.cast::<ColumnOf>();
        let node = (*em).em_expr.cast::<pg_sys::Node>();
        if (*node).type_ != pg_sys::NodeTag::T_Var {
            return false;
        }
        let var = node.cast::<pg_sys::Var>();
        (*var).varno as pg_sys::Index == wanted.rti
            && i32::from((*var).varattno) == wanted.column as i32 + 1
    }
}

/// A path of PostgreSQL's shape, with the numbers of the orders in its private data.
struct ScanPath;

impl PlanPath for ScanPath {
    type Node = exec::QuadScan;

    /// `custom_exprs` = the values of the conditions used, then their clauses (for EXPLAIN); the private data is a
    /// [`ScanData`]. The conditions are those that the key ranges of either order enforce. The node tests those that
    /// the ranges of the order it reads do not enforce.
    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        let ChosenPath {
            root,
            rel,
            path,
            tlist,
            clauses,
            ..
        } = chosen;
        // SAFETY: arguments are the planner's own.
        unsafe {
            let backward = pg_sys::list_nth_int((*path).custom_private, 0);
            let numbers: Vec<i32> = (1..(*(*path).custom_private).length)
                .map(|n| pg_sys::list_nth_int((*path).custom_private, n))
                .collect();
            let relid = (*rel).relid;
            let rte = *(*root).simple_rte_array.add(relid as usize);
            let orders = table::orders_of((*rte).relid).unwrap_or_default();
            let conditions: Vec<Condition> = list_iter(clauses)
                .filter_map(|c| conditions::match_clause(root, relid, c))
                .collect();
            let bounds = bounds(&conditions);
            let mut used: Vec<usize> = Vec::new();
            for &order in &numbers {
                let prefix = match_order(orders[order as usize], &bounds);
                used.extend(
                    prefix
                        .used
                        .iter()
                        .filter(|i| !used.contains(i))
                        .collect::<Vec<_>>(),
                );
            }

            let mut values = std::ptr::null_mut();
            let mut shown = std::ptr::null_mut();
            let needs_tid = uses_system_column((*(*rel).reltarget).exprs.cast(), relid);
            let needed = needed_columns(rel, clauses);
            let mut bounds = Vec::new();
            let mut enforced: Vec<*mut pg_sys::RestrictInfo> = Vec::new();
            for i in used {
                let c = &conditions[i];
                values = pg_sys::lappend(values, c.value.cast());
                shown = pg_sys::lappend(shown, (*c.clause).clause.cast());
                enforced.push(c.clause);
                bounds.push(c.data(false));
            }
            // What the key range enforces exactly need not be checked again row by row.
            let mut rest = std::ptr::null_mut();
            for clause in list_iter::<pg_sys::RestrictInfo>(clauses) {
                if !enforced.contains(&clause) {
                    rest = pg_sys::lappend(rest, clause.cast());
                }
            }
            let scan = custom::new_plan(path, tlist, &exec::SCAN_METHODS);
            (*scan).scan.plan.qual = pg_sys::extract_actual_clauses(rest, false);
            (*scan).scan.scanrelid = relid;
            (*scan).custom_exprs = pg_sys::list_concat(values, shown);
            let data = ScanData {
                order: numbers[0] as usize,
                second: numbers.get(1).map(|&order| order as usize),
                needs_tid,
                needed: needed as usize,
                backward: backward != 0,
                bounds,
            };
            custom::set_private(scan, &data);
            scan
        }
    }
}
