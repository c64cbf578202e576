//! Keys of values: what `=` ([`crate::compare::equal`]) finds equal has equal keys, so that it can be looked up.
//!
//! Promotion makes equality of numbers no equivalence: the decimal 0.1 equals the float 0.1 and the double 0.1, which
//! differ. The key is therefore a coarse one, the nearest float, and says no more than that values may be equal.

use crate::id::tag;
use crate::inline::{inline_number, inline_term};
use crate::number::Number;
use crate::value::Value;
use crate::{Term, TermId};

/// What a term can be looked up by among those that it equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKey {
    /// It equals nothing, not even itself: NaN, and what is no term.
    Never,
    /// It equals itself only: IRIs, blank nodes, strings, language strings, and literals of which nothing is known.
    Itself,
    /// Terms that it equals have the same key.
    Of(u64),
    /// Terms that it equals may have other keys.
    Any,
}

/// Least and greatest id of terms whose key may be other than [`ValueKey::Itself`].
#[must_use]
pub const fn shared_value_ids() -> (TermId, TermId) {
    let low = TermId::new(tag::OTHER, 0);
    let behind = TermId::new(tag::SHORT_STRING, 0);
    (low, TermId(behind.0 - 1))
}

/// The key of a term.
#[must_use]
pub fn key_of(term: &Term<'_>) -> ValueKey {
    let Term::Literal(literal) = term else {
        return ValueKey::Itself;
    };
    match literal.value() {
        Value::String(_) | Value::LangString(..) | Value::Unknown => ValueKey::Itself,
        Value::Boolean(value) => ValueKey::Of(mixed(1, u128::from(value))),
        Value::Number(number) => key_of_number(number),
        Value::Instant(kind, instant) => {
            let seconds = i128::from_be_bytes(instant.seconds.to_be_bytes());
            let class = 4 + 2 * kind as u64 + u64::from(instant.zoned);
            ValueKey::Of(mixed(class, seconds as u128))
        }
        Value::Duration(duration) => {
            let bytes = duration.to_be_bytes();
            let (months, seconds) = bytes.split_at(8);
            let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &b| word << 8 | u128::from(b));
            ValueKey::Of(mixed(2, word(seconds) ^ word(months) << 64))
        }
    }
}

/// The key of the term with an id; `None` where only the dictionary tells.
#[inline]
#[must_use]
pub fn key_of_id(id: TermId) -> Option<ValueKey> {
    let (low, high) = shared_value_ids();
    match id.tag() {
        _ if id == TermId::DEFAULT_GRAPH => Some(ValueKey::Never),
        _ if id < low || id > high => Some(ValueKey::Itself),
        tag::OTHER => None,
        _ => Some(match inline_number(id) {
            Some(number) => key_of_number(number),
            None => inline_term(id).map_or(ValueKey::Never, |term| key_of(&term.as_term())),
        }),
    }
}

/// Bits of a double's significand that the nearest float lacks, and the first of them alone: half-way between two
/// floats.
const LACKING: u64 = (1 << 29) - 1;
const HALF: u64 = 1 << 28;

fn key_of_number(number: Number) -> ValueKey {
    let double = number.to_double();
    if double.is_nan() {
        return ValueKey::Never;
    }
    let float = double as f32;
    // Half-way between two floats it matters whether a number is rounded to a double before.
    let is_exact = matches!(number, Number::Float(_) | Number::Double(_));
    if !is_exact && double.to_bits() & LACKING == HALF && number.to_float() != float {
        return ValueKey::Any;
    }
    // Zero has two signs.
    ValueKey::Of(mixed(3, u128::from((float + 0.0).to_bits())))
}

