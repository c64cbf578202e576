//! Comparison of inlined values without decoding them.

use std::cmp::Ordering;

use super::{number, time};
use crate::id::MAX_PAYLOAD;
use crate::number::{compare_promoted, from_raw, Number, ONE};
use crate::{tag, TermId};

/// The order that SPARQL's operators give the values of two ids, where the ids tell it. Both are numbers, short strings
/// or booleans, or both are dates or dateTimes, with time zone or without. `None` says nothing.
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
            _ => compare_promoted(inline_number(a)?, inline_number(b)?),
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

/// The number that an id stands for, if it is that of an inlined number.
#[inline]
#[must_use]
pub fn inline_number(id: TermId) -> Option<Number> {
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

/// Inlined values that have an order, see [`ordinal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scale {
    /// Integers of any type; the ordinal is the value.
    Integers,
    /// Decimals; the ordinal is the value in millionths.
    Decimals,
    /// Doubles, without NaN.
    Doubles,
    /// Booleans.
    Booleans,
    /// Short strings.
    Strings,
    /// `xsd:dateTime` without time zone.
    LocalDateTimes,
    /// `xsd:dateTime` with time zone.
    DateTimes,
    /// `xsd:date` without time zone.
    LocalDates,
    /// `xsd:date` with time zone.
    Dates,
}

/// The number of a value on a scale. Numbers of one scale compare as their values do. `None`: not inlined, or without
/// such a number.
#[inline]
#[must_use]
pub fn ordinal(id: TermId) -> Option<(Scale, i64)> {
    let payload = id.payload();
    Some(match id.tag() {
        tag::INTEGER => (Scale::Integers, number::integer_value(payload)),
        tag::DECIMAL => (Scale::Decimals, number::decimal_millionths(payload)),
        tag::DOUBLE => (Scale::Doubles, number::double_ordinal(payload)?),
        tag::BOOLEAN => (Scale::Booleans, payload as i64),
        tag::SHORT_STRING => (Scale::Strings, payload as i64),
        tag::DATE_TIME | tag::DATE => {
            let (zoned, instant) = time::ordinal(payload);
            let scale = match (id.tag(), zoned) {
                (tag::DATE_TIME, false) => Scale::LocalDateTimes,
                (tag::DATE_TIME, true) => Scale::DateTimes,
                (_, false) => Scale::LocalDates,
                (_, true) => Scale::Dates,
            };
            (scale, instant)
        }
        _ => return None,
    })
}

/// First and last id of the runs in which inlined numbers ascend; outside of them there are none but NaN.
#[must_use]
pub fn ascending_numbers() -> Vec<(u64, u64)> {
    let run = |tag, (low, high)| (TermId::new(tag, low).0, TermId::new(tag, high).0);
    let integers =
        number::INTEGER_RUNS.map(|datatype| run(tag::INTEGER, number::integers(datatype)));
    let others = [
        run(tag::DECIMAL, (0, MAX_PAYLOAD)),
        run(tag::DOUBLE, number::DOUBLES),
        run(tag::FLOAT, number::FLOATS),
    ];
    integers.chain(others).collect()
}

/// First and last id of the runs in which instants of a tag (dates or dateTimes) ascend: without time zone, and with
/// one.
#[must_use]
pub fn ascending_instants(tag: u8) -> Vec<(u64, u64)> {
    let runs = [(0, time::ZONED - 1), (time::ZONED, MAX_PAYLOAD)];
    runs.map(|(low, high)| (TermId::new(tag, low).0, TermId::new(tag, high).0))
        .to_vec()
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
            "(NaN|INF|-INF|0\\.0E0|-0\\.0E0)".prop_map(|n| (n, Some(Xsd::Double))),
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
                if let (Some((s, m)), Some((t, n))) = (ordinal(x), ordinal(y)) {
                    if s == t {
                        prop_assert_eq!(compare_inline(x, y), Some(m.cmp(&n)));
                    }
                }
                if let Some(order) = compare_inline(x, y) {
                    prop_assert_eq!(compare::compare(&a, &b), Ok(Some(order)));
                    prop_assert_eq!(compare::equal(&a, &b), Ok(order.is_eq()));
                }
            }
        }
    }
}
