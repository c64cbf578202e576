//! Casts between `quad.term` and SQL types. Where a SPARQL function gives NULL for a wrong type, a cast raises an error
//! (22018), as casts do in SQL. `quad.cast_integer` and its kin are there for the other behaviour.

use pgquad_term::func::{numeric, time};
use pgquad_term::number::{format_double, Number};
use pgquad_term::value::Value;
use pgquad_term::{Literal, Term, TermBuf, Xsd};
use pgrx::datum::{Date, Timestamp, TimestampWithTimeZone};
use pgrx::prelude::*;
use pgrx::{pg_sys, AnyNumeric, PgSqlErrorCode};

use super::{value, TermArg, TermOut};
use crate::pg::error::{raise, raise_hint};

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time begins.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// Microseconds since 1970 of a timestamp of PostgreSQL.
pub(super) fn unix_micros(timestamp: pg_sys::TimestampTz) -> i64 {
    timestamp.saturating_add(EPOCH_MICROS)
}

fn refuse(term: &Term<'_>, target: &str) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_INVALID_CHARACTER_VALUE_FOR_CAST,
        format!("cannot cast term {term} to {target}"),
        "The functions quad.cast_... convert between RDF datatypes and give NULL when there is no such value.",
    )
}

fn out_of_range(term: &Term<'_>, target: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("term {term} is out of range for type {target}"),
    )
}

/// The lexical form, the IRI, or the blank node as it is written.
#[pg_extern(immutable, parallel_safe)]
fn term_to_text(term: TermArg<'_>) -> String {
    lexical_text(&term.term())
}

/// See [`term_to_text`].
pub(super) fn lexical_text(term: &Term<'_>) -> String {
    let text = match *term {
        Term::Iri(text) | Term::Literal(Literal { lexical: text, .. }) => text.to_owned(),
        Term::Blank(_) => term.to_string(),
    };
    if text.contains('\0') {
        raise(
            PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
            "the character U+0000 of a literal cannot be converted to text",
        );
    }
    text
}

#[pg_extern(immutable, parallel_safe)]
fn term_to_numeric(term: TermArg<'_>) -> AnyNumeric {
    let term = term.term();
    let text = match numeric::number(&term) {
        Ok(Number::Integer(value)) => value.to_string(),
        Ok(Number::Decimal(value)) => value.to_string(),
        Ok(Number::Float(value)) => f64::from(value).to_string(),
        Ok(Number::Double(value)) => value.to_string(),
        Err(_) => refuse(&term, "numeric"),
    };
    match AnyNumeric::try_from(text.as_str()) {
        Ok(number) => number,
        Err(_) => out_of_range(&term, "numeric"),
    }
}

#[pg_extern(immutable, parallel_safe)]
fn term_to_double(term: TermArg<'_>) -> f64 {
    let term = term.term();
    match numeric::number(&term) {
        Ok(number) => number.to_double(),
        Err(_) => refuse(&term, "double precision"),
    }
}

/// Fractions are rounded as `numeric` is.
#[pg_extern(immutable, parallel_safe)]
fn term_to_bigint(term: TermArg<'_>) -> i64 {
    let argument = term.term();
    let whole = match numeric::number(&argument) {
        Ok(Number::Integer(value)) => i64::try_from(value).ok(),
        Ok(number) => number
            .rounded_half_away()
            .and_then(|value| i64::try_from(value).ok()),
        Err(_) => refuse(&argument, "bigint"),
    };
    match whole {
        Some(whole) => whole,
        None => out_of_range(&argument, "bigint"),
    }
}

#[pg_extern(immutable, parallel_safe)]
fn term_to_boolean(term: TermArg<'_>) -> bool {
    let term = term.term();
    match term {
        Term::Literal(literal) => match literal.value() {
            Value::Boolean(value) => value,
            _ => refuse(&term, "boolean"),
        },
        _ => refuse(&term, "boolean"),
    }
}

/// An `xsd:dateTime`; without time zone it is taken in the session's.
#[pg_extern(stable, parallel_safe)]
fn term_to_timestamptz(term: TermArg<'_>) -> TimestampWithTimeZone {
    let term = term.term();
    if time::unix_micros(&term).is_err() {
        refuse(&term, "timestamp with time zone")
    }
    timestamptz_of(&term).unwrap_or_else(|| out_of_range(&term, "timestamp with time zone"))
}

