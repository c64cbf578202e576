//! The leading key of an order (ORDER BY .. LIMIT): rows whose value of it is behind enough others are none of the
//! first. It is compared as a number, so no term is read for them.

use std::collections::BinaryHeap;

/// A value by its place in the order: NULLs before or behind the others, then the number, turned round where it
/// descends.
type Rank = (u8, i64);

/// The first values of a leading key so far.
#[derive(Clone, Debug)]
pub struct LeadingKey {
    most: usize,
    descending: bool,
    nulls_first: bool,
    /// The first `most` values, the last of them on top.
    first: BinaryHeap<Rank>,
}

impl LeadingKey {
    /// Of an order of which so many rows are wanted (at least one). `descending`: the greatest value comes first;
    /// `nulls_first`: rows without a value come before those with one.
    #[must_use]
    pub fn new(most: usize, descending: bool, nulls_first: bool) -> Self {
        Self {
            most,
            descending,
            nulls_first,
            first: BinaryHeap::new(),
        }
    }

    /// Forgets the values so far.
    pub fn restart(&mut self) {
        self.first.clear();
    }

    /// Takes the values of the next rows. Which of these can be among the first rows; `None`: all of them.
    pub fn candidates(&mut self, values: &[Option<i64>]) -> Option<Vec<bool>> {
        for &value in values {
            let value = self.rank(value);
            if self.first.len() < self.most {
                self.first.push(value);
            } else if let Some(mut last) = self.first.peek_mut() {
                if value < *last {
                    *last = value;
                }
            }
        }
        self.still_candidates(values)
    }

    /// Which rows with these values, which are not taken, can be among the first, as far as is known; `None`: all of
    /// them.
    pub fn still_candidates(&self, values: &[Option<i64>]) -> Option<Vec<bool>> {
        let last = *self
            .first
            .peek()
            .filter(|_| self.first.len() == self.most)?;
        let is_candidate = |&value: &Option<i64>| self.rank(value) <= last;
        let found: Vec<bool> = values.iter().map(is_candidate).collect();
        found.contains(&false).then_some(found)
    }

    /// Which of these values are the first `count`, or a few more that equal the last of them; `None`: there are no
    /// others.
    pub fn first_of(&self, values: &[Option<i64>], count: usize) -> Option<Vec<bool>> {
        let mut ranks: Vec<Rank> = values.iter().map(|&value| self.rank(value)).collect();
        if !(1..ranks.len()).contains(&count) {
            return None;
        }
        let last = *ranks.select_nth_unstable(count - 1).1;
        let ranks = values.iter().map(|&value| self.rank(value));
        let found: Vec<bool> = ranks.map(|rank| rank <= last).collect();
        found.contains(&false).then_some(found)
    }

    fn rank(&self, value: Option<i64>) -> Rank {
        match value {
            None if self.nulls_first => (0, 0),
            None => (2, 0),
            Some(value) if self.descending => (1, !value),
            Some(value) => (1, value),
        }
    }
}
