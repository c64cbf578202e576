//! A batch enters a pattern: how it is read, and which operator joins it.

use crate::access::access_path::{cannot_match, AccessPath, PushedRange, PushedRanges};
use crate::bindings::Bindings;
use crate::cost::READ_AHEAD_RANGES;
use crate::operators::distinct::repeats;
use crate::operators::hash_aggregation::total;
use crate::operators::hash_probe::HashProbe;
use crate::operators::incremental_semi_join::at_once;
use crate::operators::index_probe::IndexProbe;
use crate::operators::join_operator::JoinOperator;
use crate::operators::value_hash_join::{ValueHashJoin, ValueHashTable};
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::optimizer::hash_policy::room;
use crate::optimizer::range_pushdown::pushed_ranges as find_ranges;
use crate::optimizer::value_equality::between;
use crate::pipeline::stack::{Joined, Work};
use crate::pipeline::Pipeline;
use crate::plan::layout::Scope;
use crate::plan::query::PatternAt;
use crate::plan::{SameValue, SlotSet, TableNumber};
use crate::source::Source;
use crate::stats::Moment;

impl Pipeline {
    /// Sends rows through pattern `i`. `part` is what their quads are all in, if that is not the whole table.
    pub(crate) fn enter_pattern<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        rows: Bindings,
        mut scopes: Vec<Scope>,
        (i, expected): (usize, f64),
        part: Option<TableNumber>,
    ) {
        let top = scopes.len() - 1;
        scopes[top].patterns &= !(1 << i);
        let live = self.query.live(&scopes);
        let at = PatternAt {
            group: scopes[top].group,
            pattern: i,
        };
        let info = self.query.pattern(at);
        if cannot_match(&info.pattern, &rows, &self.query.params) {
            return;
        }
        let table = part.unwrap_or(info.pattern.table);
        let determined_by_outer = self.stack.determined_by_outer(&scopes);
        let repeats = repeats(
            &info.pattern,
            &info.needs,
            &rows,
            &live,
            &determined_by_outer,
        );
        let orders = source.orders(table);
        let mut access = AccessPath::new(&info.pattern, orders, &rows, &live);
        // What has been read ahead of smaller batches is known by the order that the pattern has by itself.
        let least = match source.is_remote() {
            true => READ_AHEAD_RANGES + 1,
            false => 0,
        };
        if rows.len >= least.max(self.query.tuning.bulk_from) && access.bound != 0 {
            access = access.in_densest_order(&info.pattern, orders, &rows, &live);
        }
        access = access.of_part(table);
        let mut pushed_ranges = PushedRanges::new();
        // Few quads are tested as fast as the ranges are found.
        let many = match access.bound {
            0 => self.estimates.counts[info.step]
                .is_none_or(|count| count >= self.query.tuning.range_pushdown_from as f64),
            _ => rows.len >= self.query.tuning.bulk_from,
        };
        if many {
            pushed_ranges = find_ranges(&self.query.layout, source, i, &rows, &scopes[top]);
        }
        let keyed = info.keyed.filter(|_| access.known.is_empty());
        let keyed = keyed.filter(|same| {
            !pushed_ranges
                .iter()
                .any(|pushed| pushed.column == same.column)
        });
        if let Some(same) = keyed {
            let between = PushedRange {
                column: same.column,
                within: between(&self.query.params, same),
            };
            pushed_ranges.push(between.clone());
            // A table of what filters left for other rows is of no use: the next one is of all quads, for all rows.
            let build = &self.builds[info.step];
            let kept = build.by_value.as_ref().filter(|_| !build.is_read_in_parts);
            if kept.is_some_and(|kept| !kept.covers(&pushed_ranges)) {
                pushed_ranges.clear();
                pushed_ranges.push(between);
            }
        }
        if access.bound == 0 && !pushed_ranges.is_empty() {
            let (pattern, orders) = (&info.pattern, source.orders(table));
            access =
                AccessPath::with_ranges(pattern, orders, &rows, &live, |_| true, &pushed_ranges)
                    .of_part(table);
        }
        let what = FeedbackKey::new(&self.query, &info.pattern, &access);
        let step = info.step;
        self.turn(step);
        let stats = &mut self.steps[step];
        stats.order = source.whole_order(table, access.order);
        stats.estimate += if expected.is_nan() {
            0.0
        } else {
            expected * rows.len as f64
        };
        let quads = expected * rows.len as f64;
        let before = Moment::now(source);
        let last = scopes[top];
        let is_last = top == 0 && last.is_done();
        let binds = !access.fills.is_empty();
        if self.counting.is_some() && is_last && !binds {
            let multiplicities = self.multiplicities(source, feedback, at, access, &rows);
            let made = &mut self.steps[step].rows;
            *made = made.saturating_add(total(&multiplicities));
            if let Some(aggregation) = &mut self.counting {
                aggregation.add(source, &rows, Some(&multiplicities));
            }
        } else {
            let len = rows.len;
            let mut operator = match keyed {
                Some(same) => self.join_by_value(source, at, same, access, rows, live),
                None => self.join(source, at, access, rows, live, &pushed_ranges),
            };
            if self.query.layout.tested(&scopes).is_some() {
                operator.widen(at_once(&last, len, expected));
            }
            let joined = Joined {
                operator,
                step,
                what,
                expected: quads,
                repeats,
            };
            self.stack.push(Work::Join(joined), scopes);
        }
        before.add_since(source, &mut self.steps[step]);
    }

    /// The step that joins `rows` with a pattern, for which `access` is the way to probe.
    fn join<S: Source>(
        &mut self,
        source: &mut S,
        at: PatternAt,
        access: AccessPath,
        rows: Bindings,
        live: SlotSet,
        pushed_ranges: &PushedRanges,
    ) -> JoinOperator {
        let step = self.query.pattern(at).step;
        let counted = self.estimates.counts[step];
        let found = self.hash_policy(source, false).table(
            at,
            counted,
            &access,
            &rows,
            &live,
            pushed_ranges,
        );
        let tuning = self.query.tuning;
        let stats = &mut self.steps[step];
        stats.batches += 1;
        if let Some((access, table)) = found {
            stats.order = source.whole_order(access.table, access.order);
            stats.hashed += 1;
            stats.memory = stats.memory.max(table.bytes() as u64);
            return JoinOperator::HashProbe(Box::new(HashProbe::new(
                table, access, rows, live, tuning,
            )));
        }
        let len = rows.len as f64;
        let params = &self.query.params;
        let index_probe = IndexProbe::new(source, access, rows, live, params, tuning);
        let keys = index_probe.distinct_keys();
        stats.keys += keys as u64;
        stats.probes += index_probe.probes() as u64;
        let mut probes = keys as f64;
        if index_probe.merges() {
            stats.merged += 1;
            probes = 0.0;
        }
        self.builds[step].add(len, probes);
        JoinOperator::IndexProbe(Box::new(index_probe))
    }

    /// The step that joins `rows` with a pattern by value, reading the quads with `access`.
    fn join_by_value<S: Source>(
        &mut self,
        source: &mut S,
        at: PatternAt,
        same: SameValue,
        access: AccessPath,
        rows: Bindings,
        live: SlotSet,
    ) -> JoinOperator {
        let info = self.query.pattern(at);
        let (step, table) = (info.step, info.pattern.table);
        let kept = self.builds[step].by_value.take();
        let (query, builds, stack) = (&self.query, &self.builds, &self.stack);
        let (join, kept) = ValueHashJoin::new(
            source,
            (table, access, same),
            rows,
            live,
            (&query.params, query.tuning),
            kept,
            || room(query, builds, stack, Some(step)),
        );
        let bytes = kept.as_ref().map_or(0, ValueHashTable::bytes);
        self.builds[step].is_read_in_parts |= kept.is_none();
        self.builds[step].by_value = kept;
        let stats = &mut self.steps[step];
        stats.batches += 1;
        stats.hashed += 1;
        stats.memory = stats.memory.max(bytes.max(join.ready_bytes()) as u64);
        JoinOperator::ValueHashJoin(Box::new(join))
    }

    /// How many rows come out of a pattern for each of `rows`, none of which is made.
    fn multiplicities<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        at: PatternAt,
        access: AccessPath,
        rows: &Bindings,
    ) -> Vec<u64> {
        let step = self.query.pattern(at).step;
        let bulk = self.query.tuning.bulk_from;
        let build = &mut self.builds[step];
        let few = rows.len < bulk || access.known.is_empty();
        // The quads of all keys are on the way, to be put into a table.
        let mut reads = self.prefetched.reads.iter();
        let is_coming = reads.any(|read| read.step == step) && !build.is_refused();
        if few || is_coming || build.multiplicities.is_given_up() || build.has_table() {
            return self.uncached_multiplicities(source, feedback, at, access, rows.clone());
        }
        let mut cache = std::mem::take(&mut build.multiplicities);
        let known = access.known.clone();
        let found = cache.multiplicities(&known, rows, |new| {
            self.uncached_multiplicities(source, feedback, at, access, new)
        });
        let stats = &mut self.steps[step];
        stats.memory = stats.memory.max(cache.bytes() as u64);
        let room = || room(&self.query, &self.builds, &self.stack, Some(step));
        if cache.is_seldom_met(bulk) || cache.bytes() > room() {
            cache.give_up();
        }
        self.builds[step].multiplicities = cache;
        found
    }

    fn uncached_multiplicities<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        at: PatternAt,
        access: AccessPath,
        rows: Bindings,
    ) -> Vec<u64> {
        let what = FeedbackKey::new(&self.query, &self.query.pattern(at).pattern, &access);
        let (live, pushed_ranges) = (SlotSet::default(), PushedRanges::new());
        let mut operator = self.join(source, at, access, rows, live, &pushed_ranges);
        let multiplicities = operator.multiplicities(source, &self.query.params);
        let (keys, quads) = operator.found();
        feedback.add(what, keys, quads);
        multiplicities
    }
}
