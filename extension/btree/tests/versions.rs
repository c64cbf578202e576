//! What becomes of the versions of one quad: sets, conflicts, locks, subtransactions.

use pgquad_btree::mem::{MemSnapshot, MemStore, Txns};
use pgquad_btree::{initial_pages, Deletion, Mode, Options, Quad, Quads, Writer, DEFAULT_ORDERS};

const Q: Quad = [1, 2, 3, 4];

struct Db {
    quads: Quads<MemStore>,
    txns: Txns,
}

impl Db {
    fn new() -> Self {
        let options = Options::with_orders(&DEFAULT_ORDERS);
        let store = MemStore::new(initial_pages(&options).unwrap());
        Db {
            quads: Quads::open(store).unwrap(),
            txns: Txns::default(),
        }
    }

    /// A database with the quad in it.
    fn with_quad() -> Self {
        let db = Db::new();
        let xid = db.txns.begin();
        assert_eq!(db.insert(&[xid], 0, &db.txns.snapshot(&[xid], 0)), 1);
        db.txns.commit(xid);
        db
    }

    /// Inserts the quad as the last one of the (sub)transactions.
    fn insert(&self, own: &[u32], cid: u32, snap: &MemSnapshot) -> usize {
        self.write(own, cid, |writer| {
            let mut quads = vec![Q, Q];
            self.quads
                .insert(&mut quads, writer, Mode::Set(snap))
                .unwrap()
        })
    }

    /// Runs a command of the last one of the (sub)transactions.
    fn write<T>(&self, own: &[u32], cid: u32, command: impl FnOnce(&Writer) -> T) -> T {
        let status = self.txns.session(own);
        let xid = own[own.len() - 1];
        command(&Writer {
            xid,
            cid,
            status: &status,
        })
    }

    fn delete(&self, own: &[u32], cid: u32, snap: &MemSnapshot) -> Deletion {
        self.write(own, cid, |writer| {
            self.quads.delete(&Q, writer, snap).unwrap()
        })
    }

    fn lock(&self, own: &[u32], cid: u32, snap: &MemSnapshot) -> Deletion {
        self.write(own, cid, |writer| {
            self.quads.lock(&Q, writer, snap).unwrap()
        })
    }

    fn sees(&self, snap: &MemSnapshot) -> bool {
        self.quads.exists(&Q, snap).unwrap()
    }

    /// What a new transaction sees, the orders agreeing.
    fn visible(&self) -> u64 {
        let snap = self.txns.snapshot(&[], 1);
        let mut digest = None;
        let mut visible = 0;
        for tree in self.quads.trees() {
            let v = tree.verify(&snap).unwrap();
            assert_eq!(v.problems, vec![]);
            assert_eq!(*digest.get_or_insert(v.digest), v.digest);
            visible = v.visible;
        }
        visible
    }
}

#[test]
fn two_insert_the_same() {
    let db = Db::new();
    let (a, b) = (db.txns.begin(), db.txns.begin());
    let (sa, sb) = (db.txns.snapshot(&[a], 0), db.txns.snapshot(&[b], 0));
    assert_eq!(db.insert(&[a], 0, &sa), 1);
    assert_eq!(db.insert(&[a], 0, &sa), 0, "again in the same command");
    assert_eq!(db.insert(&[b], 0, &sb), 1);
    drop((sa, sb));
    db.txns.abort(a);
    assert_eq!(db.visible(), 0);
    db.txns.commit(b);
    assert_eq!(db.visible(), 1);
    let v = db
        .quads
        .tree(0)
        .unwrap()
        .vacuum(&db.txns.session(&[]))
        .unwrap();
    assert_eq!((v.live, v.removed), (1, 1));
}

