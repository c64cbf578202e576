//! The pipeline over shards of several nodes, whose quads come in turns, against nested loops over a list of quads.

mod common;
#[path = "common/plans.rs"]
mod plans;

use common::Trees;
use pgquad_btree::mem::Txns;
use pgquad_btree::{Batch, Key, Order, Probe, Quad, Span};
use pgquad_cluster::message::{Read, Rows};
use pgquad_cluster::reading::{answer, first_requests};
use pgquad_cluster::{Placement, Reading, Shard, Shards};
use pgquad_exec::{
    Bindings, CardinalityFeedback, Expr, Pipeline, Plan, Prefetch, Slot, Source, TableNumber,
    Tuning, ValueKey,
};
use plans::{expected, quads, rows_of, Maker};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const ORDERS: [&str; 4] = ["spog", "psog", "ospg", "posg"];

/// An encoded read, with its table, order and node.
type Request = (TableNumber, usize, i32, Vec<u8>);

/// Tables whose quads are in shards of several nodes: by subject in the first two orders, by object in the others.
struct Scattered {
    all: Trees,
    /// The quads of each shard, by side.
    shards: [Vec<Trees>; 2],
    placement: Placement,
    /// Reads of the nodes stop after so many quads.
    most: usize,
    /// Answers to reads that were prefetched.
    prefetched: RefCell<HashMap<Request, Rc<Rows>>>,
}

impl Scattered {
    /// `count` shards, dealt out to three nodes in turn.
    fn new(tables: &[Vec<Quad>], count: i64, most: usize) -> Self {
        let width = (1i64 << 32) / count;
        let shard = |n: i64| Shard {
            id: 100 + n as u64,
            low: (i64::from(i32::MIN) + n * width) as i32,
            high: if n + 1 == count {
                i32::MAX
            } else {
                (i64::from(i32::MIN) + (n + 1) * width - 1) as i32
            },
            group: n as i32 % 3,
        };
        let placement = Placement::new((0..count).map(shard).collect()).unwrap();
        let side = |column: usize| -> Vec<Trees> {
            let part = |n: i64| -> Vec<Vec<Quad>> {
                let is_of = |q: &&Quad| placement.shard_of(q[column]) == n as usize;
                let of_table = |table: &Vec<Quad>| table.iter().filter(is_of).copied().collect();
                tables.iter().map(of_table).collect()
            };
            (0..count).map(|n| Trees::new(&part(n), &ORDERS)).collect()
        };
        Self {
            all: Trees::new(tables, &ORDERS),
            shards: [side(0), side(2)],
            placement,
            most,
            prefetched: RefCell::default(),
        }
    }
}

impl Scattered {
    fn view(&self, table: TableNumber, order: usize) -> View<'_> {
        View {
            source: self,
            table,
            order,
            asked: RefCell::default(),
        }
    }
}

/// An order of a table, as node 0 reads it.
struct View<'a> {
    source: &'a Scattered,
    table: TableNumber,
    order: usize,
    asked: RefCell<HashMap<i32, Rc<Rows>>>,
}

impl View<'_> {
    /// What a node answers.
    fn answer(&self, request: &Read) -> Rc<Rows> {
        let request = Read {
            enough: request.enough.min(self.source.most as u32),
            ..request.clone()
        };
        let rows = answer(&request, |part, probe, ranges, enough, batch, spans| {
            batch.clear(request.mask);
            spans.clear();
            let shard = (request.parts[part].shard - 100) as usize;
            self.append(shard, probe, ranges, enough, (batch, spans))
        });
        Rc::new(rows)
    }

    /// Reads on in a shard; adds to the batch.
    fn append(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        (batch, spans): (&mut Batch, &mut Vec<Span>),
    ) -> bool {
        let trees = &self.source.shards[self.order / 2][shard];
        let tree = trees.tables[self.table.index()].0.tree(self.order);
        let snapshot = Txns::default().snapshot(&[], 1);
        let more = probe.append(tree.unwrap(), &snapshot, ranges, enough, batch, spans);
        more.unwrap()
    }
}

