//! Columns of a query level's relations in planner expressions, and equalities of two of them.

use crate::pg::ffi;
use crate::pg::list::{list_iter, list_node};
use pgrx::{pg_guard, pg_sys};

/// A column of a relation: range table index and column number (0 = s .. 3 = g).
pub type Cell = (pg_sys::Index, usize);

/// `bigint = bigint` (`pg_operator.dat`).
pub const INT8_EQUAL: pg_sys::Oid = pg_sys::Oid::from_u32(410);

/// The two columns of `relids` that an equality of whole numbers compares, if that is what the clause is.
///
/// # Safety
/// A live clause.
pub unsafe fn equal_columns(
    clause: *mut pg_sys::RestrictInfo,
    relids: pg_sys::Relids,
) -> Option<(Cell, Cell)> {
    // SAFETY: live planner nodes; each cast follows a check of the tag.
    unsafe {
        let expr = (*clause).clause.cast::<pg_sys::Node>();
        if (*expr).type_ != pg_sys::NodeTag::T_OpExpr {
            return None;
        }
        let op = expr.cast::<pg_sys::OpExpr>();
        if (*op).opno != INT8_EQUAL || pg_sys::list_length((*op).args) != 2 {
            return None;
        }
        let column = |n: usize| {
            let node = list_node((*op).args, n);
            if (*node).type_ != pg_sys::NodeTag::T_Var {
                return None;
            }
            let var = node.cast::<pg_sys::Var>();
            let own = (*var).varlevelsup == 0
                && (*var).varattno > 0
                && pg_sys::bms_is_member((*var).varno, relids);
            own.then(|| cell_of(var))
        };
        Some((column(0)?, column(1)?))
    }
}

/// The column that a node is.
///
/// # Safety
/// `var` is a live node, of a column.
pub unsafe fn cell_of(var: *mut pg_sys::Var) -> Cell {
    // SAFETY: the caller's promise.
    unsafe { ((*var).varno as pg_sys::Index, (*var).varattno as usize - 1) }
}

/// The columns that an expression reads.
///
/// # Safety
/// `node` is a live planner node, or a list of them.
pub unsafe fn columns_of(node: *mut pg_sys::Node) -> Vec<Cell> {
    // SAFETY: the caller's promise. Aggregates and window functions of a target list are looked into; placeholders do
    // not occur.
    unsafe {
        let flags = pg_sys::PVC_RECURSE_AGGREGATES
            | pg_sys::PVC_RECURSE_WINDOWFUNCS
            | pg_sys::PVC_RECURSE_PLACEHOLDERS;
        let vars = pg_sys::pull_var_clause(node, flags as i32);
        let mut cells = Vec::new();
        for var in list_iter::<pg_sys::Var>(vars) {
            let cell = cell_of(var);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells
    }
}

/// The place of a column of the query among the entries of a scan tuple.
///
/// # Safety
/// `scan_tlist` is a list of target entries, `var` a live node.
pub unsafe fn place_in(scan_tlist: *mut pg_sys::List, var: *mut pg_sys::Var) -> Option<usize> {
    // SAFETY: the caller's promise; an expression is cast after a look at its tag.
    unsafe {
        list_iter::<pg_sys::TargetEntry>(scan_tlist).position(|entry| {
            let own = (*entry).expr.cast::<pg_sys::Var>();
            (*own).xpr.type_ == pg_sys::NodeTag::T_Var
                && ((*own).varno, (*own).varattno) == ((*var).varno, (*var).varattno)
        })
    }
}

/// A copy of an expression that reads a scan tuple: `place` tells the place there of each column of the query.
///
/// # Safety
/// A live expression; the memory of the copy is the current one.
pub unsafe fn to_places(
    expr: *mut pg_sys::Node,
    mut place: &dyn Fn(*mut pg_sys::Var) -> usize,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; the context is what `to_place` takes it for.
    unsafe { to_place(expr, (&raw mut place).cast()) }
}

#[pg_guard]
unsafe extern "C-unwind" fn to_place(
    node: *mut pg_sys::Node,
    place: *mut core::ffi::c_void,
) -> *mut pg_sys::Node {
    // SAFETY: nodes are cast after a look at their tag; `place` is what `to_places` passes.
    unsafe {
        if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_Var {
            return match node.is_null() {
                true => node,
                false => ffi::expression_tree_mutator(node, to_place, place),
            };
        }
        let place = &*place.cast::<&dyn Fn(*mut pg_sys::Var) -> usize>();
        let (number, none) = (place(node.cast()) as i16 + 1, pg_sys::InvalidOid);
        pg_sys::makeVar(pg_sys::INDEX_VAR, number, pg_sys::INT8OID, -1, none, 0).cast()
    }
}
