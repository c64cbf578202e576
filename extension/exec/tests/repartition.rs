//! Joins of several participants against nested loops: random plans and quads, participants that take turns at random,
//! batches that arrive late.

mod common;
#[path = "common/extremes.rs"]
mod extremes;
#[path = "common/plans.rs"]
mod plans;
#[path = "common/sums.rs"]
mod sums;

use common::{slots, Trees, FLIP};
use extremes::{extremes_of, term_order, EXTREMES};
use pgquad_btree::{Batch, Key, Order, Quad, Span};
use pgquad_cluster::Reading;
use pgquad_exec::{
    Argument, Bindings, Bound, CardinalityFeedback, Column, ColumnNumber, Comparison, Counted,
    Expr, Filter, FirstPattern, Group, HashAggregation, Param, ParamRange, Parcel, Pattern,
    Pipeline, Plan, Progress, SameValue, Slot, Source, TableNumber, TablePart, Test, Tuning, Value,
    ValueKey,
};
use pgquad_term::number::Number;
use plans::{expected, quads, rows_of, Maker, Row, SHARED};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet, VecDeque};
use sums::{integer, sum_of};

const ORDERS: [&str; 4] = ["spog", "psog", "ospg", "posg"];

/// The quads as one of several participants sees them: all of them, and the parts that it holds.
struct Sharded {
    all: Trees,
    by_subject: Trees,
    by_object: Trees,
    me: u16,
    participants: u64,
    /// Quads read that others hold.
    others: usize,
    /// Those are on other nodes.
    remote: bool,
}

fn holder(value: u64, participants: u64) -> u16 {
    ((value - FLIP) % participants) as u16
}

impl Sharded {
    fn new(tables: &[Vec<Quad>], me: u16, participants: u64) -> Self {
        let part = |column: usize| -> Vec<Vec<Quad>> {
            let mine = |q: &&Quad| holder(q[column] as u64 ^ FLIP, participants) == me;
            let of_table = |table: &Vec<Quad>| table.iter().filter(mine).copied().collect();
            tables.iter().map(of_table).collect()
        };
        Self {
            all: Trees::new(tables, &ORDERS),
            by_subject: Trees::new(&part(0), &ORDERS[..2]),
            by_object: Trees::new(&part(2), &ORDERS[2..]),
            me,
            participants,
            others: 0,
            remote: false,
        }
    }

    fn of(&self, table: TableNumber) -> &Trees {
        match table.part() {
            Some(TablePart::BySubject) => &self.by_subject,
            Some(TablePart::ByObject) => &self.by_object,
            None => &self.all,
        }
    }

    fn of_mut(&mut self, table: TableNumber) -> &mut Trees {
        match table.part() {
            Some(TablePart::BySubject) => &mut self.by_subject,
            Some(TablePart::ByObject) => &mut self.by_object,
            None => &mut self.all,
        }
    }
}

/// Of a group: its rows, and of the last variable the sum, the number of distinct values, and the extremes.
type Of = (u64, Option<(Option<i128>, u64, [Option<u64>; 4])>);

impl Source for Sharded {
    fn values(
        &mut self,
        argument: Argument,
        needs: &[Slot],
        rows: &Bindings,
        wanted: &[bool],
    ) -> Vec<Option<u64>> {
        self.all.values(argument, needs, rows, wanted)
    }

    fn numbers(
        &mut self,
        argument: Argument,
        needs: &[Slot],
        rows: &Bindings,
        wanted: &[bool],
    ) -> Vec<Option<Number>> {
        self.all.numbers(argument, needs, rows, wanted)
    }

    fn orders(&self, table: TableNumber) -> &[Order] {
        self.of(table).orders(table.whole())
    }

    fn count(&mut self, table: TableNumber, order: usize, low: &Key, high: &Key) -> u64 {
        self.of_mut(table).count(table.whole(), order, low, high)
    }

    fn is_remote(&self) -> bool {
        self.remote
    }

