//! The constructor functions of section 17.5, with the rules of XPath casting (Functions and
//! Operators section 17). Beyond the spec, all the datatypes whose values are understood can be
//! cast to.

use crate::compare::effective_boolean_value;
use crate::error::{Error, Result};
use crate::number::{double_to_string, float_to_string, Number};
use crate::value::{parse_boolean, parse_duration, Value};
use crate::xsd::Xsd;
use crate::{Literal, LiteralKind, Term, TermBuf};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Duration, GDay, GMonth, GMonthDay, GYear, GYearMonth, Time,
    YearMonthDuration,
};

/// `xsd:string(A)`: the IRI, or the value in canonical form.
///
/// # Errors
/// Blank nodes, language strings, and literals of unknown value.
pub fn to_string(term: &Term<'_>) -> Result<TermBuf> {
    let literal = match term {
        Term::Iri(iri) => return Ok(TermBuf::string(iri)),
        Term::Blank(_) => return Err(Error::Type),
        Term::Literal(literal) => literal,
    };
    let text = match literal.value() {
        Value::String(text) => return Ok(TermBuf::string(text)),
        Value::Boolean(value) => value.to_string(),
        Value::Number(Number::Integer(value)) => value.to_string(),
        Value::Number(Number::Decimal(value)) => value.to_string(),
        Value::Number(Number::Float(value)) => float_to_string(value),
        Value::Number(Number::Double(value)) => double_to_string(value),
        Value::Instant(..) | Value::Duration(_) => match literal.kind {
            LiteralKind::Xsd(xsd) => canonical(literal.lexical, xsd).ok_or(Error::Type)?,
            _ => return Err(Error::Type),
        },
        Value::LangString(..) | Value::Unknown => return Err(Error::Type),
    };
    Ok(TermBuf::string(&text))
}

/// `A` cast to this datatype.
///
/// # Errors
/// No cast is defined between the types, or the value is none of the target.
pub fn to_xsd(term: &Term<'_>, target: Xsd) -> Result<TermBuf> {
    let Term::Literal(literal) = term else {
        return Err(Error::Type);
    };
    let source = match literal.kind {
        LiteralKind::String => return from_string(literal.lexical, target),
        LiteralKind::Xsd(source) => source,
        LiteralKind::Language(_) | LiteralKind::Other(_) => return Err(Error::Type),
    };
    if target == Xsd::Boolean {
        // Ill-formed literals have an effective boolean value, but no value to be cast.
        return match literal.value() {
            Value::Boolean(_) | Value::Number(_) => {
                effective_boolean_value(term).map(TermBuf::boolean)
            }
            _ => Err(Error::Type),
        };
    }
    if target.is_numeric() {
        let number = match literal.value() {
            Value::Number(number) => number,
            Value::Boolean(value) => Number::Integer(value.into()),
            _ => return Err(Error::Type),
        };
        return from_number(number, target);
    }
    from_moment(literal, source, target)
}

/// `xsd:float(A)`, the value.
///
/// # Errors
/// No cast is defined, or the text is no number.
pub fn to_float(term: &Term<'_>) -> Result<f32> {
    let Term::Literal(literal) = term else {
        return Err(Error::Type);
    };
    match literal.value() {
        Value::String(text) => text_to_float(text),
        Value::Number(number) => Ok(number.to_float()),
        Value::Boolean(value) => Ok(f32::from(u8::from(value))),
        _ => Err(Error::Type),
    }
}

/// `xsd:float` of a string, the value.
///
/// # Errors
/// The text is no number.
pub fn text_to_float(text: &str) -> Result<f32> {
    match Number::parse(collapsed(text), Xsd::Float) {
        Ok(number) => Ok(number.to_float()),
        Err(_) => Err(not_of_type(text, Xsd::Float)),
    }
}

/// Casting collapses white space as the schema does.
fn collapsed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

fn not_of_type(text: &str, target: Xsd) -> Error {
    Error::Argument(format!(
        "\"{}\" is not of the type {}",
        collapsed(text),
        target.iri()
    ))
}

fn from_string(text: &str, target: Xsd) -> Result<TermBuf> {
    let text = collapsed(text);
    let invalid = || not_of_type(text, target);
    if target == Xsd::Boolean {
        return parse_boolean(text)
            .map(TermBuf::boolean)
            .ok_or_else(invalid);
    }
    if target.is_numeric() {
        let number = Number::parse(text, target).map_err(|_| invalid())?;
        return from_number(number, target);
    }
    canonical(text, target)
        .map(|text| TermBuf::xsd(&text, target))
        .ok_or_else(invalid)
}

