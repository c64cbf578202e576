//! Values of ids that are ids again: counts and floats are always in their id, so that what is computed of them needs no term between.

use pgquad_term::func::cast;
use pgquad_term::func::strings::text_of;
use pgquad_term::number::Number;
use pgquad_term::{float_id, inline_number, integer_id, tag, Term, TermId};
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;

use super::sql::term_id;
use crate::error::raise;
use crate::term::value;

/// The number that a term is; `None` for any other term.
pub fn number(id: i64) -> Option<Number> {
    let id = term_id(id);
    match id.tag() {
        tag::IRI | tag::BLANK | tag::STRING | tag::SHORT_STRING | tag::LANG_STRING => None,
        _ => inline_number(id).or_else(|| match super::decode(id)?.as_term() {
            Term::Literal(literal) => literal.number(),
            _ => None,
        }),
    }
}

/// The id of the `xsd:integer` of a count or the like.
#[pg_extern(immutable, strict, parallel_safe)]
fn int_id(value: i64) -> i64 {
    integer_id(value).map_or_else(
        || {
            raise(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{value} is no count"),
            )
        },
        TermId::to_i64,
    )
}

/// The id of `xsd:float(A)`, given that of A; NULL is the error.
#[pg_extern(stable, strict, parallel_safe, name = "cast_float", cost = 20)]
fn id_cast_float(id: i64) -> Option<i64> {
    let id = term_id(id);
    let float = match inline_number(id) {
        Some(Number::Float(value)) => Ok(value),
        _ => cast::to_float(&super::decode(id)?.as_term()),
    };
    value(float).map(|float| float_id(float).to_i64())
}

/// The id of `xsd:float(STR(A))`, given that of A; NULL is the error.
#[pg_extern(stable, strict, parallel_safe, cost = 50)]
fn cast_float_of_str(id: i64) -> Option<i64> {
    let term = super::decode(term_id(id))?;
    let float = text_of(&term.as_term()).and_then(cast::text_to_float);
    value(float).map(|float| float_id(float).to_i64())
}
