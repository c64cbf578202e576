//! Equality of texts of resources becomes equality of ids, which a quad table can look up.
//!
//! A column of type `text` of `quad.query` is `quad.resource_to_text(quad.decode(q.s))` where the query binds it to
//! IRIs and blank nodes only. Unlike a literal, such a term is the only one with its text: `column = t.iri` is
//! `q.s = quad.id_of_resource(t.iri)`. `=` of text is PostgreSQL's, which asks nobody for something better, so
//! `quad.query` puts conditions with it into calls of `quad.by_id`. These are gone once the planner has simplified the
//! conditions.

use pgquad_term::{parse, Term};
use pgrx::datum::Internal;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::{T_FuncExpr, T_OpExpr, T_RelabelType, T_SupportRequestSimplify};
use pgrx::prelude::*;

use super::simplify::{arguments, call_of, decoded, equal, is_named};
use crate::dictionary;

/// `=` of text.
pub const TEXT_EQUAL: u32 = 98;

/// The id of the IRI with this text, or of the blank node that is written so; -1, which is no id, where there is none.
#[pg_extern(stable, strict, parallel_safe)]
fn id_of_resource(text: &str) -> i64 {
    let found = if text.starts_with("_:") {
        parse(text)
            .ok()
            .filter(|term| term.as_term().to_string() == text)
            .and_then(|term| dictionary::find(&term.as_term()))
    } else {
        dictionary::find(&Term::Iri(text))
    };
    found.map_or(-1, pgquad_term::TermId::to_i64)
}

/// The condition itself, which the planner may turn into one on ids.
#[pg_extern(immutable, parallel_safe)]
fn by_id(condition: Option<bool>) -> Option<bool> {
    condition
}

/// Planner support function of `quad.by_id`.
#[pg_extern(immutable, strict, parallel_safe)]
fn by_id_support(request: Internal) -> Internal {
    let simplified = request.unwrap().and_then(|request| {
        let request = request.cast_mut_ptr::<pg_sys::SupportRequestSimplify>();
        // SAFETY: the planner calls support functions with a node, whose tag tells what it is; one of this kind holds a
        // call of `quad.by_id` with its argument.
        unsafe {
            if (*request).type_ != T_SupportRequestSimplify {
                return None;
            }
            let call = (*request).fcall;
            let [condition] = arguments((*call).args)?;
            let schema = pg_sys::get_func_namespace((*call).funcid);
            Some(on_ids(condition, schema).unwrap_or(condition))
        }
    });
    let node = simplified.unwrap_or(std::ptr::null_mut());
    Internal::from(Some(pg_sys::Datum::from(node)))
}

/// The condition on ids, if it is `=` of text and one side the text of a resource.
///
/// # Safety
/// `condition` is an expression.
unsafe fn on_ids(condition: *mut pg_sys::Node, schema: pg_sys::Oid) -> Option<*mut pg_sys::Node> {
    // SAFETY: a node is cast after a look at its tag. Each side is used once.
    unsafe {
        if (*condition).type_ != T_OpExpr {
            return None;
        }
        let equality = condition.cast::<pg_sys::OpExpr>();
        let exact = (*equality).opno.to_u32() == TEXT_EQUAL
            && pg_sys::get_collation_isdeterministic((*equality).inputcollid);
        if !exact {
            return None;
        }
        let [a, b] = arguments((*equality).args)?;
        let found = |text| call_of(c"id_of_resource", text, schema);
        let (x, y) = match (resource(a, schema), resource(b, schema)) {
            (Some(x), Some(y)) => (x, y),
            (Some(x), None) => (x, found(b)?),
            (None, Some(y)) => (found(a)?, y),
            (None, None) => return None,
        };
        Some(equal(x, y))
    }
}

/// The id whose text an expression is.
///
/// # Safety
/// `text` is an expression.
unsafe fn resource(text: *mut pg_sys::Node, schema: pg_sys::Oid) -> Option<*mut pg_sys::Node> {
    // SAFETY: a node is cast after a look at its tag.
    unsafe {
        let mut text = text;
        while (*text).type_ == T_RelabelType {
            text = (*text.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        if (*text).type_ != T_FuncExpr {
            return None;
        }
        let call = text.cast::<pg_sys::FuncExpr>();
        let [term] = arguments((*call).args)?;
        if !is_named((*call).funcid, schema, c"resource_to_text") {
            return None;
        }
        decoded(term, schema)
    }
}

extension_sql!(
    r#"
ALTER FUNCTION quad.by_id(boolean) SUPPORT quad.by_id_support;
"#,
    name = "by_id_simplified",
    requires = [by_id, by_id_support, id_of_resource]
);
