//! Hash policy: when a pattern's quads are read into memory once, to be joined by hash, instead of being probed for in
//! the index key by key.
//!
//! The table either holds all quads that the pattern's constants select, and serves all batches of the step. Or it
//! holds those that some of a batch's variables select, and serves this batch alone. Example: the rows of a batch share
//! few subjects, so the quads of these subjects are read. The first pays off once the keys probed have cost as much as
//! the reading, or when a large batch is known to be the first of many. The second pays off when a batch has few such
//! values. PostgreSQL's counterpart is `executor/nodeHash.c`.

use crate::access::access_path::{AccessPath, Places, PushedRanges};
use crate::bindings::Bindings;
use crate::cost::{
    BATCH_TABLE_SAMPLED_KEYS, CACHED_BYTES, COUNTED_QUADS_PER_KEY, COUNTED_QUAD_COST,
    COUNTED_SAMPLED_KEYS, FAR_PROBE_COST, FAR_QUADS_PER_KEY, LARGE_BATCH_BULKS, LOOKUP_COST,
    MAX_PREFETCHED_QUADS, OVERDUE_BUILDS, PROBE_COST, REMOTE_PROBE_COST, SAVED_PER_BUILD,
    SMALL_TABLE_ROWS, SORT_COST, TABLE_SAMPLED_ROWS, UNCACHED_LOOKUP_COST,
};
use crate::operators::hash_build::{build_mask, read_table, Limits};
use crate::operators::hash_table::Table;
use crate::operators::multiplicity_cache::MultiplicityCache;
use crate::operators::sort::sort_rows;
use crate::operators::value_hash_join::ValueHashTable;
use crate::optimizer::build_feedback::{is_small, BuildRead};
use crate::optimizer::range_pushdown::count_in_ranges;
use crate::optimizer::sampling::{count, sample};
use crate::plan::condition::Value;
use crate::plan::query::{PatternAt, Query};
use crate::plan::{Pattern, Slot, SlotSet, TableNumber};
use crate::source::Source;
use crate::stats::StepStats;
use pgquad_btree::Key;
use std::rc::Rc;

/// A pattern's table that is kept from batch to batch.
struct BuildSide {
    table: Rc<Table>,
    /// What its quads are of: the pattern's table, or a part of it.
    part: TableNumber,
    /// Variables that are its key and those that it hands on, with their places.
    known: Places,
    fills: Places,
    /// What filters had left to its columns.
    pushed_ranges: PushedRanges,
}

/// How many quads a pattern's constants select.
struct Total {
    /// In the pattern's table, or a part of it.
    part: TableNumber,
    /// Within what filters leave to its columns.
    pushed_ranges: PushedRanges,
    quads: f64,
}

/// What a step has had to do so far, and its table.
#[derive(Default)]
pub(crate) struct HashBuild {
    /// The pattern's constants: the rest holds for these.
    constants: Vec<Value>,
    /// Quads that they select, once counted.
    total: Option<Total>,
    /// Rows that have come in, and keys probed for them.
    rows: f64,
    probes: f64,
    build_side: Option<BuildSide>,
    /// All quads by a key of their value.
    pub by_value: Option<ValueHashTable>,
    /// There was no room for one of them: each batch reads what filters leave of it.
    pub is_read_in_parts: bool,
    /// There was no room for the table.
    refused: bool,
    /// About how many quads a key has, where that was sampled.
    quads_per_key: Option<f64>,
    /// The quads for one batch were more than it would have been to probe for them.
    misled: bool,
    /// One key has very many quads.
    pub has_large_key: bool,
    /// What is remembered where rows are only counted.
    pub multiplicities: MultiplicityCache,
}

impl HashBuild {
    /// Forgets all that was for other constants.
    pub fn start(&mut self, pattern: &Pattern, params: &[Value]) {
        let constants = pattern.conditions.iter().map(|c| &params[c.param.index()]);
        if !constants.clone().eq(&self.constants) {
            *self = Self {
                constants: constants.cloned().collect(),
                ..Self::default()
            };
        }
    }

    fn bytes(&self) -> usize {
        let table = self
            .build_side
            .as_ref()
            .map_or(0, |build_side| build_side.table.bytes());
        let by_value = self.by_value.as_ref().map_or(0, ValueHashTable::bytes);
        table + by_value + self.multiplicities.bytes()
    }

    /// Notes rows that have come in, and the keys probed for them.
    pub fn add(&mut self, rows: f64, probes: f64) {
        self.rows += rows;
        self.probes += probes;
    }

