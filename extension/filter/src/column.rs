//! Values of an expression for some rows, and operators on them; rows of one kind go in tight loops.

use crate::operators::{Arithmetic, Comparison};
use crate::truth::Truth;
use crate::value::Value;
use pgquad_term::number::Number;
use pgquad_term::{ordinal, Scale, TermId};
use std::borrow::Cow;

/// Terms, one for each row.
pub(crate) enum Column<'r> {
    /// The same for all rows.
    Same(Value),
    /// Terms with these ids, as keys.
    Keys(&'r [u64]),
    /// Integers.
    Integers(Vec<i64>),
    /// Any.
    Values(Vec<Value>),
}

/// Truth values, one for each row.
#[derive(Clone)]
pub(crate) enum Truths {
    /// The same for all rows.
    Same(Truth),
    /// Any.
    Each(Vec<Truth>),
}

impl Column<'_> {
    /// The value for a row.
    #[inline]
    pub fn at(&self, row: usize) -> Value {
        match self {
            Self::Same(value) => *value,
            Self::Keys(keys) => Value::of_key(Some(keys[row])),
            Self::Integers(integers) => Value::Number(Number::Integer(integers[row].into())),
            Self::Values(values) => values[row],
        }
    }

    /// Numbers that compare as the values do, if all are of one scale.
    fn ordinals(&self) -> Option<(Scale, Cow<'_, [i64]>)> {
        match self {
            Self::Keys(keys) => {
                let (scale, _) = ordinal_of_key(*keys.first()?)?;
                let mut ordinals = Vec::with_capacity(keys.len());
                for &key in *keys {
                    match ordinal_of_key(key) {
                        Some((other, ordinal)) if other == scale => ordinals.push(ordinal),
                        _ => return None,
                    }
                }
                Some((scale, Cow::Owned(ordinals)))
            }
            Self::Integers(integers) => Some((Scale::Integers, Cow::Borrowed(integers))),
            Self::Same(_) | Self::Values(_) => None,
        }
    }

    /// Compares two columns of `rows` rows.
    pub fn compare(&self, comparison: Comparison, other: &Self, rows: usize) -> Truths {
        if let (Self::Same(a), Self::Same(b)) = (self, other) {
            return Truths::Same(a.compare(comparison, *b));
        }
        if let (Self::Same(_), _) = (self, other) {
            return other.compare(comparison.commuted(), self, rows);
        }
        if let Some((scale, mine)) = self.ordinals() {
            if let Self::Same(value) = other {
                if let Some(limit) = on_scale(*value, scale) {
                    let accepts = |&ordinal: &i64| comparison.accepts(ordinal.cmp(&limit));
                    return Truths::each(mine.iter().map(accepts));
                }
            } else if let Some((_, others)) = other.ordinals().filter(|o| o.0 == scale) {
                let both = mine.iter().zip(others.iter());
                return Truths::each(both.map(|(a, b)| comparison.accepts(a.cmp(b))));
            }
        }
        let truths = (0..rows).map(|row| self.at(row).compare(comparison, other.at(row)));
        Truths::Each(truths.collect())
    }

    /// An arithmetic operator on two columns of `rows` rows.
    pub fn arithmetic(self, operator: Arithmetic, other: Self, rows: usize) -> Self {
        if let (Self::Same(a), Self::Same(b)) = (&self, &other) {
            return Self::Same(a.arithmetic(operator, *b));
        }
        if let Some(integers) = self.on_integers(operator, &other) {
            return Self::Integers(integers);
        }
        let values = (0..rows).map(|row| self.at(row).arithmetic(operator, other.at(row)));
        Self::Values(values.collect())
    }

    /// The operator on integers only; `None` where there are others, or the result may not fit.
    fn on_integers(&self, operator: Arithmetic, other: &Self) -> Option<Vec<i64>> {
        let operate = match operator {
            Arithmetic::Add => i64::checked_add,
            Arithmetic::Sub => i64::checked_sub,
            Arithmetic::Mul => i64::checked_mul,
            Arithmetic::Div => return None,
        };
        let integers = |column: &Self| {
            let (scale, ordinals) = column.ordinals()?;
            (scale == Scale::Integers).then(|| ordinals.into_owned())
        };
        let same = |column: &Self| match column {
            Self::Same(value) => on_scale(*value, Scale::Integers),
            _ => None,
        };
        match (same(self), same(other)) {
            (None, Some(b)) => integers(self)?.iter().map(|&a| operate(a, b)).collect(),
            (Some(a), None) => integers(other)?.iter().map(|&b| operate(a, b)).collect(),
            _ => {
                let (a, b) = (integers(self)?, integers(other)?);
                a.iter().zip(&b).map(|(&a, &b)| operate(a, b)).collect()
            }
        }
    }

    /// langMatches of two columns of `rows` rows, which mostly hold few different ones.
    pub fn language_matches(&self, range: &Self, rows: usize) -> Truths {
        let mut last: Option<((TermId, TermId), Truth)> = None;
        let truths = (0..rows).map(|row| {
            let (Value::Id(tag), Value::Id(range)) = (self.at(row), range.at(row)) else {
                return self.at(row).language_matches(range.at(row));
            };
            match last {
                Some((asked, truth)) if asked == (tag, range) => truth,
                _ => {
                    let truth = Value::Id(tag).language_matches(Value::Id(range));
                    last = Some(((tag, range), truth));
                    truth
                }
            }
        });
        Truths::Each(truths.collect())
    }

    /// A function of the value of each of `rows` rows.
    pub fn map(&self, rows: usize, function: impl Fn(Value) -> Value) -> Self {
        match self {
            Self::Same(value) => Self::Same(function(*value)),
            _ => Self::Values((0..rows).map(|row| function(self.at(row))).collect()),
        }
    }

    /// A test of the value of each of `rows` rows.
    pub fn test(&self, rows: usize, test: impl Fn(Value) -> Truth) -> Truths {
        match self {
            Self::Same(value) => Truths::Same(test(*value)),
            _ => Truths::Each((0..rows).map(|row| test(self.at(row))).collect()),
        }
    }
}

