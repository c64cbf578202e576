//! Cardinality estimates: how many quads a pattern has for each row of a batch, or in all.
//!
//! The cardinality is an exact count where only constants bind a pattern. Elsewhere it comes from cardinality feedback,
//! or from a sample of the batch's own keys.

use crate::access::access_path::{cannot_match, AccessPath, PushedRanges};
use crate::access::index_choice::some;
use crate::bindings::Bindings;
use crate::cost::{
    BOUND_TRIPLE_QUADS, CLOSELY_SAMPLED_KEYS, IN_MEMORY_COST_SHARE, SAME_VALUE_SELECTIVITY,
    SAMPLED_KEYS, SMALL_SUBJECT_QUADS,
};
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::optimizer::hash_policy::HashBuild;
use crate::optimizer::range_pushdown::{count_in_ranges, pushed_ranges};
use crate::optimizer::read_ahead;
use crate::optimizer::sampling::{count, sample, sampled};
use crate::plan::layout::Scope;
use crate::plan::query::{PatternAt, Query};
use crate::plan::SlotSet;
use crate::source::{Source, Wanted};

/// What has been counted in a run.
#[derive(Default)]
pub(crate) struct Estimates {
    /// Counts of patterns that only constants bind, by step.
    pub counts: Vec<Option<f64>>,
    /// What filters leave of them, by step.
    pub left: Vec<Option<(PushedRanges, f64)>>,
    /// The pattern of the outermost group that is to be the first, where others have been looked at.
    pub start: Option<usize>,
}

impl Estimates {
    /// Nothing is counted yet of so many steps.
    pub fn new(steps: usize) -> Self {
        Self {
            counts: vec![None; steps],
            left: vec![None; steps],
            start: None,
        }
    }
}

/// What estimates are made from.
pub(crate) struct Estimator<'a, S> {
    pub query: &'a Query,
    /// Quads in memory, by step.
    pub builds: &'a [HashBuild],
    pub estimates: &'a mut Estimates,
    pub source: &'a mut S,
    pub feedback: &'a mut CardinalityFeedback,
    /// Steps are messages to other nodes, which may bring further quads along. Not so for participants of a pushed
    /// join: they read what they hold.
    pub asks_nodes: bool,
}