    /// Whether a batch is better joined with this pattern alone: `counted` are the quads that its constants select, if
    /// that is known; `least` are the rows of a batch that is worth a table of them.
    pub fn prefers_own_step(&self, rows: &Bindings, counted: Option<f64>, least: usize) -> bool {
        let little = |total| rows.len >= least && is_little(total, rows);
        self.has_large_key || self.has_table() || !self.refused && counted.is_some_and(little)
    }

    /// Whether there was no room for a table.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether all quads that the constants select are in memory.
    pub fn has_table(&self) -> bool {
        self.build_side.is_some()
    }

    fn has(&self, table: &Rc<Table>) -> bool {
        self.build_side
            .as_ref()
            .is_some_and(|build_side| Rc::ptr_eq(&build_side.table, table))
    }

    /// Quads per row of a batch, from the table for what `access` knows, if there is one.
    pub fn sample(&self, access: &AccessPath, rows: &Bindings) -> Option<f64> {
        // What a part of the table has says nothing of rows that others hold the quads of.
        let build_side = self.build_side.as_ref();
        let build_side = build_side.filter(|b| b.part.part().is_none())?;
        let slots = |known: &[(Slot, usize)]| known.iter().map(|k| k.0).collect::<Vec<_>>();
        let known = slots(&access.known);
        if slots(&build_side.known) != known {
            return None;
        }
        let step = rows.len.div_ceil(TABLE_SAMPLED_ROWS).max(1);
        let sampled = |&slot: &Slot| Some(rows.ids(slot)?.iter().step_by(step).copied().collect());
        let columns: Vec<Vec<u64>> = known.iter().filter_map(sampled).collect();
        let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        let len = rows.len.div_ceil(step);
        let keys = build_side.table.find_all(&columns, len);
        let quads: usize = keys
            .iter()
            .map(|&key| build_side.table.quads(key).len())
            .sum();
        Some(quads as f64 / len as f64)
    }

    /// Keys probed per row that comes in.
    fn share(&self) -> f64 {
        if self.rows > 0.0 {
            self.probes / self.rows
        } else {
            1.0
        }
    }
}

/// Whether so many quads are read in the time in which a batch is probed for.
fn is_little(quads: f64, rows: &Bindings) -> bool {
    quads <= rows.len as f64 * PROBE_COST
}

/// Bytes for each quad of a table with so many columns. Beside these it takes two places of 8 bytes by hash, and the
/// numbers of its key and of where the quads of that begin.
fn quad_bytes(access: &AccessPath) -> f64 {
    (8 * (access.known.len() + access.fills.len() + 2) + 8) as f64
}

/// What the policy asks of the batches under way.
pub(crate) trait Running {
    /// The factor by which rows will grow from now to the end, judged by the work that the steps before have done.
    fn outlook(&self) -> f64;

    /// Bytes of tables that batches have for themselves: those that `is_hash_build` does not know.
    fn own_bytes(&self, is_hash_build: impl Fn(&Rc<Table>) -> bool) -> usize;
}

/// Bytes that are left for another table; the one that `step` keeps would be replaced.
pub(crate) fn room<R: Running>(
    query: &Query,
    builds: &[HashBuild],
    running: &R,
    step: Option<usize>,
) -> usize {
    let others = builds.iter().enumerate().filter(|h| Some(h.0) != step);
    let build_side: usize = others.map(|(_, h)| h.bytes()).sum();
    let is_hash_build = |table: &Rc<Table>| builds.iter().any(|h| h.has(table));
    query
        .tuning
        .memory
        .saturating_sub(build_side + running.own_bytes(is_hash_build))
}

/// What the choice between probes and a table is made from.
pub(crate) struct HashPolicy<'a, S, R> {
    pub query: &'a Query,
    /// By step.
    pub builds: &'a mut [HashBuild],
    pub steps: &'a mut [StepStats],
    pub running: &'a R,
    pub source: &'a mut S,
    /// The pattern is an arm of a star.
    pub is_arm: bool,
    /// All rows will be asked for.
    pub is_whole: bool,
    /// Build sides that have been prefetched.
    pub prefetched: &'a [BuildRead],
    /// Build sides that this run has read of other nodes, small enough to be prefetched by the next one.
    pub reads: &'a mut Vec<BuildRead>,
}

