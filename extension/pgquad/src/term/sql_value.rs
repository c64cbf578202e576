//! Terms as values of the SQL types that a caller asks for: the columns of `quad.query`.
//!
//! Where a cast of `quad.term` wants a literal of a datatype that goes with the type, this takes the text of the term:
//! `"1815"` is an integer too. Values of numbers and dates count, not how they are written: `1.0e3` is the
//! integer 1000. A term that does not fit is an error which names it.

use std::ffi::{c_char, CString};
use std::panic::AssertUnwindSafe;

use pgquad_term::func::numeric;
use pgquad_term::number::Number;
use pgquad_term::Term;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys::panic::CaughtError;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use pgrx::{pg_sys, AnyArray, IntoDatum, PgSqlErrorCode, PgTryBuilder};

use super::casts::{date_of, lexical_text, timestamptz_of};
use super::{TermArg, TermOut};
use crate::pg::error::{raise_all, raise_hint};

/// Longest part of a term that an error shows, in characters.
const SHOWN_CHARS: usize = 200;

/// How terms become values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Term,
    Text,
    Boolean,
    /// An integer of so many bytes.
    Integer(u8),
    Double,
    Date,
    TimestampTz,
    /// By the input function of the type.
    Input,
}

/// An SQL type that terms are turned into.
pub struct SqlType {
    oid: pg_sys::Oid,
    typmod: i32,
    way: Way,
    input: pg_sys::FmgrInfo,
    input_parameter: pg_sys::Oid,
}

impl SqlType {
    /// The type; what it keeps lives in `context`. Raises an error for types that have no values of their own (42804).
    ///
    /// # Safety
    /// A live memory context, which outlives the value.
    pub unsafe fn new(oid: pg_sys::Oid, typmod: i32, context: pg_sys::MemoryContext) -> Self {
        check(oid);
        let way = match oid {
            pg_sys::TEXTOID => Way::Text,
            pg_sys::BOOLOID => Way::Boolean,
            pg_sys::INT2OID => Way::Integer(2),
            pg_sys::INT4OID => Way::Integer(4),
            pg_sys::INT8OID => Way::Integer(8),
            pg_sys::FLOAT8OID => Way::Double,
            pg_sys::DATEOID => Way::Date,
            pg_sys::TIMESTAMPTZOID if typmod < 0 => Way::TimestampTz,
            _ if oid == TermOut::type_oid() => Way::Term,
            _ => Way::Input,
        };
        let mut input = pg_sys::FmgrInfo::default();
        let mut input_parameter = pg_sys::InvalidOid;
        // SAFETY: the type exists, and has an input function since `check` let it pass; the caller's promise.
        unsafe {
            let mut function = pg_sys::InvalidOid;
            pg_sys::getTypeInputInfo(oid, &mut function, &mut input_parameter);
            pg_sys::fmgr_info_cxt(function, &mut input, context);
        }
        Self {
            oid,
            typmod,
            way,
            input,
            input_parameter,
        }
    }

    /// The value of a term in the current memory context. Raises an error where it has none (22P02), or none in the
    /// range of the type (22003); `column` is for the message.
    pub fn datum(&mut self, term: &Term<'_>, column: &str) -> pg_sys::Datum {
        let datum = match self.way {
            Way::Term => TermOut(term.to_buf()).into_datum(),
            Way::Text => lexical_text(term).into_datum(),
            Way::Boolean => boolean(term).into_datum(),
            Way::Integer(bytes) => self.integer(bytes, term, column),
            Way::Double => numeric::number(term)
                .ok()
                .and_then(|n| n.to_double().into_datum()),
            Way::Date => date_of(term).and_then(IntoDatum::into_datum),
            Way::TimestampTz => timestamptz_of(term).and_then(IntoDatum::into_datum),
            Way::Input => None,
        };
        datum.unwrap_or_else(|| self.of_text(term, column))
    }