impl<S: Source> Estimator<'_, S> {
    /// Expected quads per row for a pattern, whatever filters leave of them; `known` are the variables of the rows.
    pub fn expected(
        &mut self,
        rows: &Bindings,
        known: &SlotSet,
        at: PatternAt,
        closely: bool,
    ) -> f64 {
        let query = self.query;
        let info = query.pattern(at);
        if cannot_match(&info.pattern, rows, &self.query.params) {
            return 0.0;
        }
        let step = info.step;
        let share = info.keyed.map_or(1.0, |_| SAME_VALUE_SELECTIVITY);
        if let (false, Some(count)) = (info.needs.meets(known), self.estimates.counts[step]) {
            return count * share;
        }
        let table = info.pattern.table;
        let access = AccessPath::new(
            &info.pattern,
            self.source.orders(table),
            rows,
            &SlotSet::default(),
        );
        if access.is_lookup() {
            return BOUND_TRIPLE_QUADS;
        }
        let what = FeedbackKey::new(self.query, &info.pattern, &access);
        if access.bound == 0 {
            let all = match self.estimates.counts[step] {
                Some(count) => count,
                None => self.count_all(rows, at, &access),
            };
            self.estimates.counts[step] = Some(all);
            return all * share;
        }
        if let Some(found) = self.builds[step].sample(&access, rows) {
            return found * IN_MEMORY_COST_SHARE;
        }
        match self.feedback.get(&what) {
            Some(known) if !closely => known,
            _ => {
                let samples = if closely {
                    CLOSELY_SAMPLED_KEYS
                } else {
                    SAMPLED_KEYS
                };
                let found = sample(self.source, &access, rows, &self.query.params, samples);
                self.feedback
                    .add(what, samples, (found * samples as f64).round() as usize);
                found
            }
        }
    }

    /// Tells the source what [`Self::expected`] is about to count, so that all of it is asked for at once. What the
    /// rows tell of later reads goes with it.
    pub fn foresee(
        &mut self,
        rows: &Bindings,
        known: &SlotSet,
        scopes: &[Scope],
        candidates: impl Iterator<Item = PatternAt>,
    ) {
        let mut wanted = Vec::new();
        for at in candidates {
            let info = self.query.pattern(at);
            let (pattern, step) = (&info.pattern, info.step);
            let is_counted = self.estimates.counts[step].is_some() && !info.needs.meets(known);
            if is_counted || cannot_match(pattern, rows, &self.query.params) {
                continue;
            }
            let orders = self.source.orders(pattern.table);
            let access = AccessPath::new(pattern, orders, rows, &SlotSet::default());
            let what = FeedbackKey::new(self.query, pattern, &access);
            let is_known = match access.bound {
                _ if access.is_lookup() => true,
                0 => {
                    self.estimates.counts[step].is_some()
                        || known_count(self.feedback, &what, &access).is_some()
                }
                _ => {
                    self.builds[step].sample(&access, rows).is_some()
                        || self.feedback.get(&what).is_some()
                }
            };
            if is_known {
                continue;
            }
            let ranges = match access.bound {
                0 => {
                    let mut ranges = Vec::new();
                    access.ranges(rows, 0, &self.query.params, &mut ranges);
                    some(&ranges).copied().collect()
                }
                _ => sampled(self.source, &access, rows, &self.query.params, SAMPLED_KEYS).0,
            };
            wanted.push(Wanted {
                table: pattern.table,
                order: access.order,
                ranges,
            });
        }
        if wanted.is_empty() {
            return;
        }
        if self.asks_nodes {
            let reads = read_ahead::wanted(self.query, self.source, rows, scopes, (0, 0));
            self.source.read_ahead(&reads);
        }
        if wanted.len() > 1 {
            self.source.count_ahead(&wanted);
        }
    }

    /// Quads that a pattern's constants select.
    fn count_all(&mut self, rows: &Bindings, at: PatternAt, access: &AccessPath) -> f64 {
        let pattern = &self.query.pattern(at).pattern;
        let what = FeedbackKey::new(self.query, pattern, access);
        known_count(self.feedback, &what, access).unwrap_or_else(|| {
            let mut ranges = Vec::new();
            access.ranges(rows, 0, &self.query.params, &mut ranges);
            let counted = count(self.source, access, &ranges);
            if access.is_plain() && access.constant & 0b101 == 0 {
                self.feedback.add(what, 1, counted as usize);
            }
            counted
        })
    }

    /// What filters leave of `all` the quads that a pattern's constants select.
    pub fn count_left(&mut self, rows: &Bindings, scope: &Scope, i: usize, all: f64) -> f64 {
        let query = self.query;
        // Few are tested as fast as the ranges are found.
        if all < self.query.tuning.range_pushdown_from as f64 {
            return all;
        }
        let pushed_ranges = pushed_ranges(&query.layout, self.source, i, rows, scope);
        let info = &query.layout.groups[scope.group].patterns[i];
        let (pattern, step) = (&info.pattern, info.step);
        if pushed_ranges.is_empty() {
            return all;
        }
        if let Some((_, count)) = self.estimates.left[step]
            .as_ref()
            .filter(|left| left.0 == pushed_ranges)
        {
            return *count;
        }
        let orders = self.source.orders(pattern.table);
        let none = SlotSet::default();
        let access =
            AccessPath::with_ranges(pattern, orders, rows, &none, |_| true, &pushed_ranges);
        let count = count_in_ranges(self.source, rows, &access, &query.params);
        self.estimates.left[step] = Some((pushed_ranges, count));
        count
    }
}

/// Quads that the constants of a pattern of the outermost group select.
pub(crate) fn count_pattern<S: Source>(
    query: &Query,
    estimates: &Estimates,
    source: &mut S,
    feedback: &CardinalityFeedback,
    i: usize,
) -> f64 {
    let info = &query.layout.groups[0].patterns[i];
    if let Some(count) = estimates.counts[info.step] {
        return count;
    }
    let rows = Bindings::one_row(query.slots);
    let orders = source.orders(info.pattern.table);
    let access = AccessPath::new(&info.pattern, orders, &rows, &SlotSet::default());
    let what = FeedbackKey::new(query, &info.pattern, &access);
    known_count(feedback, &what, &access).unwrap_or_else(|| {
        let mut ranges = Vec::new();
        access.ranges(&rows, 0, &query.params, &mut ranges);
        count(source, &access, &ranges)
    })
}

/// What earlier queries say of the quads that a pattern's constants select. Counts of a predicate alone hardly change
/// from query to query, and few subjects have many quads of one predicate. What an object binds is counted: it may be a
/// rare value or a common one.
fn known_count(
    feedback: &CardinalityFeedback,
    what: &FeedbackKey,
    access: &AccessPath,
) -> Option<f64> {
    let is_typical = |rows: &f64| match access.constant & 0b101 {
        0 => access.is_plain(),
        0b001 => access.is_exact() && *rows <= SMALL_SUBJECT_QUADS,
        _ => false,
    };
    feedback.get(what).filter(is_typical)
}
