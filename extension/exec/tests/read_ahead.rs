//! What a pipeline asks another node for: how many messages a join takes, and which keys are counted for an estimate.

mod common;
#[path = "common/triples.rs"]
mod triples;

use common::{Trees, FLIP};
use pgquad_btree::{Batch, Key, Order, Probe, Quad, Span, ALL_COLUMNS};
use pgquad_cluster::Reading;
use pgquad_exec::{
    Bindings, CardinalityFeedback, Child, Column, ColumnNumber, Expr, Filter, Group, Kind, Param,
    ParamRange, Pipeline, Plan, Prefetch, SameValue, Slot, Source, TableNumber, Test, Tuning,
    Value, ValueKey, Wanted,
};
use triples::{patterns, Term, Triple};
use Term::{Is, Var};

/// One table, whose quads are on another node. What is asked for ahead comes with the next message.
struct Far {
    all: Trees,
    /// Whether quads with this subject or object are on this node.
    holds: fn(i64) -> bool,
    wished: Vec<(usize, Key, Key)>,
    known: Vec<(usize, Key, Key)>,
    /// Reads that are asked for, that are under way, and how many have been.
    prefetched: Vec<Prefetch>,
    under_way: Vec<Prefetch>,
    prefetches: usize,
    /// The values that pass filters, if it is these.
    within: Option<(u64, u64)>,
    /// Messages of reads, and of counts.
    reads: usize,
    counts: usize,
    /// Rows that were read.
    rows: usize,
}

impl Far {
    fn new(quads: &[Quad], holds: fn(i64) -> bool) -> Self {
        Self {
            all: Trees::new(&[quads.to_vec()], &["spog", "posg"]),
            holds,
            wished: Vec::new(),
            known: Vec::new(),
            prefetched: Vec::new(),
            under_way: Vec::new(),
            prefetches: 0,
            within: None,
            reads: 0,
            counts: 0,
            rows: 0,
        }
    }

    /// Whether the column by which an order is placed (subject, object) has one value, which is on this node.
    fn is_here(&self, order: usize, (low, high): &(Key, Key)) -> bool {
        let place = order;
        low[place] == high[place] && (self.holds)((low[place] ^ FLIP) as i64)
    }

    fn is_kept(&self, order: usize, (low, high): &(Key, Key)) -> bool {
        let holds = |of: &(usize, Key, Key)| of.0 == order && of.1 <= *low && *high <= of.2;
        self.known.iter().any(holds)
    }

    fn has_all(&self, order: usize, ranges: &[(Key, Key)]) -> bool {
        ranges
            .iter()
            .all(|range| self.is_here(order, range) || self.is_kept(order, range))
    }

    fn message_comes(&mut self) {
        self.known.append(&mut self.wished);
        self.prefetches += self.prefetched.len();
        self.under_way.append(&mut self.prefetched);
    }

    /// Whether a read has been prefetched, just so. It is handed out once.
    fn takes(
        &mut self,
        order: usize,
        reading: &Reading,
        ranges: &[(Key, Key)],
        enough: usize,
    ) -> bool {
        let is_it = |read: &Prefetch| {
            (read.wanted.order, read.mask, read.enough) == (order, reading.mask(), enough)
                && read.wanted.ranges == ranges
        };
        let at = self.under_way.iter().position(is_it);
        at.map(|at| self.under_way.remove(at)).is_some()
    }
}

impl Source for Far {
    fn orders(&self, table: TableNumber) -> &[Order] {
        self.all.orders(table)
    }

    fn count(&mut self, table: TableNumber, order: usize, low: &Key, high: &Key) -> u64 {
        self.counts(table, order, &[(*low, *high)])[0]
    }

