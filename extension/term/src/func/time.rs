//! Functions on dates and times, section 17.4.5. Beyond the spec, those on date parts also take
//! `xsd:date`, those on time parts `xsd:time`.

use crate::duration::within_cycle;
use crate::error::{Error, Result};
use crate::number::{from_raw, to_raw, Number, ONE};
use crate::value::parse_duration;
use crate::xsd::Xsd;
use crate::{inline_parts, LiteralKind, Term, TermBuf, TermId};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Duration, Time, TimezoneOffset, YearMonthDuration,
};
use std::sync::LazyLock;

/// A literal of one of the types that have accessor functions.
#[derive(Clone, Copy)]
enum Moment {
    DateTime(DateTime),
    Date(Date),
    Time(Time),
}

impl Moment {
    fn of(term: &Term<'_>) -> Result<Self> {
        let Term::Literal(literal) = term else {
            return Err(Error::Type);
        };
        match literal.kind {
            LiteralKind::Xsd(Xsd::DateTime) => literal.lexical.parse().ok().map(Self::DateTime),
            LiteralKind::Xsd(Xsd::DateTimeStamp) => literal
                .lexical
                .parse()
                .ok()
                .filter(|value: &DateTime| value.timezone_offset().is_some())
                .map(Self::DateTime),
            LiteralKind::Xsd(Xsd::Date) => literal.lexical.parse().ok().map(Self::Date),
            LiteralKind::Xsd(Xsd::Time) => literal.lexical.parse().ok().map(Self::Time),
            _ => None,
        }
        .ok_or(Error::Type)
    }

    fn zone(self) -> Option<TimezoneOffset> {
        match self {
            Self::DateTime(value) => value.timezone_offset(),
            Self::Date(value) => value.timezone_offset(),
            Self::Time(value) => value.timezone_offset(),
        }
    }
}

fn integer(value: impl Into<i128>) -> Result<TermBuf> {
    Ok(Number::Integer(value.into()).to_term())
}

/// A part of a moment that is an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// YEAR.
    Year,
    /// MONTH.
    Month,
    /// DAY.
    Day,
    /// HOURS.
    Hours,
    /// MINUTES.
    Minutes,
}

/// A part of a moment.
///
/// # Errors
/// Not a literal with that part.
pub fn part(term: &Term<'_>, part: Part) -> Result<i64> {
    let moment = Moment::of(term)?;
    Ok(match (part, moment) {
        (Part::Year, Moment::DateTime(value)) => value.year(),
        (Part::Year, Moment::Date(value)) => value.year(),
        (Part::Month, Moment::DateTime(value)) => value.month().into(),
        (Part::Month, Moment::Date(value)) => value.month().into(),
        (Part::Day, Moment::DateTime(value)) => value.day().into(),
        (Part::Day, Moment::Date(value)) => value.day().into(),
        (Part::Hours, Moment::DateTime(value)) => value.hour().into(),
        (Part::Hours, Moment::Time(value)) => value.hour().into(),
        (Part::Minutes, Moment::DateTime(value)) => value.minute().into(),
        (Part::Minutes, Moment::Time(value)) => value.minute().into(),
        _ => return Err(Error::Type),
    })
}

/// A part of the moment that an inlined id tells; `None` for all other ids.
#[must_use]
pub fn inline_part(id: TermId, part: Part) -> Option<Result<i64>> {
    let parts = inline_parts(id)?;
    let (year, month, day) = parts.date;
    let time = parts.time.ok_or(Error::Type);
    Some(match part {
        Part::Year => Ok(year),
        Part::Month => Ok(month),
        Part::Day => Ok(day),
        Part::Hours => time.map(|(hours, _)| hours),
        Part::Minutes => time.map(|(_, minutes)| minutes),
    })
}

/// YEAR.
///
/// # Errors
/// Not a date.
pub fn year(term: &Term<'_>) -> Result<TermBuf> {
    integer(part(term, Part::Year)?)
}

/// MONTH.
///
/// # Errors
/// Not a date.
pub fn month(term: &Term<'_>) -> Result<TermBuf> {
    integer(part(term, Part::Month)?)
}

/// DAY.
///
/// # Errors
/// Not a date.
pub fn day(term: &Term<'_>) -> Result<TermBuf> {
    integer(part(term, Part::Day)?)
}

