//! Incremental semi-join and anti-join: the first match of a row outside EXISTS or NOT EXISTS decides it.
//!
//! Where a step inside finds many rows for each row outside, a few of each go on first. Rows that belong to decided
//! rows are dropped; of the others more go on, until none are left.

use crate::bindings::Bindings;
use crate::cost::{
    FIRST_ROUND_SHARE, ROUND_DECIDED_SHARE, ROUND_GROWTH, ROUND_ROWS, ROUND_ROWS_PER_OUTER_ROW,
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
    /// Rows outside that the last round had rows of.
    last: Vec<u32>,
}

impl IncrementalSemiJoin {
    /// How many rows for each of `all` outer rows go on first; `None` where one round is as good. `numbers` has the
    /// number of the outer row for each row. Batches begin with `least` rows.
    pub fn first_share(numbers: &[u64], all: usize, least: usize) -> Option<usize> {
        let few = least.min(ROUND_ROWS);
        if numbers.len() < ROUND_GROWTH * few.max(FIRST_ROUND_SHARE) {
            return None;
        }
        let mut counts = vec![0; all];
        numbers.iter().for_each(|&n| counts[n as usize] += 1);
        let present = counts.iter().filter(|&&count| count > 0).count();
        let share = FIRST_ROUND_SHARE.max(few.div_ceil(present.max(1)));
        let first: usize = counts.iter().map(|&count| share.min(count)).sum();
        (ROUND_GROWTH * first <= numbers.len()).then_some(share)
    }

    /// Rows that belong to the rows outside that `numbers` names.
    pub fn new(rows: Bindings, numbers: Vec<u32>, share: usize) -> Self {
        Self {
            live: rows.known(),
            waiting: (0..rows.len as u32).collect(),
            outside: numbers,
            rows,
            share,
            last: Vec::new(),
        }
    }

    /// The rows of the next round, `None` at the end; `matched` tells which rows outside are decided.
    pub fn next(&mut self, matched: &[bool]) -> Option<Bindings> {
        let decided = self.last.iter().filter(|&&n| matched[n as usize]).count();
        if (decided as f64) < ROUND_DECIDED_SHARE * self.last.len() as f64 {
            self.share = usize::MAX;
        }
        self.last.clear();
        let mut taken = vec![0; matched.len()];
        let mut round = Vec::new();
        let (outside, share, last) = (&self.outside, self.share, &mut self.last);
        self.waiting.retain(|&row| {
            let number = outside[row as usize];
            let taken = &mut taken[number as usize];
            if matched[number as usize] || *taken == share {
                return !matched[number as usize];
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
/// each of `rows`.
pub(crate) fn at_once(scope: &Scope, rows: usize, each: f64) -> usize {
    if !scope.is_read() && each > FIRST_ROUND_SHARE as f64 {
        (each.min(ROUND_ROWS_PER_OUTER_ROW) * rows as f64) as usize
    } else {
        0
    }
}