    fn counts(&mut self, table: TableNumber, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        if !self.has_all(order, ranges) {
            self.counts += 1;
            self.message_comes();
        }
        let all = &mut self.all;
        let count = |(low, high): &(Key, Key)| all.count(table, order, low, high);
        ranges.iter().map(count).collect()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn ranges_are_sorted(&self, _table: TableNumber) -> bool {
        false
    }

    fn is_counted_here(&self, _table: TableNumber, order: usize, range: &(Key, Key)) -> bool {
        self.is_here(order, range)
    }

    fn read_ahead(&mut self, wanted: &[Wanted]) {
        self.wished.clear();
        for wanted in wanted {
            let ranges = wanted.ranges.iter();
            let ranges = ranges.map(|&(low, high)| (wanted.order, low, high));
            self.wished.extend(ranges);
        }
    }

    fn prefetch(&mut self, reads: &[Prefetch]) -> bool {
        self.prefetched.extend_from_slice(reads);
        true
    }

    fn take_prefetched(&mut self) {
        self.under_way.clear();
    }

    fn is_known(&self, _table: TableNumber, order: usize, range: &(Key, Key)) -> bool {
        self.has_all(order, &[*range])
    }

    fn known_keys(
        &self,
        table: TableNumber,
        order: usize,
        range: &(Key, Key),
        most: usize,
        keys: &mut Vec<Key>,
    ) -> bool {
        if !self.has_all(order, &[*range]) {
            return false;
        }
        let (mut batch, mut spans) = (Batch::default(), Vec::new());
        let tree = self.all.tables[table.index()].0.tree(order).unwrap();
        Probe::new(ALL_COLUMNS)
            .read(
                tree,
                &self.all.snapshot(),
                &[*range],
                most + 1,
                &mut batch,
                &mut spans,
            )
            .unwrap();
        keys.extend((0..batch.len()).map(|n| batch.key(n)));
        batch.len() <= most
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
        if !self.has_all(order, ranges) && !self.takes(order, reading, ranges, enough) {
            self.reads += 1;
            self.message_comes();
        }
        let all = &mut self.all;
        let more = all.read(table, order, reading, ranges, enough, batch, spans);
        self.rows += batch.len();
        more
    }

    fn test(&mut self, expr: Expr, needs: &[Slot], rows: &Bindings, keep: &mut [bool]) {
        let Some((low, high)) = self.within else {
            return self.all.test(expr, needs, rows, keep);
        };
        let ids = rows.ids(needs[0]).unwrap();
        let passes = ids.iter().map(|id| (low..=high).contains(id));
        keep.iter_mut()
            .zip(passes)
            .for_each(|(keep, passes)| *keep &= passes);
    }

    fn pushdown_ranges(
        &mut self,
        _expr: Expr,
        _needs: &[Slot],
        _unknown: usize,
        _row: &[Option<u64>],
    ) -> Option<Vec<(u64, u64)>> {
        self.within.map(|within| vec![within])
    }

    fn value_keys(&mut self, ids: &[u64]) -> Vec<ValueKey> {
        self.all.value_keys(ids)
    }

    fn interrupt(&mut self) {}
}

const TUNING: Tuning = Tuning {
    first: 100,
    most: 10_000,
    bulk_from: 128,
    range_pushdown_from: 1000,
    memory: 1 << 20,
};

/// A join of triples whose rows are all asked for, with all variables; `filtered` has to pass expression 0.
fn plan_of(
    triples: &[Triple],
    filtered: Option<Slot>,
    slots: u16,
    params: &mut Vec<Value>,
) -> Plan {
    let filters = filtered.into_iter().map(|slot| Filter {
        test: Test::Expr(Expr::new(0)),
        needs: vec![slot],
    });
    Plan {
        root: Group {
            patterns: patterns(triples, params),
            filters: filters.collect(),
            ..Group::default()
        },
        slots,
        output: (0..slots).map(Slot::new).collect(),
        distinct: false,
        whole: true,
    }
}

/// Numbers of rows of a join, and what it asked for.
fn run(source: &mut Far, plan: &Plan, params: &[Value], feedback: &mut CardinalityFeedback) -> u64 {
    let mut pipeline = Pipeline::new(plan, vec![0], TUNING);
    pipeline.start(params.to_vec());
    let mut rows = 0;
    while let Some(batch) = pipeline.next(source, feedback) {
        rows += batch.len as u64;
    }
    rows
}

const LABEL: i64 = 1;
const OFFER_OF: i64 = 2;
const VENDOR: i64 = 3;
const COUNTRY: i64 = 4;
const REVIEW_OF: i64 = 5;
const REVIEWER: i64 = 6;
const NAME: i64 = 7;
const PRODUCT: i64 = 1000;

/// A product with three offers and four reviews, and what offers and reviews lead to.
fn shop() -> Vec<Quad> {
    let mut quads = vec![[PRODUCT, LABEL, 2000, 0]];
    for n in 0..3 {
        let (offer, vendor) = (3000 + n, 4000 + n);
        quads.push([offer, OFFER_OF, PRODUCT, 0]);
        quads.push([offer, VENDOR, vendor, 0]);
        quads.push([vendor, COUNTRY, 5000, 0]);
    }
    for n in 0..4 {
        let (review, person) = (6000 + n, 7000 + n);
        quads.push([review, REVIEW_OF, PRODUCT, 0]);
        quads.push([review, REVIEWER, person, 0]);
        quads.push([person, NAME, 8000 + n, 0]);
    }
    quads.sort_unstable();
    quads
}

/// `<product> label ?l OPTIONAL { ?o offerOf <product>; vendor ?v. ?v country ?c } OPTIONAL { ?r reviewOf <product>;
/// reviewer ?p. ?p name ?n }`
fn of_product() -> (Plan, Vec<Value>) {
    let mut params = Vec::new();
    let root = patterns(&[[Is(PRODUCT), Is(LABEL), Var(0)]], &mut params);
    let mut optional = |triples: &[Triple], row: u16| Child {
        kind: Kind::Left,
        group: Group {
            patterns: patterns(triples, &mut params),
            ..Group::default()
        },
        exports: Vec::new(),
        needs: Vec::new(),
        row: Slot::new(row),
    };
    let offers = [
        [Var(1), Is(OFFER_OF), Is(PRODUCT)],
        [Var(1), Is(VENDOR), Var(2)],
        [Var(2), Is(COUNTRY), Var(3)],
    ];
    let reviews = [
        [Var(4), Is(REVIEW_OF), Is(PRODUCT)],
        [Var(4), Is(REVIEWER), Var(5)],
        [Var(5), Is(NAME), Var(6)],
    ];
    let children = vec![optional(&offers, 7), optional(&reviews, 8)];
    let plan = Plan {
        root: Group {
            patterns: root,
            children,
            ..Group::default()
        },
        slots: 9,
        output: (0..7).map(Slot::new).collect(),
        distinct: false,
        whole: false,
    };
    (plan, params)
}

/// The reviews are known when the offers are joined. So what they lead to comes with the same messages: those of three
/// steps, not of five.
#[test]
fn what_is_known_leads_on_to_what_comes_later() {
    let (plan, params) = of_product();
    for holds in [|_| false, |id| id % 3 == 0] {
        let mut feedback = CardinalityFeedback::new();
        // The second run counts nothing.
        for is_first in [true, false] {
            let mut source = Far::new(&shop(), holds);
            assert_eq!(run(&mut source, &plan, &params, &mut feedback), 12);
            let messages = source.reads + source.counts;
            assert!(is_first || messages <= 3, "{messages} messages");
        }
    }
}

/// What is counted for the choice of the order brings the quads along: no read takes a message of its own.
#[test]
fn counts_bring_quads_along() {
    let subject = 50;
    let mut quads: Vec<Quad> = (0..20).map(|n| [subject, 1, 100 + n, 0]).collect();
    quads.extend((0..20).map(|n| [subject, 2, 200 + n, 0]));
    let mut params = Vec::new();
    let triples = [[Is(subject), Is(1), Var(0)], [Is(subject), Is(2), Var(1)]];
    let plan = Plan {
        root: Group {
            patterns: patterns(&triples, &mut params),
            ..Group::default()
        },
        slots: 2,
        output: [0, 1].map(Slot::new).to_vec(),
        distinct: false,
        whole: false,
    };
    let mut source = Far::new(&quads, |_| false);
    let mut feedback = CardinalityFeedback::new();
    assert_eq!(run(&mut source, &plan, &params, &mut feedback), 400);
    assert!(source.counts >= 1);
    assert_eq!(source.reads, 0);
}

/// Of a large batch, keys on this node are counted where there are some.
#[test]
fn sampled_keys_are_on_this_node() {
    const SUBJECTS: i64 = 3000;
    let mut quads = Vec::new();
    for n in 0..SUBJECTS {
        quads.extend([[n, 1, 9_000_001, 0], [n, 2, n, 0], [n, 3, n, 0]]);
    }
    quads.sort_unstable();
    let mut params = Vec::new();
    let triples = [
        [Var(0), Is(1), Is(9_000_001)],
        [Var(0), Is(2), Var(1)],
        [Var(0), Is(3), Var(2)],
    ];
    let plan = plan_of(&triples, None, 3, &mut params);
    let counted = |holds: fn(i64) -> bool| {
        let mut source = Far::new(&quads, holds);
        let mut feedback = CardinalityFeedback::new();
        let rows = run(&mut source, &plan, &params, &mut feedback);
        assert_eq!(rows, SUBJECTS as u64);
        source.counts
    };
    let far = counted(|_| false);
    let some_near = counted(|id| id % 10 == 7);
    let all_near = counted(|id| id < 9_000_000);
    // What its constants select of a pattern is counted elsewhere in each case.
    assert_eq!(some_near, all_near);
    assert!(far > all_near, "{far} messages of counts, {all_near}");
}

/// Rows that a filter could leave out first are looked up with all their patterns: a second step is a message to each
/// node. A pattern that selects a few hundred quads by itself takes part, too.
#[test]
fn one_step_reads_what_a_filter_divides() {
    const PRODUCTS: i64 = 99;
    const FEATURE: i64 = 9_000_001;
    const OTHER: i64 = 9_000_002;
    let mut quads = Vec::new();
    for n in 0..PRODUCTS {
        quads.extend([[n, 1, FEATURE, 0], [n, 3, n, 0], [n, 4, n, 0]]);
        if n % 3 == 0 {
            quads.push([n, 1, OTHER, 0]);
        }
    }
    // Others have that feature as well.
    quads.extend((PRODUCTS..5 * PRODUCTS).map(|n| [n, 1, OTHER, 0]));
    quads.sort_unstable();
    let mut params = Vec::new();
    let triples = [
        [Var(0), Is(1), Is(FEATURE)],
        [Var(0), Is(1), Is(OTHER)],
        [Var(0), Is(3), Var(1)],
        [Var(0), Is(4), Var(2)],
    ];
    let plan = plan_of(&triples, Some(Slot::new(1)), 3, &mut params);
    let mut feedback = CardinalityFeedback::new();
    for is_first in [true, false] {
        let mut source = Far::new(&quads, |_| false);
        let rows = run(&mut source, &plan, &params, &mut feedback);
        // Every third has the other feature, and every second of these passes the filter.
        assert_eq!(rows, 16);
        assert!(is_first || source.reads <= 2, "{} reads", source.reads);
    }
}

const REVIEWS: i64 = 600;

/// Reviews by two hundred people, who are of ten countries.
fn reviews() -> Vec<Quad> {
    let mut quads = Vec::new();
    for n in 0..REVIEWS {
        quads.push([10_000 + n, REVIEW_OF, PRODUCT + n % 2, 0]);
        quads.push([10_000 + n, REVIEWER, 20_000 + n % 200, 0]);
    }
    quads.extend((0..200).map(|n| [20_000 + n, COUNTRY, 5000 + n % 10, 0]));
    quads.sort_unstable();
    quads
}

/// `?r reviewOf <product>; reviewer ?p. ?p country ?c`
fn countries_of(product: i64) -> (Plan, Vec<Value>) {
    let mut params = Vec::new();
    let triples = [
        [Var(0), Is(REVIEW_OF), Is(product)],
        [Var(0), Is(REVIEWER), Var(1)],
        [Var(1), Is(COUNTRY), Var(2)],
    ];
    let plan = plan_of(&triples, None, 3, &mut params);
    (plan, params)
}

/// The second run asks for the quads of its hash joins with the first message.
#[test]
fn build_sides_of_the_last_run_are_prefetched() {
    let (plan, params) = countries_of(PRODUCT);
    let mut feedback = CardinalityFeedback::new();
    let mut reads = Vec::new();
    for _ in 0..3 {
        let mut source = Far::new(&reviews(), |_| false);
        let rows = run(&mut source, &plan, &params, &mut feedback);
        assert_eq!(rows, REVIEWS as u64 / 2);
        assert!(source.under_way.is_empty());
        reads.push((source.reads, source.prefetches));
    }
    let (reads_of_first, prefetches_of_first) = reads[0];
    assert_eq!(prefetches_of_first, 0);
    for (reads, prefetches) in &reads[1..] {
        assert!(*prefetches > 0);
        assert_eq!(reads + prefetches, reads_of_first);
    }
}

/// `SELECT (count(*) AS ?n) { ?p country ?c . ?r reviewer ?p }`, where each of the people has ten reviews: these are
/// counted where they are, and the counts come with the first message of the second run.
#[test]
fn quads_that_are_counted_are_not_sent() {
    let mut quads: Vec<Quad> = (0..200)
        .map(|n| [20_000 + n, COUNTRY, 5000 + n % 10, 0])
        .collect();
    quads.extend((0..2000).map(|n| [10_000 + n, REVIEWER, 20_000 + n % 200, 0]));
    quads.sort_unstable();
    let mut params = Vec::new();
    let triples = [
        [Var(0), Is(COUNTRY), Var(1)],
        [Var(2), Is(REVIEWER), Var(0)],
    ];
    let plan = plan_of(&triples, None, 3, &mut params);
    let mut feedback = CardinalityFeedback::new();
    let mut reads = Vec::new();
    for _ in 0..2 {
        let mut source = Far::new(&quads, |_| false);
        let tuning = Tuning {
            first: 1000,
            ..TUNING
        };
        let mut pipeline = Pipeline::new(&plan, vec![0], tuning);
        pipeline.start(params.clone());
        assert_eq!(pipeline.count(&mut source, &mut feedback), 2000);
        // Where a leaf ends within a person's reviews, they are two rows.
        assert!(source.rows <= 200 + 700, "{} rows", source.rows);
        reads.push((source.reads, source.prefetches, source.counts));
    }
    // The first run counts quads, samples keys, and looks how far apart these are. The second one knows.
    assert_eq!(reads, [(2, 0, 4), (1, 1, 1)]);
}

/// Build sides that nothing comes to are no longer asked for after a while. Nothing is under way at the end.
#[test]
fn build_sides_that_are_not_needed_are_forgotten() {
    let mut feedback = CardinalityFeedback::new();
    let (plan, params) = countries_of(PRODUCT);
    let mut source = Far::new(&reviews(), |_| false);
    run(&mut source, &plan, &params, &mut feedback);
    let (plan, params) = countries_of(PRODUCT + 7);
    let mut in_vain = 0;
    for _ in 0..10 {
        let mut source = Far::new(&reviews(), |_| false);
        assert_eq!(run(&mut source, &plan, &params, &mut feedback), 0);
        assert!(source.under_way.is_empty());
        in_vain += source.prefetches;
    }
    assert!(0 < in_vain && in_vain < 10, "{in_vain} in vain");
}

/// Whether values of several patterns may equal those of other ids is looked at with one message.
#[test]
fn looks_for_equal_values_are_one_message() {
    let mut params = Vec::new();
    let triples = [
        [Is(PRODUCT), Is(LABEL), Var(0)],
        [Var(1), Is(LABEL), Var(2)],
    ];
    let mut patterns = patterns(&triples, &mut params);
    let between = ParamRange {
        least: Param::from_index(params.len()),
        greatest: Param::from_index(params.len() + 1),
    };
    params.extend([Value::One(1), Value::One(2)]);
    for (pattern, slot) in [(0, 2), (1, 0)] {
        patterns[pattern].values.push(SameValue {
            column: ColumnNumber::OBJECT,
            slot: Slot::new(slot),
            between,
        });
    }
    let plan = Plan {
        root: Group {
            patterns,
            filters: vec![Filter {
                test: Test::Equal(Slot::new(0), Slot::new(2)),
                needs: vec![Slot::new(0), Slot::new(2)],
            }],
            ..Group::default()
        },
        slots: 3,
        output: (0..3).map(Slot::new).collect(),
        distinct: false,
        whole: true,
    };
    let mut source = Far::new(&shop(), |_| false);
    let mut feedback = CardinalityFeedback::new();
    assert_eq!(run(&mut source, &plan, &params, &mut feedback), 1);
    assert_eq!(source.prefetches, 2);
}

/// A pattern whose few quads are in memory goes before one that is looked up, though both could be one step.
#[test]
fn what_leaves_few_rows_goes_before_look_ups() {
    const SUBJECTS: i64 = 600;
    let mut quads = Vec::new();
    for n in 0..SUBJECTS {
        quads.extend([[n, 3, 2000 + n, 0], [n, 4, n, 0]]);
    }
    // Too many to be read instead.
    quads.extend((SUBJECTS..20 * SUBJECTS).map(|n| [n, 4, n, 0]));
    quads.sort_unstable();
    let mut params = Vec::new();
    let triples = [[Var(0), Is(4), Var(1)], [Var(0), Is(3), Var(2)]];
    let plan = plan_of(&triples, Some(Slot::new(2)), 3, &mut params);
    let mut feedback = CardinalityFeedback::new();
    let mut source = Far::new(&quads, |_| false);
    // Thirty values pass.
    source.within = Some((FLIP + 2100, FLIP + 2129));
    let subjects = (0..SUBJECTS as u64).map(|n| FLIP + n).collect();
    let rows = Bindings {
        len: SUBJECTS as usize,
        columns: vec![Column::Ids(subjects), Column::Absent, Column::Absent],
    };
    let mut pipeline = Pipeline::new(&plan, vec![0], TUNING);
    pipeline.start_from(params, rows);
    let mut found = 0;
    while let Some(batch) = pipeline.next(&mut source, &mut feedback) {
        found += batch.len;
    }
    assert_eq!(found, 30);
    let looked_up = pipeline.steps()[0].keys;
    assert!(looked_up <= 30, "{looked_up} keys were looked up");
}
