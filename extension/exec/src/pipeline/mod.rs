//! The pipeline: batches of rows go from pattern to pattern, depth first, and each batch chooses its next pattern by what it holds.
//!
//! A frame is a batch on its way through one pattern (or through an inner group); the stack of frames is all the state there is. What
//! comes next is chosen batch by batch (`join_order.rs`), so a wrong guess costs one batch, not the query.

pub(crate) mod repartition;

use crate::access::access_path::PushedRanges;
use crate::access::access_path::{cannot_match, AccessPath};
use crate::bindings::{Bindings, Column};
use crate::operators::distinct::{repeats, Seen};
use crate::operators::hash_aggregation::HashAggregation;
use crate::operators::hash_table::Table;
use crate::operators::incremental_semi_join::{at_once, IncrementalSemiJoin};
use crate::operators::join_operator::JoinOperator;
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::optimizer::hash_policy::HashBuild;
use crate::optimizer::join_order::Next;
use crate::optimizer::star_planning::{crowd, StarFrame};
use crate::pipeline::repartition::{Ahead, Role, Share};
use crate::plan::condition::Value;
use crate::plan::layout::{Layout, Scope};
use crate::plan::{Kind, Plan, Slot, SlotSet};
use crate::source::Source;
use crate::stats::{Moment, StepStats};
use crate::tuning::Tuning;
use std::rc::Rc;

/// A batch in a child: first it goes in, then the rows that had no match (or those that had) come out.
struct Entered {
    input: Bindings,
    matched: Vec<bool>,
    /// How many are not matched yet.
    left: usize,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Inside,
    After,
}

/// A batch in a pattern.
struct Joined {
    operator: JoinOperator,
    step: usize,
    what: FeedbackKey,
    /// Quads that it is expected to find.
    expected: f64,
    /// The same row may come out more than once.
    repeats: bool,
}

enum Work {
    Join(Joined),
    Star(Box<StarFrame>),
    Child(Entered),
    IncrementalSemiJoin(IncrementalSemiJoin),
    /// Rows that wait for others to go on before them.
    Rows(Option<Bindings>, Origin),
}

struct Frame {
    work: Work,
    /// What is left to do for the rows that come out.
    scopes: Vec<Scope>,
}

/// Where rows come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nowhere of interest.
    Nowhere,
    /// Out of a step, and whether the same row may come out of it again.
    Step(usize, bool),
    /// From another participant, which has chosen the next step.
    Participant(Option<Ahead>),
    /// A part of such rows.
    Divided(Option<Ahead>),
    /// The beginning of a share that starts with this pattern, whose quads are shared out by this column.
    Share(usize, u8),
}

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

/// A join under way.
pub struct Pipeline {
    pub(crate) layout: Layout,
    pub(crate) slots: usize,
    pub(crate) output: SlotSet,
    pub(crate) tuning: Tuning,
    pub(crate) params: Vec<Value>,
    /// The rows that everything starts from, until they have been taken.
    pending: Option<(Bindings, Vec<Scope>, Origin)>,
    frames: Vec<Frame>,
    /// Counts of patterns that only constants bind, by step.
    pub(crate) counts: Vec<Option<f64>>,
    /// What filters leave of them, by step.
    pub(crate) left: Vec<Option<(PushedRanges, f64)>>,
    pub(crate) steps: Vec<StepStats>,
    /// Quads in memory, by step.
    pub(crate) hash_builds: Vec<HashBuild>,
    /// Rows that have come out of each step, where they are not to go on twice.
    pub(crate) seen: Vec<Option<Seen>>,
    /// The answer is a set of rows.
    pub(crate) distinct: bool,
    /// All rows will be asked for.
    pub(crate) whole: bool,
    turns: u32,
    /// Identity of each table in [`CardinalityFeedback`].
    pub(crate) tables: Vec<u64>,
    /// Rows are counted, not made.
    pub(crate) counting: Option<HashAggregation>,
    /// The variables of the answer and whether it is a set, while rows are counted.
    answer: (SlotSet, bool),
    /// Set in a join that others take part in.
    pub(crate) role: Option<Role>,
}

