//! ORDER BY .. LIMIT right above a `Quad Join`: what each node may leave out of the rows that it sends.

use super::columns::Cell;
use crate::pg::list::list_iter;
use pgquad_exec::{FirstRowsData, SortKey};
use pgrx::pg_sys;

/// Most rows that a participant keeps; for more it sends all.
const MAX_ROWS: f64 = 10_000.0;

/// The operator family of `bigint`, `integer_ops` (`pg_opfamily.dat`).
const INTEGERS: pg_sys::Oid = pg_sys::Oid::from_u32(1976);

/// What the level of `root` wants of the join of all its relations; `output` are the join's columns.
///
/// # Safety
/// `root` is the planner's own, at the time when plans are made of its paths; `rel` is a relation of it.
pub unsafe fn of_level(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    output: &[Cell],
) -> Option<FirstRowsData> {
    // SAFETY: live planner nodes.
    unsafe {
        let parse = (*root).parse;
        let rows = (*root).limit_tuples;
        let is_first = (1.0..=MAX_ROWS).contains(&rows)
            && (*parse).limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT
            && is_fixed((*parse).limitCount)
            && is_fixed((*parse).limitOffset)
            && (*parse).rowMarks.is_null()
            && !(*parse).sortClause.is_null()
            && pg_sys::bms_equal((*rel).relids, (*root).all_baserels);
        if !is_first {
            return None;
        }
        let clauses = list_iter::<pg_sys::SortGroupClause>((*parse).sortClause);
        let keys = clauses.map(|clause| sort_key(root, clause, output));
        Some(FirstRowsData {
            most: rows as usize,
            keys: keys.collect::<Option<_>>()?,
        })
    }
}

/// Whether a count of rows is the same in every run of the plan.
unsafe fn is_fixed(count: *mut pg_sys::Node) -> bool {
    // SAFETY: a live node or NULL.
    unsafe { count.is_null() || (*count).type_ == pg_sys::NodeTag::T_Const }
}

/// A column of the join in the order of its ids or of their terms.
unsafe fn sort_key(
    root: *mut pg_sys::PlannerInfo,
    clause: *mut pg_sys::SortGroupClause,
    output: &[Cell],
) -> Option<SortKey> {
    // SAFETY: live planner nodes, cast after a look at their tag; look-ups in the catalogue.
    unsafe {
        let expr = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
        if (*expr).type_ != pg_sys::NodeTag::T_Var {
            return None;
        }
        let var = expr.cast::<pg_sys::Var>();
        if (*var).varlevelsup != 0 || !(1..=4).contains(&(*var).varattno) {
            return None;
        }
        let cell = ((*var).varno as pg_sys::Index, (*var).varattno as usize - 1);
        let place = output.iter().position(|&known| known == cell)?;
        let (mut family, mut kind, mut strategy) = (pg_sys::InvalidOid, pg_sys::InvalidOid, 0i16);
        let operator = (*clause).sortop;
        if !pg_sys::get_ordering_op_properties(operator, &mut family, &mut kind, &mut strategy) {
            return None;
        }
        let by_term = family != INTEGERS;
        if by_term && !compares_terms(operator) {
            return None;
        }
        Some(SortKey {
            place,
            by_term,
            descending: strategy == pg_sys::BTGreaterStrategyNumber as i16,
            nulls_first: (*clause).nulls_first,
        })
    }
}

/// Whether an operator is `quad.<#` or `quad.>#`.
unsafe fn compares_terms(operator: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalogue.
    unsafe {
        let function = pg_sys::get_opcode(operator);
        let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
        if pg_sys::get_func_namespace(function) != schema {
            return false;
        }
        let name = pg_sys::get_func_name(function);
        matches!(
            std::ffi::CStr::from_ptr(name).to_bytes(),
            b"id_before" | b"id_after"
        )
    }
}
