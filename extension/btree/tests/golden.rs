//! Golden bytes: pages and WAL deltas are written as they were, and what was written before is read.
//!
//! `GOLDEN=write cargo test -p pgquad-btree --test golden` writes the files anew; `docs/formats.md` says when that is
//! allowed.

use pgquad_btree::mem::{Logged, MemStore, Txns};
use pgquad_btree::{
    initial_pages, redo, Mode, Options, Page, PageStore, Quad, Quads, DEFAULT_ORDERS, PAGE_SIZE,
};
use std::fmt::Write;

/// Bytes per line of a dump.
const LINE: usize = 32;
/// `pd_lsn` and `pd_checksum` belong to the buffer manager.
const HEADER_LEFT_OUT: usize = 10;

/// Lines `offset: hexadecimal`, without those that are all zero.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (n, line) in bytes.chunks(LINE).enumerate() {
        if line.iter().any(|&byte| byte != 0) {
            let _ = write!(text, "{:05x}:", n * LINE);
            line.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            text.push('\n');
        }
    }
    text
}

/// The bytes of a dump, with zeroes up to `len`.
fn parse(text: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for line in text.lines() {
        let (offset, digits) = line.split_once(':').expect("offset: bytes");
        let at = usize::from_str_radix(offset, 16).expect("an offset");
        for (n, pair) in digits.as_bytes().chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).expect("digits");
            bytes[at + n] = u8::from_str_radix(pair, 16).expect("a byte");
        }
    }
    bytes
}

fn page_of(text: &str) -> Page {
    let bytes = parse(text, PAGE_SIZE);
    Page(bytes.try_into().expect("the size of a page"))
}

/// Named dumps of a file, in its order.
fn sections(file: &str) -> Vec<(&str, &str)> {
    let parts = file.split("== ").skip(1);
    parts
        .map(|part| part.split_once('\n').expect("a title"))
        .collect()
}

/// Compares with the file, or writes it where the environment says so.
fn pin(name: &str, got: &str) -> String {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        std::fs::write(&path, got).expect("a writable tree");
    }
    let pinned = std::fs::read_to_string(&path).expect("the golden file");
    if let Some((line, (old, new))) = pinned
        .lines()
        .zip(got.lines())
        .enumerate()
        .find(|(_, (a, b))| a != b)
    {
        panic!(
            "{name}:{}: the format has changed\n  was {old}\n  is  {new}\nSee docs/formats.md.",
            line + 1
        );
    }
    assert_eq!(
        pinned.len(),
        got.len(),
        "{name}: the format has changed, see docs/formats.md"
    );
    pinned
}

/// Quads with ids of several kinds, in clusters as loads make them.
fn quads() -> Vec<Quad> {
    let id = |tag: i64, n: i64| (tag << 56) | n;
    (0..900)
        .map(|i| {
            [
                id(1, 1000 + i / 5),
                id(1, 1 + i % 5),
                id(2 + i % 3, i * i % 977),
                id(0, i % 40 / 39),
            ]
        })
        .collect()
}

