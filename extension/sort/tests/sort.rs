//! Sorting, merging and building against a plain sort in memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, quad_of, Batch, Cursor, Direction, Key, Options, Order, Quad, Quads,
    DEFAULT_ORDERS, FROZEN_XID, KEY_MAX, KEY_MIN,
};
use pgquad_sort::{build, build_arriving, Chunks, Error, Host, Merge, Sorted, Sorter, Source};
use proptest::prelude::*;

/// Files of the test in the directory for temporary files, which nobody else sees.
#[derive(Default)]
struct TestHost {
    files: Vec<(Arc<File>, u64)>,
    /// Files are cut off after so many bytes, as if the disk had lost the rest.
    lost_after: Option<u64>,
    no_threads: bool,
}

static FILES: AtomicUsize = AtomicUsize::new(0);

fn temporary_file() -> File {
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("pgquad-sort-test-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

impl Host for TestHost {
    fn write(&mut self, file: usize, bytes: &[u8]) -> u64 {
        while self.files.len() <= file {
            self.files.push((Arc::new(temporary_file()), 0));
        }
        let (file, length) = &mut self.files[file];
        let at = *length;
        file.as_ref().write_all(bytes).unwrap();
        *length += bytes.len() as u64;
        if let Some(most) = self.lost_after {
            if *length > most {
                file.set_len(most).unwrap();
            }
        }
        at
    }

    fn reader(&self, file: usize) -> Arc<File> {
        self.files[file].0.clone()
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        if self.no_threads {
            return Err(io::Error::other("no more threads"));
        }
        let builder = std::thread::Builder::new().name(name.to_owned());
        builder.spawn(body).map(drop)
    }

    fn interrupt(&self) {}
}

/// Bytes: the least memory, chunks of 4096 keys.
const MIN_BYTES: usize = 0;

fn quads(n: i64) -> Vec<Quad> {
    (0..n)
        .map(|i| {
            [
                i * 7919 % 1009,
                i % 11,
                (i * 31 % 4001) << (i % 3 * 20),
                i % 2 - 1,
            ]
        })
        .collect()
}

fn sorted(quads: &[Quad], bytes: usize, host: &mut TestHost) -> Result<Sorted, Error> {
    let mut sorter = Sorter::new(&DEFAULT_ORDERS, bytes);
    for some in quads.chunks(1000) {
        sorter.push(some, host)?;
    }
    sorter.finish(host)
}

fn expected(quads: &[Quad], order: Order) -> Vec<Key> {
    let keys: BTreeSet<Key> = quads.iter().map(|quad| key_of(order, quad)).collect();
    keys.into_iter().collect()
}

#[test]
fn every_order_is_sorted_without_repetitions() {
    for n in [0, 1, 4095, 4096, 4097, 50_000] {
        for bytes in [MIN_BYTES, 1 << 30] {
            let mut host = TestHost::default();
            let mut quads = quads(n);
            quads.extend_from_within(quads.len() / 2..);
            let sorted = sorted(&quads, bytes, &mut host).unwrap();
            for (number, order) in DEFAULT_ORDERS.into_iter().enumerate() {
                let found: Vec<Key> = sorted.stream(number, &host).collect();
                assert!(found == expected(&quads, order), "{n} quads, {order}");
                let mut chunks = Chunks::start(sorted.stream(number, &host), &host).unwrap();
                let mut again = Vec::new();
                while let Some(chunk) = chunks.next(&host).unwrap() {
                    again.extend(chunk);
                }
                assert!(again == found, "{n} quads, {order}, in chunks");
            }
            assert_eq!(
                host.files.is_empty(),
                quads.len() < 4096 || bytes > MIN_BYTES
            );
        }
    }
}

/// A shard gets its quads sorted: its keys stay where they are, those of the second order by their places, and those of
/// the third, whose first column has many values, by a sort.
#[test]
fn keys_that_come_sorted_are_given_without_repetitions() {
    let orders = [Order::SPOG, Order::PSOG, Order::OSPG];
    for (n, times) in [(1, 3), (5000, 1), (50_000, 2)] {
        let mut host = TestHost::default();
        let once = expected(&quads(n), orders[0]);
        let quads: Vec<Quad> = once
            .iter()
            .flat_map(|key| std::iter::repeat_n(quad_of(orders[0], key), times))
            .collect();
        let mut sorter = Sorter::new(&orders, 1 << 30);
        for some in quads.chunks(1000) {
            sorter.push(some, &mut host).unwrap();
        }
        let sorted = sorter.finish(&mut host).unwrap();
        for (number, order) in orders.into_iter().enumerate() {
            let found: Vec<Key> = sorted.stream(number, &host).collect();
            assert!(found == expected(&quads, order), "{n} quads, {order}");
        }
        assert!(host.files.is_empty());
    }
}

fn open() -> (MemStore, Quads<MemStore>) {
    let store = MemStore::new(initial_pages(&Options::with_orders(&DEFAULT_ORDERS)).unwrap());
    (store.clone(), Quads::open(store).unwrap())
}

fn contents(quads: &Quads<MemStore>, n: usize) -> Vec<Key> {
    let tree = quads.tree(n).unwrap();
    let snapshot = Txns::default().snapshot(&[], 1);
    let verified = tree.verify(&snapshot).unwrap();
    assert_eq!(verified.problems, vec![]);
    let (mut batch, mut keys) = (Batch::new(), Vec::new());
    let mut cursor = Cursor::new(KEY_MIN, KEY_MAX, Direction::Forward);
    while cursor.next_batch(tree, &snapshot, &mut batch).unwrap() {
        keys.extend((0..batch.len()).map(|i| batch.key(i)));
    }
    keys
}

#[test]
fn tables_are_built_in_all_orders() {
    for n in [0, 1, 5000, 60_000] {
        for bytes in [MIN_BYTES, 1 << 30] {
            let mut host = TestHost::default();
            let given = quads(n);
            let sorted = sorted(&given, bytes, &mut host).unwrap();
            let (_, table) = open();
            let built = build(table.trees(), &sorted, (FROZEN_XID, 0), 0.98, &host).unwrap();
            for (number, order) in DEFAULT_ORDERS.into_iter().enumerate() {
                let expected = expected(&given, order);
                assert_eq!(built, expected.len() as u64);
                assert!(contents(&table, number) == expected, "{n} quads, {order}");
            }
        }
    }
}

/// Batches of all orders in turn.
fn in_turn(given: &[Quad], size: usize) -> Vec<(usize, Vec<Key>)> {
    let orders = DEFAULT_ORDERS.into_iter().enumerate();
    let mut batches: Vec<(usize, usize, Vec<Key>)> = orders
        .flat_map(|(n, order)| {
            let keys = expected(given, order);
            let batches: Vec<_> = keys.chunks(size).map(<[Key]>::to_vec).collect();
            batches
                .into_iter()
                .enumerate()
                .map(move |(at, b)| (at, n, b))
        })
        .collect();
    batches.sort_by_key(|(at, n, _)| (*at, *n));
    batches.into_iter().map(|(_, n, keys)| (n, keys)).collect()
}

#[test]
fn tables_are_built_from_keys_that_arrive_sorted() {
    for n in [0, 1, 5000, 60_000] {
        for size in [7, 1000, 1 << 20] {
            let given = quads(n);
            let mut batches = in_turn(&given, size).into_iter();
            let (_, table) = open();
            let host = TestHost::default();
            let next = || batches.next();
            let built = build_arriving(table.trees(), next, (FROZEN_XID, 0), 0.98, &host).unwrap();
            for (number, order) in DEFAULT_ORDERS.into_iter().enumerate() {
                let expected = expected(&given, order);
                assert_eq!(built, expected.len() as u64);
                assert!(contents(&table, number) == expected, "{n} quads, {order}");
            }
        }
    }
}

#[test]
fn keys_that_arrive_otherwise_are_refused() {
    let given = quads(60_000);
    let whole = in_turn(&given, 500);
    let mut swapped = whole.clone();
    swapped.swap(9, 12);
    let mut short = whole.clone();
    short.pop();
    for batches in [swapped, short] {
        let mut batches = batches.into_iter();
        let (_, table) = open();
        let (host, next) = (TestHost::default(), || batches.next());
        let built = build_arriving(table.trees(), next, (FROZEN_XID, 0), 0.98, &host);
        let is_refused = matches!(
            built,
            Err(Error::Tree(pgquad_btree::Error::Unsorted) | Error::Differ { .. })
        );
        assert!(is_refused, "{built:?}");
        assert_eq!(contents(&table, 0), Vec::<Key>::new());
    }
}

#[test]
fn a_table_with_something_in_it_is_not_built() {
    let mut host = TestHost::default();
    let sorted = sorted(&quads(10), MIN_BYTES, &mut host).unwrap();
    let (_, table) = open();
    build(table.trees(), &sorted, (FROZEN_XID, 0), 0.98, &host).unwrap();
    let again = build(table.trees(), &sorted, (FROZEN_XID, 0), 0.98, &host);
    assert!(matches!(
        again,
        Err(Error::Tree(pgquad_btree::Error::NotEmpty))
    ));
}

#[test]
fn runs_that_cannot_be_read_back_are_an_error() {
    let mut host = TestHost {
        lost_after: Some(10_000),
        ..TestHost::default()
    };
    let sorted = sorted(&quads(50_000), MIN_BYTES, &mut host).unwrap();
    let (_, table) = open();
    let built = build(table.trees(), &sorted, (FROZEN_XID, 0), 0.98, &host);
    assert!(matches!(built, Err(Error::Read(_))), "{built:?}");
    assert_eq!(contents(&table, 0), Vec::<Key>::new());
    let mut chunks = Chunks::start(sorted.stream(1, &host), &host).unwrap();
    let end = loop {
        match chunks.next(&host) {
            Ok(Some(_)) => {}
            end => break end.map(|_| ()),
        }
    };
    assert!(matches!(end, Err(Error::Read(_))), "{end:?}");
}

#[test]
fn threads_that_do_not_start_are_an_error() {
    let mut host = TestHost {
        no_threads: true,
        ..TestHost::default()
    };
    let failed = sorted(&quads(50_000), MIN_BYTES, &mut host).map(|_| ());
    assert!(matches!(failed, Err(Error::Thread(_))), "{failed:?}");
}

struct Fixed(std::vec::IntoIter<Key>);

impl Source for Fixed {
    fn next(&mut self) -> Option<Key> {
        self.0.next()
    }

    fn take_error(&mut self) -> Option<io::Error> {
        None
    }
}

/// Keys with few bits, with all of them, and both ends of the range.
fn any_key() -> impl Strategy<Value = Key> {
    let column = prop_oneof![
        0..4u64,
        any::<u64>(),
        Just(u64::MAX),
        (0..64u32).prop_map(|bit| 1 << bit)
    ];
    [column.clone(), column.clone(), column.clone(), column]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn merging_is_sorting(sources in prop::collection::vec(prop::collection::vec(any_key(), 0..50), 0..9)) {
        let all: BTreeSet<Key> = sources.iter().flatten().copied().collect();
        let sources = sources.into_iter().map(|mut keys| {
            keys.sort_unstable();
            Fixed(keys.into_iter())
        });
        let merged: Vec<Key> = Merge::new(sources.collect()).collect();
        prop_assert_eq!(merged, all.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn runs_hold_what_was_written(keys in prop::collection::vec(any_key(), 0..700)) {
        let mut keys = keys;
        keys.sort_unstable();
        let mut host = TestHost::default();
        let mut blocks = Vec::new();
        host.write(0, b"something before");
        pgquad_sort::encode(&keys, |piece| {
            let at = host.write(0, piece.bytes());
            blocks.extend(piece.blocks(at));
            true
        });
        let mut reader = pgquad_sort::RunReader::new(host.reader(0), blocks);
        let read: Vec<Key> = std::iter::from_fn(|| reader.next()).collect();
        prop_assert_eq!(read, keys);
    }
}
