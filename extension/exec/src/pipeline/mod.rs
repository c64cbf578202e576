//! The pipeline: batches of rows go from pattern to pattern, depth first, and each batch chooses its next pattern by
//! what it holds.
//!
//! A frame is a batch on its way through one pattern (or through an inner group); the stack of frames is all the state
//! there is. What comes next is chosen batch by batch (`optimizer/join_order.rs`), so a wrong guess costs one batch,
//! not the query.

pub(crate) mod participant;
pub(crate) mod pattern;
pub(crate) mod repartition;
pub(crate) mod stack;
pub(crate) mod star;

use crate::bindings::{Bindings, Column};
use crate::operators::distinct::DuplicateElimination;
use crate::operators::filter::filter;
use crate::operators::hash_aggregation::HashAggregation;
use crate::operators::incremental_semi_join::IncrementalSemiJoin;
use crate::optimizer::build_feedback::BuildRead;
use crate::optimizer::cardinality_feedback::CardinalityFeedback;
use crate::optimizer::estimates::{Estimates, Estimator};
use crate::optimizer::hash_policy::{HashBuild, HashPolicy};
use crate::optimizer::join_order::{choose, Next};
use crate::optimizer::list_ranges::choose_list_ranges;
use crate::optimizer::next_reads::wanted_with;
use crate::optimizer::prefetch::{build_reads, plan_hash, run_hash};
use crate::optimizer::star_planning::note_large_key;
use crate::optimizer::value_equality::{key_by_value, parts_by_value};
use crate::pipeline::participant::{Role, Share};
use crate::pipeline::stack::{Entered, Origin, Stack, Stage, Work};
use crate::plan::condition::Value;
use crate::plan::layout::{Ahead, Scope};
use crate::plan::query::Query;
use crate::plan::{Plan, SlotSet};
use crate::source::Source;
use crate::stats::{Moment, StepStats};
use crate::tuning::Tuning;

/// What a unit of work has come to.
#[derive(Debug)]
pub enum Progress {
    /// Rows of the answer.
    Rows(Bindings),
    /// There is more to do.
    More,
    /// There is nothing to do.
    Idle,
}

/// What a run has asked other nodes for before it is needed.
#[derive(Default)]
struct Prefetched {
    /// The hash of the plan, once it is decided what to prefetch.
    plan: Option<u64>,
    /// Build sides that have been asked for.
    reads: Vec<BuildRead>,
    /// Some of it may be under way.
    is_under_way: bool,
}

/// A join under way.
pub struct Pipeline {
    query: Query,
    /// The rows that everything starts from, until they have been taken.
    pending: Option<(Bindings, Vec<Scope>, Origin)>,
    /// What the parameters decide of the patterns is not decided yet.
    is_undecided: bool,
    stack: Stack,
    estimates: Estimates,
    /// Quads in memory, by step.
    builds: Vec<HashBuild>,
    steps: Vec<StepStats>,
    /// Build sides read of other nodes that `feedback` does not know of yet.
    build_reads: Vec<BuildRead>,
    prefetched: Prefetched,
    seen: DuplicateElimination,
    turns: u32,
    /// Rows are counted, not made.
    counting: Option<HashAggregation>,
    /// The variables of the answer and whether it is a set, while rows are counted.
    answer: (SlotSet, bool),
    /// Set in a join that others take part in.
    role: Option<Role>,
}

impl Pipeline {
    /// A pipeline for `plan`; `tables` names the tables for [`CardinalityFeedback`]. [`Self::start`] begins it.
    pub fn new(plan: &Plan, tables: Vec<u64>, tuning: Tuning) -> Self {
        let query = Query::new(plan, tables, tuning);
        Self {
            steps: vec![StepStats::default(); query.layout.steps],
            query,
            pending: None,
            is_undecided: false,
            stack: Stack::default(),
            estimates: Estimates::default(),
            builds: Vec::new(),
            build_reads: Vec::new(),
            prefetched: Prefetched::default(),
            seen: DuplicateElimination::default(),
            turns: 0,
            counting: None,
            answer: (SlotSet::default(), false),
            role: None,
        }
    }

    /// Perhaps only the first few rows will be asked for: what the whole join costs says little.
    pub fn expect_few_rows(&mut self) {
        self.query.limited = true;
    }

