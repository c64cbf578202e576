//! Random histories against a model: every transaction sees what it should, in every order.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, quad_of, Batch, CacheBudget, Cursor, Deletion, Direction, Filter,
    GroupCursor, Groups, InnerPageCache, Key, Meta, Mode, Options, Quad, Quads, Snapshot, Tree,
    Work, Writer, DEFAULT_ORDERS, KEY_MAX, KEY_MIN,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const SEATS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Insert(usize, Vec<u16>),
    Delete(usize, u16),
    Lock(usize, u16),
    Commit(usize),
    Abort(usize),
    Check(usize, u16, u16),
    Vacuum,
}

fn step() -> impl Strategy<Value = Step> {
    let seat = 0..SEATS;
    let q = || 0u16..400;
    prop_oneof![
        6 => (seat.clone(), prop::collection::vec(q(), 1..4)).prop_map(|(s, v)| Step::Insert(s, v)),
        2 => (seat.clone(), prop::collection::vec(q(), 30..120)).prop_map(|(s, v)| Step::Insert(s, v)),
        6 => (seat.clone(), q()).prop_map(|(s, v)| Step::Delete(s, v)),
        1 => (seat.clone(), q()).prop_map(|(s, v)| Step::Lock(s, v)),
        3 => seat.clone().prop_map(Step::Commit),
        1 => seat.clone().prop_map(Step::Abort),
        2 => (seat, q(), q()).prop_map(|(s, a, b)| Step::Check(s, a, b)),
        1 => Just(Step::Vacuum),
    ]
}

/// Quads with few different columns, of several tags, and the extremes.
fn quad(n: u16) -> Quad {
    match n {
        0 => [i64::MIN; 4],
        1 => [i64::MAX; 4],
        2 => [0; 4],
        _ => {
            let n = i64::from(n);
            [
                n % 17,
                n % 3,
                (n % 5) << 59 | (n / 2),
                if n % 7 == 0 { -1 } else { 0 },
            ]
        }
    }
}

/// Counts, filtered and grouped, against the keys that are seen.
fn check_counts(
    tree: &Tree<MemStore>,
    snap: &dyn Snapshot,
    (lower, upper): (Key, Key),
    keys: &[Key],
) {
    let zero = 1 << 63;
    let graph = tree.order().position(3) as u8;
    let filter = |column, low, high, outside| Filter {
        column,
        low,
        high,
        outside,
    };
    for filters in [
        vec![],
        vec![filter(graph, zero, zero, false)],
        vec![filter(graph, zero, zero, true)],
        vec![
            filter(graph, zero - 1, zero, false),
            filter(2, zero, zero + 60, false),
        ],
    ] {
        let passing: Vec<&Key> = keys
            .iter()
            .filter(|k| {
                filters.iter().all(|f: &Filter| {
                    let value = k[usize::from(f.column)];
                    (f.low <= value && value <= f.high) != f.outside
                })
            })
            .collect();
        let mut work = Work::default();
        let counted = tree
            .count_visible(&lower, &upper, &filters, snap, &mut work)
            .unwrap();
        assert_eq!(
            counted,
            passing.len() as u64,
            "{} {filters:?}",
            tree.order()
        );
        for column in 0..4 {
            let mut expected = BTreeMap::new();
            for key in &passing {
                *expected.entry(key[column]).or_insert(0) += 1;
            }
            let mut found = BTreeMap::new();
            let each = |value, count: u64| *found.entry(value).or_insert(0) += count;
            tree.column_values((&lower, &upper), column, &filters, snap, &mut work, each)
                .unwrap();
            assert_eq!(found, expected, "{} {column} {filters:?}", tree.order());
        }
        for depth in 1..=4 {
            let expected: Vec<(&[u64], u64)> = passing
                .chunk_by(|a, b| a[..depth] == b[..depth])
                .map(|group| (&group[0][..depth], group.len() as u64))
                .collect();
            let ways = [(true, 1), (false, 7), (true, usize::MAX), (false, 1)];
            let (counting, enough) = ways[depth - 1];
            let mut cursor = GroupCursor::new(lower, upper, depth, counting);
            let mut groups = Groups::default();
            let mut at = 0;
            while cursor
                .next_batch(tree, snap, &filters, enough, &mut groups, &mut work)
                .unwrap()
            {
                for i in 0..groups.len() {
                    let values: Vec<u64> = (0..depth).map(|c| groups.columns[c][i]).collect();
                    let (group, count) = expected.get(at).expect("a group that is not there");
                    assert_eq!(values, *group);
                    assert!(!counting || groups.counts[i] == *count, "{group:?}");
                    at += 1;
                }
            }
            assert_eq!(at, expected.len(), "groups of depth {depth}");
        }
    }
}

