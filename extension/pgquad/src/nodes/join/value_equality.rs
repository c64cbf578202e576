//! `quad.eq(a, b)`: equality of the values of two columns of ids, which is equality of ids where one of them holds
//! nothing but IRIs, blank nodes and strings.

use super::columns::Cell;
use crate::dictionary;
use crate::pg::list::list_node;
use pgquad_btree::SIGN;
use pgquad_exec::ValueKey;
use pgquad_term::{key_of, key_of_id, shared_value_ids, TermId};
use pgrx::pg_sys;

/// The two columns of `relids` whose values an expression tests for equality, if that is all it does.
///
/// # Safety
/// `expr` is a live expression.
pub unsafe fn compared(expr: *mut pg_sys::Node, relids: pg_sys::Relids) -> Option<(Cell, Cell)> {
    // SAFETY: a node is cast after a look at its tag.
    unsafe {
        if (*expr).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let call = expr.cast::<pg_sys::FuncExpr>();
        if pg_sys::list_length((*call).args) != 2 {
            return None;
        }
        let column = |n: usize| {
            let node = list_node((*call).args, n);
            if (*node).type_ != pg_sys::NodeTag::T_Var {
                return None;
            }
            let var = node.cast::<pg_sys::Var>();
            let own = (*var).varlevelsup == 0
                && (*var).vartype == pg_sys::INT8OID
                && pg_sys::bms_is_member((*var).varno, relids);
            own.then(|| ((*var).varno as pg_sys::Index, (*var).varattno as usize - 1))
        };
        let columns = (column(0)?, column(1)?);
        let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
        let name = pg_sys::get_func_name((*call).funcid);
        let is_equality = pg_sys::get_func_namespace((*call).funcid) == schema
            && !name.is_null()
            && std::ffi::CStr::from_ptr(name).to_bytes() == b"eq";
        is_equality.then_some(columns)
    }
}

/// The least and the greatest id of literals whose value other ids may have too, as constants.
///
/// # Safety
/// A memory context for planner nodes is current.
pub unsafe fn shared_values() -> (*mut pg_sys::Expr, *mut pg_sys::Expr) {
    let (low, high) = shared_value_ids();
    let constant = |id: TermId| {
        // SAFETY: makes a node of the current memory context.
        unsafe {
            pg_sys::makeConst(
                pg_sys::INT8OID,
                -1,
                pg_sys::InvalidOid,
                8,
                pg_sys::Datum::from(id.to_i64()),
                false,
                true,
            )
            .cast()
        }
    };
    (constant(low), constant(high))
}

/// Keys of ids' values, in the unsigned form of keys. Terms of the dictionary are read together, each once.
pub fn value_keys(ids: &[u64]) -> Vec<ValueKey> {
    let mut wanted: Vec<(TermId, usize)> = Vec::new();
    let mut keys: Vec<ValueKey> = Vec::with_capacity(ids.len());
    for (place, &id) in ids.iter().enumerate() {
        let id = TermId(id ^ SIGN);
        keys.push(match key_of_id(id) {
            Some(key) => of_term(key),
            None => {
                wanted.push((id, place));
                ValueKey::Never
            }
        });
    }
    dictionary::for_each_term(&wanted, |place, term| {
        keys[place] = of_term(key_of(&term.as_term()));
    });
    keys
}

fn of_term(key: pgquad_term::ValueKey) -> ValueKey {
    match key {
        pgquad_term::ValueKey::Never => ValueKey::Never,
        pgquad_term::ValueKey::Itself => ValueKey::Itself,
        pgquad_term::ValueKey::Of(key) => ValueKey::Of(key),
        pgquad_term::ValueKey::Any => ValueKey::Any,
    }
}
