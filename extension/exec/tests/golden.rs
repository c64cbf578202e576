//! Golden words: plans of joins are encoded as they were, and what was encoded before is decoded.
//!
//! `GOLDEN=write cargo test -p pgquad-exec --test golden` writes the file anew; `docs/formats.md` says when that is
//! allowed.

use pgquad_exec::{
    Bound, Child, Comparison, Filter, Group, Kind, Link, Pattern, Plan, SameValue, Test,
};

/// A plan with every part that there is.
fn plan() -> Plan {
    let pattern = |cells, conditions| Pattern {
        table: 1,
        cells,
        conditions,
        links: vec![Link { column: 0, slot: 3 }],
        ..Pattern::default()
    };
    let first = pattern(
        [Some(0), None, Some(1), None],
        vec![
            Comparison::new(1, Bound::Eq, 0),
            Comparison::new(3, Bound::Any, 1),
        ],
    );
    let mut second = pattern(
        [Some(0), Some(2), None, None],
        vec![Comparison::new(2, Bound::Ge, 2)],
    );
    second.values = vec![SameValue {
        column: 2,
        slot: 1,
        between: (4, 5),
    }];
    let inner = |kind, row| Child {
        kind,
        group: Group {
            patterns: vec![pattern(
                [Some(4), None, None, Some(5)],
                vec![Comparison::new(1, Bound::Lt, 3)],
            )],
            filters: vec![Filter {
                test: Test::Expr(1),
                needs: vec![4, 0],
            }],
            children: Vec::new(),
        },
        exports: vec![(6, 4)],
        needs: vec![0],
        row,
    };
    Plan {
        root: Group {
            patterns: vec![first, second],
            filters: vec![Filter {
                test: Test::Expr(0),
                needs: vec![1, 2],
            }],
            children: vec![
                inner(Kind::Left, 7),
                inner(Kind::Semi, 8),
                inner(Kind::Anti, 9),
            ],
        },
        slots: 10,
        output: vec![0, 1, 6],
        distinct: true,
        whole: false,
    }
}

#[test]
fn plans() {
    let words: Vec<String> = plan().encode().iter().map(i32::to_string).collect();
    let got = words.join(" ") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/plan.txt");
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        std::fs::write(path, &got).expect("a writable tree");
    }
    let pinned = std::fs::read_to_string(path).expect("the golden file");
    assert_eq!(pinned, got, "the encoding has changed, see docs/formats.md");
    let words: Vec<i32> = pinned
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    assert_eq!(Plan::decode(&words), Ok(plan()));
}
