//! The pipeline: batches of rows go from pattern to pattern, depth first, and each batch chooses its next pattern by what it holds.
//!
//! A frame is a batch on its way through one pattern (or through an inner group); the stack of frames is all the state there is. The
//! next pattern is the one with the fewest expected quads per row: exact counts where only constants bind it, what earlier probes
//! found or a sample of the batch's own keys elsewhere. So a wrong guess costs one batch, not the query.

use crate::access::Value;
use crate::bindings::{Bindings, Column};
use crate::fanout::{Fanouts, Probed};
use crate::order::{is_hopeless, Access};
use crate::plan::{Filter, Group, Kind, Pattern, Plan, Slot, SlotSet, Test};
use crate::probe::{count, sample, Probing};
use crate::source::Source;

/// Sizes of batches.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Rows that the first batch of a step hands on; later ones grow.
    pub first: usize,
    /// Most rows of a batch.
    pub most: usize,
}

/// What one pattern has cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepStats {
    /// When it was first used (1 = first of all); 0 = never.
    pub turn: u32,
    /// Number of the order read, by the last batch.
    pub order: usize,
    /// Quads expected.
    pub estimate: f64,
    /// Batches of rows that went in.
    pub batches: u64,
    /// Distinct keys probed.
    pub keys: u64,
    /// Key ranges read.
    pub probes: u64,
    /// Rows that came out.
    pub rows: u64,
    /// Time in nanoseconds, if the source has a clock.
    pub time: u64,
    /// Pages found in memory, if the source counts them.
    pub hit: u64,
    /// Pages read.
    pub read: u64,
}

struct PatternInfo {
    pattern: Pattern,
    needs: SlotSet,
    step: usize,
}

struct ChildInfo {
    kind: Kind,
    group: usize,
    exports: Vec<(Slot, Slot)>,
    needs: SlotSet,
    binds: SlotSet,
    row: Slot,
}

struct GroupInfo {
    patterns: Vec<PatternInfo>,
    filters: Vec<(Filter, SlotSet)>,
    children: Vec<ChildInfo>,
}

/// What is left to do in one group.
#[derive(Clone, Copy)]
struct Scope {
    group: usize,
    patterns: u64,
    filters: u64,
    children: u64,
    /// The frame that entered the group; of no meaning in the outermost.
    frame: usize,
    /// Number of the child in the group around.
    child: usize,
}

/// A batch in a child: first it goes in, then the rows that had no match (or those that had) come out.
struct Entered {
    input: Bindings,
    matched: Vec<bool>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Before,
    Inside,
    After,
}

enum Work {
    Probe(Box<Probing>, usize, Probed),
    Child(Entered),
}

struct Frame {
    work: Work,
    /// What is left to do for the rows that come out.
    scopes: Vec<Scope>,
}

enum Next {
    Pattern(usize, f64),
    Child(usize),
}

/// A join under way.
pub struct Pipeline {
    groups: Vec<GroupInfo>,
    slots: usize,
    output: SlotSet,
    tuning: Tuning,
    params: Vec<Value>,
    /// The row that everything starts from, until it has been taken.
    pending: Option<(Bindings, Vec<Scope>)>,
    frames: Vec<Frame>,
    /// Counts of patterns that only constants bind, by step.
    counts: Vec<Option<f64>>,
    steps: Vec<StepStats>,
    turns: u32,
    /// Identity of each table in [`Fanouts`].
    tables: Vec<u64>,
    /// Rows are counted, not made.
    counting: bool,
    counted: u64,
}

const ALL: u64 = u64::MAX;

fn first_bits(n: usize) -> u64 {
    if n >= 64 {
        ALL
    } else {
        (1 << n) - 1
    }
}

fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

