//! Estimates from the tree's own counts.

use super::bind_peeking;
use super::conditions::{match_clause, Condition};
use crate::catalog::access_method;
use crate::pg::list::list_iter;
use crate::table;
use pgquad_btree::GRAPH;
use pgquad_exec::Bound;
use pgquad_term::TermId;
use pgrx::pg_sys;

/// The graph that most quads are in. Before ANALYZE, PostgreSQL would take it for one of 200 (`DEFAULT_NUM_DISTINCT` of
/// utils/selfuncs.h). The first queries after a load would be planned for a 200th of their rows.
const DEFAULT_GRAPH: i64 = TermId::DEFAULT_GRAPH.to_i64();

/// The number of quads of a table that pass `clauses`, of which `conditions` are the usable ones. It comes from the
/// tree's count where known values bind a prefix of an order, and from column statistics for the rest. `None` when no
/// value is known.
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
        let key = known_key(root, conditions)?;
        let (counted, columns) = table::range_count_of(relid, key);
        let covered = |clause: *mut pg_sys::RestrictInfo| {
            conditions.iter().any(|c| {
                c.clause == clause
                    && c.bound == Bound::Eq
                    && columns[c.column]
                    && bind_peeking::value(root, c.value).is_some_and(|v| key[c.column] == Some(v))
            })
        };
        let excludes_nothing = |clause: *mut pg_sys::RestrictInfo| {
            let mut conditions = conditions.iter();
            key[GRAPH] == Some(DEFAULT_GRAPH)
                && conditions
                    .any(|c| c.clause == clause && c.bound == Bound::Eq && c.column == GRAPH)
                && is_unknown(root, clause, GRAPH)
        };
        // Conditions that no order can bind together stay with the column statistics.
        let mut rest = std::ptr::null_mut();
        for clause in list_iter::<pg_sys::RestrictInfo>(clauses)
            .filter(|&c| !covered(c) && !excludes_nothing(c))
        {
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

/// Whether nothing is known of how many values a column of a clause's relation has.
unsafe fn is_unknown(
    root: *mut pg_sys::PlannerInfo,
    clause: *mut pg_sys::RestrictInfo,
    column: usize,
) -> bool {
    // SAFETY: live planner nodes; what is examined is released as ReleaseVariableStats of utils/selfuncs.h does.
    unsafe {
        let mut rti = 0;
        if !pg_sys::bms_get_singleton_member((*clause).clause_relids, &mut rti) {
            return false;
        }
        let (none, column) = (pg_sys::InvalidOid, column as i16 + 1);
        let var = pg_sys::makeVar(rti, column, pg_sys::INT8OID, -1, none, 0);
        let mut variable = pg_sys::VariableStatData::default();
        pg_sys::examine_variable(root, var.cast(), rti, &mut variable);
        let mut is_default = false;
        pg_sys::get_variable_numdistinct(&mut variable, &mut is_default);
        if let (false, Some(free)) = (variable.statsTuple.is_null(), variable.freefunc) {
            free(variable.statsTuple);
        }
        is_default
    }
}

/// The columns whose value is known when the query is planned; `None` where there is none.
unsafe fn known_key(
    root: *mut pg_sys::PlannerInfo,
    conditions: &[Condition],
) -> Option<[Option<i64>; 4]> {
    let mut key = [None; 4];
    for condition in conditions.iter().filter(|c| c.bound == Bound::Eq) {
        // SAFETY: live planner nodes, as the caller promises.
        if let Some(value) = unsafe { bind_peeking::value(root, condition.value) } {
            key[condition.column] = Some(value);
        }
    }
    (key != [None; 4]).then_some(key)
}

/// Counts for all relations of a query level at once what [`counted`] will ask for. A distributed store is asked once
/// then, and not pattern by pattern. To be called for each relation in turn; the first one does it.
///
/// # Safety
/// Live planner nodes, whose conditions are where they belong; `rti` is a distributed store.
pub unsafe fn count_ahead(root: *mut pg_sys::PlannerInfo, rti: pg_sys::Index) {
    // SAFETY: the arrays have `simple_rel_array_size` places; those of what is no base relation are null.
    unsafe {
        let mut stores: Vec<(pg_sys::Oid, Vec<[Option<i64>; 4]>)> = Vec::new();
        for n in 1..(*root).simple_rel_array_size as pg_sys::Index {
            let rel = *(*root).simple_rel_array.add(n as usize);
            let rte = *(*root).simple_rte_array.add(n as usize);
            if rel.is_null()
                || (*rte).rtekind != pg_sys::RTEKind::RTE_RELATION
                || !access_method::is_quad_relid((*rte).relid)
                || !table::is_sharded((*rte).relid)
            {
                continue;
            }
            if n < rti {
                return;
            }
            let conditions: Vec<Condition> = list_iter((*rel).baserestrictinfo)
                .filter_map(|clause| match_clause(root, n, clause))
                .collect();
            let Some(key) = known_key(root, &conditions) else {
                continue;
            };
            match stores.iter_mut().find(|(relid, _)| *relid == (*rte).relid) {
                Some((_, keys)) => keys.push(key),
                None => stores.push(((*rte).relid, vec![key])),
            }
        }
        for (relid, keys) in stores.iter().filter(|(_, keys)| keys.len() > 1) {
            table::count_ahead(*relid, keys);
        }
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
