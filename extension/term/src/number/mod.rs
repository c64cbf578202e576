//! Numbers: values, promotion and arithmetic of SPARQL 1.1 section 17.3, after XPath and XQuery
//! Functions and Operators section 6.

mod decimal;
mod float;
mod order;

pub(crate) use decimal::{from_raw, parse_decimal, to_raw, NoNumber, ONE};
pub(crate) use float::{double_to_string, float_to_string};
pub use float::{format_double, format_float, parse_double, parse_float};
pub(crate) use order::compare_exactly;
pub use order::compare_promoted;

use crate::error::{Error, Result};
use crate::xsd::Xsd;
use crate::TermBuf;
use oxsdatatypes::Decimal;

/// A numeric value. Integers have 38 digits, decimals 18 fraction digits and magnitudes up to
/// 1.7e20.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// `xsd:integer` or a type derived from it.
    Integer(i128),
    /// `xsd:decimal`.
    Decimal(Decimal),
    /// `xsd:float`.
    Float(f32),
    /// `xsd:double`.
    Double(f64),
}

/// Two numbers after promotion to their common type.
enum Pair {
    Integers(i128, i128),
    Decimals(Decimal, Decimal),
    Floats(f32, f32),
    Doubles(f64, f64),
}

impl Number {
    /// The value of a literal of a numeric datatype.
    pub(crate) fn parse(lexical: &str, xsd: Xsd) -> std::result::Result<Self, NoNumber> {
        match xsd {
            Xsd::Decimal => parse_decimal(lexical).map(Self::Decimal),
            Xsd::Double => parse_double(lexical)
                .map(Self::Double)
                .ok_or(NoNumber::Malformed),
            Xsd::Float => parse_float(lexical)
                .map(Self::Float)
                .ok_or(NoNumber::Malformed),
            _ => match parse_integer(lexical)? {
                value if xsd.admits(value) => Ok(Self::Integer(value)),
                _ => Err(NoNumber::Malformed),
            },
        }
    }

    /// The literal in canonical form.
    #[must_use]
    pub fn to_term(self) -> TermBuf {
        match self {
            Self::Integer(value) => TermBuf::integer(value),
            Self::Decimal(value) => TermBuf::xsd(&value.to_string(), Xsd::Decimal),
            Self::Float(value) => TermBuf::xsd(&format_float(value), Xsd::Float),
            Self::Double(value) => TermBuf::xsd(&format_double(value), Xsd::Double),
        }
    }

    /// The value as a decimal.
    ///
    /// # Errors
    /// Too large, infinite or no number.
    pub(crate) fn to_decimal(self) -> Result<Decimal> {
        match self {
            Self::Integer(value) => decimal::from_integer(value),
            Self::Decimal(value) => Ok(value),
            Self::Float(value) => decimal::from_double(f64::from(value)),
            Self::Double(value) => decimal::from_double(value),
        }
    }

    pub(crate) fn to_float(self) -> f32 {
        match self {
            Self::Integer(value) => value as f32,
            Self::Decimal(value) => decimal::to_float(value),
            Self::Float(value) => value,
            Self::Double(value) => value as f32,
        }
    }