    /// The value of a number; `None` for other terms.
    fn integer(&self, bytes: u8, term: &Term<'_>, column: &str) -> Option<pg_sys::Datum> {
        let number = numeric::number(term).ok()?;
        if !number.is_whole() {
            self.refuse(term, column, "It is no whole number.")
        }
        let whole = number.rounded_half_away().unwrap_or(i128::MAX);
        let datum = match bytes {
            2 => i16::try_from(whole).ok().and_then(IntoDatum::into_datum),
            4 => i32::try_from(whole).ok().and_then(IntoDatum::into_datum),
            _ => i64::try_from(whole).ok().and_then(IntoDatum::into_datum),
        };
        if datum.is_none() {
            raise_hint(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                self.message(term, column),
                "Ask for a wider type, or for numeric.",
            );
        }
        datum
    }

    /// What the input function of the type makes of the text of a term.
    fn of_text(&mut self, term: &Term<'_>, column: &str) -> pg_sys::Datum {
        let text = match numeric::number(term) {
            // As PostgreSQL reads numbers: the lexical forms of XSD differ (INF).
            Ok(Number::Float(value)) => f64::from(value).to_string(),
            Ok(Number::Double(value)) => value.to_string(),
            _ => lexical_text(term),
        };
        let text = CString::new(text).expect("texts of terms hold no NUL");
        let input = AssertUnwindSafe(&mut self.input);
        let (parameter, typmod) = (self.input_parameter, self.typmod);
        let result = PgTryBuilder::new(AssertUnwindSafe(|| {
            let AssertUnwindSafe(input) = input;
            let text: *const c_char = text.as_ptr();
            // SAFETY: an input function with its own arguments; it does not write into the text.
            Ok(unsafe { pg_sys::InputFunctionCall(input, text.cast_mut(), parameter, typmod) })
        }))
        .catch_others(|error| match error {
            CaughtError::PostgresError(report) if is_of_data(report.sql_error_code()) => {
                Err((report.sql_error_code(), report.message().to_owned()))
            }
            other => other.rethrow(),
        })
        .execute();
        match result {
            Ok(datum) => datum,
            // What the input function had to say is part of an error again: nothing goes on after it.
            Err((code, message)) => raise_all(code, self.message(term, column), message, HINT),
        }
    }

    fn refuse(&self, term: &Term<'_>, column: &str, why: &str) -> ! {
        raise_all(
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
            self.message(term, column),
            why,
            HINT,
        )
    }

    fn message(&self, term: &Term<'_>, column: &str) -> String {
        let written = term.to_string();
        let shown: String = written.chars().take(SHOWN_CHARS).collect();
        let more = if shown.len() < written.len() {
            "..."
        } else {
            ""
        };
        let wanted = name_of(self.oid, -1);
        format!("term {shown}{more} does not fit column \"{column}\" of type {wanted}")
    }
}

const HINT: &str =
    "Ask for text or quad.term, or convert in the query, where what does not fit is unbound: \
                    SELECT (xsd:integer(?y) AS ?year).";

/// Whether an error is about the data: class 22, or the constraint of a domain.
fn is_of_data(code: PgSqlErrorCode) -> bool {
    const CLASS: i32 = 0xFFF;
    let (code, data) = (code as i32, PgSqlErrorCode::ERRCODE_DATA_EXCEPTION as i32);
    code & CLASS == data & CLASS || code == PgSqlErrorCode::ERRCODE_CHECK_VIOLATION as i32
}

