//! Comparison of inlined values without decoding them.

use std::cmp::Ordering;

use super::{number, time};
use crate::number::{compare_promoted, from_raw, Number, ONE};
use crate::{tag, TermId};

/// The order that SPARQL's operators give the values of two ids, where the ids tell it: both numbers,
/// short strings or booleans, or both dates or dateTimes, with time zone or without. `None` says nothing.
#[inline]
#[must_use]
pub fn compare_inline(a: TermId, b: TermId) -> Option<Ordering> {
    match (a.tag(), b.tag()) {
        (tag::SHORT_STRING, tag::SHORT_STRING) | (tag::BOOLEAN, tag::BOOLEAN) => {
            Some(a.payload().cmp(&b.payload()))
        }
        (tag::DATE_TIME, tag::DATE_TIME) | (tag::DATE, tag::DATE) => {
            time::compare(a.payload(), b.payload())
        }
        _ => match (millionths(a), millionths(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => compare_promoted(number(a)?, number(b)?),
        },
    }
}

/// The value of an integer or decimal in millionths.
fn millionths(id: TermId) -> Option<i128> {
    match id.tag() {
        tag::INTEGER => Some(i128::from(number::integer_value(id.payload())) * 1_000_000),
        tag::DECIMAL => Some(i128::from(number::decimal_millionths(id.payload()))),
        _ => None,
    }
}

/// The value of a number.
fn number(id: TermId) -> Option<Number> {
    let payload = id.payload();
    match id.tag() {
        tag::INTEGER => Some(Number::Integer(number::integer_value(payload).into())),
        tag::DECIMAL => {
            let millionths = i128::from(number::decimal_millionths(payload));
            Some(Number::Decimal(from_raw(millionths * (ONE / 1_000_000))))
        }
        tag::DOUBLE => Some(Number::Double(number::double_value(payload))),
        tag::FLOAT => number::float_value(payload).map(Number::Float),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{format_double, format_float};
    use crate::{compare, inline_id, Term, Xsd};
    use proptest::prelude::*;

    fn literal() -> impl Strategy<Value = (String, Option<Xsd>)> {
        prop_oneof![
            any::<i32>().prop_map(|n| (n.to_string(), Some(Xsd::Integer))),
            (-9i64..9).prop_map(|n| (n.to_string(), Some(Xsd::Long))),
            (1u64..9).prop_map(|n| (n.to_string(), Some(Xsd::PositiveInteger))),
            "-?[1-9]?[0-9](\\.[0-9]{1,6})?".prop_map(|n| (n, Some(Xsd::Decimal))),
            "[a-cé]{0,4}".prop_map(|text| (text, None)),
            "(true|false)".prop_map(|text| (text, Some(Xsd::Boolean))),
            (any::<i64>(), 0_u32..64)
                .prop_map(|(n, shift)| (format_double((n >> shift) as f64), Some(Xsd::Double))),
            any::<f32>().prop_map(|n| (format_double(n.into()), Some(Xsd::Double))),
            (-9_i8..9).prop_map(|n| (format_float(f32::from(n) / 4.0), Some(Xsd::Float))),
            Just(("NaN".to_owned(), Some(Xsd::Float))),
            "2020-01-0[1-3](Z|[+-]1[0-4]:00)?".prop_map(|text| (text, Some(Xsd::Date))),
            "2020-01-0[1-3]T0[0-9]:00:00(\\.5)?(Z|[+-]0[1-4]:00)?"
                .prop_map(|text| (text, Some(Xsd::DateTime))),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn agrees_with_the_operators((a, b) in (literal(), literal())) {
            let term = |literal: &(String, Option<Xsd>)| match literal.1 {
                Some(xsd) => Term::xsd(&literal.0, xsd).to_buf(),
                None => Term::string(&literal.0).to_buf(),
            };
            let (a, b) = (term(&a), term(&b));
            let (a, b) = (a.as_term(), b.as_term());
            if let (Some(x), Some(y)) = (inline_id(&a), inline_id(&b)) {
                if let Some(order) = compare_inline(x, y) {
                    prop_assert_eq!(compare::compare(&a, &b), Ok(Some(order)));
                    prop_assert_eq!(compare::equal(&a, &b), Ok(order.is_eq()));
                }
            }
        }
    }
}
