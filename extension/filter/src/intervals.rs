//! Ranges of keys, and of the ids that they stand for.

use pgquad_term::id::MAX_LANGUAGE_STRING_NUMBER;
use pgquad_term::TermId;

/// Ascending, disjoint, inclusive ranges of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals(pub(crate) Vec<(u64, u64)>);

impl Intervals {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self(vec![(0, u64::MAX)])
    }

    /// Nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The ranges.
    #[must_use]
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Whether it excludes anything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0 == [(0, u64::MAX)]
    }

    /// What is in any of the ranges.
    #[must_use]
    pub fn of(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    /// What is in none of the ranges.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = Some(0);
        for &(low, high) in &self.0 {
            if let Some(first) = next.filter(|&first| first < low) {
                gaps.push((first, low - 1));
            }
            next = high.checked_add(1);
        }
        gaps.extend(next.map(|first| (first, u64::MAX)));
        Self(gaps)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(pgquad_term::intersection(&self.0, &other.0))
    }
}

/// The ids of language strings from one language number to another.
pub(crate) fn of_languages(first: u16, last: u16) -> (TermId, TermId) {
    (
        TermId::lang_string(first, 0),
        TermId::lang_string(last, MAX_LANGUAGE_STRING_NUMBER),
    )
}

/// The first id from `low` to `high` for which the condition does not hold, `high + 1` if there is none; it holds up to
/// there.
pub(crate) fn first_that_is_not(mut low: u64, high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let mut end = high + 1;
    while low < end {
        let middle = low + (end - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            end = middle;
        }
    }
    low
}
