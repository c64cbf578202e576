//! Arithmetic operators (section 17.3) and functions on numbers (section 17.4.4).

use crate::error::{Error, Result};
use crate::number::Number;
use crate::{Term, TermBuf};

/// The number of a numeric literal.
///
/// # Errors
/// Anything else.
pub fn number(term: &Term<'_>) -> Result<Number> {
    match term {
        Term::Literal(literal) => literal.number().ok_or(Error::Type),
        _ => Err(Error::Type),
    }
}

macro_rules! binary {
    ($($name:ident = $method:ident: $doc:literal;)*) => {$(
        #[doc = $doc]
        ///
        /// # Errors
        /// Not two numbers, or no result, see [`Number`].
        pub fn $name(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
            Ok(number(a)?.$method(number(b)?)?.to_term())
        }
    )*};
}

macro_rules! unary {
    ($($name:ident = $method:ident: $doc:literal;)*) => {$(
        #[doc = $doc]
        ///
        /// # Errors
        /// Not a number, or no result, see [`Number`].
        pub fn $name(term: &Term<'_>) -> Result<TermBuf> {
            Ok(number(term)?.$method()?.to_term())
        }
    )*};
}

unary! {
    neg = checked_neg: "`-A`.";
    abs = abs: "ABS.";
    round = round: "ROUND: halves go up.";
    ceil = ceil: "CEIL.";
    floor = floor: "FLOOR.";
}

binary! {
    mul = checked_mul: "`A * B`.";
    div = checked_div: "`A / B`.";
}

/// `+A`.
///
/// # Errors
/// Not a number.
pub fn pos(term: &Term<'_>) -> Result<TermBuf> {
    Ok(number(term)?.to_term())
}

/// `A + B`: numbers; beyond SPARQL 1.1, a date or time and a duration, and two durations, as XPath
/// defines it.
///
/// # Errors
/// Other types, or no result, see [`Number`].
pub fn add(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
    match (number(a), number(b)) {
        (Ok(a), Ok(b)) => Ok(a.checked_add(b)?.to_term()),
        _ => super::time::add(a, b),
    }
}

/// `A - B`: numbers; beyond SPARQL 1.1, two dates or times, a date or time and a duration, and two
/// durations, as XPath defines it.
///
/// # Errors
/// Other types, or no result, see [`Number`].
pub fn sub(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
    match (number(a), number(b)) {
        (Ok(a), Ok(b)) => Ok(a.checked_sub(b)?.to_term()),
        _ => super::time::sub(a, b),
    }
}
