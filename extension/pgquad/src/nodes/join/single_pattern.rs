//! Single pattern: a quad table that no other one is joined with.
//!
//! `Quad Scan` reads it, which knows the orders of its columns. Where filters can be tested on ids, a `Quad Join` of
//! one pattern does that a batch at a time, and reads only the ranges that can pass.

use super::join_tree::JoinTree;
use super::path::QuadJoinPath;
use super::vectorised_filters::VectorisedFilter;
use super::{eligible_relations, paths};
use crate::nodes::scan::conditions;
use crate::pg::list::list_iter;
use pgrx::pg_sys;

/// A path that reads a relation on its own, for which costs are still to be set, with the conditions that PostgreSQL
/// evaluates for each row. None where ids tell nothing of any filter, or the relation is to be joined with others.
///
/// # Safety
/// `rel` is a base relation of the level, which is past the setting up of base relations.
pub unsafe fn single_pattern_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<(*mut pg_sys::CustomPath, *mut pg_sys::List)> {
    // SAFETY: the caller's promise.
    unsafe {
        let rti = (*rel).relid;
        let (on_ids, others): (Vec<_>, Vec<_>) =
            list_iter::<pg_sys::RestrictInfo>((*rel).baserestrictinfo).partition(|&clause| {
                conditions::match_clause(root, rti, clause).is_none()
                    && VectorisedFilter::knows((*clause).clause, rti)
            });
        let joined = pg_sys::bms_is_member(rti as i32, eligible_relations::candidates(root));
        if on_ids.is_empty() || joined {
            return None;
        }
        let path = path_of(root, rel)?;
        let mut evaluated = std::ptr::null_mut();
        for clause in others {
            evaluated = pg_sys::lappend(evaluated, clause.cast());
        }
        Some((path.cast(), evaluated))
    }
}

/// A path that reads a relation on its own, at the cost of its cheapest one without what is computed from its rows, for
/// a node above that takes its batches. It is none of the relation's own paths. None where filters need terms:
/// `Quad Scan` tests them row by row, so that a term is decoded once for all that is computed from it.
///
/// # Safety
/// `rel` is the input of the first step above scans and joins: a base relation is the only one of the level then.
pub unsafe fn whole(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<*mut QuadJoinPath> {
    // SAFETY: the caller's promise.
    unsafe {
        let cheapest = (*rel).cheapest_total_path;
        if cheapest.is_null() || !(*cheapest).param_info.is_null() || pg_sys::is_dummy_rel(rel) {
            return None;
        }
        let cheapest = paths::unprojected(cheapest);
        let path = path_of(root, rel)?;
        let rti = (*rel).relid;
        let on_ids = |clause: *mut pg_sys::RestrictInfo| {
            conditions::match_clause(root, rti, clause).is_some()
                || VectorisedFilter::knows((*clause).clause, rti)
        };
        if !list_iter((*rel).baserestrictinfo).all(on_ids) {
            return None;
        }
        (*path).path.path.rows = (*cheapest).rows;
        (*path).path.path.startup_cost = (*cheapest).startup_cost;
        (*path).path.path.total_cost = (*cheapest).total_cost;
        Some(path)
    }
}

unsafe fn path_of(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<*mut QuadJoinPath> {
    // SAFETY: live planner nodes.
    unsafe {
        if !eligible_relations::is_eligible(root, rel) {
            return None;
        }
        let join_tree = JoinTree::relation(rel);
        let fits = join_tree.size((*rel).relids).fits(None);
        fits.then(|| paths::make(rel, join_tree))
    }
}