impl<S: Source, R: Running> HashPolicy<'_, S, R> {
    /// The table to join `rows` with, for which `probe` is the way to probe, and how it was read. `counted` are the
    /// quads that the pattern's constants select, if that is known.
    pub fn table(
        &mut self,
        at: PatternAt,
        counted: Option<f64>,
        probe: &AccessPath,
        rows: &Bindings,
        live: &SlotSet,
        pushed_ranges: &PushedRanges,
    ) -> Option<(AccessPath, Rc<Table>)> {
        let large = rows.len >= self.query.tuning.bulk_from;
        // Counted when the order was chosen.
        let little = |total| is_little(total, rows);
        let some = rows.len >= SMALL_TABLE_ROWS && counted.is_some_and(little);
        let is_coming = self.coming(self.query.pattern(at).step).is_some();
        if !(large || some || is_coming) || probe.known.is_empty() {
            return None;
        }
        let found = self.table_of_all(at, probe, rows, live, pushed_ranges);
        if found.is_none() && large {
            return self.table_of_batch(at, probe, rows, live);
        }
        found
    }

    /// The build side of a step that has been prefetched.
    fn coming(&self, step: usize) -> Option<BuildRead> {
        let mut reads = self.prefetched.iter();
        reads.find(|read| read.step == step).copied()
    }

    /// About how many of a step's `total` quads a key has that is looked up, sampled once. `None` where not even the
    /// cheapest table would pay yet.
    fn quads_per_key(
        &mut self,
        step: usize,
        probe: &AccessPath,
        rows: &Bindings,
        total: f64,
    ) -> Option<f64> {
        let build = &self.builds[step];
        let probes = build.probes + rows.len as f64;
        if build.quads_per_key.is_none()
            && !probe.is_lookup()
            && probes * REMOTE_PROBE_COST >= total * COUNTED_QUAD_COST
        {
            let params = &self.query.params;
            let each = sample(self.source, probe, rows, params, COUNTED_SAMPLED_KEYS);
            self.builds[step].quads_per_key = Some(each);
        }
        self.builds[step].quads_per_key
    }

    /// The table of all quads that the pattern's constants select, where it is there or worth its making.
    pub fn table_of_all(
        &mut self,
        at: PatternAt,
        probe: &AccessPath,
        rows: &Bindings,
        live: &SlotSet,
        pushed_ranges: &PushedRanges,
    ) -> Option<(AccessPath, Rc<Table>)> {
        let query = self.query;
        let info = query.pattern(at);
        let (step, table) = (info.step, probe.table);
        let (pattern, orders) = (&info.pattern, self.source.orders(table));
        let access = AccessPath::with_ranges(pattern, orders, rows, live, |_| false, pushed_ranges);
        let mut access = access.of_part(table);
        // Sorted ranges are merged with the keys instead.
        let counted = match self.source.ranges_are_sorted(table) {
            true => None,
            false => {
                let orders = self.source.orders(table);
                access.counted_by_known(pattern, orders, rows, live)
            }
        };
        if let Some(build_side) = &self.builds[step].build_side {
            // What holds more than filters leave will do as well.
            let enough =
                build_side.pushed_ranges.is_empty() || build_side.pushed_ranges == *pushed_ranges;
            let serves = |access: &AccessPath| {
                build_side.known == access.known && build_side.fills == access.fills
            };
            if enough && [table, table.whole()].contains(&build_side.part) {
                let all = [Some(&access), counted.as_ref()];
                if let Some(access) = all.into_iter().flatten().find(|access| serves(access)) {
                    return Some((access.clone(), build_side.table.clone()));
                }
            }
        }
        if self.builds[step].refused {
            return None;
        }
        // A list may have very many members: its ranges are made only when they are needed.
        let ranges = |access: &AccessPath, params: &[Value]| {
            let mut ranges = Vec::new();
            access.ranges(rows, 0, params, &mut ranges);
            ranges
        };
        let total = match &self.builds[step].total {
            Some(counted) if counted.part == table && counted.pushed_ranges == *pushed_ranges => {
                counted.quads
            }
            _ if pushed_ranges.is_empty() => {
                count(self.source, &access, &ranges(&access, &self.query.params))
            }
            _ => count_in_ranges(self.source, rows, &access, &query.params),
        };
        self.builds[step].total = Some(Total {
            part: table,
            pushed_ranges: pushed_ranges.clone(),
            quads: total,
        });
        let len = rows.len as f64;
        let coming = self.coming(step);
        // Keys of which nothing is known are taken to have as many quads as those that are looked up. What has been
        // prefetched is read just so.
        let counted = counted.and_then(|access| {
            let each = match coming {
                Some(read) if read.mask == build_mask(&access) => Some(COUNTED_QUADS_PER_KEY),
                Some(_) => None,
                None => self.quads_per_key(step, probe, rows, total),
            };
            let each = each.filter(|&each| each >= COUNTED_QUADS_PER_KEY)?;
            Some((access, total / each))
        });
        let (cost, size) = match counted {
            Some((_, keys)) => (total * COUNTED_QUAD_COST + keys, keys),
            None => (total, total),
        };
        if let Some((of_counts, _)) = counted {
            access = of_counts;
        }
        let build = &self.builds[step];
        let mask = build_mask(&access);
        let bytes = size * quad_bytes(&access);
        let now = len * build.share();
        let probes = build.probes + now;
        let large = rows.len >= LARGE_BATCH_BULKS * self.query.tuning.bulk_from;
        // A participant of a join reads its part of the table itself. An arm is held there as late as quads of other
        // nodes are: with the costs of own reads, a star of five takes 83 ms instead of 60 (10M triples, three nodes).
        let is_own = probe.table.part().is_some() && !self.is_arm;
        let (near, far) = match self.source.is_remote() && !is_own {
            true => (REMOTE_PROBE_COST, REMOTE_PROBE_COST),
            false => (PROBE_COST, FAR_PROBE_COST),
        };
        let (paid, foreseen) = if bytes > CACHED_BYTES {
            let saved =
                |probe: f64| (build.share() * probe + SORT_COST - UNCACHED_LOOKUP_COST).max(0.0);
            let rows_in = build.rows + len;
            let paid = rows_in * saved(near) >= cost
                || rows_in * saved(far) >= cost && is_far(query, self.source, probe, rows);
            let foreseen = large && len * self.running.outlook() * saved(near) >= 2.0 * cost;
            (paid, foreseen)
        } else {
            // What is left as far as is known: more may come from outside.
            let left = now * self.running.outlook();
            let pays = |probe: f64| {
                let done = probes * probe;
                done >= cost
                    && (left * probe >= SAVED_PER_BUILD * cost || done >= OVERDUE_BUILDS * cost)
            };
            let paid = pays(near) || pays(far) && is_far(query, self.source, probe, rows);
            let foreseen = large && now * self.running.outlook() * near >= 2.0 * cost;
            (paid, foreseen)
        };
        // Perhaps nobody asks for what is foreseen. Where variables are known in one batch and not in the next, a table
        // for each would be in vain.
        let foreseen = foreseen && self.is_whole && build.build_side.is_none();
        // A table for other variables has to be paid for.
        let is_coming = coming.is_some() && is_small(total, mask) && build.build_side.is_none();
        if !paid && !foreseen && !is_coming {
            return None;
        }
        if bytes > CACHED_BYTES {
            // A small table may do.
            let found = self.table_of_batch(at, probe, rows, live);
            if found.is_some() {
                return found;
            }
        }
        let limits = Limits {
            expected: size as usize,
            quads: usize::MAX,
            bytes: self.room(Some(step)),
        };
        let found = (bytes <= limits.bytes as f64)
            .then(|| {
                let ranges = ranges(&access, &self.query.params);
                self.builds[step].build_side = None;
                self.read(&access, &ranges, &limits)
            })
            .flatten();
        let build = &mut self.builds[step];
        build.refused = found.is_none();
        let found = Rc::new(found?);
        let is_whole = pushed_ranges.is_empty() && table.part().is_none();
        let is_small = is_small(total, mask) && found.keys() as f64 <= MAX_PREFETCHED_QUADS;
        if is_whole && is_small && self.source.is_remote() {
            let order = access.order;
            self.reads.push(BuildRead { step, order, mask });
        }
        // A table for other variables has to be paid for again.
        (build.rows, build.probes) = (0.0, 0.0);
        build.build_side = Some(BuildSide {
            table: found.clone(),
            part: table,
            known: access.known.clone(),
            fills: access.fills.clone(),
            pushed_ranges: pushed_ranges.clone(),
        });
        Some((access, found))
    }

    /// A table of the quads that one of the batch's variables selects, where reading them costs much less than probing
    /// for all rows.
    fn table_of_batch(
        &mut self,
        at: PatternAt,
        probe: &AccessPath,
        rows: &Bindings,
        live: &SlotSet,
    ) -> Option<(AccessPath, Rc<Table>)> {
        let query = self.query;
        let info = query.pattern(at);
        let (pattern, table) = (&info.pattern, probe.table);
        let mut slots: Vec<Slot> = probe.known.iter().map(|k| k.0).collect();
        slots.sort_unstable();
        slots.dedup();
        let is_large = rows.len >= LARGE_BATCH_BULKS * self.query.tuning.bulk_from;
        if slots.len() < 2 || !is_large || self.builds[info.step].misled {
            return None;
        }
        let len = rows.len as f64;
        let most =
            len * (self.builds[info.step].share() * PROBE_COST + 2.0 * SORT_COST - LOOKUP_COST);
        let room = self.room(None);
        let mut best: Option<(f64, f64, Slot, AccessPath)> = None;
        for slot in slots {
            let distinct = about_distinct(rows.ids(slot)?);
            if distinct * PROBE_COST > most {
                continue;
            }
            let orders = self.source.orders(table);
            let access = AccessPath::with_keys(pattern, orders, rows, live, |s| s == slot);
            let access = access.of_part(table);
            if access.keys.is_empty() {
                continue;
            }
            let each = sample(
                self.source,
                &access,
                rows,
                &self.query.params,
                BATCH_TABLE_SAMPLED_KEYS,
            );
            let cost = distinct * (PROBE_COST + each);
            let fits = distinct * each * quad_bytes(&access) <= room as f64;
            if fits && cost < best.as_ref().map_or(most, |b| b.0) {
                best = Some((cost, distinct * each, slot, access));
            }
        }
        let (cost, quads, slot, access) = best?;
        let sorted = sort_rows(&[rows.ids(slot)?], 1, rows.len);
        let mut ranges = Vec::new();
        for &start in &sorted.starts[..sorted.starts.len() - 1] {
            let row = sorted.rows[start as usize] as usize;
            access.ranges(rows, row, &self.query.params, &mut ranges);
        }
        ranges.sort_unstable();
        let step = info.step;
        self.steps[step].probes += ranges.len() as u64;
        let limits = Limits {
            expected: quads as usize,
            // Few keys were counted: one of the others may have very many quads.
            quads: (most - (cost - quads)) as usize,
            bytes: room,
        };
        let found = self.read(&access, &ranges, &limits);
        self.builds[step].misled = found.is_none();
        Some((access, Rc::new(found?)))
    }

    fn read(
        &mut self,
        access: &AccessPath,
        ranges: &[(Key, Key)],
        limits: &Limits,
    ) -> Option<Table> {
        let (params, most) = (&self.query.params, self.query.tuning.most);
        read_table(self.source, access, ranges, limits, params, most)
    }

    fn room(&self, step: Option<usize>) -> usize {
        room(self.query, self.builds, self.running, step)
    }
}