#[test]
fn conflicts() {
    let db = Db::with_quad();
    let (a, b) = (db.txns.begin(), db.txns.begin());
    let (sa, sb) = (db.txns.snapshot(&[a], 0), db.txns.snapshot(&[b], 0));
    assert_eq!(db.delete(&[a], 0, &sa), Deletion::Done);
    assert_eq!(db.delete(&[a], 0, &sa), Deletion::SelfDeleted { cmax: 0 });
    let conflict = |committed| Deletion::Conflict {
        xid: a,
        cmax: 0,
        committed,
        lock_only: false,
    };
    assert_eq!(db.delete(&[b], 0, &sb), conflict(false));
    assert_eq!(db.lock(&[b], 0, &sb), conflict(false));
    // While another transaction deletes the quad, an insertion adds a version.
    assert_eq!(db.insert(&[b], 0, &sb), 1);
    drop(sa);
    db.txns.commit(a);
    let later = db.txns.snapshot(&[b], 1);
    assert!(db.sees(&later), "the version of its own");
    assert_eq!(
        db.delete(&[b], 1, &sb),
        conflict(true),
        "sees the version that was deleted"
    );
    assert_eq!(db.delete(&[b], 1, &later), Deletion::Done);
    let last = db.txns.snapshot(&[b], 2);
    assert_eq!(db.delete(&[b], 2, &last), Deletion::NotFound);
    drop((sb, later, last));
    db.txns.commit(b);
    assert_eq!(db.visible(), 0);
}

#[test]
fn locks() {
    let db = Db::with_quad();
    let (a, b) = (db.txns.begin(), db.txns.begin());
    let (sa, sb) = (db.txns.snapshot(&[a], 0), db.txns.snapshot(&[b], 0));
    assert_eq!(db.lock(&[a], 0, &sa), Deletion::Done);
    assert_eq!(
        db.lock(&[a], 0, &sa),
        Deletion::Done,
        "it holds the lock already"
    );
    assert!(db.sees(&sa) && db.sees(&sb), "a lock hides nothing");
    assert_eq!(
        db.delete(&[b], 0, &sb),
        Deletion::Conflict {
            xid: a,
            cmax: 0,
            committed: false,
            lock_only: true
        }
    );
    drop(sa);
    db.txns.commit(a);
    assert_eq!(
        db.delete(&[b], 0, &sb),
        Deletion::Done,
        "a lock ends with its transaction"
    );
    drop(sb);
    db.txns.abort(b);
    assert_eq!(db.visible(), 1);
    let c = db.txns.begin();
    assert_eq!(
        db.delete(&[c], 0, &db.txns.snapshot(&[c], 0)),
        Deletion::Done
    );
    db.txns.commit(c);
    assert_eq!(db.visible(), 0);
}

#[test]
fn delete_and_insert_again() {
    let db = Db::with_quad();
    let a = db.txns.begin();
    assert_eq!(
        db.delete(&[a], 0, &db.txns.snapshot(&[a], 0)),
        Deletion::Done
    );
    assert!(!db.sees(&db.txns.snapshot(&[a], 1)));
    assert_eq!(db.insert(&[a], 1, &db.txns.snapshot(&[a], 1)), 1);
    assert!(db.sees(&db.txns.snapshot(&[a], 2)));
    assert_eq!(
        db.quads.tree(0).unwrap().stats().unwrap().entries,
        1,
        "taken back"
    );
    db.txns.abort(a);
    assert_eq!(db.visible(), 1);
}

#[test]
fn subtransactions() {
    let db = Db::with_quad();
    let a = db.txns.begin();
    let sub = db.txns.begin();
    assert_eq!(
        db.delete(&[a, sub], 0, &db.txns.snapshot(&[a, sub], 0)),
        Deletion::Done
    );
    assert!(!db.sees(&db.txns.snapshot(&[a, sub], 1)));
    // Another subtransaction must not take back what this one may yet roll back.
    let other = db.txns.begin();
    let own = [a, sub, other];
    assert_eq!(db.insert(&own, 1, &db.txns.snapshot(&own, 1)), 1);
    assert!(db.sees(&db.txns.snapshot(&own, 2)));
    db.txns.abort(other);
    assert!(!db.sees(&db.txns.snapshot(&[a, sub], 3)));
    db.txns.abort(sub);
    assert!(
        db.sees(&db.txns.snapshot(&[a], 4)),
        "the deletion is rolled back"
    );
    // The stale mark is in nobody's way.
    let b = db.txns.begin();
    let sb = db.txns.snapshot(&[b], 0);
    assert_eq!(db.delete(&[b], 0, &sb), Deletion::Done);
    drop(sb);
    db.txns.commit(b);
    db.txns.commit(a);
    assert_eq!(db.visible(), 0);
}

