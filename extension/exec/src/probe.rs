//! Probing one pattern with a batch of rows: keys sorted, each distinct key read once, the quads found paired with their rows.

use crate::access::Value;
use crate::bindings::{Bindings, Column};
use crate::order::{holds, Access, Check};
use crate::plan::SlotSet;
use crate::source::Source;
use pgquad_btree::{Batch, Key, Probe, Span};
use std::cmp::Ordering;

/// A batch of rows being joined with the quads of a pattern.
pub(crate) struct Probing {
    table: u16,
    pub access: Access,
    input: Bindings,
    live: SlotSet,
    /// Rows of the input by key, then by the variables compared after reading.
    rows: Vec<u32>,
    /// First place in `rows` of each distinct key, and the end.
    starts: Vec<u32>,
    ranges: Vec<(Key, Key)>,
    /// Which key each range belongs to.
    owners: Vec<u32>,
    probe: Probe,
    batch: Batch,
    spans: Vec<Span>,
    more: bool,
    /// Where to go on: span, row of the batch, place among the rows of its key.
    span: usize,
    row: usize,
    mate: usize,
    /// Rows to hand out at once; grows from batch to batch.
    chunk: usize,
    most: usize,
    pairs: (Vec<u32>, Vec<u32>),
    /// Quads read so far.
    pub read: usize,
}

impl Probing {
    /// Starts to join `input` with the quads that `access` reads.
    pub fn new(
        table: u16,
        access: Access,
        input: Bindings,
        live: SlotSet,
        params: &[Value],
        (first, most): (usize, usize),
    ) -> Self {
        let mut probing = Self {
            table,
            chunk: first.max(input.len).clamp(1, most.max(1)),
            probe: Probe::new(access.mask),
            access,
            live,
            input,
            rows: Vec::new(),
            starts: Vec::new(),
            ranges: Vec::new(),
            owners: Vec::new(),
            batch: Batch::new(),
            spans: Vec::new(),
            more: true,
            span: 0,
            row: 0,
            mate: 0,
            most: most.max(1),
            pairs: Default::default(),
            read: 0,
        };
        probing.sort_rows();
        probing.make_ranges(params);
        probing
    }

    /// Number of key ranges.
    pub fn probes(&self) -> usize {
        self.ranges.len()
    }

    /// Number of distinct keys.
    pub fn distinct_keys(&self) -> usize {
        self.starts.len() - 1
    }

    fn sort_rows(&mut self) {
        let input = &self.input;
        let compared = self.access.compared.iter().map(|c| c.0);
        let columns: Vec<&[u64]> = self
            .access
            .keys
            .iter()
            .copied()
            .chain(compared)
            .filter_map(|s| input.ids(s))
            .collect();
        let keys = self.access.keys.len();
        let len = input.len as u32;
        self.rows = match columns.as_slice() {
            [] => (0..len).collect(),
            _ if len == 1 => vec![0],
            [one] => {
                let mut pairs: Vec<(u64, u32)> = one.iter().copied().zip(0..len).collect();
                pairs.sort_unstable();
                pairs.into_iter().map(|p| p.1).collect()
            }
            many => {
                let mut rows: Vec<u32> = (0..len).collect();
                rows.sort_unstable_by(|&a, &b| compare(many, a, b));
                rows
            }
        };
        let keys = &columns[..keys.min(columns.len())];
        self.starts.push(0);
        for at in 1..self.rows.len() {
            if compare(keys, self.rows[at - 1], self.rows[at]) != Ordering::Equal {
                self.starts.push(at as u32);
            }
        }
        self.starts.push(len);
    }