    fn ranges_are_sorted(&self, _table: TableNumber) -> bool {
        false
    }

    fn whole_order(&self, table: TableNumber, order: usize) -> usize {
        order + 2 * usize::from(table.part() == Some(TablePart::ByObject))
    }

    /// A part is one tree.
    fn only_shard(&self, _part: TableNumber, _keys: &[u64]) -> Option<(usize, usize)> {
        Some((0, 1))
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
        let trees = self.of_mut(table);
        let more = trees.read(table.whole(), order, reading, ranges, enough, batch, spans);
        let permutation = trees.orders(table.whole())[order];
        let by_subject = permutation.columns()[..2].contains(&0);
        let place = permutation.position(if by_subject { 0 } else { 2 });
        // Columns that nobody asked for are not filled; whoever reads a part reads its own.
        let values = batch.columns[place].iter();
        let others = values.filter(|&&v| holder(v, self.participants) != self.me);
        self.others += others.count();
        more
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

    fn placed_by(&self, table: TableNumber, order: usize) -> Option<ColumnNumber> {
        assert_eq!(table, table.whole());
        Some(if order < 2 {
            ColumnNumber::SUBJECT
        } else {
            ColumnNumber::OBJECT
        })
    }

    fn holders(&mut self, _table: TableNumber, _column: ColumnNumber, values: &[u64]) -> Vec<u16> {
        let holders = values.iter().map(|&v| holder(v, self.participants));
        holders.collect()
    }

    fn interrupt(&mut self) {}
}

struct Participant {
    pipeline: Pipeline,
    source: Sharded,
    feedback: CardinalityFeedback,
    inbox: VecDeque<Parcel>,
}

/// Who takes the next turn, and what it does first: numbers from the test's choices, over and over.
struct Turns<'a> {
    choices: &'a [u8],
    at: usize,
}

impl Turns<'_> {
    fn pick(&mut self, n: usize) -> usize {
        self.at += 1;
        let choice = self.choices[self.at % self.choices.len()];
        (usize::from(choice) + self.at / self.choices.len()) % n
    }
}

struct Cluster<'a> {
    plan: &'a Plan,
    params: &'a [Value],
    participants: Vec<Participant>,
    least: usize,
}

impl<'a> Cluster<'a> {
    fn new(
        plan: &'a Plan,
        params: &'a [Value],
        tables: &[Vec<Quad>],
        (count, tuning, least): (u64, Tuning, usize),
    ) -> Self {
        let participant = |me: u64| Participant {
            pipeline: Pipeline::new(plan, (0..tables.len() as u64).collect(), tuning),
            source: Sharded::new(tables, me as u16, count),
            feedback: CardinalityFeedback::new(),
            inbox: VecDeque::new(),
        };
        Self {
            plan,
            params,
            participants: (0..count).map(participant).collect(),
            least,
        }
    }

    /// Runs the join once; the rows that come out, by participants in any order.
    fn run(
        &mut self,
        turns: &mut Turns<'_>,
        aggregation: Option<&dyn Fn() -> HashAggregation>,
    ) -> Vec<Bindings> {
        let mut first = self.participants.len() - 1;
        first = turns.pick(first + 1);
        let asker = &mut self.participants[first];
        let (source, feedback) = (&mut asker.source, &mut asker.feedback);
        let params = self.params.to_vec();
        let outlook = asker.pipeline.outlook_of(source, feedback, params);
        assert!(outlook.quads >= 0.0);
        for (me, participant) in self.participants.iter_mut().enumerate() {
            let pipeline = &mut participant.pipeline;
            pipeline.start_share(self.params.to_vec(), outlook.first, me, self.least);
            if let Some(aggregation) = aggregation {
                pipeline.begin_aggregation(aggregation());
            }
        }
        self.drive(turns)
    }

