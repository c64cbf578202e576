//! The type itself, and its text and binary form. Both are N-Triples (SPARQL and Turtle literals of numbers and
//! booleans are read too), so that every driver can show them.

use std::ffi::{CStr, CString};

use pgquad_term::{parse, ParseError};
use pgrx::datum::Internal;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgLogLevel};

use super::{TermArg, TermOut};
use crate::pg::error::raise;

extension_sql_file!(
    "../../../../sql/term_type.sql",
    name = "term_type",
    creates = [Type(TermOut)]
);

fn invalid(text: &str, error: &ParseError) -> ! {
    const SHOWN_CHARS: usize = 100;
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type quad.term: \"{shown}\""),
        "",
    )
    .set_detail(format!("Character {}: {}.", error.position, error.message))
    .set_hint(error.hint)
    .report(PgLogLevel::ERROR);
    unreachable!("an error report of level ERROR does not return")
}

fn read(bytes: &[u8]) -> TermOut {
    match std::str::from_utf8(bytes) {
        Ok(text) => match parse(text) {
            Ok(term) => TermOut(term),
            Err(error) => invalid(text, &error),
        },
        Err(_) => raise(
            PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
            "a term is not valid UTF-8",
        ),
    }
}

#[pg_extern(sql = false)]
fn term_in(text: &CStr) -> TermOut {
    read(text.to_bytes())
}

#[pg_extern(sql = false)]
fn term_out(term: TermArg<'_>) -> CString {
    // Control characters are written as escapes, so there is no NUL.
    CString::new(term.term().to_string()).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            "a value of type quad.term is damaged",
        )
    })
}

#[pg_extern(sql = false)]
fn term_recv(message: Internal) -> TermOut {
    // SAFETY: the server calls receive functions with a StringInfo; what is left of it is the value, and it outlives
    // the call.
    let bytes = unsafe {
        let message: pg_sys::StringInfo = message
            .unwrap()
            .unwrap_or(pg_sys::Datum::null())
            .cast_mut_ptr();
        let length = (*message).len - (*message).cursor;
        let data = pg_sys::pq_getmsgbytes(message, length);
        std::slice::from_raw_parts(data.cast::<u8>(), length as usize)
    };
    read(bytes)
}

#[pg_extern(sql = false)]
fn term_send(term: TermArg<'_>) -> Vec<u8> {
    term.term().to_string().into_bytes()
}
