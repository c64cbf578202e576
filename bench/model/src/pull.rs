//! A query whose quads come to the node that was asked: the readings of `pgquad-cluster`, with their messages, over a
//! modelled network.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pgquad_btree::{Batch, Key, Probe, Span, ALL_COLUMNS, SIGN};
use pgquad_cluster::message::{Read, Rows};
use pgquad_cluster::reading::answer;
use pgquad_cluster::{Placement, Reader, Reading, Shards};

use crate::costs::{Costs, Outcome};
use crate::plan::What;
use crate::quads::Table;

/// Rows that a join takes from step to step at once: the default of `quad.join_batch_size`.
const BATCH_ROWS: usize = 10_000;

/// Rows of an answer that are asked for at once: a join asks for a batch.
const ASKED_ROWS: usize = 10_000;

/// The node that was asked, and what it knows of the others.
struct Asker<'a> {
    costs: &'a Costs,
    /// Its clock.
    now: f64,
    /// When its way out and its way in are free.
    out: f64,
    way_in: f64,
    /// Work by node.
    work: Vec<f64>,
    outcome: Outcome,
    /// Answers on their way, by node: when they are there.
    coming: HashMap<i32, (f64, Rows)>,
}

impl Asker<'_> {
    fn works(&mut self, time: f64) {
        self.now += time;
        self.work[0] += time;
    }

    fn count(&mut self, bytes: usize) {
        self.outcome.messages += 1;
        self.outcome.bytes += bytes as u64;
        self.outcome.asker_bytes += bytes as u64;
    }
}

/// A table as the node that was asked sees it.
struct Side<'a, 'c> {
    table: &'a Table,
    asker: &'a RefCell<Asker<'c>>,
}

impl Shards for Side<'_, '_> {
    fn placement(&self) -> &Placement {
        &self.table.placement
    }

    fn is_here(&self, shard: usize) -> bool {
        self.table.placement.shards()[shard].group == 0
    }

    fn key_place(&self) -> usize {
        self.table.key_place()
    }

    fn order(&self) -> u8 {
        0
    }

    fn read_here(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let before = batch.len();
        let more = self
            .table
            .append(shard, probe, ranges, enough, (batch, spans));
        let mut asker = self.asker.borrow_mut();
        let time = asker.costs.reading(ranges.len(), batch.len() - before);
        asker.works(time);
        more
    }

    /// The answer is made at once; the clock says when it is there.
    fn send(&self, group: i32, request: &Read) {
        let bytes = request.encode();
        let mut reader = Reader::new(&bytes);
        let header = (reader.u8(), reader.u8());
        debug_assert!(header.0.is_ok() && header.1.is_ok());
        let request = Read::decode(&mut reader).expect("a message of our own");
        let ids: HashMap<u64, usize> = self
            .table
            .placement
            .shards()
            .iter()
            .enumerate()
            .map(|(n, shard)| (shard.id, n))
            .collect();
        let rows = answer(&request, |part, probe, ranges, enough, batch, spans| {
            let shard = ids[&request.parts[part].shard];
            self.table
                .read(shard, probe, ranges, enough, (batch, spans))
        });
        let answered = rows.encode();
        let probes = request.parts.iter().map(|part| part.ranges.len()).sum();
        let mut asker = self.asker.borrow_mut();
        let costs = *asker.costs;
        asker.works(costs.message);
        asker.count(bytes.len());
        asker.count(answered.len());
        asker.out = asker.out.max(asker.now) + bytes.len() as f64 * costs.byte;
        let work = 2.0 * costs.message + costs.reading(probes, rows.batch.len());
        asker.work[group as usize] += work;
        let sent = asker.out + costs.latency + work + answered.len() as f64 * costs.byte;
        asker.coming.insert(group, (sent + costs.latency, rows));
    }

    fn receive(&self, group: i32) -> Rc<Rows> {
        let mut asker = self.asker.borrow_mut();
        let (there, rows) = asker.coming.remove(&group).expect("a request");
        let costs = *asker.costs;
        // All answers share the way in.
        asker.way_in = asker.way_in.max(there);
        asker.now = asker.now.max(asker.way_in);
        asker.works(costs.message);
        Rc::new(rows)
    }
}

