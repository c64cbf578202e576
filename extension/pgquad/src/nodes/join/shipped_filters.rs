//! Filters on their way to other nodes: SQL over `$1`, `$2`, ... with all names qualified, since the nodes' oids
//! differ.
//!
//! Values that are the same for all rows of a run (parameters, results of subqueries, functions of such) are evaluated
//! where the query was asked. A filter is shipped only if it then calls nothing but functions of this extension and
//! immutable ones of PostgreSQL. Others may depend on the session, or not be there.

use crate::pg::compat::CatalogPath;
use crate::pg::ffi;
use crate::pg::guc::with_settings;
use crate::pg::list::list_iter;
use crate::rights::{self, SEEN};
use crate::term::TermOut;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;
use std::ffi::{c_void, CStr, CString};

/// What is found out while a filter is made ready.
struct Shipping<'a> {
    /// Places of the variables in the scan tuple.
    places: &'a [usize],
    parent: *mut pg_sys::PlanState,
    context: *mut pg_sys::ExprContext,
    schema: pg_sys::Oid,
    /// It stays here.
    refused: bool,
}

/// A filter as SQL; `None` where it has to be tested by the node that was asked.
///
/// # Safety
/// `expr` is a filter of the begun node `parent`, whose variables are at `places` of its scan tuple; `context` is the
/// node's.
pub unsafe fn to_sql(
    expr: *mut pg_sys::Expr,
    places: &[usize],
    parent: *mut pg_sys::PlanState,
    context: *mut pg_sys::ExprContext,
) -> Option<String> {
    // SAFETY: the caller's promise; nodes are made in the current memory context.
    unsafe {
        let mut shipping = Shipping {
            places,
            parent,
            context,
            schema: pg_sys::get_namespace_oid(c"quad".as_ptr(), true),
            refused: false,
        };
        let argument = (&raw mut shipping).cast::<c_void>();
        let fixed = fix(expr.cast(), argument);
        if shipping.refused {
            return None;
        }
        let folded = pg_sys::estimate_expression_value(no_planner(), fixed);
        if pg_sys::contain_volatile_functions(folded) || look(folded, argument) {
            return None;
        }
        // Names outside of pg_catalog are then qualified.
        let path = CatalogPath::push();
        let text = with_settings(&PORTABLE_SETTINGS, || {
            pg_sys::deparse_expression(folded, std::ptr::null_mut(), false, false)
        });
        path.pop();
        CStr::from_ptr(text).to_str().ok().map(str::to_owned)
    }
}

/// Settings under which filters are written and read, so that constants mean the same in every session. postgres_fdw
/// has the same (`set_transmission_modes`).
const PORTABLE_SETTINGS: [(&CStr, &str); 4] = [
    (c"standard_conforming_strings", "on"),
    (c"datestyle", "ISO"),
    (c"intervalstyle", "postgres"),
    (c"extra_float_digits", "3"),
];

/// A planner without parameters; folding constants asks for nothing else.
unsafe fn no_planner() -> *mut pg_sys::PlannerInfo {
    // SAFETY: makes nodes; zeroed memory is valid ones apart from what is set.
    unsafe {
        let global =
            pg_sys::palloc0(size_of::<pg_sys::PlannerGlobal>()).cast::<pg_sys::PlannerGlobal>();
        let root = pg_sys::palloc0(size_of::<pg_sys::PlannerInfo>()).cast::<pg_sys::PlannerInfo>();
        (*global).type_ = T_PlannerGlobal;
        (*root).type_ = T_PlannerInfo;
        (*root).glob = global;
        root
    }
}

/// Makes parameters of the variables, and constants of what is the same for all rows.
#[pg_guard]
unsafe extern "C-unwind" fn fix(
    node: *mut pg_sys::Node,
    argument: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: nodes are cast after a look at their tag; the argument is that of `to_sql`.
    unsafe {
        if node.is_null() {
            return node;
        }
        let shipping = &mut *argument.cast::<Shipping<'_>>();
        match (*node).type_ {
            T_Var => {
                let var = node.cast::<pg_sys::Var>();
                let place = (*var).varattno as usize - 1;
                let number = shipping.places.iter().position(|&p| p == place);
                match number {
                    Some(number) if (*var).varno == pg_sys::INDEX_VAR => parameter(number),
                    _ => {
                        shipping.refused = true;
                        node
                    }
                }
            }
            T_Param => {
                let param = node.cast::<pg_sys::Param>();
                let state = pg_sys::ExecInitExpr(node.cast(), shipping.parent);
                let mut is_null = false;
                let value =
                    pg_sys::ExecEvalExprSwitchContext(state, shipping.context, &mut is_null);
                let (mut length, mut by_value) = (0i16, false);
                pg_sys::get_typlenbyval((*param).paramtype, &mut length, &mut by_value);
                let value = if is_null || by_value {
                    value
                } else {
                    ffi::datum_copy(value, by_value, i32::from(length))
                };
                pg_sys::makeConst(
                    (*param).paramtype,
                    (*param).paramtypmod,
                    (*param).paramcollid,
                    i32::from(length),
                    value,
                    is_null,
                    by_value,
                )
                .cast()
            }
            T_SubPlan | T_AlternativeSubPlan | T_SubLink => {
                shipping.refused = true;
                node
            }
            T_CaseExpr => searched(ffi::expression_tree_mutator(node, fix, argument).cast()),
            _ => ffi::expression_tree_mutator(node, fix, argument),
        }
    }
}

