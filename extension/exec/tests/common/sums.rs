//! Sums of values, added up one by one.

use crate::common::number_of;
use pgquad_term::aggregate::Sum;
use pgquad_term::number::Number;

/// The sum of some values; `None` for an error.
pub fn sum_of(values: impl Iterator<Item = Option<u64>>) -> Option<i128> {
    let mut sum = Sum::default();
    values.for_each(|value| sum.step_number(value.map(number_of)));
    integer(&sum)
}

/// The value of a sum of integers; `None` for an error.
pub fn integer(sum: &Sum) -> Option<i128> {
    match sum.sum() {
        Ok(Number::Integer(value)) => Some(value),
        _ => None,
    }
}
