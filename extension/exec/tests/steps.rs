//! The kinds of steps: which are taken on data made for them. Memory decides the kind, and answers do not depend on it.

mod common;

use common::{slots, Trees, FLIP};
use pgquad_btree::Quad;
use pgquad_exec::{
    Bindings, Bound, CardinalityFeedback, Column, ColumnNumber, Comparison, Counted, Expr, Filter,
    Group, HashAggregation, Param, Pattern, Pipeline, Plan, Slot, StepStats, Test, Tuning, Value,
};

/// A pattern `?s p ?o`, or `?s ?p ?o` with a predicate that nothing asks for.
fn pattern(s: u16, predicate: Option<u16>, o: u16) -> Pattern {
    Pattern {
        cells: [Some(Slot::new(s)), None, Some(Slot::new(o)), None],
        conditions: predicate
            .map(|param| Comparison::new(ColumnNumber::PREDICATE, Bound::Eq, Param::new(param)))
            .into_iter()
            .collect(),
        ..Pattern::default()
    }
}

/// Rows of the answer and what the steps did.
fn run(
    quads: &[Quad],
    patterns: &[Pattern],
    slots: u16,
    memory: usize,
) -> (Vec<Vec<u64>>, Vec<StepStats>) {
    let mut trees = Trees::new(&[quads.to_vec()], &["spog", "posg", "ospg"]);
    let plan = Plan {
        root: Group {
            patterns: patterns.to_vec(),
            ..Group::default()
        },
        slots,
        output: (0..slots).map(Slot::new).collect(),
        distinct: false,
        whole: false,
    };
    let tuning = Tuning {
        first: 100,
        most: 1000,
        bulk_from: 64,
        range_pushdown_from: 1000,
        memory,
    };
    let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
    pipeline.start((0..5).map(|p| Value::One(FLIP + p)).collect());
    let mut feedback = CardinalityFeedback::new();
    let mut rows = Vec::new();
    while let Some(batch) = pipeline.next(&mut trees, &mut feedback) {
        let columns: Vec<&[u64]> = (0..slots)
            .map(|s| batch.ids(Slot::new(s)).unwrap())
            .collect();
        rows.extend((0..batch.len).map(|row| columns.iter().map(|c| c[row]).collect::<Vec<_>>()));
    }
    let steps = pipeline.steps().to_vec();
    pipeline.start((0..5).map(|p| Value::One(FLIP + p)).collect());
    assert_eq!(pipeline.count(&mut trees, &mut feedback), rows.len() as u64);
    rows.sort_unstable();
    (rows, steps)
}

/// Subjects in an order that has nothing to do with their objects.
fn scattered(n: i64) -> i64 {
    n * 7919 % 3001
}

#[test]
fn large_unordered_inputs_are_hashed() {
    let quads: Vec<Quad> = (0..3000)
        .flat_map(|n| {
            [
                [scattered(n), 0, n, 0],
                [scattered(n), 1, 5000 + n % 7, 0],
                [scattered(n), 1, 6000, 0],
                [scattered(n), 2, 7000 + n, 0],
            ]
        })
        .collect();
    let star = [
        pattern(0, Some(0), 1),
        pattern(0, Some(1), 2),
        pattern(0, Some(2), 3),
    ];
    let (rows, steps) = run(&quads, &star, 4, 1 << 20);
    assert_eq!(rows.len(), 6000);
    assert!(
        steps.iter().filter(|s| s.hashed > 0).count() == 2,
        "{steps:?}"
    );
    assert!(steps.iter().all(|s| s.memory < 1 << 20), "{steps:?}");
    // Room for one of the tables, then for none.
    for (memory, most) in [(150_000, 1), (1000, 0)] {
        let (same, steps) = run(&quads, &star, 4, memory);
        assert_eq!(same, rows);
        assert!(
            steps.iter().filter(|s| s.hashed > 0).count() <= most,
            "{steps:?}"
        );
        assert!(
            steps.iter().map(|s| s.memory).sum::<u64>() <= memory as u64,
            "{steps:?}"
        );
    }
}

#[test]
fn keys_that_lie_close_are_merged() {
    // Both patterns have their quads in the order of the variable they share.
    let quads: Vec<Quad> = (0..3000)
        .flat_map(|n| [[9000 - n, 0, n, 0], [n, 1, n * 31 % 100, 0], [n, 1, 200, 0]])
        .collect();
    let chain = [pattern(0, Some(0), 1), pattern(1, Some(1), 2)];
    let (rows, steps) = run(&quads, &chain, 3, 0);
    assert_eq!(rows.len(), 6000);
    assert!(steps.iter().any(|s| s.merged > 0), "{steps:?}");
    assert!(steps.iter().all(|s| s.hashed == 0), "{steps:?}");
}

