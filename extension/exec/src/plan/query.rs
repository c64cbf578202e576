//! The join that a pipeline runs: the groups of its plan, its parameters and its settings.

use crate::plan::condition::Value;
use crate::plan::layout::{Layout, PatternInfo, Scope};
use crate::plan::{Plan, SlotSet};
use crate::tuning::Tuning;

/// What is asked for. Only equality of values and counting change it during a run.
pub(crate) struct Query {
    pub layout: Layout,
    /// Number of variables.
    pub slots: usize,
    /// The variables of the answer.
    pub output: SlotSet,
    /// The answer is a set of rows.
    pub distinct: bool,
    /// All rows will be asked for.
    pub whole: bool,
    /// Perhaps only the first few rows will be asked for.
    pub limited: bool,
    /// Values of the parameters; lists are sorted.
    pub params: Vec<Value>,
    /// Identity of each table across queries.
    pub tables: Vec<u64>,
    pub tuning: Tuning,
}

/// Where a pattern stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PatternAt {
    /// Number of the group in [`Layout::groups`].
    pub group: usize,
    /// Number of the pattern in the group.
    pub pattern: usize,
}

impl Query {
    /// The join of `plan`, without parameters.
    pub fn new(plan: &Plan, tables: Vec<u64>, tuning: Tuning) -> Self {
        Self {
            layout: Layout::new(plan),
            slots: usize::from(plan.slots),
            output: plan.output.iter().copied().collect(),
            distinct: plan.distinct,
            whole: plan.whole,
            limited: false,
            params: Vec::new(),
            tables,
            tuning,
        }
    }

    /// Takes the parameters of a run.
    pub fn set_params(&mut self, mut params: Vec<Value>) {
        for param in &mut params {
            if let Value::List(list) = param {
                list.sort_unstable();
                list.dedup();
            }
        }
        self.params = params;
    }

    /// A pattern, with what is known of it.
    pub fn pattern(&self, at: PatternAt) -> &PatternInfo {
        &self.layout.groups[at.group].patterns[at.pattern]
    }

    /// The variables that are of use after the current step.
    pub fn live(&self, scopes: &[Scope]) -> SlotSet {
        self.layout.live(self.output, scopes)
    }
}
