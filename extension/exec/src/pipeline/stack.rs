//! The stack of batches under way: all the state there is besides what steps remember.

use crate::bindings::{Bindings, Column};
use crate::operators::hash_table::Table;
use crate::operators::incremental_semi_join::IncrementalSemiJoin;
use crate::operators::join_operator::JoinOperator;
use crate::operators::star_join::Star;
use crate::optimizer::cardinality_feedback::{CardinalityFeedback, FeedbackKey};
use crate::optimizer::hash_policy::Running;
use crate::pipeline::participant::FirstPattern;
use crate::plan::layout::{Ahead, Layout, Scope};
use crate::plan::{Kind, Slot, SlotSet};
use std::rc::Rc;

/// A batch in a child: first it goes in, then the rows that had no match (or those that had) come out.
pub(crate) struct Entered {
    pub input: Bindings,
    pub matched: Vec<bool>,
    /// How many are not matched yet.
    pub left: usize,
    pub stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Before,
    Inside,
    After,
}

/// A batch in a pattern.
pub(crate) struct Joined {
    pub operator: JoinOperator,
    pub step: usize,
    pub what: FeedbackKey,
    /// Quads that it is expected to find.
    pub expected: f64,
    /// The same row may come out more than once.
    pub repeats: bool,
}

/// A batch in a star.
pub(crate) struct StarFrame {
    pub star: Star,
    /// What figures of each arm are kept under.
    pub figures: Vec<FeedbackKey>,
    /// What was left to do before it.
    pub before: Vec<Scope>,
    /// The step that all its time is noted for: that of the first arm.
    pub step: usize,
    /// The same row may come out more than once.
    pub repeats: bool,
}

impl StarFrame {
    /// Notes the keys that each arm was asked for, and the quads found.
    pub fn add_feedback(&self, feedback: &mut CardinalityFeedback) {
        for (what, (keys, quads)) in self.figures.iter().zip(self.star.found()) {
            feedback.add(*what, keys as usize, quads as usize);
        }
    }
}

pub(crate) enum Work {
    Join(Joined),
    Star(Box<StarFrame>),
    Child(Entered),
    IncrementalSemiJoin(IncrementalSemiJoin),
    /// Rows that wait for others to go on before them.
    Rows(Option<Bindings>, Origin),
}

pub(crate) struct Frame {
    pub work: Work,
    /// What is left to do for the rows that come out.
    pub scopes: Vec<Scope>,
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
    /// The beginning of a share that starts with this pattern.
    Share(FirstPattern),
}

/// The batches under way, the one that goes on last.
#[derive(Default)]
pub(crate) struct Stack(pub Vec<Frame>);

impl Stack {
    /// Puts work on top; `scopes` is what is left to do for the rows that come out.
    pub fn push(&mut self, work: Work, scopes: Vec<Scope>) {
        self.0.push(Frame { work, scopes });
    }

    /// Number of batches under way.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many of the batches that [`crate::Pipeline::take`] has put here are not worked off.
    pub fn open(&self) -> usize {
        let taken = |frame: &&Frame| matches!(frame.work, Work::Rows(_, Origin::Participant(_)));
        self.0.iter().filter(taken).count()
    }

    /// The frame of an EXISTS or NOT EXISTS around frame `at` whose rows all have found a match.
    pub fn satisfied_test(&self, layout: &Layout, at: usize) -> Option<usize> {
        let scopes = &self.0[at].scopes;
        let tested = scopes[layout.tested(scopes)?].frame;
        match &self.0[tested].work {
            Work::Child(entered) if tested < at && entered.left == 0 => Some(tested),
            _ => None,
        }
    }

    /// Takes the uppermost frame off, and notes what it has found.
    pub fn pop(&mut self, feedback: &mut CardinalityFeedback) {
        match self.0.pop().map(|frame| frame.work) {
            Some(Work::Join(joined)) => {
                let (keys, quads) = joined.operator.found();
                feedback.add(joined.what, keys, quads);
            }
            Some(Work::Star(star_frame)) => star_frame.add_feedback(feedback),
            _ => {}
        }
    }

