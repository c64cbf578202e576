//! Readers, writers and vacuum at the same time, on pages that really lock.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, Batch, CacheBudget, Cursor, Deletion, Direction, GroupCursor, Groups,
    InnerPageCache, Meta, Mode, Options, Quad, Quads, Tree, Work, Writer, DEFAULT_ORDERS, KEY_MAX,
    KEY_MIN,
};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as i64
    }
}

/// Quads come in pairs, inserted and deleted together.
fn pair(n: i64) -> [Quad; 2] {
    [[n * 31 % 257, 1, n, 0], [n * 17 % 263, 2, n, 0]]
}

#[test]
fn pairs_stay_together() {
    for (fanout, leaf, seconds) in [(4, 4, 4), (5, 30, 3), (0, 0, 2)] {
        run(fanout, leaf, Duration::from_secs(seconds) / 2);
    }
}

fn run(fanout: u32, leaf: u32, time: Duration) {
    let mut options = Options::with_orders(&DEFAULT_ORDERS);
    for o in &mut options.orders {
        o.inner_fanout = fanout;
        o.leaf_quads = leaf;
    }
    let store = MemStore::new(initial_pages(&options).unwrap());
    let txns = Txns::default();
    let stop = AtomicBool::new(false);
    let changes = AtomicUsize::new(0);
    let scans = AtomicUsize::new(0);
    let mut left: Vec<BTreeSet<i64>> = Vec::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3i64)
            .map(|w| {
                let (store, txns, stop, changes) = (&store, &txns, &stop, &changes);
                scope.spawn(move || write(w, store, txns, stop, changes))
            })
            .collect();
        for _ in 0..2 {
            let (store, txns, stop, scans) = (&store, &txns, &stop, &scans);
            scope.spawn(move || read(store, txns, stop, scans));
        }
        let (vstore, vtxns, vstop) = (&store, &txns, &stop);
        scope.spawn(move || {
            let quads = Quads::open(vstore.clone()).unwrap();
            while !vstop.load(Ordering::Relaxed) {
                quads.reclaim();
                let session = vtxns.session(&[]);
                for tree in quads.trees() {
                    tree.vacuum(&session).unwrap();
                }
            }
        });
        let start = Instant::now();
        // On a busy machine longer, until there is something to compare.
        let enough = || changes.load(Ordering::Relaxed) > 20 && scans.load(Ordering::Relaxed) > 2;
        let goes_on = || start.elapsed() < time || !enough() && start.elapsed() < 60 * time;
        while goes_on() && writers.iter().all(|w| !w.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        left.extend(writers.into_iter().map(|w| w.join().unwrap()));
    });
    assert!(changes.load(Ordering::Relaxed) > 20 && scans.load(Ordering::Relaxed) > 2);
    let expected = left.iter().map(|l| 2 * l.len() as u64).sum::<u64>();
    let quads = Quads::open(store.clone()).unwrap();
    let session = txns.session(&[]);
    let mut used = BTreeSet::from([0]);
    let mut digest = None;
    for tree in quads.trees() {
        let snap = txns.snapshot(&[], 1);
        assert_eq!(tree.verify(&snap).unwrap().visible, expected);
        drop(snap);
        assert_eq!(tree.vacuum(&session).unwrap().live, expected);
        let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
        assert_eq!(v.problems, vec![]);
        assert_eq!(
            (v.visible, v.entries, v.incomplete_splits),
            (expected, expected, 0)
        );
        assert_eq!(v.inexact_counts, 0);
        assert_eq!(*digest.get_or_insert(v.digest), v.digest);
        used.extend(v.pages);
    }
    quads.reclaim();
    assert_eq!(used.len() + store.free_pages(), store.pages(), "lost pages");
}

