//! Finding the conditions on s, p, o, g that a tree can use: `column op value` with an operator of the integer btree
//! family, and `column = ANY (array)`.

use crate::pg::list::list_node;
use pgquad_exec::Bound;
use pgrx::pg_sys;

/// One usable condition of a relation.
#[derive(Clone, Copy)]
pub struct Condition {
    /// 0 = s, 1 = p, 2 = o, 3 = g
    pub column: usize,
    /// The kind of bound.
    pub bound: Bound,
    /// The value (or array) side; evaluated once per scan.
    pub value: *mut pg_sys::Expr,
    /// Type of the value: int8, int4, int2 or an array of them.
    pub value_type: pg_sys::Oid,
    /// The clause it came from.
    pub clause: *mut pg_sys::RestrictInfo,
}

impl Condition {
    /// Relations other than `relid` that the clause needs.
    pub fn outer(&self, relid: pg_sys::Index) -> pg_sys::Relids {
        // SAFETY: `clause` points at a live planner node; the relation's own bit is removed from a copy.
        unsafe {
            pg_sys::bms_del_member(pg_sys::bms_copy((*self.clause).clause_relids), relid as i32)
        }
    }
}

/// The value that a clause `column <> value` compares a column of relation `relid` with, as if it were an equality.
///
/// # Safety
/// As for [`match_clause`].
pub unsafe fn match_unequal(
    root: *mut pg_sys::PlannerInfo,
    relid: pg_sys::Index,
    clause: *mut pg_sys::RestrictInfo,
) -> Option<Condition> {
    // SAFETY: as for `match_clause`.
    unsafe {
        let expr = (*clause).clause.cast::<pg_sys::Node>();
        if (*clause).pseudoconstant || (*expr).type_ != pg_sys::NodeTag::T_OpExpr {
            return None;
        }
        let op = expr.cast::<pg_sys::OpExpr>();
        let negator = pg_sys::get_negator((*op).opno);
        if negator == pg_sys::InvalidOid || comparison(negator)? != Bound::Eq {
            return None;
        }
        compared(root, relid, clause, op, Bound::Eq)
    }
}

/// What an operator of the integer btree family says about its left side.
///
/// # Safety
/// Called within a transaction.
pub unsafe fn comparison(operator: pg_sys::Oid) -> Option<Bound> {
    // SAFETY: a catalogue look-up.
    let strategy =
        unsafe { pg_sys::get_op_opfamily_strategy(operator, pg_sys::INTEGER_BTREE_FAM_OID) };
    Bound::from_number(strategy).filter(|b| *b != Bound::Any)
}

/// The condition `column bound value`, if one side of `op` is a column of the relation and the other a value for it.
unsafe fn compared(
    root: *mut pg_sys::PlannerInfo,
    relid: pg_sys::Index,
    clause: *mut pg_sys::RestrictInfo,
    op: *mut pg_sys::OpExpr,
    bound: Bound,
) -> Option<Condition> {
    // SAFETY: as for `match_clause`.
    unsafe {
        let args = (*op).args;
        if args.is_null() || (*args).length != 2 {
            return None;
        }
        let (left, right) = (list_node(args, 0), list_node(args, 1));
        let (column, value, bound) = if let Some(c) = own_column(relid, left) {
            (c, right, bound)
        } else {
            (own_column(relid, right)?, left, bound.commuted())
        };
        usable_value(root, relid, value, &INTEGER_TYPES).map(|value_type| Condition {
            column,
            bound,
            value: value.cast(),
            value_type,
            clause,
        })
    }
}

/// How a condition behind the columns that key ranges bind is tested.
#[derive(Clone, Copy)]
pub struct Test {
    /// The condition; that of an inequality reads as an equality.
    pub condition: Condition,
    /// `<>`.
    pub unequal: bool,
}

const INTEGER_TYPES: [pg_sys::Oid; 3] = [pg_sys::INT8OID, pg_sys::INT4OID, pg_sys::INT2OID];
const INTEGER_ARRAYS: [pg_sys::Oid; 3] = [
    pg_sys::INT8ARRAYOID,
    pg_sys::INT4ARRAYOID,
    pg_sys::INT2ARRAYOID,
];

/// The condition that `clause` gives for relation `relid` (range table index), if it can be used.
///
/// # Safety
/// `clause` is a live RestrictInfo of the query being planned.
pub unsafe fn match_clause(
    root: *mut pg_sys::PlannerInfo,
    relid: pg_sys::Index,
    clause: *mut pg_sys::RestrictInfo,
) -> Option<Condition> {
    // SAFETY: planner nodes are tagged; each cast follows a check of the tag.
    unsafe {
        if (*clause).pseudoconstant {
            return None;
        }
        let expr = (*clause).clause.cast::<pg_sys::Node>();
        match (*expr).type_ {
            pg_sys::NodeTag::T_OpExpr => {
                let op = expr.cast::<pg_sys::OpExpr>();
                let bound = comparison((*op).opno)?;
                compared(root, relid, clause, op, bound)
            }
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                let op = expr.cast::<pg_sys::ScalarArrayOpExpr>();
                if !(*op).useOr {
                    return None;
                }
                let strategy =
                    pg_sys::get_op_opfamily_strategy((*op).opno, pg_sys::INTEGER_BTREE_FAM_OID);
                if strategy != Bound::Eq as i32 {
                    return None;
                }
                let column = own_column(relid, list_node((*op).args, 0))?;
                let value = list_node((*op).args, 1);
                usable_value(root, relid, value, &INTEGER_ARRAYS).map(|value_type| Condition {
                    column,
                    bound: Bound::Any,
                    value: value.cast(),
                    value_type,
                    clause,
                })
            }
            _ => None,
        }
    }
}

/// Column number if `node` is a plain column of relation `relid`.
///
/// # Safety
/// `node` is a live planner node.
pub unsafe fn own_column(relid: pg_sys::Index, node: *mut pg_sys::Node) -> Option<usize> {
    // SAFETY: as for `match_clause`.
    unsafe {
        let mut node = node;
        while (*node).type_ == pg_sys::NodeTag::T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        if (*node).type_ != pg_sys::NodeTag::T_Var {
            return None;
        }
        let var = node.cast::<pg_sys::Var>();
        ((*var).varno as pg_sys::Index == relid
            && (*var).varlevelsup == 0
            && (1..=4).contains(&(*var).varattno))
        .then(|| (*var).varattno as usize - 1)
    }
}

/// Type of `node` if it can be evaluated once per scan of `relid` and is one of `types`.
unsafe fn usable_value(
    root: *mut pg_sys::PlannerInfo,
    relid: pg_sys::Index,
    node: *mut pg_sys::Node,
    types: &[pg_sys::Oid],
) -> Option<pg_sys::Oid> {
    // SAFETY: as for `match_clause`.
    unsafe {
        let value_type = pg_sys::exprType(node);
        if !types.contains(&value_type) || pg_sys::contain_volatile_functions(node) {
            return None;
        }
        let used = pg_sys::pull_varnos(root, node);
        (!pg_sys::bms_is_member(relid as i32, used)).then_some(value_type)
    }
}