impl Pipeline {
    /// A pipeline for `plan`; `tables` names the tables for [`Fanouts`]. [`Self::start`] begins it.
    pub fn new(plan: &Plan, tables: Vec<u64>, tuning: Tuning) -> Self {
        let mut pipeline = Self {
            groups: Vec::new(),
            slots: usize::from(plan.slots),
            output: plan.output.iter().copied().collect(),
            tuning,
            params: Vec::new(),
            pending: None,
            frames: Vec::new(),
            counts: Vec::new(),
            steps: Vec::new(),
            turns: 0,
            tables,
            counting: false,
            counted: 0,
        };
        pipeline.add_group(&plan.root);
        pipeline
    }

    fn add_group(&mut self, group: &Group) -> usize {
        let at = self.groups.len();
        let first_step = self.steps.len();
        self.steps
            .resize(first_step + group.patterns.len(), StepStats::default());
        let patterns = group.patterns.iter().enumerate().map(|(i, p)| PatternInfo {
            needs: p
                .cells
                .iter()
                .flatten()
                .copied()
                .chain(p.links.iter().map(|l| l.1))
                .collect(),
            pattern: p.clone(),
            step: first_step + i,
        });
        let filters = group
            .filters
            .iter()
            .map(|f| (f.clone(), f.needs.iter().copied().collect()));
        self.groups.push(GroupInfo {
            patterns: patterns.collect(),
            filters: filters.collect(),
            children: Vec::new(),
        });
        for child in &group.children {
            let info = ChildInfo {
                kind: child.kind,
                group: self.add_group(&child.group),
                exports: child.exports.clone(),
                needs: child.needs.iter().copied().collect(),
                binds: child.binds(),
                row: child.row,
            };
            self.groups[at].children.push(info);
        }
        at
    }

    /// Begins (again) with these parameters. Figures of the steps go on adding up.
    pub fn start(&mut self, mut params: Vec<Value>) {
        for param in &mut params {
            if let Value::List(list) = param {
                list.sort_unstable();
                list.dedup();
            }
        }
        self.params = params;
        self.counts = vec![None; self.steps.len()];
        self.frames.clear();
        self.pending = Some((Bindings::one_row(self.slots), vec![self.scope(0, 0, 0)]));
    }

    /// Ends the work and frees its memory.
    pub fn stop(&mut self) {
        self.pending = None;
        self.frames = Vec::new();
    }

    /// Counts the rows that [`Self::next`] would hand out, the last pattern's without making them.
    pub fn count<S: Source>(&mut self, source: &mut S, fanouts: &mut Fanouts) -> u64 {
        self.output = SlotSet::default();
        self.counting = true;
        self.counted = 0;
        while let Some(rows) = self.next(source, fanouts) {
            self.counted += rows.len as u64;
        }
        self.counted
    }

    /// What each pattern has cost, in the order of the plan (a group's patterns before those of the groups inside it).
    pub fn steps(&self) -> &[StepStats] {
        &self.steps
    }

    fn scope(&self, group: usize, frame: usize, child: usize) -> Scope {
        let info = &self.groups[group];
        Scope {
            group,
            patterns: first_bits(info.patterns.len()),
            filters: first_bits(info.filters.len()),
            children: first_bits(info.children.len()),
            frame,
            child,
        }
    }