/// A star reads all from the first key to the last where these lie close, and leaves out what lies between two keys
/// that are far from each other.
#[test]
fn wide_gaps_between_merged_keys_are_not_read() {
    let subjects = (0..2000).chain(100_000..102_000);
    let of_star = subjects.flat_map(|s| [[s, 0, 7, 0], [s, 1, s % 11, 0], [s, 2, s % 13, 0]]);
    let others = (2000..62_000).flat_map(|s| [[s, 1, 1, 0], [s, 2, 2, 0]]);
    let quads: Vec<Quad> = of_star.chain(others).collect();
    let star = [0, 1, 2].map(|n| pattern(0, Some(n), n + 1));
    let (rows, steps) = run(&quads, &star, 4, 0);
    assert_eq!(rows.len(), 4000);
    let of = |row: &Vec<u64>| [0, 1, 2, 3].map(|n| (row[n] ^ FLIP) as i64);
    let is_right = |[s, a, b, c]: [i64; 4]| a == 7 && b == s % 11 && c == s % 13;
    assert!(rows.iter().map(of).all(is_right));
    let arms: Vec<&StepStats> = steps.iter().filter(|s| s.starred > 0).collect();
    assert_eq!(arms.len(), 2, "{steps:?}");
    let is_merged = |arm: &&StepStats| arm.keys == 4000 && arm.probes == 0;
    assert!(arms.iter().all(is_merged), "{steps:?}");
}

/// Whether subjects are of one type is looked up where all subjects of the type are side by side, and whether they have
/// some objects where those of the predicate are, subject by subject.
#[test]
fn keys_of_a_large_batch_are_looked_up_beside_constants() {
    let quads: Vec<Quad> = (0..3000)
        .flat_map(|s| [[s, 0, 1 + s % 2, 0], [s, 1, s, 0]])
        .collect();
    let is = |column, param| Comparison::new(column, Bound::Eq, Param::new(param));
    let of_type = Pattern {
        cells: [Some(Slot::new(0)), None, None, None],
        conditions: vec![is(ColumnNumber::PREDICATE, 0), is(ColumnNumber::OBJECT, 1)],
        ..Pattern::default()
    };
    let (local, distributed) = (["spog", "posg", "ospg"], ["spog", "psog", "posg"]);
    let tuning = Tuning {
        first: 100,
        most: 1000,
        bulk_from: 64,
        range_pushdown_from: 1000,
        memory: 0,
    };
    for (pattern, names, len, order) in [
        (of_type.clone(), local, 63, "spog"),
        (of_type.clone(), local, 64, "posg"),
        (of_type, distributed, 900, "posg"),
        (pattern(0, Some(0), 1), local, 900, "spog"),
        (pattern(0, Some(0), 1), distributed, 900, "psog"),
    ] {
        let plan = Plan {
            root: Group {
                patterns: vec![pattern],
                ..Group::default()
            },
            slots: 2,
            output: slots([0]),
            distinct: false,
            whole: false,
        };
        let mut trees = Trees::new(std::slice::from_ref(&quads), &names);
        let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
        // Every other one has this object.
        let rows = Bindings {
            len: len as usize,
            columns: vec![
                Column::Ids((0..len).map(|s| FLIP + 3 * s).collect()),
                Column::Ids(vec![FLIP + 1; len as usize]),
            ],
        };
        pipeline.start_from(vec![Value::One(FLIP), Value::One(FLIP + 1)], rows);
        let (mut feedback, mut found) = (CardinalityFeedback::new(), 0);
        while let Some(batch) = pipeline.next(&mut trees, &mut feedback) {
            found += batch.len as u64;
        }
        assert_eq!(found, len.div_ceil(2));
        let read = names[pipeline.steps()[0].order];
        assert_eq!(read, order, "{len} rows, {names:?}");
    }
}