fn from_number(number: Number, target: Xsd) -> Result<TermBuf> {
    Ok(match target {
        Xsd::Decimal => Number::Decimal(number.to_decimal()?).to_term(),
        Xsd::Double => Number::Double(number.to_double()).to_term(),
        Xsd::Float => Number::Float(number.to_float()).to_term(),
        _ => {
            let value = number.to_integer()?;
            if !target.admits(value) {
                return Err(Error::Overflow);
            }
            TermBuf::xsd(&value.to_string(), target)
        }
    })
}

/// The canonical form of a date, time or duration.
fn canonical(text: &str, xsd: Xsd) -> Option<String> {
    fn form<T: std::str::FromStr + std::fmt::Display>(text: &str) -> Option<String> {
        text.parse::<T>().ok().map(|value| value.to_string())
    }
    match xsd {
        Xsd::DateTime => form::<DateTime>(text),
        Xsd::DateTimeStamp => text
            .parse::<DateTime>()
            .ok()
            .filter(|value| value.timezone_offset().is_some())
            .map(|value| value.to_string()),
        Xsd::Date => form::<Date>(text),
        Xsd::Time => form::<Time>(text),
        Xsd::GYear => form::<GYear>(text),
        Xsd::GYearMonth => form::<GYearMonth>(text),
        Xsd::GMonthDay => form::<GMonthDay>(text),
        Xsd::GDay => form::<GDay>(text),
        Xsd::GMonth => form::<GMonth>(text),
        Xsd::Duration => form::<Duration>(text),
        Xsd::YearMonthDuration => form::<YearMonthDuration>(text),
        Xsd::DayTimeDuration => form::<DayTimeDuration>(text),
        _ => None,
    }
}

/// Casts between dates and times (section 17.1.5 of Functions and Operators) and between durations
/// (17.1.4).
fn from_moment(literal: &Literal<'_>, source: Xsd, target: Xsd) -> Result<TermBuf> {
    let text = literal.lexical;
    let form = match (source, target) {
        _ if source == target => canonical(text, target),
        (Xsd::DateTime | Xsd::DateTimeStamp, _) => {
            let value = canonical(text, source).and_then(|text| text.parse().ok());
            date_time_to(value.ok_or(Error::Type)?, target)
        }
        (Xsd::Date, _) => {
            let value: Date = text.parse().map_err(|_| Error::Type)?;
            date_time_to(
                DateTime::try_from(value).map_err(|_| Error::Overflow)?,
                target,
            )
        }
        (Xsd::Duration | Xsd::YearMonthDuration | Xsd::DayTimeDuration, _) => {
            let value = parse_duration(text, source).ok_or(Error::Type)?;
            duration_to(value, target)
        }
        _ => None,
    };
    form.map(|text| TermBuf::xsd(&text, target))
        .ok_or(Error::Type)
}

fn date_time_to(value: DateTime, target: Xsd) -> Option<String> {
    Some(match target {
        Xsd::DateTime => value.to_string(),
        Xsd::DateTimeStamp if value.timezone_offset().is_some() => value.to_string(),
        Xsd::Date => Date::try_from(value).ok()?.to_string(),
        Xsd::Time => Time::from(value).to_string(),
        Xsd::GYear => GYear::try_from(value).ok()?.to_string(),
        Xsd::GYearMonth => GYearMonth::try_from(value).ok()?.to_string(),
        Xsd::GMonthDay => GMonthDay::from(value).to_string(),
        Xsd::GDay => GDay::from(value).to_string(),
        Xsd::GMonth => GMonth::from(value).to_string(),
        _ => return None,
    })
}

/// Casting to one of the two ordered types drops what it has not.
fn duration_to(value: Duration, target: Xsd) -> Option<String> {
    let bytes = value.to_be_bytes();
    Some(match target {
        Xsd::Duration => value.to_string(),
        Xsd::YearMonthDuration => {
            YearMonthDuration::from_be_bytes(bytes[..8].try_into().ok()?).to_string()
        }
        Xsd::DayTimeDuration => {
            DayTimeDuration::from_be_bytes(bytes[8..].try_into().ok()?).to_string()
        }
        _ => return None,
    })
}
