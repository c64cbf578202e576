//! Golden words: plans are encoded as they were, and what was encoded before is decoded.
//!
//! `GOLDEN=write cargo test -p pgquad-exec --test golden` writes the file anew; `docs/formats.md` says when that is
//! allowed.

use pgquad_exec::{
    Bound, Child, ColumnNumber, Comparison, ConditionData, CountData, DecodeError, Expr, Filter,
    FirstRowsData, Group, GroupOutput, GroupsData, HopData, JoinData, Kind, LeadingKeyData, Link,
    Oid, OuterInputData, Param, ParamRange, Pattern, Plan, PlanData, RowIdentityData, SameValue,
    ScanData, Slot, SortKey, StepData, TableNumber, Test, WalkData,
};
use std::fmt::Debug;

fn slots<const N: usize>(numbers: [u16; N]) -> Vec<Slot> {
    numbers.map(Slot::new).to_vec()
}

/// A plan with every part that there is.
fn plan() -> Plan {
    let cells = |numbers: [Option<u16>; 4]| numbers.map(|number| number.map(Slot::new));
    let pattern = |cells, conditions| Pattern {
        table: TableNumber::new(1),
        cells,
        conditions,
        links: vec![Link {
            column: ColumnNumber::SUBJECT,
            slot: Slot::new(3),
        }],
        ..Pattern::default()
    };
    let first = pattern(
        cells([Some(0), None, Some(1), None]),
        vec![
            Comparison::new(ColumnNumber::PREDICATE, Bound::Eq, Param::new(0)),
            Comparison::new(ColumnNumber::GRAPH, Bound::Any, Param::new(1)),
        ],
    );
    let mut second = pattern(
        cells([Some(0), Some(2), None, None]),
        vec![Comparison::new(
            ColumnNumber::OBJECT,
            Bound::Ge,
            Param::new(2),
        )],
    );
    second.values = vec![SameValue {
        column: ColumnNumber::OBJECT,
        slot: Slot::new(1),
        between: ParamRange {
            least: Param::new(4),
            greatest: Param::new(5),
        },
    }];
    let inner = |kind, row| Child {
        kind,
        group: Group {
            patterns: vec![pattern(
                cells([Some(4), None, None, Some(5)]),
                vec![Comparison::new(
                    ColumnNumber::PREDICATE,
                    Bound::Lt,
                    Param::new(3),
                )],
            )],
            filters: vec![Filter {
                test: Test::Expr(Expr::new(1)),
                needs: slots([4, 0]),
            }],
            children: Vec::new(),
        },
        exports: vec![(Slot::new(6), Slot::new(4))],
        needs: slots([0]),
        row: Slot::new(row),
    };
    Plan {
        root: Group {
            patterns: vec![first, second],
            filters: vec![Filter {
                test: Test::Expr(Expr::new(0)),
                needs: slots([1, 2]),
            }],
            children: vec![
                inner(Kind::Left, 7),
                inner(Kind::Semi, 8),
                inner(Kind::Anti, 9),
            ],
        },
        slots: 10,
        output: slots([0, 1, 6]),
        distinct: true,
        whole: false,
    }
}

/// The content of the file of tests/golden. It is written anew first, where `GOLDEN=write` asks for that.
fn pinned(file: &str, got: &str) -> String {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        std::fs::write(&path, got).expect("a writable tree");
    }
    std::fs::read_to_string(path).expect("the golden file")
}

fn as_text(words: &[i32]) -> String {
    let words: Vec<String> = words.iter().map(i32::to_string).collect();
    words.join(" ")
}

fn as_words(text: &str) -> Vec<i32> {
    let words = text.split_whitespace();
    words.map(|w| w.parse().expect("a number")).collect()
}

#[test]
fn plans() {
    let got = as_text(&plan().encode()) + "\n";
    let pinned = pinned("plan.txt", &got);
    assert_eq!(pinned, got, "the encoding has changed, see docs/formats.md");
    assert_eq!(Plan::decode(&as_words(&pinned)), Ok(plan()));
}

