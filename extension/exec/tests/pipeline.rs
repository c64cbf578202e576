//! The pipeline against nested loops over a list of quads: random quads, random plans, all batch sizes.

mod common;
#[path = "common/extremes.rs"]
mod extremes;
#[path = "common/plans.rs"]
mod plans;
#[path = "common/sums.rs"]
mod sums;

use common::Trees;
use extremes::{extremes_of, term_order, EXTREMES};
use pgquad_btree::Quad;
use pgquad_exec::{
    Argument, CardinalityFeedback, Counted, HashAggregation, Pipeline, Plan, Tuning, Value,
};
use plans::{expected, quads, rows_of, Maker, Row};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use sums::{integer, sum_of};

fn run(
    plan: &Plan,
    params: &[Value],
    (names, trees): (Vec<u64>, &mut Trees),
    tuning: Tuning,
) -> Vec<Row> {
    let mut pipeline = Pipeline::new(plan, names, tuning);
    let mut feedback = CardinalityFeedback::new();
    let mut rows = Vec::new();
    // The second run finds what the first has learnt.
    for _ in 0..2 {
        rows.clear();
        pipeline.start(params.to_vec());
        while let Some(batch) = pipeline.next(trees, &mut feedback) {
            assert!(batch.len > 0);
            rows.extend(rows_of(plan, &batch));
        }
    }
    pipeline.start(params.to_vec());
    if plan.distinct {
        check_set(plan, &rows, |aggregation| {
            pipeline.aggregate(trees, &mut feedback, aggregation)
        });
        return rows;
    }
    assert_eq!(pipeline.count(trees, &mut feedback), rows.len() as u64);
    for by in [0, 1, plan.output.len()] {
        check_tally(plan, &rows, by.min(plan.output.len()), |aggregation| {
            pipeline.start(params.to_vec());
            pipeline.aggregate(trees, &mut feedback, aggregation)
        });
    }
    rows
}

/// The groups of rows of which only the set matters, against the rows.
fn check_set(plan: &Plan, rows: &[Row], run: impl FnOnce(HashAggregation) -> HashAggregation) {
    if plan.output.is_empty() {
        return;
    }
    let groups = run(HashAggregation::new(plan.output.clone(), Vec::new()));
    let key = |group| -> Row {
        (0..plan.output.len())
            .map(|place| groups.value(group, place))
            .collect()
    };
    let mut found: Vec<Row> = (0..groups.len()).map(key).collect();
    let mut expected = rows.to_vec();
    expected.sort();
    expected.dedup();
    found.sort();
    assert_eq!(found, expected);
}

/// Rows counted by the first `by` variables of the answer, against the rows themselves. Also the rows in which the last
/// variable is bound, its distinct values, its sum and its extremes.
fn check_tally(
    plan: &Plan,
    rows: &[Row],
    by: usize,
    run: impl FnOnce(HashAggregation) -> HashAggregation,
) {
    let Some(last) = plan.output.last() else {
        return;
    };
    let mut values: HashMap<Row, Row> = HashMap::new();
    for row in rows {
        let of_group = values.entry(row[..by].to_vec()).or_default();
        of_group.push(row[row.len() - 1]);
    }
    let expected = values.into_iter().map(|(key, values)| {
        let bound = values.iter().flatten().count();
        let distinct: HashSet<_> = values.iter().flatten().collect();
        let counts = [values.len(), bound, distinct.len()].map(|count| count as u64);
        let extremes = extremes_of(&values);
        (key, (counts, sum_of(values.into_iter()), extremes))
    });
    let expected: HashMap<_, _> = expected.collect();
    let mut counted = vec![
        Counted::Rows,
        Counted::Bound(*last),
        Counted::Distinct(*last),
        Counted::Sum(Argument::new(0)),
    ];
    counted.extend(EXTREMES);
    let aggregation =
        HashAggregation::new(plan.output[..by].to_vec(), counted).with_order(term_order);
    let aggregation = run(aggregation.with_arguments(vec![vec![*last]]));
    assert_eq!(aggregation.rows(), rows.len() as u64);
    let groups = (0..aggregation.len()).map(|group| {
        let key: Row = (0..by)
            .map(|place| aggregation.value(group, place))
            .collect();
        let counts = [0, 1, 2].map(|place| aggregation.count(group, place));
        let extremes = [4, 5, 6, 7].map(|place| aggregation.extreme(group, place));
        (key, (counts, integer(&aggregation.sum(group, 3)), extremes))
    });
    let found: HashMap<_, _> = groups.collect();
    assert_eq!(aggregation.len(), found.len());
    assert_eq!(found, expected);
}

