//! Index probe (batched index nested loop): the keys of a batch are sorted, each distinct key is read once, and the
//! quads found are paired with their rows.
//!
//! Merge join: the keys of a batch may lie so close together that hardly a quad lies between them. Then everything from
//! the first key to the last is read as one range and merged with the keys.

use crate::access::access_path::AccessPath;
use crate::access::residual_predicates::{LastTriples, ResidualMask};
use crate::bindings::{Bindings, Column};
use crate::cost::MERGE_QUADS_PER_KEY;
use crate::operators::sort::sort_rows;
use crate::plan::condition::Value;
use crate::plan::SlotSet;
use crate::source::Source;
use crate::tuning::Tuning;
use pgquad_btree::{Batch, Key, Span};
use pgquad_cluster::Reading;

/// So many quads are read at once where they are only counted, unless batches are larger. Chosen, not measured.
const QUADS_COUNTED_AT_ONCE: usize = 1 << 20;

/// Quads of the batch that belong to one key.
#[derive(Clone, Copy)]
struct Run {
    key: u32,
    start: u32,
    end: u32,
}

/// Keys that are merged with a range.
struct Merge {
    /// The value of each key, ascending.
    values: Vec<u64>,
    /// Place of those values in the keys of the tree.
    place: usize,
    /// Keys below this one are done.
    finger: usize,
}

/// A batch of rows being joined with the quads of a pattern.
pub(crate) struct IndexProbe {
    pub access: AccessPath,
    input: Bindings,
    live: SlotSet,
    /// Rows of the input by key, then by the variables compared after reading.
    rows: Vec<u32>,
    /// First place in `rows` of each distinct key, and the end.
    starts: Vec<u32>,
    ranges: Vec<(Key, Key)>,
    /// Which key each range belongs to.
    owners: Vec<u32>,
    merge: Option<Merge>,
    reading: Reading,
    batch: Batch,
    spans: Vec<Span>,
    runs: Vec<Run>,
    residual_mask: ResidualMask,
    last_triples: LastTriples,
    more: bool,
    /// Where to go on: run, quad of the batch, place among the rows of its key.
    run: usize,
    row: usize,
    mate: usize,
    /// Rows to hand out at once; grows from batch to batch.
    chunk: usize,
    most: usize,
    pairs: (Vec<u32>, Vec<u32>),
    /// Quads found so far.
    pub read: usize,
}

impl IndexProbe {
    /// Starts to join `input` with the quads that `access` reads.
    pub fn new<S: Source>(
        source: &mut S,
        access: AccessPath,
        input: Bindings,
        live: SlotSet,
        params: &[Value],
        tuning: Tuning,
    ) -> Self {
        let Tuning { first, most, .. } = tuning;
        let compared = access.compared.iter().map(|c| c.0);
        let columns: Vec<&[u64]> = access
            .keys
            .iter()
            .copied()
            .chain(compared)
            .filter_map(|s| input.ids(s))
            .collect();
        let sorted = sort_rows(&columns, access.keys.len().min(columns.len()), input.len);
        let last_triples = LastTriples::new(source.ranges_are_sorted(access.table));
        let mut index_probe = Self {
            chunk: first.max(input.len).clamp(1, most.max(1)),
            reading: Reading::new(access.mask),
            access,
            live,
            input,
            rows: sorted.rows,
            starts: sorted.starts,
            ranges: Vec::new(),
            owners: Vec::new(),
            merge: None,
            batch: Batch::new(),
            spans: Vec::new(),
            runs: Vec::new(),
            residual_mask: ResidualMask::default(),
            last_triples,
            more: true,
            run: 0,
            row: 0,
            mate: 0,
            most: most.max(1),
            pairs: Default::default(),
            read: 0,
        };
        index_probe.make_ranges(params);
        index_probe.try_merge(source, tuning.bulk_from);
        index_probe
    }

    /// Hands out at least so many rows at once from now on, within the size of batches.
    pub fn widen(&mut self, rows: usize) {
        self.chunk = self.chunk.max(rows).min(self.most);
    }

