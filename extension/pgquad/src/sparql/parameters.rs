//! The constants of a SPARQL request as values of the parameters of its SQL.

use pgquad_sparql::{Param, ParamKind};
use pgquad_term::{parse, Term, TermBuf};
use pgrx::{pg_sys, IntoDatum, PgSqlErrorCode};

use crate::dictionary;
use crate::pg::error::raise_detail;
use crate::term::TermOut;

/// The values of the constants of a request. Terms are looked up, or added, in one batch.
pub fn values(params: &[Param]) -> Vec<pg_sys::Datum> {
    let of_kind = |kind: ParamKind| -> Vec<&str> {
        let wanted = params.iter().filter(|param| param.kind == kind);
        wanted.map(|param| param.text.as_str()).collect()
    };
    let mut found = dictionary::find_written(&of_kind(ParamKind::Id), parse_term).into_iter();
    let new: Vec<TermBuf> = of_kind(ParamKind::NewId)
        .into_iter()
        .map(parse_term)
        .collect();
    let new: Vec<Term<'_>> = new.iter().map(TermBuf::as_term).collect();
    let mut added = dictionary::encode_many(&new).into_iter();
    let value = |(place, param): (usize, &Param)| match param.kind {
        ParamKind::Id => {
            let id = found.next().expect("one answer for each term");
            // A term that is in no quad stands as a number that no id equals.
            datum(id.map_or(stand_in(place), pgquad_term::TermId::to_i64))
        }
        ParamKind::Label => datum(stand_in(place)),
        ParamKind::NewId => datum(added.next().expect("one answer for each term").to_i64()),
        ParamKind::Term => datum(TermOut(parse_term(&param.text))),
        ParamKind::Text => datum(param.text.as_str()),
    };
    params.iter().enumerate().map(value).collect()
}

/// What stands for the term of the parameter in this place of the list, from 0.
fn stand_in(place: usize) -> i64 {
    -(place as i64 + 1)
}

/// A value as PostgreSQL has it.
pub fn datum<T: IntoDatum>(value: T) -> pg_sys::Datum {
    value.into_datum().expect("a value is not NULL")
}

/// The term of an N-Triples text that the SPARQL parser has made.
pub fn parse_term(text: &str) -> TermBuf {
    parse(text).unwrap_or_else(|error| {
        raise_detail(
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
            format!("not a term: {text}"),
            error.message,
        )
    })
}
