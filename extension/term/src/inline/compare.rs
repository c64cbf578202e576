//! Comparison of inlined values without decoding them.

use std::cmp::Ordering;

use super::number;
use crate::{tag, TermId};

/// The order that SPARQL's operators give the values of two ids, where the ids tell it: both integers
/// or decimals, or both short strings. `None` says nothing.
#[inline]
#[must_use]
pub fn compare_inline(a: TermId, b: TermId) -> Option<Ordering> {
    match (a.tag(), b.tag()) {
        (tag::SHORT_STRING, tag::SHORT_STRING) => Some(a.payload().cmp(&b.payload())),
        _ => Some(millionths(a)?.cmp(&millionths(b)?)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compare, inline_id, Term, Xsd};
    use proptest::prelude::*;

    fn literal() -> impl Strategy<Value = (String, Option<Xsd>)> {
        prop_oneof![
            any::<i32>().prop_map(|n| (n.to_string(), Some(Xsd::Integer))),
            (-9i64..9).prop_map(|n| (n.to_string(), Some(Xsd::Long))),
            (1u64..9).prop_map(|n| (n.to_string(), Some(Xsd::PositiveInteger))),
            "-?[1-9]?[0-9](\\.[0-9]{1,6})?".prop_map(|n| (n, Some(Xsd::Decimal))),
            "[a-cé]{0,4}".prop_map(|text| (text, None)),
            Just(("true".to_owned(), Some(Xsd::Boolean))),
        ]
    }

    proptest! {
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
