//! Comparing numbers: with promotion, as the operators do, and exactly, as sorting must.

use super::{to_raw, Number, Pair, ONE};
use std::cmp::Ordering;

/// op:numeric-equal and op:numeric-less-than: both sides are promoted to their common type first.
/// `None` when one is not a number.
#[must_use]
pub fn compare_promoted(a: Number, b: Number) -> Option<Ordering> {
    match a.promote(b) {
        Ok(Pair::Integers(a, b)) => Some(a.cmp(&b)),
        Ok(Pair::Decimals(a, b)) => Some(a.cmp(&b)),
        Ok(Pair::Floats(a, b)) => a.partial_cmp(&b),
        Ok(Pair::Doubles(a, b)) => a.partial_cmp(&b),
        // An integer too large for a decimal still compares with one.
        Err(_) => Some(compare_exactly(a, b)),
    }
}

/// The order of the exact values. Promotion would not do for sorting: 2^53 and 2^53 + 1 differ,
/// but both equal the double 2^53. Not-a-number comes last and equals itself.
pub(crate) fn compare_exactly(a: Number, b: Number) -> Ordering {
    use Number::{Decimal, Double, Float, Integer};
    match (a, b) {
        (Float(a), _) => compare_exactly(Double(f64::from(a)), b),
        (_, Float(b)) => compare_exactly(a, Double(f64::from(b))),
        (Integer(a), Integer(b)) => a.cmp(&b),
        (Decimal(a), Decimal(b)) => a.cmp(&b),
        (Integer(a), Decimal(b)) => compare_parts((a, 0), parts(to_raw(b))),
        (Decimal(a), Integer(b)) => compare_parts(parts(to_raw(a)), (b, 0)),
        (Double(a), Double(b)) => a
            .partial_cmp(&b)
            .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        (Integer(a), Double(b)) => compare_with_double((a, 0), b),
        (Decimal(a), Double(b)) => compare_with_double(parts(to_raw(a)), b),
        (Double(_), Integer(_) | Decimal(_)) => compare_exactly(b, a).reverse(),
    }
}

/// Floor, and the rest in units of 10^-18.
fn parts(raw: i128) -> (i128, i128) {
    (raw.div_euclid(ONE), raw.rem_euclid(ONE))
}

fn compare_parts(a: (i128, i128), b: (i128, i128)) -> Ordering {
    a.cmp(&b)
}

fn compare_with_double((whole, fraction): (i128, i128), other: f64) -> Ordering {
    const LIMIT: f64 = (1_u128 << 127) as f64;
    if other.is_nan() || other >= LIMIT {
        return Ordering::Less;
    }
    if other < -LIMIT {
        return Ordering::Greater;
    }
    if other == -LIMIT {
        return compare_parts((whole, fraction), (i128::MIN, 0));
    }
    if other < 0.0 {
        // The mirror image: the difference to the floor would be rounded.
        let mirrored = match fraction {
            0 => (whole.saturating_neg(), 0),
            _ => (!whole, ONE - fraction),
        };
        return compare_with_double(mirrored, -other).reverse();
    }
    // Floor and difference are exact.
    let floor = other.floor();
    whole.cmp(&(floor as i128)).then_with(|| {
        let (digits, exact) = fraction_of_double(other - floor);
        let order = fraction.cmp(&digits);
        if exact {
            order
        } else {
            order.then(Ordering::Less)
        }
    })
}

/// A double in [0, 1) in units of 10^-18, cut off, and whether nothing was cut off.
fn fraction_of_double(value: f64) -> (i128, bool) {
    let bits = value.to_bits();
    let exponent = bits >> 52;
    let mantissa = bits & ((1 << 52) - 1);
    // value = mantissa / 2^shift
    let (mantissa, shift) = match exponent {
        0 => (mantissa, 1074),
        _ => (mantissa | 1 << 52, 1075 - exponent),
    };
    // Below 2^113.
    let scaled = u128::from(mantissa) * ONE as u128;
    match u32::try_from(shift) {
        Ok(shift) if shift < 128 => {
            let digits = scaled >> shift;
            (digits as i128, digits << shift == scaled)
        }
        _ => (0, scaled == 0),
    }
}