/// Whether hardly two keys of a batch are on one leaf.
fn is_far<S: Source>(query: &Query, source: &mut S, probe: &AccessPath, rows: &Bindings) -> bool {
    let Some(ids) = probe.keys.first().and_then(|&slot| rows.ids(slot)) else {
        return false;
    };
    let by_id = |a: &usize, b: &usize| ids[*a].cmp(&ids[*b]);
    let (first, last) = ((0..ids.len()).min_by(by_id), (0..ids.len()).max_by(by_id));
    let mut ranges = Vec::new();
    for row in first.into_iter().chain(last) {
        probe.ranges(rows, row, &query.params, &mut ranges);
    }
    let ends = ranges.iter().min().zip(ranges.iter().max());
    ends.is_some_and(|(low, high)| {
        let between = source.count(probe.table, probe.order, &low.0, &high.1);
        between >= FAR_QUADS_PER_KEY * rows.len as u64
    })
}

/// About how many different values there are, from how many bits of a map they set.
pub(crate) fn about_distinct(values: &[u64]) -> f64 {
    let bits = (4 * values.len()).next_power_of_two().max(64);
    let shift = u64::BITS - bits.trailing_zeros();
    let mut map = vec![0u64; bits / 64];
    for value in values {
        let bit = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize;
        map[bit / 64] |= 1 << (bit % 64);
    }
    let set: u32 = map.iter().map(|word| word.count_ones()).sum();
    let free = (bits - set as usize).max(1) as f64 / bits as f64;
    -free.ln() * bits as f64
}

#[cfg(test)]
mod tests {
    use super::about_distinct;

    #[test]
    fn distinct_values_are_about_counted() {
        for distinct in [1u64, 10, 500, 5000] {
            let values: Vec<u64> = (0..5000).map(|i| 1 << 63 | (i % distinct)).collect();
            let guess = about_distinct(&values) / distinct as f64;
            assert!((0.8..1.2).contains(&guess), "{guess} times {distinct}");
        }
    }
}