    /// Begins (again) with these parameters. Figures of the steps go on adding up.
    pub fn start(&mut self, params: Vec<Value>) {
        self.start_from(params, Bindings::one_row(self.query.slots));
    }

    /// As [`Self::start`], for rows that have some variables already.
    pub fn start_from(&mut self, params: Vec<Value>, rows: Bindings) {
        let steps = self.steps.len();
        self.query.set_params(params);
        self.query.layout.forget_variants();
        self.estimates = Estimates::new(steps);
        self.builds.resize_with(steps, HashBuild::default);
        for info in self.query.layout.groups.iter().flat_map(|g| &g.patterns) {
            self.builds[info.step].start(&info.pattern, &self.query.params);
        }
        self.seen.clear(steps);
        self.prefetched = Prefetched::default();
        self.build_reads.clear();
        self.stack.0.clear();
        self.role = None;
        let scopes = vec![self.query.layout.scope(0, 0, 0)];
        self.pending = Some((rows, scopes, Origin::Nowhere));
        self.is_undecided = true;
    }

    /// Leaves the beginning to others.
    fn forget_start(&mut self) {
        self.pending = None;
    }

    /// Replaces the rows that everything starts from.
    fn set_start(&mut self, rows: Bindings) {
        if let Some(pending) = &mut self.pending {
            pending.0 = rows;
        }
    }

    fn set_origin(&mut self, origin: Origin) {
        if let Some(pending) = &mut self.pending {
            pending.2 = origin;
        }
    }

    /// Puts rows on the stack.
    fn push_rows(&mut self, rows: Bindings, scopes: Vec<Scope>, origin: Origin) {
        self.stack.push(Work::Rows(Some(rows), origin), scopes);
    }

    /// How many of the batches that [`Self::take`] has put on the stack are not worked off.
    pub fn open(&self) -> usize {
        self.stack.open()
    }

    /// Ends the work and frees its memory.
    pub fn stop(&mut self) {
        self.pending = None;
        self.stack = Stack::default();
        self.builds = Vec::new();
        self.seen.clear(self.steps.len());
    }

    /// Counts the rows that [`Self::next`] would hand out, the last pattern's without making them.
    pub fn count<S: Source>(&mut self, source: &mut S, feedback: &mut CardinalityFeedback) -> u64 {
        let all = HashAggregation::new(Vec::new(), Vec::new());
        self.aggregate(source, feedback, all).rows()
    }