    /// The rows of a join that is not shared after all, once its first step has been looked for.
    fn alone(&mut self) -> Vec<Row> {
        let asker = &mut self.participants[0];
        let (source, feedback) = (&mut asker.source, &mut asker.feedback);
        let pipeline = &mut asker.pipeline;
        pipeline.outlook_of(source, feedback, self.params.to_vec());
        let mut found = Vec::new();
        while let Some(rows) = pipeline.next(source, feedback) {
            found.push(rows);
        }
        self.rows_of(&found)
    }

    /// The rows that come of rows which have these values of variable 0.
    fn run_from(&mut self, given: &[u64]) -> Vec<Bindings> {
        for (me, participant) in self.participants.iter_mut().enumerate() {
            let mut rows = Bindings::one_row(self.plan.slots.into());
            rows.len = given.len();
            rows.columns[0] = Column::Ids(given.to_vec());
            participant
                .pipeline
                .start_share_from(self.params.to_vec(), rows, me, self.least);
        }
        self.drive(&mut Turns {
            choices: &[3, 1, 2],
            at: 0,
        })
    }

    /// Runs participants that have been started until all are idle.
    fn drive(&mut self, turns: &mut Turns<'_>) -> Vec<Bindings> {
        let mut found = Vec::new();
        let mut idle = vec![false; self.participants.len()];
        while idle.contains(&false) || self.participants.iter().any(|p| !p.inbox.is_empty()) {
            let me = turns.pick(self.participants.len());
            let participant = &mut self.participants[me];
            let Participant {
                pipeline,
                source,
                feedback,
                inbox,
            } = participant;
            let is_taken = idle[me] || turns.pick(3) == 0;
            let taken = if is_taken { inbox.pop_front() } else { None };
            if let Some(parcel) = taken {
                let Parcel {
                    state,
                    rows,
                    columns,
                    ..
                } = parcel;
                pipeline.take(&state, rows, columns).unwrap();
            }
            idle[me] = false;
            match pipeline.step(source, feedback) {
                Progress::Rows(rows) => found.push(rows),
                Progress::More => {}
                Progress::Idle => idle[me] = true,
            }
            let room = match idle[me] {
                true => 0,
                false => 100 * turns.pick(5),
            };
            let others = self.participants.len();
            let aggregation = self.participants[me].pipeline.aggregation();
            let parcels = aggregation.map(|aggregation| {
                let parcels = aggregation.repartition(others, me, room);
                // All sets together, not each.
                assert!(aggregation.found_bytes() <= room);
                parcels
            });
            for parcel in parcels.into_iter().flatten() {
                let to = &mut self.participants[parcel.to].pipeline;
                assert!(to
                    .aggregation()
                    .unwrap()
                    .take_set(parcel.set, &parcel.columns));
            }
            let pipeline = &mut self.participants[me].pipeline;
            for parcel in pipeline.parcels() {
                assert!(parcel.to != me && parcel.rows > 0);
                self.participants[parcel.to].inbox.push_back(parcel);
            }
        }
        found
    }

    fn rows(&mut self, turns: &mut Turns<'_>) -> Vec<Row> {
        let found = self.run(turns, None);
        self.rows_of(&found)
    }

    fn rows_of(&self, found: &[Bindings]) -> Vec<Row> {
        let rows = found.iter().flat_map(|batch| rows_of(self.plan, batch));
        rows.collect()
    }