/// Compares the answers to a plan with what it means.
fn check(
    plan: &Plan,
    params: &[Value],
    tables: &[Vec<Quad>],
    orders: &[&str],
    tuning: Tuning,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(Plan::decode(&plan.encode()), Ok(plan.clone()));
    let expected = expected(plan, params, tables);
    prop_assume!(expected.is_some());
    let mut expected = expected.unwrap_or_default();
    let mut trees = Trees::new(tables, orders);
    // Equal tables are the same one, for all that the pipeline knows.
    let same = |table: &Vec<Quad>| tables.iter().position(|other| other == table);
    let names = tables.iter().filter_map(same).map(|name| name as u64);
    let mut found = run(plan, params, (names.collect(), &mut trees), tuning);
    expected.sort();
    found.sort();
    if plan.distinct {
        prop_assert!(found.len() <= expected.len());
        expected.dedup();
        found.dedup();
    }
    prop_assert_eq!(found, expected, "{:?} {:?}", plan, params);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn answers_are_those_of_nested_loops(
        tables in prop::collection::vec(quads(), 1..3),
        choices in prop::collection::vec(any::<u8>(), 10..150),
        first in prop::sample::select(vec![1usize, 2, 3, 7, 1000]),
        most in prop::sample::select(vec![1usize, 2, 5, 1000]),
        bulk_from in prop::sample::select(vec![1usize, 2, 4, 1000]),
        range_pushdown_from in prop::sample::select(vec![0usize, 4, 1000]),
        memory in prop::sample::select(vec![0usize, 300, 400, 500, 700, 1000, 1 << 20]),
        orders in prop::sample::select(vec![vec!["spog", "posg", "ospg"], vec!["spog", "psog"], vec!["gpos"]]),
        distinct: bool,
    ) {
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: tables.len() };
        let (mut root, output) = maker.group(&[], 0);
        if orders.iter().all(|order| order.ends_with('g')) {
            maker.read_triples(&mut root);
        }
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct, whole: false };
        check(&plan, &params, &tables, &orders, Tuning { first, most, bulk_from, range_pushdown_from, memory })?;
    }

    #[test]
    fn stars_are_those_of_nested_loops(
        quads in prop::collection::btree_set([0i64..6, 0..3, 0..5, 0..2], 0..45),
        choices in prop::collection::vec(any::<u8>(), 10..60),
        first in prop::sample::select(vec![1usize, 2, 3, 7, 1000]),
        most in prop::sample::select(vec![1usize, 2, 5, 1000]),
        bulk_from in prop::sample::select(vec![1usize, 2, 4, 1000]),
        memory in prop::sample::select(vec![0usize, 300, 700, 1 << 20]),
        distinct: bool,
    ) {
        let quads: Vec<Quad> = quads.into_iter().collect();
        let tables = [quads.clone(), quads];
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: 2 };
        let (mut root, output) = maker.star();
        maker.read_triples(&mut root);
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct, whole: false };
        check(&plan, &params, &tables, &["spog", "posg", "ospg"], Tuning { first, most, bulk_from, range_pushdown_from: 4, memory })?;
    }

    #[test]
    fn joins_by_value_are_those_of_nested_loops(
        quads in prop::collection::btree_set([0i64..6, 0..3, 0..6, 0..2], 0..45),
        choices in prop::collection::vec(any::<u8>(), 10..60),
        first in prop::sample::select(vec![1usize, 2, 7, 1000]),
        most in prop::sample::select(vec![1usize, 2, 5, 1000]),
        range_pushdown_from in prop::sample::select(vec![0usize, 4, 1000]),
        memory in prop::sample::select(vec![0usize, 300, 700, 1 << 20]),
        distinct: bool,
    ) {
        let quads: Vec<Quad> = quads.into_iter().collect();
        let tables = [quads.clone(), quads];
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: 2 };
        let (mut root, output) = maker.apart();
        maker.read_triples(&mut root);
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct, whole: false };
        check(&plan, &params, &tables, &["spog", "posg", "ospg"], Tuning { first, most, bulk_from: 4, range_pushdown_from, memory })?;
    }

    #[test]
    fn damaged_plans_are_noticed(words in prop::collection::vec(-3i32..70, 0..60)) {
        if let Ok(plan) = Plan::decode(&words) {
            prop_assert_eq!(plan.encode(), words);
        }
    }
}
