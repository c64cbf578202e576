//! The comparison operators of SPARQL 1.1 section 17.3 and the effective boolean value of section
//! 17.2.2.

use crate::duration::within_cycle;
use crate::error::{Error, Result};
use crate::number::compare_promoted;
use crate::value::Value;
use crate::xsd::Xsd;
use crate::{Literal, LiteralKind, Term};
use std::cmp::Ordering;

/// `A = B`: the values are equal (numbers, strings, booleans, dates and times, durations), else
/// RDFterm-equal.
///
/// # Errors
/// Two literals that are not the same term, where one has an unknown value. Also dates and times that cannot be told
/// apart because only one has a time zone.
pub fn equal(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    let (Term::Literal(x), Term::Literal(y)) = (a, b) else {
        return Ok(a == b);
    };
    if x == y {
        // The same term has the same value, but NaN does not equal itself.
        return Ok(x.number().is_none_or(|n| compare_promoted(n, n).is_some()));
    }
    match (x.value(), y.value()) {
        (Value::LangString(..), _) | (_, Value::LangString(..)) => Ok(false),
        (Value::Unknown, _) | (_, Value::Unknown) => Err(Error::Type),
        (Value::String(x), Value::String(y)) => Ok(x == y),
        (Value::Boolean(x), Value::Boolean(y)) => Ok(x == y),
        (Value::Number(x), Value::Number(y)) => Ok(compare_promoted(x, y) == Some(Ordering::Equal)),
        (Value::Instant(s, x), Value::Instant(t, y)) if s == t => {
            x.compare(y).map(Ordering::is_eq).ok_or(Error::Type)
        }
        (Value::Duration(x), Value::Duration(y)) => Ok(x == y),
        // Values of types that have none in common.
        _ => Ok(false),
    }
}

/// The order of two values for `<`, `<=`, `>` and `>=`, strings of one language by their text. `None` when all four are
/// false: one side is NaN.
///
/// # Errors
/// The operators are not defined for these types (strings of two languages are of two types). Or the order is not
/// determined (dates and times of which only one has a time zone, durations of months against days).
pub fn compare(a: &Term<'_>, b: &Term<'_>) -> Result<Option<Ordering>> {
    let (Term::Literal(x), Term::Literal(y)) = (a, b) else {
        return Err(Error::Type);
    };
    match (x.value(), y.value()) {
        (Value::Number(x), Value::Number(y)) => Ok(compare_promoted(x, y)),
        (Value::String(x), Value::String(y)) => Ok(Some(x.cmp(y))),
        // Beyond the operators of the spec, as its section 17.3.1 permits.
        (Value::LangString(x, s), Value::LangString(y, t)) if s == t => Ok(Some(x.cmp(y))),
        (Value::Boolean(x), Value::Boolean(y)) => Ok(Some(x.cmp(&y))),
        (Value::Instant(s, x), Value::Instant(t, y)) if s == t => {
            x.compare(y).map(Some).ok_or(Error::Type)
        }
        // From each of the four dates that decide, three months and seven days end when one month and 68 days do. They
        // are not equal all the same (XSD 1.1 part 2, section 3.3.6.2).
        (Value::Duration(x), Value::Duration(y)) => within_cycle(x)
            .zip(within_cycle(y))
            .and_then(|(x, y)| x.partial_cmp(&y))
            .filter(|order| order.is_ne() || x == y)
            .map(Some)
            .ok_or(Error::Type),
        _ => Err(Error::Type),
    }
}

/// `A != B`.
///
/// # Errors
/// As [`equal`].
pub fn not_equal(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    equal(a, b).map(|equal| !equal)
}

/// `A < B`.
///
/// # Errors
/// As [`compare`].
pub fn less(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    compare(a, b).map(|order| order.is_some_and(Ordering::is_lt))
}

/// `A <= B`.
///
/// # Errors
/// As [`compare`].
pub fn less_or_equal(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    compare(a, b).map(|order| order.is_some_and(Ordering::is_le))
}

/// `A > B`.
///
/// # Errors
/// As [`compare`].
pub fn greater(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    less(b, a)
}

/// `A >= B`.
///
/// # Errors
/// As [`compare`].
pub fn greater_or_equal(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    less_or_equal(b, a)
}

/// The effective boolean value.
///
/// # Errors
/// IRIs, blank nodes and literals that are neither plain nor booleans nor numbers.
pub fn effective_boolean_value(term: &Term<'_>) -> Result<bool> {
    let Term::Literal(literal) = term else {
        return Err(Error::Type);
    };
    match literal {
        Literal {
            lexical,
            kind: LiteralKind::String | LiteralKind::Language(_),
        } => Ok(!lexical.is_empty()),
        Literal {
            kind: LiteralKind::Xsd(xsd),
            ..
        } if *xsd == Xsd::Boolean || xsd.is_numeric() => match literal.value() {
            Value::Boolean(value) => Ok(value),
            Value::Number(number) => Ok(!number.is_falsy()),
            // A valid number outside the supported range is not zero; a lexical form that is not
            // one of the datatype is false.
            _ => Ok(literal.is_numeric()),
        },
        Literal { .. } => Err(Error::Type),
    }
}
