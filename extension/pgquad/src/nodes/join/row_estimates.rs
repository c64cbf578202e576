//! Row estimates that joins above the patterns are planned with.
//!
//! PostgreSQL multiplies the selectivities of columns, as if the patterns of a group were independent, and soon expects
//! a single row. Then a nested loop that reads its inner side anew for each row looks as good as any other join. It is
//! a disaster when there are hundreds of rows. So a group of patterns is expected to have no fewer rows than the most
//! selective of them. No result of a subquery is taken for a single row unless it must be one.

use super::join_tree::JoinTree;
use crate::catalog::access_method;
use crate::pg::list::list_iter;
use pgrx::pg_sys;

/// Fewest rows expected of what is not known to be a single one. Chosen, not measured.
const MIN_EXPECTED_ROWS: f64 = 20.0;

/// Raises the rows expected of a join of patterns to those of its most selective pattern.
///
/// # Safety
/// `joined` is a join relation that is being planned, `join_tree` what it joins.
pub unsafe fn expect_of_patterns(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
    join_tree: &JoinTree,
) {
    // SAFETY: the caller's promise: the relations described are base relations of the level.
    let least = join_tree
        .relations
        .iter()
        .map(|&rti| unsafe { (**(*root).simple_rel_array.add(rti as usize)).rows })
        .fold(f64::INFINITY, f64::min);
    if least.is_finite() {
        // SAFETY: as above.
        unsafe { (*joined).rows = (*joined).rows.max(least) }
    }
}

/// Raises the rows expected of subqueries over quads among `rels`, which are about to be joined; whether there are any.
///
/// # Safety
/// `rels` are the initial relations of a join search of the level.
pub unsafe fn expect_of_subqueries(
    root: *mut pg_sys::PlannerInfo,
    rels: &[*mut pg_sys::RelOptInfo],
) -> bool {
    let mut any = false;
    for &rel in rels {
        // SAFETY: the caller's promise.
        unsafe {
            if (*rel).rtekind == pg_sys::RTEKind::RTE_SUBQUERY
                && (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && !(*rel).subroot.is_null()
                && reads_quads((*rel).subroot)
            {
                any = true;
                let rte = *(*root).simple_rte_array.add((*rel).relid as usize);
                if !is_one_row((*rte).subquery) {
                    at_least(rel, MIN_EXPECTED_ROWS);
                }
            }
        }
    }
    any
}

/// Raises the rows expected of a join above the patterns.
///
/// # Safety
/// `joined` is a join relation with its paths.
pub unsafe fn expect_of_join(joined: *mut pg_sys::RelOptInfo) {
    // SAFETY: the caller's promise.
    unsafe { at_least(joined, MIN_EXPECTED_ROWS) }
}

unsafe fn at_least(rel: *mut pg_sys::RelOptInfo, rows: f64) {
    // SAFETY: live planner nodes.
    unsafe {
        (*rel).rows = (*rel).rows.max(rows);
        for path in list_iter::<pg_sys::Path>((*rel).pathlist) {
            if (*path).param_info.is_null() {
                (*path).rows = (*path).rows.max(rows);
            }
        }
    }
}

/// Whether a query gives one row whatever the data.
unsafe fn is_one_row(query: *mut pg_sys::Query) -> bool {
    // SAFETY: a live query tree.
    unsafe {
        ((*query).hasAggs && (*query).groupClause.is_null() && (*query).groupingSets.is_null())
            || ((*query).rtable.is_null() && (*query).setOperations.is_null())
    }
}

/// Whether a level or one of its subqueries reads a quad table.
unsafe fn reads_quads(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: a live planner state; the arrays have the size it says.
    unsafe {
        (1..(*root).simple_rel_array_size as usize).any(|rti| {
            let rel = *(*root).simple_rel_array.add(rti);
            let rte = *(*root).simple_rte_array.add(rti);
            if rel.is_null() || rte.is_null() {
                return false;
            }
            match (*rte).rtekind {
                pg_sys::RTEKind::RTE_RELATION => access_method::is_quad_relid((*rte).relid),
                pg_sys::RTEKind::RTE_SUBQUERY => {
                    !(*rel).subroot.is_null() && reads_quads((*rel).subroot)
                }
                _ => false,
            }
        })
    }
}
