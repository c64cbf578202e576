//! Speed and size of the trees in memory.
//!
//! `gzip -dc ../shared/bsbm/bsbm-1m.nt.gz | cargo run --release -p pgquad-btree --example bench -- -`
//! takes N-Triples from standard input; without the `-` it makes up a million quads. Terms get dense
//! numbers in order of first sight, integers and short strings stand in the id, as in the real store.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, prefix_range, quad_of, Batch, Cursor, Direction, Key, Mode, Options,
    Probe, Quad, Quads, Writer, DEFAULT_ORDERS, FROZEN_XID, KEY_MAX, KEY_MIN,
};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::BufRead;
use std::time::Duration;

fn main() {
    let mut quads = if std::env::args().any(|a| a == "-") {
        read()
    } else {
        make_up(1_000_000)
    };
    quads.sort_unstable();
    quads.dedup();
    let n = quads.len();
    println!("{n} quads");
    let store = MemStore::new(initial_pages(&Options::default()).unwrap());
    let all = Quads::open(store.clone()).unwrap();
    let txns = Txns::default();
    let mut rng = Rng(42);
    for tree in all.trees() {
        let mut keys: Vec<Key> = quads.iter().map(|q| key_of(tree.order(), q)).collect();
        keys.sort_unstable();
        let start = Cpu::now();
        tree.build(keys.iter().copied(), FROZEN_XID, 0, 0.93)
            .unwrap();
        let rate = n as f64 / start.elapsed().as_secs_f64() / 1e6;
        let s = tree.stats().unwrap();
        println!(
            "{}: build {rate:.1} M quads/s, {:.2} bytes/quad, {:.0} quads/leaf, {:.0} children/inner page, height {}, fill {:.2}",
            tree.order(),
            s.bytes_per_quad(),
            s.entries as f64 / s.leaves as f64,
            s.children as f64 / s.inner.max(1) as f64,
            s.height,
            s.leaf_fill(),
        );
    }
    let snap = txns.snapshot(&[], 1);
    for tree in all.trees() {
        let mut batch = Batch::new();
        const ROUNDS: usize = 20;
        let mut sum = 0;
        let start = Cpu::now();
        for _ in 0..ROUNDS {
            let mut cursor = Cursor::new(KEY_MIN, KEY_MAX, Direction::Forward);
            let mut rows = 0;
            while cursor.next_batch(tree, &snap, &mut batch).unwrap() {
                rows += batch.len();
                sum ^= batch.columns[2][0];
            }
            assert_eq!(rows, n);
        }
        black_box(sum);
        let scan = start.elapsed().as_nanos() as f64 / (n * ROUNDS) as f64;
        let start = Cpu::now();
        let mut c = 0;
        for _ in 0..10 * ROUNDS {
            let mut cursor = Cursor::new(KEY_MIN, KEY_MAX, Direction::Forward);
            c += cursor.count_rest(tree, &snap).unwrap();
        }
        let counting = start.elapsed().as_nanos() as f64 / c as f64;
        println!(
            "{}: scan {scan:.2} ns/quad, count {counting:.4} ns/quad",
            tree.order()
        );
    }
    let tree = all.tree(0).unwrap();
    let keys: Vec<Key> = quads.iter().map(|q| key_of(tree.order(), q)).collect();

    let picks: Vec<usize> = (0..200_000).map(|_| rng.below(n)).collect();
    time("random exists", picks.len(), || {
        for &i in &picks {
            assert!(tree.exists(&keys[i], &snap).unwrap());
        }
    });
    let page_access = {
        let start = Cpu::now();
        for i in 0..1_000_000u32 {
            black_box(pgquad_btree::PageStore::read(&store, 1 + i % 1000).0[100]);
        }
        start.elapsed().as_nanos() as f64 / 1e6
    };
    println!("(a page access of the store: {page_access:.0} ns)");
    time("random s,p seek and read", picks.len(), || {
        let mut batch = Batch::new();
        let mut cursor = Cursor::new(KEY_MAX, KEY_MIN, Direction::Forward);
        for &i in &picks {
            let (lo, hi) = prefix_range(&keys[i][..2]);
            cursor.seek(lo, hi, Direction::Forward);
            assert!(cursor.next_batch(tree, &snap, &mut batch).unwrap());
        }
    });
    let mut sorted = picks.clone();
    sorted.sort_unstable();
    time("ascending s,p seek and read", picks.len(), || {
        let mut batch = Batch::new();
        let mut cursor = Cursor::new(KEY_MAX, KEY_MIN, Direction::Forward);
        for &i in &sorted {
            let (lo, hi) = prefix_range(&keys[i][..2]);
            cursor.seek(lo, hi, Direction::Forward);
            assert!(cursor.next_batch(tree, &snap, &mut batch).unwrap());
        }
    });
    let ranges: Vec<(Key, Key)> = sorted
        .iter()
        .map(|&i| prefix_range(&keys[i][..2]))
        .collect();
    time("ascending s,p probes in one call", ranges.len(), || {
        let (mut batch, mut spans) = (Batch::new(), Vec::new());
        let mut probe = Probe::new(0b1111);
        while probe
            .read(tree, &snap, &ranges, 10_000, &mut batch, &mut spans)
            .unwrap()
        {}
    });
    time("random range count", picks.len(), || {
        for &i in &picks {
            let (lo, hi) = prefix_range(&keys[i][..1]);
            assert!(tree.range_count(&lo, &hi).unwrap() > 0);
        }
    });
    drop(snap);

    // New quads near existing ones: another object of some subject and predicate.
    let new: Vec<Quad> = (0..100_000)
        .map(|_| {
            let mut q = quads[rng.below(n)];
            q[2] = quads[rng.below(n)][2] ^ 1;
            q
        })
        .collect();
    let xid = txns.begin();
    let session = txns.session(&[xid]);
    let snap = txns.snapshot(&[xid], 1);
    let writer = Writer {
        xid,
        cid: 0,
        status: &session,
    };
    let mut inserted = Vec::new();
    time("single insert, one order", new.len() / 2, || {
        for q in &new[..new.len() / 2] {
            let key = key_of(tree.order(), q);
            tree.insert(&[key], &writer, Mode::Set(&snap), &mut inserted)
                .unwrap();
        }
    });
    let mut keys: Vec<Key> = new[new.len() / 2..]
        .iter()
        .map(|q| key_of(tree.order(), q))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    time(
        "50,000 sorted inserts in one call, one order",
        keys.len(),
        || {
            tree.insert(&keys, &writer, Mode::Set(&snap), &mut inserted)
                .unwrap();
        },
    );
    let s = tree.stats().unwrap();
    println!(
        "after inserts: {:.2} bytes/quad, {} tail records",
        s.bytes_per_quad(),
        s.tail
    );
    time("single delete, one order", picks.len() / 4, || {
        for &i in &picks[..picks.len() / 4] {
            let key = key_of(tree.order(), &quads[i]);
            tree.delete(&key, &writer, &snap).unwrap();
        }
    });
    drop(snap);
    txns.commit(xid);
    let session = txns.session(&[]);
    time(
        "vacuum, one order",
        tree.stats().unwrap().entries as usize,
        || {
            let v = tree.vacuum(&session).unwrap();
            println!("{v:?}");
        },
    );
    let s = tree.stats().unwrap();
    println!(
        "after vacuum: {:.2} bytes/quad, {} tail records",
        s.bytes_per_quad(),
        s.tail
    );

    // A second load into a tree that has data: every other quad first, then the rest.
    let store = MemStore::new(initial_pages(&Options::with_orders(&DEFAULT_ORDERS[..1])).unwrap());
    let half = Quads::open(store).unwrap();
    let tree = half.tree(0).unwrap();
    let order = tree.order();
    let keys: Vec<Key> = quads.iter().map(|q| key_of(order, q)).collect();
    assert_eq!(quad_of(order, &keys[0]), quads[0]);
    tree.build(keys.iter().copied().step_by(2), FROZEN_XID, 0, 1.0)
        .unwrap();
    let rest: Vec<Key> = keys.iter().copied().skip(1).step_by(2).collect();
    let xid = txns.begin();
    let (session, snap) = (txns.session(&[xid]), txns.snapshot(&[xid], 1));
    let writer = Writer {
        xid,
        cid: 0,
        status: &session,
    };
    time(
        "merge of the other half into half the quads",
        rest.len(),
        || {
            tree.insert(&rest, &writer, Mode::Set(&snap), &mut inserted)
                .unwrap();
        },
    );
    let s = tree.stats().unwrap();
    println!("after merge: {:.2} bytes/quad", s.bytes_per_quad());
}