/// The versions of quads, by a number of their own.
type Versions = BTreeSet<(Quad, u32)>;

fn has(versions: &Versions, q: &Quad) -> bool {
    versions.range((*q, 0)..=(*q, u32::MAX)).next().is_some()
}

fn of(versions: &Versions, q: &Quad) -> Vec<(Quad, u32)> {
    versions.range((*q, 0)..=(*q, u32::MAX)).copied().collect()
}

fn quads_of(versions: &Versions) -> BTreeSet<Quad> {
    versions.iter().map(|(q, _)| *q).collect()
}

/// A running transaction: what it sees, being what was committed at its start and its own changes.
struct Seat {
    xid: u32,
    cid: u32,
    sees: Versions,
    inserted: Versions,
    deleted: Versions,
}

struct World {
    store: MemStore,
    quads: Quads<MemStore>,
    /// Another session's trees, which remember their inner pages from beginning to end.
    readers: Vec<Tree<MemStore>>,
    txns: Txns,
    committed: Versions,
    versions: u32,
    seats: Vec<Option<Seat>>,
    snapshots: Vec<Option<pgquad_btree::mem::MemSnapshot>>,
}

impl World {
    fn new(fanout: u32, leaf: u32) -> Self {
        let mut options = Options::with_orders(&DEFAULT_ORDERS);
        for o in &mut options.orders {
            o.inner_fanout = fanout;
            o.leaf_quads = leaf;
        }
        let store = MemStore::new(initial_pages(&options).unwrap());
        let meta = Meta::read(&store).unwrap();
        // For some of the pages.
        let remembered = Rc::new(CacheBudget::new(16 << 10));
        let reader = |n| {
            let tree = Tree::new(store.clone(), &meta, n).unwrap();
            tree.with_inner_page_cache(Rc::new(InnerPageCache::new(&remembered)))
        };
        World {
            readers: (0..DEFAULT_ORDERS.len()).map(reader).collect(),
            quads: Quads::open(store.clone()).unwrap(),
            store,
            txns: Txns::default(),
            committed: BTreeSet::new(),
            versions: 0,
            seats: (0..SEATS).map(|_| None).collect(),
            snapshots: (0..SEATS).map(|_| None).collect(),
        }
    }

