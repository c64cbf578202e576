//! Cardinality feedback: the rows that earlier probes have found, per probe of a predicate and by the columns that were
//! bound.
//!
//! The figures are hints for the join order and are kept across queries (compare LEO, Stillger et al., VLDB 2001).

use crate::access::access_path::AccessPath;
use crate::cost::{FEEDBACK_LIFETIME, FEEDBACK_MEMORY, FEEDBACK_PROBES, MAX_FEEDBACK_FIGURES};
use crate::optimizer::build_feedback::BuildFeedback;
use crate::optimizer::start_feedback::StartFeedback;
use crate::plan::condition::{Bound, Value};
use crate::plan::query::Query;
use crate::plan::{ColumnNumber, Pattern, SlotSet};
use rustc_hash::FxHashMap;
use std::time::Instant;

/// What a figure is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FeedbackKey {
    /// The table, as the source names it.
    pub table: u64,
    /// The predicate, if it is a constant.
    pub predicate: Option<u64>,
    /// Columns bound by constants (bit `n` = column `n`).
    pub constant: u8,
    /// Columns bound by variables.
    pub bound: u8,
    /// Filters have left only a part to look at.
    pub pushed_ranges: bool,
}

impl FeedbackKey {
    /// What figures of a pattern that is read so are kept under.
    pub fn new(query: &Query, pattern: &Pattern, access: &AccessPath) -> Self {
        Self {
            constant: access.constant,
            bound: access.bound,
            pushed_ranges: !access.pushed_ranges.is_empty(),
            ..Self::of_pattern(query, pattern)
        }
    }

    /// The same for a pattern that is read for rows with these variables.
    pub fn of_variables(query: &Query, pattern: &Pattern, known: &SlotSet) -> Self {
        let mut key = Self::of_pattern(query, pattern);
        for condition in pattern.conditions.iter().filter(|c| c.bound == Bound::Eq) {
            key.constant |= 1 << condition.column.index();
        }
        for (column, cell) in pattern.cells.iter().enumerate() {
            key.bound |= u8::from(cell.is_some_and(|slot| known.has(slot))) << column;
        }
        for link in pattern.links.iter().filter(|link| known.has(link.slot)) {
            key.bound |= 1 << link.column.index();
        }
        key
    }

    fn of_pattern(query: &Query, pattern: &Pattern) -> Self {
        let predicate = pattern
            .conditions
            .iter()
            .find(|c| c.column == ColumnNumber::PREDICATE && c.bound == Bound::Eq);
        Self {
            table: query.tables[pattern.table.index()],
            predicate: predicate.and_then(|c| match query.params[c.param.index()] {
                Value::One(value) => Some(value),
                _ => None,
            }),
            constant: 0,
            bound: 0,
            pushed_ranges: false,
        }
    }
}

struct Observed {
    probes: f64,
    rows: f64,
    since: Instant,
}

/// Rows per probe, learnt from probes. Figures are measured anew after a while, for tables change. Also the build sides
/// that runs of a plan have read, and the patterns that they have begun with.
#[derive(Default)]
pub struct CardinalityFeedback {
    observed: FxHashMap<FeedbackKey, Observed>,
    pub(crate) builds: BuildFeedback,
    pub(crate) starts: StartFeedback,
}

impl CardinalityFeedback {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn get(&self, what: &FeedbackKey) -> Option<f64> {
        let observed = self.observed.get(what)?;
        (observed.since.elapsed() < FEEDBACK_LIFETIME).then(|| observed.rows / observed.probes)
    }

    /// The same, even if it is to be measured anew before it is relied on.
    pub(crate) fn latest(&self, what: &FeedbackKey) -> Option<f64> {
        let observed = self.observed.get(what)?;
        (observed.since.elapsed() < FEEDBACK_MEMORY).then(|| observed.rows / observed.probes)
    }

    pub(crate) fn add(&mut self, what: FeedbackKey, probes: usize, rows: usize) {
        if probes == 0 {
            return;
        }
        if self.observed.len() >= MAX_FEEDBACK_FIGURES {
            self.observed.clear();
        }
        let (probes, rows) = (probes as f64, rows as f64);
        let observed = self.observed.entry(what).or_insert_with(|| Observed {
            probes: 0.0,
            rows: 0.0,
            since: Instant::now(),
        });
        if observed.since.elapsed() >= FEEDBACK_LIFETIME || observed.probes > FEEDBACK_PROBES {
            // New figures outweigh old ones soon, without a jump.
            let keep = 1.0 / observed.probes.max(1.0);
            observed.probes *= keep;
            observed.rows *= keep;
            observed.since = Instant::now();
        }
        observed.probes += probes;
        observed.rows += rows;
    }
}