fn time(what: &str, n: usize, f: impl FnOnce()) {
    let start = Cpu::now();
    f();
    println!(
        "{what}: {:.0} ns each",
        start.elapsed().as_nanos() as f64 / n as f64
    );
}

/// A clock of the processor time of this thread, so that other load does not count (Linux; elsewhere it
/// stands still).
struct Cpu(Duration);

impl Cpu {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|v| v.parse().ok());
        Cpu(Duration::from_nanos(nanos.unwrap_or(0)))
    }

    fn elapsed(&self) -> Duration {
        Cpu::now().0.saturating_sub(self.0)
    }
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Something like BSBM: products with features, offers and reviews of products.
fn make_up(n: usize) -> Vec<Quad> {
    let mut rng = Rng(7);
    let mut quads = Vec::with_capacity(n);
    let mut next = 100;
    let mut subjects = vec![50];
    while quads.len() < n {
        let s = next;
        next += 1;
        subjects.push(s);
        for p in 1..12 {
            let o = match p % 4 {
                0 => subjects[rng.below(subjects.len())],
                1 => 6 << 59 | (1 << 54 | rng.below(2000) as i64),
                2 => {
                    next += 1;
                    2 << 59 | next
                }
                _ => rng.below(50) as i64,
            };
            quads.push([s, p, o, 0]);
        }
    }
    quads
}

fn read() -> Vec<Quad> {
    let mut ids: HashMap<String, i64> = HashMap::new();
    let mut id = |t: &str| -> i64 {
        let tag = if !t.starts_with('"') {
            0
        } else if t.ends_with("XMLSchema#integer>") {
            let number = t[1..].split('"').next().and_then(|v| v.parse::<i64>().ok());
            return 6 << 59 | (number.unwrap_or(0) + (1 << 54));
        } else if t.ends_with('"') {
            if t.len() <= 9 {
                let mut bytes = [0; 8];
                bytes[1..t.len() - 1].copy_from_slice(&t.as_bytes()[1..t.len() - 1]);
                return 12 << 59 | i64::from_be_bytes(bytes);
            }
            2
        } else {
            4
        };
        let next = ids.len() as i64 + 1;
        tag << 59 | *ids.entry(t.to_string()).or_insert(next)
    };
    let mut quads = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("readable input");
        let Some(line) = line.trim_end().strip_suffix('.') else {
            continue;
        };
        let mut parts = line.trim_end().splitn(3, ' ');
        if let (Some(s), Some(p), Some(o)) = (parts.next(), parts.next(), parts.next()) {
            quads.push([id(s), id(p), id(o), 0]);
        }
    }
    quads
}
