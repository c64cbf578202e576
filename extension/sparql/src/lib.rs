//! SPARQL 1.1 to SQL for PostgreSQL. Knows nothing of PostgreSQL beyond the text it writes.
//!
//! A text is parsed by `spargebra`; its algebra becomes a plan of blocks (SELECT ... FROM ... WHERE) whose columns are
//! typed: a variable that quads bind is an id (`bigint`), a computed one is a `quad.term`, and conversions stand only
//! where both meet. The constants of the query are lifted out: they are parameters of the SQL, which depends on nothing
//! else of the text. A translation that serves all queries which differ in their constants only is a [`Template`].

mod aggregate;
mod bgp;
mod block;
mod booleans;
mod column;
mod dataset;
mod distribute;
mod error;
mod expected;
mod expression;
mod expression_properties;
mod function;
mod known_prefixes;
mod limits;
mod node;
mod output_columns;
mod params;
mod path;
mod pattern_properties;
mod pre_aggregation;
mod prefixes;
mod pushdown;
mod query;
mod select_all;
mod service;
mod template;
mod text;
mod translate;
mod translator;
mod types;
mod update;

use expected::{explain, Failure};
use spargebra::{SparqlParser, Update};

pub use spargebra::Query;

pub use dataset::{DefaultGraph, Graphs, Target};
pub use error::Error;
pub use output_columns::{listed, match_columns, ColumnMismatch};
pub use params::{Param, ParamKind};
pub use query::{translate_query, Form, Output, Translated, Undecoded};
pub use template::{Shape, Template};
pub use types::{column_types, ColumnType};
pub use update::{
    delete_data_sql, insert_data_sql, translate_update, DataQuad, Operation, Statement,
};

/// Parses a query. `base` is the base IRI that its own BASE takes the place of.
///
/// # Errors
/// [`Error::Syntax`], [`Error::UndeclaredPrefix`], [`Error::RelativeIri`], [`Error::Base`], [`Error::TooComplex`].
pub fn parse_query(text: &str, base: Option<&str>) -> Result<Query, Error> {
    limits::check(text)?;
    let mut query = parse(text, base, |text| Ok(parser(base)?.parse_query(text)?))?;
    if select_all::selects_all(text) {
        select_all::in_order_of_appearance(&mut query);
    }
    Ok(query)
}

/// Parses an update request. `base` is the base IRI that its own BASE takes the place of.
///
/// # Errors
/// [`Error::Syntax`], [`Error::UndeclaredPrefix`], [`Error::RelativeIri`], [`Error::Base`], [`Error::TooComplex`].
pub fn parse_update(text: &str, base: Option<&str>) -> Result<Update, Error> {
    limits::check(text)?;
    parse(text, base, |text| Ok(parser(base)?.parse_update(text)?))
}

/// What `parse` makes of a text. Where it fails, what it makes of the text with all boolean literals in lower case.
fn parse<T>(
    text: &str,
    base: Option<&str>,
    parse: impl Fn(&str) -> Result<T, Error>,
) -> Result<T, Error> {
    let failure = |text: &str| match parse(text) {
        Err(Error::Syntax {
            message,
            position: Some(position),
            ..
        }) => Some(Failure::of(&message, position)),
        _ => None,
    };
    let parsed = parse(text).or_else(|error| match booleans::in_lower_case(text) {
        Some(text) => parse(&text),
        None => Err(error),
    });
    parsed.map_err(|error| match error {
        Error::Syntax {
            message,
            position: Some(position),
            ..
        } => {
            let syntax = explain(text, &Failure::of(&message, position), failure);
            first(prefixes::unresolved(text, base.is_some()), syntax)
        }
        other => other,
    })
}

/// The error of a name that stands for no IRI, unless the text is wrong before that.
fn first(unresolved: Option<Error>, syntax: Error) -> Error {
    match (unresolved, &syntax) {
        (
            Some(Error::UndeclaredPrefix { position, .. } | Error::RelativeIri { position, .. }),
            Error::Syntax {
                position: Some(place),
                is_certain: true,
                ..
            },
        ) if *place < position => syntax,
        (Some(unresolved), _) => unresolved,
        (None, _) => syntax,
    }
}

fn parser(base: Option<&str>) -> Result<SparqlParser, Error> {
    let parser = SparqlParser::new();
    match base {
        Some(base) => parser
            .with_base_iri(base)
            .map_err(|_| Error::Base(base.to_owned())),
        None => Ok(parser),
    }
}
