//! Measures what the costs of `cost.rs` say, in their unit: the time in which one quad is read in a row and put into a
//! hash table. The trees are in memory, without PostgreSQL's buffer manager, which makes probes dearer than here.
//!
//! `cargo test --release -p pgquad-exec --lib cost_measure -- --ignored --nocapture`

use crate::operators::hash_table::{Builder, Table};
use crate::operators::sort::sort_rows;
use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, Batch, Key, Options, Probe, Quads, Tree, DEFAULT_ORDERS, FROZEN_XID, KEY_MAX,
    KEY_MIN,
};
use std::hint::black_box;
use std::time::Duration;

/// Subjects of the tree, and quads of each: one predicate each.
const SUBJECTS: u64 = 200_000;
const ARMS: u64 = 5;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Each figure is the least of so many.
const TRIES: usize = 3;

/// Processor time of this thread, so that other load does not count (Linux; elsewhere it stands still).
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|v| v.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Nanoseconds for each of `n`. The clock goes in ticks of some milliseconds, so that the work is done many times.
fn nanos(n: usize, mut work: impl FnMut()) -> f64 {
    // Between two looks at the clock, which takes microseconds.
    let at_once = (100_000 / n).max(1);
    let mut once = |_| {
        let (start, mut rounds) = (processor_time(), 0);
        loop {
            (0..at_once).for_each(|_| work());
            rounds += at_once;
            let taken = processor_time() - start;
            if taken > Duration::from_millis(100) || rounds >= 1_000_000 {
                return taken.as_nanos() as f64 / rounds as f64;
            }
        }
    };
    (0..TRIES).map(&mut once).fold(f64::MAX, f64::min) / n as f64
}

fn quad(subject: u64, arm: u64) -> Key {
    let column = |value: u64| 1 << 63 | value;
    [
        column(subject),
        column(arm),
        column(subject * 7 + arm),
        column(0),
    ]
}

fn read_all(tree: &Tree<MemStore>, txns: &Txns, ranges: &[(Key, Key)]) -> usize {
    let (mut batch, mut spans, mut read) = (Batch::new(), Vec::new(), 0);
    let (snapshot, mut probe) = (txns.snapshot(&[], 1), Probe::new(0b0111));
    loop {
        let more = probe.read(tree, &snapshot, ranges, 4096, &mut batch, &mut spans);
        read += batch.len();
        black_box(&batch);
        if !more.unwrap() {
            return read;
        }
    }
}

/// The same quads in a table by subject.
fn build(tree: &Tree<MemStore>, txns: &Txns, subjects: u64) -> Table {
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let (snapshot, mut probe) = (txns.snapshot(&[], 1), Probe::new(0b0111));
    let mut high = KEY_MAX;
    high[0] = 1 << 63 | (subjects - 1);
    let mut builder = Builder::new(1, 1, (subjects * ARMS) as usize);
    loop {
        let ranges = [(KEY_MIN, high)];
        let more = probe.read(tree, &snapshot, &ranges, 4096, &mut batch, &mut spans);
        let (keys, values) = ([batch.columns[0].as_slice()], [batch.columns[2].as_slice()]);
        builder.add(&keys, &values, &[], batch.len(), |_| true);
        if !more.unwrap() {
            return builder.finish();
        }
    }
}

/// Ranges of `arms` predicates of every `step`th subject.
fn ranges(step: usize, arms: u64) -> Vec<(Key, Key)> {
    let subjects = (0..SUBJECTS).step_by(step).take(BATCH_ROWS);
    let of_subject = |subject| {
        (0..arms).map(move |arm| {
            let (mut low, mut high) = (quad(subject, arm), quad(subject, arm));
            (low[2], low[3]) = (0, 0);
            (high[2], high[3]) = (u64::MAX, u64::MAX);
            (low, high)
        })
    };
    subjects.flat_map(of_subject).collect()
}

/// Values below `most`, in no order.
fn scattered(rows: usize, most: u64) -> Vec<u64> {
    let spread = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % most;
    (0..rows as u64).map(spread).collect()
}

#[test]
#[ignore = "measures; see the head of the file"]
fn costs_in_quads() {
    let options = Options::with_orders(&DEFAULT_ORDERS[..1]);
    let quads = Quads::open(MemStore::new(initial_pages(&options).unwrap())).unwrap();
    let tree = quads.tree(0).unwrap();
    let keys = (0..SUBJECTS).flat_map(|subject| (0..ARMS).map(move |arm| quad(subject, arm)));
    tree.build(keys, FROZEN_XID, 0, 1.0).unwrap();
    let txns = Txns::default();

    let all = [(KEY_MIN, KEY_MAX)];
    let total = (SUBJECTS * ARMS) as usize;
    let scan = nanos(total, || assert_eq!(read_all(tree, &txns, &all), total));
    let small = (4_000_000 / 100) as u64;
    let unit = nanos((small * ARMS) as usize, || {
        black_box(build(tree, &txns, small));
    });
    let say =
        |what: &str, time: f64| println!("{what:<44} {time:>8.1} ns {:>6.2} quads", time / unit);
    say("quad read and put into a hash table", unit);
    say("quad read in a row", scan);

    let probe = |step, arms| {
        let ranges = ranges(step, arms);
        nanos(ranges.len(), || {
            assert_eq!(read_all(tree, &txns, &ranges), ranges.len())
        })
    };
    let mut probes = Vec::new();
    for step in [1, 2, 4, 8, 16, 24] {
        probes.push(probe(step, 1));
        let apart = step as u64 * ARMS;
        say(
            &format!("probe, keys {apart} quads apart"),
            probes[probes.len() - 1],
        );
    }
    let far = {
        let ranges: Vec<_> = ranges(128, 1);
        nanos(ranges.len(), || {
            assert_eq!(read_all(tree, &txns, &ranges), ranges.len())
        })
    };
    say("probe, keys 640 quads apart", far);
    let star = probe(16, ARMS);
    say(
        "next arm of a star",
        (star * ARMS as f64 - probes[4]) / (ARMS - 1) as f64,
    );

    for rows in [16, 32, 64, 512, BATCH_ROWS] {
        let column = scattered(rows, SUBJECTS);
        let time = nanos(rows, || {
            black_box(sort_rows(&[black_box(&column)], 1, rows));
        });
        say(&format!("sorting a row of {rows}"), time);
    }
    let mut look_ups = Vec::new();
    for subjects in [1000, 10_000, 100_000, 3_000_000] {
        let keys: Vec<u64> = (0..subjects).collect();
        let mut builder = Builder::new(1, 1, keys.len());
        builder.add(&[&keys], &[&keys], &[], keys.len(), |_| true);
        let table = builder.finish();
        let rows = scattered(BATCH_ROWS * 16, subjects);
        look_ups.push(nanos(rows.len(), || {
            black_box(table.find_all(&[&rows], rows.len()));
        }));
        let kilobytes = table.bytes() / 1024;
        say(
            &format!("look-up in a table of {kilobytes} kB"),
            look_ups[look_ups.len() - 1],
        );
    }
    assert!(
        far > probes[0],
        "keys on leaves of their own are found slower"
    );
    assert!(
        look_ups[3] > look_ups[0],
        "a large table is slower than a small one"
    );
}