#[test]
fn old_snapshots_keep_what_they_see() {
    let db = Db::with_quad();
    let old = db.txns.snapshot(&[], 1);
    let a = db.txns.begin();
    assert_eq!(
        db.delete(&[a], 0, &db.txns.snapshot(&[a], 0)),
        Deletion::Done
    );
    db.txns.commit(a);
    for tree in db.quads.trees() {
        let v = tree.vacuum(&db.txns.session(&[])).unwrap();
        assert_eq!((v.live, v.dead, v.removed, v.oldest_xid), (0, 1, 0, a));
    }
    assert!(db.sees(&old));
    drop(old);
    for tree in db.quads.trees() {
        let v = tree.vacuum(&db.txns.session(&[])).unwrap();
        assert_eq!((v.live, v.dead, v.removed, v.oldest_xid), (0, 0, 1, 0));
    }
}

/// UPDATE as the access method does it: delete a quad, insert another, row by row, as one command.
fn update(db: &Db, xid: u32, cid: u32, change: impl Fn(Quad) -> Quad, rows: &[Quad]) {
    let snap = db.txns.snapshot(&[xid], cid);
    db.write(&[xid], cid, |writer| {
        for row in rows {
            let deleted = db.quads.delete(row, writer, &snap).unwrap();
            assert_eq!(deleted, Deletion::Done);
            let mut changed = vec![change(*row)];
            db.quads.insert(&mut changed, writer, Mode::Update).unwrap();
        }
    });
}

/// A database with quads in many graphs, which the transaction that is returned has inserted by its first command.
fn with_graphs(graphs: i64) -> (Db, u32, Vec<Quad>) {
    let db = Db::new();
    let xid = db.txns.begin();
    let rows: Vec<Quad> = (0..graphs).map(|g| [1, 2, 3, g]).collect();
    let snap = db.txns.snapshot(&[xid], 0);
    db.write(&[xid], 0, |writer| {
        let mut rows = rows.clone();
        db.quads
            .insert(&mut rows, writer, Mode::Set(&snap))
            .unwrap();
    });
    drop(snap);
    (db, xid, rows)
}

#[test]
fn an_update_moves_quads_onto_each_other() {
    let (db, xid, rows) = with_graphs(20);
    let turn = |q: Quad| [q[0], q[1], q[2], (q[3] + 1) % 20];
    for cid in 1..500 {
        update(&db, xid, cid, turn, &rows);
    }
    db.txns.commit(xid);
    assert_eq!(db.visible(), 20);
}

#[test]
fn an_update_makes_quads_equal() {
    let (db, xid, rows) = with_graphs(400);
    update(&db, xid, 1, |q| [q[0], q[1], q[2], 7], &rows);
    db.txns.commit(xid);
    assert_eq!(db.visible(), 1);
}

/// Six far-apart values of a column take more bytes than eight, for which two frames pay. So a leaf may not hold what
/// is left of it: VACUUM splits it.
#[test]
fn vacuum_splits_a_leaf_whose_rest_does_not_fit() {
    for tail in 100..170 {
        let db = Db::new();
        let far = |i: i64| if i % 2 == 0 { i + 1 } else { (1 << 60) + i };
        let base: Vec<Quad> = (0..8).map(|i| [far(i); 4]).collect();
        let write = |change: &dyn Fn(&Writer, &MemSnapshot)| {
            let xid = db.txns.begin();
            let snapshot = db.txns.snapshot(&[xid], 0);
            db.write(&[xid], 0, |writer| change(writer, &snapshot));
            drop(snapshot);
            db.txns.commit(xid);
        };
        let vacuum = || {
            for tree in db.quads.trees() {
                tree.vacuum(&db.txns.session(&[])).unwrap();
            }
        };
        write(&|writer, snapshot| {
            let mut quads = base.clone();
            let mode = Mode::Set(snapshot);
            db.quads.insert(&mut quads, writer, mode).unwrap();
        });
        vacuum();
        for quad in &base[..2] {
            write(&|writer, snapshot| {
                assert_eq!(db.quads.delete(quad, writer, snapshot), Ok(Deletion::Done));
            });
        }
        let old = db.txns.snapshot(&[], 0);
        for i in 0..tail {
            write(&|writer, snapshot| {
                let mut quads = vec![[far(i) + 1000; 4]];
                let mode = Mode::Set(snapshot);
                db.quads.insert(&mut quads, writer, mode).unwrap();
            });
        }
        vacuum();
        assert_eq!(db.visible(), 6 + tail as u64);
        drop(old);
        vacuum();
        assert_eq!(db.visible(), 6 + tail as u64);
    }
}
