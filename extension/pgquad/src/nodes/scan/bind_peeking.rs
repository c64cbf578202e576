//! Bind peeking: a plan for all values is estimated with the values of the parameters that it is first wanted for.

use super::condition_values::integer_datum;
use crate::pg::list::list_iter;
use pgrx::pg_sys;
use std::cell::RefCell;

thread_local! {
    /// Whole numbers among the values of the parameters that a plan for all values is first wanted for.
    static EXPECTED: RefCell<Vec<Option<i64>>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, plans for all values are made as if they were for these.
pub struct BindPeeking;

impl BindPeeking {
    /// Begins; `None` stands for a parameter that is no whole number.
    pub fn begin(values: Vec<Option<i64>>) -> Self {
        EXPECTED.set(values);
        Self
    }
}

impl Drop for BindPeeking {
    fn drop(&mut self) {
        EXPECTED.take();
    }
}

/// The whole number that an expression without columns will most likely have; `None` when nothing is known, or it is
/// NULL.
///
/// # Safety
/// A live expression of the level that is being planned.
pub unsafe fn value(root: *mut pg_sys::PlannerInfo, expr: *mut pg_sys::Expr) -> Option<i64> {
    // SAFETY: a node is cast after a look at its tag.
    unsafe {
        let node = expr.cast::<pg_sys::Node>();
        match (*node).type_ {
            pg_sys::NodeTag::T_Const => {
                let constant = &*node.cast::<pg_sys::Const>();
                (!constant.constisnull)
                    .then(|| integer_datum(constant.constvalue, constant.consttype))?
            }
            pg_sys::NodeTag::T_Param => {
                let param = &*node.cast::<pg_sys::Param>();
                match param.paramkind {
                    pg_sys::ParamKind::PARAM_EXTERN => EXPECTED.with_borrow(|values| {
                        *values.get(usize::try_from(param.paramid - 1).ok()?)?
                    }),
                    pg_sys::ParamKind::PARAM_EXEC => {
                        value(root, subquery_result(root, param.paramid)?)
                    }
                    _ => None,
                }
            }
            pg_sys::NodeTag::T_FuncExpr | pg_sys::NodeTag::T_CoalesceExpr => {
                if pg_sys::contain_var_clause(node) || pg_sys::contain_volatile_functions(node) {
                    return None;
                }
                let estimated = pg_sys::estimate_expression_value(root, node);
                ((*estimated).type_ == pg_sys::NodeTag::T_Const)
                    .then(|| value(root, estimated.cast()))?
            }
            _ => None,
        }
    }
}

/// The expression that gives a parameter of the executor, if it is a subquery that reads nothing.
///
/// # Safety
/// A live query level, whose subqueries have been planned.
pub unsafe fn subquery_result(
    root: *mut pg_sys::PlannerInfo,
    param: i32,
) -> Option<*mut pg_sys::Expr> {
    // SAFETY: live planner nodes; plans of subqueries are numbered from 1.
    unsafe {
        let subquery = list_iter::<pg_sys::SubPlan>((*root).init_plans)
            .find(|&plan| pg_sys::list_member_int((*plan).setParam, param))?;
        // Others give an array, a truth value, or several parameters.
        if (*subquery).subLinkType != pg_sys::SubLinkType::EXPR_SUBLINK {
            return None;
        }
        let plan = pg_sys::list_nth((*(*root).glob).subplans, (*subquery).plan_id - 1)
            .cast::<pg_sys::Plan>();
        if (*plan).type_ != pg_sys::NodeTag::T_Result
            || !(*plan).lefttree.is_null()
            || !(*plan.cast::<pg_sys::Result>()).resconstantqual.is_null()
        {
            return None;
        }
        let entry = list_iter::<pg_sys::TargetEntry>((*plan).targetlist).next()?;
        Some((*entry).expr)
    }
}
