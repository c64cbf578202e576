//! Conditions of a statement with a query in it, offered to the planner for ids (see `term::by_id_conditions`).

use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::{T_BoolExpr, T_FromExpr, T_JoinExpr, T_OpExpr};

use crate::pg::list::list_iter;
use crate::term::by_id_conditions::TEXT_EQUAL;

/// Puts the equalities of text in ON and WHERE that all rows have to fulfil into calls of `quad.by_id`.
///
/// # Safety
/// `item` is a part of the FROM clause of a query that is not planned yet.
pub unsafe fn offer(item: *mut pg_sys::Node) {
    // SAFETY: a node is cast after a look at its tag.
    unsafe {
        match (*item).type_ {
            T_FromExpr => {
                let from = item.cast::<pg_sys::FromExpr>();
                (*from).quals = offered((*from).quals);
                list_iter::<pg_sys::Node>((*from).fromlist).for_each(|item| offer(item));
            }
            T_JoinExpr => {
                let join = item.cast::<pg_sys::JoinExpr>();
                (*join).quals = offered((*join).quals);
                offer((*join).larg);
                offer((*join).rarg);
            }
            _ => {}
        }
    }
}

/// # Safety
/// `condition` is null or an expression.
unsafe fn offered(condition: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: a node is cast after a look at its tag; the list is made in the memory context of the statement.
    unsafe {
        if condition.is_null() {
            return condition;
        }
        match (*condition).type_ {
            T_BoolExpr => {
                let all = condition.cast::<pg_sys::BoolExpr>();
                if (*all).boolop == pg_sys::BoolExprType::AND_EXPR {
                    let mut parts = std::ptr::null_mut();
                    for part in list_iter::<pg_sys::Node>((*all).args) {
                        parts = pg_sys::lappend(parts, offered(part).cast());
                    }
                    (*all).args = parts;
                }
                condition
            }
            T_OpExpr if (*condition.cast::<pg_sys::OpExpr>()).opno.to_u32() == TEXT_EQUAL => {
                by_id(condition)
            }
            _ => condition,
        }
    }
}

/// A call of `quad.by_id`, where that is there.
///
/// # Safety
/// `condition` is an expression of type boolean.
unsafe fn by_id(condition: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: a look-up in the catalogue; what is made is of the memory context of the statement.
    unsafe {
        let mut names = std::ptr::null_mut();
        for name in [c"quad", c"by_id"] {
            names = pg_sys::lappend(names, pg_sys::makeString(name.as_ptr().cast_mut()).cast());
        }
        let types = [pg_sys::BOOLOID];
        let function = pg_sys::LookupFuncName(names, 1, types.as_ptr(), true);
        if function == pg_sys::InvalidOid {
            return condition;
        }
        let arguments = pg_sys::lappend(std::ptr::null_mut(), condition.cast());
        let call = pg_sys::makeFuncExpr(
            function,
            pg_sys::BOOLOID,
            arguments,
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        );
        call.cast()
    }
}
