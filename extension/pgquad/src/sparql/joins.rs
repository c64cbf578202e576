//! Whether a plan holds joins of PostgreSQL's own whose order depends on constants.

use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag;

use crate::pg::list::list_iter;

/// Whether one of the statements joins single patterns by a node of PostgreSQL rather than by `Quad Join`.
///
/// # Safety
/// `statements` is a list of planned statements.
pub unsafe fn order_patterns(statements: *mut pg_sys::List) -> bool {
    // SAFETY: the caller's promise; the trees of planned statements are plans.
    unsafe {
        list_iter::<pg_sys::PlannedStmt>(statements).any(|statement| {
            below((*statement).planTree, false)
                || list_iter::<pg_sys::Plan>((*statement).subplans).any(|plan| below(plan, false))
        })
    }
}

/// `joined`: the plan is one side of such a join.
///
/// # Safety
/// `plan` is a plan or null.
unsafe fn below(plan: *mut pg_sys::Plan, joined: bool) -> bool {
    if plan.is_null() {
        return false;
    }
    // SAFETY: the tag of a node tells its type.
    unsafe {
        let children = match (*plan).type_ {
            NodeTag::T_NestLoop | NodeTag::T_MergeJoin | NodeTag::T_HashJoin => {
                return below((*plan).lefttree, true) || below((*plan).righttree, true);
            }
            NodeTag::T_Hash | NodeTag::T_Sort | NodeTag::T_Material | NodeTag::T_Memoize => {
                return below((*plan).lefttree, joined);
            }
            NodeTag::T_Append => (*plan.cast::<pg_sys::Append>()).appendplans,
            NodeTag::T_MergeAppend => (*plan.cast::<pg_sys::MergeAppend>()).mergeplans,
            NodeTag::T_CustomScan => {
                let scan = plan.cast::<pg_sys::CustomScan>();
                // A scan of a single relation.
                if joined && (*scan).scan.scanrelid > 0 {
                    return true;
                }
                (*scan).custom_plans
            }
            NodeTag::T_SubqueryScan => {
                if below((*plan.cast::<pg_sys::SubqueryScan>()).subplan, false) {
                    return true;
                }
                std::ptr::null_mut()
            }
            _ => std::ptr::null_mut(),
        };
        below((*plan).lefttree, false)
            || below((*plan).righttree, false)
            || list_iter::<pg_sys::Plan>(children).any(|child| below(child, false))
    }
}