    /// Rows counted by the first `by` variables of the answer, and the distinct values, the sums and the extremes of
    /// its last one, those of all participants put together.
    fn groups(&mut self, turns: &mut Turns<'_>, by: usize) -> HashMap<Row, Of> {
        let last: Vec<Slot> = self.plan.output.last().copied().into_iter().collect();
        let by = self.plan.output[..by].to_vec();
        let new = || {
            let mut counted = vec![Counted::Rows];
            for &slot in &last {
                counted.extend([Counted::Sum(Argument::new(0)), Counted::Distinct(slot)]);
                counted.extend(EXTREMES);
                counted.push(Counted::Distinct(slot));
            }
            let aggregation = HashAggregation::new(by.clone(), counted);
            let aggregation = aggregation.with_order(term_order).repartitioned();
            aggregation.with_arguments(vec![last.clone()])
        };
        let rows = self.run(turns, Some(&new));
        assert!(rows.is_empty());
        let mut all = new();
        for participant in &mut self.participants {
            let aggregation = participant.pipeline.end_aggregation();
            let (keys, counts) = aggregation.groups(0..aggregation.len());
            assert!(counts
                .iter()
                .all(|column| column.len() == aggregation.len()));
            all.add_groups(&keys, &counts);
            all.add_rows(aggregation.rows());
        }
        let groups = (0..all.len()).map(|group| {
            let key = (0..by.len()).map(|place| all.value(group, place));
            let of_last = last.first().map(|_| {
                let extremes = [3, 4, 5, 6].map(|place| all.extreme(group, place));
                assert_eq!(all.count(group, 2), all.count(group, 7));
                (integer(&all.sum(group, 1)), all.count(group, 2), extremes)
            });
            (key.collect(), (all.count(group, 0), of_last))
        });
        groups.collect()
    }

    /// The distinct rows of the answer, each from one participant.
    fn set(&mut self, turns: &mut Turns<'_>) -> Vec<Row> {
        let by = self.plan.output.clone();
        let new = || HashAggregation::new(by.clone(), Vec::new()).repartitioned();
        let rows = self.run(turns, Some(&new));
        assert!(rows.is_empty());
        let mut found = Vec::new();
        for participant in &mut self.participants {
            let groups = participant.pipeline.end_aggregation();
            let row = |group| {
                (0..by.len())
                    .map(|place| groups.value(group, place))
                    .collect()
            };
            found.extend((0..groups.len()).map(row));
        }
        found
    }
}

fn check(
    plan: &Plan,
    params: &[Value],
    tables: &[Vec<Quad>],
    settings: (u64, Tuning, usize),
    turns: &[u8],
) -> Result<(), TestCaseError> {
    let expected = expected(plan, params, tables);
    prop_assume!(expected.is_some());
    let mut expected = expected.unwrap_or_default();
    let mut turns = Turns {
        choices: turns,
        at: 0,
    };
    let mut cluster = Cluster::new(plan, params, tables, settings);
    expected.sort();
    let most = expected.len();
    // The second run finds what the first has learnt.
    for _ in 0..2 {
        let mut found = cluster.rows(&mut turns);
        found.sort();
        if plan.distinct {
            prop_assert!(found.len() <= most);
            found.dedup();
            expected.dedup();
        }
        prop_assert_eq!(&found, &expected, "{:?} {:?}", plan, params);
    }
    if plan.distinct {
        if !plan.output.is_empty() {
            let mut found = cluster.set(&mut turns);
            found.sort();
            prop_assert_eq!(&found, &expected, "{:?} {:?}", plan, params);
        }
        return Ok(());
    }
    let mut alone = cluster.alone();
    alone.sort();
    prop_assert_eq!(&alone, &expected, "{:?} {:?}", plan, params);
    for by in [0, 1.min(plan.output.len())] {
        let mut values: HashMap<Row, Row> = HashMap::new();
        for row in &expected {
            let of_group = values.entry(row[..by].to_vec()).or_default();
            of_group.extend(row.last());
        }
        let groups = values.into_iter().map(|(key, values)| {
            let rows = expected.iter().filter(|row| row[..by] == key[..]).count();
            let of_last = plan.output.last().map(|_| {
                let distinct: HashSet<_> = values.iter().flatten().collect();
                let (distinct, extremes) = (distinct.len() as u64, extremes_of(&values));
                (sum_of(values.into_iter()), distinct, extremes)
            });
            (key, (rows as u64, of_last))
        });
        prop_assert_eq!(cluster.groups(&mut turns, by), groups.collect());
    }
    Ok(())
}

