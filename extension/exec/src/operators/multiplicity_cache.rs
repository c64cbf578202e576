//! Multiplicity cache: the number of quads for each key of a last pattern, kept from batch to batch where rows are only counted.
//!
//! Example: 10,000 reviews of 50 products look up 50 multiplicities.

use crate::access::access_path::PushedRanges;
use crate::access::access_path::{AccessPath, Places};
use crate::bindings::Bindings;
use crate::operators::keys::{hash, Keys};
use crate::optimizer::cardinality_feedback::CardinalityFeedback;
use crate::pipeline::Pipeline;
use crate::plan::SlotSet;
use crate::source::Source;

/// Keys with the number of quads of each.
#[derive(Default)]
pub(crate) struct MultiplicityCache {
    /// Variables that are the key, with their places in the order read.
    known: Places,
    keys: Option<Keys>,
    quads: Vec<u64>,
    /// Rows that have come in.
    rows: usize,
    /// It does not pay, or there is no room for it.
    given_up: bool,
}

/// So many times [`crate::Tuning::bulk_from`] are enough rows to tell whether keys come again.
const ENOUGH: usize = 64;

impl MultiplicityCache {
    /// Bytes they take.
    pub fn bytes(&self) -> usize {
        self.keys.as_ref().map_or(0, Keys::bytes) + 8 * self.quads.len()
    }

    fn give_up(&mut self) {
        *self = Self {
            given_up: true,
            ..Self::default()
        };
    }
}

impl Pipeline {
    /// How many rows come out of a pattern for each of `rows`, none of which is made.
    pub(crate) fn multiplicities<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        at: (usize, usize),
        access: AccessPath,
        rows: &Bindings,
    ) -> Vec<u64> {
        let step = self.layout.groups[at.0].patterns[at.1].step;
        let mut multiplicities = std::mem::take(&mut self.hash_builds[step].multiplicities);
        let few = rows.len < self.tuning.bulk_from || access.known.is_empty();
        if few || multiplicities.given_up || self.hash_builds[step].has_table() {
            self.hash_builds[step].multiplicities = multiplicities;
            return self.uncached_multiplicities(source, feedback, at, access, rows.clone());
        }
        if multiplicities.known != access.known {
            multiplicities = MultiplicityCache {
                known: access.known.clone(),
                ..MultiplicityCache::default()
            };
        }
        let ids = access.known.iter().filter_map(|k| rows.ids(k.0));
        let columns: Vec<&[u64]> = ids.collect();
        let keys = multiplicities
            .keys
            .get_or_insert_with(|| Keys::new(columns.len(), 0));
        let mut next = keys.len();
        let numbers: Vec<u32> = (0..rows.len)
            .map(|row| keys.find_or_add(hash(&columns, row), &columns, row))
            .collect();
        let mut new = Vec::new();
        for (row, &number) in numbers.iter().enumerate() {
            if number as usize == next {
                new.push(row as u32);
                next += 1;
            }
        }
        if !new.is_empty() {
            let known: SlotSet = access.known.iter().map(|k| k.0).collect();
            let new = rows.gather(&new, &known);
            let quads = self.uncached_multiplicities(source, feedback, at, access, new);
            multiplicities.quads.extend(quads);
        }
        let quads = numbers
            .iter()
            .map(|&n| multiplicities.quads[n as usize])
            .collect();
        multiplicities.rows += rows.len;
        let stats = &mut self.steps[step];
        stats.memory = stats.memory.max(multiplicities.bytes() as u64);
        let seldom =
            multiplicities.rows > ENOUGH * self.tuning.bulk_from && 2 * next > multiplicities.rows;
        if seldom || multiplicities.bytes() > self.room(Some(step)) {
            multiplicities.give_up();
        }
        self.hash_builds[step].multiplicities = multiplicities;
        quads
    }

    fn uncached_multiplicities<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        (group, i): (usize, usize),
        access: AccessPath,
        rows: Bindings,
    ) -> Vec<u64> {
        let info = &self.layout.groups[group].patterns[i];
        let what = self.feedback_key(&info.pattern, &access);
        let mut operator = self.join(
            source,
            (group, i),
            access,
            rows,
            (SlotSet::default(), &PushedRanges::new()),
        );
        let multiplicities = operator.multiplicities(source, &self.params);
        let (keys, quads) = operator.found();
        feedback.add(what, keys, quads);
        multiplicities
    }
}
