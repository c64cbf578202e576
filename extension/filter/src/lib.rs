//! Filters on term ids, a batch of rows at a time: SPARQL's comparisons, arithmetic and tests as far as ids tell their
//! results.
//!
//! An expression is made of [`Ids`], [`Terms`] and [`Test`]s, which stand for SQL expressions of type `bigint`,
//! `quad.term` and `boolean`; [`Test::run`] gives a [`Truth`] for each row. Numbers, dates, booleans and short strings
//! are in the id itself. Where the id does not tell, the answer is [`Truth::Unknown`], and the row has to be tested by
//! other means. Everything else is exactly what the operators of `pgquad-term` give for the terms. Knows nothing of
//! PostgreSQL.

mod column;
mod constants;
mod expression;
mod intervals;
mod kinds;
mod operators;
mod range_pushdown;
mod run;
mod sql_integers;
mod truth;
mod value;

pub use constants::{datatypes, terms_of_text, UnstoredConstants};
pub use expression::{Fixed, Ids, Terms, Test};
pub use intervals::Intervals;
pub use operators::{Arithmetic, Comparison, TermKind, TextIds};
pub use sql_integers::SqlInteger;
pub use truth::Truth;
pub use value::Value;

// Columns of filters are those of keys.
pub(crate) use pgquad_btree::SIGN;