    fn make_ranges(&mut self, params: &[Value]) {
        for key in 0..self.starts.len() - 1 {
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

    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        loop {
            self.pair(params);
            if !self.pairs.0.is_empty() {
                self.chunk = (self.chunk * 4).min(self.most);
                return Some(self.joined());
            }
            if !self.more {
                return None;
            }
            self.read_on(source, self.chunk);
            (self.span, self.row, self.mate) = (0, 0, 0);
        }
    }

    /// Reads the next quads, about as many as `enough`.
    fn read_on<S: Source>(&mut self, source: &mut S, enough: usize) {
        source.interrupt();
        self.more = source.read(
            self.table,
            self.access.order,
            &mut self.probe,
            &self.ranges,
            enough,
            &mut self.batch,
            &mut self.spans,
        );
        self.read += self.batch.len();
    }

    /// Number of all rows that are left, without making them.
    pub fn count<S: Source>(&mut self, source: &mut S, params: &[Value]) -> u64 {
        let mut sum = 0;
        while self.more {
            self.read_on(source, self.most);
            let plain = self.access.checks.is_empty() && self.access.compared.is_empty();
            let mut row = 0;
            for span in &self.spans {
                let end = span.end as usize;
                let key = self.owners[span.range as usize] as usize;
                let all = &self.rows[self.starts[key] as usize..self.starts[key + 1] as usize];
                sum += if plain {
                    (all.len() * (end - row)) as u64
                } else {
                    let accepted = (row..end).filter(|&row| self.accepts(row, params));
                    accepted.map(|row| self.mates(all, row).len() as u64).sum()
                };
                row = end;
            }
        }
        sum
    }

    /// Pairs quads of the batch with rows of the input, a chunk of them.
    fn pair(&mut self, params: &[Value]) {
        self.pairs.0.clear();
        self.pairs.1.clear();
        while let Some(span) = self.spans.get(self.span) {
            let key = self.owners[span.range as usize] as usize;
            let all = &self.rows[self.starts[key] as usize..self.starts[key + 1] as usize];
            while self.row < span.end as usize {
                if self.pairs.0.len() >= self.chunk {
                    return;
                }
                let row = self.row;
                if self.accepts(row, params) {
                    let mates = self.mates(all, row);
                    let room = self.chunk - self.pairs.0.len();
                    let end = mates.len().min(self.mate + room);
                    self.pairs.0.extend_from_slice(&mates[self.mate..end]);
                    self.pairs.1.resize(self.pairs.0.len(), row as u32);
                    if end < mates.len() {
                        self.mate = end;
                        return;
                    }
                }
                self.mate = 0;
                self.row += 1;
            }
            self.span += 1;
        }
    }

    fn accepts(&self, row: usize, params: &[Value]) -> bool {
        self.access.checks.iter().all(|&(at, check)| {
            let value = self.batch.columns[at][row];
            match check {
                Check::Same(other) => value == self.batch.columns[other][row],
                Check::Param(bound, param) => holds(value, bound, &params[usize::from(param)]),
            }
        })
    }

    /// Those of the rows of a key that agree with quad `row` in what the key range does not cover; they are sorted by it.
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
            rows.columns[usize::from(slot)] = Column::Ids(ids);
        }
        rows
    }
}

fn compare(columns: &[&[u64]], a: u32, b: u32) -> Ordering {
    columns
        .iter()
        .map(|c| c[a as usize].cmp(&c[b as usize]))
        .find(|o| *o != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// About how many quads a pattern has per row of a batch, from exact counts for some of the rows.
pub(crate) fn sample<S: Source>(
    source: &mut S,
    table: u16,
    access: &Access,
    rows: &Bindings,
    params: &[Value],
    most: usize,
) -> f64 {
    let samples = most.clamp(1, rows.len.max(1));
    let mut ranges = Vec::new();
    let mut sum = 0.0;
    for i in 0..samples {
        ranges.clear();
        access.ranges(rows, i * rows.len / samples, params, &mut ranges);
        sum += count(source, table, access.order, &ranges);
    }
    sum / samples as f64
}

/// About how many quads ranges hold; counts some of many ranges only.
pub(crate) fn count<S: Source>(
    source: &mut S,
    table: u16,
    order: usize,
    ranges: &[(Key, Key)],
) -> f64 {
    const COUNTED: usize = 8;
    let step = ranges.len().div_ceil(COUNTED).max(1);
    let some = ranges.iter().step_by(step);
    let counted = some.len().max(1);
    let sum: u64 = some
        .map(|(low, high)| source.count(table, order, low, high))
        .sum();
    sum as f64 * ranges.len() as f64 / counted as f64
}