    /// Number of key ranges.
    pub fn probes(&self) -> usize {
        self.ranges.len()
    }

    /// Number of distinct keys.
    pub fn distinct_keys(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether one range is merged with all keys.
    pub fn merges(&self) -> bool {
        self.merge.is_some()
    }

    fn make_ranges(&mut self, params: &[Value]) {
        let keys = self.starts.len() - 1;
        self.ranges.reserve(keys);
        self.owners.reserve(keys);
        for key in 0..keys {
            let row = self.rows[self.starts[key] as usize] as usize;
            self.access
                .ranges(&self.input, row, params, &mut self.ranges);
            self.owners.resize(self.ranges.len(), key as u32);
        }
        if !self.ranges.is_sorted() {
            let mut both: Vec<_> = self.ranges.drain(..).zip(self.owners.drain(..)).collect();
            both.sort_unstable();
            (self.ranges, self.owners) = both.into_iter().unzip();
        }
    }

    /// Merges instead of probing, where the keys are that close.
    fn try_merge<S: Source>(&mut self, source: &mut S, from: usize) {
        let keys = self.distinct_keys();
        let (Some(first), Some(last)) = (self.ranges.first(), self.ranges.last()) else {
            return;
        };
        if keys < from || self.ranges.len() != keys || !source.ranges_are_sorted(self.access.table)
        {
            return;
        }
        let Some((slot, place)) = self.access.only_key() else {
            return;
        };
        let all = (first.0, last.1);
        if source.count(self.access.table, self.access.order, &all.0, &all.1)
            > (MERGE_QUADS_PER_KEY * keys) as u64
        {
            return;
        }
        let Some(ids) = self.input.ids(slot) else {
            return;
        };
        let heads = self.starts[..keys].iter();
        self.merge = Some(Merge {
            values: heads
                .map(|&start| ids[self.rows[start as usize] as usize])
                .collect(),
            place,
            finger: 0,
        });
        self.ranges = vec![all];
        self.access.add_residuals_behind(place);
        self.reading = Reading::new(self.access.mask | 1 << place);
    }

    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        loop {
            self.pair();
            if !self.pairs.0.is_empty() {
                self.chunk = (self.chunk * 4).min(self.most);
                return Some(self.joined());
            }
            if !self.more {
                return None;
            }
            self.read_on(source, params, self.chunk);
        }
    }

    /// Reads the next quads, about as many as `enough`.
    fn read_on<S: Source>(&mut self, source: &mut S, params: &[Value], enough: usize) {
        source.interrupt();
        self.more = source.read(
            self.access.table,
            self.access.order,
            &mut self.reading,
            &self.ranges,
            enough,
            &mut self.batch,
            &mut self.spans,
        );
        self.runs.clear();
        match &mut self.merge {
            Some(merge) => merge.runs(&self.batch, &mut self.runs),
            None => {
                let mut start = 0;
                self.runs.reserve(self.spans.len());
                for span in &self.spans {
                    let (key, end) = (self.owners[span.range as usize], span.end);
                    self.runs.push(Run { key, start, end });
                    start = end;
                }
            }
        }
        self.residual_mask = ResidualMask::of_access(
            &self.access,
            &self.batch,
            &self.spans,
            params,
            &mut self.last_triples,
        );
        let quads = |run: &Run| match self.merge {
            // Those of other predicates that were passed over do not count.
            Some(_) => (run.start..run.end)
                .filter(|&quad| self.residual_mask.accepts(quad as usize))
                .count(),
            None => (run.end - run.start) as usize,
        };
        self.read += self.runs.iter().map(quads).sum::<usize>();
        self.run = 0;
        self.row = self.runs.first().map_or(0, |r| r.start as usize);
        self.mate = 0;
    }

