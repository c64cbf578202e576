//! Values of terms as SQL integers, compared with one that is the same for all rows.
//!
//! Ids tell the values of integers of any datatype. The SQL integer of other terms (`"12"`, `2.0`), or of numbers that
//! do not fit the type, is unknown. The SQL itself then gives the value or the error.

use crate::intervals::{first_that_is_not, Intervals};
use crate::operators::Comparison;
use crate::truth::Truth;
use crate::SIGN;
use pgquad_term::number::Number;
use pgquad_term::{ascending_numbers, inline_number, tag, TermId};

/// An SQL integer type: its least and its greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlInteger {
    min: i64,
    max: i64,
}

impl SqlInteger {
    /// `smallint`
    pub const SMALLINT: Self = Self {
        min: i16::MIN as i64,
        max: i16::MAX as i64,
    };
    /// `integer`
    pub const INTEGER: Self = Self {
        min: i32::MIN as i64,
        max: i32::MAX as i64,
    };
    /// `bigint`
    pub const BIGINT: Self = Self {
        min: i64::MIN,
        max: i64::MAX,
    };

    /// Compares the value of the term with a key with another one; `None`: NULL, which only the SQL compares.
    pub(crate) fn compare(
        self,
        comparison: Comparison,
        key: Option<u64>,
        value: Option<i64>,
    ) -> Truth {
        let Some(id) = key.map(|key| TermId(key ^ SIGN)) else {
            return Truth::Null;
        };
        if id == TermId::DEFAULT_GRAPH {
            return Truth::Null;
        }
        match (whole(id), value) {
            (Some(number), Some(value)) if (self.min..=self.max).contains(&number) => {
                Truth::of(Some(comparison.accepts(number.cmp(&value))))
            }
            _ => Truth::Unknown,
        }
    }

    /// Keys outside of which the comparison is false.
    pub(crate) fn possible(self, comparison: Comparison, value: Option<i64>) -> Intervals {
        let Some(value) = value else {
            return Intervals::all();
        };
        let integers = ascending_numbers().into_iter();
        let integers = integers.filter(|(low, _)| TermId(*low).tag() == tag::INTEGER);
        let failing = self.failing(comparison, value);
        let ranges = integers.flat_map(|(low, high)| {
            failing.iter().flatten().filter_map(move |&(least, most)| {
                let from = first_that_is_not(low, high, |id| below(id, least));
                let end = first_that_is_not(low, high, |id| below(id, most) || is(id, most));
                (from < end).then(|| (from ^ SIGN, (end - 1) ^ SIGN))
            })
        });
        Intervals::of(ranges.collect()).complement()
    }

    /// Values of the type that do not compare as asked, as at most two ranges.
    fn failing(self, comparison: Comparison, value: i64) -> [Option<(i64, i64)>; 2] {
        let (min, max) = (self.min, self.max);
        let before = value.checked_sub(1).map(|last| (min, last.min(max)));
        let after = value.checked_add(1).map(|first| (first.max(min), max));
        let ranges = match comparison {
            Comparison::Eq => [before, after],
            Comparison::Ne => [Some((value.max(min), value.min(max))), None],
            Comparison::Lt => [Some((value.max(min), max)), None],
            Comparison::Le => [after, None],
            Comparison::Gt => [Some((min, value.min(max))), None],
            Comparison::Ge => [before, None],
        };
        ranges.map(|range| range.filter(|(low, high)| low <= high))
    }
}

/// The value of an integer that is in its id.
fn whole(id: TermId) -> Option<i64> {
    if id.tag() != tag::INTEGER {
        return None;
    }
    match inline_number(id)? {
        Number::Integer(value) => i64::try_from(value).ok(),
        _ => None,
    }
}

fn below(id: u64, value: i64) -> bool {
    whole(TermId(id)).is_some_and(|number| number < value)
}

fn is(id: u64, value: i64) -> bool {
    whole(TermId(id)) == Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_term::{inline_id, TermBuf, Xsd};
    use proptest::prelude::*;

    const COMPARISONS: [Comparison; 6] = [
        Comparison::Eq,
        Comparison::Ne,
        Comparison::Lt,
        Comparison::Le,
        Comparison::Gt,
        Comparison::Ge,
    ];

    fn key(text: &str, xsd: Xsd) -> u64 {
        let term = TermBuf::xsd(text, xsd);
        inline_id(&term.as_term()).expect("it is in the id").0 ^ SIGN
    }

    fn near_an_end() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => -3_i64..3,
            1 => any::<i32>().prop_map(i64::from),
            2 => prop::sample::select(vec![i16::MIN as i64, i16::MAX as i64, i32::MIN as i64, i32::MAX as i64])
                .prop_flat_map(|end| (end - 2)..=(end + 2)),
            1 => prop::sample::select(vec![i64::MIN, i64::MAX]),
        ]
    }

    fn holds(intervals: &Intervals, key: u64) -> bool {
        let mut ranges = intervals.ranges().iter();
        ranges.any(|(low, high)| (*low..=*high).contains(&key))
    }

    proptest! {
        #[test]
        fn integers_compare_by_value(
            number in -40_000_i64..40_000,
            value in near_an_end(),
            xsd in prop::sample::select(vec![Xsd::Integer, Xsd::Int, Xsd::Long]),
            comparison in prop::sample::select(COMPARISONS.to_vec()),
        ) {
            let key = key(&number.to_string(), xsd);
            for (kind, fits) in [
                (SqlInteger::SMALLINT, i16::try_from(number).is_ok()),
                (SqlInteger::INTEGER, true),
                (SqlInteger::BIGINT, true),
            ] {
                let truth = kind.compare(comparison, Some(key), Some(value));
                let wanted = Truth::of(Some(comparison.accepts(number.cmp(&value))));
                prop_assert_eq!(truth, if fits { wanted } else { Truth::Unknown });
                // The ranges hold exactly the ids with which the comparison is not known to fail.
                let inside = holds(&kind.possible(comparison, Some(value)), key);
                prop_assert_eq!(inside, truth != Truth::False);
            }
        }
    }

    #[test]
    fn what_only_the_sql_knows_is_inside() {
        let (double, decimal) = (key("2.0E0", Xsd::Double), key("2.0", Xsd::Decimal));
        for comparison in COMPARISONS {
            let compare = |key| SqlInteger::INTEGER.compare(comparison, key, Some(2));
            let inside = SqlInteger::INTEGER.possible(comparison, Some(2));
            for other in [double, decimal, TermId::new(tag::STRING, 7).0 ^ SIGN] {
                assert_eq!(compare(Some(other)), Truth::Unknown);
                assert!(holds(&inside, other));
            }
            assert_eq!(compare(None), Truth::Null);
            assert_eq!(compare(Some(TermId::DEFAULT_GRAPH.0 ^ SIGN)), Truth::Null);
            let null = SqlInteger::INTEGER.compare(comparison, Some(double), None);
            assert_eq!(null, Truth::Unknown);
            assert!(SqlInteger::INTEGER.possible(comparison, None).is_all());
        }
    }
}
