//! Remembered inner pages: they save looking at pages, and are never believed when they are old.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, Batch, CacheBudget, InnerPageCache, Key, Meta, Mode, Options, Order, Probe,
    Quads, Tree, DEFAULT_ORDERS, FROZEN_XID, KEY_MAX, KEY_MIN,
};
use std::rc::Rc;

const LEAF: u64 = 4;

fn key(n: u64) -> Key {
    const ZERO: u64 = 1 << 63;
    [ZERO + n / 10, ZERO + n % 10, ZERO, ZERO]
}

/// A tree of one order with many levels that holds the keys of even numbers below `n`, and its pages.
fn store(n: u64) -> (MemStore, Meta) {
    let orders: [Order; 1] = [DEFAULT_ORDERS[0]];
    let mut options = Options::with_orders(&orders);
    for o in &mut options.orders {
        (o.inner_fanout, o.leaf_quads) = (4, LEAF as u32);
    }
    let store = MemStore::new(initial_pages(&options).unwrap());
    let quads = Quads::open(store.clone()).unwrap();
    let even = (0..n).step_by(2).map(key);
    quads
        .tree(0)
        .unwrap()
        .build(even, FROZEN_XID, 0, 1.0)
        .unwrap();
    let meta = Meta::read(&store).unwrap();
    (store, meta)
}

fn reader(store: &MemStore, meta: &Meta) -> Tree<MemStore> {
    reader_within(store, meta, &Rc::new(CacheBudget::new(1 << 20)))
}

fn reader_within(store: &MemStore, meta: &Meta, budget: &Rc<CacheBudget>) -> Tree<MemStore> {
    let tree = Tree::new(store.clone(), meta, 0).unwrap();
    tree.with_inner_page_cache(Rc::new(InnerPageCache::new(budget)))
}

fn found(tree: &Tree<MemStore>, txns: &Txns, range: (Key, Key)) -> usize {
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let (mut probe, snap) = (Probe::new(1), txns.snapshot(&[], 1));
    let mut rows = 0;
    loop {
        let more = probe
            .read(tree, &snap, &[range], 1000, &mut batch, &mut spans)
            .unwrap();
        rows += batch.len();
        if !more {
            return rows;
        }
    }
}

#[test]
fn estimates_are_off_by_a_leaf_at_most() {
    let (store, meta) = store(4000);
    let tree = reader(&store, &meta);
    for (from, to) in [
        (0, 3999),
        (1, 2),
        (10, 10),
        (17, 30),
        (100, 260),
        (100, 999),
        (3990, 9999),
    ] {
        let exact = tree.range_count(&key(from), &key(to)).unwrap();
        let about = tree.range_estimate(&key(from), &key(to)).unwrap();
        assert!(
            exact.abs_diff(about) <= LEAF,
            "{from}..{to}: {about} for {exact}"
        );
        if exact < 8 {
            assert_eq!(exact, about);
        }
    }
    assert_eq!(tree.range_estimate(&key(9), &key(8)).unwrap(), 0);
}

#[test]
fn estimates_of_many_ranges_are_those_of_each() {
    let (store, meta) = store(4000);
    let tree = reader(&store, &meta);
    for (step, width) in [(1, 1), (1, 0), (3, 2), (50, 7), (400, 900)] {
        let mut ranges: Vec<(Key, Key)> = (0..5000)
            .step_by(step)
            .map(|n| (key(n), key(n + width)))
            .collect();
        ranges.push((key(9), key(8)));
        for _ in 0..2 {
            let mut found = Vec::new();
            tree.range_estimates(&ranges, |n, count| found.push((n, count)))
                .unwrap();
            let each = ranges.iter().enumerate();
            let each = each.map(|(n, (low, high))| (n, tree.range_estimate(low, high).unwrap()));
            assert_eq!(found, each.collect::<Vec<_>>());
            ranges.reverse();
        }
    }
}

