//! Functions that make terms, section 17.4.2. NULL is the error.

use pgquad_term::func::terms;
use pgquad_term::Term;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::{value, TermArg, TermOut};
use crate::pg::error::raise;

/// Random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the buffer has the length that is passed.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "could not get random bytes",
        );
    }
    bytes
}

/// IRI: resolved against the base IRI (empty: none).
#[pg_extern(immutable, parallel_safe)]
fn fn_iri(term: TermArg<'_>, base: &str) -> Option<TermOut> {
    value(terms::iri(&term.term(), base)).map(TermOut)
}

/// The IRI with this text, which must be absolute.
#[pg_extern(immutable, parallel_safe)]
fn iri(text: &str) -> TermOut {
    match terms::iri(&Term::string(text), "") {
        Ok(term) => TermOut(term),
        Err(error) => raise(
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
            format!("\"{text}\" is not an absolute IRI: {error}"),
        ),
    }
}

/// STRDT.
#[pg_extern(immutable, parallel_safe)]
fn fn_strdt(lexical: TermArg<'_>, datatype: TermArg<'_>) -> Option<TermOut> {
    value(terms::strdt(&lexical.term(), &datatype.term())).map(TermOut)
}

/// STRLANG.
#[pg_extern(immutable, parallel_safe)]
fn fn_strlang(lexical: TermArg<'_>, tag: TermArg<'_>) -> Option<TermOut> {
    value(terms::strlang(&lexical.term(), &tag.term())).map(TermOut)
}

/// UUID.
#[pg_extern(volatile, parallel_safe)]
fn fn_uuid() -> TermOut {
    TermOut(terms::uuid(random_bytes()))
}

/// STRUUID.
#[pg_extern(volatile, parallel_safe)]
fn fn_struuid() -> TermOut {
    TermOut(terms::struuid(random_bytes()))
}

/// BNODE without label: a blank node that is nowhere else.
#[pg_extern(volatile, parallel_safe, name = "fn_bnode")]
fn fn_bnode_fresh() -> TermOut {
    TermOut(terms::bnode(random_bytes()))
}

/// BNODE with a label: within one statement, one blank node for each label and row number.
#[pg_extern(volatile, parallel_restricted)]
fn fn_bnode(label: TermArg<'_>, row: i64) -> Option<TermOut> {
    let mut solution = [0; 24];
    solution[..16].copy_from_slice(&statement_nonce());
    solution[16..].copy_from_slice(&row.to_be_bytes());
    value(terms::bnode_for(&label.term(), &solution)).map(TermOut)
}

/// Random bytes that stay the same during one statement of the client (and until the next write within it), and differ
/// from those of all others.
fn statement_nonce() -> [u8; 16] {
    use std::cell::Cell;
    type Statement = (
        pg_sys::TimestampTz,
        pg_sys::LocalTransactionId,
        pg_sys::CommandId,
    );
    thread_local! {
        static LAST: Cell<Option<(Statement, [u8; 16])>> = const { Cell::new(None) };
    }
    // SAFETY: plain reads of this backend's own state; within a statement there is a transaction and a process entry.
    let statement = unsafe {
        (
            pg_sys::GetCurrentStatementStartTimestamp(),
            crate::pg::compat::local_transaction(),
            pg_sys::GetCurrentCommandId(false),
        )
    };
    match LAST.get() {
        Some((last, nonce)) if last == statement => nonce,
        _ => {
            let nonce = random_bytes();
            LAST.set(Some((statement, nonce)));
            nonce
        }
    }
}
