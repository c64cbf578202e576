//! SPARQL's comparison operators and effective boolean value, section 17.3. NULL is the error.

use pgquad_term::compare;
use pgrx::prelude::*;

use super::functions::sql_functions;
use super::{value, TermArg, TermOut};

sql_functions! {
    /// `A = B`.
    sparql_eq as "eq"(a, b) -> bool = compare::equal;
    /// `A != B`.
    sparql_ne as "ne"(a, b) -> bool = compare::not_equal;
    /// `A < B`.
    sparql_lt as "lt"(a, b) -> bool = compare::less;
    /// `A <= B`.
    sparql_le as "le"(a, b) -> bool = compare::less_or_equal;
    /// `A > B`.
    sparql_gt as "gt"(a, b) -> bool = compare::greater;
    /// `A >= B`.
    sparql_ge as "ge"(a, b) -> bool = compare::greater_or_equal;
    /// The effective boolean value.
    ebv(term) -> bool = compare::effective_boolean_value;
}

/// The `xsd:boolean` of a boolean.
#[pg_extern(immutable, parallel_safe)]
fn from_bool(value: bool) -> TermOut {
    TermOut(pgquad_term::TermBuf::boolean(value))
}

/// The `xsd:integer` of an integer.
#[pg_extern(immutable, parallel_safe)]
fn from_int(value: i64) -> TermOut {
    TermOut(pgquad_term::TermBuf::integer(value.into()))
}
