//! The dictionary in SQL.

use pgquad_term::TermId;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::pg::error::raise;
use crate::rights;
use crate::term::{TermArg, TermCopy};

/// The id of a term, which is added to the dictionary if need be. Every call with a blank node that has a label only
/// gives a new id.
#[pg_extern(volatile, strict, parallel_unsafe)]
fn encode(term: TermArg<'_>) -> i64 {
    super::encode(&term.term()).to_i64()
}

/// The id of a term; NULL when it is not in the dictionary, and so in no store.
#[pg_extern(stable, strict, parallel_safe)]
fn find(term: TermArg<'_>) -> Option<i64> {
    super::find(&term.term()).map(TermId::to_i64)
}

/// The term with this id; NULL for 0, the default graph.
#[pg_extern(stable, strict, parallel_safe, cost = 40)]
fn decode(id: i64, call: pg_sys::FunctionCallInfo) -> Option<TermCopy> {
    rights::check(call, &[id]);
    super::with_encoded(term_id(id), TermCopy::of_encoded)
}

/// What the dictionary did in this session: terms decoded for expressions, blocks of terms read from its table.
#[pg_extern(volatile, parallel_restricted)]
fn dictionary_stats() -> TableIterator<'static, (name!(decoded, i64), name!(blocks, i64))> {
    let counts = (super::ahead::decoded() as i64, super::read::blocks() as i64);
    TableIterator::once(counts)
}

/// The id that a `bigint` stands for.
pub fn term_id(id: i64) -> TermId {
    TermId::from_i64(id).unwrap_or_else(|| no_term_id(id))
}

/// Says that a number is not the id of a term.
pub fn no_term_id(id: i64) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("{id} is not a term id"),
    )
}
