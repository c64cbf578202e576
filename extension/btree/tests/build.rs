//! Bulk build, probes, corrupt pages, and the limits.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, prefix_range, Batch, BlockNo, Cursor, Deletion, Direction, Error, Key,
    Mode, Options, Page, PageStore, Probe, Quad, Quads, Writer, COUNTS, DEFAULT_ORDERS, FROZEN_XID,
    KEY_MAX, KEY_MIN,
};
use proptest::prelude::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

fn open(fanout: u32, leaf: u32) -> (MemStore, Quads<MemStore>) {
    let mut options = Options::with_orders(&DEFAULT_ORDERS);
    for o in &mut options.orders {
        o.inner_fanout = fanout;
        o.leaf_quads = leaf;
    }
    let store = MemStore::new(initial_pages(&options).unwrap());
    (store.clone(), Quads::open(store).unwrap())
}

fn keys(n: u64) -> Vec<Key> {
    let mut keys: Vec<Key> = (0..n)
        .map(|i| [i / 7, i % 7 % 3, (i % 5) << 59 | (i * 7919 % 1009), i % 2])
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn scan(tree: &pgquad_btree::Tree<MemStore>, txns: &Txns, lower: Key, upper: Key) -> Vec<Key> {
    let snap = txns.snapshot(&[], 1);
    let (mut batch, mut found) = (Batch::new(), Vec::new());
    let mut cursor = Cursor::new(lower, upper, Direction::Forward);
    while cursor.next_batch(tree, &snap, &mut batch).unwrap() {
        found.extend((0..batch.len()).map(|i| batch.key(i)));
    }
    found
}

#[test]
fn build_all_sizes() {
    let txns = Txns::default();
    for (fanout, leaf) in [(0, 0), (4, 4), (7, 33), (256, 0)] {
        for n in [0, 1, 3, 4, 5, 100, 3000, 20_000] {
            let (_, quads) = open(fanout, leaf);
            let tree = quads.tree(1).unwrap();
            let keys = keys(n);
            let built = tree
                .build(keys.iter().copied(), FROZEN_XID, 0, 0.9)
                .unwrap();
            assert_eq!(built, keys.len() as u64);
            let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
            assert_eq!(v.problems, vec![]);
            assert_eq!((v.visible, v.inexact_counts), (built, 0));
            assert_eq!(scan(tree, &txns, KEY_MIN, KEY_MAX), keys);
            let stats = tree.stats().unwrap();
            assert_eq!(stats.entries, built);
            for (i, j) in [(0, keys.len() / 2), (keys.len() / 3, keys.len())] {
                let (Some(lo), Some(hi)) = (keys.get(i), keys.get(j.wrapping_sub(1))) else {
                    continue;
                };
                assert_eq!(tree.range_count(lo, hi).unwrap(), (j.max(i) - i) as u64);
            }
            if n > 0 {
                let again = tree.build(keys.iter().copied(), FROZEN_XID, 0, 0.9);
                assert_eq!(again, Err(Error::NotEmpty));
            }
        }
    }
}

#[test]
fn trees_of_one_file_are_built_side_by_side() {
    let txns = Txns::default();
    for (fanout, leaf) in [(0, 0), (4, 4), (7, 33)] {
        for n in [0, 1, 5, 3000, 60_000] {
            let (store, quads) = open(fanout, leaf);
            let of: Vec<Vec<Key>> = (0..3)
                .map(|i| {
                    let order = quads.trees()[i].order();
                    let all = keys(n);
                    let mut keys: Vec<Key> = all
                        .iter()
                        .map(|k| key_of(order, &k.map(|v| v as i64)))
                        .collect();
                    keys.sort_unstable();
                    keys
                })
                .collect();
            let mut builds: Vec<_> = quads
                .trees()
                .iter()
                .zip(&of)
                .map(|(tree, keys)| {
                    let leaves = tree.leaves(keys.iter().copied(), FROZEN_XID, 0, 0.9);
                    (tree.start_build(0.9).unwrap(), leaves, false)
                })
                .collect();
            // Leaves of all trees in turn, of one tree faster than of the others.
            while builds.iter().any(|(.., done)| !done) {
                for (i, (build, leaves, done)) in builds.iter_mut().enumerate() {
                    for _ in 0..=i * 5 {
                        match leaves.next() {
                            Some(leaf) => build.push(leaf.unwrap()),
                            None => *done = true,
                        }
                    }
                }
            }
            for (build, ..) in builds {
                assert_eq!(build.finish().unwrap(), of[0].len() as u64);
            }
            let mut used = 1;
            for (tree, keys) in quads.trees().iter().zip(&of) {
                let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
                assert_eq!(v.problems, vec![]);
                assert_eq!(&scan(tree, &txns, KEY_MIN, KEY_MAX), keys);
                used += v.pages.len();
            }
            // No page is lost, and few are left over.
            let free = (1..store.blocks())
                .filter(|b| store.read(*b).is_free())
                .count();
            assert_eq!(used + free, store.pages());
            assert_eq!(quads.reclaim(), free as u64);
            assert!(free <= 3 + used / 10, "{free} of {used} pages are free");
        }
    }
}

#[test]
fn every_leaf_of_a_built_tree_can_settle() {
    // Parents as full as can be, of many short children.
    let (_, quads) = open(0, 20);
    let txns = Txns::default();
    let tree = quads.tree(0).unwrap();
    let keys: Vec<Key> = (0..40_000).map(|i| [i / 3, i % 3, i * 7 % 11, 0]).collect();
    let (built, new): (Vec<_>, Vec<_>) = (0..keys.len()).partition(|i| i % 4 > 0);
    let of = |rows: &[usize]| rows.iter().map(|&i| keys[i]).collect::<Vec<Key>>();
    let set_visibility_marks = || {
        tree.vacuum(&txns.session(&[])).unwrap();
        let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
        assert_eq!(v.problems, vec![]);
        assert_eq!(v.all_visible, tree.stats().unwrap().leaves);
    };

    txns.run(|writer, _| tree.build(of(&built).into_iter(), writer.xid, 0, 1.0))
        .unwrap();
    set_visibility_marks();

    // Leaves split, and their parents, whose marks survive.
    txns.run(|writer, snap| {
        let few = &of(&new)[3000..4000];
        tree.insert(few, writer, Mode::Set(snap), &mut Vec::new())
            .unwrap();
        let (leaves, all_visible) = (
            tree.stats().unwrap().leaves,
            tree.verify(snap).unwrap().all_visible,
        );
        assert!(all_visible * 4 > leaves * 3, "{all_visible} of {leaves}");
    });
    set_visibility_marks();
}

#[test]
fn a_wide_child_among_many_narrow_ones() {
    let (_, quads) = open(0, 4);
    let txns = Txns::default();
    let tree = quads.tree(0).unwrap();
    // A column of sixteen values far apart takes four bits a child; with a seventeenth, nearly all of 64.
    let far_apart = |n: u64| ((n % 16) << 60) | (n % 16 * 0x1234_5678_9abc);
    let narrow: Vec<Key> = (0..16_384)
        .map(|n| {
            [
                far_apart(n / 1024),
                far_apart(n / 64),
                far_apart(n / 4),
                n % 4,
            ]
        })
        .collect();
    tree.build(narrow.iter().copied(), FROZEN_XID, 0, 1.0)
        .unwrap();
    let other = u64::MAX - 12_345;
    let wide: Vec<Key> = (0..64)
        .map(|n| [far_apart(7), other, other, other + n])
        .collect();
    for key in &wide {
        txns.run(|writer, snap| tree.insert(&[*key], writer, Mode::Set(snap), &mut Vec::new()))
            .unwrap();
    }
    let mut all = [narrow, wide].concat();
    all.sort_unstable();
    assert_eq!(scan(tree, &txns, KEY_MIN, KEY_MAX), all);
    let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
    assert_eq!(v.problems, vec![]);
}

#[test]
fn a_merge_that_finds_nothing_new_changes_nothing() {
    let txns = Txns::default();
    let (_, quads) = open(0, 0);
    let tree = quads.tree(0).unwrap();
    let keys = keys(20_000);
    tree.build(keys.iter().copied(), FROZEN_XID, 0, 1.0)
        .unwrap();
    let before = tree.stats().unwrap();
    let new = txns
        .run(|writer, snap| tree.insert(&keys, writer, Mode::Set(snap), &mut Vec::new()))
        .unwrap();
    assert_eq!(new, 0);
    assert_eq!(tree.stats().unwrap(), before);
}

#[test]
fn a_build_is_seen_when_its_transaction_is() {
    let (_, quads) = open(0, 0);
    let txns = Txns::default();
    let xid = txns.begin();
    let tree = quads.tree(0).unwrap();
    tree.build(keys(5000).into_iter(), xid, 3, 0.9).unwrap();
    assert_eq!(scan(tree, &txns, KEY_MIN, KEY_MAX), Vec::<Key>::new());
    {
        let own = txns.snapshot(&[xid], 4);
        let mut cursor = Cursor::new(KEY_MIN, KEY_MAX, Direction::Forward);
        assert_eq!(
            cursor.count_rest(tree, &own).unwrap(),
            keys(5000).len() as u64
        );
    }
    txns.abort(xid);
    assert_eq!(scan(tree, &txns, KEY_MIN, KEY_MAX), Vec::<Key>::new());
    let v = tree.vacuum(&txns.session(&[])).unwrap();
    assert_eq!((v.live, v.leaves), (0, 1));
    assert_eq!(tree.stats().unwrap().height, 1);
    assert_eq!(
        tree.build([[3; 4], [2; 4]].into_iter(), FROZEN_XID, 0, 1.0),
        Err(Error::Unsorted)
    );
}

#[test]
fn merge_into_a_built_tree() {
    for (fanout, leaf) in [(0, 0), (5, 9)] {
        let (_, quads) = open(fanout, leaf);
        let txns = Txns::default();
        let tree = quads.tree(0).unwrap();
        let all = keys(30_000);
        tree.build(all.iter().copied().step_by(3), FROZEN_XID, 0, 1.0)
            .unwrap();
        let mut inserted = Vec::new();
        let n = txns
            .run(|writer, snap| tree.insert(&all, writer, Mode::Set(snap), &mut inserted))
            .unwrap();
        assert_eq!(n, all.len() - all.len().div_ceil(3));
        assert!(inserted
            .iter()
            .enumerate()
            .all(|(i, new)| *new == (i % 3 != 0)));
        assert_eq!(scan(tree, &txns, KEY_MIN, KEY_MAX), all);
        let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
        assert_eq!(v.problems, vec![]);
        if leaf == 0 {
            assert!(tree.stats().unwrap().leaf_fill() > 0.4);
        }
    }
}

/// A batch that grows every leaf by a third, so that none splits, is known to all their ancestors: those of several
/// parents, on several levels.
#[test]
fn ancestors_learn_what_a_batch_adds() {
    let (_, quads) = open(5, 400);
    let txns = Txns::default();
    let tree = quads.tree(0).unwrap();
    let key = |i: u64| [i, 0, 0, 0];
    let built = (0..30_000).filter(|i| i % 4 != 0).map(key);
    tree.build(built, FROZEN_XID, 0, 0.7).unwrap();
    let leaves = tree.stats().unwrap().leaves;
    let more: Vec<Key> = (0..30_000).step_by(4).map(key).collect();
    let inserted = txns.run(|writer, snap| {
        tree.insert(&more, writer, Mode::Set(snap), &mut Vec::new())
            .unwrap()
    });
    assert_eq!((inserted, tree.stats().unwrap().leaves), (7500, leaves));
    let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
    assert_eq!((v.problems, v.inexact_counts), (vec![], 0));
    assert_eq!(tree.range_count(&KEY_MIN, &KEY_MAX).unwrap(), 30_000);
}

/// A leaf with a long tail looks as if it had room for few keys more. So it takes a part of a batch on one page, which
/// is to be reported, and splits with the rest, which is reported at once.
#[test]
fn a_leaf_that_grows_and_splits_in_one_batch_is_counted_once() {
    let (_, quads) = open(0, 0);
    let txns = Txns::default();
    let tree = quads.tree(0).unwrap();
    let insert = |keys: Vec<Key>| {
        txns.run(|writer, snap| {
            tree.insert(&keys, writer, Mode::Set(snap), &mut Vec::new())
                .unwrap()
        })
    };
    // Leaves of about 100 narrow keys.
    let built = tree.build((0..1000).map(|i| [i << 20, 0, 0, 0]), FROZEN_XID, 0, 0.02);
    let mut n = built.unwrap() as usize;
    for from in (0..120).step_by(12) {
        n += insert((from..from + 12).map(|i| [i + 1, 0, 0, 0]).collect());
    }
    n += insert((1000..13_000).map(|i| [i, 0, 0, 0]).collect());
    let v = tree.verify(&txns.snapshot(&[], 1)).unwrap();
    assert_eq!((v.problems, v.visible), (vec![], n as u64));
    let counted = tree.range_count(&KEY_MIN, &KEY_MAX).unwrap();
    assert!(counted.abs_diff(n as u64) <= 16, "{counted} of {n}");
}

#[test]
fn deleting_everything_gives_the_pages_back() {
    let (store, quads) = open(0, 0);
    let txns = Txns::default();
    let list: Vec<Quad> = (0..20_000)
        .map(|i| [i / 5, i % 5, i * 7919 % 100_003, 0])
        .collect();
    for tree in quads.trees() {
        let mut keys: Vec<Key> = list.iter().map(|q| key_of(tree.order(), q)).collect();
        keys.sort_unstable();
        tree.build(keys.into_iter(), FROZEN_XID, 0, 0.93).unwrap();
    }
    let pages = store.pages();
    txns.run(|writer, snap| {
        for q in &list {
            assert_eq!(quads.delete(q, writer, snap).unwrap(), Deletion::Done);
        }
    });
    // One transaction's deletions of a page share a bitmap, so that pages need not split for them.
    assert!(
        store.pages() < pages + 5,
        "{pages} pages became {}",
        store.pages()
    );
    for tree in quads.trees() {
        let v = tree.vacuum(&txns.session(&[])).unwrap();
        assert_eq!((v.live, v.dead, v.leaves), (0, 0, 1));
    }
    quads.reclaim();
    assert_eq!(store.free_pages() + 1 + quads.trees().len(), store.pages());
}

#[test]
fn pages_of_another_format_are_refused() {
    let (store, _) = open(0, 0);
    let mut page: Page = store.read(0).clone();
    let at = 8192 - 80 + 2;
    page.0[at] -= 1;
    let (block, version) = (0, page.0[at]);
    store.overwrite(block, page);
    let error = Quads::open(store).err();
    assert_eq!(error, Some(Error::OtherFormat { block, version }));
}

#[test]
fn versions_of_one_key_have_a_limit() {
    let (_, quads) = open(0, 0);
    let txns = Txns::default();
    let mut xids = Vec::new();
    let quad = [1, 2, 3, 4];
    let error = loop {
        let xid = txns.begin();
        xids.push(xid);
        let (session, snap) = (txns.session(&[xid]), txns.snapshot(&[xid], 1));
        let writer = Writer {
            xid,
            cid: 0,
            status: &session,
        };
        match quads.insert(&mut vec![quad], &writer, Mode::Set(&snap)) {
            Ok(n) => assert_eq!(n, 1),
            Err(e) => break e,
        }
        assert!(xids.len() < 1000);
    };
    assert!(matches!(error, Error::TooManyVersions { .. }));
    assert!(xids.len() > 100);
    let failed = xids.pop().unwrap();
    txns.abort(failed);
    for xid in xids {
        txns.commit(xid);
    }
    assert!(quads.exists(&quad, &txns.snapshot(&[], 1)).unwrap());
    let v = quads.tree(0).unwrap().vacuum(&txns.session(&[])).unwrap();
    assert_eq!(v.live, 1);
}

fn probes(tree: &pgquad_btree::Tree<MemStore>, txns: &Txns, ranges: &[(Key, Key)], enough: usize) {
    let snap = txns.snapshot(&[], 1);
    let mut found: Vec<Vec<Key>> = vec![Vec::new(); ranges.len()];
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let mut probe = Probe::new(0b1111);
    loop {
        let more = probe
            .read(tree, &snap, ranges, enough, &mut batch, &mut spans)
            .unwrap();
        let mut row = 0;
        for span in &spans {
            for i in row..span.end as usize {
                found[span.range as usize].push(batch.key(i));
            }
            row = span.end as usize;
        }
        assert_eq!(row, batch.len());
        if !more {
            break;
        }
    }
    for (r, (lower, upper)) in ranges.iter().enumerate() {
        assert_eq!(found[r], scan(tree, txns, *lower, *upper), "range {r}");
    }
}

/// Reads with counts in some columns: their rows stand for the keys that a scan finds, in its order.
fn counted_probes(
    tree: &pgquad_btree::Tree<MemStore>,
    txns: &Txns,
    ranges: &[(Key, Key)],
    enough: usize,
) {
    let snap = txns.snapshot(&[], 1);
    for mask in [0b0000, 0b0001, 0b0010, 0b0101, 0b1111] {
        let of_mask = |key: Key| -> Key {
            std::array::from_fn(|c| if mask >> c & 1 == 0 { 0 } else { key[c] })
        };
        let mut found: Vec<Vec<Key>> = vec![Vec::new(); ranges.len()];
        let (mut batch, mut spans) = (Batch::new(), Vec::new());
        let mut probe = Probe::new(mask | COUNTS);
        let mut more = true;
        while more {
            more = probe
                .read(tree, &snap, ranges, enough, &mut batch, &mut spans)
                .unwrap();
            assert_eq!(batch.counts.len(), batch.len());
            let mut row = 0;
            for span in &spans {
                for i in row..span.end as usize {
                    assert!(i == row || batch.key(i) != batch.key(i - 1));
                    let keys = std::iter::repeat_n(batch.key(i), batch.counts[i] as usize);
                    found[span.range as usize].extend(keys);
                }
                row = span.end as usize;
            }
            assert_eq!(row, batch.len());
        }
        for (r, (lower, upper)) in ranges.iter().enumerate() {
            let keys = scan(tree, txns, *lower, *upper).into_iter();
            assert_eq!(found[r], keys.map(of_mask).collect::<Vec<_>>(), "range {r}");
        }
    }
}

#[test]
fn probes_find_what_scans_find() {
    for (fanout, leaf) in [(0, 0), (4, 10)] {
        let (_, quads) = open(fanout, leaf);
        let txns = Txns::default();
        let tree = quads.tree(0).unwrap();
        let all = keys(4000);
        tree.build(all.iter().copied(), FROZEN_XID, 0, 1.0).unwrap();
        let mut ranges: Vec<(Key, Key)> = (0..300).map(|s| prefix_range(&[s * 2])).collect();
        ranges.push((all[100], all[3000.min(all.len() - 1)]));
        ranges.push(ranges[7]);
        ranges.push((KEY_MIN, KEY_MAX));
        ranges.push((KEY_MAX, KEY_MIN));
        ranges.sort_unstable();
        for enough in [1, 50, usize::MAX] {
            probes(tree, &txns, &ranges, enough);
            counted_probes(tree, &txns, &ranges, enough);
        }
        ranges.reverse();
        probes(tree, &txns, &ranges, 100);
    }
}

#[test]
fn empty_ranges_side_by_side_hide_nothing() {
    for (fanout, leaf) in [(0, 0), (4, 10)] {
        let (_, quads) = open(fanout, leaf);
        let txns = Txns::default();
        let tree = quads.tree(0).unwrap();
        // Every 40th number, in runs of three.
        let number = |n: u64| [n / 100, n % 100, 0, 0];
        let base = (0..1200u64).filter(|n| n % 40 < 3).map(number);
        tree.build(base, FROZEN_XID, 0, 1.0).unwrap();
        for tail in [None, Some(13), Some(77)] {
            if let Some(step) = tail {
                let new: Vec<Key> = (5..1200).step_by(step).map(|n| number(n as u64)).collect();
                txns.run(|writer, snap| {
                    tree.insert(&new, writer, Mode::Set(snap), &mut Vec::new())
                })
                .unwrap();
            }
            for (step, width) in [(1, 1), (3, 2), (7, 7), (10, 25), (41, 1)] {
                let ranges: Vec<(Key, Key)> = (0..1200u64)
                    .step_by(step)
                    .map(|n| (number(n), number(n + width - 1)))
                    .collect();
                for enough in [1, 50, usize::MAX] {
                    probes(tree, &txns, &ranges, enough);
                    counted_probes(tree, &txns, &ranges, enough);
                }
                let reversed: Vec<_> = ranges.iter().rev().copied().collect();
                probes(tree, &txns, &reversed, 100);
            }
        }
    }
}

#[test]
fn groups_of_ranges_are_read_whole_unless_a_required_one_is_empty() {
    let (_, quads) = open(4, 10);
    let txns = Txns::default();
    let tree = quads.tree(0).unwrap();
    // Subject n has predicates 0..n % 4, one object each.
    let all = (0..500u64).flat_map(|s| (0..s % 4).map(move |p| [s, p, 7, 0]));
    tree.build(all, FROZEN_XID, 0, 1.0).unwrap();
    let ranges: Vec<(Key, Key)> = (0..500)
        .flat_map(|s| [1, 0, 2].map(|p| prefix_range(&[s, p])))
        .collect();
    let (snap, mut batch, mut spans) = (txns.snapshot(&[], 1), Batch::new(), Vec::new());
    for (required, enough) in [(0, 1), (0b1, 1), (0b1, 100), (0b11, usize::MAX)] {
        let mut probe = Probe::grouped(0b1111, 3, required, 1000);
        let mut found = Vec::new();
        loop {
            let more = probe.read(tree, &snap, &ranges, enough, &mut batch, &mut spans);
            assert!(!probe.place().1);
            found.extend(spans.iter().map(|span| span.range));
            if !more.unwrap() {
                break;
            }
        }
        let expected = (0..1500).filter(|range| {
            let (s, p) = (range / 3, [1, 0, 2][*range as usize % 3]);
            let first = s % 4 > 1;
            s % 4 > p && (first || required == 0)
        });
        assert_eq!(found, expected.collect::<Vec<u32>>());
    }
    // A group with more than a batch may have is left in the middle.
    let wide = [(KEY_MIN, KEY_MAX), prefix_range(&[3])];
    let mut probe = Probe::grouped(0b1111, 2, 0, 50);
    assert!(probe
        .read(tree, &snap, &wide, 1, &mut batch, &mut spans)
        .unwrap());
    assert_eq!(probe.place(), (0, true));
}

/// Everything one can do to a tree; results do not matter, as long as there are some.
fn everything(quads: &Quads<MemStore>, txns: &Txns, list: &[Quad]) {
    let xid = txns.begin();
    let (session, snap) = (txns.session(&[xid]), txns.snapshot(&[xid], 1));
    let writer = Writer {
        xid,
        cid: 0,
        status: &session,
    };
    for tree in quads.trees() {
        let mut batch = Batch::new();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor = Cursor::new(KEY_MIN, KEY_MAX, direction);
            for _ in 0..10_000 {
                if !matches!(cursor.next_batch(tree, &snap, &mut batch), Ok(true)) {
                    break;
                }
            }
        }
        let _ = tree.verify(&snap);
        let _ = tree.stats();
        let _ = tree.range_count(&[1; 4], &[1 << 63; 4]);
    }
    for q in list {
        let _ = quads.exists(q, &snap);
        let _ = quads.delete(q, &writer, &snap);
        let _ = quads.insert(&mut vec![*q, [q[0], 9, q[2], 9]], &writer, Mode::Set(&snap));
    }
    for tree in quads.trees() {
        let _ = tree.vacuum(&session);
    }
}

