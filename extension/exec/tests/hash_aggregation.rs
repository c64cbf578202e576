//! Rows counted by group in next to no memory: groups that have left it are counted on.

mod common;
#[path = "common/sums.rs"]
mod sums;

use common::{slots, Trees, FLIP};
use pgquad_btree::Quad;
use pgquad_exec::{
    Argument, Bound, CardinalityFeedback, Child, ColumnNumber, Comparison, Counted, Extreme, Group,
    HashAggregation, Kind, Param, Pattern, Pipeline, Plan, Slot, Spill, Tuning, Value,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use sums::{integer, sum_of};

/// A file in memory.
#[derive(Default)]
struct Words(Vec<u64>);

impl Spill for Words {
    fn append(&mut self, words: &[u64]) {
        self.0.extend(words);
    }

    fn read(&mut self, at: u64, words: &mut [u64]) {
        words.copy_from_slice(&self.0[at as usize..][..words.len()]);
    }

    fn close(&mut self) {
        self.0.clear();
    }
}

/// Groups with their counts, sums and greatest value; `None` is a value that is unbound, or the sum of one.
type Groups = BTreeMap<Vec<Option<u64>>, ([u64; 3], [Option<i128>; 2], Option<u64>)>;

/// `?0 1 ?1 OPTIONAL { ?1 2 ?2 }`, of which ?1 and ?2 are wanted, begun.
fn begun(quads: &[Quad], most: usize, distinct: bool) -> (Trees, Pipeline) {
    let pattern = |s, o, predicate| Pattern {
        cells: [Some(Slot::new(s)), None, Some(Slot::new(o)), None],
        conditions: vec![Comparison::new(
            ColumnNumber::PREDICATE,
            Bound::Eq,
            Param::new(predicate),
        )],
        ..Pattern::default()
    };
    let optional = Child {
        kind: Kind::Left,
        group: Group {
            patterns: vec![pattern(1, 2, 1)],
            ..Group::default()
        },
        exports: Vec::new(),
        needs: slots([1]),
        row: Slot::new(3),
    };
    let plan = Plan {
        root: Group {
            patterns: vec![pattern(0, 1, 0)],
            children: vec![optional],
            ..Group::default()
        },
        slots: 4,
        output: slots([1, 2]),
        distinct,
        whole: true,
    };
    let tuning = Tuning {
        first: most,
        most,
        bulk_from: 64,
        range_pushdown_from: 1000,
        memory: 1 << 20,
    };
    let trees = Trees::new(&[quads.to_vec()], &["spog", "posg", "ospg"]);
    let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
    pipeline.start(vec![Value::One(FLIP + 1), Value::One(FLIP + 2)]);
    (trees, pipeline)
}

/// The rows of [`begun`] counted by ?1 and ?2: all of them, and those in which ?2 is bound. Also the sums of ?0 and ?2,
/// the distinct values of ?0 and the greatest one. Also the bytes that went to the file, and how many parts there were.
fn count(quads: &[Quad], most: usize, room: usize) -> (Groups, u64, usize) {
    let (mut trees, mut pipeline) = begun(quads, most, false);
    let counted = vec![
        Counted::Rows,
        Counted::Sum(Argument::new(0)),
        Counted::Bound(Slot::new(2)),
        Counted::Sum(Argument::new(1)),
        Counted::Distinct(Slot::new(0)),
        Counted::Extreme(Argument::new(0), Extreme::GreatestId),
        Counted::Extreme(Argument::new(0), Extreme::LastTerm),
    ];
    let aggregation = HashAggregation::new(slots([1, 2]), counted)
        .with_arguments(vec![slots([0]), slots([2])])
        .with_order(offered_order)
        .with_offer(offer);
    let aggregation = aggregation.within(room, &mut || Box::new(Words::default()));
    let mut aggregation =
        pipeline.aggregate(&mut trees, &mut CardinalityFeedback::new(), aggregation);
    let (mut groups, mut parts) = (Groups::new(), 0);
    loop {
        parts += 1;
        check_order(&aggregation, parts % 2);
        for group in 0..aggregation.len() {
            let key = (0..2)
                .map(|place| aggregation.value(group, place))
                .collect();
            let counts = [0, 2, 4].map(|place| aggregation.count(group, place));
            let sums = [1, 3].map(|place| integer(&aggregation.sum(group, place)));
            let greatest = aggregation.extreme(group, 5);
            assert_eq!(aggregation.extreme(group, 6), greatest);
            assert_eq!(
                groups.insert(key, (counts, sums, greatest)),
                None,
                "a group came twice"
            );
        }
        if !aggregation.next_part() {
            return (groups, aggregation.spilled(), parts);
        }
    }
}

/// The groups in memory come by ascending value of the variable at this place, each once, as they are.
fn check_order(aggregation: &HashAggregation, place: usize) {
    let order = aggregation.order_by(place);
    let (columns, counts) = aggregation.groups_at(&order);
    assert!(columns[place].is_sorted());
    for (row, &group) in order.iter().enumerate() {
        let group = group as usize;
        for place in 0..2 {
            let value = aggregation.value(group, place);
            let is_bound = columns[2][row] >> place & 1 == 0;
            assert_eq!(value, is_bound.then(|| columns[place][row]));
        }
        assert_eq!(counts[0][row], aggregation.count(group, 0));
    }
    let all: BTreeSet<u32> = order.into_iter().collect();
    assert!(all.into_iter().eq(0..aggregation.len() as u32));
}

/// Groups in the order in which they are handed out, each with the number of rows counted until then.
type HandedOut = Vec<(Vec<Option<u64>>, u64)>;

/// The distinct ?1 and ?2 of [`begun`], and whether groups have left memory.
fn distinct(quads: &[Quad], most: usize, room: usize) -> (HandedOut, bool) {
    let (mut trees, mut pipeline) = begun(quads, most, true);
    let aggregation = HashAggregation::new(slots([1, 2]), Vec::new()).early();
    let mut aggregation = aggregation.within(room, &mut || Box::new(Words::default()));
    let mut feedback = CardinalityFeedback::new();
    let (mut found, mut at, mut is_complete) = (Vec::new(), 0, false);
    loop {
        while at < aggregation.len() && (is_complete || !aggregation.has_spilled()) {
            if aggregation.hand_out(at) {
                let key = (0..2).map(|place| aggregation.value(at, place)).collect();
                found.push((key, aggregation.rows()));
            }
            at += 1;
        }
        if !is_complete {
            (aggregation, is_complete) =
                pipeline.aggregate_some(&mut trees, &mut feedback, aggregation, at);
            at = if is_complete && aggregation.has_spilled() {
                0
            } else {
                at
            };
        } else if aggregation.next_part() {
            at = 0;
        } else {
            return (found, aggregation.has_spilled());
        }
    }
}

fn expected(quads: &[Quad]) -> Groups {
    let mut groups: BTreeMap<Vec<Option<u64>>, Vec<[Option<u64>; 2]>> = BTreeMap::new();
    let id = |value: i64| Some(value as u64 ^ FLIP);
    for row in quads.iter().filter(|quad| quad[1] == 1) {
        let of_row = quads.iter().filter(|q| q[1] == 2 && q[0] == row[2]);
        let found: Vec<_> = of_row.map(|quad| id(quad[2])).collect();
        let unbound = found.is_empty().then_some(None);
        for value in found.into_iter().chain(unbound) {
            let rows = groups.entry(vec![id(row[2]), value]).or_default();
            rows.push([id(row[0]), value]);
        }
    }
    let of_rows = |rows: Vec<[Option<u64>; 2]>| {
        let bound = rows.iter().filter(|row| row[1].is_some()).count();
        let first: BTreeSet<u64> = rows.iter().filter_map(|row| row[0]).collect();
        let counts = [rows.len(), bound, first.len()].map(|count| count as u64);
        (
            counts,
            [0, 1].map(|n| sum_of(rows.iter().map(|row| row[n]))),
            first.last().copied(),
        )
    };
    let groups = groups.into_iter();
    groups.map(|(key, rows)| (key, of_rows(rows))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn groups_that_leave_memory_are_counted_on(
        subjects in prop::sample::select(vec![10i64, 300, 3000]),
        objects in prop::sample::select(vec![1i64, 100, 1500]),
        step in 1i64..3000,
        most in prop::sample::select(vec![1usize, 50, 1000]),
        room in prop::sample::select(vec![0usize, 5000, 20_000, 1 << 20]),
    ) {
        let rows = (0..subjects).map(|n| [n, 1, 10_000 + n * step % objects, 0]);
        let optional = (0..objects).flat_map(|o| (0..o % 3).map(move |k| [10_000 + o, 2, 20_000 + k, 0]));
        let quads: Vec<Quad> = rows.chain(optional).collect();
        let (groups, _, _) = count(&quads, most, room);
        prop_assert_eq!(&groups, &expected(&quads));
        let (found, _) = distinct(&quads, most, room);
        let set: BTreeSet<_> = found.iter().map(|(key, _)| key.clone()).collect();
        prop_assert_eq!(set.len(), found.len(), "a group came twice");
        prop_assert_eq!(set, groups.into_keys().collect());
    }
}

#[test]
fn distinct_groups_are_handed_out_while_rows_come() {
    let quads: Vec<Quad> = (0..20_000)
        .map(|n| [n, 1, 20_000 + n * 7919 % 10_000, 0])
        .collect();
    for (room, has_spilled) in [(1 << 24, false), (100_000, true)] {
        let (found, spilled) = distinct(&quads, 100, room);
        assert_eq!((found.len(), spilled), (10_000, has_spilled));
        // The first rows are enough for the first groups, and those of the file come last.
        assert!(
            found[0].1 <= 100 && found[500].1 <= 1000,
            "{:?}",
            &found[..3]
        );
        let all = found.last().map_or(0, |(_, rows)| *rows);
        let late = found.iter().filter(|(_, rows)| *rows == all).count();
        assert_eq!(late > 1000, has_spilled, "{late}");
    }
}

#[test]
fn many_groups_are_divided_more_than_once() {
    let quads: Vec<Quad> = (0..20_000)
        .map(|n| [n, 1, 20_000 + n * 7919 % 20_000, 0])
        .collect();
    let (groups, spilled, parts) = count(&quads, 1000, 30_000);
    assert_eq!(groups.len(), 20_000);
    assert!(
        spilled >= 2 * 20_000 * 120 && parts > 16,
        "{spilled} bytes, {parts} parts"
    );
    let (same, spilled, parts) = count(&quads, 1000, 1 << 24);
    assert_eq!(same, groups);
    assert_eq!((spilled, parts), (0, 1));
}

thread_local! {
    /// Ids whose terms are about to be compared, and how often such were offered.
    static OFFERED: RefCell<(BTreeSet<u64>, usize)> = const { RefCell::new((BTreeSet::new(), 0)) };
}

fn offer(columns: Vec<Vec<u64>>) {
    OFFERED.with_borrow_mut(|(offered, times)| {
        *times += usize::from(!columns.is_empty());
        *offered = columns.into_iter().flatten().collect();
    });
}

/// The order of ids, each of which has to have been offered.
fn offered_order(a: u64, b: u64) -> Ordering {
    OFFERED.with_borrow(|(offered, _)| assert!(offered.contains(&a) && offered.contains(&b)));
    a.cmp(&b)
}

/// Terms that merging groups compares are offered all at once, whether the groups come from others or from a file.
#[test]
fn terms_of_merged_groups_are_offered_before_they_are_compared() {
    const FOUND: u64 = 1;
    for (groups, room) in [(1u64, 1 << 20), (500, 1 << 20), (500, 0)] {
        let by = if groups == 1 { vec![] } else { slots([0]) };
        let counted = vec![Counted::Extreme(Argument::new(0), Extreme::FirstTerm)];
        let aggregation = HashAggregation::new(by.clone(), counted)
            .with_arguments(vec![slots([1])])
            .with_order(offered_order)
            .with_offer(offer);
        let mut aggregation = aggregation.within(room, &mut || Box::new(Words::default()));
        offer(Vec::new());
        let before = OFFERED.with_borrow(|offered| offered.1);
        for node in [7u64, 3, 5] {
            let mut keys = vec![vec![0; groups as usize]];
            if !by.is_empty() {
                keys.insert(0, (0..groups).collect());
            }
            let values = (0..groups).map(|group| 10 * group + node).collect();
            aggregation.add_groups(&keys, &[vec![FOUND; groups as usize], values]);
            OFFERED.with_borrow(|(offered, _)| assert!(offered.is_empty()));
        }
        aggregation.finish();
        let mut found = BTreeMap::new();
        loop {
            for group in 0..aggregation.len() {
                let key = if by.is_empty() {
                    Some(0)
                } else {
                    aggregation.value(group, 0)
                };
                found.insert(key.unwrap(), aggregation.extreme(group, 0));
            }
            if !aggregation.next_part() {
                break;
            }
        }
        let expected = (0..groups).map(|group| (group, Some(10 * group + 3)));
        assert_eq!(found, expected.collect());
        assert_eq!(aggregation.spilled() > 0, room == 0);
        let times = OFFERED.with_borrow(|offered| offered.1) - before;
        assert!(room == 0 || times == 3, "{times}");
    }
}