    /// Every transaction keeps the snapshot of its start (repeatable read), with its own changes.
    fn seat(&mut self, i: usize) -> &mut Seat {
        if self.seats[i].is_none() {
            let xid = self.txns.begin();
            self.seats[i] = Some(Seat {
                xid,
                cid: 1,
                sees: self.committed.clone(),
                inserted: BTreeSet::new(),
                deleted: BTreeSet::new(),
            });
            self.snapshots[i] = Some(self.txns.snapshot(&[xid], 1));
        }
        self.seats[i].as_mut().unwrap()
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Insert(s, list) => {
                self.seat(*s);
                let seat = self.seats[*s].as_mut().unwrap();
                seat.cid += 1;
                let snap = self.snapshots[*s].as_mut().unwrap();
                snap.set_command(seat.cid);
                let session = self.txns.session(&[seat.xid]);
                let writer = Writer {
                    xid: seat.xid,
                    cid: seat.cid,
                    status: &session,
                };
                let mut quads: Vec<Quad> = list.iter().map(|n| quad(*n)).collect();
                self.quads
                    .insert(&mut quads, &writer, Mode::Set(snap))
                    .unwrap();
                for n in list {
                    let q = quad(*n);
                    if !quads.contains(&q) {
                        assert!(has(&seat.sees, &q), "{q:?} was refused, but is not there");
                    } else if has(&seat.deleted, &q) {
                        for v in of(&seat.deleted, &q) {
                            seat.deleted.remove(&v);
                            seat.sees.insert(v);
                        }
                    } else {
                        // The quad may be seen and yet be new: another transaction deletes it.
                        self.versions += 1;
                        seat.inserted.insert((q, self.versions));
                        seat.sees.insert((q, self.versions));
                    }
                    quads.retain(|x| *x != q);
                }
            }
            Step::Delete(s, n) => {
                self.seat(*s);
                let seat = self.seats[*s].as_mut().unwrap();
                seat.cid += 1;
                let snap = self.snapshots[*s].as_mut().unwrap();
                snap.set_command(seat.cid);
                let session = self.txns.session(&[seat.xid]);
                let writer = Writer {
                    xid: seat.xid,
                    cid: seat.cid,
                    status: &session,
                };
                let q = quad(*n);
                match self.quads.delete(&q, &writer, snap).unwrap() {
                    Deletion::Done => {
                        assert!(has(&seat.sees, &q), "deleted {q:?} that was not seen");
                        for v in of(&seat.sees, &q) {
                            seat.sees.remove(&v);
                            seat.deleted.insert(v);
                        }
                    }
                    Deletion::NotFound => assert!(!has(&seat.sees, &q)),
                    Deletion::SelfDeleted { .. } => panic!("deleted earlier in the same command"),
                    Deletion::Conflict { xid, .. } => {
                        assert_ne!(xid, seat.xid);
                        assert!(has(&seat.sees, &q));
                    }
                }
            }
            Step::Lock(s, n) => {
                self.seat(*s);
                let seat = self.seats[*s].as_mut().unwrap();
                seat.cid += 1;
                let snap = self.snapshots[*s].as_mut().unwrap();
                snap.set_command(seat.cid);
                let session = self.txns.session(&[seat.xid]);
                let writer = Writer {
                    xid: seat.xid,
                    cid: seat.cid,
                    status: &session,
                };
                let outcome = self.quads.lock(&quad(*n), &writer, snap).unwrap();
                assert_eq!(has(&seat.sees, &quad(*n)), outcome != Deletion::NotFound);
            }
            Step::Commit(s) => {
                if let Some(seat) = self.seats[*s].take() {
                    self.snapshots[*s] = None;
                    self.txns.commit(seat.xid);
                    self.committed.extend(seat.inserted);
                    for v in &seat.deleted {
                        self.committed.remove(v);
                    }
                }
            }
            Step::Abort(s) => {
                if let Some(seat) = self.seats[*s].take() {
                    self.snapshots[*s] = None;
                    self.txns.abort(seat.xid);
                }
            }
            Step::Check(s, a, b) => {
                self.seat(*s);
                self.check_seat(*s, quad(*a), quad(*b));
            }
            Step::Vacuum => {
                self.quads.reclaim();
                let session = self.txns.session(&[]);
                for tree in self.quads.trees() {
                    tree.vacuum(&session).unwrap();
                }
            }
        }
    }

    fn check_seat(&mut self, s: usize, a: Quad, b: Quad) {
        let Some(seat) = &mut self.seats[s] else {
            return;
        };
        let snap = self.snapshots[s].as_mut().unwrap();
        seat.cid += 1;
        snap.set_command(seat.cid);
        for tree in self.quads.trees().iter().chain(&self.readers) {
            let order = tree.order();
            let (ka, kb) = (key_of(order, &a), key_of(order, &b));
            for (lower, upper) in [(KEY_MIN, KEY_MAX), (ka.min(kb), ka.max(kb))] {
                let mut expected: Vec<Key> = quads_of(&seat.sees)
                    .iter()
                    .map(|q| key_of(order, q))
                    .collect();
                expected.retain(|k| *k >= lower && *k <= upper);
                expected.sort_unstable();
                for direction in [Direction::Forward, Direction::Backward] {
                    let mut cursor = Cursor::new(lower, upper, direction);
                    let mut batch = Batch::new();
                    let mut found = Vec::new();
                    while cursor.next_batch(tree, snap, &mut batch).unwrap() {
                        found.extend((0..batch.len()).map(|i| batch.key(i)));
                    }
                    if direction == Direction::Backward {
                        found.reverse();
                    }
                    if found != expected {
                        let i = found
                            .iter()
                            .zip(&expected)
                            .take_while(|(a, b)| a == b)
                            .count();
                        panic!(
                            "order {order} {direction:?} item {i}: {:?} instead of {:?}",
                            found.get(i),
                            expected.get(i)
                        );
                    }
                }
                let mut cursor = Cursor::new(lower, upper, Direction::Forward);
                assert_eq!(
                    cursor.count_rest(tree, snap).unwrap(),
                    expected.len() as u64
                );
                check_counts(tree, snap, (lower, upper), &expected);
            }
        }
        assert_eq!(self.quads.exists(&a, snap).unwrap(), has(&seat.sees, &a));
        let first = &self.readers[0];
        let key = key_of(first.order(), &a);
        assert_eq!(first.exists(&key, snap).unwrap(), has(&seat.sees, &a));
    }

    /// The invariants of all orders, and that they agree.
    fn verify(&self) {
        let snap = self.txns.snapshot(&[], 1);
        let mut first = None;
        for tree in self.quads.trees() {
            let v = tree.verify(&snap).unwrap();
            assert_eq!(v.problems, vec![], "order {}", tree.order());
            assert_eq!(v.incomplete_splits, 0);
            assert_eq!(v.visible, quads_of(&self.committed).len() as u64);
            let sum = (v.visible, v.digest);
            assert_eq!(*first.get_or_insert(sum), sum);
        }
    }

    fn finish(&mut self) {
        for s in 0..SEATS {
            self.check_seat(s, quad(5), quad(300));
            self.run(&Step::Commit(s));
        }
        self.verify();
        // With nobody left, a vacuum leaves exactly the committed quads, counted exactly.
        let session = self.txns.session(&[]);
        let committed = quads_of(&self.committed);
        for tree in self.quads.trees() {
            let v = tree.vacuum(&session).unwrap();
            assert_eq!(v.live, committed.len() as u64);
            assert_eq!((v.dead, v.oldest_xid), (0, 0));
            let all: Vec<Key> = {
                let mut k: Vec<Key> = committed.iter().map(|q| key_of(tree.order(), q)).collect();
                k.sort_unstable();
                k
            };
            for w in [
                (0, all.len()),
                (all.len() / 3, all.len() / 2),
                (all.len() / 2, all.len()),
            ] {
                let (Some(lo), Some(hi)) = (all.get(w.0), all.get(w.1.wrapping_sub(1))) else {
                    continue;
                };
                assert_eq!(tree.range_count(lo, hi).unwrap(), (w.1 - w.0) as u64);
            }
            assert_eq!(
                tree.range_count(&KEY_MIN, &KEY_MAX).unwrap(),
                all.len() as u64
            );
        }
        self.verify();
        let snap = self.txns.snapshot(&[], 1);
        let mut used: BTreeSet<u32> = BTreeSet::from([0]);
        for tree in self.quads.trees() {
            let v = tree.verify(&snap).unwrap();
            assert_eq!(v.inexact_counts, 0);
            let stats = tree.stats().unwrap();
            if stats.height > 1 {
                assert_eq!(v.all_visible, stats.leaves);
                let mut work = Work::default();
                let all = tree
                    .count_visible(&KEY_MIN, &KEY_MAX, &[], &snap, &mut work)
                    .unwrap();
                assert_eq!(all, v.visible);
                let counted = Work {
                    leaves: 0,
                    skipped: stats.leaves,
                };
                assert_eq!(work, counted);
            }
            used.extend(v.pages);
        }
        self.quads.reclaim();
        assert_eq!(
            used.len() + self.store.free_pages(),
            self.store.pages(),
            "lost pages"
        );
    }
}