    /// The number of quads for each row of the input.
    pub fn multiplicities<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Vec<u64> {
        let mut multiplicities = vec![0; self.input.len];
        // Where no column is read, quads take no room: a few for each key are no reason to stop and go on, which costs
        // another message to each node.
        let enough = match (self.access.mask, &self.merge) {
            (0, None) => self.most.max(QUADS_COUNTED_AT_ONCE),
            _ => self.most,
        };
        while self.more {
            self.read_on(source, params, enough);
            let plain = self.residual_mask.all() && self.access.compared.is_empty();
            for run in &self.runs {
                let all = self.rows_of(run.key);
                if plain {
                    let quads = u64::from(run.end - run.start);
                    all.iter()
                        .for_each(|&row| multiplicities[row as usize] += quads);
                    continue;
                }
                for quad in run.start as usize..run.end as usize {
                    if self.residual_mask.accepts(quad) {
                        let mates = self.mates(all, quad);
                        mates
                            .iter()
                            .for_each(|&row| multiplicities[row as usize] += 1);
                    }
                }
            }
        }
        multiplicities
    }

    fn rows_of(&self, key: u32) -> &[u32] {
        let key = key as usize;
        &self.rows[self.starts[key] as usize..self.starts[key + 1] as usize]
    }

    /// Pairs quads of the batch with rows of the input, a chunk of them.
    fn pair(&mut self) {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.0.clear();
        pairs.1.clear();
        let plain = self.residual_mask.all() && self.access.compared.is_empty();
        while let Some(run) = self.runs.get(self.run) {
            let all = self.rows_of(run.key);
            let room = self.chunk.saturating_sub(pairs.0.len());
            let (row, end) = (self.row, run.end as usize);
            // All quads of the run go with one row.
            if let (true, [only], true) = (plain, all, end - row <= room) {
                pairs.0.resize(pairs.0.len() + end - row, *only);
                pairs.1.extend(row as u32..end as u32);
                self.row = end;
            }
            while self.row < end {
                if pairs.0.len() >= self.chunk {
                    self.pairs = pairs;
                    return;
                }
                let row = self.row;
                if self.residual_mask.accepts(row) {
                    let mates = self.mates(self.rows_of(run.key), row);
                    let room = self.chunk - pairs.0.len();
                    let end = mates.len().min(self.mate + room);
                    pairs.0.extend_from_slice(&mates[self.mate..end]);
                    pairs.1.resize(pairs.0.len(), row as u32);
                    if end < mates.len() {
                        self.mate = end;
                        self.pairs = pairs;
                        return;
                    }
                }
                self.mate = 0;
                self.row += 1;
            }
            self.run += 1;
            if let Some(next) = self.runs.get(self.run) {
                self.row = next.start as usize;
            }
        }
        self.pairs = pairs;
    }

    /// Those of the rows of a key that agree with quad `row` in what the key range does not cover; they are sorted by
    /// it.
    fn mates<'a>(&self, mut all: &'a [u32], row: usize) -> &'a [u32] {
        for &(slot, at) in &self.access.compared {
            let Some(ids) = self.input.ids(slot) else {
                return &[];
            };
            let value = self.batch.columns[at][row];
            let from = all.partition_point(|&r| ids[r as usize] < value);
            let to = from + all[from..].partition_point(|&r| ids[r as usize] == value);
            all = &all[from..to];
        }
        all
    }

    fn joined(&self) -> Bindings {
        let mut rows = self.input.gather(&self.pairs.0, &self.live);
        for &(slot, at) in &self.access.fills {
            let column = &self.batch.columns[at];
            let ids = self.pairs.1.iter().map(|&r| column[r as usize]).collect();
            rows.columns[slot.index()] = Column::Ids(ids);
        }
        rows
    }
}

impl Merge {
    /// The quads of a batch that belong to keys; both ascend.
    fn runs(&mut self, batch: &Batch, runs: &mut Vec<Run>) {
        let column = &batch.columns[self.place];
        let mut at = 0;
        while let (Some(&found), Some(&wanted)) = (column.get(at), self.values.get(self.finger)) {
            if found < wanted {
                at += 1;
            } else if found > wanted {
                self.finger += 1;
            } else {
                let equal = column[at..].iter().take_while(|&&v| v == wanted).count();
                runs.push(Run {
                    key: self.finger as u32,
                    start: at as u32,
                    end: (at + equal) as u32,
                });
                // The key may have more quads in the next batch.
                at += equal;
            }
        }
    }
}
