//! Incremental semi-join and anti-join: the first match of a row outside EXISTS or NOT EXISTS decides it.
//!
//! Where a step inside finds many rows for each row outside, a few of each go on first. Rows that belong to decided
//! rows are dropped; of the others more go on, until none are left.

use crate::bindings::Bindings;
use crate::cost::{
    FIRST_ROUND_SHARE, REMOTE_ROUND_ROWS, ROUND_DECIDED_SHARE, ROUND_GROWTH, ROUND_ROWS,
    ROUND_ROWS_PER_OUTER_ROW,
};
use crate::plan::layout::Scope;
use crate::plan::SlotSet;

/// Rows of a batch that go on in rounds.
pub(crate) struct IncrementalSemiJoin {
    rows: Bindings,
    /// Variables of `rows`.
    live: SlotSet,
    /// The row outside that each belongs to.
    outside: Vec<u32>,
    /// Rows that wait.
    waiting: Vec<u32>,
    /// Rows for each row outside in the next round.
    share: usize,
    /// Rows that are worth a round of their own.
    least: usize,
    /// Rows outside that the last round had rows of.
    last: Vec<u32>,
}

impl IncrementalSemiJoin {
    /// Rows that are worth a round of their own. Batches begin with `first` rows.
    pub fn least_rows(first: usize, is_remote: bool) -> usize {
        let rows = if is_remote {
            REMOTE_ROUND_ROWS
        } else {
            ROUND_ROWS
        };
        first.min(rows)
    }

    /// How many rows for each of `all` outer rows go on first; `None` where one round is as good. `numbers` has the
    /// number of the outer row for each row, `least` rows are worth a round.
    pub fn first_share(numbers: &[u64], all: usize, least: usize) -> Option<usize> {
        if numbers.len() < ROUND_GROWTH * least.max(FIRST_ROUND_SHARE) {
            return None;
        }
        let mut counts = vec![0; all];
        numbers.iter().for_each(|&n| counts[n as usize] += 1);
        let present = counts.iter().filter(|&&count| count > 0).count();
        let share = FIRST_ROUND_SHARE.max(least.div_ceil(present.max(1)));
        let first: usize = counts.iter().map(|&count| share.min(count)).sum();
        (ROUND_GROWTH * first <= numbers.len()).then_some(share)
    }

    /// Rows that belong to the rows outside that `numbers` names.
    pub fn new(rows: Bindings, numbers: Vec<u32>, share: usize, least: usize) -> Self {
        Self {
            live: rows.known(),
            waiting: (0..rows.len as u32).collect(),
            outside: numbers,
            rows,
            share,
            least,
            last: Vec::new(),
        }
    }

    /// The rows of the next round, `None` at the end; `matched` tells which rows outside are decided.
    pub fn next(&mut self, matched: &[bool]) -> Option<Bindings> {
        let decided = self.last.iter().filter(|&&n| matched[n as usize]).count();
        if (decided as f64) < ROUND_DECIDED_SHARE * self.last.len() as f64 {
            self.share = usize::MAX;
        }
        let outside = &self.outside;
        let (mut is_present, mut present) = (vec![false; matched.len()], 0);
        self.waiting.retain(|&row| {
            let number = outside[row as usize] as usize;
            if matched[number] {
                return false;
            }
            present += usize::from(!std::mem::replace(&mut is_present[number], true));
            true
        });
        self.share = self.share.max(self.least.div_ceil(present.max(1)));
        self.last.clear();
        let mut taken = vec![0; matched.len()];
        let mut round = Vec::new();
        let (share, last) = (self.share, &mut self.last);
        self.waiting.retain(|&row| {
            let number = outside[row as usize];
            let taken = &mut taken[number as usize];
            if *taken == share {
                return true;
            }
            if *taken == 0 {
                last.push(number);
            }
            *taken += 1;
            round.push(row);
            false
        });
        self.share = self.share.saturating_mul(ROUND_GROWTH);
        (!round.is_empty()).then(|| self.rows.gather(&round, &self.live))
    }
}

/// The rows that a step is to hand out at once, in a test with more to do in `scope`. The step expects `each` rows for
/// each of `rows`, by an estimate. That is rounded up to a power of two: no small rest is to be left for a batch of its
/// own, and estimates that differ a little are to make the same batches.
pub(crate) fn at_once(scope: &Scope, rows: usize, each: f64) -> usize {
    if !scope.is_read() && each > FIRST_ROUND_SHARE as f64 {
        let each = each.log2().ceil().exp2();
        (each.min(ROUND_ROWS_PER_OUTER_ROW) * rows as f64) as usize
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTER_ROWS: usize = 50;
    const ROWS_OF_EACH: usize = 40;
    const LEAST: usize = 100;

    /// Rows of the rounds in which all but `undecided` outer rows are decided by their first row, the others by none.
    fn rounds(undecided: usize) -> Vec<usize> {
        let rows = Bindings {
            len: OUTER_ROWS * ROWS_OF_EACH,
            columns: Vec::new(),
        };
        let numbers: Vec<u64> = (0..rows.len).map(|row| (row % OUTER_ROWS) as u64).collect();
        let share = IncrementalSemiJoin::first_share(&numbers, OUTER_ROWS, LEAST).unwrap();
        let numbers = numbers.iter().map(|&number| number as u32).collect();
        let mut join = IncrementalSemiJoin::new(rows, numbers, share, LEAST);
        let mut matched = vec![false; OUTER_ROWS];
        std::iter::from_fn(|| {
            let round = join.next(&matched)?;
            matched[undecided..].fill(true);
            Some(round.len)
        })
        .collect()
    }

    #[test]
    fn a_round_is_worth_its_cost() {
        assert_eq!(rounds(0), [2 * OUTER_ROWS]);
        // The five that are left have 38 rows each. 20 of each make a round. That decides none, so all others go.
        assert_eq!(rounds(5), [2 * OUTER_ROWS, LEAST, 5 * 18]);
    }
}