    /// The next batch of rows with the variables of the answer; `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, fanouts: &mut Fanouts) -> Option<Bindings> {
        if let Some((rows, scopes)) = self.pending.take() {
            if let Some(rows) = self.dispatch(source, fanouts, rows, scopes) {
                return Some(rows);
            }
        }
        while let Some(at) = self.frames.len().checked_sub(1) {
            match self.produce(source, at) {
                Some((rows, scopes)) => {
                    if let Some(rows) = self.dispatch(source, fanouts, rows, scopes) {
                        return Some(rows);
                    }
                }
                None => self.pop(fanouts),
            }
        }
        None
    }

    fn pop(&mut self, fanouts: &mut Fanouts) {
        if let Some(Frame {
            work: Work::Probe(probing, _, what),
            ..
        }) = self.frames.pop()
        {
            fanouts.add(what, probing.probes(), probing.read);
        }
    }

    /// The next rows that come out of a frame, and what is left to do for them.
    fn produce<S: Source>(&mut self, source: &mut S, at: usize) -> Option<(Bindings, Vec<Scope>)> {
        let frame = &mut self.frames[at];
        match &mut frame.work {
            Work::Probe(probing, step, _) => {
                let (clock, pages) = (source.clock(), source.pages());
                let rows = probing.next(source, &self.params);
                let stats = &mut self.steps[*step];
                let after = source.pages();
                stats.time += source.clock() - clock;
                stats.hit += after.0 - pages.0;
                stats.read += after.1 - pages.1;
                stats.rows += rows.as_ref().map_or(0, |r| r.len as u64);
                rows.map(|rows| (rows, frame.scopes.clone()))
            }
            Work::Child(entered) => match entered.progress {
                Progress::Before => {
                    entered.progress = Progress::Inside;
                    Some((entered.input.clone(), frame.scopes.clone()))
                }
                Progress::Inside => {
                    entered.progress = Progress::After;
                    self.leave(at)
                }
                Progress::After => None,
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
        let child = &self.groups[outer.group].children[inner.child];
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
    fn dispatch<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &mut Fanouts,
        mut rows: Bindings,
        mut scopes: Vec<Scope>,
    ) -> Option<Bindings> {
        loop {
            let top = scopes.len() - 1;
            self.filter(source, &mut rows, &mut scopes[top]);
            if rows.len == 0 {
                return None;
            }
            let scope = scopes[top];
            if scope.patterns == 0 && scope.children == 0 {
                if top == 0 {
                    return Some(rows);
                }
                if !self.matched(&mut rows, &scope, &scopes[top - 1]) {
                    return None;
                }
                scopes.pop();
                continue;
            }
            match self.choose(source, fanouts, &rows, &scope) {
                Next::Pattern(i, expected) => {
                    self.enter_pattern(source, fanouts, rows, scopes, (i, expected));
                }
                Next::Child(i) => self.enter_child(rows, scopes, i),
            }
            return None;
        }
    }

    /// Applies the filters of a group whose variables are known.
    fn filter<S: Source>(&self, source: &mut S, rows: &mut Bindings, scope: &mut Scope) {
        if scope.filters == 0 {
            return;
        }
        let known = rows.known();
        for i in bits(scope.filters) {
            let (filter, needs) = &self.groups[scope.group].filters[i];
            if rows.len == 0 || !needs.within(&known) {
                continue;
            }
            scope.filters &= !(1 << i);
            let mut keep = vec![true; rows.len];
            match filter.test {
                Test::Equal(a, b) => match (rows.ids(a), rows.ids(b)) {
                    (Some(a), Some(b)) => keep
                        .iter_mut()
                        .zip(a.iter().zip(b))
                        .for_each(|(k, (a, b))| *k = a == b),
                    _ => keep.fill(false),
                },
                Test::Expr(expr) => source.test(expr, &filter.needs, rows, &mut keep),
            }
            if keep.iter().any(|k| !k) {
                rows.retain(&keep);
            }
        }
    }

    /// Notes that rows of a batch have found a match in a child; whether they go on from there.
    fn matched(&mut self, rows: &mut Bindings, inner: &Scope, outer: &Scope) -> bool {
        let child = &self.groups[outer.group].children[inner.child];
        if let (Work::Child(entered), Some(numbers)) =
            (&mut self.frames[inner.frame].work, rows.ids(child.row))
        {
            for &number in numbers {
                entered.matched[number as usize] = true;
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

    /// The variables that are of use after the current step.
    fn live(&self, scopes: &[Scope]) -> SlotSet {
        let mut live = self.output;
        for (depth, scope) in scopes.iter().enumerate() {
            let group = &self.groups[scope.group];
            if depth > 0 {
                let child = &self.groups[scopes[depth - 1].group].children[scope.child];
                live.add(child.row);
                for &(copy, original) in &child.exports {
                    if live.has(copy) {
                        live.add(original);
                    }
                }
            }
            bits(scope.patterns).for_each(|i| live.add_all(&group.patterns[i].needs));
            bits(scope.filters).for_each(|i| live.add_all(&group.filters[i].1));
            for i in bits(scope.children) {
                let child = &group.children[i];
                live.add_all(&child.needs);
            }
        }
        live
    }

    /// What to do next with rows in a group that is not done.
    fn choose<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &Fanouts,
        rows: &Bindings,
        scope: &Scope,
    ) -> Next {
        let group = &self.groups[scope.group];
        let known = rows.known();
        let runnable = |i: &usize| group.children[*i].needs.within(&known);
        if let Some(test) = bits(scope.children)
            .filter(runnable)
            .find(|&i| group.children[i].kind != Kind::Left)
        {
            return Next::Child(test);
        }
        let optional = bits(scope.children).find(runnable);
        if bits(scope.patterns).nth(1).is_none() && optional.is_none() {
            if let Some(only) = bits(scope.patterns).next() {
                return Next::Pattern(only, f64::NAN);
            }
        }
        let connected = |i: usize| group.patterns[i].needs.meets(&known);
        let near: Vec<usize> = bits(scope.patterns).filter(|&i| connected(i)).collect();
        let far: Vec<usize> = bits(scope.patterns).filter(|&i| !connected(i)).collect();
        // An optional group goes first where it alone leads on to the patterns that are left.
        if let (true, Some(i)) = (near.is_empty(), optional) {
            let leads = far
                .iter()
                .any(|&p| group.patterns[p].needs.meets(&group.children[i].binds));
            if far.is_empty() || leads {
                return Next::Child(i);
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
        let tested: Vec<i32> = (0..group.patterns.len())
            .map(|i| tested(i) as i32)
            .collect();
        let weight = |i: usize, expected: f64| expected * FILTERED.powi(tested[i]);
        let mut ranked: Vec<(usize, f64)> = Vec::new();
        for &i in near.iter().chain(&far) {
            let joined = near.contains(&i);
            let expected = self.expected(source, fanouts, rows, scope.group, i, false);
            // What shares no variable multiplies the rows, whatever comes next.
            if joined || near.is_empty() || expected <= 1.0 {
                ranked.push((i, expected));
            }
        }
        let by_weight =
            |a: &(usize, f64), b: &(usize, f64)| weight(a.0, a.1).total_cmp(&weight(b.0, b.1));
        // A large batch deserves a closer look at the best few.
        let best = if rows.len >= SAMPLED && ranked.len() > 1 {
            ranked.sort_by(by_weight);
            ranked.truncate(3);
            let close = ranked.iter().map(|&(i, _)| {
                (
                    i,
                    self.expected(source, fanouts, rows, scope.group, i, true),
                )
            });
            close.collect::<Vec<_>>().into_iter().min_by(by_weight)
        } else {
            ranked.into_iter().min_by(by_weight)
        };
        match (best, optional) {
            (Some((i, expected)), _) => Next::Pattern(i, expected),
            (None, Some(i)) => Next::Child(i),
            (None, None) => unreachable!("a group that is not done has a step that can be taken"),
        }
    }

    /// Expected quads per row for a pattern.
    fn expected<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &Fanouts,
        rows: &Bindings,
        group: usize,
        i: usize,
        closely: bool,
    ) -> f64 {
        let info = &self.groups[group].patterns[i];
        if is_hopeless(&info.pattern, rows, &self.params) {
            return 0.0;
        }
        let table = info.pattern.table;
        let access = Access::new(
            &info.pattern,
            source.orders(table),
            rows,
            &SlotSet::default(),
        );
        if access.is_lookup() {
            return LOOKUP;
        }
        let what = self.probed(&info.pattern, &access);
        if access.bound == 0 {
            if let Some(count) = self.counts[info.step] {
                return count;
            }
            // Counts of a predicate alone hardly change from query to query, and few subjects have many quads of one predicate. What an
            // object binds is counted: it may be a rare value or a common one.
            let plain = access.is_plain();
            let known = fanouts
                .get(&what)
                .filter(|&rows| match access.constant & 0b101 {
                    0 => plain,
                    0b001 => plain && rows <= FEW,
                    _ => false,
                });
            let expected = known.unwrap_or_else(|| {
                let mut ranges = Vec::new();
                access.ranges(rows, 0, &self.params, &mut ranges);
                count(source, table, access.order, &ranges)
            });
            self.counts[info.step] = Some(expected);
            return expected;
        }
        match fanouts.get(&what) {
            Some(known) if !closely => known,
            _ => sample(
                source,
                table,
                &access,
                rows,
                &self.params,
                if closely { CLOSE_SAMPLES } else { SAMPLES },
            ),
        }
    }

    fn probed(&self, pattern: &Pattern, access: &Access) -> Probed {
        let predicate = pattern
            .conditions
            .iter()
            .find(|c| c.0 == 1 && c.1 == crate::Bound::Eq);
        Probed {
            table: self.tables[usize::from(pattern.table)],
            predicate: predicate.and_then(|c| match self.params[usize::from(c.2)] {
                Value::One(value) => Some(value),
                _ => None,
            }),
            constant: access.constant,
            bound: access.bound,
        }
    }

    fn enter_pattern<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &mut Fanouts,
        rows: Bindings,
        mut scopes: Vec<Scope>,
        (i, expected): (usize, f64),
    ) {
        let top = scopes.len() - 1;
        scopes[top].patterns &= !(1 << i);
        let live = self.live(&scopes);
        let info = &self.groups[scopes[top].group].patterns[i];
        if is_hopeless(&info.pattern, &rows, &self.params) {
            return;
        }
        let table = info.pattern.table;
        let access = Access::new(&info.pattern, source.orders(table), &rows, &live);
        let what = self.probed(&info.pattern, &access);
        let step = info.step;
        let stats = &mut self.steps[step];
        if stats.turn == 0 {
            self.turns += 1;
            stats.turn = self.turns;
        }
        stats.order = access.order;
        stats.estimate += if expected.is_nan() {
            0.0
        } else {
            expected * rows.len as f64
        };
        let mut probing = Probing::new(
            table,
            access,
            rows,
            live,
            &self.params,
            (self.tuning.first, self.tuning.most),
        );
        stats.batches += 1;
        stats.keys += probing.distinct_keys() as u64;
        stats.probes += probing.probes() as u64;
        let last = scopes[top];
        if self.counting && top == 0 && last.patterns | last.filters | last.children == 0 {
            let clock = source.clock();
            let counted = probing.count(source, &self.params);
            fanouts.add(what, probing.probes(), probing.read);
            self.counted += counted;
            let stats = &mut self.steps[step];
            stats.rows += counted;
            stats.time += source.clock() - clock;
            return;
        }
        self.frames.push(Frame {
            work: Work::Probe(Box::new(probing), step, what),
            scopes,
        });
    }

    fn enter_child(&mut self, mut rows: Bindings, mut scopes: Vec<Scope>, i: usize) {
        let top = scopes.len() - 1;
        scopes[top].children &= !(1 << i);
        let child = &self.groups[scopes[top].group].children[i];
        rows.columns[usize::from(child.row)] = Column::Ids((0..rows.len as u64).collect());
        let inner = self.scope(child.group, self.frames.len(), i);
        scopes.push(inner);
        let matched = vec![false; rows.len];
        self.frames.push(Frame {
            work: Work::Child(Entered {
                input: rows,
                matched,
                progress: Progress::Before,
            }),
            scopes,
        });
    }
}

/// Share of rows that a filter leaves, for want of better knowledge.
const FILTERED: f64 = 0.5;
/// A subject's quads of one predicate that are not worth counting.
const FEW: f64 = 4.0;
/// Expected quads for a key that binds subject, predicate and object.
const LOOKUP: f64 = 0.5;
/// Batches from this size on are sampled instead of judged by earlier queries.
const SAMPLED: usize = 1000;
/// Keys counted for a first guess, and for a closer one.
const SAMPLES: usize = 3;
const CLOSE_SAMPLES: usize = 12;