#[test]
fn triangles_are_closed_from_the_quads_of_their_subjects() {
    let quads: Vec<Quad> = (0..400)
        .flat_map(|n| (1..12).map(move |k| [n, k % 3, (n * k * k + 17 * k) % 400, 0]))
        .collect();
    let triangle = [
        pattern(0, None, 1),
        pattern(1, None, 2),
        pattern(0, None, 2),
    ];
    let (rows, _) = run(&quads, &triangle, 3, 0);
    // Too little for a table of all quads.
    let (same, steps) = run(&quads, &triangle, 3, 60_000);
    assert_eq!(same, rows);
    assert!(!rows.is_empty());
    let closing = steps.iter().max_by_key(|s| s.turn).unwrap();
    assert!(closing.hashed > 0, "{steps:?}");
    let (same, _) = run(&quads, &triangle, 3, 1 << 20);
    assert_eq!(same, rows);
}

/// `count` subjects with an object for each of four predicates, and their quads of a fifth one between.
fn star_quads(count: i64, objects: impl Fn(i64, i64) -> i64) -> Vec<Quad> {
    (0..count)
        .flat_map(|n| (0..5).map(move |p| (scattered(n), p)))
        .map(|(s, p)| [s, p, objects(s, p), 0])
        .collect()
}

/// `?0 p ?n` for the predicates from 0 on.
fn star(arms: u16) -> Vec<Pattern> {
    (0..arms).map(|n| pattern(0, Some(n), 1 + n)).collect()
}

#[test]
fn patterns_of_one_subject_are_read_together() {
    // Each object of the first predicate has the same subjects, few and far between.
    let quads = star_quads(3000, |s, p| if p == 0 { s % 60 } else { 100 * p });
    let mut patterns = star(4);
    patterns[0].cells[2] = None;
    patterns[0].conditions.push(Comparison::new(
        ColumnNumber::OBJECT,
        Bound::Eq,
        Param::new(4),
    ));
    let (rows, steps) = run(&quads, &with_slot(patterns), 4, 0);
    let few = (0..3000).filter(|&n| scattered(n) % 60 == 4).count();
    assert_eq!(rows.len(), few);
    // One object selects the subjects; the rest is one step.
    assert_eq!(
        steps.iter().filter(|s| s.starred == 1).count(),
        3,
        "{steps:?}"
    );
    assert!(steps
        .iter()
        .filter(|s| s.starred > 0)
        .all(|s| s.keys == few as u64 && s.rows == few as u64));
    // All subjects: they lie side by side, so that all between them is read at once.
    let (rows, steps) = run(&quads, &star(4), 5, 0);
    assert_eq!(rows.len(), 3000);
    assert_eq!(
        steps.iter().filter(|s| s.starred > 0).count(),
        3,
        "{steps:?}"
    );
    assert!(steps.iter().all(|s| s.probes < 3000), "{steps:?}");
}

/// The same patterns, with variables numbered without gaps.
fn with_slot(mut patterns: Vec<Pattern>) -> Vec<Pattern> {
    for pattern in &mut patterns {
        if let Some(slot) = &mut pattern.cells[2] {
            *slot = Slot::new(slot.number() - 1);
        }
    }
    patterns
}

#[test]
fn arms_that_drop_rows_spare_the_others() {
    let mut quads = star_quads(3000, |s, p| if p == 0 { s % 60 } else { 100 * p });
    quads.retain(|q| q[1] != 3 || q[0] % 7 == 0);
    let mut patterns = star(4);
    patterns[0].cells[2] = None;
    patterns[0].conditions.push(Comparison::new(
        ColumnNumber::OBJECT,
        Bound::Eq,
        Param::new(4),
    ));
    let (rows, steps) = run(&quads, &with_slot(patterns), 4, 0);
    assert!(rows.len() < 10);
    let keys: Vec<u64> = steps
        .iter()
        .filter(|s| s.starred > 0)
        .map(|s| s.keys)
        .collect();
    assert!(
        keys.iter().filter(|&&keys| keys < 10).count() >= 2,
        "{steps:?}"
    );
}

#[test]
fn a_key_with_very_many_quads_is_no_star() {
    let mut quads = star_quads(300, |_, p| 100 * p);
    quads.extend((0..9000).map(|n| [scattered(150), 2, 1000 + n, 0]));
    let (rows, steps) = run(&quads, &star(4), 5, 0);
    assert_eq!(rows.len(), 9300);
    assert!(
        steps.iter().any(|s| s.starred > 0 && s.batches > s.starred),
        "{steps:?}"
    );
}

