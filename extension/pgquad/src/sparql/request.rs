//! From the arguments of an SQL function to SQL text.

use pgquad_sparql::{
    parse_query, parse_update, translate_query, translate_update, Error, Form, Operation, Query,
    Target, Translated,
};
use pgrx::PgSqlErrorCode;

use super::cache::{self, Prepared};
use crate::error::{raise, raise_all, raise_detail, raise_hint};
use crate::guc;
use crate::store;

/// What a query reads when the default store has not been made yet.
const EMPTY_STORE: &str =
    "(SELECT NULL::bigint AS s, NULL::bigint AS p, NULL::bigint AS o, NULL::bigint AS g WHERE FALSE)";

/// A query on a store (`None`: the default store), translated. Raises errors of syntax (42601) and of what is not built (0A000).
pub fn query(text: &str, store: Option<&str>, base: Option<&str>) -> Translated {
    translate(text, target(&table_to_read(store)), base)
}

/// A query for a view: parsed, and translated for a store that exists.
pub fn query_for_view(text: &str, store: Option<&str>, base: Option<&str>) -> (Query, Translated) {
    let query = parse_query(text, base).unwrap_or_else(|error| fail(error, text));
    let table = store::resolve(store, true).table();
    let translated =
        translate_query(&query, target(&table)).unwrap_or_else(|error| fail(error, text));
    (query, translated)
}

/// A query for a target, translated. Raises errors as [`query`] does.
pub fn translate(text: &str, target: Target<'_>, base: Option<&str>) -> Translated {
    try_translate(text, target, base).unwrap_or_else(|error| fail(error, text))
}

/// As [`translate`], raising no errors.
pub fn try_translate(
    text: &str,
    target: Target<'_>,
    base: Option<&str>,
) -> Result<Translated, Error> {
    translate_query(&parse_query(text, base)?, target)
}

/// As [`query`], ready to be run, refusing all forms but these.
pub fn query_of_form(
    text: &str,
    store: Option<&str>,
    base: Option<&str>,
    forms: &[Form],
) -> Prepared {
    let prepared = cache::prepare(text, target(&table_to_read(store)), base);
    let form = prepared.form();
    if !forms.contains(&form) {
        let function = match form {
            Form::Select => "quad.sparql",
            Form::Ask => "quad.ask",
            Form::Construct => "quad.construct",
            Form::Describe => "quad.describe",
        };
        raise_hint(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("a query of the form {} has no such result", name_of(form)),
            format!("Call {function}."),
        );
    }
    prepared
}

/// Keyword of a query form.
pub fn name_of(form: Form) -> &'static str {
    match form {
        Form::Select => "SELECT",
        Form::Ask => "ASK",
        Form::Construct => "CONSTRUCT",
        Form::Describe => "DESCRIBE",
    }
}

/// An update request on a store, and the quoted name of its table, which exists.
pub fn update(text: &str, store: Option<&str>, base: Option<&str>) -> (Vec<Operation>, String) {
    let update = parse_update(text, base).unwrap_or_else(|error| fail(error, text));
    let table = store::resolve(store, true).table();
    let operations =
        translate_update(&update, target(&table)).unwrap_or_else(|error| fail(error, text));
    (operations, table)
}

fn target(table: &str) -> Target<'_> {
    Target {
        table,
        default_graph: guc::DEFAULT_GRAPH.get().into(),
    }
}

fn table_to_read(store: Option<&str>) -> String {
    if store.is_none() && store::default_name() == DEFAULT_STORE {
        return store::find(None).map_or_else(|| EMPTY_STORE.to_owned(), |store| store.table());
    }
    store::resolve(store, false).table()
}

/// The store that springs into being when it is first written to; until then it reads as an empty one.
const DEFAULT_STORE: &str = "main";

/// Raises an error of `text`, with the line it is about and what can be done.
fn fail(error: Error, text: &str) -> ! {
    let code = match &error {
        Error::Syntax { .. } | Error::UndeclaredPrefix { .. } => {
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR
        }
        Error::TooComplex { .. } => PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX,
        Error::Unsupported(_) => PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        Error::Base(_) | Error::Invalid(_) => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
    };
    let message = error.to_string();
    match (error.place(text), error.hint()) {
        (Some(place), Some(hint)) => raise_all(code, message, place, hint),
        (Some(place), None) => raise_detail(code, message, place),
        (None, Some(hint)) => raise_hint(code, message, hint),
        (None, None) => raise(code, message),
    }
}