/// Runs a join on the first of `nodes` nodes.
pub fn run(tables: &[Table], nodes: usize, costs: &Costs) -> Outcome {
    let asker = RefCell::new(Asker {
        costs,
        now: 0.0,
        out: 0.0,
        way_in: 0.0,
        work: vec![0.0; nodes],
        outcome: Outcome::default(),
        coming: HashMap::new(),
    });
    let rows = step(tables, &asker, vec![0]);
    let asker = asker.into_inner();
    Outcome {
        elapsed: asker.now,
        work: asker.work.iter().sum(),
        most_work: asker.work.iter().fold(0.0, |most, work| most.max(*work)),
        rows,
        ..asker.outcome
    }
}

/// Joins a batch of rows, each the value that the next step looks up, with the steps that are left. Returns the number
/// of rows at the end.
fn step(tables: &[Table], asker: &RefCell<Asker<'_>>, rows: Vec<i64>) -> u64 {
    let Some((table, rest)) = tables.split_first() else {
        return rows.len() as u64;
    };
    let next = joined(table, asker, &rows);
    {
        let mut asker = asker.borrow_mut();
        let time = next.len() as f64 * asker.costs.row;
        asker.works(time);
    }
    let batches = next.chunks(BATCH_ROWS).map(<[i64]>::to_vec);
    batches.map(|batch| step(rest, asker, batch)).sum()
}

/// The rows that a step makes of rows.
fn joined(table: &Table, asker: &RefCell<Asker<'_>>, rows: &[i64]) -> Vec<i64> {
    let (values, ranges) = match table.step.what {
        What::Keys(_) => {
            let mut values = rows.to_vec();
            values.sort_unstable();
            values.dedup();
            let ranges = values.iter().flat_map(|value| table.ranges(Some(*value)));
            let ranges: Vec<(Key, Key)> = ranges.collect();
            (values, ranges)
        }
        What::Constant(_) => (
            vec![table.constant],
            table.ranges(Some(table.constant)).collect(),
        ),
        What::Everywhere(_) => (vec![table.constant], table.ranges(None).collect()),
    };
    let found = read(table, asker, &ranges);
    let arms = table.step.arms;
    match table.step.what {
        What::Keys(_) => {
            let of = |value: &i64| {
                let group = values.binary_search(value).unwrap_or(usize::MAX);
                let last = found.get(&(group * arms + arms - 1));
                last.map_or(&[][..], Vec::as_slice).iter().copied()
            };
            rows.iter().flat_map(of).collect()
        }
        // Read once; each row goes on with as many as were recorded.
        What::Constant(_) | What::Everywhere(_) => {
            let all: Vec<i64> = found.into_values().flatten().collect();
            let count = (rows.len() as f64 * table.step.factor).round() as usize;
            (0..count)
                .filter_map(|n| all.get(n % all.len().max(1)))
                .copied()
                .collect()
        }
    }
}

/// The values that the ranges have, by number of the range.
fn read(
    table: &Table,
    asker: &RefCell<Asker<'_>>,
    ranges: &[(Key, Key)],
) -> HashMap<usize, Vec<i64>> {
    let side = Side { table, asker };
    let arms = table.step.arms;
    let mut reading = match arms {
        1 => Reading::new(ALL_COLUMNS),
        arms => Reading::grouped(ALL_COLUMNS, arms, 0, ASKED_ROWS),
    };
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let mut found: HashMap<usize, Vec<i64>> = HashMap::new();
    let mut first = 0;
    loop {
        let left = &ranges[first..];
        let more = reading.read(&side, left, ASKED_ROWS, &mut batch, &mut spans);
        let mut start = 0;
        for span in &spans {
            let values = batch.columns[table.value_place()][start..span.end as usize].iter();
            let values = values.map(|value| (value ^ SIGN) as i64);
            let number = first + span.range as usize;
            found.entry(number).or_default().extend(values);
            start = span.end as usize;
        }
        if !more {
            return found;
        }
        // A star with more quads than a call has room for is read arm by arm, as a join does.
        if let (group, true) = reading.place() {
            if arms > 1 {
                first += group * arms;
                reading = Reading::new(ALL_COLUMNS);
            }
        }
    }
}
