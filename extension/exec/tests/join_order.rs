//! The order that a pipeline chooses, on data made to mislead it. The work (rows that come out of all steps) is at most
//! twice that of the best order of all.

mod common;
#[path = "common/triples.rs"]
mod triples;

use common::Trees;
use pgquad_btree::Quad;
use pgquad_exec::{CardinalityFeedback, Group, Pipeline, Plan, Slot, Tuning};
use triples::{patterns, Term, Triple};
use Term::{Is, Var};

/// Answers and work of the pipeline with whatever steps it takes, and with fewer rows for those that are not probes.
fn run(quads: &[Quad], triples: &[Triple], slots: u16) -> (u64, u64) {
    let all = [128, 4].map(|bulk_from| run_from(bulk_from, quads, triples, slots));
    assert_eq!(all[0].0, all[1].0);
    (all[0].0, all[0].1.max(all[1].1))
}

/// The second run, so that what the first has learnt counts too.
fn run_from(bulk_from: usize, quads: &[Quad], triples: &[Triple], slots: u16) -> (u64, u64) {
    let mut store = Trees::new(&[quads.to_vec()], &["spog", "posg", "ospg"]);
    let mut params = Vec::new();
    let root = Group {
        patterns: patterns(triples, &mut params),
        ..Group::default()
    };
    let plan = Plan {
        root,
        slots,
        output: (0..slots).map(Slot::new).collect(),
        distinct: false,
        whole: false,
    };
    let mut feedback = CardinalityFeedback::new();
    let (mut answers, mut work) = (0, 0);
    for _ in 0..2 {
        let mut pipeline = Pipeline::new(
            &plan,
            vec![0],
            Tuning {
                first: 100,
                most: 10_000,
                bulk_from,
                range_pushdown_from: 1000,
                memory: 1 << 20,
            },
        );
        pipeline.start(params.clone());
        answers = 0;
        while let Some(rows) = pipeline.next(&mut store, &mut feedback) {
            answers += rows.len as u64;
        }
        work = pipeline.steps().iter().map(|step| step.rows).sum();
    }
    (answers, work)
}

/// Rows after each pattern of an order, by definition; gives up beyond `limit`.
fn cost(quads: &[Quad], triples: &[Triple], order: &[usize], slots: u16, limit: u64) -> u64 {
    let mut rows: Vec<Vec<Option<i64>>> = vec![vec![None; usize::from(slots)]];
    let mut sum = 0;
    for &at in order {
        let hash_probe: Vec<&Quad> = quads
            .iter()
            .filter(|q| (0..3).all(|c| !matches!(triples[at][c], Is(value) if value != q[c])))
            .collect();
        let mut next = Vec::new();
        for row in &rows {
            for quad in &hash_probe {
                let mut row = row.clone();
                let fits = (0..3).all(|c| match triples[at][c] {
                    Var(slot) => *row[usize::from(slot)].get_or_insert(quad[c]) == quad[c],
                    Is(_) => true,
                });
                if fits {
                    next.push(row);
                }
                if sum + next.len() as u64 > limit {
                    return limit;
                }
            }
        }
        rows = next;
        sum += rows.len() as u64;
    }
    sum
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |p: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..n)
                .filter(|i| !p.contains(i))
                .map(|i| p.iter().copied().chain([i]).collect())
                .collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The pipeline's work against that of the best of all orders.
fn check(quads: &[Quad], triples: &[Triple], slots: u16) {
    let (_, work) = run(quads, triples, slots);
    let mut best = u64::MAX;
    for order in permutations(triples.len()) {
        best = best.min(cost(quads, triples, &order, slots, best.min(2 * work + 1)));
    }
    assert!(work <= 2 * best + 20, "{work} rows instead of {best}");
}

fn quad(s: i64, p: i64, o: i64) -> Quad {
    [s, p, o, 0]
}

