//! Decimals: what `oxsdatatypes` leaves open. Its products and quotients fail when the exact result has more than 18
//! fraction digits, or an intermediate result is too long. XPath asks for a rounded result there.

use crate::error::{Error, Result};
use oxsdatatypes::Decimal;

const FRACTION_DIGITS: u32 = 18;
/// The integer that stands for the decimal 1.
pub(crate) const ONE: i128 = 10_i128.pow(FRACTION_DIGITS);

/// The value times 10^18.
pub(crate) fn to_raw(value: Decimal) -> i128 {
    i128::from_be_bytes(value.to_be_bytes())
}

/// The decimal of a value times 10^18.
pub(crate) fn from_raw(raw: i128) -> Decimal {
    Decimal::from_be_bytes(raw.to_be_bytes())
}

/// Why a lexical form has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// Not in the lexical space of the datatype.
    Malformed,
    /// A number, but outside the supported range.
    TooLarge,
}

/// The value of an `xsd:decimal`: `[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)`. Fraction digits beyond the
/// 18th are cut off.
pub(crate) fn parse_decimal(lexical: &str) -> std::result::Result<Decimal, NoNumber> {
    let (negative, digits) = match lexical.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let mut raw = Some(0_i128);
    let mut digits_seen = 0;
    let mut fraction_digits = None;
    for byte in digits {
        match (byte, &mut fraction_digits) {
            (b'0'..=b'9', fraction) => {
                digits_seen += 1;
                if let Some(fraction) = fraction {
                    if *fraction == FRACTION_DIGITS {
                        continue;
                    }
                    *fraction += 1;
                }
                let digit = i128::from(byte - b'0');
                // Kept negative: the range is one larger there.
                raw = raw
                    .and_then(|raw| raw.checked_mul(10))
                    .and_then(|raw| raw.checked_sub(digit));
            }
            (b'.', None) => fraction_digits = Some(0),
            _ => return Err(NoNumber::Malformed),
        }
    }
    if digits_seen == 0 {
        return Err(NoNumber::Malformed);
    }
    let missing = FRACTION_DIGITS - fraction_digits.unwrap_or(0);
    let raw = raw.and_then(|raw| raw.checked_mul(10_i128.pow(missing)));
    let raw = if negative {
        raw
    } else {
        raw.and_then(i128::checked_neg)
    };
    raw.map(from_raw).ok_or(NoNumber::TooLarge)
}

pub(super) fn from_integer(value: i128) -> Result<Decimal> {
    value.checked_mul(ONE).map(from_raw).ok_or(Error::Overflow)
}

/// The nearest decimal.
pub(super) fn from_double(value: f64) -> Result<Decimal> {
    if !value.is_finite() {
        return Err(Error::Overflow);
    }
    let digits = FRACTION_DIGITS as usize;
    parse_decimal(&format!("{value:.digits$}")).map_err(|_| Error::Overflow)
}

/// Numerator and power of ten of the denominator, without common factors of ten.
fn reduced(value: Decimal) -> (i128, u32) {
    let mut raw = to_raw(value);
    let mut scale = FRACTION_DIGITS;
    while scale > 0 && raw % 10 == 0 {
        raw /= 10;
        scale -= 1;
    }
    (raw, scale)
}

pub(super) fn to_double(value: Decimal) -> f64 {
    let (raw, scale) = reduced(value);
    if raw.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS {
        // Both operands are exact, so the division rounds once.
        raw as f64 / 10_f64.powi(scale as i32)
    } else {
        parsed(value)
    }
}

pub(super) fn to_float(value: Decimal) -> f32 {
    let (raw, scale) = reduced(value);
    if scale == 0 {
        raw as f32
    } else {
        parsed(value)
    }
}

fn parsed<T: std::str::FromStr<Err = std::num::ParseFloatError>>(value: Decimal) -> T {
    value
        .to_string()
        .parse()
        .expect("a decimal is a floating point number")
}

pub(super) fn multiply(a: Decimal, b: Decimal) -> Result<Decimal> {
    match a.checked_mul(b) {
        Some(product) => Ok(product),
        None => scaled(to_raw(a), to_raw(b), ONE),
    }
}

pub(super) fn divide(a: Decimal, b: Decimal) -> Result<Decimal> {
    scaled(to_raw(a), ONE, to_raw(b))
}

pub(super) fn divide_integers(a: i128, b: i128) -> Result<Decimal> {
    scaled(a, ONE, b)
}

/// The decimal with the raw value `a * b / c`, cut off towards zero.
fn scaled(a: i128, b: i128, c: i128) -> Result<Decimal> {
    if c == 0 {
        return Err(Error::DivisionByZero);
    }
    let negative = (a < 0) ^ (b < 0) ^ (c < 0);
    let (a, b, c) = (a.unsigned_abs(), b.unsigned_abs(), c.unsigned_abs());
    let magnitude = match a.checked_mul(b) {
        Some(product) => product / c,
        None => long_divide(long_multiply(a, b), c).ok_or(Error::Overflow)?,
    };
    let raw = if negative {
        0_i128.checked_sub_unsigned(magnitude)
    } else {
        0_i128.checked_add_unsigned(magnitude)
    };
    raw.map(from_raw).ok_or(Error::Overflow)
}

/// High and low half of a product.
fn long_multiply(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0) = (a >> 64, a & LOW);
    let (b1, b0) = (b >> 64, b & LOW);
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 64);
    let other = a0 * b1 + (middle & LOW);
    (
        a1 * b1 + (middle >> 64) + (other >> 64),
        (other << 64) | (low & LOW),
    )
}

/// The quotient, if it fits, by shifting and subtracting.
fn long_divide((high, low): (u128, u128), divisor: u128) -> Option<u128> {
    if high >= divisor {
        return None;
    }
    let mut rest = high;
    let mut quotient = 0;
    for bit in (0..128).rev() {
        let carry = rest >> 127;
        rest = (rest << 1) | ((low >> bit) & 1);
        quotient <<= 1;
        if carry == 1 || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
    }
    Some(quotient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_operations() {
        assert_eq!(long_multiply(u128::MAX, u128::MAX), (u128::MAX - 1, 1));
        assert_eq!(long_divide((u128::MAX - 1, 1), u128::MAX), Some(u128::MAX));
        assert_eq!(long_divide((1, 0), 1), None);
        assert_eq!(long_divide((1, 0), 3), Some(u128::MAX / 3));
    }

    proptest! {
        #[test]
        fn product_and_quotient(a in any::<u128>(), b in 1..u128::MAX, rest in any::<u128>()) {
            let (high, low) = long_multiply(a, b);
            let (low, carry) = low.overflowing_add(rest % b);
            prop_assert_eq!(long_divide((high + u128::from(carry), low), b), Some(a));
        }

        #[test]
        fn agrees_with_oxsdatatypes(a in any::<i64>(), b in any::<i64>(), x in 0_u32..19, y in 0_u32..19) {
            let decimal = |i: i64, n: u32| Decimal::new(i128::from(i), n).expect("fits");
            let (a, b) = (decimal(a, x), decimal(b, y));
            if let Some(product) = a.checked_mul(b) {
                prop_assert_eq!(scaled(to_raw(a), to_raw(b), ONE), Ok(product));
            }
            if let Some(quotient) = a.checked_div(b) {
                prop_assert_eq!(divide(a, b), Ok(quotient));
            }
            prop_assert_eq!(parse_decimal(&a.to_string()), Ok(a));
        }
    }
}