/// `PROPTEST_CASES`, or few enough for every build.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    /// Damaged pages give errors or wrong answers, but neither panics nor endless loops.
    #[test]
    fn damage(seed: u64, hits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..5), 1..12)) {
        let (store, quads) = open(8, 20);
        let txns = Txns::default();
        let list: Vec<Quad> = (0..300).map(|i| {
            let i = i + (seed % 1000) as i64;
            [i % 37, i % 3, (i % 5) << 59 | i, 0]
        }).collect();
        txns.run(|writer, snap| {
            for part in list.chunks(11) {
                quads.insert(&mut part.to_vec(), writer, Mode::Set(snap)).unwrap();
            }
        });
        for (block, at, byte, place) in &hits {
            let block = block.index(store.pages()) as BlockNo;
            let mut page: Page = store.read(block).clone();
            // The headers are where damage hurts most.
            let at = match place {
                0 => at.index(8192),
                1 => at.index(60),
                2 => 24 + at.index(120),
                _ => 8112 + at.index(80),
            };
            page.0[at] = *byte;
            store.overwrite(block, page);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| everything(&quads, &txns, &list[..60])));
        if let Err(e) = outcome {
            let text = e.downcast_ref::<String>().cloned().unwrap_or_default();
            prop_assert!(false, "panic: {}", text);
        }
    }
}