/// A store with pages of every kind: full leaves, leaves with versions, deletions and locks, inner pages with marks,
/// freed pages.
fn store() -> (MemStore, Vec<Logged>) {
    let mut options = Options::with_orders(&DEFAULT_ORDERS);
    options.orders[1].inner_fanout = 8;
    options.orders[1].leaf_quads = 12;
    let store = MemStore::new(initial_pages(&options).unwrap());
    store.keep_log();
    let db = Quads::open(store.clone()).unwrap();
    let txns = Txns::default();
    let all = quads();
    txns.run(|writer, snapshot| {
        db.insert(&mut all[..800].to_vec(), writer, Mode::Set(snapshot))
            .unwrap()
    });
    txns.run(|writer, snapshot| {
        for quad in all[..400].iter().filter(|quad| quad[2] % 3 != 0) {
            db.delete(quad, writer, snapshot).unwrap();
        }
    });
    for tree in db.trees() {
        tree.vacuum(&txns.session(&[])).unwrap();
    }
    // What is under way stays as versions.
    txns.run(|writer, snapshot| {
        db.insert(&mut all[800..850].to_vec(), writer, Mode::Set(snapshot))
            .unwrap()
    });
    let running = txns.begin();
    let (status, snapshot) = (txns.session(&[running]), txns.snapshot(&[running], 1));
    let writer = pgquad_btree::Writer {
        xid: running,
        cid: 1,
        status: &status,
    };
    db.insert(&mut all[850..].to_vec(), &writer, Mode::Set(&snapshot))
        .unwrap();
    all[600..610].iter().for_each(|quad| {
        db.delete(quad, &writer, &snapshot).unwrap();
    });
    all[620..623].iter().for_each(|quad| {
        db.lock(quad, &writer, &snapshot).unwrap();
    });
    let log = store.take_log();
    (store, log)
}

#[test]
fn pages() {
    let (store, _) = store();
    let mut text = String::new();
    for block in 0..store.blocks() {
        let page = store.read(block);
        let mut bytes = page.0;
        bytes[..HEADER_LEFT_OUT].fill(0);
        let _ = write!(text, "== {block}\n{}", dump(&bytes));
    }
    let pinned = pin("pages.txt", &text);
    // The pinned pages are a store that works: what was written before is read.
    let old = MemStore::new(
        sections(&pinned)
            .iter()
            .map(|(_, page)| page_of(page))
            .collect(),
    );
    let db = Quads::open(old).unwrap();
    let txns = Txns::default();
    (0..5).for_each(|_| txns.commit(txns.begin()));
    let snapshot = txns.snapshot(&[], 1);
    let mut digest = None;
    for tree in db.trees() {
        let found = tree.verify(&snapshot).unwrap();
        assert_eq!(found.problems, []);
        assert_eq!(*digest.get_or_insert(found.digest), found.digest);
    }
    let all = quads();
    assert!(db.exists(&all[799], &snapshot).unwrap());
    assert!(!db.exists(&[7, 7, 7, 7], &snapshot).unwrap());
}

#[test]
fn deltas() {
    let (_, log) = store();
    // One of each kind and size is enough: the first of those with the same first byte and length.
    let mut seen = Vec::new();
    let mut text = String::new();
    for logged in log.iter().filter(|logged| !logged.delta.is_empty()) {
        let kind = (logged.delta[0], logged.delta.len() / 8);
        if seen.contains(&kind) || seen.iter().filter(|s| s.0 == kind.0).count() == 4 {
            continue;
        }
        seen.push(kind);
        let mut before = logged.before.0;
        before[..HEADER_LEFT_OUT].fill(0);
        let mut after = logged.after.0;
        after[..HEADER_LEFT_OUT].fill(0);
        let _ = write!(
            text,
            "== {} {}\n{}",
            logged.block,
            logged.delta.len(),
            dump(&logged.delta)
        );
        let _ = write!(
            text,
            "== before\n{}== after\n{}",
            dump(&before),
            dump(&after)
        );
    }
    let mut kinds: Vec<u8> = seen.iter().map(|kind| kind.0).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, [1, 2, 3, 4], "edits, leaves, inner pages, bytes");
    let pinned = pin("deltas.txt", &text);
    // A log that was written before is replayed to the same pages.
    for of_delta in sections(&pinned).chunks(3) {
        let [(title, delta), (_, before), (_, after)] = of_delta else {
            panic!("three dumps for each delta");
        };
        let (block, len) = title.split_once(' ').expect("a block and a length");
        let delta = parse(delta, len.parse().expect("a length"));
        let mut page = page_of(before);
        redo(&mut page, block.parse().expect("a block"), &delta).unwrap();
        assert!(
            page.0[HEADER_LEFT_OUT..] == page_of(after).0[HEADER_LEFT_OUT..],
            "replaying {title}"
        );
    }
}
