//! Quads held in memory. Reading them takes no more than probing would, and only quads of the run's constants are held.

mod common;

use common::{Trees, FLIP};
use pgquad_btree::Quad;
use pgquad_exec::{
    Bindings, Bound, CardinalityFeedback, Column, ColumnNumber, Comparison, Group, Param, Pattern,
    Pipeline, Plan, Slot, Tuning, Value,
};

const TUNING: Tuning = Tuning {
    first: 100,
    most: 1000,
    bulk_from: 64,
    range_pushdown_from: 1000,
    memory: 1 << 26,
};

fn pattern(s: u16, predicate: Option<u16>, o: u16) -> Pattern {
    let conditions = predicate
        .map(|param| Comparison::new(ColumnNumber::PREDICATE, Bound::Eq, Param::new(param)));
    Pattern {
        cells: [Some(Slot::new(s)), None, Some(Slot::new(o)), None],
        conditions: conditions.into_iter().collect(),
        ..Pattern::default()
    }
}

fn pipeline(patterns: Vec<Pattern>, slots: u16, whole: bool) -> Pipeline {
    let plan = Plan {
        root: Group {
            patterns,
            ..Group::default()
        },
        slots,
        output: (0..slots).map(Slot::new).collect(),
        distinct: false,
        whole,
    };
    Pipeline::new(&plan, vec![0], TUNING)
}

fn trees(quads: Vec<Quad>) -> Trees {
    Trees::new(&[quads], &["spog", "posg", "ospg"])
}

/// Reads batches until there are `enough` rows.
fn rows(pipeline: &mut Pipeline, trees: &mut Trees, enough: usize) -> Vec<Vec<u64>> {
    let (mut feedback, mut rows) = (CardinalityFeedback::new(), Vec::new());
    while rows.len() < enough {
        let Some(batch) = pipeline.next(trees, &mut feedback) else {
            break;
        };
        let ids: Vec<&[u64]> = batch.columns.iter().filter_map(Column::ids).collect();
        rows.extend((0..batch.len).map(|row| ids.iter().map(|c| c[row]).collect::<Vec<_>>()));
    }
    rows.sort_unstable();
    rows
}

#[test]
fn a_hub_is_not_read_for_a_batch_of_few_subjects() {
    const HUB: i64 = 37;
    const QUADS: usize = 100_000;
    let few = (0..40).flat_map(|s| (0..10).map(move |o| [s, 0, 1_000_000 + 50 * s + o, 0]));
    let hub = (0..QUADS as i64).map(|o| [HUB, 1, o, 0]);
    let mut trees = trees(few.chain(hub).collect());
    let mut pipeline = pipeline(vec![pattern(0, None, 1)], 2, true);
    // Each subject with fifty objects, ten of which it has.
    let asked = |column: fn(u64) -> u64| Column::Ids((0..2000).map(|n| FLIP + column(n)).collect());
    let batch = Bindings {
        len: 2000,
        columns: vec![asked(|n| n / 50), asked(|n| 1_000_000 + n)],
    };
    for _ in 0..5 {
        pipeline.start_from(Vec::new(), batch.clone());
        assert_eq!(rows(&mut pipeline, &mut trees, usize::MAX).len(), 400);
    }
    // It was begun once, and given up when it took as much as to probe.
    assert!(trees.read < QUADS / 2, "{}", trees.read);
}

/// A table of quads on another node has to be paid for by more probes: each of its quads is sent.
#[test]
fn quads_of_another_node_are_held_later() {
    const QUADS: i64 = 20_000;
    let batch = |len: i64| Bindings {
        len: len as usize,
        columns: vec![
            Column::Ids((0..len).map(|n| FLIP + (n * QUADS / len) as u64).collect()),
            Column::Absent,
        ],
    };
    let is_hashed = |remote: bool, len: i64| {
        let mut trees = trees((0..QUADS).map(|s| [s, 0, 7 * s, 0]).collect());
        trees.remote = remote;
        let mut pipeline = pipeline(vec![pattern(0, Some(0), 1)], 2, true);
        pipeline.start_from(vec![Value::One(FLIP)], batch(len));
        assert_eq!(
            rows(&mut pipeline, &mut trees, usize::MAX).len(),
            len as usize
        );
        pipeline.steps()[0].hashed > 0
    };
    let least = |remote: bool| (1..).map(|n| 250 * n).find(|&len| is_hashed(remote, len));
    let (here, there) = (least(false), least(true));
    assert!(
        here.zip(there).is_some_and(|(here, there)| here < there),
        "{here:?} {there:?}"
    );
}

/// Subjects scattered over the objects of predicate 0, each with a quad of predicates 1 and 2.
fn chain() -> Vec<Quad> {
    (0..20_000)
        .flat_map(|n| {
            let other = 100_000 + n * 7919 % 20_011;
            [
                [other, 0, n, 0],
                [other, 1, n % 10, 0],
                [other, 2, n % 7, 0],
            ]
        })
        .collect()
}

fn params(second: u64) -> Vec<Value> {
    vec![Value::One(FLIP), Value::One(FLIP + second)]
}

#[test]
fn a_table_is_not_made_for_rows_that_nobody_may_ask_for() {
    let mut trees = trees(chain());
    let patterns = vec![pattern(1, Some(0), 0), pattern(1, Some(1), 2)];
    let mut limited = pipeline(patterns, 3, false);
    limited.start(params(1));
    assert!(rows(&mut limited, &mut trees, 1000).len() < 3000);
    assert!(trees.read < 10_000, "{}", trees.read);
}

#[test]
fn what_is_held_is_that_of_the_constants() {
    let mut trees = trees(chain());
    let patterns = vec![pattern(1, Some(0), 0), pattern(1, Some(1), 2)];
    let mut again = pipeline(patterns.clone(), 3, true);
    let mut reads = Vec::new();
    for second in [1, 2, 2, 1] {
        let before = trees.read;
        again.start(params(second));
        let found = rows(&mut again, &mut trees, usize::MAX);
        reads.push(trees.read - before);
        let mut fresh = pipeline(patterns.clone(), 3, true);
        fresh.start(params(second));
        assert_eq!(found, rows(&mut fresh, &mut trees, usize::MAX));
        assert_eq!(found.len(), 20_000);
    }
    assert!(
        again.steps().iter().any(|s| s.hashed > 0),
        "{:?}",
        again.steps()
    );
    // The same constants as before: the table is there still.
    assert!(
        reads[2] + 15_000 < reads[1] && reads[2] + 15_000 < reads[3],
        "{reads:?}"
    );
}
