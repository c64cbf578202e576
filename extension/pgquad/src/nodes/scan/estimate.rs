//! Estimates from the tree's own counts.

use super::bind_peeking;
use super::conditions::Condition;
use crate::pg::list::list_iter;
use crate::storage;
use pgquad_exec::Bound;
use pgrx::pg_sys;

/// The number of quads of a table that pass `clauses`, of which `conditions` are the usable ones: by the tree's count
/// where known values bind a prefix of an order, and column statistics for the rest. `None` when no value is known.
///
/// # Safety
/// Live planner nodes; the statement has locked the table.
pub unsafe fn counted(
    root: *mut pg_sys::PlannerInfo,
    relid: pg_sys::Oid,
    conditions: &[Condition],
    clauses: *mut pg_sys::List,
) -> Option<f64> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut key = [None; 4];
        for condition in conditions.iter().filter(|c| c.bound == Bound::Eq) {
            if let Some(value) = bind_peeking::value(root, condition.value) {
                key[condition.column] = Some(value);
            }
        }
        if key == [None; 4] {
            return None;
        }
        let (counted, columns) = storage::range_count_of(relid, key);
        let covered = |clause: *mut pg_sys::RestrictInfo| {
            conditions.iter().any(|c| {
                c.clause == clause
                    && c.bound == Bound::Eq
                    && columns[c.column]
                    && bind_peeking::value(root, c.value).is_some_and(|v| key[c.column] == Some(v))
            })
        };
        // Conditions that no order can bind together stay with the column statistics.
        let mut rest = std::ptr::null_mut();
        for clause in list_iter::<pg_sys::RestrictInfo>(clauses).filter(|&c| !covered(c)) {
            rest = pg_sys::lappend(rest, clause.cast());
        }
        let rest = pg_sys::clauselist_selectivity(
            root,
            rest,
            0,
            pg_sys::JoinType::JOIN_INNER,
            std::ptr::null_mut(),
        );
        Some((counted * rest).max(1.0))
    }
}

/// The number of quads of `rel` that pass these conditions, whatever else the query asks of it.
///
/// # Safety
/// As for [`counted`]; the conditions are those of clauses of `rel`.
pub unsafe fn passing(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    conditions: &[Condition],
) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let relid = (**(*root).simple_rte_array.add((*rel).relid as usize)).relid;
        let mut clauses = std::ptr::null_mut();
        for condition in conditions {
            clauses = pg_sys::lappend(clauses, condition.clause.cast());
        }
        counted(root, relid, conditions, clauses).unwrap_or_else(|| {
            let selectivity = pg_sys::clauselist_selectivity(
                root,
                clauses,
                0,
                pg_sys::JoinType::JOIN_INNER,
                std::ptr::null_mut(),
            );
            ((*rel).tuples * selectivity).max(1.0)
        })
    }
}