/// `CASE WHEN test = 1 THEN ..` of `CASE test WHEN 1 THEN ..`. The planner makes `test` of `test = true`, and that has
/// no form in SQL where `test` is a placeholder.
unsafe fn searched(case: *mut pg_sys::CaseExpr) -> *mut pg_sys::Node {
    // SAFETY: a copy of a live expression; nodes are cast after a look at their tag.
    unsafe {
        if !(*case).arg.is_null() {
            for when in list_iter::<pg_sys::CaseWhen>((*case).args) {
                let test = (*case).arg.cast::<c_void>();
                (*when).expr = tested((*when).expr.cast(), test).cast();
            }
            (*case).arg = std::ptr::null_mut();
        }
        case.cast()
    }
}

/// Puts the tested expression in the place of its placeholder.
#[pg_guard]
unsafe extern "C-unwind" fn tested(
    node: *mut pg_sys::Node,
    test: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: nodes are cast after a look at their tag; `test` is an expression.
    unsafe {
        if node.is_null() {
            return node;
        }
        match (*node).type_ {
            T_CaseTestExpr => pg_sys::copyObjectImpl(test).cast(),
            // Its placeholders stand for elements of its array.
            T_ArrayCoerceExpr => node,
            _ => ffi::expression_tree_mutator(node, tested, test),
        }
    }
}

/// `$1` for number 0, and so on.
unsafe fn parameter(number: usize) -> *mut pg_sys::Node {
    // SAFETY: makes a node; zeroed memory is a valid parameter apart from what is set.
    unsafe {
        let param = pg_sys::palloc0(size_of::<pg_sys::Param>()).cast::<pg_sys::Param>();
        (*param).xpr.type_ = T_Param;
        (*param).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
        (*param).paramid = number as i32 + 1;
        (*param).paramtype = pg_sys::INT8OID;
        (*param).paramtypmod = -1;
        (*param).location = -1;
        param.cast()
    }
}

/// Whether something in an expression keeps it from being shipped.
#[pg_guard]
unsafe extern "C-unwind" fn look(node: *mut pg_sys::Node, argument: *mut c_void) -> bool {
    // SAFETY: nodes are cast after a look at their tag; the argument is that of `to_sql`.
    unsafe {
        if node.is_null() {
            return false;
        }
        let shipping = &*argument.cast::<Shipping<'_>>();
        if matches!(
            (*node).type_,
            T_SQLValueFunction | T_XmlExpr | T_CurrentOfExpr
        ) || pg_sys::check_functions_in_node(node, Some(is_foreign), argument)
            || has_foreign_type(node)
            || depends_on_session(node)
        {
            return true;
        }
        // A call that nobody has found to be on ids of this statement's quads may not be one there either.
        if let Some((_, collation)) = call_on_ids(node, shipping.schema) {
            if *collation != SEEN && !rights::may_decode() {
                return true;
            }
        }
        ffi::expression_tree_walker(node, look, argument)
    }
}

/// Whether a function may give other results on another node.
#[pg_guard]
unsafe extern "C-unwind" fn is_foreign(function: pg_sys::Oid, argument: *mut c_void) -> bool {
    // SAFETY: look-ups in the catalogue; the argument is that of `to_sql`.
    unsafe {
        let shipping = &*argument.cast::<Shipping<'_>>();
        let is_ours = pg_sys::get_func_namespace(function) == shipping.schema;
        let is_built_in = function.to_u32() < pg_sys::FirstNormalObjectId
            && pg_sys::func_volatile(function) as u8 == pg_sys::PROVOLATILE_IMMUTABLE;
        !is_ours && !is_built_in
    }
}

/// Whether an expression has a type or a collation that other nodes may not have.
unsafe fn has_foreign_type(node: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression, cast after a look at its tag.
    unsafe {
        let is_typed = matches!(
            (*node).type_,
            T_Const
                | T_FuncExpr
                | T_RelabelType
                | T_CoerceViaIO
                | T_ArrayCoerceExpr
                | T_ConvertRowtypeExpr
                | T_CoerceToDomain
                | T_ArrayExpr
                | T_RowExpr
                | T_CaseExpr
        );
        let is_new = |oid: pg_sys::Oid| oid.to_u32() >= pg_sys::FirstNormalObjectId;
        let collation = match (*node).type_ {
            T_CollateExpr => (*node.cast::<pg_sys::CollateExpr>()).collOid,
            _ => pg_sys::InvalidOid,
        };
        is_typed && is_new(pg_sys::exprType(node)) && !is_own_type(pg_sys::exprType(node))
            || is_new(collation)
    }
}