#[test]
fn what_filters_leave_of_many_quads_is_read_alone() {
    // Odd objects are few; both patterns have the same predicate, and a third one joins them.
    let mut quads: Vec<Quad> = (0..3000).map(|n| [n, 0, 8 + 2 * n, 0]).collect();
    quads.extend((0..3).map(|n| [5000 + n, 0, 1 + 2 * n, 0]));
    quads.extend((0..6000).map(|n| [n, 1, (n + 1) % 6000, 0]));
    let mut trees = Trees::new(&[quads], &["spog", "posg", "ospg"]);
    let odd = |slot: u16| Filter {
        test: Test::Expr(Expr::new(0)),
        needs: slots([slot]),
    };
    let plan = Plan {
        root: Group {
            patterns: vec![
                pattern(0, Some(0), 1),
                pattern(2, Some(0), 3),
                pattern(0, Some(1), 2),
            ],
            filters: vec![odd(1), odd(3)],
            children: Vec::new(),
        },
        slots: 4,
        output: slots([0, 2]),
        distinct: false,
        whole: false,
    };
    let tuning = Tuning {
        first: 100,
        most: 4000,
        bulk_from: 64,
        range_pushdown_from: 1000,
        memory: 0,
    };
    let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
    pipeline.start((0..5).map(|p| Value::One(FLIP + p)).collect());
    let mut rows = 0;
    let mut feedback = CardinalityFeedback::new();
    while let Some(batch) = pipeline.next(&mut trees, &mut feedback) {
        rows += batch.len;
    }
    assert_eq!(rows, 2);
    assert!(trees.read < 100, "{}", trees.read);
}

#[test]
fn what_only_multiplies_rows_is_counted() {
    // Many rows for each of a few subjects. A subject has one quad that groups and many quads that are counted.
    let mut quads: Vec<Quad> = (0..3000).map(|n| [10_000 + n, 0, n % 30, 0]).collect();
    for s in 0..3000 {
        quads.push([s, 1, 20_000 + s % 3, 0]);
        quads.extend((0..10).map(|n| [s, 2, 30_000 + n, 0]));
    }
    let mut trees = Trees::new(&[quads], &["spog", "posg", "ospg"]);
    let plan = Plan {
        root: Group {
            patterns: vec![
                pattern(0, Some(0), 1),
                pattern(1, Some(1), 2),
                pattern(1, Some(2), 3),
            ],
            ..Group::default()
        },
        slots: 4,
        output: slots([2]),
        distinct: false,
        whole: true,
    };
    let tuning = Tuning {
        first: 200,
        most: 200,
        bulk_from: 64,
        range_pushdown_from: 1000,
        memory: 0,
    };
    let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
    pipeline.start((0..5).map(|p| Value::One(FLIP + p)).collect());
    let by_object = HashAggregation::new(slots([2]), vec![Counted::Rows]);
    let aggregation = pipeline.aggregate(&mut trees, &mut CardinalityFeedback::new(), by_object);
    assert_eq!((aggregation.len(), aggregation.rows()), (3, 30_000));
    // The rows of the last pattern are not made.
    let steps = pipeline.steps();
    assert_eq!(steps[2].starred, 0, "{steps:?}");
}

#[test]
fn a_key_that_combines_to_very_many_rows_is_no_star() {
    // Two predicates have one quad for nearly all subjects, and very many for one, of which a filter leaves few of the
    // first.
    let mut quads: Vec<Quad> = (0..10)
        .flat_map(|s| [[s, 0, 1, 0], [s, 1, 101, 0], [s, 2, 201, 0]])
        .collect();
    for n in 0..600 {
        quads.push([5, 1, 1000 + 2 * n, 0]);
        quads.push([5, 2, 5000 + n, 0]);
    }
    let mut trees = Trees::new(&[quads], &["spog", "posg", "ospg"]);
    let plan = Plan {
        root: Group {
            patterns: star(3),
            filters: vec![Filter {
                test: Test::Expr(Expr::new(0)),
                needs: slots([2]),
            }],
            children: Vec::new(),
        },
        slots: 4,
        output: slots([0, 1, 2, 3]),
        distinct: false,
        whole: false,
    };
    let tuning = Tuning {
        first: 10,
        most: 1000,
        bulk_from: 64,
        range_pushdown_from: 1000,
        memory: 0,
    };
    let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
    pipeline.start((0..5).map(|p| Value::One(FLIP + p)).collect());
    let (mut rows, mut feedback) = (0, CardinalityFeedback::new());
    while let Some(batch) = pipeline.next(&mut trees, &mut feedback) {
        rows += batch.len;
    }
    assert_eq!(rows, 9 + 601);
    let steps = pipeline.steps();
    assert!(steps.iter().all(|s| s.rows < 3000), "{steps:?}");
}
