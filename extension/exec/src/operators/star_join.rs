//! Star join: one step joins patterns that are looked up by the same variable (or constant) and by constants of their
//! own. Optional patterns are included.
//!
//! Each distinct key is looked up once, and the quads of all arms are read where it is found. The result is the product
//! of the quads that the arms have for the key. The keys of a batch may lie so close together that little lies between
//! them. Then everything from the first to the last is read, and each arm takes what is its own.

use crate::access::access_path::{AccessPath, Constants, Residuals, StarKey};
use crate::access::residual_predicates::{repeats_triple, ResidualMask};
use crate::bindings::{Bindings, Column};
use crate::cost::{
    STAR_MERGED_KEYS, STAR_MERGED_QUADS_PER_KEY, STAR_MOST_BATCHES_PER_ROW, STAR_WIDE_GAP,
};
use crate::operators::sort::sort_rows;
use crate::plan::condition::Value;
use crate::plan::{Slot, SlotSet, TableNumber};
use crate::source::Source;
use crate::stats::StepStats;
use crate::tuning::Tuning;
use pgquad_btree::{Batch, Key, Span, KEY_MAX, KEY_MIN};
use pgquad_cluster::Reading;

/// One pattern of a star.
pub(crate) struct Arm {
    /// Its place among the patterns of the plan.
    pub step: usize,
    pub access: AccessPath,
    /// Constants behind the key.
    pub constants: Constants,
    /// Set for an optional pattern.
    pub optional: Option<Optional>,
    /// Keys asked for, and quads found for them.
    keys: u64,
    quads: u64,
    /// Keys asked for and rows after this arm, since they were noted down.
    new_keys: u64,
    new_rows: u64,
}

/// What an optional arm does besides.
pub(crate) struct Optional {
    /// Variables that are unbound where it has no quads.
    pub binds: Vec<Slot>,
    /// Variables that have the value of another one where it has some: (copy, original).
    pub copies: Vec<(Slot, Slot)>,
}

impl Arm {
    /// An arm of a star; its access has a center.
    pub fn new(
        step: usize,
        access: AccessPath,
        constants: Constants,
        optional: Option<Optional>,
    ) -> Self {
        Self {
            step,
            access,
            constants,
            optional,
            keys: 0,
            quads: 0,
            new_keys: 0,
            new_rows: 0,
        }
    }

    /// Whether rows without its quads are dropped.
    fn is_required(&self) -> bool {
        self.optional.is_none()
    }

    /// Whether rows that come out have nothing from its quads.
    pub fn binds_nothing(&self, live: &SlotSet) -> bool {
        let copies = self.optional.iter().flat_map(|o| &o.copies);
        self.access.fills.is_empty() && !copies.into_iter().any(|c| live.has(c.0))
    }
}

/// A key with quads for all arms that need them.
#[derive(Clone, Copy)]
struct Found {
    /// Which arms have none (bit `i` = arm `i`).
    without: u64,
    key: usize,
}

/// Most arms of a star.
pub(crate) const MAX_ARMS: usize = 64;

/// How all quads between the keys of a star are read.
#[derive(Clone, Copy)]
pub(crate) struct StarMerge {
    /// The table, or a part of it.
    pub table: TableNumber,
    /// Number of the order there.
    pub order: usize,
    /// The shard of the part that has them all.
    pub shard: Option<usize>,
}

/// How a star joins.
pub(crate) struct StarManner {
    /// The variables that are used after it.
    pub live: SlotSet,
    /// Only the set of rows matters: arms that bind no such variable are asked only whether they have quads.
    pub set: bool,
    /// How all quads between the keys are read, where they are.
    pub merge: Option<StarMerge>,
}

/// A batch of rows being joined with the quads of a star's patterns.
pub(crate) struct Star {
    /// What is read: the table, or a part of it, and the number of the order there.
    table: TableNumber,
    order: usize,
    arms: Vec<Arm>,
    input: Bindings,
    live: SlotSet,
    /// Arms that bind nothing are asked only whether they have quads.
    set: bool,
    /// Rows of the input by key.
    rows: Vec<u32>,
    /// First place in `rows` of each distinct key, and the end.
    starts: Vec<u32>,
    /// The keys, ascending.
    keys: Vec<u64>,
    /// One range for each arm of each key, or for many keys.
    ranges: Vec<(Key, Key)>,
    /// Where all quads between keys are read: for each range, the place behind its last key.
    merged: Option<Vec<u32>>,
    reading: Reading,
    batch: Batch,
    spans: Vec<Span>,
    /// Residual predicates that arms test on quads, each list once, and the list of each arm.
    residuals: Vec<Residuals>,
    residuals_of: Vec<usize>,
    more: bool,
    /// A key has more quads than fit into a batch, or they combine to too many rows: it and those after it are not
    /// joined.
    has_large_key: bool,
    /// The keys read last, and the quads of each arm of each of them: the end of its part of `quads`.
    first: usize,
    until: usize,
    quads: Vec<u32>,
    ends: Vec<u32>,
    found: Vec<Found>,
    /// Where to go on: place in `found`, and in the product of its quads.
    at: usize,
    combination: u64,
    /// Rows to hand out at once; grows from batch to batch.
    chunk: usize,
    most: usize,
    /// The next rows: that of the input, and the quad of each arm.
    pairs: (Vec<u32>, Vec<Vec<u32>>),
}

