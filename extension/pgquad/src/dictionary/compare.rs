//! SPARQL's comparison operators on ids: the terms are fetched only when the ids do not tell.

use pgquad_btree::SIGN;
use pgquad_filter::{Comparison, Truth, Value};
use pgquad_term::{compare, Term};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::sql::term_id;
use crate::rights;
use crate::term::value;

type OfTerms = fn(&Term<'_>, &Term<'_>) -> pgquad_term::Result<bool>;

/// Compares the terms with these ids; NULL for an error, and when one is the default graph.
fn compare_ids(a: i64, b: i64, comparison: Comparison, of_terms: OfTerms) -> Option<bool> {
    let of_id = |id: i64| Value::of_key(Some(id as u64 ^ SIGN));
    match of_id(a).compare(comparison, of_id(b)) {
        Truth::True => Some(true),
        Truth::False => Some(false),
        Truth::Null => None,
        Truth::Unknown => {
            let b = super::decode(term_id(b))?;
            value(super::with_term(term_id(a), |a| of_terms(a, &b.as_term()))?)
        }
    }
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident $sql:literal = $comparison:path, $of_terms:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(stable, strict, parallel_safe, name = $sql, cost = 5)]
        fn $name(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> Option<bool> {
            rights::check(call, &[a, b]);
            compare_ids(a, b, $comparison, $of_terms)
        }
    )*};
}

operators! {
    /// `A = B` for the terms with these ids.
    id_eq "eq" = Comparison::Eq, compare::equal;
    /// `A != B` for the terms with these ids.
    id_ne "ne" = Comparison::Ne, compare::not_equal;
    /// `A < B` for the terms with these ids.
    id_lt "lt" = Comparison::Lt, compare::less;
    /// `A <= B` for the terms with these ids.
    id_le "le" = Comparison::Le, compare::less_or_equal;
    /// `A > B` for the terms with these ids.
    id_gt "gt" = Comparison::Gt, compare::greater;
    /// `A >= B` for the terms with these ids.
    id_ge "ge" = Comparison::Ge, compare::greater_or_equal;
}
