//! Join search for groups of quad tables.
//!
//! Quad tables that are joined with each other become one relation with a `Quad Join`, which orders their join while it
//! runs. Here they are only put together, as outer joins allow. What is left, other relations among it, is joined by
//! PostgreSQL's own search.
//!
//! Where `Quad Join` does not apply, a basic graph pattern of a dozen triples is a join of a dozen relations. Dynamic
//! programming takes tens of milliseconds for it, and the genetic search no less. Every quad pattern can be probed by
//! any of its columns. So the join grows from the most selective pattern along shared variables. That finds what the
//! search would find, with one join relation per step. The building blocks (and the care for outer joins) are those of
//! `optimizer/geqo/geqo_eval.c`.

use super::computed_equality;
use super::eligible_relations;
use super::paths::{self, Above, Joining, JoiningAbove};
use super::row_estimates;
use crate::catalog::access_method;
use crate::nodes::scan;
use crate::pg::compat;
use crate::pg::ffi;
use crate::pg::list::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::join_search_hook_type = None;

/// Quad tables: joins of fewer are left to PostgreSQL's own search, and so are joins that are mostly of other
/// relations. Chosen, not measured.
const MIN_QUAD_TABLES: i32 = 5;

/// Installs the hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any planning.
    unsafe {
        PREVIOUS = pg_sys::join_search_hook;
        pg_sys::join_search_hook = Some(join_search);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn join_search(
    root: *mut pg_sys::PlannerInfo,
    levels: core::ffi::c_int,
    initial: *mut pg_sys::List,
) -> *mut pg_sys::RelOptInfo {
    // SAFETY: arguments are the planner's own.
    unsafe {
        let candidates = eligible_relations::candidates(root);
        let rels: Vec<_> = list_iter(initial).collect();
        let over_quads = row_estimates::expect_of_subqueries(root, &rels);
        let above = if over_quads || !compat::is_empty(candidates) {
            Above::Results
        } else {
            Above::Tables
        };
        let _above = JoiningAbove::new(root, above);
        if compat::is_empty(candidates) {
            eligible_relations::forget(root);
            return search(root, levels, initial);
        }
        let joined = or_undo(root, || quad_joins(root, candidates, &rels));
        eligible_relations::forget(root);
        joined.unwrap_or_else(|| {
            for &rel in rels.iter().filter(|&&rel| is_candidate(rel, candidates)) {
                scan::complete(root, rel);
            }
            search(root, levels, initial)
        })
    }
}

/// Whether a relation is a base relation that a `Quad Join` could have taken.
unsafe fn is_candidate(rel: *mut pg_sys::RelOptInfo, candidates: pg_sys::Relids) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && pg_sys::bms_is_subset((*rel).relids, candidates)
    }
}

/// Runs an attempt at a join; when it leads nowhere, the planner's list of joins is what it was, as in geqo.
unsafe fn or_undo(
    root: *mut pg_sys::PlannerInfo,
    attempt: impl FnOnce() -> Option<*mut pg_sys::RelOptInfo>,
) -> Option<*mut pg_sys::RelOptInfo> {
    // SAFETY: a live planner state.
    unsafe {
        let known = pg_sys::list_length((*root).join_rel_list);
        let hash = (*root).join_rel_hash;
        (*root).join_rel_hash = std::ptr::null_mut();
        let joined = attempt();
        if joined.is_none() {
            (*root).join_rel_list = pg_sys::list_truncate((*root).join_rel_list, known);
            (*root).join_rel_hash = hash;
        }
        joined
    }
}

/// Puts quad relations that are joined with each other together, and joins the result with the other relations. `None`
/// where outer joins do not allow that.
unsafe fn quad_joins(
    root: *mut pg_sys::PlannerInfo,
    candidates: pg_sys::Relids,
    rels: &[*mut pg_sys::RelOptInfo],
) -> Option<*mut pg_sys::RelOptInfo> {
    // SAFETY: live planner nodes.
    unsafe {
        let (quads, others): (Vec<_>, Vec<_>) = rels
            .iter()
            .partition(|&&rel| pg_sys::bms_is_subset((*rel).relids, candidates));
        let clumps = {
            let _joining = Joining::new(root);
            let mut search = Search {
                root,
                clumps: Vec::new(),
                computed: computed_equality::is_possible(root, &quads),
                left: quads,
                total: 0,
                pick: Pick::First,
            };
            search.gather();
            if others.is_empty() && !search.has_hashed() {
                return search.join_unrelated().then(|| search.clumps[0].rel);
            }
            search.clumps
        };
        // A relation that stayed alone after all is probed by way of PostgreSQL's own joins.
        for clump in clumps
            .iter()
            .filter(|clump| is_candidate(clump.rel, candidates))
        {
            scan::complete(root, clump.rel);
        }
        let mut left: Vec<_> = clumps.iter().map(|clump| clump.rel).collect();
        left.extend(others);
        for clump in &clumps {
            let rest: Vec<_> = left
                .iter()
                .copied()
                .filter(|&rel| rel != clump.rel)
                .collect();
            paths::add_parameterised(root, clump.rel, &rest);
            pg_sys::set_cheapest(clump.rel);
        }
        if !(*root).join_info_list.is_null() {
            return greedy(root, &left);
        }
        let mut list = std::ptr::null_mut();
        for &rel in &left {
            list = pg_sys::lappend(list, rel.cast());
        }
        Some(search(root, left.len() as i32, list))
    }
}

