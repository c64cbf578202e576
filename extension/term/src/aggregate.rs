//! The aggregates of SPARQL 1.1 section 18.5.1, row by row. An error in a row (an unbound value
//! too, `None`) makes the whole aggregate an error. COUNT and SAMPLE need nothing from here.

use crate::error::{Error, Result, MAX_TEXT_BYTES};
use crate::func::numeric::number;
use crate::func::strings::text_of;
use crate::number::{from_raw, to_raw, Number};
use crate::order::order;
use crate::{Term, TermBuf};
use std::cmp::Ordering;

/// Words of a [`Sum`].
pub const SUM_WORDS: usize = 5;

/// The kind of number of a sum that is an error.
const FAILED: u64 = 4;

/// SUM and AVG.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// `None` after an error.
    total: Option<Number>,
    count: i128,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            total: Some(Number::Integer(0)),
            count: 0,
        }
    }
}

impl Sum {
    /// Takes a row.
    pub fn step(&mut self, term: Option<&Term<'_>>) {
        self.step_number(term.and_then(|term| number(term).ok()));
    }

    /// Takes the number of a row; `None` is an error.
    #[inline]
    pub fn step_number(&mut self, number: Option<Number>) {
        self.count += 1;
        let Some(total) = self.total else { return };
        self.total = number.and_then(|number| total.checked_add(number).ok());
    }

    /// Takes the number of so many rows.
    pub fn step_times(&mut self, number: Option<Number>, times: u64) {
        let times = i128::from(times);
        let of_all = match times {
            0 => return,
            1 => number,
            _ => number.and_then(|number| number.checked_mul(Number::Integer(times)).ok()),
        };
        self.step_number(of_all);
        self.count += times - 1;
    }

    /// Takes the rows of another sum.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        let both = self.total.zip(other.total);
        self.total = both.and_then(|(a, b)| a.checked_add(b).ok());
    }

    /// The state as words, for messages and files; that of an empty group is zeros.
    #[must_use]
    pub fn to_words(&self) -> [u64; SUM_WORDS] {
        let (kind, value) = match self.total {
            Some(Number::Integer(value)) => (0, value),
            Some(Number::Decimal(value)) => (1, to_raw(value)),
            Some(Number::Float(value)) => (2, i128::from(value.to_bits())),
            Some(Number::Double(value)) => (3, i128::from(value.to_bits())),
            None => (FAILED, 0),
        };
        let low = |value: i128| value as u64;
        let high = |value: i128| (value >> 64) as u64;
        [
            kind,
            low(value),
            high(value),
            low(self.count),
            high(self.count),
        ]
    }

    /// What [`Self::to_words`] gave; a kind of number that is unknown is an error of the aggregate.
    #[must_use]
    pub fn from_words(words: [u64; SUM_WORDS]) -> Self {
        let [kind, low, high, count_low, count_high] = words;
        let wide = |low: u64, high: u64| (u128::from(high) << 64 | u128::from(low)) as i128;
        let total = match kind {
            0 => Some(Number::Integer(wide(low, high))),
            1 => Some(Number::Decimal(from_raw(wide(low, high)))),
            2 => Some(Number::Float(f32::from_bits(low as u32))),
            3 => Some(Number::Double(f64::from_bits(low))),
            _ => None,
        };
        Self {
            total,
            count: wide(count_low, count_high),
        }
    }

    /// SUM: 0 for an empty group.
    ///
    /// # Errors
    /// A row that is no number, or overflow.
    pub fn sum(&self) -> Result<Number> {
        self.total.ok_or(Error::Type)
    }

    /// AVG: 0 for an empty group.
    ///
    /// # Errors
    /// A row that is no number, or overflow.
    pub fn average(&self) -> Result<Number> {
        if self.count == 0 {
            return Ok(Number::Integer(0));
        }
        let total = self.total.ok_or(Error::Type)?;
        total.checked_div(Number::Integer(self.count))
    }
}