/// `PROPTEST_CASES`, or few enough for every build.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 2000, ..ProptestConfig::default() })]
    #[test]
    fn histories(fanout in prop_oneof![Just(0u32), 4u32..9], leaf in prop_oneof![Just(0u32), 4u32..20], steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new(fanout, leaf);
        for s in &steps {
            world.run(s);
        }
        world.finish();
    }
}

#[test]
fn small_set() {
    let mut world = World::new(4, 4);
    let all: Vec<u16> = (0..400).collect();
    world.run(&Step::Insert(0, all.clone()));
    world.run(&Step::Check(0, 3, 7));
    world.run(&Step::Commit(0));
    world.verify();
    assert_eq!(
        quad_of(DEFAULT_ORDERS[1], &key_of(DEFAULT_ORDERS[1], &quad(9))),
        quad(9)
    );
    for n in &all {
        world.run(&Step::Delete(1, *n));
    }
    world.run(&Step::Commit(1));
    world.run(&Step::Insert(0, all));
    world.finish();
    assert_eq!(Meta::read(&world.store).unwrap().orders().len(), 3);
}

#[test]
fn a_leaf_with_a_deletion_taken_back_settles() {
    let mut world = World::new(0, 4);
    let all = [
        16, 24, 66, 41, 3, 32, 86, 110, 40, 12, 27, 56, 52, 61, 191, 71, 0,
    ];
    world.run(&Step::Insert(2, all.to_vec()));
    world.run(&Step::Commit(2));
    world.run(&Step::Vacuum);
    world.run(&Step::Delete(0, 61));
    world.run(&Step::Insert(0, vec![61]));
    world.finish();
}
