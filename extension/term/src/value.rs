//! The value of a literal.

use crate::number::{from_raw, NoNumber, Number};
use crate::xsd::Xsd;
use crate::{Literal, LiteralKind};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Decimal, Duration, GDay, GMonth, GMonthDay, GYear, GYearMonth,
    Time, YearMonthDuration,
};
use std::cmp::Ordering;

/// The value of a literal.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A simple literal.
    String(&'a str),
    /// A language string: text, tag.
    LangString(&'a str, &'a str),
    /// A boolean.
    Boolean(bool),
    /// A number of any type.
    Number(Number),
    /// A value on the time line, of this type (`xsd:dateTimeStamp` counts as `xsd:dateTime`).
    Instant(Xsd, Instant),
    /// A duration of any of the three types.
    Duration(Duration),
    /// Nothing is known of the value: an unknown datatype, a lexical form that is not one of the
    /// datatype, or a value outside the supported range.
    Unknown,
}

/// A point on the time line.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    /// Seconds on the time line of XSD 1.1, as if in UTC when there is no time zone.
    pub seconds: Decimal,
    /// Whether there is a time zone.
    pub zoned: bool,
}

impl Instant {
    /// From the bytes of any of the date and time types of `oxsdatatypes`. They do not tell `-00:01` from no time zone.
    fn from_be_bytes(bytes: [u8; 18], zoned: bool) -> Self {
        let seconds = bytes[..16].try_into().expect("sixteen bytes");
        Self {
            seconds: from_raw(i128::from_be_bytes(seconds)),
            zoned,
        }
    }

    /// The order of XSD 1.1 part 2 section 3.3.7. Between a value with and one without a time zone it is determined
    /// only when they are more than fourteen hours apart, else `None`.
    #[must_use]
    pub fn compare(self, other: Self) -> Option<Ordering> {
        const FOURTEEN_HOURS: i64 = 14 * 3600;
        if self.zoned == other.zoned {
            return Some(self.seconds.cmp(&other.seconds));
        }
        let (zoned, local) = if self.zoned {
            (self.seconds, other.seconds)
        } else {
            (other.seconds, self.seconds)
        };
        let order = if zoned < local.checked_sub(FOURTEEN_HOURS)? {
            Ordering::Less
        } else if zoned > local.checked_add(FOURTEEN_HOURS)? {
            Ordering::Greater
        } else {
            return None;
        };
        Some(if self.zoned { order } else { order.reverse() })
    }
}

impl<'a> Literal<'a> {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Value<'a> {
        match self.kind {
            LiteralKind::String => Value::String(self.lexical),
            LiteralKind::Language(tag) => Value::LangString(self.lexical, tag),
            LiteralKind::Xsd(xsd) => xsd_value(self.lexical, xsd).unwrap_or(Value::Unknown),
            LiteralKind::Other(_) => Value::Unknown,
        }
    }

    /// The numeric value, if the datatype is numeric, the lexical form valid and the value in the
    /// supported range.
    #[must_use]
    pub fn number(&self) -> Option<Number> {
        match self.kind {
            LiteralKind::Xsd(xsd) if xsd.is_numeric() => Number::parse(self.lexical, xsd).ok(),
            _ => None,
        }
    }

    /// isNumeric: a numeric datatype and a valid lexical form.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        match self.kind {
            LiteralKind::Xsd(xsd) if xsd.is_numeric() => match Number::parse(self.lexical, xsd) {
                Ok(_) => true,
                Err(NoNumber::Malformed) => false,
                // Of the bounded types none reaches beyond the supported range, so only the sign
                // tells whether a too large integer is valid.
                Err(NoNumber::TooLarge) => match xsd.integer_bounds() {
                    (None, None) => true,
                    (None, Some(_)) => self.lexical.starts_with('-'),
                    (Some(_), None) => !self.lexical.starts_with('-'),
                    (Some(_), Some(_)) => false,
                },
            },
            _ => false,
        }
    }
}

/// The value of a boolean literal.
pub(crate) fn parse_boolean(lexical: &str) -> Option<bool> {
    match lexical {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn xsd_value(lexical: &str, xsd: Xsd) -> Option<Value<'static>> {
    macro_rules! parsed {
        ($moment:ty) => {{
            let value = lexical.parse::<$moment>().ok()?;
            (value.to_be_bytes(), value.timezone_offset().is_some())
        }};
    }
    let (bytes, zoned) = match xsd {
        Xsd::Boolean => return parse_boolean(lexical).map(Value::Boolean),
        Xsd::Duration | Xsd::YearMonthDuration | Xsd::DayTimeDuration => {
            return parse_duration(lexical, xsd).map(Value::Duration)
        }
        Xsd::DateTime | Xsd::DateTimeStamp => parsed!(DateTime),
        Xsd::Date => parsed!(Date),
        Xsd::Time => parsed!(Time),
        Xsd::GYear => parsed!(GYear),
        Xsd::GYearMonth => parsed!(GYearMonth),
        Xsd::GMonthDay => parsed!(GMonthDay),
        Xsd::GDay => parsed!(GDay),
        Xsd::GMonth => parsed!(GMonth),
        _ => return Number::parse(lexical, xsd).ok().map(Value::Number),
    };
    let instant = Instant::from_be_bytes(bytes, zoned);
    match xsd {
        Xsd::DateTimeStamp if !instant.zoned => None,
        Xsd::DateTimeStamp => Some(Value::Instant(Xsd::DateTime, instant)),
        _ => Some(Value::Instant(xsd, instant)),
    }
}

/// The value of a duration of any of the three types.
pub(crate) fn parse_duration(lexical: &str, xsd: Xsd) -> Option<Duration> {
    match xsd {
        Xsd::YearMonthDuration => lexical.parse::<YearMonthDuration>().ok().map(Into::into),
        Xsd::DayTimeDuration => lexical.parse::<DayTimeDuration>().ok().map(Into::into),
        _ => lexical.parse().ok(),
    }
}