impl Star {
    /// Starts to join `input` with the quads of all `arms`, of which there are some, all in the same order of a table.
    pub fn new(
        table: TableNumber,
        star_key: StarKey,
        arms: Vec<Arm>,
        input: Bindings,
        manner: StarManner,
        tuning: Tuning,
    ) -> Self {
        let StarManner { live, set, merge } = manner;
        let columns: Vec<&[u64]> = match star_key {
            StarKey::Slot(slot) => input.ids(slot).into_iter().collect(),
            StarKey::Value(_) => Vec::new(),
        };
        let sorted = sort_rows(&columns, columns.len(), input.len);
        let heads = &sorted.starts[..sorted.starts.len() - 1];
        let keys = heads.iter().map(|&start| match star_key {
            StarKey::Value(value) => value,
            StarKey::Slot(_) => columns[0][sorted.rows[start as usize] as usize],
        });
        let keys: Vec<u64> = keys.collect();
        let order = arms[0].access.order;
        let mut star = Self {
            table: merge.map_or(table, |merge| merge.table),
            order: merge.map_or(order, |merge| merge.order),
            chunk: tuning.first.max(input.len).clamp(1, tuning.most.max(1)),
            most: tuning.most.max(1),
            input,
            live,
            set,
            rows: sorted.rows,
            starts: sorted.starts,
            keys,
            ranges: Vec::new(),
            merged: merge.map(|_| Vec::new()),
            reading: Reading::new(0),
            batch: Batch::new(),
            spans: Vec::new(),
            residuals: Vec::new(),
            residuals_of: Vec::new(),
            more: true,
            has_large_key: false,
            first: 0,
            until: 0,
            quads: Vec::new(),
            ends: Vec::new(),
            found: Vec::new(),
            at: 0,
            combination: 0,
            pairs: (Vec::new(), vec![Vec::new(); arms.len()]),
            arms,
        };
        star.share_residuals();
        star.make_ranges();
        if let Some(shard) = merge.and_then(|merge| merge.shard) {
            star.reading = star.reading.in_shard(shard);
        }
        star
    }

    fn share_residuals(&mut self) {
        for arm in &self.arms {
            let known = self
                .residuals
                .iter()
                .position(|c| *c == arm.access.residuals);
            self.residuals_of
                .push(known.unwrap_or(self.residuals.len()));
            if known.is_none() {
                self.residuals.push(arm.access.residuals.clone());
            }
        }
    }

    fn make_ranges(&mut self) {
        let arms = self.arms.len();
        let columns = self.arms.iter().fold(0, |mask, a| mask | a.access.mask);
        let most = 2 * arms * self.most.max(self.chunk);
        if let Some(ends) = &mut self.merged {
            let mut parts = wide_gaps(&self.keys).peekable();
            let mut rest = 0;
            while rest < self.keys.len() {
                let end = parts.next_if(|&end| end <= rest + STAR_MERGED_KEYS);
                let end = end.unwrap_or(self.keys.len().min(rest + STAR_MERGED_KEYS));
                let (low, high) = (self.keys[rest], self.keys[end - 1]);
                self.ranges.push((range(low, &[]).0, range(high, &[]).1));
                ends.push(end as u32);
                rest = end;
            }
            let places = self.arms.iter().map(|a| a.constants.len()).max();
            let keys = (1 << (places.unwrap_or(0) + 1)) - 1;
            let most = most.max(arms * STAR_MERGED_KEYS * STAR_MERGED_QUADS_PER_KEY);
            self.reading = Reading::grouped(columns | keys, 1, 0, most);
            return;
        }
        for &key in &self.keys {
            let of_arms = self.arms.iter().map(|arm| range(key, &arm.constants));
            self.ranges.extend(of_arms);
        }
        let required = self.arms.iter().enumerate();
        let required = required.fold(0, |mask, (n, a)| mask | u64::from(a.is_required()) << n);
        self.reading = Reading::grouped(columns, arms, required, most);
    }