impl Pipeline {
    /// A pipeline for `plan`; `tables` names the tables for [`CardinalityFeedback`]. [`Self::start`] begins it.
    pub fn new(plan: &Plan, tables: Vec<u64>, tuning: Tuning) -> Self {
        let layout = Layout::new(plan);
        Self {
            steps: vec![StepStats::default(); layout.steps],
            layout,
            slots: usize::from(plan.slots),
            output: plan.output.iter().copied().collect(),
            tuning,
            params: Vec::new(),
            pending: None,
            frames: Vec::new(),
            counts: Vec::new(),
            left: Vec::new(),
            hash_builds: Vec::new(),
            seen: Vec::new(),
            distinct: plan.distinct,
            whole: plan.whole,
            turns: 0,
            tables,
            counting: None,
            answer: (SlotSet::default(), false),
            role: None,
        }
    }

    /// Begins (again) with these parameters. Figures of the steps go on adding up.
    pub fn start(&mut self, params: Vec<Value>) {
        self.start_from(params, Bindings::one_row(self.slots));
    }

    /// As [`Self::start`], for rows that have some variables already.
    pub fn start_from(&mut self, mut params: Vec<Value>, rows: Bindings) {
        for param in &mut params {
            if let Value::List(list) = param {
                list.sort_unstable();
                list.dedup();
            }
        }
        self.params = params;
        self.counts = vec![None; self.steps.len()];
        self.left = vec![None; self.steps.len()];
        self.hash_builds
            .resize_with(self.steps.len(), HashBuild::default);
        self.layout.forget_variants();
        for info in self.layout.groups.iter().flat_map(|g| &g.patterns) {
            self.hash_builds[info.step].start(&info.pattern, &self.params);
        }
        self.forget_seen();
        self.frames.clear();
        self.role = None;
        self.pending = Some((rows, vec![self.layout.scope(0, 0, 0)], Origin::Nowhere));
    }

    /// Leaves the beginning to others.
    pub(crate) fn forget_start(&mut self) {
        self.pending = None;
    }

    /// Replaces the rows that everything starts from.
    pub(crate) fn set_start(&mut self, rows: Bindings) {
        if let Some(pending) = &mut self.pending {
            pending.0 = rows;
        }
    }

    pub(crate) fn set_origin(&mut self, origin: Origin) {
        if let Some(pending) = &mut self.pending {
            pending.2 = origin;
        }
    }

    /// How many of the batches that [`Self::take`] has put on the stack are not worked off.
    pub fn open(&self) -> usize {
        let taken = |frame: &&Frame| matches!(frame.work, Work::Rows(_, Origin::Participant(_)));
        self.frames.iter().filter(taken).count()
    }

    /// Puts rows on the stack.
    pub(crate) fn push_rows(&mut self, rows: Bindings, scopes: Vec<Scope>, origin: Origin) {
        let work = Work::Rows(Some(rows), origin);
        self.frames.push(Frame { work, scopes });
    }

    /// Ends the work and frees its memory.
    pub fn stop(&mut self) {
        self.pending = None;
        self.frames = Vec::new();
        self.hash_builds = Vec::new();
        self.forget_seen();
    }

    fn forget_seen(&mut self) {
        self.seen.clear();
        self.seen.resize_with(self.steps.len(), || None);
    }

    /// Number of batches under way.
    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
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

    /// Counts rows from now on; [`Self::step`] hands out none.
    pub fn begin_aggregation(&mut self, aggregation: HashAggregation) {
        let reads = aggregation.reads().collect();
        self.answer.0 = std::mem::replace(&mut self.output, reads);
        self.answer.1 = std::mem::replace(&mut self.distinct, false);
        self.counting = Some(aggregation);
    }

