//! Chains of patterns that lead on to each other, and what earlier probes tell of the rows that they leave.
//!
//! Patterns of a chain are ranked as one, by the rows that they leave and what they cost (compare the ranks of
//! Krishnamurthy, Boral and Zaniolo, VLDB 1986). The cost of an order is the sum of the rows that go in and out of all
//! steps.

use crate::cost::{BOUND_TRIPLE_QUADS, MAX_CHAIN, MAX_CHAINED_PATTERNS, TYPICAL_SUBJECT_QUADS};
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::plan::layout::bits;
use crate::plan::query::{PatternAt, Query};
use crate::plan::SlotSet;

/// What has just been found of a pattern.
pub(crate) struct Fresh {
    pub pattern: usize,
    /// The columns of its quads that variables bound (bit `n` = column `n`).
    pub bound: u8,
    /// Quads for each row.
    pub each: f64,
}

/// What is known of the quads of a group's patterns, for rows of which some variables are known.
pub(crate) struct Figures<'a> {
    pub query: &'a Query,
    pub feedback: &'a CardinalityFeedback,
    pub group: usize,
    pub fresh: &'a [Fresh],
    /// Quads for each row of a pattern of which nothing is known. With `None`, typical figures are taken, if there are
    /// any.
    pub unknown: Option<f64>,
}

/// A pattern with those that it leads on to, as far as that makes them better.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    /// Rows that it leaves of one.
    left: f64,
    /// Rows that go in and out of its steps, for one.
    cost: f64,
}

impl Chain {
    /// A pattern by itself, which has `each` quads for a row. Filters leave the share `kept` of its rows.
    pub fn of_one(each: f64, kept: f64) -> Self {
        Self {
            left: each * kept,
            cost: 1.0 + each,
        }
    }

    /// What comes first has the lowest rank.
    pub fn rank(self) -> f64 {
        (self.left - 1.0) / self.cost
    }
}

impl Figures<'_> {
    /// Quads of a pattern for each row, if anything is known of them.
    fn each(&self, pattern: usize, known: &SlotSet) -> Option<f64> {
        let group = self.group;
        let pattern_at = &self.query.pattern(PatternAt { group, pattern }).pattern;
        let key = FeedbackKey::of_variables(self.query, pattern_at, known);
        let is_fresh = |figure: &&Fresh| (figure.pattern, figure.bound) == (pattern, key.bound);
        let typical = match key.constant | key.bound {
            columns if columns & 0b111 == 0b111 => Some(BOUND_TRIPLE_QUADS),
            columns if columns & 0b011 == 0b011 => Some(TYPICAL_SUBJECT_QUADS),
            _ => None,
        };
        let fresh = self.fresh.iter().find(is_fresh);
        fresh
            .map(|figure| figure.each)
            .or_else(|| self.feedback.latest(&key))
            .or(self.unknown)
            .or(typical)
    }

    fn needs(&self, pattern: usize) -> &SlotSet {
        let group = self.group;
        &self.query.pattern(PatternAt { group, pattern }).needs
    }

    /// A pattern, of which `all` is known for rows with these variables, with those of `others` (a bit for each) that
    /// share a variable with nothing before it. Where others are many, it stays alone.
    pub fn chain(&self, first: usize, mut all: Chain, known: &SlotSet, others: u64) -> Chain {
        if others.count_ones() > MAX_CHAINED_PATTERNS {
            return all;
        }
        let (mut best, mut after) = (all, *known);
        after.add_all(self.needs(first));
        let mut others: u64 = bits(others & !(1 << first))
            .filter(|&i| !self.needs(i).meets(known))
            .fold(0, |set, i| set | 1 << i);
        for _ in 1..MAX_CHAIN {
            let led_to = bits(others).filter(|&i| self.needs(i).meets(&after));
            let candidates = led_to.filter_map(|i| Some((i, self.each(i, &after)?)));
            let Some((next, each)) = candidates.min_by(|a, b| a.1.total_cmp(&b.1)) else {
                break;
            };
            all.cost += all.left * (1.0 + each);
            all.left *= each;
            if all.rank() < best.rank() {
                best = all;
            }
            others &= !(1 << next);
            after.add_all(self.needs(next));
        }
        best
    }

    /// The columns of a pattern that variables bind, where some are known.
    pub fn bound(&self, pattern: usize, known: &SlotSet) -> u8 {
        let group = self.group;
        let pattern = &self.query.pattern(PatternAt { group, pattern }).pattern;
        FeedbackKey::of_variables(self.query, pattern, known).bound
    }

    /// Which of the patterns that share a variable with what is known goes first, and its quads for each row. `None`
    /// where there is none, or something is not known of one.
    pub fn next(&self, left: u64, known: &SlotSet) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64, f64)> = None;
        for i in bits(left).filter(|&i| self.needs(i).meets(known)) {
            let each = self.each(i, known)?;
            let one = Chain::of_one(each, 1.0);
            let rank = self.chain(i, one, known, left).rank();
            if best.is_none_or(|best| rank < best.2) {
                best = Some((i, each, rank));
            }
        }
        best.map(|(next, each, _)| (next, each))
    }

    /// Rows that go in and out of all steps when `rows` rows of pattern `first` come first, and the patterns that share
    /// no variable with any of these; `None` where something is not known.
    pub fn cost(&self, first: usize, mut rows: f64, all: u64) -> Option<(f64, u64)> {
        let (mut cost, mut known) = (rows, *self.needs(first));
        let mut left = all & !(1 << first);
        while bits(left).any(|i| self.needs(i).meets(&known)) {
            let (next, each) = self.next(left, &known)?;
            cost += rows * (1.0 + each);
            rows *= each;
            left &= !(1 << next);
            known.add_all(self.needs(next));
        }
        Some((cost, left))
    }
}