/// HOURS.
///
/// # Errors
/// Not a time.
pub fn hours(term: &Term<'_>) -> Result<TermBuf> {
    integer(part(term, Part::Hours)?)
}

/// MINUTES.
///
/// # Errors
/// Not a time.
pub fn minutes(term: &Term<'_>) -> Result<TermBuf> {
    integer(part(term, Part::Minutes)?)
}

/// SECONDS, as a decimal.
///
/// # Errors
/// Not a time.
pub fn seconds(term: &Term<'_>) -> Result<TermBuf> {
    match Moment::of(term)? {
        Moment::DateTime(value) => Ok(Number::Decimal(value.second()).to_term()),
        Moment::Time(value) => Ok(Number::Decimal(value.second()).to_term()),
        Moment::Date(_) => Err(Error::Type),
    }
}

/// TIMEZONE, as an `xsd:dayTimeDuration`.
///
/// # Errors
/// Not a date or time, or one without time zone.
pub fn timezone(term: &Term<'_>) -> Result<TermBuf> {
    let zone = Moment::of(term)?
        .zone()
        .ok_or_else(|| Error::Argument("there is no time zone".to_owned()))?;
    let duration = DayTimeDuration::from(zone);
    Ok(TermBuf::xsd(&duration.to_string(), Xsd::DayTimeDuration))
}

/// TZ: the time zone as written, `""` when there is none.
///
/// # Errors
/// Not a date or time.
pub fn tz(term: &Term<'_>) -> Result<TermBuf> {
    let zone = Moment::of(term)?.zone();
    let Term::Literal(literal) = term else {
        return Err(Error::Type);
    };
    let lexical = literal.lexical;
    let length = match zone {
        None => 0,
        Some(_) if lexical.ends_with('Z') => 1,
        Some(_) => "+00:00".len(),
    };
    Ok(TermBuf::string(&lexical[lexical.len() - length..]))
}

/// The `xsd:dateTime` in UTC of a moment given in microseconds since 1970.
///
/// # Errors
/// Outside the range of dates.
pub fn from_unix_micros(micros: i64) -> Result<TermBuf> {
    let raw = i128::from(micros) * (ONE / MICROS_PER_SECOND);
    let value = epoch()
        .checked_add_day_time_duration(DayTimeDuration::new(from_raw(raw)))
        .ok_or(Error::Overflow)?;
    Ok(TermBuf::xsd(&value.to_string(), Xsd::DateTime))
}

/// The `xsd:date` without time zone of a day counted from 1970.
///
/// # Errors
/// Outside the range of dates.
pub fn from_unix_days(days: i32) -> Result<TermBuf> {
    let seconds = DayTimeDuration::new(i64::from(days) * 86_400);
    let value = epoch()
        .adjust(None)
        .and_then(|epoch| epoch.checked_add_day_time_duration(seconds))
        .and_then(|value| Date::try_from(value).ok())
        .ok_or(Error::Overflow)?;
    Ok(TermBuf::xsd(&value.to_string(), Xsd::Date))
}

/// The moment of an `xsd:dateTime` in microseconds since 1970, rounded, and whether it has a time
/// zone (if not, it is the local time).
///
/// # Errors
/// Not an `xsd:dateTime`, or too far away.
pub fn unix_micros(term: &Term<'_>) -> Result<(i64, bool)> {
    let Moment::DateTime(value) = Moment::of(term)? else {
        return Err(Error::Type);
    };
    let zoned = value.timezone_offset().is_some();
    let start = if zoned {
        Some(epoch())
    } else {
        epoch().adjust(None)
    };
    let raw = start
        .and_then(|start| value.checked_sub(start))
        .map(|since| to_raw(since.as_seconds()))
        .ok_or(Error::Overflow)?;
    let unit = ONE / MICROS_PER_SECOND;
    let micros = (raw + unit / 2).div_euclid(unit);
    Ok((i64::try_from(micros).map_err(|_| Error::Overflow)?, zoned))
}