/// See [`term_to_timestamptz`]; `None` for what is no `xsd:dateTime` or out of range.
pub(super) fn timestamptz_of(term: &Term<'_>) -> Option<TimestampWithTimeZone> {
    let (micros, zoned) = time::unix_micros(term).ok()?;
    let micros = micros.checked_sub(EPOCH_MICROS)?;
    if zoned {
        TimestampWithTimeZone::try_from(micros).ok()
    } else {
        Timestamp::try_from(micros).ok().map(Into::into)
    }
}

/// An `xsd:date`, or the date of an `xsd:dateTime`; the time zone is dropped.
#[pg_extern(immutable, parallel_safe)]
fn term_to_date(term: TermArg<'_>) -> Date {
    let term = term.term();
    if time::date_parts(&term).is_err() {
        refuse(&term, "date")
    }
    date_of(&term).unwrap_or_else(|| out_of_range(&term, "date"))
}

/// See [`term_to_date`]; `None` for what is no date or out of range.
pub(super) fn date_of(term: &Term<'_>) -> Option<Date> {
    let (year, month, day) = time::date_parts(term).ok()?;
    // XSD has a year 0; SQL writes it as 1 BC.
    let year = if year <= 0 { year - 1 } else { year };
    Date::new(i32::try_from(year).ok()?, month, day).ok()
}

/// A simple literal.
#[pg_extern(immutable, parallel_safe)]
fn term_from_text(text: &str) -> TermOut {
    TermOut(TermBuf::string(text))
}

/// An `xsd:decimal`. NaN and the infinities, which it does not have, are refused.
#[pg_extern(immutable, parallel_safe)]
fn term_from_numeric(number: AnyNumeric) -> TermOut {
    let text = number.normalize().to_owned();
    if !text.ends_with(|c: char| c.is_ascii_digit()) {
        raise(
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("numeric {text} is no xsd:decimal"),
        );
    }
    TermOut(TermBuf::xsd(&text, Xsd::Decimal))
}

#[pg_extern(immutable, parallel_safe)]
fn term_from_bigint(number: i64) -> TermOut {
    TermOut(TermBuf::integer(number.into()))
}

#[pg_extern(immutable, parallel_safe)]
fn term_from_integer(number: i32) -> TermOut {
    TermOut(TermBuf::integer(number.into()))
}

#[pg_extern(immutable, parallel_safe)]
fn term_from_boolean(value: bool) -> TermOut {
    TermOut(TermBuf::boolean(value))
}

#[pg_extern(immutable, parallel_safe)]
fn term_from_double(number: f64) -> TermOut {
    TermOut(TermBuf::xsd(&format_double(number), Xsd::Double))
}

/// An `xsd:dateTime` in UTC. The infinities are refused.
#[pg_extern(immutable, parallel_safe)]
fn term_from_timestamptz(timestamp: TimestampWithTimeZone) -> TermOut {
    let micros = timestamp.into_inner();
    if matches!(micros, i64::MIN | i64::MAX) {
        raise(
            PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
            "an infinite timestamp is no xsd:dateTime",
        );
    }
    match value(time::from_unix_micros(unix_micros(micros))) {
        Some(term) => TermOut(term),
        None => raise(
            PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
            "the timestamp is out of range for xsd:dateTime",
        ),
    }
}

/// An `xsd:date` without time zone. The infinities are refused.
#[pg_extern(immutable, parallel_safe)]
fn term_from_date(date: Date) -> TermOut {
    if !date.is_finite() {
        raise(
            PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
            "an infinite date is no xsd:date",
        );
    }
    match value(time::from_unix_days(date.to_unix_epoch_days())) {
        Some(term) => TermOut(term),
        None => raise(
            PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
            "the date is out of range for xsd:date",
        ),
    }
}

extension_sql_file!(
    "../../../../sql/term_casts.sql",
    name = "term_casts",
    requires = [
        term_to_text,
        term_to_numeric,
        term_to_double,
        term_to_bigint,
        term_to_boolean,
        term_to_timestamptz,
        term_to_date,
        term_from_text,
        term_from_numeric,
        term_from_bigint,
        term_from_integer,
        term_from_boolean,
        term_from_double,
        term_from_timestamptz,
        term_from_date
    ]
);