fn boolean(term: &Term<'_>) -> Option<bool> {
    match term {
        Term::Literal(literal) => match literal.value() {
            pgquad_term::value::Value::Boolean(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// Raises an error for types that no text is a value of, and for those without an array type (42804).
fn check(oid: pg_sys::Oid) {
    // SAFETY: look-ups in the catalogue.
    let (kind, array) = unsafe { (pg_sys::get_typtype(oid) as u8, pg_sys::get_array_type(oid)) };
    if !matches!(kind, b'b' | b'd' | b'e' | b'r' | b'm') || array == pg_sys::InvalidOid {
        raise_hint(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            format!(
                "a term cannot be turned into a value of type {}",
                name_of(oid, -1)
            ),
            "Ask for text or quad.term and convert that.",
        );
    }
}

/// SQL that turns an expression of type `quad.term` into a value. Raises an error for types that terms cannot be turned
/// into (42804). `resource`: it gives no literals.
pub fn conversion(
    expression: &str,
    oid: pg_sys::Oid,
    typmod: i32,
    column: &str,
    resource: bool,
) -> String {
    check(oid);
    if oid == TermOut::type_oid() {
        return expression.to_owned();
    }
    let to_text = if resource {
        "quad.resource_to_text"
    } else {
        "quad.term_to_text"
    };
    let is_text = matches!(oid, pg_sys::TEXTOID | pg_sys::VARCHAROID) && typmod < 0;
    let value = match is_text {
        true => format!("{to_text}({expression})"),
        false => {
            // SAFETY: a look-up in the catalogue; `check` has found the type.
            let array = name_of(unsafe { pg_sys::get_array_type(oid) }, -1);
            let column = pgrx::spi::quote_literal(column);
            format!("quad.term_value({expression}, '{{}}'::{array}, {typmod}, {column}::pg_catalog.text)")
        }
    };
    if oid != pg_sys::TEXTOID && (is_text || typmod >= 0) {
        return format!("CAST({value} AS {})", name_of(oid, typmod));
    }
    value
}

/// Name of a type, with its schema where that is not `pg_catalog`.
fn name_of(oid: pg_sys::Oid, typmod: i32) -> String {
    const FLAGS: u16 =
        (pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY) as u16;
    // SAFETY: gives a palloc'd C string for any number.
    unsafe {
        let name = pg_sys::format_type_extended(oid, typmod, FLAGS);
        std::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

/// A value of the type that the call says.
struct AnyValue(pg_sys::Datum);

// SAFETY: the datum was made for the type of the call.
unsafe impl BoxRet for AnyValue {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: a valid datum of the function's result type.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

// SAFETY: the SQL of the function is written out; this stands for its result.
unsafe impl SqlTranslatable for AnyValue {
    const TYPE_IDENT: &'static str = "pgquad::term::sql_value::AnyValue";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
        Ok(SqlMappingRef::literal("anyelement"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("anyelement")));
}

/// The value of a term as an SQL type, with which `quad.query` fills a column. The type is that of the elements of
/// `type_array`, with a type modifier (-1: none). `column` is for error messages.
#[pg_extern(
    sql = "CREATE FUNCTION quad.term_value(term quad.term, type_array anyarray, type_modifier integer, \"column\" text)
    RETURNS anyelement STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';",
    requires = ["term_casts"]
)]
fn term_value(
    term: TermArg<'_>,
    _type_array: AnyArray,
    type_modifier: i32,
    column: &str,
    call: pg_sys::FunctionCallInfo,
) -> AnyValue {
    // SAFETY: the call's own function, in whose memory the type is kept for the next call of it.
    let kept = unsafe {
        let function = (*call).flinfo;
        if (*function).fn_extra.is_null() {
            let oid = pg_sys::get_fn_expr_rettype(function);
            let kept = SqlType::new(oid, type_modifier, (*function).fn_mcxt);
            let place = pg_sys::MemoryContextAlloc((*function).fn_mcxt, size_of::<SqlType>());
            place.cast::<SqlType>().write(kept);
            (*function).fn_extra = place;
        }
        &mut *(*function).fn_extra.cast::<SqlType>()
    };
    AnyValue(kept.datum(&term.term(), column))
}

/// The IRI, or the blank node as it is written: `quad.term_to_text` of a term that is no literal, which the planner can
/// turn round.
#[pg_extern(immutable, parallel_safe)]
fn resource_to_text(term: TermArg<'_>) -> String {
    lexical_text(&term.term())
}