/// Year (0 is 1 BC), month and day of an `xsd:date` or `xsd:dateTime`, in its own time zone.
///
/// # Errors
/// Not a date.
pub fn date_parts(term: &Term<'_>) -> Result<(i64, u8, u8)> {
    match Moment::of(term)? {
        Moment::DateTime(value) => Ok((value.year(), value.month(), value.day())),
        Moment::Date(value) => Ok((value.year(), value.month(), value.day())),
        Moment::Time(_) => Err(Error::Type),
    }
}

const MICROS_PER_SECOND: i128 = 1_000_000;

/// 1970 in UTC.
fn epoch() -> DateTime {
    static EPOCH: LazyLock<DateTime> =
        LazyLock::new(|| "1970-01-01T00:00:00Z".parse().expect("a valid dateTime"));
    *EPOCH
}

/// A duration with the most specific of the types that its origin allows.
fn duration(term: &Term<'_>) -> Option<(Duration, Xsd)> {
    match term {
        Term::Literal(literal) => match literal.kind {
            LiteralKind::Xsd(
                xsd @ (Xsd::Duration | Xsd::YearMonthDuration | Xsd::DayTimeDuration),
            ) => parse_duration(literal.lexical, xsd).map(|value| (value, xsd)),
            _ => None,
        },
        _ => None,
    }
}

fn duration_term(value: Duration, xsd: Xsd) -> Result<TermBuf> {
    let text = match xsd {
        Xsd::YearMonthDuration => YearMonthDuration::try_from(value)
            .map_err(|_| Error::Type)?
            .to_string(),
        Xsd::DayTimeDuration => DayTimeDuration::try_from(value)
            .map_err(|_| Error::Type)?
            .to_string(),
        _ => value.to_string(),
    };
    Ok(TermBuf::xsd(&text, xsd))
}

fn moment_term(moment: Moment) -> TermBuf {
    match moment {
        Moment::DateTime(value) => TermBuf::xsd(&value.to_string(), Xsd::DateTime),
        Moment::Date(value) => TermBuf::xsd(&value.to_string(), Xsd::Date),
        Moment::Time(value) => TermBuf::xsd(&value.to_string(), Xsd::Time),
    }
}

/// op:add-…-to-… of durations to durations, dates and times.
pub(super) fn add(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
    match (duration(a), duration(b)) {
        // XPath adds durations of one of the two ordered types only.
        (Some((x, s)), Some((y, t))) if s == t && s != Xsd::Duration => {
            duration_term(x.checked_add(y).ok_or(Error::Overflow)?, s)
        }
        (None, Some((span, _))) => shift(Moment::of(a)?, span),
        (Some((span, _)), None) => shift(Moment::of(b)?, span),
        _ => Err(Error::Type),
    }
}

/// op:subtract-… of durations, dates and times.
pub(super) fn sub(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
    match (duration(a), duration(b)) {
        (Some((x, s)), Some((y, t))) if s == t && s != Xsd::Duration => {
            duration_term(x.checked_sub(y).ok_or(Error::Overflow)?, s)
        }
        (None, Some((span, _))) => {
            shift(Moment::of(a)?, span.checked_neg().ok_or(Error::Overflow)?)
        }
        (None, None) => {
            let difference = match (Moment::of(a)?, Moment::of(b)?) {
                (Moment::DateTime(x), Moment::DateTime(y)) => x.checked_sub(y),
                (Moment::Date(x), Moment::Date(y)) => x.checked_sub(y),
                (Moment::Time(x), Moment::Time(y)) => x.checked_sub(y),
                _ => return Err(Error::Type),
            };
            let difference = difference.ok_or(Error::Type)?;
            Ok(TermBuf::xsd(&difference.to_string(), Xsd::DayTimeDuration))
        }
        _ => Err(Error::Type),
    }
}

fn shift(moment: Moment, span: Duration) -> Result<TermBuf> {
    let span = within_cycle(span).ok_or(Error::Type)?;
    let moved = match moment {
        Moment::DateTime(value) => value.checked_add_duration(span).map(Moment::DateTime),
        Moment::Date(value) => value.checked_add_duration(span).map(Moment::Date),
        Moment::Time(value) => DayTimeDuration::try_from(span)
            .ok()
            .and_then(|span| value.checked_add_day_time_duration(span))
            .map(Moment::Time),
    };
    moved.map(moment_term).ok_or(Error::Type)
}