    /// Number of distinct keys.
    pub fn distinct_keys(&self) -> usize {
        self.keys.len()
    }

    /// The rows that are joined.
    pub fn input(&self) -> &Bindings {
        &self.input
    }

    /// The arms.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// How many times as many keys as now will have been read in the end.
    pub fn outlook(&self) -> f64 {
        match self.until {
            0 => 1.0,
            read => self.keys.len() as f64 / read as f64,
        }
    }

    /// Rows with keys that were not joined, because one of them has too many quads.
    pub fn take_rest(&mut self) -> Option<Bindings> {
        if !self.has_large_key || self.more || self.at < self.found.len() {
            return None;
        }
        self.has_large_key = false;
        let rest = &self.rows[self.starts[self.until] as usize..];
        Some(self.input.gather(rest, &self.input.known()))
    }

    /// Adds to the figures of the steps what has been done since the last time.
    pub fn note(&mut self, steps: &mut [StepStats]) {
        for arm in &mut self.arms {
            let stats = &mut steps[arm.step];
            stats.keys += arm.new_keys;
            stats.probes += if self.merged.is_some() {
                0
            } else {
                arm.new_keys
            };
            stats.rows += arm.new_rows;
            (arm.new_keys, arm.new_rows) = (0, 0);
        }
    }

