//! SPARQL's comparison operators on ids: the terms are fetched only when the ids do not tell.

use std::cmp::Ordering;

use pgquad_term::{compare, compare_inline, tag, Term, TermId};
use pgrx::prelude::*;

use super::sql::term_id;
use crate::term::value;

type Comparison = fn(&Term<'_>, &Term<'_>) -> pgquad_term::Result<bool>;

/// Compares the terms with these ids; NULL for an error, and when one is the default graph.
fn by_terms(a: TermId, b: TermId, comparison: Comparison) -> Option<bool> {
    let (a, b) = (super::decode(a)?, super::decode(b)?);
    value(comparison(&a.as_term(), &b.as_term()))
}

/// `A = B`, if the ids tell. Equal terms have equal ids; the values of these kinds are nothing but
/// the terms.
fn equal_by_ids(a: TermId, b: TermId) -> Option<bool> {
    const NODE_OR_LANG_STRING: [u8; 3] = [tag::IRI, tag::BLANK, tag::LANG_STRING];
    const STRING: [u8; 2] = [tag::STRING, tag::SHORT_STRING];
    let either = |tags: &[u8]| tags.contains(&a.tag()) || tags.contains(&b.tag());
    let both = |tags: &[u8]| tags.contains(&a.tag()) && tags.contains(&b.tag());
    if either(&NODE_OR_LANG_STRING) || both(&STRING) || both(&[tag::BOOLEAN]) {
        return Some(a == b);
    }
    compare_inline(a, b).map(Ordering::is_eq)
}

fn equal(a: i64, b: i64, wanted: bool) -> Option<bool> {
    let (a, b) = (term_id(a), term_id(b));
    if a == TermId::DEFAULT_GRAPH || b == TermId::DEFAULT_GRAPH {
        return None;
    }
    match equal_by_ids(a, b) {
        Some(equal) => Some(equal == wanted),
        None if wanted => by_terms(a, b, compare::equal),
        None => by_terms(a, b, compare::not_equal),
    }
}

/// `A = B` for the terms with these ids.
#[pg_extern(stable, strict, parallel_safe, name = "eq")]
fn id_eq(a: i64, b: i64) -> Option<bool> {
    equal(a, b, true)
}

/// `A != B` for the terms with these ids.
#[pg_extern(stable, strict, parallel_safe, name = "ne")]
fn id_ne(a: i64, b: i64) -> Option<bool> {
    equal(a, b, false)
}

macro_rules! order_operators {
    ($($(#[$doc:meta])* $name:ident $sql:literal = $accepts:path, $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(stable, strict, parallel_safe, name = $sql)]
        fn $name(a: i64, b: i64) -> Option<bool> {
            let (a, b) = (term_id(a), term_id(b));
            match compare_inline(a, b) {
                Some(order) => Some($accepts(order)),
                None => by_terms(a, b, $function),
            }
        }
    )*};
}

order_operators! {
    /// `A < B` for the terms with these ids.
    id_lt "lt" = Ordering::is_lt, compare::less;
    /// `A <= B` for the terms with these ids.
    id_le "le" = Ordering::is_le, compare::less_or_equal;
    /// `A > B` for the terms with these ids.
    id_gt "gt" = Ordering::is_gt, compare::greater;
    /// `A >= B` for the terms with these ids.
    id_ge "ge" = Ordering::is_ge, compare::greater_or_equal;
}