/// Whether a type belongs to this extension, or is an array of such a type.
unsafe fn is_own_type(oid: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalogue.
    unsafe {
        let element = pg_sys::get_element_type(oid);
        [oid, element].contains(&TermOut::type_oid())
    }
}

/// Whether a call makes a value of a term as the session's settings say: a time without a zone is one of the session's.
/// That is the case for types whose texts are read so.
unsafe fn depends_on_session(node: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression, cast after a look at its tag; look-ups in the catalogue.
    unsafe {
        if (*node).type_ != T_FuncExpr {
            return false;
        }
        let call = node.cast::<pg_sys::FuncExpr>();
        let is_fixed =
            |function| pg_sys::func_volatile(function) as u8 == pg_sys::PROVOLATILE_IMMUTABLE;
        if is_fixed((*call).funcid) || is_own_type((*call).funcresulttype) {
            return false;
        }
        let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::getTypeInputInfo((*call).funcresulttype, &mut input, &mut parameter);
        !is_fixed(input)
    }
}

/// A call of a function of this extension that takes ids: the function, and where the mark of such calls goes.
unsafe fn call_on_ids(
    node: *mut pg_sys::Node,
    schema: pg_sys::Oid,
) -> Option<(pg_sys::Oid, *mut pg_sys::Oid)> {
    // SAFETY: nodes are cast after a look at their tag.
    unsafe {
        let (function, arguments, collation) = match (*node).type_ {
            T_FuncExpr => {
                let call = node.cast::<pg_sys::FuncExpr>();
                ((*call).funcid, (*call).args, &raw mut (*call).inputcollid)
            }
            T_OpExpr | T_DistinctExpr | T_NullIfExpr => {
                let call = node.cast::<pg_sys::OpExpr>();
                pg_sys::set_opfuncid(call);
                ((*call).opfuncid, (*call).args, &raw mut (*call).inputcollid)
            }
            T_ScalarArrayOpExpr => {
                let call = node.cast::<pg_sys::ScalarArrayOpExpr>();
                pg_sys::set_sa_opfuncid(call);
                ((*call).opfuncid, (*call).args, &raw mut (*call).inputcollid)
            }
            _ => return None,
        };
        let takes_ids = list_iter::<pg_sys::Node>(arguments).any(|argument| {
            matches!(
                pg_sys::exprType(argument),
                pg_sys::INT8OID | pg_sys::INT8ARRAYOID
            )
        });
        let is_ours = takes_ids && pg_sys::get_func_namespace(function) == schema;
        is_ours.then_some((function, collation))
    }
}

/// The expression of a filter that [`to_sql`] has written: its variables are the columns of a scan tuple, from the
/// first on.
///
/// # Safety
/// Nodes are made in the current memory context. The text comes from a node of the cluster.
pub unsafe fn from_sql(text: &str, variables: usize) -> *mut pg_sys::Expr {
    let sql = CString::new(format!("SELECT ({text})")).unwrap_or_default();
    let types = vec![pg_sys::INT8OID; variables];
    // SAFETY: text and types outlive the calls; the statement is one SELECT of one expression.
    unsafe {
        let query = with_settings(&PORTABLE_SETTINGS, || {
            let mode = pg_sys::RawParseMode::RAW_PARSE_DEFAULT;
            let statements = pg_sys::raw_parser(sql.as_ptr(), mode);
            pg_sys::parse_analyze_fixedparams(
                pg_sys::list_nth(statements, 0).cast(),
                sql.as_ptr(),
                types.as_ptr(),
                variables as i32,
                std::ptr::null_mut(),
            )
        });
        let entry = pg_sys::list_nth((*query).targetList, 0).cast::<pg_sys::TargetEntry>();
        let mut schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
        let expr = columns((*entry).expr.cast(), (&raw mut schema).cast());
        pg_sys::expression_planner(expr.cast())
    }
}

/// Makes columns of the parameters, and marks the calls on ids: they come from quads that the statement may read.
#[pg_guard]
unsafe extern "C-unwind" fn columns(
    node: *mut pg_sys::Node,
    schema: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: nodes are cast after a look at their tag; the argument is that of `from_sql`.
    unsafe {
        if node.is_null() {
            return node;
        }
        if (*node).type_ == T_Param {
            let number = (*node.cast::<pg_sys::Param>()).paramid as i16;
            let none = pg_sys::InvalidOid;
            return pg_sys::makeVar(pg_sys::INDEX_VAR, number, pg_sys::INT8OID, -1, none, 0).cast();
        }
        if let Some((_, collation)) = call_on_ids(node, *schema.cast::<pg_sys::Oid>()) {
            *collation = SEEN;
        }
        ffi::expression_tree_mutator(node, columns, schema)
    }
}