/// The search for what no `Quad Join` takes.
unsafe fn search(
    root: *mut pg_sys::PlannerInfo,
    levels: core::ffi::c_int,
    initial: *mut pg_sys::List,
) -> *mut pg_sys::RelOptInfo {
    // SAFETY: arguments are the planner's own.
    unsafe {
        if levels >= MIN_QUAD_TABLES && crate::settings::ENABLE_QUAD_SCAN.get() {
            let rels: Vec<*mut pg_sys::RelOptInfo> = list_iter(initial).collect();
            let quads = rels.iter().filter(|&&rel| all_quad(root, rel)).count();
            if quads as i32 >= MIN_QUAD_TABLES && 2 * quads > rels.len() {
                if let Some(joined) = greedy(root, &rels) {
                    return joined;
                }
            }
        }
        match PREVIOUS {
            Some(previous) => previous(root, levels, initial),
            None if pg_sys::enable_geqo && levels >= pg_sys::geqo_threshold => {
                ffi::geqo(root, levels, initial)
            }
            None => pg_sys::standard_join_search(root, levels, initial),
        }
    }
}

/// Whether every base relation of `rel` is a quad table.
unsafe fn all_quad(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        compat::members((*rel).relids).into_iter().all(|member| {
            let rte = *(*root).simple_rte_array.add(member as usize);
            compat::is_outer_join(root, member)
                || (!rte.is_null()
                    && (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
                    && access_method::is_quad_relid((*rte).relid))
        })
    }
}

/// Joins `rels` in a greedy order; `None` (and nothing changed) when that leads nowhere.
unsafe fn greedy(
    root: *mut pg_sys::PlannerInfo,
    rels: &[*mut pg_sys::RelOptInfo],
) -> Option<*mut pg_sys::RelOptInfo> {
    // SAFETY: live planner nodes.
    unsafe {
        or_undo(root, || {
            Search {
                root,
                clumps: Vec::new(),
                computed: false,
                left: rels.to_vec(),
                total: rels.len(),
                pick: Pick::FewestRows,
            }
            .run()
        })
    }
}

/// Relations that have been joined with each other: `Clump` of `optimizer/geqo/geqo_eval.c`.
struct Clump {
    rel: *mut pg_sys::RelOptInfo,
    size: usize,
}

struct Search {
    root: *mut pg_sys::PlannerInfo,
    /// Joins that could not be grown further, mostly for want of the other side of an outer join.
    clumps: Vec<Clump>,
    left: Vec<*mut pg_sys::RelOptInfo>,
    /// Number of relations of the level; a join of all of them is finished by the caller.
    total: usize,
    pick: Pick,
    /// Equalities of computed values are to be looked for, which PostgreSQL joins by hash.
    computed: bool,
}

/// Which relation is joined next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    /// The one with the fewest expected rows.
    FewestRows,
    /// Any: the order is decided elsewhere.
    First,
}

impl Search {
    unsafe fn run(mut self) -> Option<*mut pg_sys::RelOptInfo> {
        // SAFETY: live planner nodes.
        unsafe {
            self.gather();
            self.join_unrelated()
                .then(|| self.clumps.pop().map(|c| c.rel))?
        }
    }

    /// Joins all relations that share variables, as far as outer joins allow.
    unsafe fn gather(&mut self) {
        // SAFETY: live planner nodes.
        unsafe {
            while let Some(start) = self.take_best(None) {
                let mut clump = Clump {
                    rel: start,
                    size: 1,
                };
                while let Some(grown) = self.grow(&clump) {
                    clump = grown;
                }
                self.merge_clump(clump);
            }
        }
    }