fn tuning(first: usize, most: usize, bulk_from: usize, memory: usize) -> Tuning {
    Tuning {
        first,
        most,
        bulk_from,
        range_pushdown_from: 4,
        memory,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn answers_are_those_of_nested_loops(
        tables in prop::collection::vec(quads(), 1..3),
        choices in prop::collection::vec(any::<u8>(), 10..150),
        turns in prop::collection::vec(any::<u8>(), 1..50),
        (first, most) in prop::sample::select(vec![(1usize, 1usize), (2, 5), (3, 1000), (1000, 1000)]),
        bulk_from in prop::sample::select(vec![1usize, 4, 1000]),
        memory in prop::sample::select(vec![0usize, 500, 1 << 20]),
        participants in 1u64..6,
        least in prop::sample::select(vec![0usize, 0, 3]),
        distinct: bool,
    ) {
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: tables.len() };
        let (mut root, output) = maker.group(&[], 0);
        maker.read_triples(&mut root);
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct, whole: true };
        check(&plan, &params, &tables, (participants, tuning(first, most, bulk_from, memory), least), &turns)?;
    }

    #[test]
    fn stars_are_those_of_nested_loops(
        quads in prop::collection::btree_set([0i64..6, 0..3, 0..5, 0..2], 0..45),
        choices in prop::collection::vec(any::<u8>(), 10..60),
        turns in prop::collection::vec(any::<u8>(), 1..50),
        (first, most) in prop::sample::select(vec![(1usize, 1usize), (2, 5), (3, 1000), (1000, 1000)]),
        bulk_from in prop::sample::select(vec![1usize, 4, 1000]),
        memory in prop::sample::select(vec![0usize, 500, 1 << 20]),
        participants in 1u64..6,
        by_value: bool,
        distinct: bool,
    ) {
        let quads: Vec<Quad> = quads.into_iter().collect();
        let tables = [quads.clone(), quads];
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: 2 };
        let (mut root, output) = if by_value { maker.apart() } else { maker.star() };
        maker.read_triples(&mut root);
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct, whole: true };
        check(&plan, &params, &tables, (participants, tuning(first, most, bulk_from, memory), 0), &turns)?;
    }

    #[test]
    fn damaged_states_are_refused(state in prop::collection::vec(any::<u8>(), 0..40), rows in 0usize..4) {
        let choices = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7];
        let mut maker = Maker { choices: &choices, at: 0, slots: 0, params: Vec::new(), tables: 1 };
        let (root, output) = maker.group(&[], 0);
        let params = std::mem::take(&mut maker.params);
        let plan = Plan { root, slots: maker.slots, output, distinct: false, whole: true };
        let mut pipeline = Pipeline::new(&plan, vec![0], tuning(1, 1, 1, 0));
        let first = FirstPattern { pattern: 0, column: ColumnNumber::SUBJECT };
        pipeline.start_share(params, Some(first), 1, 0);
        // Accepted or refused, nothing breaks.
        let _ = pipeline.take(&state, rows, vec![vec![FLIP; rows]; 2]);
    }
}

/// The pattern of a chain's hop: its subject, the predicate of a parameter, and its object.
fn hop(p: u16, s: u16, o: u16) -> Pattern {
    Pattern {
        cells: [Some(Slot::new(s)), None, Some(Slot::new(o)), None],
        conditions: vec![Comparison::new(
            ColumnNumber::PREDICATE,
            Bound::Eq,
            Param::new(p),
        )],
        ..Pattern::default()
    }
}

/// The first and the last variable of patterns that are joined.
fn joining(patterns: Vec<Pattern>, filters: Vec<Filter>, variables: u16) -> Plan {
    Plan {
        root: Group {
            patterns,
            filters,
            ..Group::default()
        },
        slots: variables,
        output: slots([0, variables - 1]),
        distinct: false,
        whole: true,
    }
}