impl Shards for View<'_> {
    fn placement(&self) -> &Placement {
        &self.source.placement
    }

    fn is_here(&self, shard: usize) -> bool {
        self.placement().shards()[shard].group == 0
    }

    fn key_place(&self) -> usize {
        let order = self.source.all.orders(self.table)[self.order];
        order.position(if self.order < 2 { 0 } else { 2 })
    }

    fn order(&self) -> u8 {
        self.order as u8
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
        self.append(shard, probe, ranges, enough, (batch, spans))
    }

    fn send(&self, group: i32, request: &Read) {
        let what = (self.table, self.order, group, request.encode());
        let prefetched = self.source.prefetched.borrow_mut().remove(&what);
        let rows = prefetched.unwrap_or_else(|| self.answer(request));
        self.asked.borrow_mut().insert(group, rows);
    }

    fn receive(&self, group: i32) -> Rc<Rows> {
        self.asked.borrow_mut().remove(&group).unwrap()
    }
}

impl Source for Scattered {
    fn orders(&self, table: TableNumber) -> &[Order] {
        self.all.orders(table)
    }

    fn count(&mut self, table: TableNumber, order: usize, low: &Key, high: &Key) -> u64 {
        self.all.count(table, order, low, high)
    }

    fn ranges_are_sorted(&self, _table: TableNumber) -> bool {
        false
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn prefetch(&mut self, reads: &[Prefetch]) -> bool {
        for Prefetch {
            wanted,
            mask,
            enough,
        } in reads
        {
            let view = self.view(wanted.table, wanted.order);
            for (group, request) in first_requests(&view, *mask, &wanted.ranges, *enough) {
                let what = (view.table, view.order, group, request.encode());
                let rows = view.answer(&request);
                self.prefetched.borrow_mut().insert(what, rows);
            }
        }
        true
    }

    fn take_prefetched(&mut self) {
        self.prefetched.borrow_mut().clear();
    }

    fn read(
        &mut self,
        table: TableNumber,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let view = self.view(table, order);
        reading.read(&view, ranges, enough, batch, spans)
    }

    fn test(&mut self, expr: Expr, needs: &[Slot], rows: &Bindings, keep: &mut [bool]) {
        self.all.test(expr, needs, rows, keep);
    }

    fn pushdown_ranges(
        &mut self,
        expr: Expr,
        needs: &[Slot],
        unknown: usize,
        row: &[Option<u64>],
    ) -> Option<Vec<(u64, u64)>> {
        self.all.pushdown_ranges(expr, needs, unknown, row)
    }

    fn value_keys(&mut self, ids: &[u64]) -> Vec<ValueKey> {
        self.all.value_keys(ids)
    }

    fn interrupt(&mut self) {}
}

/// Quads of few triples, most of which are in several graphs.
fn in_many_graphs() -> impl Strategy<Value = Vec<Quad>> {
    let quads = prop::collection::btree_set([0i64..6, 0..2, 0..4, 0..5], 0..45);
    quads.prop_map(|quads| quads.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn answers_are_those_of_nested_loops(
        tables in prop::collection::vec(prop_oneof![quads(), in_many_graphs()], 1..3),
        choices in prop::collection::vec(any::<u8>(), 10..150),
        (first, most) in prop::sample::select(vec![(1usize, 1usize), (2, 5), (3, 1000), (1000, 1000)]),
        bulk_from in prop::sample::select(vec![1usize, 2, 4, 1000]),
        memory in prop::sample::select(vec![0usize, 300, 500, 1 << 20]),
        shards in 1i64..8,
        answered in prop::sample::select(vec![1usize, 2, 5, 1000]),
        kind in 0..3,
        distinct: bool,
    ) {
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: tables.len() };
        let (mut root, output) = match kind {
            1 if tables.len() == 2 => maker.star(),
            2 if tables.len() == 2 => maker.apart(),
            _ => maker.group(&[], 0),
        };
        maker.read_triples(&mut root);
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct, whole: false };
        let expected = expected(&plan, &params, &tables);
        prop_assume!(expected.is_some());
        let mut expected = expected.unwrap_or_default();
        let mut source = Scattered::new(&tables, shards, answered);
        let tuning = Tuning { first, most, bulk_from, range_pushdown_from: 4, memory };
        let mut pipeline = Pipeline::new(&plan, (0..tables.len() as u64).collect(), tuning);
        let mut feedback = CardinalityFeedback::new();
        // The second run finds what the first has learnt.
        for _ in 0..2 {
            let mut found = Vec::new();
            pipeline.start(params.clone());
            while let Some(batch) = pipeline.next(&mut source, &mut feedback) {
                found.extend(rows_of(&plan, &batch));
            }
            expected.sort();
            found.sort();
            if distinct {
                expected.dedup();
                found.dedup();
            }
            prop_assert_eq!(&found, &expected, "{:?} {:?}", plan, params);
        }
    }
}
