//! Counting the rows of a last pattern: numbers of quads by key, remembered from batch to batch. Few keys may make many rows.

use crate::bindings::Bindings;
use crate::fanout::Fanouts;
use crate::keys::{hash, Keys};
use crate::narrow::Narrowed;
use crate::order::{Access, Places};
use crate::pipeline::Pipeline;
use crate::plan::SlotSet;
use crate::source::Source;

/// Keys with the number of quads of each.
#[derive(Default)]
pub(crate) struct Weights {
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

impl Weights {
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
    pub(crate) fn weigh<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &mut Fanouts,
        at: (usize, usize),
        access: Access,
        rows: &Bindings,
    ) -> Vec<u64> {
        let step = self.layout.groups[at.0].patterns[at.1].step;
        let mut weights = std::mem::take(&mut self.held[step].weights);
        let few = rows.len < self.tuning.bulk_from || access.known.is_empty();
        if few || weights.given_up || self.held[step].has_table() {
            self.held[step].weights = weights;
            return self.weigh_all(source, fanouts, at, access, rows.clone());
        }
        if weights.known != access.known {
            weights = Weights {
                known: access.known.clone(),
                ..Weights::default()
            };
        }
        let ids = access.known.iter().filter_map(|k| rows.ids(k.0));
        let columns: Vec<&[u64]> = ids.collect();
        let keys = weights
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
            let quads = self.weigh_all(source, fanouts, at, access, new);
            weights.quads.extend(quads);
        }
        let quads = numbers.iter().map(|&n| weights.quads[n as usize]).collect();
        weights.rows += rows.len;
        let stats = &mut self.steps[step];
        stats.memory = stats.memory.max(weights.bytes() as u64);
        let seldom = weights.rows > ENOUGH * self.tuning.bulk_from && 2 * next > weights.rows;
        if seldom || weights.bytes() > self.room(Some(step)) {
            weights.give_up();
        }
        self.held[step].weights = weights;
        quads
    }

    fn weigh_all<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &mut Fanouts,
        (group, i): (usize, usize),
        access: Access,
        rows: Bindings,
    ) -> Vec<u64> {
        let info = &self.layout.groups[group].patterns[i];
        let what = self.probed(&info.pattern, &access);
        let mut joining = self.join(
            source,
            (group, i),
            access,
            rows,
            (SlotSet::default(), &Narrowed::new()),
        );
        let weights = joining.weigh(source, &self.params);
        let (keys, quads) = joining.found();
        fanouts.add(what, keys, quads);
        weights
    }
}
