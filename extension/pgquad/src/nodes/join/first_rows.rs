//! ORDER BY .. LIMIT right above a `Quad Join`: what each node may leave out of the rows that it sends, and the join of
//! those that it hands out.

use super::columns::{place_in, Cell};
use crate::pg::compat;
use crate::pg::list::list_iter;
use pgquad_exec::{FirstRowsData, LeadingKeyData, SortKey};
use pgrx::pg_sys;

/// Most rows, or values of the leading key, that are kept; where more rows are wanted, all are sent and handed out.
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
        let most = wanted_rows(root, rel)?;
        let clauses = list_iter::<pg_sys::SortGroupClause>((*(*root).parse).sortClause);
        let keys = clauses.map(|clause| sort_key(root, clause, output));
        Some(FirstRowsData {
            most,
            keys: keys.collect::<Option<_>>()?,
        })
    }
}

/// The leading key of the order in which the level of `root` wants the first rows of the join of all its relations,
/// where it is a whole number; `scan_tlist` are the join's columns and those that it takes from the plan below.
///
/// # Safety
/// As for [`of_level`].
pub unsafe fn leading_key(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    scan_tlist: *mut pg_sys::List,
) -> Option<LeadingKeyData> {
    // SAFETY: live planner nodes.
    unsafe {
        let most = wanted_rows(root, rel)?;
        let clause = list_iter::<pg_sys::SortGroupClause>((*(*root).parse).sortClause).next()?;
        let var = column(root, clause)?;
        let (family, descending) = operator_order((*clause).sortop)?;
        if family != INTEGERS || (*var).vartype != pg_sys::INT8OID {
            return None;
        }
        Some(LeadingKeyData {
            most,
            place: place_in(scan_tlist, var)?,
            descending,
            nulls_first: (*clause).nulls_first,
        })
    }
}

/// How many of the first rows of the join of all relations the level of `root` wants, where that is not all.
unsafe fn wanted_rows(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<usize> {
    // SAFETY: live planner nodes.
    unsafe {
        let (parse, rows) = ((*root).parse, (*root).limit_tuples);
        let relids = compat::base_relations(root, (*rel).relids);
        let is_first = (1.0..=MAX_ROWS).contains(&rows)
            && (*parse).limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT
            && is_fixed((*parse).limitCount)
            && is_fixed((*parse).limitOffset)
            && (*parse).rowMarks.is_null()
            && !(*parse).sortClause.is_null()
            && pg_sys::bms_equal(relids, (*root).all_baserels);
        is_first.then_some(rows as usize)
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
    // SAFETY: live planner nodes; look-ups in the catalogue.
    unsafe {
        let var = column(root, clause)?;
        if !(1..=4).contains(&(*var).varattno) {
            return None;
        }
        let cell = ((*var).varno as pg_sys::Index, (*var).varattno as usize - 1);
        let place = output.iter().position(|&known| known == cell)?;
        let (family, descending) = operator_order((*clause).sortop)?;
        let by_term = family != INTEGERS;
        if by_term && !compares_terms((*clause).sortop) {
            return None;
        }
        Some(SortKey {
            place,
            by_term,
            descending,
            nulls_first: (*clause).nulls_first,
        })
    }
}

/// The column of this level that rows are sorted by.
unsafe fn column(
    root: *mut pg_sys::PlannerInfo,
    clause: *mut pg_sys::SortGroupClause,
) -> Option<*mut pg_sys::Var> {
    // SAFETY: live planner nodes, cast after a look at their tag.
    unsafe {
        let expr = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
        let var = expr.cast::<pg_sys::Var>();
        ((*expr).type_ == pg_sys::NodeTag::T_Var && (*var).varlevelsup == 0).then_some(var)
    }
}

/// The operator family of a sort operator, and whether the greatest comes first.
unsafe fn operator_order(operator: pg_sys::Oid) -> Option<(pg_sys::Oid, bool)> {
    let (mut family, mut kind, mut strategy) = (pg_sys::InvalidOid, pg_sys::InvalidOid, 0i16);
    // SAFETY: a look-up in the catalogue.
    let is_known = unsafe {
        pg_sys::get_ordering_op_properties(operator, &mut family, &mut kind, &mut strategy)
    };
    is_known.then_some((family, strategy == pg_sys::BTGreaterStrategyNumber as i16))
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
