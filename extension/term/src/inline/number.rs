//! Numbers in ids.

use crate::number::{format_double, format_float, parse_double, parse_float};
use crate::xsd::Xsd;

/// Integers take 55 bits beside the four that tell the datatype.
const INTEGER_BITS: u32 = 55;
const INTEGER_BIAS: i64 = 1 << (INTEGER_BITS - 1);

/// Decimals are scaled by a million; the low bits of the payload tell how many fraction digits
/// were written.
const FRACTION_DIGITS: usize = 6;
const DIGITS_BITS: u32 = 3;
const DECIMAL_BIAS: i64 = 1 << 55;

/// Low bits of an IEEE double that must be clear.
const DOUBLE_DROPPED_BITS: u32 = 5;

/// Value of a canonical integer (no plus sign, no needless zero, no minus zero), if it is below
/// 10^18.
fn parse_canonical_integer(lexical: &str) -> Option<i64> {
    let (negative, digits) = match lexical.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0', rest @ ..] if negative || !rest.is_empty() => return None,
        _ if digits.len() > 18 => return None,
        _ => {}
    }
    let mut value = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

pub(super) fn encode_integer(lexical: &str, xsd: Xsd) -> Option<u64> {
    integer_payload(parse_canonical_integer(lexical)?, xsd)
}

/// The payload of an integer of this datatype, if the value has room and the datatype admits it.
#[inline]
pub(super) fn integer_payload(value: i64, xsd: Xsd) -> Option<u64> {
    if !(-INTEGER_BIAS..INTEGER_BIAS).contains(&value) || !xsd.admits(i128::from(value)) {
        return None;
    }
    let datatype = u64::from(xsd.code() - Xsd::Integer.code());
    Some(datatype << INTEGER_BITS | (value + INTEGER_BIAS) as u64)
}

/// The numbers of the integer types.
pub(super) const INTEGER_RUNS: std::ops::RangeInclusive<u64> =
    0..=(Xsd::PositiveInteger.code() - Xsd::Integer.code()) as u64;

/// Least and greatest payload of an integer type.
pub(super) fn integers(datatype: u64) -> (u64, u64) {
    let first = datatype << INTEGER_BITS;
    (first, first | ((1 << INTEGER_BITS) - 1))
}

/// Least and greatest payload of the doubles that are numbers.
pub(super) const DOUBLES: (u64, u64) = (
    !f64::NEG_INFINITY.to_bits() >> DOUBLE_DROPPED_BITS,
    (f64::INFINITY.to_bits() | 1 << 63) >> DOUBLE_DROPPED_BITS,
);

/// Least and greatest payload of the floats that are numbers.
pub(super) const FLOATS: (u64, u64) = (
    !f32::NEG_INFINITY.to_bits() as u64,
    (f32::INFINITY.to_bits() | 1 << 31) as u64,
);

/// The value of an inlined integer.
#[inline]
pub(super) fn integer_value(payload: u64) -> i64 {
    (payload & ((1 << INTEGER_BITS) - 1)) as i64 - INTEGER_BIAS
}

/// The value of an inlined decimal, in millionths.
#[inline]
pub(super) fn decimal_millionths(payload: u64) -> i64 {
    (payload >> DIGITS_BITS) as i64 - DECIMAL_BIAS
}

/// The type of an inlined integer.
#[inline]
pub(super) fn integer_type(payload: u64) -> Option<Xsd> {
    let datatype = (payload >> INTEGER_BITS) as u8;
    Xsd::from_code(datatype + Xsd::Integer.code()).filter(|xsd| xsd.is_integer())
}

pub(super) fn decode_integer(payload: u64) -> Option<(String, Xsd)> {
    let xsd = integer_type(payload)?;
    let value = integer_value(payload);
    xsd.admits(i128::from(value))
        .then(|| (value.to_string(), xsd))
}

pub(super) fn encode_decimal(lexical: &str) -> Option<u64> {
    let (negative, digits) = match lexical.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, lexical),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) if (1..=FRACTION_DIGITS).contains(&fraction.len()) => {
            (whole, fraction)
        }
        Some(_) => return None,
        None => (digits, ""),
    };
    // The bias leaves room for eleven digits before the point.
    if whole.len() > 11 || whole.starts_with('-') {
        return None;
    }
    let mut scaled = parse_canonical_integer(whole)?;
    for digit in 0..FRACTION_DIGITS {
        scaled = scaled * 10
            + match fraction.as_bytes().get(digit) {
                Some(digit @ b'0'..=b'9') => i64::from(digit - b'0'),
                Some(_) => return None,
                None => 0,
            };
    }
    if scaled >= DECIMAL_BIAS || (negative && scaled == 0) {
        return None;
    }
    let scaled = if negative { -scaled } else { scaled };
    Some(((scaled + DECIMAL_BIAS) as u64) << DIGITS_BITS | fraction.len() as u64)
}

