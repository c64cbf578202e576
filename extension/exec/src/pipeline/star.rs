//! A batch enters a star join.

use crate::bindings::Bindings;
use crate::cost::{NEXT_ARM_COST, PROBE_COST};
use crate::operators::distinct;
use crate::operators::star_join::{Arm, Star, StarManner, StarMerge};
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::optimizer::star_planning::{
    drop_hash_joined, merge, note_large_key, optional, pattern_of, without,
};
use crate::optimizer::star_planning::{MemberKind, StarPlan};
use crate::pipeline::stack::{Origin, StarFrame, Work};
use crate::pipeline::Pipeline;
use crate::plan::layout::Scope;
use crate::plan::{SlotSet, TableNumber};
use crate::source::Source;
use crate::stats::Moment;

impl Pipeline {
    /// Sends rows through the arms of a star. `part` is what their quads are all in, if that is not the whole table.
    pub(crate) fn enter_star<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        rows: Bindings,
        before: Vec<Scope>,
        mut parts: StarPlan,
        part: Option<TableNumber>,
    ) {
        let top = before.len() - 1;
        let merge = merge(&self.query, source, &rows, &before[top], &parts, part);
        let first = parts.list[0].what;
        if rows.len >= self.query.tuning.bulk_from && merge.is_none() {
            let mut policy = self.hash_policy(source, true);
            drop_hash_joined(&mut policy, &rows, &before, &mut parts.list, part);
            let left = parts.list.first().and_then(|part| part.what.pattern());
            if let MemberKind::Pattern(i, each) = first {
                // It leaves the fewest rows, and takes no look-up. The others may be a star for these.
                if left != Some(i) {
                    return self.enter_pattern(source, feedback, rows, before, (i, each), part);
                }
            }
        }
        let mut scopes = without(&before, &parts.list);
        let mut live = self.query.live(&scopes);
        let is_counted = self.counting.is_some() && top == 0 && scopes[top].is_done();
        if is_counted {
            parts.leave_counted(&live);
            scopes = without(&before, &parts.list);
            live = self.query.live(&scopes);
        }
        if parts.list.len() < 2 {
            let only = parts.list.first().map_or(first, |part| part.what);
            return match only {
                MemberKind::Pattern(i, each) => {
                    self.enter_pattern(source, feedback, rows, before, (i, each), part);
                }
                MemberKind::Optional(c) => self.enter_child(rows, before, c),
            };
        }
        let is_counted = is_counted && scopes[top].is_done();
        let moment = Moment::now(source);
        let mut star_frame = self.star(rows, before, parts, live, merge);
        let step = star_frame.step;
        let star = &mut star_frame.star;
        if is_counted && star.arms().iter().all(|arm| arm.binds_nothing(&live)) {
            let multiplicities = star.multiplicities(source, &self.query.params);
            let rest = star.take_rest();
            star.note(&mut self.steps);
            if let Some(aggregation) = &mut self.counting {
                aggregation.add(source, star.input(), Some(&multiplicities));
            }
            star_frame.add_feedback(feedback);
            moment.add_since(source, &mut self.steps[step]);
            if let Some(rest) = rest {
                note_large_key(&mut self.builds, &star_frame.star);
                self.dispatch(source, feedback, rest, star_frame.before, Origin::Nowhere);
            }
            return;
        }
        self.stack.push(Work::Star(Box::new(star_frame)), scopes);
        moment.add_since(source, &mut self.steps[step]);
    }

    /// Starts a star, whose parts are in the scopes still; `live` are the variables of use after it.
    fn star(
        &mut self,
        rows: Bindings,
        before: Vec<Scope>,
        parts: StarPlan,
        live: SlotSet,
        merge: Option<StarMerge>,
    ) -> StarFrame {
        let (scope, determined_by_outer) = (
            before[before.len() - 1],
            self.stack.determined_by_outer(&before),
        );
        let first = self
            .query
            .pattern(pattern_of(&self.query.layout, &scope, parts.list[0].what));
        let (table, step) = (first.pattern.table, first.step);
        let (len, count) = (rows.len as f64, parts.list.len() as f64);
        let (mut repeats, mut quads) = (false, len);
        let (mut arms, mut figures) = (Vec::new(), Vec::new());
        for mut part in parts.list {
            let info = self
                .query
                .pattern(pattern_of(&self.query.layout, &scope, part.what));
            repeats |= distinct::repeats(
                &info.pattern,
                &info.needs,
                &rows,
                &live,
                &determined_by_outer,
            );
            part.access.keep(&live);
            let (expected, optional) = match part.what {
                MemberKind::Pattern(_, expected) => (expected, None),
                MemberKind::Optional(c) => (1.0, Some(optional(&self.query, &scope, c))),
            };
            quads *= expected;
            figures.push(FeedbackKey::new(&self.query, &info.pattern, &part.access));
            let (step, order) = (info.step, part.access.order);
            arms.push(Arm::new(step, part.access, part.constants, optional));
            self.turn(step);
            let stats = &mut self.steps[step];
            stats.order = order;
            stats.estimate += quads;
            stats.batches += 1;
            stats.starred += 1;
        }
        let manner = StarManner {
            live,
            set: self.query.distinct,
            merge,
        };
        let tuning = self.query.tuning;
        let star = Star::new(table, parts.star_key, arms, rows, manner, tuning);
        if merge.is_none() {
            let share = (PROBE_COST + (count - 1.0) * NEXT_ARM_COST) / (count * PROBE_COST);
            for arm in star.arms() {
                self.builds[arm.step].add(len, star.distinct_keys() as f64 * share);
            }
        }
        StarFrame {
            star,
            figures,
            before,
            step,
            repeats,
        }
    }
}