    /// The value as a double.
    #[must_use]
    pub fn to_double(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Decimal(value) => decimal::to_double(value),
            Self::Float(value) => f64::from(value),
            Self::Double(value) => value,
        }
    }

    /// The integer part.
    ///
    /// # Errors
    /// Too large, infinite or no number.
    pub(crate) fn to_integer(self) -> Result<i128> {
        let from_double = |value: f64| {
            let whole = value.trunc();
            // Both bounds are powers of two, so the comparison is exact.
            if whole >= -(2_f64.powi(127)) && whole < 2_f64.powi(127) {
                Ok(whole as i128)
            } else {
                Err(Error::Overflow)
            }
        };
        match self {
            Self::Integer(value) => Ok(value),
            Self::Decimal(value) => Ok(to_raw(value) / ONE),
            Self::Float(value) => from_double(f64::from(value)),
            Self::Double(value) => from_double(value),
        }
    }

    /// The nearest integer, halves away from zero as SQL rounds them; `None` when there is none in
    /// range.
    #[must_use]
    pub fn rounded_half_away(self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(value),
            Self::Decimal(value) => {
                let raw = to_raw(value);
                Some(raw / ONE + raw % ONE / (ONE / 2))
            }
            Self::Float(value) => Self::Double(f64::from(value)).rounded_half_away(),
            Self::Double(value) => Self::Double(value.round()).to_integer().ok(),
        }
    }

    /// Whether it is an integer by its value, however it is written.
    #[must_use]
    pub fn is_whole(self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Decimal(value) => to_raw(value) % ONE == 0,
            Self::Float(value) => value.fract() == 0.0,
            Self::Double(value) => value.fract() == 0.0,
        }
    }

    /// Whether the effective boolean value is false: zero or not a number.
    #[must_use]
    pub fn is_falsy(self) -> bool {
        match self {
            Self::Integer(value) => value == 0,
            Self::Decimal(value) => to_raw(value) == 0,
            Self::Float(value) => value == 0.0 || value.is_nan(),
            Self::Double(value) => value == 0.0 || value.is_nan(),
        }
    }

    fn promote(self, other: Self) -> Result<Pair> {
        Ok(match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Pair::Integers(a, b),
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                Pair::Doubles(self.to_double(), other.to_double())
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => {
                Pair::Floats(self.to_float(), other.to_float())
            }
            _ => Pair::Decimals(self.to_decimal()?, other.to_decimal()?),
        })
    }

    /// op:numeric-add.
    ///
    /// # Errors
    /// Overflow of integers and decimals.
    pub fn checked_add(self, other: Self) -> Result<Self> {
        Ok(match self.promote(other)? {
            Pair::Integers(a, b) => Self::Integer(a.checked_add(b).ok_or(Error::Overflow)?),
            Pair::Decimals(a, b) => Self::Decimal(a.checked_add(b).ok_or(Error::Overflow)?),
            Pair::Floats(a, b) => Self::Float(a + b),
            Pair::Doubles(a, b) => Self::Double(a + b),
        })
    }

    /// op:numeric-subtract.
    ///
    /// # Errors
    /// Overflow of integers and decimals.
    pub fn checked_sub(self, other: Self) -> Result<Self> {
        Ok(match self.promote(other)? {
            Pair::Integers(a, b) => Self::Integer(a.checked_sub(b).ok_or(Error::Overflow)?),
            Pair::Decimals(a, b) => Self::Decimal(a.checked_sub(b).ok_or(Error::Overflow)?),
            Pair::Floats(a, b) => Self::Float(a - b),
            Pair::Doubles(a, b) => Self::Double(a - b),
        })
    }

    /// op:numeric-multiply. Decimals keep 18 fraction digits, the rest is cut off.
    ///
    /// # Errors
    /// Overflow of integers and decimals.
    pub fn checked_mul(self, other: Self) -> Result<Self> {
        Ok(match self.promote(other)? {
            Pair::Integers(a, b) => Self::Integer(a.checked_mul(b).ok_or(Error::Overflow)?),
            Pair::Decimals(a, b) => Self::Decimal(decimal::multiply(a, b)?),
            Pair::Floats(a, b) => Self::Float(a * b),
            Pair::Doubles(a, b) => Self::Double(a * b),
        })
    }

    /// op:numeric-divide. Two integers give a decimal; decimals keep 18 fraction digits, the rest
    /// is cut off.
    ///
    /// # Errors
    /// Division of integers or decimals by zero, overflow.
    pub fn checked_div(self, other: Self) -> Result<Self> {
        Ok(match self.promote(other)? {
            Pair::Integers(a, b) => Self::Decimal(decimal::divide_integers(a, b)?),
            Pair::Decimals(a, b) => Self::Decimal(decimal::divide(a, b)?),
            Pair::Floats(a, b) => Self::Float(a / b),
            Pair::Doubles(a, b) => Self::Double(a / b),
        })
    }

    /// op:numeric-unary-minus.
    ///
    /// # Errors
    /// Overflow.
    pub fn checked_neg(self) -> Result<Self> {
        Ok(match self {
            Self::Integer(value) => Self::Integer(value.checked_neg().ok_or(Error::Overflow)?),
            Self::Decimal(value) => Self::Decimal(value.checked_neg().ok_or(Error::Overflow)?),
            Self::Float(value) => Self::Float(-value),
            Self::Double(value) => Self::Double(-value),
        })
    }

    /// fn:abs.
    ///
    /// # Errors
    /// Overflow.
    pub fn abs(self) -> Result<Self> {
        Ok(match self {
            Self::Integer(value) => Self::Integer(value.checked_abs().ok_or(Error::Overflow)?),
            Self::Decimal(value) => Self::Decimal(value.checked_abs().ok_or(Error::Overflow)?),
            Self::Float(value) => Self::Float(value.abs()),
            Self::Double(value) => Self::Double(value.abs()),
        })
    }

    /// fn:round: halves go up, towards positive infinity.
    ///
    /// # Errors
    /// Overflow.
    pub fn round(self) -> Result<Self> {
        Ok(match self {
            Self::Integer(value) => Self::Integer(value),
            Self::Decimal(value) => Self::Decimal(value.checked_round().ok_or(Error::Overflow)?),
            Self::Float(value) => Self::Float(oxsdatatypes::Float::from(value).round().into()),
            Self::Double(value) => Self::Double(oxsdatatypes::Double::from(value).round().into()),
        })
    }

    /// fn:ceiling.
    ///
    /// # Errors
    /// Overflow.
    pub fn ceil(self) -> Result<Self> {
        Ok(match self {
            Self::Integer(value) => Self::Integer(value),
            Self::Decimal(value) => Self::Decimal(value.checked_ceil().ok_or(Error::Overflow)?),
            Self::Float(value) => Self::Float(value.ceil()),
            Self::Double(value) => Self::Double(value.ceil()),
        })
    }

    /// fn:floor.
    ///
    /// # Errors
    /// Overflow.
    pub fn floor(self) -> Result<Self> {
        Ok(match self {
            Self::Integer(value) => Self::Integer(value),
            Self::Decimal(value) => Self::Decimal(value.checked_floor().ok_or(Error::Overflow)?),
            Self::Float(value) => Self::Float(value.floor()),
            Self::Double(value) => Self::Double(value.floor()),
        })
    }
}

/// The value of an `xsd:integer`: `[+-]?[0-9]+`.
fn parse_integer(lexical: &str) -> std::result::Result<i128, NoNumber> {
    let digits = lexical.strip_prefix(['+', '-']).unwrap_or(lexical);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NoNumber::Malformed);
    }
    lexical.parse().map_err(|_| NoNumber::TooLarge)
}
