//! Adaptive join order: each batch chooses its next pattern, the one with the lowest cardinality per row.
//!
//! The cardinality is an exact count where only constants bind a pattern. Elsewhere it comes from cardinality feedback, or from a sample of
//! the batch's own keys (compare Eddies, Avnur and Hellerstein, SIGMOD 2000).

use crate::access::access_path::{cannot_match, AccessPath};
use crate::bindings::Bindings;
use crate::operators::index_probe::{count, sample, sampled, some};
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::optimizer::star_planning::StarPlan;
use crate::pipeline::repartition::Ahead;
use crate::pipeline::Pipeline;
use crate::plan::condition::{Bound, Value};
use crate::plan::layout::{bits, Scope};
use crate::plan::{Kind, Pattern, SlotSet};
use crate::source::{Source, Wanted};
use smallvec::{smallvec, SmallVec};

/// Patterns of a group, and what is known of them. There is a choice for every batch, so that these lists are in place.
type Few<T> = SmallVec<[T; 16]>;

/// What to do next with a batch.
pub(crate) enum Next {
    Pattern(usize, f64),
    Child(usize),
    /// Several parts of the group as one step.
    Star(StarPlan),
}

/// Share of rows that a filter leaves, for want of better knowledge.
const FILTERED: f64 = 0.5;
/// A subject's quads of one predicate that are not worth counting.
const FEW: f64 = 4.0;
/// Expected quads for a key that binds subject, predicate and object.
const LOOKUP: f64 = 0.5;
/// Share of a pattern's quads that have the value of a row.
const SAME_VALUE: f64 = 0.005;
/// Quads that are joined sooner than it is seen what filters leave of others.
const SOME: f64 = 32.0;
/// Batches from this size on are sampled instead of judged by earlier queries.
const SAMPLED: usize = 1000;
/// So many patterns are then looked at more closely.
const CLOSE: usize = 3;
/// What quads are worth that are in memory already, against those that have to be looked up.
const IN_MEMORY: f64 = 0.9;
/// Keys counted for a first guess, and for a closer one.
const SAMPLES: usize = 3;
const CLOSE_SAMPLES: usize = 12;