#[test]
fn old_copies_are_made_anew() {
    let (store, meta) = store(400);
    let txns = Txns::default();
    let old = reader(&store, &meta);
    assert_eq!(found(&old, &txns, (KEY_MIN, KEY_MAX)), 200);
    // Splits, up to the root.
    let quads = Quads::open(store.clone()).unwrap();
    let odd: Vec<Key> = (0..4000)
        .filter(|n| n % 2 == 1 || *n >= 400)
        .map(key)
        .collect();
    let tree = quads.tree(0).unwrap();
    txns.run(|writer, snap| tree.insert(&odd, writer, Mode::Set(snap), &mut Vec::new()))
        .unwrap();
    for n in (0..4000).rev().step_by(7) {
        assert_eq!(found(&old, &txns, (key(n), key(n))), 1, "key {n}");
        assert_eq!(old.range_estimate(&key(n), &key(n)).unwrap(), 1, "key {n}");
    }
    assert_eq!(found(&old, &txns, (KEY_MIN, KEY_MAX)), 4000);
    // Leaves given up.
    let most: Vec<Key> = (0..4000).filter(|n| n % 100 != 0).map(key).collect();
    txns.run(|writer, snap| tree.mark_deleted(&most, writer, snap))
        .unwrap();
    tree.vacuum(&txns.session(&[])).unwrap();
    quads.reclaim();
    for n in 0..4000 {
        assert_eq!(
            found(&old, &txns, (key(n), key(n))),
            usize::from(n % 100 == 0),
            "key {n}"
        );
    }
    assert_eq!(found(&old, &txns, (KEY_MIN, KEY_MAX)), 40);
}

/// Looks every even number below `n` up, in an order that jumps from page to page.
fn look_all_up(tree: &Tree<MemStore>, n: u64) {
    let txns = Txns::default();
    for i in 0..n / 2 {
        let even = i * 1009 % (n / 2) * 2;
        assert_eq!(found(tree, &txns, (key(even), key(even))), 1, "key {even}");
    }
}

#[test]
fn trees_share_a_budget() {
    let (store, meta) = store(4000);
    let roomy = Rc::new(CacheBudget::new(1 << 20));
    let tree = reader_within(&store, &meta, &roomy);
    look_all_up(&tree, 4000);
    let all = roomy.used();
    assert!(!roomy.is_full());
    look_all_up(&tree, 4000);
    assert_eq!(roomy.used(), all, "each page is remembered once");
    drop(tree);
    assert_eq!(roomy.used(), 0);

    let scarce = Rc::new(CacheBudget::new(all));
    let (one, other) = (
        reader_within(&store, &meta, &scarce),
        reader_within(&store, &meta, &scarce),
    );
    look_all_up(&one, 4000);
    assert!(scarce.is_full());
    assert!(scarce.used() <= all);
    let full = scarce.used();
    look_all_up(&other, 4000);
    look_all_up(&one, 4000);
    // Besides what is remembered, each tree has the page that it looked at last.
    let page = all / 100;
    assert!(scarce.used() <= all + 2 * page, "the limit holds");
    assert!(scarce.used() + 2 * page >= full, "nothing is forgotten");
    drop(one);
    assert!(!scarce.is_full(), "dropping a tree makes room");
    look_all_up(&other, 4000);
    assert!(scarce.is_full());
    drop(other);
    assert_eq!(scarce.used(), 0);
}

#[test]
fn replaced_copies_are_not_counted() {
    let (store, meta) = store(400);
    let budget = Rc::new(CacheBudget::new(1 << 20));
    let old = reader_within(&store, &meta, &budget);
    look_all_up(&old, 400);
    let quads = Quads::open(store.clone()).unwrap();
    let (mut from, txns) = (400, Txns::default());
    while from < 4000 {
        let more: Vec<Key> = (from..from + 400).step_by(2).map(key).collect();
        let tree = quads.tree(0).unwrap();
        txns.run(|writer, snap| tree.insert(&more, writer, Mode::Set(snap), &mut Vec::new()))
            .unwrap();
        from += 400;
        for even in (0..from).step_by(2) {
            assert_eq!(found(&old, &txns, (key(even), key(even))), 1);
        }
    }
    let once = Rc::new(CacheBudget::new(1 << 20));
    let new = reader_within(&store, &meta, &once);
    for even in (0..from).step_by(2) {
        assert_eq!(found(&new, &txns, (key(even), key(even))), 1);
    }
    assert!(budget.used() <= once.used() + once.used() / 10);
}