    /// What has been counted since [`Self::begin_aggregation`].
    pub fn end_aggregation(&mut self) -> HashAggregation {
        let Some(mut aggregation) = self.counting.take() else {
            return HashAggregation::new(Vec::new(), Vec::new());
        };
        (self.output, self.distinct) = self.answer;
        aggregation.finish();
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

    /// One unit of work: the next batch out of one step, taken as far as it goes without reading.
    pub fn step<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
    ) -> Progress {
        let (rows, scopes, from) = if let Some(pending) = self.pending.take() {
            self.key_by_value(source);
            pending
        } else {
            let Some(at) = self.frames.len().checked_sub(1) else {
                return Progress::Idle;
            };
            if let Some(tested) = self.satisfied_test(at) {
                self.frames.truncate(tested + 1);
                return Progress::More;
            }
            let Some((rows, scopes)) = self.produce(source, at) else {
                self.pop(feedback);
                return Progress::More;
            };
            let from = match &self.frames[at].work {
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
                    aggregation.add(&rows, None);
                    Progress::More
                }
                None => Progress::Rows(rows),
            },
            None => Progress::More,
        }
    }

    /// The frame of an EXISTS or NOT EXISTS around frame `at` whose rows all have found a match.
    fn satisfied_test(&self, at: usize) -> Option<usize> {
        let scopes = &self.frames[at].scopes;
        let tested = scopes[self.layout.tested(scopes)?].frame;
        match &self.frames[tested].work {
            Work::Child(entered) if tested < at && entered.left == 0 => Some(tested),
            _ => None,
        }
    }

    fn pop(&mut self, feedback: &mut CardinalityFeedback) {
        match self.frames.pop().map(|frame| frame.work) {
            Some(Work::Join(joined)) => {
                let (keys, quads) = joined.operator.found();
                feedback.add(joined.what, keys, quads);
            }
            Some(Work::Star(star_frame)) => star_frame.star.add_feedback(feedback),
            _ => {}
        }
    }

    /// The next rows that come out of a frame, and what is left to do for them.
    fn produce<S: Source>(&mut self, source: &mut S, at: usize) -> Option<(Bindings, Vec<Scope>)> {
        let (below, above) = self.frames.split_at_mut(at);
        let frame = above.first_mut()?;
        match &mut frame.work {
            Work::IncrementalSemiJoin(rounds) => {
                let tested = self.layout.tested(&frame.scopes)?;
                let Work::Child(entered) = &below[frame.scopes[tested].frame].work else {
                    return None;
                };
                let rows = rounds.next(&entered.matched);
                rows.map(|rows| (rows, frame.scopes.clone()))
            }
            Work::Rows(rows, _) => rows.take().map(|rows| (rows, frame.scopes.clone())),
            Work::Join(joined) => {
                let before = Moment::now(source);
                let rows = joined.operator.next(source, &self.params);
                let stats = &mut self.steps[joined.step];
                before.add_since(source, stats);
                stats.rows += rows.as_ref().map_or(0, |r| r.len as u64);
                rows.map(|rows| (rows, frame.scopes.clone()))
            }
            Work::Star(star_frame) => {
                let before = Moment::now(source);
                let rows = star_frame.star.next(source, &self.params);
                star_frame.star.note(&mut self.steps);
                before.add_since(source, &mut self.steps[star_frame.step]);
                if let Some(rows) = rows {
                    return Some((rows, frame.scopes.clone()));
                }
                // They go on pattern by pattern.
                let rest = star_frame.star.take_rest()?;
                crowd(&mut self.hash_builds, &star_frame.star);
                Some((rest, star_frame.before.clone()))
            }
            Work::Child(entered) => match entered.stage {
                Stage::Before => {
                    entered.stage = Stage::Inside;
                    Some((entered.input.clone(), frame.scopes.clone()))
                }
                Stage::Inside => {
                    entered.stage = Stage::After;
                    self.leave(at)
                }
                Stage::After => None,
            },
        }
    }

    /// The rows that stay after a child has seen all of a batch.
    fn leave(&mut self, at: usize) -> Option<(Bindings, Vec<Scope>)> {
        let mut scopes = self.frames[at].scopes.clone();
        let inner = scopes.pop()?;
        let outer = *scopes.last()?;
        let Frame {
            work: Work::Child(entered),
            ..
        } = &mut self.frames[at]
        else {
            return None;
        };
        let child = &self.layout.groups[outer.group].children[inner.child];
        let mut rows = std::mem::take(&mut entered.input);
        let keep: Vec<bool> = entered
            .matched
            .iter()
            .map(|&m| m == (child.kind == Kind::Semi))
            .collect();
        rows.retain(&keep);
        if child.kind != Kind::Semi {
            for slot in 0..self.slots {
                if child.binds.has(slot as Slot) {
                    rows.columns[slot] = Column::Null;
                }
            }
        }
        rows.columns[usize::from(child.row)] = Column::Absent;
        Some((rows, scopes))
    }

    /// Takes rows as far as they go without reading: to the answer, or into a new frame.
    pub(crate) fn dispatch<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        mut rows: Bindings,
        mut scopes: Vec<Scope>,
        from: Origin,
    ) -> Option<Bindings> {
        loop {
            let top = scopes.len() - 1;
            self.filter(source, &mut rows, &mut scopes[top]);
            if rows.len == 0 {
                return None;
            }
            if let Origin::Step(step, repeats) = from {
                self.drop_matched(&mut rows, &scopes);
                self.thin(&mut rows, &scopes, step, repeats);
                if rows.len == 0 {
                    return None;
                }
            }
            let scope = scopes[top];
            if scope.is_read() {
                if top == 0 {
                    return Some(rows);
                }
                if !self.matched(&mut rows, &scope, &scopes[top - 1]) {
                    return None;
                }
                scopes.pop();
                continue;
            }
            if let Some(parts) = self.parts_by_value(source, &rows, &scope) {
                for (rows, group) in parts {
                    let ahead = match from {
                        Origin::Participant(ahead) => Origin::Divided(ahead),
                        Origin::Divided(_) => from,
                        _ => Origin::Nowhere,
                    };
                    let (work, mut scopes) = (Work::Rows(Some(rows), ahead), scopes.clone());
                    scopes[top].group = group;
                    self.frames.push(Frame { work, scopes });
                }
                return None;
            }
            let is_new = matches!(from, Origin::Step(..));
            let first_shares = is_new.then(|| self.first_shares(&rows, &scopes));
            if let Some((numbers, share)) = first_shares.flatten() {
                let work =
                    Work::IncrementalSemiJoin(IncrementalSemiJoin::new(rows, numbers, share));
                self.frames.push(Frame { work, scopes });
                return None;
            }
            let stars = self.layout.tested(&scopes).is_none();
            let mut ahead = match from {
                Origin::Participant(ahead) | Origin::Divided(ahead) => ahead,
                _ => None,
            };
            if let Origin::Share(first, column) = from {
                match self.share(source, (first, column), &rows)? {
                    Share::All => ahead = Some(Ahead::Pattern(first)),
                    Share::Part(part) => {
                        let (first, part) = ((first, f64::NAN), Some(part));
                        self.enter_pattern(source, feedback, rows, scopes, first, part);
                        return None;
                    }
                }
            }
            let next = self.choose(source, feedback, &rows, &scope, stars, ahead);
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

    /// Notes that rows of a batch have found a match in a child; whether they go on from there.
    fn matched(&mut self, rows: &mut Bindings, inner: &Scope, outer: &Scope) -> bool {
        let child = &self.layout.groups[outer.group].children[inner.child];
        if let (Work::Child(entered), Some(numbers)) =
            (&mut self.frames[inner.frame].work, rows.ids(child.row))
        {
            for &number in numbers {
                let matched = &mut entered.matched[number as usize];
                entered.left -= usize::from(!*matched);
                *matched = true;
            }
        }
        if child.kind != Kind::Left {
            return false;
        }
        for &(copy, original) in &child.exports {
            rows.columns[usize::from(copy)] = rows.columns[usize::from(original)].clone();
        }
        rows.columns[usize::from(child.row)] = Column::Absent;
        true
    }

    /// The innermost EXISTS or NOT EXISTS around: the variable that numbers its rows, and those rows.
    fn test_around(&self, scopes: &[Scope]) -> Option<(Slot, &Entered)> {
        let depth = self.layout.tested(scopes)?;
        let child = &self.layout.groups[scopes[depth - 1].group].children[scopes[depth].child];
        match &self.frames[scopes[depth].frame].work {
            Work::Child(entered) => Some((child.row, entered)),
            _ => None,
        }
    }

    /// The variables that the numbers of rows outside tell: those of the rows that have entered the groups around.
    pub(crate) fn determined_by_outer(&self, scopes: &[Scope]) -> SlotSet {
        let mut determined_by_outer = SlotSet::default();
        for scope in scopes.iter().skip(1) {
            if let Work::Child(entered) = &self.frames[scope.frame].work {
                determined_by_outer.add_all(&entered.input.known());
            }
        }
        determined_by_outer
    }

    /// Drops rows of which an EXISTS or NOT EXISTS around them knows already that there is a match.
    fn drop_matched(&self, rows: &mut Bindings, scopes: &[Scope]) {
        let Some((slot, entered)) = self.test_around(scopes) else {
            return;
        };
        if entered.left == entered.matched.len() {
            return;
        }
        if let Some(numbers) = rows.ids(slot) {
            let keep: Vec<bool> = numbers
                .iter()
                .map(|&number| !entered.matched[number as usize])
                .collect();
            rows.retain(&keep);
        }
    }

    /// Where rows are to go on in rounds: the row of the EXISTS or NOT EXISTS around that each belongs to, and how many of each go first.
    fn first_shares(&self, rows: &Bindings, scopes: &[Scope]) -> Option<(Vec<u32>, usize)> {
        let (slot, entered) = self.test_around(scopes)?;
        let numbers = rows.ids(slot)?;
        let share =
            IncrementalSemiJoin::first_share(numbers, entered.matched.len(), self.tuning.first)?;
        Some((numbers.iter().map(|&n| n as u32).collect(), share))
    }

    /// Sends rows through pattern `i`. `part` is what their quads are all in, if that is not the whole table.
    pub(crate) fn enter_pattern<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        rows: Bindings,
        mut scopes: Vec<Scope>,
        (i, expected): (usize, f64),
        part: Option<u16>,
    ) {
        let top = scopes.len() - 1;
        scopes[top].patterns &= !(1 << i);
        let live = self.layout.live(self.output, &scopes);
        let info = &self.layout.groups[scopes[top].group].patterns[i];
        if cannot_match(&info.pattern, &rows, &self.params) {
            return;
        }
        let table = part.unwrap_or(info.pattern.table);
        let determined_by_outer = self.determined_by_outer(&scopes);
        let repeats = repeats(
            &info.pattern,
            &info.needs,
            &rows,
            (&live, &determined_by_outer),
        );
        let mut access =
            AccessPath::new(&info.pattern, source.orders(table), &rows, &live).of_part(table);
        let mut pushed_ranges = PushedRanges::new();
        // Few quads are tested as fast as the ranges are found.
        let many = match access.bound {
            0 => self.counts[info.step]
                .is_none_or(|count| count >= self.tuning.range_pushdown_from as f64),
            _ => rows.len >= self.tuning.bulk_from,
        };
        if many {
            pushed_ranges = self.pushed_ranges(source, i, &rows, &scopes[top]);
        }
        let keyed = info.keyed.filter(|_| access.known.is_empty());
        let keyed = keyed.filter(|same| !pushed_ranges.iter().any(|n| n.0 == same.column));
        if let Some(same) = keyed {
            pushed_ranges.push((same.column, self.between(same)));
        }
        if access.bound == 0 && !pushed_ranges.is_empty() {
            let (pattern, orders) = (&info.pattern, source.orders(table));
            access =
                AccessPath::with_ranges(pattern, orders, &rows, &live, |_| true, &pushed_ranges)
                    .of_part(table);
        }
        let what = self.feedback_key(&info.pattern, &access);
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
            let multiplicities =
                self.multiplicities(source, feedback, (last.group, i), access, &rows);
            self.steps[step].rows += multiplicities.iter().sum::<u64>();
            if let Some(aggregation) = &mut self.counting {
                aggregation.add(&rows, Some(&multiplicities));
            }
        } else {
            let len = rows.len;
            let at = (last.group, i);
            let mut operator = match keyed {
                Some(same) => self.join_by_value(source, at, same, access, rows, live),
                None => self.join(source, at, access, rows, (live, &pushed_ranges)),
            };
            if self.layout.tested(&scopes).is_some() {
                operator.widen(at_once(&last, len, expected));
            }
            self.frames.push(Frame {
                work: Work::Join(Joined {
                    operator,
                    step,
                    what,
                    expected: quads,
                    repeats,
                }),
                scopes,
            });
        }
        before.add_since(source, &mut self.steps[step]);
    }

    /// Notes that a step is used.
    pub(crate) fn turn(&mut self, step: usize) {
        if self.steps[step].turn == 0 {
            self.turns += 1;
            self.steps[step].turn = self.turns;
        }
    }

    /// Puts a batch into a star; `scopes` is what is left to do after it.
    pub(crate) fn push_star(&mut self, star_frame: StarFrame, scopes: Vec<Scope>) {
        let work = Work::Star(Box::new(star_frame));
        self.frames.push(Frame { work, scopes });
    }

    /// How many times as many rows as now there will be in the end, by what the steps before have done of their work.
    pub(crate) fn outlook(&self) -> f64 {
        let times = self.frames.iter().map(|frame| match &frame.work {
            Work::Join(joined) => joined.operator.outlook(joined.expected),
            Work::Star(star_frame) => star_frame.star.outlook(),
            Work::Child(_) | Work::IncrementalSemiJoin(_) | Work::Rows(..) => 1.0,
        });
        times.product()
    }

    /// Bytes of tables that batches have for themselves.
    pub(crate) fn frame_bytes(&self, is_held: impl Fn(&Rc<Table>) -> bool) -> usize {
        let bytes = self.frames.iter().map(|frame| match &frame.work {
            Work::Join(joined) => joined.operator.own_bytes(&is_held),
            Work::Star(_) | Work::Child(_) | Work::IncrementalSemiJoin(_) | Work::Rows(..) => 0,
        });
        bytes.sum()
    }

    pub(crate) fn enter_child(&mut self, mut rows: Bindings, mut scopes: Vec<Scope>, i: usize) {
        let top = scopes.len() - 1;
        scopes[top].children &= !(1 << i);
        let child = &self.layout.groups[scopes[top].group].children[i];
        rows.columns[usize::from(child.row)] = Column::Ids((0..rows.len as u64).collect());
        let inner = self.layout.scope(child.group, self.frames.len(), i);
        scopes.push(inner);
        self.forget_seen_inside();
        let matched = vec![false; rows.len];
        self.frames.push(Frame {
            work: Work::Child(Entered {
                input: rows,
                left: matched.len(),
                matched,
                stage: Stage::Before,
            }),
            scopes,
        });
    }
}
