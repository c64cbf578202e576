//! Finding the conditions on s, p, o, g that a tree can use: `column op value` with an operator of the integer btree family,
//! and `column = ANY (array)`.

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
                let args = (*op).args;
                if args.is_null() || (*args).length != 2 {
                    return None;
                }
                let left = list_node(args, 0);
                let right = list_node(args, 1);
                let strategy =
                    pg_sys::get_op_opfamily_strategy((*op).opno, pg_sys::INTEGER_BTREE_FAM_OID);
                let bound = Bound::from_number(strategy).filter(|b| *b != Bound::Any)?;
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

/// Element `n` of a pointer list.
///
/// # Safety
/// `list` is a pointer list of more than `n` elements.
pub unsafe fn list_node(list: *mut pg_sys::List, n: usize) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe { (*(*list).elements.add(n)).ptr_value.cast() }
}

/// The elements of a pointer list (NIL is empty).
///
/// # Safety
/// `list` is NIL or a pointer list of `T` that lives while the iterator is used.
pub unsafe fn list_iter<T>(list: *mut pg_sys::List) -> impl Iterator<Item = *mut T> {
    let length = if list.is_null() {
        0
    } else {
        // SAFETY: the caller's promise.
        unsafe { (*list).length }
    };
    // SAFETY: the caller's promise; `n` is below the length.
    (0..length as usize).map(move |n| unsafe { list_node(list, n).cast::<T>() })
}

/// Column number if `node` is a plain column of relation `relid`.
unsafe fn own_column(relid: pg_sys::Index, node: *mut pg_sys::Node) -> Option<usize> {
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