pub(super) fn decode_decimal(payload: u64) -> Option<String> {
    let digits = (payload & ((1 << DIGITS_BITS) - 1)) as usize;
    let dropped = 10_u64.pow(FRACTION_DIGITS.checked_sub(digits)? as u32);
    let scaled = decimal_millionths(payload);
    // The least number of the payload has no positive counterpart, and is not given to any decimal.
    if scaled == -DECIMAL_BIAS {
        return None;
    }
    let sign = if scaled < 0 { "-" } else { "" };
    let magnitude = scaled.unsigned_abs();
    if !magnitude.is_multiple_of(dropped) {
        return None;
    }
    let one = 10_u64.pow(FRACTION_DIGITS as u32);
    let whole = magnitude / one;
    Some(if digits == 0 {
        format!("{sign}{whole}")
    } else {
        let fraction = magnitude % one / dropped;
        format!("{sign}{whole}.{fraction:0digits$}")
    })
}

pub(super) fn encode_double(lexical: &str) -> Option<u64> {
    let value = parse_double(lexical)?;
    let bits = value.to_bits();
    if bits & ((1 << DOUBLE_DROPPED_BITS) - 1) != 0 || format_double(value) != lexical {
        return None;
    }
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    Some(ordered >> DOUBLE_DROPPED_BITS)
}

/// The value of an inlined double.
#[inline]
pub(super) fn double_value(payload: u64) -> f64 {
    let ordered = payload << DOUBLE_DROPPED_BITS;
    f64::from_bits(if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !(ordered | ((1 << DOUBLE_DROPPED_BITS) - 1))
    })
}

/// A number that sorts as the doubles do; `None` for NaN.
#[inline]
pub(super) fn double_ordinal(payload: u64) -> Option<i64> {
    const POSITIVE_ZERO: u64 = 1 << (63 - DOUBLE_DROPPED_BITS);
    const NEGATIVE_ZERO: u64 = POSITIVE_ZERO - 1;
    match payload {
        NEGATIVE_ZERO => Some(POSITIVE_ZERO as i64),
        _ if double_value(payload).is_nan() => None,
        _ => Some(payload as i64),
    }
}

pub(super) fn decode_double(payload: u64) -> Option<String> {
    let value = double_value(payload);
    // Of the many NaNs only one is ever encoded.
    (!value.is_nan() || value.to_bits() == f64::NAN.to_bits()).then(|| format_double(value))
}

pub(super) fn encode_float(lexical: &str) -> Option<u64> {
    let value = parse_float(lexical)?;
    (format_float(value) == lexical).then(|| float_payload(value))
}

/// The payload of a float. Of the many NaNs only one is ever encoded.
#[inline]
pub(super) fn float_payload(value: f32) -> u64 {
    let bits = if value.is_nan() { f32::NAN } else { value }.to_bits();
    let ordered = if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    };
    u64::from(ordered)
}

/// The value of an inlined float; `None` for a payload that no float has.
#[inline]
pub(super) fn float_value(payload: u64) -> Option<f32> {
    let ordered = u32::try_from(payload).ok()?;
    Some(f32::from_bits(if ordered >> 31 == 1 {
        ordered & !(1 << 31)
    } else {
        !ordered
    }))
}

pub(super) fn decode_float(payload: u64) -> Option<String> {
    let value = float_value(payload)?;
    (!value.is_nan() || value.to_bits() == f32::NAN.to_bits()).then(|| format_float(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_at_the_ends_of_the_range() {
        assert_eq!(encode_decimal("-36028797018.963968"), None);
        assert_eq!(decode_decimal(FRACTION_DIGITS as u64), None);
        for end in ["-36028797018.963967", "36028797018.963967"] {
            let payload = encode_decimal(end).unwrap();
            assert_eq!(decode_decimal(payload).as_deref(), Some(end));
        }
    }
}
