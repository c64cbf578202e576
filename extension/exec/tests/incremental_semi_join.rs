//! Work inside EXISTS and NOT EXISTS: a row outside is decided by its first match.

mod common;

use common::{slots, Trees, FLIP};
use pgquad_btree::Quad;
use pgquad_exec::{
    Bound, CardinalityFeedback, Child, ColumnNumber, Comparison, Group, Kind, Param, Pattern,
    Pipeline, Plan, Slot, StepStats, Tuning, Value,
};

const PRODUCTS: i64 = 200;
const OFFERS: i64 = 50;

fn pattern(s: u16, predicate: u16, o: Option<u16>) -> Pattern {
    Pattern {
        cells: [Some(Slot::new(s)), None, o.map(Slot::new), None],
        conditions: vec![Comparison::new(
            ColumnNumber::PREDICATE,
            Bound::Eq,
            Param::new(predicate),
        )],
        ..Pattern::default()
    }
}

/// Products (predicate 0) with offers (1), each of a vendor (2) that is in a country (3) where `country` says so.
fn quads(country: impl Fn(i64) -> bool) -> Vec<Quad> {
    let products = (0..PRODUCTS).map(|p| [p, 0, 0, 0]);
    let offers = (0..PRODUCTS * OFFERS).flat_map(|n| {
        let (offer, vendor) = (1000 + n, 100_000 + (n / PRODUCTS * 37 + n * 7) % 100);
        [[offer, 1, n % PRODUCTS, 0], [offer, 2, vendor, 0]]
    });
    let vendors = (0..100).flat_map(|v| {
        let country = if country(v) { 5 } else { 6 };
        [[100_000 + v, 3, country, 0], [100_000 + v, 3, 7, 0]]
    });
    products.chain(offers).chain(vendors).collect()
}

/// The products that have, or have not, an offer of a vendor in country 5, and what the steps inside did.
fn run(quads: &[Quad], kind: Kind, first: usize, memory: usize) -> (Vec<u64>, Vec<StepStats>) {
    let mut country = pattern(2, 3, None);
    country.conditions.push(Comparison::new(
        ColumnNumber::OBJECT,
        Bound::Eq,
        Param::new(5),
    ));
    let inner = Group {
        patterns: vec![pattern(1, 1, Some(0)), pattern(1, 2, Some(2)), country],
        ..Group::default()
    };
    let plan = Plan {
        root: Group {
            patterns: vec![pattern(0, 0, None)],
            children: vec![Child {
                kind,
                group: inner,
                exports: Vec::new(),
                needs: slots([0]),
                row: Slot::new(3),
            }],
            ..Group::default()
        },
        slots: 4,
        output: slots([0]),
        distinct: false,
        whole: true,
    };
    let tuning = Tuning {
        first,
        most: 10_000,
        bulk_from: 128,
        range_pushdown_from: 1000,
        memory,
    };
    let mut trees = Trees::new(&[quads.to_vec()], &["spog", "posg", "ospg"]);
    let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
    pipeline.start((0..6).map(|p| Value::One(FLIP + p)).collect());
    let mut products = Vec::new();
    while let Some(rows) = pipeline.next(&mut trees, &mut CardinalityFeedback::new()) {
        products.extend(rows.ids(Slot::new(0)).unwrap().iter().map(|id| id - FLIP));
    }
    products.sort_unstable();
    (products, pipeline.steps()[1..].to_vec())
}

fn rows(steps: &[StepStats]) -> Vec<u64> {
    steps.iter().map(|step| step.rows).collect()
}

#[test]
fn rows_that_are_settled_cost_nothing_more() {
    let quads = quads(|vendor| vendor % 3 == 0);
    for (first, memory) in [(100, 0), (100, 1 << 20), (10_000, 1 << 20)] {
        let (with, steps) = run(&quads, Kind::Semi, first, memory);
        let [offers, vendors, _] = rows(&steps)[..] else {
            panic!("three patterns");
        };
        assert_eq!(offers, (PRODUCTS * OFFERS) as u64);
        assert!(vendors * 5 < offers, "{steps:?}");
        let (without, _) = run(&quads, Kind::Anti, first, memory);
        assert_eq!(with.len() + without.len(), PRODUCTS as usize);
        assert!(!with.is_empty());
    }
}

#[test]
fn rounds_that_settle_nothing_are_few() {
    let mut quads = quads(|_| false);
    // Otherwise the countries would be read first, and there would be nothing more to do.
    quads.extend((0..5000).map(|n| [200_000 + n, 3, 5, 0]));
    for memory in [0, 1 << 20] {
        let (without, steps) = run(&quads, Kind::Anti, 100, memory);
        assert_eq!(without.len(), PRODUCTS as usize);
        assert!(rows(&steps)[1] <= (PRODUCTS * OFFERS) as u64, "{steps:?}");
        assert!(steps[1].batches <= 8, "{steps:?}");
    }
}