/// A class of values that are never equal to those of another one, and a value, in 64 bits.
fn mixed(class: u64, value: u128) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let folded = (value >> 64) as u64;
    (value as u64 ^ folded.wrapping_mul(SPREAD).rotate_left(31)).wrapping_mul(SPREAD)
        ^ class.wrapping_mul(SPREAD).rotate_left(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::equal;
    use crate::{inline_id, parse, TermBuf};
    use proptest::prelude::*;

    fn literal(lexical: &str, xsd: &str) -> TermBuf {
        let text = format!("\"{lexical}\"^^<http://www.w3.org/2001/XMLSchema#{xsd}>");
        parse(&text).expect("a literal")
    }

    /// Terms of all kinds, many of them equal to others.
    fn terms() -> impl Strategy<Value = TermBuf> {
        let numbers = "[+-]?(0|1|16777216|16777217|16777218|33554435|9007199254740993|0?4)";
        let of = |types: Vec<&'static str>| prop::sample::select(types);
        prop_oneof![
            (
                numbers,
                of(vec!["integer", "int", "byte", "decimal", "float", "double"])
            )
                .prop_map(|(n, xsd)| literal(&n, xsd)),
            (
                numbers,
                of(vec!["", ".0", ".50", ".1", ".0000000001"]),
                of(vec!["decimal", "float", "double"])
            )
                .prop_map(|(n, rest, xsd)| literal(&format!("{n}{rest}"), xsd)),
            of(vec!["NaN", "INF", "-INF", "-0", "1e-40", "1e300", "0.1"]).prop_flat_map(move |n| {
                of(vec!["float", "double"]).prop_map(move |xsd| literal(n, xsd))
            }),
            of(vec!["true", "1", "false", "0", "2"]).prop_map(|b| literal(b, "boolean")),
            (
                "2020-01-0[1-3]T(00|24|12):00:00(\\.0)?",
                of(vec!["", "Z", "+00:00", "-12:00", "+12:00"])
            )
                .prop_map(|(t, zone)| literal(&format!("{t}{zone}"), "dateTime")),
            ("2020-01-0[1-3]", of(vec!["", "Z", "+00:00"]))
                .prop_map(|(t, zone)| literal(&format!("{t}{zone}"), "date")),
            of(vec!["P1Y", "P12M", "PT24H", "P1D", "P1Y1D", "P12MT24H"])
                .prop_map(|d| literal(d, "duration")),
            of(vec!["P1Y", "P12M"]).prop_map(|d| literal(d, "yearMonthDuration")),
            of(vec!["a", "b", "1", "a longer string"]).prop_map(TermBuf::string),
            of(vec![
                "\"a\"@en",
                "\"a\"@de",
                "\"1\"^^<http://ex.org/t>",
                "\"x\"^^<http://www.w3.org/2001/XMLSchema#int>",
                "<http://ex.org/a>"
            ])
            .prop_map(|text| parse(text).expect("a term")),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn what_is_equal_has_equal_keys(a in terms(), b in terms()) {
            let (a, b) = (a.as_term(), b.as_term());
            let keys = (key_of(&a), key_of(&b));
            if equal(&a, &b) == Ok(true) {
                let found = match keys {
                    (ValueKey::Itself, ValueKey::Itself) => a == b,
                    (ValueKey::Of(x), ValueKey::Of(y)) => x == y,
                    (ValueKey::Any, other) | (other, ValueKey::Any) => {
                        matches!(other, ValueKey::Any | ValueKey::Of(_))
                    }
                    _ => false,
                };
                prop_assert!(found, "{} {} {:?}", a, b, keys);
            }
            for term in [a, b] {
                let Some(id) = inline_id(&term) else { continue };
                prop_assert_eq!(key_of_id(id), Some(key_of(&term)), "{}", term);
            }
        }
    }

    #[test]
    fn rounding_twice_is_noticed() {
        let half = literal("16777217.0000000001", "decimal");
        assert_eq!(key_of(&half.as_term()), ValueKey::Any);
        let float = literal("16777218", "float");
        assert_eq!(equal(&half.as_term(), &float.as_term()), Ok(true));
    }
}