fn scan_data() -> ScanData {
    ScanData {
        order: 2,
        second: Some(1),
        needs_tid: true,
        needed: 0b1011,
        backward: false,
        bounds: vec![
            condition(1, Bound::Eq, false),
            condition(3, Bound::Any, false),
        ],
    }
}

/// The type's number needs all 32 bits.
fn condition(column: usize, bound: Bound, unequal: bool) -> ConditionData {
    ConditionData {
        column,
        bound,
        unequal,
        value_type: Oid(4_000_000_000),
    }
}

fn groups_data() -> GroupsData {
    GroupsData {
        order: 1,
        depth: 2,
        inner_depth: 3,
        scattered: None,
        counting: true,
        grouped: false,
        bounds: 1,
        compared: vec![
            condition(1, Bound::Eq, false),
            condition(2, Bound::Eq, true),
        ],
        outputs: vec![
            GroupOutput::Column(2),
            GroupOutput::Rows,
            GroupOutput::Distinct,
        ],
    }
}

fn step_data() -> StepData {
    let hop = |relation| HopData {
        relation,
        table: Oid(16_402),
        from: 0,
        to: 2,
        order: 1,
        bounds: 1,
        compared: vec![condition(1, Bound::Gt, false)],
    };
    StepData {
        branches: vec![vec![hop(Some(0)), hop(Some(1))], vec![hop(None)]],
    }
}

fn join_data(with_all: bool) -> JoinData {
    JoinData {
        plan: plan(),
        output: vec![2, 0, 1],
        param_types: vec![Oid(20), Oid(4_000_000_000)],
        tests: vec![vec![0, 2], vec![]],
        relations: vec![0, 1],
        tables: vec![1, 3],
        outer_input: with_all.then(|| OuterInputData {
            row: Slot::new(8),
            keeps: true,
            keys: vec![(0, Slot::new(3))],
            carried: vec![(1, 4), (2, 5)],
        }),
        identities: with_all
            .then(|| RowIdentityData {
                place: 6,
                columns: vec![0, 1, 2, 7],
            })
            .into_iter()
            .collect(),
        limited: with_all,
        first_rows: with_all.then(|| FirstRowsData {
            most: 10,
            keys: vec![SortKey {
                place: 1,
                by_term: true,
                descending: false,
                nulls_first: true,
            }],
        }),
        leading_key: with_all.then_some(LeadingKeyData {
            most: 10,
            place: 4,
            descending: true,
            nulls_first: false,
        }),
    }
}

/// A line of the golden file, which decodes to the same; neither a part of it nor more of it does.
fn line<D: PlanData + PartialEq + Debug>(name: &str, data: &D, pinned: &str) -> String {
    let words = data.encode();
    let known = pinned
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}: ")));
    if let Some(known) = known {
        assert_eq!(D::decode(&as_words(known)).as_ref(), Ok(data), "{name}");
    }
    for len in 0..words.len() {
        assert_eq!(D::decode(&words[..len]), Err(DecodeError), "{name}");
    }
    let mut longer = words.clone();
    longer.push(0);
    assert_eq!(D::decode(&longer), Err(DecodeError), "{name}");
    let mut of_another_version = words.clone();
    of_another_version[0] += 1;
    assert_eq!(D::decode(&of_another_version), Err(DecodeError), "{name}");
    format!("{name}: {}\n", as_text(&words))
}

#[test]
fn private_data() {
    let all = |known: &str| {
        [
            line("scan", &scan_data(), known),
            line("groups", &groups_data(), known),
            line(
                "count",
                &CountData {
                    equal: vec![Oid(410), Oid(98)],
                },
                known,
            ),
            line("walk", &WalkData { arity: 2, at: 1 }, known),
            line("step", &step_data(), known),
            line("join", &join_data(false), known),
            line("join with all", &join_data(true), known),
        ]
        .concat()
    };
    let got = all("");
    let pinned = pinned("plan_data.txt", &got);
    assert_eq!(pinned, got, "the encoding has changed, see docs/formats.md");
    all(&pinned);
}
