//! Operators and operator classes: `=` is sameTerm, `<` the order of ORDER BY made total. They are for sorting,
//! grouping, joining and indexing; SPARQL's own comparisons are in [`super::compare`].

use std::cmp::Ordering;

use pgquad_term::order;
use pgrx::prelude::*;

use super::TermArg;

pub(super) fn cmp(a: &TermArg<'_>, b: &TermArg<'_>) -> Ordering {
    if a.encoded() == b.encoded() {
        Ordering::Equal
    } else {
        order(&a.term(), &b.term())
    }
}

/// Order of two terms: negative, zero, or positive.
#[pg_extern(immutable, parallel_safe)]
fn term_cmp(a: TermArg<'_>, b: TermArg<'_>) -> i32 {
    cmp(&a, &b) as i32
}

/// SPARQL's sameTerm.
#[pg_extern(immutable, parallel_safe)]
fn term_eq(a: TermArg<'_>, b: TermArg<'_>) -> bool {
    a.encoded() == b.encoded()
}

/// Not the same term.
#[pg_extern(immutable, parallel_safe)]
fn term_ne(a: TermArg<'_>, b: TermArg<'_>) -> bool {
    a.encoded() != b.encoded()
}

/// Before, in the order of ORDER BY.
#[pg_extern(immutable, parallel_safe)]
fn term_lt(a: TermArg<'_>, b: TermArg<'_>) -> bool {
    cmp(&a, &b).is_lt()
}

/// Before or the same.
#[pg_extern(immutable, parallel_safe)]
fn term_le(a: TermArg<'_>, b: TermArg<'_>) -> bool {
    cmp(&a, &b).is_le()
}

/// After, in the order of ORDER BY.
#[pg_extern(immutable, parallel_safe)]
fn term_gt(a: TermArg<'_>, b: TermArg<'_>) -> bool {
    cmp(&a, &b).is_gt()
}

/// After or the same.
#[pg_extern(immutable, parallel_safe)]
fn term_ge(a: TermArg<'_>, b: TermArg<'_>) -> bool {
    cmp(&a, &b).is_ge()
}

/// Hash of a term.
#[pg_extern(immutable, parallel_safe)]
fn term_hash(term: TermArg<'_>) -> i32 {
    pgquad_term::encoded_hash_with_seed(term.encoded(), 0) as i32
}

/// Hash of a term with a seed; its low half is [`term_hash`] when the seed is 0.
#[pg_extern(immutable, parallel_safe)]
fn term_hash_extended(term: TermArg<'_>, seed: i64) -> i64 {
    pgquad_term::encoded_hash_with_seed(term.encoded(), seed as u64) as i64
}

extension_sql_file!(
    "../../../../sql/term_operators.sql",
    name = "term_operators",
    requires = [
        term_cmp,
        term_sortsupport,
        term_eq,
        term_ne,
        term_lt,
        term_le,
        term_gt,
        term_ge,
        term_hash,
        term_hash_extended
    ]
);