/// A chain of three hops: rows go to the holder of each next key, and nobody reads a quad that another one holds.
#[test]
fn a_chain_reads_own_quads_only() {
    let quads: Vec<Quad> = (0..100)
        .flat_map(|i| [[i, 1, i + 1, 0], [i, 2, i * 7 % 100, 0]])
        .collect();
    let tables = [quads];
    let plan = joining(
        vec![hop(0, 0, 1), hop(1, 1, 2), hop(0, 2, 3)],
        Vec::new(),
        4,
    );
    let params = [Value::One(FLIP + 1), Value::One(FLIP + 2)];
    let choices = [5, 2, 8, 1];
    let mut turns = Turns {
        choices: &choices,
        at: 0,
    };
    for bulk_from in [16, 100_000] {
        let settings = (3, tuning(100, 1000, bulk_from, 1 << 20), 0);
        let mut cluster = Cluster::new(&plan, &params, &tables, settings);
        let mut found = cluster.rows(&mut turns);
        found.sort();
        let mut expected = expected(&plan, &params, &tables).unwrap();
        expected.sort();
        assert_eq!(found, expected);
        let dealt = |p: &Participant| p.pipeline.steps().iter().map(|s| s.dealt).sum::<u64>();
        let all: u64 = cluster.participants.iter().map(dealt).sum();
        // Rows are dealt before the third step only, where two of three keys are with another participant. The first
        // quads are shared out by object, so those of the second step are there.
        assert!((40..=100).contains(&all), "{all}");
        // Single keys may be read by the orders of the whole table, but they are the holder's own.
        assert!(cluster.participants.iter().all(|p| p.source.others == 0));
    }
}

/// Rows that have a variable already are dealt out by the participant that has them.
#[test]
fn given_rows_go_to_the_holders_of_their_keys() {
    let quads: Vec<Quad> = (0..60)
        .flat_map(|i| [[i, 1, i + 1, 0], [i, 2, i * 7 % 60, 0]])
        .collect();
    let tables = [quads];
    let plan = joining(vec![hop(0, 0, 1), hop(1, 1, 2)], Vec::new(), 3);
    let params = [Value::One(FLIP + 1), Value::One(FLIP + 2)];
    let mut cluster = Cluster::new(
        &plan,
        &params,
        &tables,
        (3, tuning(100, 1000, 16, 1 << 20), 0),
    );
    let given: Vec<u64> = (10..40).map(|s| FLIP + s).collect();
    let found = cluster.run_from(&given);
    let mut found: Vec<(u64, u64)> = found
        .iter()
        .flat_map(|batch| {
            let (a, b) = (
                batch.ids(Slot::new(0)).unwrap(),
                batch.ids(Slot::new(2)).unwrap(),
            );
            a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>()
        })
        .collect();
    found.sort_unstable();
    let expected: Vec<(u64, u64)> = (10..40)
        .map(|s| (FLIP + s, FLIP + (s + 1) * 7 % 60))
        .collect();
    assert_eq!(found, expected);
    assert!(cluster.participants.iter().all(|p| p.source.others == 0));
}

/// Rows that the equality of values connects with a pattern go to the holders of the quads with these values, and those
/// look the values up: also participants that begin without rows of their own.
#[test]
fn given_rows_are_joined_by_value_where_the_quads_are() {
    let quads: Vec<Quad> = (0..60).map(|i| [i, 1, 100 + i, 0]).collect();
    let tables = [quads];
    let mut pattern = hop(0, 1, 2);
    pattern.values.push(SameValue {
        column: ColumnNumber::OBJECT,
        slot: Slot::new(0),
        between: ParamRange {
            least: Param::new(1),
            greatest: Param::new(2),
        },
    });
    let same_value = Filter {
        test: Test::Expr(Expr::new(2)),
        needs: vec![Slot::new(0), Slot::new(2)],
    };
    let plan = joining(vec![pattern], vec![same_value], 3);
    let params = [FLIP + 1, SHARED.0, SHARED.1].map(Value::One);
    let tuning = Tuning {
        range_pushdown_from: usize::MAX,
        ..tuning(100, 1000, 100_000, 1 << 20)
    };
    let mut cluster = Cluster::new(&plan, &params, &tables, (3, tuning, 0));
    let given: Vec<u64> = (110..140).map(|value| FLIP + value).collect();
    let found = cluster.run_from(&given);
    assert_eq!(found.iter().map(|rows| rows.len).sum::<usize>(), 30);
    for participant in &cluster.participants {
        assert_eq!(participant.source.others, 0);
        assert_eq!(participant.pipeline.steps()[0].keys, 10);
    }
}

