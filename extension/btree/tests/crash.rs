//! A crash before any one commit leaves a tree that is whole, shows exactly the committed quads, and
//! goes on working.

use pgquad_btree::mem::{Crash, MemStore, Txns};
use pgquad_btree::{initial_pages, Deletion, Mode, Options, Quad, Quads, Writer, DEFAULT_ORDERS};
use std::collections::BTreeSet;
use std::panic::{catch_unwind, AssertUnwindSafe};

fn open(fanout: u32, leaf: u32) -> MemStore {
    let mut options = Options::with_orders(&DEFAULT_ORDERS[..2]);
    for o in &mut options.orders {
        o.inner_fanout = fanout;
        o.leaf_quads = leaf;
    }
    MemStore::new(initial_pages(&options).unwrap())
}

fn quad(n: i64) -> Quad {
    [n * 7919 % 101, n % 5, n, 0]
}

/// Transactions that insert and delete, and vacuums in between. Returns what is committed; `note` hears
/// of it after every commit.
fn history(
    store: &MemStore,
    txns: &Txns,
    committed: &mut BTreeSet<Quad>,
    running: &mut Option<u32>,
    round: i64,
) {
    let quads = Quads::open(store.clone()).unwrap();
    for step in 0..6 {
        let xid = txns.begin();
        *running = Some(xid);
        let mut now = committed.clone();
        {
            let (session, snap) = (txns.session(&[xid]), txns.snapshot(&[xid], 1));
            let writer = Writer {
                xid,
                cid: 0,
                status: &session,
            };
            let from = round * 500 + step * 40;
            if step % 3 == 2 {
                for q in committed.iter().step_by(2) {
                    if quads.delete(q, &writer, &snap).unwrap() == Deletion::Done {
                        now.remove(q);
                    }
                }
            } else if step % 3 == 1 {
                for n in from..from + 15 {
                    quads
                        .insert(&mut vec![quad(n)], &writer, Mode::Set(&snap))
                        .unwrap();
                    now.insert(quad(n));
                }
            } else {
                let mut many: Vec<Quad> = (from..from + 60).map(quad).collect();
                now.extend(many.iter().copied());
                quads.insert(&mut many, &writer, Mode::Set(&snap)).unwrap();
            }
        }
        txns.commit(xid);
        *running = None;
        *committed = now;
        let session = txns.session(&[]);
        if step % 3 == 2 {
            for tree in quads.trees() {
                tree.vacuum(&session).unwrap();
            }
        }
    }
}

fn verify(store: &MemStore, txns: &Txns, committed: &BTreeSet<Quad>, whole: bool) {
    let quads = Quads::open(store.clone()).unwrap();
    let snap = txns.snapshot(&[], 1);
    let mut digest = None;
    for tree in quads.trees() {
        let v = tree.verify(&snap).unwrap();
        assert_eq!(v.problems, vec![]);
        assert_eq!(v.visible, committed.len() as u64);
        assert_eq!(*digest.get_or_insert(v.digest), v.digest);
        assert!(!whole || v.incomplete_splits == 0);
    }
}

#[test]
fn crash_anywhere() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<Crash>().is_none() {
            quiet(info);
        }
    }));
    for (fanout, leaf, stride) in [(4, 4, 7), (4, 12, 3), (0, 0, 3)] {
        let mut fuse = 0;
        loop {
            let store = open(fanout, leaf);
            let txns = Txns::default();
            let (mut committed, mut running) = (BTreeSet::new(), None);
            store.crash_after(fuse);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                history(&store, &txns, &mut committed, &mut running, 0);
            }));
            let done = match outcome {
                Ok(()) => true,
                Err(e) if e.is::<Crash>() => false,
                Err(e) => std::panic::resume_unwind(e),
            };
            store.crash_after(u64::MAX >> 2);
            if let Some(xid) = running.take() {
                txns.abort(xid);
            }
            verify(&store, &txns, &committed, false);
            if done {
                break;
            }
            if fuse % (5 * stride) == 0 {
                history(&store, &txns, &mut committed, &mut running, 1);
                verify(&store, &txns, &committed, false);
            }
            let (quads, session) = (Quads::open(store.clone()).unwrap(), txns.session(&[]));
            for tree in quads.trees() {
                let v = tree.vacuum(&session).unwrap();
                assert_eq!(v.live, committed.len() as u64);
            }
            verify(&store, &txns, &committed, true);
            fuse += stride;
        }
        assert!(
            fuse > 30,
            "the history is too short to test anything: {fuse} commits"
        );
    }
}