    /// The rows that stay after a child has seen all of a batch.
    pub fn leave(&mut self, layout: &Layout, at: usize) -> Option<(Bindings, Vec<Scope>)> {
        let mut scopes = self.0[at].scopes.clone();
        let inner = scopes.pop()?;
        let outer = *scopes.last()?;
        let Frame {
            work: Work::Child(entered),
            ..
        } = &mut self.0[at]
        else {
            return None;
        };
        let child = &layout.groups[outer.group].children[inner.child];
        let mut rows = std::mem::take(&mut entered.input);
        let keep: Vec<bool> = entered
            .matched
            .iter()
            .map(|&m| m == (child.kind == Kind::Semi))
            .collect();
        rows.retain(&keep);
        if child.kind != Kind::Semi {
            for (slot, column) in rows.columns.iter_mut().enumerate() {
                if child.binds.has(Slot::from_index(slot)) {
                    *column = Column::Null;
                }
            }
        }
        rows.columns[child.row.index()] = Column::Absent;
        Some((rows, scopes))
    }

    /// Notes that rows of a batch have found a match in a child; whether they go on from there.
    pub fn matched(
        &mut self,
        layout: &Layout,
        rows: &mut Bindings,
        inner: &Scope,
        outer: &Scope,
    ) -> bool {
        let child = &layout.groups[outer.group].children[inner.child];
        if let (Work::Child(entered), Some(numbers)) =
            (&mut self.0[inner.frame].work, rows.ids(child.row))
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
            rows.columns[copy.index()] = rows.columns[original.index()].clone();
        }
        rows.columns[child.row.index()] = Column::Absent;
        true
    }

    /// The innermost EXISTS or NOT EXISTS around: the variable that numbers its rows, and those rows.
    fn test_around(&self, layout: &Layout, scopes: &[Scope]) -> Option<(Slot, &Entered)> {
        let depth = layout.tested(scopes)?;
        let child = &layout.groups[scopes[depth - 1].group].children[scopes[depth].child];
        match &self.0[scopes[depth].frame].work {
            Work::Child(entered) => Some((child.row, entered)),
            _ => None,
        }
    }

    /// The variables that the numbers of outer rows determine: those of the rows that have entered the groups around.
    pub fn determined_by_outer(&self, scopes: &[Scope]) -> SlotSet {
        let mut determined_by_outer = SlotSet::default();
        for scope in scopes.iter().skip(1) {
            if let Work::Child(entered) = &self.0[scope.frame].work {
                determined_by_outer.add_all(&entered.input.known());
            }
        }
        determined_by_outer
    }

    /// Drops rows for which an EXISTS or NOT EXISTS around them has already found a match.
    pub fn drop_matched(&self, layout: &Layout, rows: &mut Bindings, scopes: &[Scope]) {
        let Some((slot, entered)) = self.test_around(layout, scopes) else {
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

    /// Where rows are to go on in rounds: for each row its outer row in the EXISTS or NOT EXISTS around. Also how many
    /// rows of each outer row go first. So many rows as `least` are worth a round.
    pub fn first_shares(
        &self,
        layout: &Layout,
        least: usize,
        rows: &Bindings,
        scopes: &[Scope],
    ) -> Option<(Vec<u32>, usize)> {
        let (slot, entered) = self.test_around(layout, scopes)?;
        let numbers = rows.ids(slot)?;
        let share = IncrementalSemiJoin::first_share(numbers, entered.matched.len(), least)?;
        Some((numbers.iter().map(|&n| n as u32).collect(), share))
    }
}

impl Running for Stack {
    /// The factor by which rows will grow from now to the end, judged by the work that the steps before have done.
    fn outlook(&self) -> f64 {
        let times = self.0.iter().map(|frame| match &frame.work {
            Work::Join(joined) => joined.operator.outlook(joined.expected),
            Work::Star(star_frame) => star_frame.star.outlook(),
            Work::Child(_) | Work::IncrementalSemiJoin(_) | Work::Rows(..) => 1.0,
        });
        times.product()
    }

    /// Bytes of tables that batches have for themselves.
    fn own_bytes(&self, is_hash_build: impl Fn(&Rc<Table>) -> bool) -> usize {
        let bytes = self.0.iter().map(|frame| match &frame.work {
            Work::Join(joined) => joined.operator.own_bytes(&is_hash_build),
            Work::Star(_) | Work::Child(_) | Work::IncrementalSemiJoin(_) | Work::Rows(..) => 0,
        });
        bytes.sum()
    }
}
