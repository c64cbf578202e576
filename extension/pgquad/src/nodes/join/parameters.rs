//! The parameters of a join: values that are fixed for a run.

use crate::nodes::scan::{parameter, value_of};
use pgquad_exec::Value;
use pgrx::pg_sys;

/// A parameter of a begun node.
pub struct Parameter {
    kind: pg_sys::Oid,
    from: From,
}

/// Where the value comes from. Constants and the parameters of a statement, which nearly all are, need no compiled
/// expression.
enum From {
    Plan(Value),
    /// Place in the list of the statement's parameters.
    Statement(usize),
    Expression(*mut pg_sys::ExprState),
}

impl Parameter {
    /// Prepares the evaluation of `expr`, of type `kind`.
    ///
    /// # Safety
    /// `expr` is an expression of the plan of `parent`, which is being begun in `estate`.
    pub unsafe fn new(
        expr: *mut pg_sys::Expr,
        kind: pg_sys::Oid,
        parent: *mut pg_sys::PlanState,
        estate: *mut pg_sys::EState,
    ) -> Self {
        // SAFETY: the caller's promise; the tag of a node tells its type.
        let from = unsafe {
            match (*expr).type_ {
                pg_sys::NodeTag::T_Const => {
                    let constant = expr.cast::<pg_sys::Const>();
                    From::Plan(value_of(
                        (*constant).constvalue,
                        (*constant).constisnull,
                        kind,
                    ))
                }
                pg_sys::NodeTag::T_Param if is_given(expr.cast(), (*estate).es_param_list_info) => {
                    From::Statement((*expr.cast::<pg_sys::Param>()).paramid as usize - 1)
                }
                _ => From::Expression(pg_sys::ExecInitExpr(expr, parent)),
            }
        };
        Self { kind, from }
    }

    /// The value in the form of keys.
    ///
    /// # Safety
    /// `context` belongs to the node that the parameter was made for.
    pub unsafe fn value(&self, context: *mut pg_sys::ExprContext) -> Value {
        // SAFETY: the caller's promise; a place is one that `is_given` has checked.
        unsafe {
            match &self.from {
                From::Plan(value) => value.clone(),
                From::Statement(place) => {
                    let list = (*context).ecxt_param_list_info;
                    let given = &*(*list).params.as_ptr().add(*place);
                    value_of(given.value, given.isnull, self.kind)
                }
                From::Expression(state) => parameter(*state, context, self.kind),
            }
        }
    }
}

/// Whether a parameter's value is in the list, as opposed to being computed when it is asked for.
unsafe fn is_given(param: *mut pg_sys::Param, list: pg_sys::ParamListInfo) -> bool {
    // SAFETY: a parameter of a plan, and the list of the statement or null.
    unsafe {
        let place = (*param).paramid;
        (*param).paramkind == pg_sys::ParamKind::PARAM_EXTERN
            && !list.is_null()
            && (*list).paramFetch.is_none()
            && place > 0
            && place <= (*list).numParams
            && (*(*list).params.as_ptr().add(place as usize - 1)).ptype == (*param).paramtype
    }
}