/// Quads that a participant holds are put into a table for fewer rows than those that other nodes have to send.
#[test]
fn own_quads_are_held_by_the_costs_of_own_reads() {
    const QUADS: i64 = 20_000;
    let quads: Vec<Quad> = (0..QUADS).map(|s| [s, 1, 7 * s, 0]).collect();
    let tables = [quads];
    let plan = joining(vec![hop(0, 0, 1)], Vec::new(), 2);
    let params = [Value::One(FLIP + 1)];
    let is_held = |is_participant: bool| {
        let settings = (1, tuning(100, 10_000, 64, 1 << 26), 0);
        let mut cluster = Cluster::new(&plan, &params, &tables, settings);
        let participant = &mut cluster.participants[0];
        participant.source.remote = true;
        let mut rows = Bindings::one_row(2);
        // More than pay for a table here, and fewer than do elsewhere.
        rows.len = 3000;
        rows.columns[0] = Column::Ids((0..3000).map(|n| FLIP + n * 6).collect());
        let pipeline = &mut participant.pipeline;
        let mut found = Vec::new();
        if is_participant {
            pipeline.start_share_from(params.to_vec(), rows, 0, 0);
            let mut turns = Turns {
                choices: &[1],
                at: 0,
            };
            found = cluster.drive(&mut turns);
        } else {
            pipeline.start_from(params.to_vec(), rows);
            let (source, feedback) = (&mut participant.source, &mut participant.feedback);
            while let Some(rows) = pipeline.next(source, feedback) {
                found.push(rows);
            }
        }
        assert_eq!(found.iter().map(|rows| rows.len).sum::<usize>(), 3000);
        cluster.participants[0].pipeline.steps()[0].hashed > 0
    };
    assert!(is_held(true));
    assert!(!is_held(false));
}

/// Where a filter leaves few quads of the first pattern, these are read by the column that it is about, and foreseen.
#[test]
fn what_filters_leave_is_shared_out_by_their_column() {
    let odd_object = Filter {
        test: Test::Expr(Expr::new(0)),
        needs: vec![Slot::new(1)],
    };
    let plan = joining(vec![hop(0, 0, 1), hop(1, 0, 2)], vec![odd_object], 3);
    let params = [Value::One(FLIP + 1), Value::One(FLIP + 2)];
    // The filter leaves odd objects.
    for (odd, column) in [(20, ColumnNumber::OBJECT), (1500, ColumnNumber::SUBJECT)] {
        let object = |s: i64| {
            if s < odd {
                1 + s % 2 * 2
            } else {
                8 + s % 2 * 2
            }
        };
        let quads = (0..4000).flat_map(|s| [[s, 1, object(s), 0], [s, 2, s, 0], [s, 2, s + 1, 0]]);
        let tables = [quads.collect()];
        let settings = (3, tuning(100, 1000, 16, 1 << 20), 0);
        let mut cluster = Cluster::new(&plan, &params, &tables, settings);
        let asker = &mut cluster.participants[0];
        let (source, feedback) = (&mut asker.source, &mut asker.feedback);
        let outlook = asker.pipeline.outlook_of(source, feedback, params.to_vec());
        assert_eq!(outlook.first, Some(FirstPattern { pattern: 0, column }));
        assert!(
            (odd..=4 * odd).contains(&(outlook.quads as i64)),
            "{outlook:?}"
        );
        let choices = [4, 1, 7];
        let mut turns = Turns {
            choices: &choices,
            at: 0,
        };
        assert_eq!(cluster.rows(&mut turns).len(), 2 * odd as usize);
    }
}