    /// The keys that each arm was asked for, and the quads found.
    pub fn found(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.arms.iter().map(|arm| (arm.keys, arm.quads))
    }

    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        // Rows may come out for long without anything being read.
        source.interrupt();
        loop {
            let without = self.pair();
            if !self.pairs.0.is_empty() {
                self.chunk = (self.chunk * 4).min(self.most);
                return Some(self.joined(without));
            }
            if !self.more {
                return None;
            }
            self.read_on(source, params, self.chunk * self.arms.len());
            self.find((STAR_MOST_BATCHES_PER_ROW * self.most) as u64);
        }
    }

    /// The number of rows for each row of the input; those of [`Self::take_rest`] have none.
    pub fn multiplicities<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Vec<u64> {
        let mut multiplicities = vec![0; self.input.len];
        while self.more {
            self.read_on(source, params, self.most * self.arms.len());
            self.find(u64::MAX);
            for found in &self.found {
                let product = self.product(found);
                for &row in self.rows_of(found.key) {
                    multiplicities[row as usize] = product;
                }
            }
            self.at = self.found.len();
        }
        multiplicities
    }

    fn rows_of(&self, key: usize) -> &[u32] {
        &self.rows[self.starts[key] as usize..self.starts[key + 1] as usize]
    }

    /// The quads of an arm for one of the keys read last.
    fn quads_of(&self, key: usize, arm: usize) -> &[u32] {
        let place = (key - self.first) * self.arms.len() + arm;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.quads[start as usize..self.ends[place] as usize]
    }

    /// How many different rows an arm makes of one.
    fn count_of(&self, found: &Found, arm: usize) -> u64 {
        let is_asked = self.set && self.arms[arm].access.fills.is_empty();
        if is_asked || found.without >> arm & 1 == 1 {
            return 1;
        }
        self.quads_of(found.key, arm).len() as u64
    }

    /// How many different rows all arms make of one.
    fn product(&self, found: &Found) -> u64 {
        let counts = (0..self.arms.len()).map(|arm| self.count_of(found, arm));
        counts.fold(1, u64::saturating_mul)
    }

    /// Reads the next quads, about as many as `enough`.
    fn read_on<S: Source>(&mut self, source: &mut S, params: &[Value], enough: usize) {
        source.interrupt();
        self.more = source.read(
            self.table,
            self.order,
            &mut self.reading,
            &self.ranges,
            enough,
            &mut self.batch,
            &mut self.spans,
        );
        let (groups, begun) = self.reading.place();
        self.first = self.until;
        self.until = match (&self.merged, groups.checked_sub(1)) {
            (Some(ends), Some(last)) => ends[last.min(ends.len() - 1)] as usize,
            _ => groups.min(self.keys.len()),
        };
        if begun {
            (self.more, self.has_large_key) = (false, true);
        }
        self.quads.clear();
        self.ends.clear();
        let residual_mask: Vec<ResidualMask> = self
            .residuals
            .iter()
            .map(|residuals| ResidualMask::new(residuals, &self.batch, params))
            .collect();
        if self.merged.is_some() {
            self.take_merged(&residual_mask);
        } else {
            self.take_probed(&residual_mask);
        }
    }

    /// Sorts out quads that were read arm by arm.
    fn take_probed(&mut self, residual_mask: &[ResidualMask]) {
        let arms = self.arms.len();
        let (first, until) = (self.first * arms, self.until * arms);
        let mut start = 0;
        for span in &self.spans {
            let place = span.range as usize;
            if place >= until {
                break;
            }
            self.ends.resize(place - first, self.quads.len() as u32);
            let residual_mask = &residual_mask[self.residuals_of[place % arms]];
            let quads = start..span.end;
            // A range may have several spans.
            let first = self.ends.last().map_or(0, |&end| end as usize);
            self.quads
                .extend(quads.filter(|&quad| residual_mask.accepts(quad as usize)));
            leave_out_repeats(
                &self.arms[place % arms],
                &self.batch,
                &mut self.quads,
                first,
            );
            start = span.end;
        }
        self.ends.resize(until - first, self.quads.len() as u32);
    }

    /// Sorts out the quads of all arms from those between the first key and the last.
    fn take_merged(&mut self, residual_mask: &[ResidualMask]) {
        let column = &self.batch.columns[0];
        let mut at = 0;
        for &key in &self.keys[self.first..self.until] {
            at += column[at..].iter().take_while(|&&v| v < key).count();
            let end = at + column[at..].iter().take_while(|&&v| v == key).count();
            for (number, &residuals) in self.residuals_of.iter().enumerate() {
                let first = self.quads.len();
                let mask = &residual_mask[residuals];
                let accepted = |quad: &usize| mask.accepts(*quad);
                let constants = &self.arms[number].constants[..];
                let columns = &self.batch.columns[1..];
                // Most arms have one constant, a predicate: they need no inner loop.
                if let &[constant] = constants {
                    let own = (at..).zip(&columns[0][at..end]);
                    let own = own.filter(|(_, &value)| value == constant);
                    let own = own.map(|(quad, _)| quad).filter(accepted);
                    self.quads.extend(own.map(|quad| quad as u32));
                } else {
                    let is_own = |quad: &usize| {
                        let mut both = constants.iter().zip(columns);
                        both.all(|(constant, column)| column[*quad] == *constant)
                    };
                    let own = (at..end).filter(is_own).filter(accepted);
                    self.quads.extend(own.map(|quad| quad as u32));
                }
                leave_out_repeats(&self.arms[number], &self.batch, &mut self.quads, first);
                self.ends.push(self.quads.len() as u32);
            }
            at = end;
        }
    }

    /// Finds the keys that have quads for all arms that need them. It stops at a key that has more than `most` rows for
    /// each input row.
    fn find(&mut self, most: u64) {
        self.found.clear();
        (self.at, self.combination) = (0, 0);
        for key in self.first..self.until {
            let found = self.found_of(key);
            if found.is_some_and(|found| self.product(&found) > most) {
                (self.until, self.more, self.has_large_key) = (key, false, true);
                break;
            }
            self.note_key(key);
            self.found.extend(found);
        }
        // Rows with and without the quads of an optional arm go on in different batches.
        if !self.found.is_sorted_by_key(|found| found.without) {
            self.found.sort_by_key(|found| found.without);
        }
    }

    /// A key, if it has quads for all arms that need them.
    fn found_of(&self, key: usize) -> Option<Found> {
        let mut without = 0;
        for (n, arm) in self.arms.iter().enumerate() {
            if self.quads_of(key, n).is_empty() {
                if arm.is_required() {
                    return None;
                }
                without |= 1 << n;
            }
        }
        Some(Found { without, key })
    }

    /// Adds a key to the figures of the arms, as far as it was asked for.
    fn note_key(&mut self, key: usize) {
        let mut rows = self.rows_of(key).len() as u64;
        for n in 0..self.arms.len() {
            let own = self.quads_of(key, n).len() as u64;
            let arm = &mut self.arms[n];
            arm.keys += 1;
            arm.new_keys += 1;
            arm.quads += own;
            if own > 0 || arm.is_required() {
                rows = rows.saturating_mul(own);
            }
            arm.new_rows += rows;
            if rows == 0 {
                break;
            }
        }
    }

    /// Combines rows of the input with quads of all arms, a chunk of them; returns the arms that have none.
    fn pair(&mut self) -> u64 {
        let (mut rows, mut picks) = std::mem::take(&mut self.pairs);
        rows.clear();
        picks.iter_mut().for_each(Vec::clear);
        let without = self.found.get(self.at).map_or(0, |found| found.without);
        let mut counts = vec![0; self.arms.len()];
        while let Some(found) = self.found.get(self.at).filter(|f| f.without == without) {
            let of_key = self.rows_of(found.key);
            let mut all = of_key.len() as u64;
            for (arm, count) in counts.iter_mut().enumerate() {
                *count = self.count_of(found, arm);
                all = all.saturating_mul(*count);
            }
            let mut combination = self.combination;
            while combination < all && rows.len() < self.chunk {
                // Its digits: the row of the key, then the quad of each arm.
                let mut rest = combination;
                let mut digit = |count: u64| {
                    if count == 1 {
                        return 0;
                    }
                    let digit = rest % count;
                    rest /= count;
                    digit as usize
                };
                rows.push(of_key[digit(of_key.len() as u64)]);
                for (arm, picks) in picks.iter_mut().enumerate() {
                    let digit = digit(counts[arm]);
                    if !self.arms[arm].access.fills.is_empty() && without >> arm & 1 == 0 {
                        picks.push(self.quads_of(found.key, arm)[digit]);
                    }
                }
                combination += 1;
            }
            if combination < all {
                self.combination = combination;
                break;
            }
            self.combination = 0;
            self.at += 1;
        }
        self.pairs = (rows, picks);
        without
    }

    fn joined(&self, without: u64) -> Bindings {
        let mut rows = self.input.gather(&self.pairs.0, &self.live);
        for (n, (arm, picks)) in self.arms.iter().zip(&self.pairs.1).enumerate() {
            if without >> n & 1 == 1 {
                for &slot in arm.optional.iter().flat_map(|o| &o.binds) {
                    rows.columns[slot.index()] = Column::Null;
                }
                continue;
            }
            for &(slot, at) in &arm.access.fills {
                let column = &self.batch.columns[at];
                let ids = picks.iter().map(|&quad| column[quad as usize]).collect();
                rows.columns[slot.index()] = Column::Ids(ids);
            }
            for &(copy, original) in arm.optional.iter().flat_map(|o| &o.copies) {
                if self.live.has(copy) {
                    let column = &self.input.columns[original.index()];
                    rows.columns[copy.index()] = column.gather(&self.pairs.0);
                }
            }
        }
        rows
    }
}

