//! `quad.sparql`, `quad.ask`, `quad.construct`, `quad.describe`.

use pgquad_sparql::Form;
use pgrx::prelude::*;
use pgrx::JsonB;
use serde_json::{Map, Value as Json};

use super::answer::Row;
use super::execute::Cursor;
use super::parameters::values;
use super::prepared::{query_of_form, Prepared};
use super::receiver::run;
use super::translate::query;
use crate::pg::error::required;
use crate::term::TermOut;

/// Answers a SELECT query: one object for each solution, `{"variable": "term in N-Triples form"}`; unbound variables
/// are left out.
#[pg_extern(stable)]
fn sparql(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> SetOfIterator<'static, JsonB> {
    let query = required("query", query);
    let prepared = query_of_form(query, store, base, &[Form::Select]);
    let columns = prepared.columns().to_vec();
    SetOfIterator::new(rows(prepared, move |row| solution(row, &columns)))
}

fn solution(row: &Row<'_>, columns: &[String]) -> JsonB {
    let mut object = Map::new();
    for (place, name) in columns.iter().enumerate() {
        if let Some(text) = row.term(place, |term| term.to_string()) {
            object.insert(name.clone(), Json::String(text));
        }
    }
    JsonB(Json::Object(object))
}

/// Answers an ASK query.
#[pg_extern(stable)]
fn ask(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> bool {
    let query = required("query", query);
    run_ask(&query_of_form(query, store, base, &[Form::Ask]))
}

/// The answer to a query of the form ASK.
pub fn run_ask(prepared: &Prepared) -> bool {
    run(&prepared.plan(), &values(&prepared.params), true, |row| {
        row.datum(0).is_some_and(|d| d.value() != 0)
    })
    .first()
    .copied()
    .unwrap_or(false)
}

/// Answers a CONSTRUCT query: the triples of its graph.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn construct(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(subject, TermOut),
        name!(predicate, TermOut),
        name!(object, TermOut),
    ),
> {
    let query = required("query", query);
    let prepared = query_of_form(query, store, base, &[Form::Construct, Form::Describe]);
    triples(prepared)
}

/// Answers a DESCRIBE query with the concise bounded description of each resource: its triples, and those of the blank
/// nodes they lead to.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn describe(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(subject, TermOut),
        name!(predicate, TermOut),
        name!(object, TermOut),
    ),
> {
    let query = required("query", query);
    let prepared = query_of_form(query, store, base, &[Form::Describe, Form::Construct]);
    triples(prepared)
}

fn triples(
    prepared: Prepared,
) -> TableIterator<
    'static,
    (
        name!(subject, TermOut),
        name!(predicate, TermOut),
        name!(object, TermOut),
    ),
> {
    let term = |row: &Row<'_>, place| {
        row.term(place, |t| TermOut(t.to_buf()))
            .expect("a triple is whole")
    };
    TableIterator::new(rows(prepared, move |row| {
        (term(row, 0), term(row, 1), term(row, 2))
    }))
}

/// The SQL that a query runs as, with its constants in it.
#[pg_extern(stable)]
fn sparql_to_sql(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> String {
    let query = required("query", query);
    self::query(query, store, base).to_standalone_sql()
}

/// The answer, read as it is asked for.
fn rows<T: 'static>(
    prepared: Prepared,
    mut read: impl FnMut(&Row<'_>) -> T + 'static,
) -> impl Iterator<Item = T> {
    let mut cursor = Cursor::open(prepared);
    let mut batch = Vec::new().into_iter();
    std::iter::from_fn(move || {
        if let Some(next) = batch.next() {
            return Some(next);
        }
        batch = cursor.fetch(&mut read).into_iter();
        batch.next()
    })
}
