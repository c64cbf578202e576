//! From the arguments of an SQL function to SQL text.

use pgquad_sparql::{
    parse_query, parse_update, translate_query, translate_update, Error, Form, Graphs, Operation,
    Query, Target, Translated,
};
use pgrx::PgSqlErrorCode;

use crate::dictionary;
use crate::pg::error::{raise, raise_all, raise_detail, raise_hint, required};
use crate::settings;
use crate::store;

/// What a query reads when the default store has not been made yet.
const EMPTY_STORE: &str =
    "(SELECT NULL::bigint AS s, NULL::bigint AS p, NULL::bigint AS o, NULL::bigint AS g WHERE FALSE)";

/// A query on a store (`None`: the default store), translated. Raises errors of syntax (42601) and of what is not built
/// (0A000).
pub fn query(text: &str, store: Option<&str>, base: Option<&str>) -> Translated {
    translate(text, target(&table_to_read(store), None), base)
}

/// As [`query`], on the graphs that were named beside the text. `None` where the store does not exist yet, which the
/// first write makes.
pub fn query_of_existing(
    text: &str,
    store: Option<&str>,
    base: Option<&str>,
    graphs: Option<&Graphs>,
) -> Option<Translated> {
    let table = table_to_read(store);
    (table != EMPTY_STORE).then(|| translate(text, target(&table, graphs), base))
}

/// A query for a view: parsed, and translated for a store that exists.
pub fn query_for_view(text: &str, store: Option<&str>, base: Option<&str>) -> (Query, Translated) {
    let query = parse_query(text, base).unwrap_or_else(|error| fail(error, text));
    let table = store::resolve(store, true).table();
    let translated =
        translate_query(&query, target(&table, None)).unwrap_or_else(|error| fail(error, text));
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

/// A list of graphs out of SQL, `None` where neither is given.
pub fn graphs(
    default: Option<Vec<Option<String>>>,
    named: Option<Vec<Option<String>>>,
) -> Option<Graphs> {
    let iris = |graphs: Option<Vec<Option<String>>>| -> Vec<String> {
        let graphs = graphs.unwrap_or_default().into_iter();
        graphs
            .map(|iri| required("element of an array of graphs", iri))
            .collect()
    };
    if default.is_none() && named.is_none() {
        return None;
    }
    let graphs = Graphs::new(&iris(default), &iris(named));
    Some(graphs.unwrap_or_else(|error| fail(error, "")))
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

/// An update request on a store, reading the graphs that were named beside the text, and the quoted name of its table,
/// which exists.
pub fn update(
    text: &str,
    store: Option<&str>,
    base: Option<&str>,
    graphs: Option<&Graphs>,
) -> (Vec<Operation>, String) {
    let update = parse_update(text, base).unwrap_or_else(|error| fail(error, text));
    let table = store::resolve(store, true).table();
    let operations = translate_update(&update, text, target(&table, graphs))
        .unwrap_or_else(|error| fail(error, text));
    (operations, table)
}

/// What a query of the table is translated for, under the settings in force.
pub fn target<'a>(table: &'a str, graphs: Option<&'a Graphs>) -> Target<'a> {
    Target {
        table,
        default_graph: settings::DEFAULT_GRAPH.get().into(),
        graphs,
        distributed: dictionary::is_distributed(),
    }
}

/// The quoted name of the table of a store, or what stands for one that has not been made yet.
pub fn table_to_read(store: Option<&str>) -> String {
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
        Error::Syntax { .. } | Error::UndeclaredPrefix { .. } | Error::RelativeIri { .. } => {
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