#[test]
fn skewed_predicate() {
    // One object has nearly all subjects of predicate 1; predicate 2 is spread evenly.
    let mut quads: Vec<Quad> = (0..400)
        .map(|i| quad(i, 1, if i < 390 { 1000 } else { 1001 }))
        .collect();
    quads.extend((0..400).map(|i| quad(i, 2, 2000 + i % 20)));
    quads.extend((0..400).map(|i| quad(i, 3, 3000 + i)));
    for (common, group) in [(1000, 2003), (1001, 2003), (1001, 2019)] {
        check(
            &quads,
            &[
                [Var(0), Is(1), Is(common)],
                [Var(0), Is(2), Is(group)],
                [Var(0), Is(3), Var(1)],
            ],
            2,
        );
    }
}

#[test]
fn correlated_pair() {
    // Who has predicate 1 with value 10 always has predicate 2 with value 20, and many of predicate 3.
    let mut quads = Vec::new();
    for i in 0..300 {
        quads.push(quad(i, 1, 10 + i % 3));
        quads.push(quad(i, 2, 20 + i % 3));
        let many = if i % 3 == 0 { 12 } else { 1 };
        quads.extend((0..many).map(|k| quad(i, 3, 500 + 7 * i + k)));
        if i % 30 == 0 {
            quads.push(quad(i, 4, 9000 + i));
        }
    }
    let triples = [
        [Var(0), Is(1), Is(10)],
        [Var(0), Is(2), Is(20)],
        [Var(0), Is(3), Var(1)],
        [Var(0), Is(4), Var(2)],
    ];
    check(&quads, &triples, 3);
}

#[test]
fn empty_pattern_in_the_middle() {
    let mut quads: Vec<Quad> = (0..300)
        .flat_map(|i| [quad(i, 1, i + 1), quad(i, 2, i % 5)])
        .collect();
    quads.push(quad(5000, 3, 5001));
    let triples = [
        [Var(0), Is(1), Var(1)],
        [Var(1), Is(3), Var(2)],
        [Var(2), Is(2), Var(3)],
        [Var(1), Is(1), Var(4)],
    ];
    check(&quads, &triples, 5);
    // A constant that is nowhere: nothing is read at all.
    let (answers, work) = run(
        &quads,
        &[
            [Var(0), Is(1), Var(1)],
            [Var(1), Is(1), Is(-77)],
            [Var(0), Is(2), Var(2)],
        ],
        3,
    );
    assert_eq!((answers, work), (0, 0));
}

#[test]
fn snowflake_and_cycle() {
    let mut quads = Vec::new();
    for i in 0..200 {
        quads.push(quad(i, 1, 1000 + i % 10));
        quads.push(quad(i, 1, 1000 + (i * 7) % 10));
        quads.push(quad(i, 2, (i * 3) % 200));
    }
    for i in 0..10 {
        quads.push(quad(1000 + i, 3, 2000 + i % 2));
        quads.push(quad(1000 + i, 4, i));
    }
    let snowflake = [
        [Var(0), Is(1), Var(1)],
        [Var(1), Is(3), Is(2001)],
        [Var(1), Is(4), Is(3)],
        [Var(0), Is(2), Var(2)],
        [Var(2), Is(1), Var(3)],
    ];
    check(&quads, &snowflake, 4);
    let cycle = [
        [Var(0), Is(2), Var(1)],
        [Var(1), Is(2), Var(2)],
        [Var(2), Is(2), Var(0)],
        [Var(0), Is(1), Is(1004)],
    ];
    check(&quads, &cycle, 3);
}