/// MIN and MAX, by the order of ORDER BY.
#[derive(Clone, Debug, Default)]
pub struct Extreme {
    best: Option<TermBuf>,
    failed: bool,
}

impl Extreme {
    /// Takes a row: it becomes the result if it stands in this order to the result so far, `Less`
    /// for MIN and `Greater` for MAX.
    pub fn step(&mut self, term: Option<&Term<'_>>, wanted: Ordering) {
        let Some(term) = term.filter(|_| !self.failed) else {
            self.failed = true;
            self.best = None;
            return;
        };
        let better = match &self.best {
            None => true,
            Some(best) => order(term, &best.as_term()) == wanted,
        };
        if better {
            self.best = Some(term.to_buf());
        }
    }

    /// The result.
    ///
    /// # Errors
    /// An empty group or an unbound row.
    pub fn result(&self) -> Result<&TermBuf> {
        self.best.as_ref().ok_or(Error::Type)
    }
}

/// GROUP_CONCAT of the lexical forms and IRIs.
#[derive(Clone, Debug, Default)]
pub struct GroupConcat {
    text: String,
    rows: u64,
    failed: bool,
    too_long: bool,
}

impl GroupConcat {
    /// Takes a row.
    pub fn step(&mut self, term: Option<&Term<'_>>, separator: &str) {
        match term.map(text_of) {
            Some(Ok(part)) if !self.failed => {
                if self.rows > 0 {
                    self.text.push_str(separator);
                }
                self.text.push_str(part);
                self.rows += 1;
                if self.text.len() > MAX_TEXT_BYTES {
                    self.too_long = true;
                    self.text = String::new();
                }
            }
            _ => {
                self.failed = true;
                self.text = String::new();
            }
        }
    }

    /// The result, a simple literal; `""` for an empty group.
    ///
    /// # Errors
    /// A row that is unbound or a blank node; a text of more than [`MAX_TEXT_BYTES`].
    pub fn result(&self) -> Result<TermBuf> {
        if self.failed {
            Err(Error::Type)
        } else if self.too_long {
            Err(Error::TooLong)
        } else {
            Ok(TermBuf::string(&self.text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[(Option<Number>, u64)]) -> Sum {
        let mut sum = Sum::default();
        for &(number, times) in numbers {
            sum.step_times(number, times);
        }
        sum
    }

    fn text(result: Result<Number>) -> Option<String> {
        result.ok().map(|number| format!("{:?}", number.to_term()))
    }

    #[test]
    fn parts_of_sums_are_put_together() {
        let decimal = Number::parse("-1.25", crate::xsd::Xsd::Decimal).ok();
        for numbers in [
            vec![
                (Some(Number::Integer(7)), 3),
                (Some(Number::Integer(-9)), 1),
            ],
            vec![(Some(Number::Integer(i128::MAX / 2)), 2)],
            vec![(decimal, 5), (Some(Number::Integer(2)), 1)],
            vec![(Some(Number::Float(0.5)), 4), (decimal, 1)],
            vec![(Some(Number::Double(-2.0e300)), 1), (decimal, 1)],
            vec![(Some(Number::Integer(1)), 1), (None, 1)],
            vec![(None, 0)],
            Vec::new(),
        ] {
            let mut one_by_one = Sum::default();
            for &(number, times) in &numbers {
                (0..times).for_each(|_| one_by_one.step_number(number));
            }
            for at in 0..=numbers.len() {
                let (left, right) = numbers.split_at(at);
                let mut both = Sum::from_words(sum(left).to_words());
                both.merge(&Sum::from_words(sum(right).to_words()));
                assert_eq!(text(both.sum()), text(one_by_one.sum()), "{numbers:?}");
                assert_eq!(
                    text(both.average()),
                    text(one_by_one.average()),
                    "{numbers:?}"
                );
            }
        }
        assert_eq!(Sum::default().to_words(), [0; SUM_WORDS]);
    }
}
