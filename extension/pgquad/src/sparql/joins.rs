//! Whether a plan holds joins of PostgreSQL's own.

use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag;

use crate::scan::conditions::list_iter;

/// Whether one of the statements joins by a node of PostgreSQL rather than by `Quad Join`.
///
/// # Safety
/// `statements` is a list of planned statements.
pub unsafe fn any(statements: *mut pg_sys::List) -> bool {
    // SAFETY: the caller's promise; the trees of planned statements are plans.
    unsafe {
        list_iter::<pg_sys::PlannedStmt>(statements).any(|statement| {
            below((*statement).planTree)
                || list_iter::<pg_sys::Plan>((*statement).subplans).any(|plan| below(plan))
        })
    }
}

/// # Safety
/// `plan` is a plan or null.
unsafe fn below(plan: *mut pg_sys::Plan) -> bool {
    if plan.is_null() {
        return false;
    }
    // SAFETY: the tag of a node tells its type.
    unsafe {
        let children = match (*plan).type_ {
            NodeTag::T_NestLoop | NodeTag::T_MergeJoin | NodeTag::T_HashJoin => return true,
            NodeTag::T_Append => (*plan.cast::<pg_sys::Append>()).appendplans,
            NodeTag::T_MergeAppend => (*plan.cast::<pg_sys::MergeAppend>()).mergeplans,
            NodeTag::T_CustomScan => (*plan.cast::<pg_sys::CustomScan>()).custom_plans,
            NodeTag::T_SubqueryScan => {
                if below((*plan.cast::<pg_sys::SubqueryScan>()).subplan) {
                    return true;
                }
                std::ptr::null_mut()
            }
            _ => std::ptr::null_mut(),
        };
        below((*plan).lefttree)
            || below((*plan).righttree)
            || list_iter::<pg_sys::Plan>(children).any(|child| below(child))
    }
}
