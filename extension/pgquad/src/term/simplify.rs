//! Comparisons of decoded ids with terms become comparisons of ids, which a quad table can look up.
//!
//! Views of SPARQL queries show `quad.decode(q.s)`; `WHERE person = '<http://example.org/ada>'` and joins with tables
//! that hold terms compare that with `quad.=`. The planner asks the support function of `quad.term_eq` for something
//! better: `q.s = quad.id_of('<http://example.org/ada>')`.

use std::ffi::CStr;

use pgrx::datum::Internal;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::TermArg;
use crate::dictionary;
use crate::pg::list::list_iter;

/// `=` of bigint.
const INT8_EQUAL: u32 = 410;

/// The id of a term, or -1, which is no id, for a term that is not in the dictionary.
#[pg_extern(stable, strict, parallel_safe)]
fn id_of(term: TermArg<'_>) -> i64 {
    dictionary::find(&term.term()).map_or(-1, pgquad_term::TermId::to_i64)
}

/// Planner support function of `quad.term_eq`.
#[pg_extern(immutable, strict, parallel_safe)]
fn term_eq_support(request: Internal) -> Internal {
    let simplified = request.unwrap().and_then(|request| {
        let request = request.cast_mut_ptr::<pg_sys::SupportRequestSimplify>();
        // SAFETY: the planner calls support functions with a node, whose tag tells what it is; one of this kind holds a
        // call of `quad.term_eq` with its two arguments.
        unsafe {
            if (*request).type_ != pg_sys::NodeTag::T_SupportRequestSimplify {
                return None;
            }
            let call = (*request).fcall;
            let [a, b] = arguments((*call).args)?;
            let schema = pg_sys::get_func_namespace((*call).funcid);
            match (decoded(a, schema), decoded(b, schema)) {
                (Some(x), Some(y)) => Some(same_id(&[x, y], [x, y])),
                (Some(x), None) => Some(same_id(&[x], [x, call_of(c"id_of", b, schema)?])),
                (None, Some(y)) => Some(same_id(&[y], [call_of(c"id_of", a, schema)?, y])),
                (None, None) => None,
            }
        }
    });
    // A null pointer, which is not NULL, says that there is nothing better.
    let node = simplified.unwrap_or(std::ptr::null_mut());
    Internal::from(Some(pg_sys::Datum::from(node)))
}

/// The arguments of a call, if it has as many. A call without arguments has no list at all.
///
/// # Safety
/// `list` is NIL or a list of expressions.
pub(super) unsafe fn arguments<const N: usize>(
    list: *mut pg_sys::List,
) -> Option<[*mut pg_sys::Node; N]> {
    // SAFETY: the caller's promise.
    let nodes: Vec<*mut pg_sys::Node> = unsafe { list_iter(list).collect() };
    nodes.try_into().ok()
}

/// The argument of a call of `quad.decode`, if it may stand in the simplified expression twice: what is volatile or
/// gives several rows may not.
///
/// # Safety
/// `node` is an expression.
pub(super) unsafe fn decoded(
    node: *mut pg_sys::Node,
    schema: pg_sys::Oid,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: a node is cast after a look at its tag.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let call = node.cast::<pg_sys::FuncExpr>();
        let [id] = arguments((*call).args)?;
        let is_decode = (*call).funcresulttype != pg_sys::INT8OID
            && is_named((*call).funcid, schema, c"decode");
        let changes =
            || pg_sys::contain_volatile_functions(id) || pg_sys::expression_returns_set(id);
        (is_decode && !changes()).then_some(id)
    }
}

/// Whether a function has this schema and name.
///
/// # Safety
/// Within a transaction.
pub(super) unsafe fn is_named(function: pg_sys::Oid, schema: pg_sys::Oid, wanted: &CStr) -> bool {
    // SAFETY: look-ups in the catalogue, of a palloc'd C string.
    unsafe {
        if pg_sys::get_func_namespace(function) != schema {
            return false;
        }
        let name = pg_sys::get_func_name(function);
        !name.is_null() && CStr::from_ptr(name) == wanted
    }
}

/// A call of this function, which gives an id; `None` for an argument that may change from row to row without any
/// reason.
///
/// # Safety
/// `term` is an expression of the type that the function takes.
pub(super) unsafe fn call_of(
    function: &CStr,
    term: *mut pg_sys::Node,
    schema: pg_sys::Oid,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the nodes that are made are of the current memory context, as those of the planner.
    unsafe {
        if pg_sys::contain_volatile_functions(term) || pg_sys::expression_returns_set(term) {
            return None;
        }
        let schema_name = pg_sys::get_namespace_name(schema);
        let names = pg_sys::lappend(
            pg_sys::lappend(std::ptr::null_mut(), pg_sys::makeString(schema_name).cast()),
            pg_sys::makeString(function.as_ptr().cast_mut()).cast(),
        );
        let mut types = [pg_sys::exprType(term)];
        let function = pg_sys::LookupFuncName(names, 1, types.as_mut_ptr(), true);
        if function == pg_sys::InvalidOid {
            return None;
        }
        let arguments = pg_sys::lappend(std::ptr::null_mut(), term.cast());
        let call = pg_sys::makeFuncExpr(
            function,
            pg_sys::INT8OID,
            arguments,
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        );
        Some(call.cast())
    }
}

/// `a = b`, but NULL where one of `ids` is 0: the default graph, which is no term. As a condition the second part says
/// nothing, and the planner leaves it out: `a = b OR (id = 0 AND NULL)`.
///
/// # Safety
/// All are expressions of type bigint.
unsafe fn same_id(ids: &[*mut pg_sys::Node], [a, b]: [*mut pg_sys::Node; 2]) -> *mut pg_sys::Node {
    // SAFETY: the nodes that are made are of the current memory context; an expression that stands twice is copied.
    unsafe {
        let mut either = pg_sys::lappend(std::ptr::null_mut(), equal(a, b).cast());
        for id in ids {
            let zero = pg_sys::makeConst(
                pg_sys::INT8OID,
                -1,
                pg_sys::InvalidOid,
                8,
                pg_sys::Datum::from(0_i64),
                false,
                true,
            );
            let copy = pg_sys::copyObjectImpl((*id).cast()).cast();
            let default_graph = equal(copy, zero.cast());
            let both = pg_sys::lappend(
                pg_sys::lappend(std::ptr::null_mut(), default_graph.cast()),
                pg_sys::makeBoolConst(false, true).cast(),
            );
            let both = pg_sys::makeBoolExpr(pg_sys::BoolExprType::AND_EXPR, both, -1);
            either = pg_sys::lappend(either, both.cast());
        }
        pg_sys::makeBoolExpr(pg_sys::BoolExprType::OR_EXPR, either, -1).cast()
    }
}

/// # Safety
/// Both are expressions of type bigint.
pub(super) unsafe fn equal(a: *mut pg_sys::Node, b: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: makes a node of the current memory context.
    unsafe {
        let clause = pg_sys::make_opclause(
            pg_sys::Oid::from(INT8_EQUAL),
            pg_sys::BOOLOID,
            false,
            a.cast(),
            b.cast(),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
        );
        (*clause.cast::<pg_sys::OpExpr>()).opfuncid = pg_sys::Oid::from(pg_sys::F_INT8EQ);
        clause.cast()
    }
}

extension_sql!(
    r#"
ALTER FUNCTION quad.term_eq(quad.term, quad.term) SUPPORT quad.term_eq_support;
"#,
    name = "term_eq_simplified",
    requires = [term_eq_support, id_of, "term_operators"]
);
