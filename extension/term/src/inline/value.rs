//! Inlined ids of numbers, without the text between.

use super::number;
use crate::number::Number;
use crate::{tag, Term, TermId, Xsd};

/// The id of an `xsd:integer`, if it is one that can be inlined: any count can.
#[inline]
#[must_use]
pub fn integer_id(value: i64) -> Option<TermId> {
    let payload = number::integer_payload(value, Xsd::Integer)?;
    Some(TermId::new(tag::INTEGER, payload))
}

/// The id of an `xsd:float`: every one can be inlined.
#[inline]
#[must_use]
pub fn float_id(value: f32) -> TermId {
    TermId::new(tag::FLOAT, number::float_payload(value))
}

/// The id of the canonical literal of a number, if that can be inlined.
#[must_use]
pub fn number_id(value: Number) -> Option<TermId> {
    match value {
        Number::Integer(value) => integer_id(i64::try_from(value).ok()?),
        Number::Float(value) => Some(float_id(value)),
        Number::Decimal(_) | Number::Double(_) => {
            let term = value.to_term();
            match term.as_term() {
                literal @ Term::Literal(_) => super::inline_id(&literal),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{inline_id, inline_number, order, TermBuf};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_of_floats_sort_as_the_terms_do(a in any::<u32>(), b in any::<u32>(), shift in 0..32) {
            let (a, b) = (f32::from_bits(a), f32::from_bits(b >> shift << shift));
            for (a, b) in [(a, b), (a, -a), (a, f32::NAN), (0.0, -0.0)] {
                let terms = (Number::Float(a).to_term(), Number::Float(b).to_term());
                prop_assert_eq!(float_id(a).cmp(&float_id(b)), order(&terms.0.as_term(), &terms.1.as_term()));
            }
        }

        #[test]
        fn ids_of_numbers_are_those_of_their_literals(integer in any::<i64>(), bits in any::<u32>(), shift in 0..64) {
            let integer: i64 = integer >> shift;
            let term = TermBuf::integer(integer.into());
            prop_assert_eq!(integer_id(integer), inline_id(&term.as_term()));
            for number in [Number::Integer(integer.into()), Number::Float(f32::from_bits(bits)), Number::Double(f64::from(integer as f32))] {
                let term = number.to_term();
                let id = number_id(number);
                prop_assert_eq!(id, inline_id(&term.as_term()));
                if let Some(id) = id {
                    prop_assert_eq!(inline_number(id).map(|n| n.to_term()), Some(term));
                }
            }
        }
    }

    #[test]
    fn every_float_has_an_id() {
        for value in [
            f32::NAN,
            -f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            0.0,
            -0.0,
            f32::MIN_POSITIVE,
        ] {
            let term = Number::Float(value).to_term();
            assert_eq!(Some(float_id(value)), inline_id(&term.as_term()));
        }
    }
}