impl Pipeline {
    /// What to do next with rows in a group that is not done; `stars` may be made. `ahead`: what was chosen already, by whoever gave
    /// these rows away.
    pub(crate) fn choose<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        rows: &Bindings,
        scope: &Scope,
        stars: bool,
        ahead: Option<Ahead>,
    ) -> Next {
        let group = &self.layout.groups[scope.group];
        let known = rows.known();
        let runnable = |i: &usize| group.children[*i].needs.within(&known);
        if let Some(test) = bits(scope.children)
            .filter(runnable)
            .find(|&i| group.children[i].kind != Kind::Left)
        {
            match ahead {
                Some(Ahead::Pattern(_)) => {}
                Some(Ahead::Child(i)) if runnable(&i) => return Next::Child(i),
                _ => return Next::Child(test),
            }
        }
        let optional = bits(scope.children).find(runnable);
        if bits(scope.patterns).nth(1).is_none() && optional.is_none() {
            if let Some(only) = bits(scope.patterns).next() {
                return Next::Pattern(only, f64::NAN);
            }
        }
        let by_value = |i: usize| group.patterns[i].keyed.is_some();
        let connected = |i: usize| group.patterns[i].needs.meets(&known) || by_value(i);
        let near: Few<usize> = bits(scope.patterns).filter(|&i| connected(i)).collect();
        let far: Few<usize> = bits(scope.patterns).filter(|&i| !connected(i)).collect();
        // An optional group goes first where it alone leads on to the patterns that are left.
        if let (true, Some(i)) = (near.is_empty(), optional) {
            let leads = far
                .iter()
                .any(|&p| group.patterns[p].needs.meets(&group.children[i].binds));
            if far.is_empty() || leads {
                let alone = !stars || !far.is_empty();
                let parts = (!alone).then(|| self.plan_star(source, rows, scope, &[]));
                return parts.flatten().map_or(Next::Child(i), Next::Star);
            }
        }
        // A filter that a pattern makes testable leaves fewer rows for what comes after.
        let tested = |i: usize| {
            let mut after = known;
            after.add_all(&group.patterns[i].needs);
            bits(scope.filters)
                .filter(|&f| group.filters[f].1.within(&after))
                .count()
        };
        let tested: Few<i32> = match scope.filters {
            0 => smallvec![0; group.patterns.len()],
            _ => (0..group.patterns.len())
                .map(|i| tested(i) as i32)
                .collect(),
        };
        let weight = |i: usize, expected: f64| expected * FILTERED.powi(tested[i]);
        if source.is_remote() {
            let all: Few<usize> = near.iter().chain(&far).copied().collect();
            self.foresee(source, feedback, (rows, &known), scope, &all);
        }
        let mut ranked: Few<(usize, f64)> = Few::new();
        for &i in near.iter().chain(&far) {
            let expected = self.expected(source, feedback, (rows, &known), scope, i, false);
            ranked.push((i, expected));
        }
        // To see what filters leave takes longer than to join a few rows.
        if ranked.iter().all(|r| r.1 > SOME) {
            for (i, expected) in &mut ranked[near.len()..] {
                *expected = self.count_left(source, rows, scope, *i, *expected);
            }
        }
        // What shares no variable multiplies the rows, whatever comes next.
        let mut place = 0;
        ranked.retain(|(_, expected)| {
            place += 1;
            place <= near.len() || near.is_empty() || *expected <= 1.0
        });
        let by_weight =
            |a: &(usize, f64), b: &(usize, f64)| weight(a.0, a.1).total_cmp(&weight(b.0, b.1));
        ranked.sort_by(by_weight);
        if let Some(Ahead::Pattern(first)) = ahead {
            match ranked.iter().position(|r| r.0 == first) {
                Some(at) => ranked[..=at].rotate_right(1),
                None => ranked.insert(0, (first, f64::NAN)),
            }
        } else if rows.len >= SAMPLED && ranked.len() > 1 {
            // A large batch deserves a closer look at the best few.
            let close = ranked.len().min(CLOSE);
            for (i, expected) in &mut ranked[..close] {
                if near.contains(i) {
                    *expected = self.expected(source, feedback, (rows, &known), scope, *i, true);
                }
            }
            ranked[..close].sort_by(by_weight);
        }
        if stars {
            if let Some(parts) = self.plan_star(source, rows, scope, &ranked) {
                return Next::Star(parts);
            }
        }
        match (ranked.first(), optional) {
            (Some(&(i, expected)), _) => Next::Pattern(i, expected),
            (None, Some(i)) => Next::Child(i),
            (None, None) => unreachable!("a group that is not done has a step that can be taken"),
        }
    }

    /// Expected quads per row for a pattern, whatever filters leave of them; `known` are the variables of the rows.
    fn expected<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        (rows, known): (&Bindings, &SlotSet),
        scope: &Scope,
        i: usize,
        closely: bool,
    ) -> f64 {
        let info = &self.layout.groups[scope.group].patterns[i];
        if cannot_match(&info.pattern, rows, &self.params) {
            return 0.0;
        }
        let step = info.step;
        let share = info.keyed.map_or(1.0, |_| SAME_VALUE);
        if let (false, Some(count)) = (info.needs.meets(known), self.counts[step]) {
            return count * share;
        }
        let table = info.pattern.table;
        let access = AccessPath::new(
            &info.pattern,
            source.orders(table),
            rows,
            &SlotSet::default(),
        );
        if access.is_lookup() {
            return LOOKUP;
        }
        let what = self.feedback_key(&info.pattern, &access);
        if access.bound == 0 {
            let all = match self.counts[step] {
                Some(count) => count,
                None => self.count_all(source, feedback, rows, (scope.group, i), &access),
            };
            self.counts[step] = Some(all);
            return all * share;
        }
        if let Some(found) = self.hash_builds[info.step].sample(&access, rows) {
            return found * IN_MEMORY;
        }
        match feedback.get(&what) {
            Some(known) if !closely => known,
            _ => {
                let samples = if closely { CLOSE_SAMPLES } else { SAMPLES };
                let found = sample(source, &access, rows, &self.params, samples);
                feedback.add(what, samples, (found * samples as f64).round() as usize);
                found
            }
        }
    }

    /// Tells the source what [`Self::expected`] is about to count, so that all of it is asked for at once.
    fn foresee<S: Source>(
        &self,
        source: &mut S,
        feedback: &CardinalityFeedback,
        (rows, known): (&Bindings, &SlotSet),
        scope: &Scope,
        candidates: &[usize],
    ) {
        let mut wanted = Vec::new();
        for &i in candidates {
            let info = &self.layout.groups[scope.group].patterns[i];
            let (pattern, step) = (&info.pattern, info.step);
            let is_counted = self.counts[step].is_some() && !info.needs.meets(known);
            if is_counted || cannot_match(pattern, rows, &self.params) {
                continue;
            }
            let orders = source.orders(pattern.table);
            let access = AccessPath::new(pattern, orders, rows, &SlotSet::default());
            let what = self.feedback_key(pattern, &access);
            let is_known = match access.bound {
                _ if access.is_lookup() => true,
                0 => self.counts[step].is_some() || known_count(feedback, &what, &access).is_some(),
                _ => {
                    self.hash_builds[step].sample(&access, rows).is_some()
                        || feedback.get(&what).is_some()
                }
            };
            if is_known {
                continue;
            }
            let ranges = match access.bound {
                0 => {
                    let mut ranges = Vec::new();
                    access.ranges(rows, 0, &self.params, &mut ranges);
                    some(&ranges).copied().collect()
                }
                _ => sampled(&access, rows, &self.params, SAMPLES).0,
            };
            wanted.push(Wanted {
                table: pattern.table,
                order: access.order,
                ranges,
            });
        }
        if wanted.len() > 1 {
            source.count_ahead(&wanted);
        }
    }

    /// Quads that the constants of a pattern of the outermost group select.
    pub(crate) fn count_pattern<S: Source>(
        &self,
        source: &mut S,
        feedback: &CardinalityFeedback,
        i: usize,
    ) -> f64 {
        let info = &self.layout.groups[0].patterns[i];
        if let Some(count) = self.counts[info.step] {
            return count;
        }
        let rows = Bindings::one_row(self.slots);
        let orders = source.orders(info.pattern.table);
        let access = AccessPath::new(&info.pattern, orders, &rows, &SlotSet::default());
        let known = known_count(
            feedback,
            &self.feedback_key(&info.pattern, &access),
            &access,
        );
        known.unwrap_or_else(|| {
            let mut ranges = Vec::new();
            access.ranges(&rows, 0, &self.params, &mut ranges);
            count(source, &access, &ranges)
        })
    }

    /// Quads that a pattern's constants select.
    fn count_all<S: Source>(
        &self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        rows: &Bindings,
        (group, i): (usize, usize),
        access: &AccessPath,
    ) -> f64 {
        let pattern = &self.layout.groups[group].patterns[i].pattern;
        let what = self.feedback_key(pattern, access);
        known_count(feedback, &what, access).unwrap_or_else(|| {
            let mut ranges = Vec::new();
            access.ranges(rows, 0, &self.params, &mut ranges);
            let counted = count(source, access, &ranges);
            if access.is_plain() && access.constant & 0b101 == 0 {
                feedback.add(what, 1, counted as usize);
            }
            counted
        })
    }

    /// What filters leave of `all` the quads that a pattern's constants select.
    fn count_left<S: Source>(
        &mut self,
        source: &mut S,
        rows: &Bindings,
        scope: &Scope,
        i: usize,
        all: f64,
    ) -> f64 {
        // Few are tested as fast as the ranges are found.
        if all < self.tuning.range_pushdown_from as f64 {
            return all;
        }
        let pushed_ranges = self.pushed_ranges(source, i, rows, scope);
        let info = &self.layout.groups[scope.group].patterns[i];
        let (pattern, step) = (&info.pattern, info.step);
        if pushed_ranges.is_empty() {
            return all;
        }
        if let Some((_, count)) = self.left[step]
            .as_ref()
            .filter(|left| left.0 == pushed_ranges)
        {
            return *count;
        }
        let orders = source.orders(pattern.table);
        let none = SlotSet::default();
        let access =
            AccessPath::with_ranges(pattern, orders, rows, &none, |_| true, &pushed_ranges);
        let count = self.count_in_ranges(source, rows, &access);
        self.left[step] = Some((pushed_ranges, count));
        count
    }

    /// What figures of a pattern are kept under.
    pub(crate) fn feedback_key(&self, pattern: &Pattern, access: &AccessPath) -> FeedbackKey {
        let predicate = pattern
            .conditions
            .iter()
            .find(|c| c.0 == 1 && c.1 == Bound::Eq);
        FeedbackKey {
            table: self.tables[usize::from(pattern.table)],
            predicate: predicate.and_then(|c| match self.params[usize::from(c.2)] {
                Value::One(value) => Some(value),
                _ => None,
            }),
            constant: access.constant,
            bound: access.bound,
            pushed_ranges: !access.pushed_ranges.is_empty(),
        }
    }
}

/// What earlier queries say of the quads that a pattern's constants select. Counts of a predicate alone hardly change from query to query,
/// and few subjects have many quads of one predicate. What an object binds is counted: it may be a rare value or a common one.
fn known_count(
    feedback: &CardinalityFeedback,
    what: &FeedbackKey,
    access: &AccessPath,
) -> Option<f64> {
    let is_typical = |rows: &f64| match access.constant & 0b101 {
        0 => access.is_plain(),
        0b001 => access.is_exact() && *rows <= FEW,
        _ => false,
    };
    feedback.get(what).filter(is_typical)
}