    /// Counts the rows that [`Self::next`] would hand out by group.
    pub fn aggregate<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        aggregation: HashAggregation,
    ) -> HashAggregation {
        self.begin_aggregation(aggregation);
        while !matches!(self.step(source, feedback), Progress::Idle) {}
        self.end_aggregation()
    }

    /// As [`Self::aggregate`], until there are more groups in memory than `known`, or no more rows; the second result
    /// says that there are none. Once groups have left memory, all rows are counted.
    pub fn aggregate_some<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        aggregation: HashAggregation,
        known: usize,
    ) -> (HashAggregation, bool) {
        self.begin_aggregation(aggregation);
        let has_more = |found: &HashAggregation| !found.has_spilled() && found.len() > known;
        while !self.counting.as_ref().is_some_and(has_more) {
            if matches!(self.step(source, feedback), Progress::Idle) {
                return (self.end_aggregation(), true);
            }
        }
        // Whoever takes the groups may use the sessions to other nodes.
        self.take_prefetched(source);
        (self.pause_aggregation(), false)
    }

    /// Counts rows from now on; [`Self::step`] hands out none.
    pub fn begin_aggregation(&mut self, aggregation: HashAggregation) {
        let reads = aggregation.reads().collect();
        self.answer = (self.query.output, self.query.distinct);
        self.query.output = reads;
        self.query.distinct &= aggregation.is_set();
        self.counting = Some(aggregation);
    }

    /// What is counted since [`Self::begin_aggregation`].
    pub fn aggregation(&mut self) -> Option<&mut HashAggregation> {
        self.counting.as_mut()
    }

    /// What has been counted since [`Self::begin_aggregation`].
    pub fn end_aggregation(&mut self) -> HashAggregation {
        let mut aggregation = self.pause_aggregation();
        aggregation.finish();
        aggregation
    }

    /// What has been counted so far, for [`Self::begin_aggregation`] to go on with.
    fn pause_aggregation(&mut self) -> HashAggregation {
        let Some(aggregation) = self.counting.take() else {
            return HashAggregation::new(Vec::new(), Vec::new());
        };
        (self.query.output, self.query.distinct) = self.answer;
        aggregation
    }

    /// Adds what the patterns have cost another participant.
    pub fn add_steps(&mut self, steps: &[[u64; 19]]) {
        for (stats, numbers) in self.steps.iter_mut().zip(steps) {
            stats.add_numbers(numbers);
        }
    }

    /// What each pattern has cost, in the order of the plan (a group's patterns before those of the groups inside it).
    pub fn steps(&self) -> &[StepStats] {
        &self.steps
    }

    /// The next batch of rows with the variables of the answer; `None` at the end.
    pub fn next<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
    ) -> Option<Bindings> {
        loop {
            match self.step(source, feedback) {
                Progress::Rows(rows) => return Some(rows),
                Progress::More => {}
                Progress::Idle => return None,
            }
        }
    }

    /// One unit of work: the next batch out of one step, taken as far as it goes without reading. Prefetched answers of
    /// other nodes may be under way after it, unless it hands out rows or there is nothing left to do.
    pub fn step<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
    ) -> Progress {
        let progress = self.work(source, feedback);
        if let (Some(plan), false) = (self.prefetched.plan, self.build_reads.is_empty()) {
            let reads = self.build_reads.drain(..);
            reads.for_each(|read| feedback.builds.add(plan, read));
        }
        if !matches!(progress, Progress::More) {
            self.take_prefetched(source);
        }
        progress
    }

    /// Takes the answers to what has been prefetched, if they are under way.
    fn take_prefetched<S: Source>(&mut self, source: &mut S) {
        if std::mem::take(&mut self.prefetched.is_under_way) {
            source.take_prefetched();
        }
    }

    fn work<S: Source>(&mut self, source: &mut S, feedback: &mut CardinalityFeedback) -> Progress {
        // A participant without a start of its own decides before it goes on with rows of others.
        if self.is_undecided && (self.pending.is_some() || self.stack.len() > 0) {
            self.is_undecided = false;
            if self.pending.is_some() {
                self.begin_run(source);
            }
            choose_list_ranges(&mut self.query, source);
            self.prefetched.is_under_way |= key_by_value(&mut self.query, source);
        }
        let (rows, scopes, from) = if let Some(pending) = self.pending.take() {
            pending
        } else {
            let Some(at) = self.stack.len().checked_sub(1) else {
                return Progress::Idle;
            };
            if let Some(tested) = self.stack.satisfied_test(&self.query.layout, at) {
                self.stack.0.truncate(tested + 1);
                return Progress::More;
            }
            let Some((rows, scopes)) = self.produce(source, at) else {
                self.stack.pop(feedback);
                return Progress::More;
            };
            let from = match &self.stack.0[at].work {
                Work::Join(joined) => Origin::Step(joined.step, joined.repeats),
                Work::Star(star_frame) => Origin::Step(star_frame.step, star_frame.repeats),
                Work::Rows(_, origin) => *origin,
                Work::Child(_) | Work::IncrementalSemiJoin(_) => Origin::Nowhere,
            };
            (rows, scopes, from)
        };
        match self.dispatch(source, feedback, rows, scopes, from) {
            Some(rows) => match &mut self.counting {
                Some(aggregation) => {
                    aggregation.add(source, &rows, None);
                    Progress::More
                }
                None => Progress::Rows(rows),
            },
            None => Progress::More,
        }
    }

    /// The next rows that come out of a frame, and what is left to do for them.
    fn produce<S: Source>(&mut self, source: &mut S, at: usize) -> Option<(Bindings, Vec<Scope>)> {
        let (below, above) = self.stack.0.split_at_mut(at);
        let frame = above.first_mut()?;
        match &mut frame.work {
            Work::IncrementalSemiJoin(rounds) => {
                let tested = self.query.layout.tested(&frame.scopes)?;
                let Work::Child(entered) = &below[frame.scopes[tested].frame].work else {
                    return None;
                };
                let rows = rounds.next(&entered.matched);
                rows.map(|rows| (rows, frame.scopes.clone()))
            }
            Work::Rows(rows, _) => rows.take().map(|rows| (rows, frame.scopes.clone())),
            Work::Join(joined) => {
                let before = Moment::now(source);
                let rows = joined.operator.next(source, &self.query.params);
                let stats = &mut self.steps[joined.step];
                before.add_since(source, stats);
                stats.rows += rows.as_ref().map_or(0, |r| r.len as u64);
                rows.map(|rows| (rows, frame.scopes.clone()))
            }
            Work::Star(star_frame) => {
                let before = Moment::now(source);
                let rows = star_frame.star.next(source, &self.query.params);
                star_frame.star.note(&mut self.steps);
                before.add_since(source, &mut self.steps[star_frame.step]);
                if let Some(rows) = rows {
                    return Some((rows, frame.scopes.clone()));
                }
                // They go on pattern by pattern.
                let rest = star_frame.star.take_rest()?;
                note_large_key(&mut self.builds, &star_frame.star);
                Some((rest, star_frame.before.clone()))
            }
            Work::Child(entered) => match entered.stage {
                Stage::Before => {
                    entered.stage = Stage::Inside;
                    Some((entered.input.clone(), frame.scopes.clone()))
                }
                Stage::Inside => {
                    entered.stage = Stage::After;
                    self.stack.leave(&self.query.layout, at)
                }
                Stage::After => None,
            },
        }
    }

    /// Takes rows as far as they go without reading: to the answer, or into a new frame.
    fn dispatch<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        mut rows: Bindings,
        mut scopes: Vec<Scope>,
        from: Origin,
    ) -> Option<Bindings> {
        loop {
            let top = scopes.len() - 1;
            filter(&self.query.layout, source, &mut rows, &mut scopes);
            if rows.len == 0 {
                return None;
            }
            if let Origin::Step(step, repeats) = from {
                self.stack
                    .drop_matched(&self.query.layout, &mut rows, &scopes);
                self.seen
                    .thin(&self.query, &mut rows, &scopes, step, repeats);
                if rows.len == 0 {
                    return None;
                }
            }
            let scope = scopes[top];
            if scope.is_read() {
                if top == 0 {
                    return Some(rows);
                }
                if !self
                    .stack
                    .matched(&self.query.layout, &mut rows, &scope, &scopes[top - 1])
                {
                    return None;
                }
                scopes.pop();
                continue;
            }
            if let Some(parts) = parts_by_value(&mut self.query, source, &rows, &scope) {
                for (rows, group) in parts {
                    let ahead = match from {
                        Origin::Participant(ahead) => Origin::Divided(ahead),
                        Origin::Divided(_) => from,
                        _ => Origin::Nowhere,
                    };
                    let (work, mut scopes) = (Work::Rows(Some(rows), ahead), scopes.clone());
                    scopes[top].group = group;
                    self.stack.push(work, scopes);
                }
                return None;
            }
            let is_new = matches!(from, Origin::Step(..));
            let first_shares = is_new.then(|| {
                let (layout, first) = (&self.query.layout, self.query.tuning.first);
                let least = IncrementalSemiJoin::least_rows(first, source.is_remote());
                let shares = self.stack.first_shares(layout, least, &rows, &scopes);
                shares.map(|(numbers, share)| (numbers, share, least))
            });
            if let Some((numbers, share, least)) = first_shares.flatten() {
                let rounds = IncrementalSemiJoin::new(rows, numbers, share, least);
                let work = Work::IncrementalSemiJoin(rounds);
                self.stack.push(work, scopes);
                return None;
            }
            let stars = self.query.layout.tested(&scopes).is_none();
            let mut ahead = match from {
                Origin::Participant(ahead) | Origin::Divided(ahead) => ahead,
                _ => None,
            };
            if let Origin::Share(first) = from {
                match self.share(source, first, &rows)? {
                    Share::All => ahead = Some(Ahead::Pattern(first.pattern)),
                    Share::Part(part) => {
                        let (first, part) = ((first.pattern, f64::NAN), Some(part));
                        self.enter_pattern(source, feedback, rows, scopes, first, part);
                        return None;
                    }
                }
            }
            let mut estimator = self.estimator(source, feedback);
            let next = choose(&mut estimator, &rows, &scopes, stars, ahead);
            let mut part = None;
            if let Some(key) = self.placed_key(source, &rows, &scope, &next) {
                // Rows that have just come take a step where they are.
                if top == 0 && ahead.is_none() {
                    (rows, part) = self.repartition(source, rows, &scopes, &key);
                } else {
                    part = self.own_part(source, &rows, &key);
                }
                if rows.len == 0 {
                    return None;
                }
            }
            if self.asks_nodes(source) {
                let wanted = wanted_with(&self.query, source, &rows, &scopes, &next);
                if let Some(wanted) = wanted {
                    source.read_ahead(&wanted);
                    self.prefetch(source, feedback);
                }
            }
            match next {
                Next::Star(parts) => self.enter_star(source, feedback, rows, scopes, parts, part),
                Next::Pattern(i, expected) => {
                    self.enter_pattern(source, feedback, rows, scopes, (i, expected), part);
                }
                Next::Child(i) => self.enter_child(rows, scopes, i),
            }
            return None;
        }
    }

    /// Notes that a step is used.
    fn turn(&mut self, step: usize) {
        if self.steps[step].turn == 0 {
            self.turns += 1;
            self.steps[step].turn = self.turns;
        }
    }

    /// Sends rows into group `i` inside the innermost of their groups.
    fn enter_child(&mut self, mut rows: Bindings, mut scopes: Vec<Scope>, i: usize) {
        let top = scopes.len() - 1;
        scopes[top].children &= !(1 << i);
        let child = &self.query.layout.groups[scopes[top].group].children[i];
        rows.columns[child.row.index()] = Column::Ids((0..rows.len as u64).collect());
        let inner = self.query.layout.scope(child.group, self.stack.len(), i);
        scopes.push(inner);
        self.seen.forget_inside(self.stack.len());
        let matched = vec![false; rows.len];
        let entered = Entered {
            input: rows,
            left: matched.len(),
            matched,
            stage: Stage::Before,
        };
        self.stack.push(Work::Child(entered), scopes);
    }

    /// Whether messages to other nodes are to bring quads of later steps along. Participants read what they hold.
    fn asks_nodes<S: Source>(&self, source: &S) -> bool {
        self.role.is_none() && source.is_remote()
    }

    /// Asks other nodes for what the last run of the same join has read.
    fn begin_run<S: Source>(&mut self, source: &mut S) {
        if self.asks_nodes(source) {
            self.prefetched.is_under_way |= source.begin_run(|| run_hash(&self.query));
        }
    }

    /// Asks other nodes for the build sides that this run will probably need, once.
    fn prefetch<S: Source>(&mut self, source: &mut S, feedback: &mut CardinalityFeedback) {
        if self.prefetched.plan.is_some() {
            return;
        }
        let plan = plan_hash(&self.query);
        self.prefetched.plan = Some(plan);
        let mut expected = feedback.builds.expected(plan);
        expected.retain(|read| !self.builds[read.step].has_table());
        let (builds, reads) = build_reads(&self.query, source, &self.estimates, &expected);
        if !reads.is_empty() && source.prefetch(&reads) {
            feedback.builds.note_prefetched(plan, &builds);
            self.prefetched.is_under_way = true;
            self.prefetched.reads = builds;
        }
    }

    /// What estimates of cardinalities are made from.
    fn estimator<'a, S: Source>(
        &'a mut self,
        source: &'a mut S,
        feedback: &'a mut CardinalityFeedback,
    ) -> Estimator<'a, S> {
        Estimator {
            asks_nodes: self.asks_nodes(source),
            query: &self.query,
            builds: &self.builds,
            estimates: &mut self.estimates,
            source,
            feedback,
        }
    }

    /// What the choice between probes and a table in memory is made from, for a pattern by itself or an arm of a star.
    fn hash_policy<'a, S>(
        &'a mut self,
        source: &'a mut S,
        is_arm: bool,
    ) -> HashPolicy<'a, S, Stack> {
        HashPolicy {
            is_arm,
            query: &self.query,
            builds: &mut self.builds,
            steps: &mut self.steps,
            running: &self.stack,
            source,
            is_whole: self.query.whole || self.counting.is_some(),
            prefetched: &self.prefetched.reads,
            reads: &mut self.build_reads,
        }
    }
}