/// Changes pairs of its own; returns the ones that are left.
fn write(
    w: i64,
    store: &MemStore,
    txns: &Txns,
    stop: &AtomicBool,
    changes: &AtomicUsize,
) -> BTreeSet<i64> {
    let quads = Quads::open(store.clone()).unwrap();
    let mut rng = Rng(w as u64 * 77 + 5);
    let mut mine = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        let xid = txns.begin();
        let mut next = mine.clone();
        {
            let (session, snap) = (txns.session(&[xid]), txns.snapshot(&[xid], 1));
            let writer = Writer {
                xid,
                cid: 0,
                status: &session,
            };
            let grow = mine.len() < 150 || rng.below(2) == 0;
            for _ in 0..1 + rng.below(6) {
                let n = rng.below(400) * 3 + w;
                if grow && next.insert(n) {
                    quads
                        .insert(&mut pair(n).to_vec(), &writer, Mode::Set(&snap))
                        .unwrap();
                } else if !grow && mine.contains(&n) && next.remove(&n) {
                    for q in pair(n) {
                        assert_eq!(quads.delete(&q, &writer, &snap).unwrap(), Deletion::Done);
                    }
                }
            }
        }
        if rng.below(8) == 0 {
            txns.abort(xid);
        } else {
            txns.commit(xid);
            mine = next;
        }
        changes.fetch_add(1, Ordering::Relaxed);
    }
    mine
}

/// Every snapshot shows both quads of a pair or none, in every order and direction, and whether or not inner pages are
/// remembered.
fn read(store: &MemStore, txns: &Txns, stop: &AtomicBool, scans: &AtomicUsize) {
    let meta = Meta::read(store).unwrap();
    let tree = |n| Tree::new(store.clone(), &meta, n).unwrap();
    let orders = 0..DEFAULT_ORDERS.len();
    let mut trees: Vec<_> = orders.clone().map(tree).collect();
    let remembered = Rc::new(CacheBudget::new(1 << 20));
    trees.extend(
        orders.map(|n| tree(n).with_inner_page_cache(Rc::new(InnerPageCache::new(&remembered)))),
    );
    let mut batch = Batch::new();
    while !stop.load(Ordering::Relaxed) {
        let snap = txns.snapshot(&[], 1);
        let mut seen = None;
        for tree in &trees {
            for direction in [Direction::Forward, Direction::Backward] {
                let mut cursor = Cursor::new(KEY_MIN, KEY_MAX, direction);
                let mut found: Vec<Quad> = Vec::new();
                let mut keys = Vec::new();
                while cursor.next_batch(tree, &snap, &mut batch).unwrap() {
                    keys.extend((0..batch.len()).map(|i| batch.key(i)));
                }
                if direction == Direction::Backward {
                    keys.reverse();
                }
                assert!(keys.windows(2).all(|w| w[0] < w[1]));
                found.extend(keys.iter().map(|k| pgquad_btree::quad_of(tree.order(), k)));
                found.sort_unstable();
                assert_eq!(*seen.get_or_insert_with(|| found.clone()), found);
                tree.range_count(&KEY_MIN, &KEY_MAX).unwrap();
                tree.range_estimate(&KEY_MIN, &KEY_MAX).unwrap();
                let mut work = Work::default();
                let counted = tree.count_visible(&KEY_MIN, &KEY_MAX, &[], &snap, &mut work);
                assert_eq!(counted.unwrap(), keys.len() as u64);
                let mut cursor = GroupCursor::new(KEY_MIN, KEY_MAX, 1, true);
                let mut groups = Groups::default();
                let mut sum = 0;
                while cursor
                    .next_batch(tree, &snap, &[], 10, &mut groups, &mut work)
                    .unwrap()
                {
                    sum += groups.counts.iter().sum::<u64>();
                }
                assert_eq!(sum, keys.len() as u64);
            }
        }
        let all: BTreeSet<Quad> = seen.unwrap_or_default().into_iter().collect();
        for q in &all {
            assert!(pair(q[2]).iter().all(|p| all.contains(p)), "half a pair");
        }
        scans.fetch_add(1, Ordering::Relaxed);
    }
}