#[test]
fn long_star_and_long_chain() {
    // Twenty patterns of one subject, a single one of which is selective, whatever its place.
    let quads: Vec<Quad> = (0..500)
        .flat_map(|s| (0..20).map(move |p| quad(s, p, if p == 13 { s } else { 7000 + p })))
        .collect();
    let star: Vec<Triple> = (0..20)
        .map(|p| [Var(0), Is(p), Is(if p == 13 { 42 } else { 7000 + p })])
        .collect();
    let (answers, work) = run(&quads, &star, 1);
    assert_eq!(answers, 1);
    assert!(work <= 2 * 20, "{work} rows");
    // Ten hops, bound at the far end.
    let quads: Vec<Quad> = (0..2000).map(|i| quad(i, 1, i + 1)).collect();
    let mut chain: Vec<Triple> = (0..9).map(|i| [Var(i), Is(1), Var(i + 1)]).collect();
    chain.push([Var(9), Is(1), Is(700)]);
    let (answers, work) = run(&quads, &chain, 10);
    assert_eq!(answers, 1);
    assert!(work <= 2 * 10, "{work} rows");
}

/// Products of types and producers, reviewed by people of countries.
fn reviews() -> Vec<Quad> {
    let (types, producers, products, people) = (80, 150, 6000, 500);
    let mut quads = Vec::new();
    for t in 0..types {
        quads.push(quad(1000 + t, 1, 1));
    }
    for n in 0..products {
        let product = 10_000 + n;
        quads.extend((0..4).map(|k| quad(product, 1, 1000 + (n + 7 * k) % types)));
        quads.push(quad(product, 2, 2000 + n % producers));
        for k in 0..5 {
            let review = 50_000 + 5 * n + k;
            quads.push(quad(review, 4, product));
            quads.push(quad(review, 5, 3000 + (13 * n + 101 * k) % people));
        }
    }
    // Countries of producers and of people, who are more.
    quads.extend((0..producers).map(|n| quad(2000 + n, 3, 100 + n % 10)));
    quads.extend((0..people).map(|n| quad(3000 + n, 3, 100 + n % 20)));
    quads
}

#[test]
fn few_rows_that_become_many() {
    // The types are the fewest, but each has many products, and each product has several types.
    let triples = [
        [Var(0), Is(1), Is(1)],
        [Var(1), Is(1), Var(0)],
        [Var(1), Is(2), Var(2)],
        [Var(2), Is(3), Is(104)],
        [Var(3), Is(4), Var(1)],
        [Var(3), Is(5), Var(4)],
        [Var(4), Is(3), Is(107)],
    ];
    let quads = reviews();
    let best = cost(&quads, &triples, &[3, 2, 4, 5, 6, 1, 0], 5, u64::MAX);
    let (_, work) = run(&quads, &triples, 5);
    assert!(work <= 2 * best, "{work} rows instead of {best}");
}

#[test]
fn patterns_that_nothing_connects() {
    // No product is its own producer, so that the last pattern is not reached. To begin with it would look cheap, but
    // all else would be done for each of its quads.
    let triples = [
        [Var(0), Is(1), Is(1)],
        [Var(1), Is(1), Var(0)],
        [Var(1), Is(2), Var(1)],
        [Var(2), Is(9), Is(1)],
    ];
    let mut quads = reviews();
    quads.extend((0..100).map(|n| quad(90_000 + n, 9, 1)));
    let (types, of_types) = (80, 4 * 6000);
    let (answers, work) = run(&quads, &triples, 3);
    assert_eq!(answers, 0);
    assert!(work <= 2 * (types + of_types), "{work} rows");
}

#[test]
fn many_rows_that_become_few() {
    // Each product has more reviews than types, but few of them are by people of the country.
    let triples = [
        [Var(1), Is(6), Is(5003)],
        [Var(1), Is(1), Var(0)],
        [Var(0), Is(1), Is(1)],
        [Var(3), Is(4), Var(1)],
        [Var(3), Is(5), Var(4)],
        [Var(4), Is(7), Is(203)],
    ];
    let mut quads = reviews();
    quads.extend((0..6000).map(|n| quad(10_000 + n, 6, 5000 + n % 30)));
    quads.extend((0..2000).map(|n| quad(3000 + n, 7, 200 + n % 8)));
    let best = cost(&quads, &triples, &[0, 3, 4, 5, 1, 2], 5, u64::MAX);
    let (_, work) = run(&quads, &triples, 5);
    assert!(work * 2 <= 3 * best, "{work} rows instead of {best}");
}