    /// Joins what shares no variable, smallest first; whether everything is one relation then.
    unsafe fn join_unrelated(&mut self) -> bool {
        // SAFETY: live planner nodes.
        unsafe {
            self.clumps
                .sort_by(|a, b| (*a.rel).rows.total_cmp(&(*b.rel).rows));
            while self.clumps.len() > 1 {
                let before = self.clumps.len();
                'pairs: for i in 0..before {
                    for j in i + 1..before {
                        if let Some(rel) = self.join(&self.clumps[i], &self.clumps[j]) {
                            self.clumps.remove(j);
                            self.clumps[i] = rel;
                            break 'pairs;
                        }
                    }
                }
                if self.clumps.len() == before {
                    return false;
                }
            }
            true
        }
    }

    /// Removes the relation with the fewest expected rows given what has been joined already.
    unsafe fn take_best(
        &mut self,
        with: Option<*mut pg_sys::RelOptInfo>,
    ) -> Option<*mut pg_sys::RelOptInfo> {
        // SAFETY: live planner nodes.
        unsafe {
            if self.pick == Pick::First {
                return (!self.left.is_empty()).then(|| self.left.remove(0));
            }
            let mut known: pg_sys::Relids = std::ptr::null_mut();
            for clump in &self.clumps {
                known = pg_sys::bms_add_members(known, (*clump.rel).relids);
            }
            if let Some(rel) = with {
                known = pg_sys::bms_add_members(known, (*rel).relids);
            }
            let best = (0..self.left.len()).min_by(|&a, &b| {
                expected_rows(self.left[a], known).total_cmp(&expected_rows(self.left[b], known))
            })?;
            Some(self.left.remove(best))
        }
    }

    /// Joins the clump with the best of the relations that share a variable with it.
    unsafe fn grow(&mut self, clump: &Clump) -> Option<Clump> {
        // SAFETY: live planner nodes.
        unsafe {
            let mut refused = Vec::new();
            let all = std::mem::take(&mut self.left);
            let (near, far): (Vec<_>, Vec<_>) = all
                .into_iter()
                .partition(|&rel| self.related(clump.rel, rel));
            self.left = near;
            let mut grown = None;
            while let Some(rel) = self.take_best(Some(clump.rel)) {
                grown = self.join(clump, &Clump { rel, size: 1 });
                if grown.is_some() {
                    break;
                }
                refused.push(rel);
            }
            self.left.extend(refused);
            self.left.extend(far);
            grown
        }
    }

    /// Keeps a clump that cannot grow, and joins it with earlier clumps where that is possible.
    unsafe fn merge_clump(&mut self, clump: Clump) {
        // SAFETY: live planner nodes.
        unsafe {
            for i in 0..self.clumps.len() {
                if !self.related(self.clumps[i].rel, clump.rel) {
                    continue;
                }
                if let Some(mut joined) = self.join(&self.clumps[i], &clump) {
                    self.clumps.remove(i);
                    while let Some(grown) = self.grow(&joined) {
                        joined = grown;
                    }
                    return self.merge_clump(joined);
                }
            }
            self.clumps.push(clump);
        }
    }

    unsafe fn related(&self, a: *mut pg_sys::RelOptInfo, b: *mut pg_sys::RelOptInfo) -> bool {
        // SAFETY: live planner nodes.
        unsafe {
            let mut connected = ffi::have_relevant_joinclause(self.root, a, b);
            if connected && self.computed {
                // For PostgreSQL columns that equal the same constant connect, too: all patterns of one graph.
                connected = computed_equality::is_joined(self.root, a, b);
                if connected && computed_equality::is_best(self.root, a, b) {
                    return false;
                }
            }
            connected || pg_sys::have_join_order_restriction(self.root, a, b)
        }
    }

    /// Whether clumps are left apart for PostgreSQL to join them by hash.
    unsafe fn has_hashed(&self) -> bool {
        // SAFETY: live planner nodes.
        unsafe {
            if !self.computed {
                return false;
            }
            let of = |i: usize| self.clumps[i].rel;
            let mut pairs = (0..self.clumps.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            pairs.any(|(i, j)| computed_equality::is_best(self.root, of(i), of(j)))
        }
    }

    /// The join of two clumps with its paths; `None` where outer joins forbid it.
    unsafe fn join(&self, a: &Clump, b: &Clump) -> Option<Clump> {
        // SAFETY: live planner nodes.
        unsafe {
            let rel = pg_sys::make_join_rel(self.root, a.rel, b.rel);
            if rel.is_null() {
                return None;
            }
            let size = a.size + b.size;
            if self.pick == Pick::First {
                pg_sys::set_cheapest(rel);
                // Joined in a way that the node does not know: another pairing may do.
                return paths::quad_join_of(rel).map(|_| Clump { rel, size });
            }
            pg_sys::generate_partitionwise_join_paths(self.root, rel);
            if size < self.total {
                pg_sys::generate_useful_gather_paths(self.root, rel, false);
            }
            pg_sys::set_cheapest(rel);
            Some(Clump { rel, size })
        }
    }
}

/// Rows of `rel` per row of `known`: of its best parameterised path that needs nothing else, or all of them.
unsafe fn expected_rows(rel: *mut pg_sys::RelOptInfo, known: pg_sys::Relids) -> f64 {
    // SAFETY: live planner nodes.
    unsafe {
        let parameterised = list_iter::<pg_sys::ParamPathInfo>((*rel).ppilist)
            .filter(|&info| pg_sys::bms_is_subset((*info).ppi_req_outer, known))
            .map(|info| (*info).ppi_rows);
        parameterised.fold((*rel).rows, f64::min)
    }
}