impl Truths {
    fn each(tested: impl Iterator<Item = bool>) -> Self {
        let truth = |holds| if holds { Truth::True } else { Truth::False };
        Self::Each(tested.map(truth).collect())
    }

    /// The value for a row.
    #[inline]
    pub fn at(&self, row: usize) -> Truth {
        match self {
            Self::Same(truth) => *truth,
            Self::Each(truths) => truths[row],
        }
    }

    /// A function of each.
    pub fn map(mut self, function: impl Fn(Truth) -> Truth) -> Self {
        match &mut self {
            Self::Same(truth) => *truth = function(*truth),
            Self::Each(truths) => truths.iter_mut().for_each(|t| *t = function(*t)),
        }
        self
    }

    /// A function of two, row by row.
    pub fn zip(self, other: Self, function: impl Fn(Truth, Truth) -> Truth) -> Self {
        match (self, other) {
            (Self::Same(a), other) => other.map(|b| function(a, b)),
            (each, Self::Same(b)) => each.map(|a| function(a, b)),
            (Self::Each(mut a), Self::Each(b)) => {
                a.iter_mut().zip(b).for_each(|(a, b)| *a = function(*a, b));
                Self::Each(a)
            }
        }
    }
}

#[inline]
fn ordinal_of_key(key: u64) -> Option<(Scale, i64)> {
    match Value::of_key(Some(key)) {
        Value::Id(id) => ordinal(id),
        _ => None,
    }
}

/// The ordinal of a value on a scale, if it has one there.
fn on_scale(value: Value, scale: Scale) -> Option<i64> {
    const MILLION: i64 = 1_000_000;
    let of_integer = |integer: i64| match scale {
        Scale::Integers => Some(integer),
        Scale::Decimals => integer.checked_mul(MILLION),
        _ => None,
    };
    match value {
        Value::Number(Number::Integer(integer)) => of_integer(i64::try_from(integer).ok()?),
        Value::Number(_) | Value::Null | Value::Unknown => None,
        Value::Id(id) => match ordinal(id)? {
            (other, ordinal) if other == scale => Some(ordinal),
            (Scale::Integers, integer) => of_integer(integer),
            _ => None,
        },
    }
}