/// Of the quads of one key from place `first` on, an arm of triples takes the first of each triple.
fn leave_out_repeats(arm: &Arm, batch: &Batch, quads: &mut Vec<u32>, first: usize) {
    let Some(from) = arm.access.triples_from else {
        return;
    };
    let mut kept = first;
    for place in first..quads.len() {
        let before = (kept > first).then(|| quads[kept - 1]);
        if !repeats_triple(from, batch, quads[place] as usize, before) {
            quads[kept] = quads[place];
            kept += 1;
        }
    }
    quads.truncate(kept);
}

/// The places of different keys, which ascend, that have a wide gap before them: much may lie there that is of no key.
pub(crate) fn wide_gaps(keys: &[u64]) -> impl Iterator<Item = usize> + '_ {
    let span = keys.first().zip(keys.last()).map_or(0, |(a, b)| b - a);
    let average = (span / keys.len().max(1) as u64).max(1);
    let least = average.saturating_mul(STAR_WIDE_GAP);
    (1..keys.len()).filter(move |&n| keys[n] - keys[n - 1] > least)
}

/// The range of a key with constants behind it.
pub(crate) fn range(key: u64, constants: &[u64]) -> (Key, Key) {
    let (mut low, mut high) = (KEY_MIN, KEY_MAX);
    (low[0], high[0]) = (key, key);
    for (place, &constant) in constants.iter().enumerate() {
        (low[place + 1], high[place + 1]) = (constant, constant);
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::wide_gaps;

    #[test]
    fn gaps_are_wide_against_the_average() {
        let keys: Vec<u64> = (0..100).chain(1_000_000..1_000_100).collect();
        assert_eq!(wide_gaps(&keys).collect::<Vec<_>>(), [100]);
        let even: Vec<u64> = (0..1000).map(|n| 7 * n).collect();
        assert_eq!(wide_gaps(&even).count(), 0);
        let dense: Vec<u64> = (0..1000).collect();
        assert_eq!(wide_gaps(&dense).count(), 0);
        assert_eq!(wide_gaps(&[]).count(), 0);
        assert_eq!(wide_gaps(&[u64::MAX]).count(), 0);
        assert_eq!(wide_gaps(&[0, u64::MAX]).count(), 0);
    }
}
