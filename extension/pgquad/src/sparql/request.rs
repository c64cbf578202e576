//! From the arguments of an SQL function to SQL text.

use pgquad_sparql::{
    parse_query, parse_update, translate_query, translate_update, Error, Form, Operation, Target,
    Translated,
};
use pgrx::PgSqlErrorCode;

use crate::error::{raise, raise_hint};
use crate::guc;
use crate::store;

/// What a query reads when the default store has not been made yet.
const EMPTY_STORE: &str =
    "(SELECT NULL::bigint AS s, NULL::bigint AS p, NULL::bigint AS o, NULL::bigint AS g WHERE FALSE)";

/// A query on a store (`None`: the default store), translated. Raises errors of syntax (42601) and of what is not built (0A000).
pub fn query(text: &str, store: Option<&str>, base: Option<&str>) -> Translated {
    let query = parse_query(text, base).unwrap_or_else(|error| fail(error));
    translate_query(&query, target(&table_to_read(store))).unwrap_or_else(|error| fail(error))
}

/// As [`query`], refusing all forms but these.
pub fn query_of_form(
    text: &str,
    store: Option<&str>,
    base: Option<&str>,
    forms: &[Form],
) -> Translated {
    let translated = query(text, store, base);
    if !forms.contains(&translated.form) {
        let (form, function) = match translated.form {
            Form::Select => ("SELECT", "quad.sparql"),
            Form::Ask => ("ASK", "quad.ask"),
            Form::Construct => ("CONSTRUCT", "quad.construct"),
            Form::Describe => ("DESCRIBE", "quad.describe"),
        };
        raise_hint(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("a query of the form {form} has no such result"),
            format!("Call {function}."),
        );
    }
    translated
}

/// An update request on a store, and the quoted name of its table, which exists.
pub fn update(text: &str, store: Option<&str>, base: Option<&str>) -> (Vec<Operation>, String) {
    let update = parse_update(text, base).unwrap_or_else(|error| fail(error));
    let table = store::resolve(store, true).table();
    let operations = translate_update(&update, target(&table)).unwrap_or_else(|error| fail(error));
    (operations, table)
}

fn target(table: &str) -> Target<'_> {
    Target {
        table,
        default_graph: guc::DEFAULT_GRAPH.get().into(),
    }
}

fn table_to_read(store: Option<&str>) -> String {
    if store.is_none() && store::default_name() == DEFAULT_STORE && store::find(None).is_none() {
        return EMPTY_STORE.to_owned();
    }
    store::resolve(store, false).table()
}

/// The store that springs into being when it is first written to; until then it reads as an empty one.
const DEFAULT_STORE: &str = "main";

fn fail(error: Error) -> ! {
    let code = match &error {
        Error::Syntax { .. } => PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        Error::TooComplex { .. } => PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX,
        Error::Unsupported(_) => PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        Error::Base(_) | Error::Invalid(_) => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
    };
    raise(code, error.to_string())
}
