//! Equality of computed values: groups of patterns that nothing connects but, say, `lcase(?a) = lcase(?b)`.
//!
//! `Quad Join` could only test it pair by pair. PostgreSQL hashes both sides, so the groups are left to its own joins.

use super::columns::{equal_columns, Cell};
use super::value_equality;
use crate::catalog::access_method;
use crate::nodes::scan::conditions;
use crate::pg::compat;
use crate::pg::list::list_iter;
use pgquad_btree::GRAPH;
use pgrx::pg_sys;

/// Whether any equality of `rels` is one of computed values: if not, there is nothing to look for pair by pair.
///
/// # Safety
/// Live relations of the level.
pub unsafe fn is_possible(
    root: *mut pg_sys::PlannerInfo,
    rels: &[*mut pg_sys::RelOptInfo],
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let is_computed = |member: *mut pg_sys::EquivalenceMember| {
            !(*member).em_is_const
                && !compat::is_empty((*member).em_relids)
                && (*(*member).em_expr.cast::<pg_sys::Node>()).type_ != pg_sys::NodeTag::T_Var
        };
        let mut classes = list_iter::<pg_sys::EquivalenceClass>((*root).eq_classes);
        let all = rels.iter().fold(std::ptr::null_mut(), |all, &rel| {
            pg_sys::bms_union(all, (*rel).relids)
        });
        let is_clause = |clause: *mut pg_sys::RestrictInfo| {
            (*clause).can_join
                && (*clause).hashjoinoperator != pg_sys::InvalidOid
                && equal_columns(clause, all).is_none()
        };
        classes.any(|class| list_iter((*class).ec_members).any(is_computed))
            || rels
                .iter()
                .any(|&rel| list_iter((*rel).joininfo).any(is_clause))
    }
}

/// Whether any condition connects two relations.
///
/// # Safety
/// As for [`is_best`].
pub unsafe fn is_joined(
    root: *mut pg_sys::PlannerInfo,
    a: *mut pg_sys::RelOptInfo,
    b: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let both = pg_sys::bms_union((*a).relids, (*b).relids);
        !between(root, both, a, b).is_empty()
    }
}

/// Whether an equality that PostgreSQL can hash is the best there is between two relations: the node has nothing to
/// look up by.
///
/// # Safety
/// Live relations of the level, which have no base relation in common.
pub unsafe fn is_best(
    root: *mut pg_sys::PlannerInfo,
    a: *mut pg_sys::RelOptInfo,
    b: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let both = pg_sys::bms_union((*a).relids, (*b).relids);
        let mut hashed = false;
        for clause in between(root, both, a, b) {
            let expr = (*clause).clause.cast();
            let is_key = match equal_columns(clause, both) {
                // The patterns of one graph are many, and few orders begin with it.
                Some((x, y)) if is_graph(root, x) || is_graph(root, y) => continue,
                Some(_) => true,
                None => value_equality::compared(expr, both).is_some(),
            };
            if is_key {
                return false;
            }
            hashed |= is_hashable(clause, (*a).relids, (*b).relids);
        }
        hashed
    }
}

/// Whether a column is the graph of a pattern.
unsafe fn is_graph(root: *mut pg_sys::PlannerInfo, (relation, column): Cell) -> bool {
    // SAFETY: a relation of the level.
    unsafe {
        let rte = *(*root).simple_rte_array.add(relation as usize);
        column == GRAPH
            && (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
            && access_method::is_quad_relid((*rte).relid)
    }
}

/// Whether `inner` can look a column up by such an equality, given a row of `outer`.
///
/// # Safety
/// As for [`is_best`].
pub unsafe fn is_lookup(
    root: *mut pg_sys::PlannerInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let both = pg_sys::bms_union((*outer).relids, (*inner).relids);
        let inside = compat::members((*inner).relids);
        between(root, both, outer, inner).into_iter().any(|clause| {
            let mut relations = inside.iter().map(|&member| member as pg_sys::Index);
            relations.any(|relation| {
                let condition = conditions::match_clause(root, relation, clause);
                condition.is_some_and(|condition| {
                    let needs = pg_sys::pull_varnos(root, condition.value.cast());
                    !pg_sys::bms_overlap(needs, (*inner).relids)
                })
            })
        })
    }
}

/// Conditions that can be tested once both relations are joined, and not before.
unsafe fn between(
    root: *mut pg_sys::PlannerInfo,
    both: pg_sys::Relids,
    a: *mut pg_sys::RelOptInfo,
    b: *mut pg_sys::RelOptInfo,
) -> Vec<*mut pg_sys::RestrictInfo> {
    // SAFETY: live planner nodes.
    unsafe {
        let own = list_iter::<pg_sys::RestrictInfo>((*a).joininfo)
            .filter(|&clause| pg_sys::bms_is_subset((*clause).required_relids, both));
        let implied = compat::implied_equalities(root, both, (*a).relids, b);
        own.chain(list_iter(implied)).collect()
    }
}

/// Whether PostgreSQL can join by hash with the clause, one side of which is of `a` and the other one of `b`.
unsafe fn is_hashable(
    clause: *mut pg_sys::RestrictInfo,
    a: pg_sys::Relids,
    b: pg_sys::Relids,
) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        let (left, right) = ((*clause).left_relids, (*clause).right_relids);
        let of = |x, y| {
            !compat::is_empty(left)
                && !compat::is_empty(right)
                && pg_sys::bms_is_subset(left, x)
                && pg_sys::bms_is_subset(right, y)
        };
        (*clause).can_join
            && (*clause).hashjoinoperator != pg_sys::InvalidOid
            && (of(a, b) || of(b, a))
    }
}
