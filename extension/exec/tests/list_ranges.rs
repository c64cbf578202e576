//! `s IN (..)` together with a predicate: a few subjects are looked up, for many the predicate is read.

mod common;

use common::{slots, Trees, FLIP};
use pgquad_btree::Quad;
use pgquad_exec::{
    Bound, CardinalityFeedback, ColumnNumber, Comparison, Group, Param, Pattern, Pipeline, Plan,
    Slot, Tuning, Value,
};

/// Quads of a predicate that nearly all subjects have, and others of the same subjects.
const SUBJECTS: i64 = 5000;

const TUNING: Tuning = Tuning {
    first: 64,
    most: 1024,
    bulk_from: 128,
    range_pushdown_from: 32,
    memory: 1 << 20,
};

fn quads() -> Vec<Quad> {
    let of = |s: i64| [[s, 1, s % 7, 0], [s, 2, s % 5, 0], [s, 3, s, 0]];
    (0..SUBJECTS).flat_map(of).collect()
}

/// Answers of `?s 1 ?o` with a list of subjects, and quads read; twice, so that a cardinality learnt counts, too.
fn asked(list: &[i64], turns: usize) -> Vec<(usize, usize)> {
    let mut trees = Trees::new(&[quads()], &["spog", "posg", "ospg"]);
    let pattern = Pattern {
        cells: [Some(Slot::new(0)), None, Some(Slot::new(1)), None],
        conditions: vec![
            Comparison::new(ColumnNumber::PREDICATE, Bound::Eq, Param::new(0)),
            Comparison::new(ColumnNumber::SUBJECT, Bound::Any, Param::new(1)),
        ],
        ..Pattern::default()
    };
    let root = Group {
        patterns: vec![pattern],
        ..Group::default()
    };
    let plan = Plan {
        root,
        slots: 2,
        output: slots([0, 1]),
        ..Plan::default()
    };
    let flipped = list.iter().map(|&s| s as u64 ^ FLIP).collect();
    let params = vec![Value::One(1 ^ FLIP), Value::List(flipped)];
    let mut pipeline = Pipeline::new(&plan, vec![0], TUNING);
    let mut feedback = CardinalityFeedback::default();
    let mut turn = || {
        trees.read = 0;
        pipeline.start(params.clone());
        let mut rows = 0;
        while let Some(batch) = pipeline.next(&mut trees, &mut feedback) {
            rows += batch.len;
        }
        (rows, trees.read)
    };
    (0..turns).map(|_| turn()).collect()
}

#[test]
fn few_members_are_looked_up() {
    for (rows, read) in asked(&[17, 4711, 4, 4711, SUBJECTS + 1], 2) {
        assert_eq!(rows, 3);
        assert!(read <= 10, "{read} quads are read for three");
    }
}

#[test]
fn many_members_are_tested() {
    let most: Vec<i64> = (0..SUBJECTS).filter(|s| s % 10 != 0).collect();
    for (rows, read) in asked(&most, 2) {
        assert_eq!(rows, most.len());
        assert_eq!(read, SUBJECTS as usize, "the predicate is read once");
    }
}

#[test]
fn nothing_is_read_for_no_members() {
    assert_eq!(asked(&[], 1), [(0, 0)]);
}
