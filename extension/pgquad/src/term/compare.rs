//! SPARQL's comparison operators and effective boolean value, section 17.3. NULL is the error.

use pgquad_term::compare;
use pgrx::prelude::*;

use super::{value, TermArg, TermOut};

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident $sql:literal = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe, name = $sql)]
        fn $name(a: TermArg<'_>, b: TermArg<'_>) -> Option<bool> {
            value($function(&a.term(), &b.term()))
        }
    )*};
}

operators! {
    /// `A = B`.
    sparql_eq "eq" = compare::equal;
    /// `A != B`.
    sparql_ne "ne" = compare::not_equal;
    /// `A < B`.
    sparql_lt "lt" = compare::less;
    /// `A <= B`.
    sparql_le "le" = compare::less_or_equal;
    /// `A > B`.
    sparql_gt "gt" = compare::greater;
    /// `A >= B`.
    sparql_ge "ge" = compare::greater_or_equal;
}

/// The effective boolean value.
#[pg_extern(immutable, parallel_safe)]
fn ebv(term: TermArg<'_>) -> Option<bool> {
    value(compare::effective_boolean_value(&term.term()))
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
