//! One open quad table: its metapage and operations on all its orders.

use super::buffers::RelationStore;
use super::error::fail;
use super::key_range::range_for;
use super::snapshot::{PgSnapshot, PgStatus};
use super::trees::cached_meta;
use crate::catalog::distributed_store::is_side;
use pgquad_btree::{
    key_of, Deletion, Entry, Key, Meta, Mode, Order, Quad, Quads, Snapshot, Stats, Tree, Writer,
};
use pgquad_cluster::taken::Taken;
use pgrx::pg_sys;

/// The outcome of deleting or locking a quad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// Done.
    Done,
    /// The snapshot sees no such quad.
    NotVisible,
    /// This transaction has deleted it already.
    BySelf {
        /// In this command.
        cmax: u32,
    },
    /// A transaction that committed after the snapshot was taken has deleted it.
    Committed {
        /// The transaction.
        xid: u32,
    },
    /// A running transaction has deleted or locked it.
    InProgress {
        /// The transaction.
        xid: u32,
    },
}

impl From<Deletion> for Deleted {
    fn from(d: Deletion) -> Self {
        match d {
            Deletion::Done => Self::Done,
            Deletion::NotFound => Self::NotVisible,
            Deletion::SelfDeleted { cmax } => Self::BySelf { cmax },
            Deletion::Conflict {
                xid,
                committed: true,
                ..
            } => Self::Committed { xid },
            Deletion::Conflict { xid, .. } => Self::InProgress { xid },
        }
    }
}

/// One row of a sampled block.
#[derive(Clone, Copy)]
pub enum Sampled {
    /// A live quad.
    Live(Quad),
    /// A deleted or aborted version.
    Dead,
}

/// An open quad table.
pub struct Table {
    pub(super) rel: pg_sys::Relation,
    meta: Meta,
    pub(super) quads: Quads<RelationStore>,
    pub(super) status: PgStatus,
}

impl Table {
    /// Opens the trees of a relation. The metapage is kept with the relation's cache entry: options never change for a
    /// file, and a root that has moved since is found by the trees.
    ///
    /// # Safety
    /// `rel` is an open quad table with a file, and outlives the value.
    pub unsafe fn open(rel: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let store = RelationStore::new(rel);
            let meta = cached_meta(rel, &store).clone();
            let quads = Quads::with_meta(store, &meta).unwrap_or_else(|e| fail(e));
            Self {
                rel,
                meta,
                quads,
                status: PgStatus::new(rel),
            }
        }
    }

    /// Versions from before this transaction are pruned and frozen, as [`PgStatus::set_horizon`] says.
    pub fn set_horizon(&mut self, xid: pg_sys::TransactionId) {
        self.status.set_horizon(xid);
    }

    /// The metapage as it was when the relation was first used by this session.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The orders of the table.
    pub fn orders(&self) -> Vec<Order> {
        self.meta.orders().iter().map(|o| o.order).collect()
    }

    /// The trees, in the order of [`Self::orders`].
    pub fn trees(&self) -> &[Tree<RelationStore>] {
        self.quads.trees()
    }

    /// The tree of order `n`.
    pub(super) fn tree(&self, n: usize) -> &Tree<RelationStore> {
        self.quads.tree(n).unwrap_or_else(|e| fail(e))
    }

    fn writer(&self, xid: u32, cid: u32) -> Writer<'_> {
        Writer {
            xid,
            cid,
            status: &self.status,
        }
    }

    /// Runs `f` with the snapshot that an insertion looks at.
    fn with_insert_snapshot<T>(&self, f: impl FnOnce(&PgSnapshot) -> T) -> T {
        // SAFETY: an active snapshot stays so during the call; without one (index-less internal inserts) the latest is
        // registered.
        unsafe {
            if pg_sys::ActiveSnapshotSet() {
                return f(&PgSnapshot::for_insert(pg_sys::GetActiveSnapshot()));
            }
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
            let result = f(&PgSnapshot::for_insert(snapshot));
            pg_sys::UnregisterSnapshot(snapshot);
            result
        }
    }

    /// Whether this is a shard of a distributed store, and that by a given column of a quad.
    fn is_shard_by(&self, column: u8) -> bool {
        // SAFETY: the relation is open.
        let relid = unsafe { (*self.rel).rd_id };
        self.meta.orders()[0].order.columns()[0] == column && is_side(relid)
    }

    /// Whether this is a shard by subject of a distributed store: it decides for the shards by object what is there.
    pub fn decides(&self) -> bool {
        self.is_shard_by(0)
    }

    /// A shard by object of a distributed store gets what the shards by subject have taken.
    fn mode<'a>(&self, snapshot: &'a PgSnapshot) -> Mode<'a> {
        if self.is_shard_by(2) {
            Mode::Own
        } else {
            Mode::Set(snapshot)
        }
    }

    /// Inserts quads as a set; leaves in `quads` those that were not there. Returns their number.
    pub fn insert(&self, quads: &mut Vec<Quad>, xid: u32, cid: u32) -> usize {
        self.with_insert_snapshot(|snapshot| {
            let given = quads.len();
            let added = self
                .quads
                .insert(quads, &self.writer(xid, cid), self.mode(snapshot))
                .unwrap_or_else(|e| fail(e));
            if added < given {
                // SERIALIZABLE: what was left out has been read, in effect.
                // SAFETY: the relation is open.
                unsafe { snapshot.lock_relation(self.rel) }
            }
            added
        })
    }

    /// Whether this transaction has inserted a version of a key of the first order that is still there.
    pub fn is_own(&self, key: &Key) -> bool {
        self.tree(0)
            .has_own(key, &self.status)
            .unwrap_or_else(|e| fail(e))
    }

    /// Notes keys that have come to the first order, ascending, `new` of which were not there. `again`: earlier
    /// commands of the transaction may have inserted some of the others.
    pub fn note(&self, keys: &[Key], new: &[Key], again: bool, taken: &mut Taken) {
        let mut new = new.iter().peekable();
        for key in keys {
            if new.next_if_eq(&key).is_some() {
                taken.push_new(1);
            } else {
                taken.push(again && self.is_own(key), 1);
            }
        }
    }

    /// The number of versions of a quad that a command of a (sub)transaction has deleted.
    pub fn marked(&self, quad: &Quad, xid: u32, cid: u32) -> usize {
        let tree = self.tree(0);
        tree.marked(&key_of(tree.order(), quad), xid, cid)
            .unwrap_or_else(|e| fail(e))
    }

    /// As [`Self::insert`], for a command that deletes, too: an UPDATE. Only quads that the command itself has inserted
    /// count as there. Earlier ones are no reason to leave a quad out, for the command may yet delete them.
    pub fn insert_updated(&self, quads: &mut Vec<Quad>, xid: u32, cid: u32) -> usize {
        self.quads
            .insert(quads, &self.writer(xid, cid), Mode::Update)
            .unwrap_or_else(|e| fail(e))
    }

    /// Inserts ascending keys into the first order; returns those that were not there.
    pub fn insert_first(&self, keys: &[Key], xid: u32, cid: u32) -> Vec<Key> {
        let mut inserted = Vec::new();
        self.with_insert_snapshot(|snapshot| {
            self.tree(0)
                .insert(
                    keys,
                    &self.writer(xid, cid),
                    self.mode(snapshot),
                    &mut inserted,
                )
                .unwrap_or_else(|e| fail(e));
            if inserted.contains(&false) {
                // As for [`Self::insert`].
                // SAFETY: the relation is open.
                unsafe { snapshot.lock_relation(self.rel) }
            }
        });
        let new = keys.iter().zip(&inserted).filter(|(_, new)| **new);
        new.map(|(key, _)| *key).collect()
    }

    /// Inserts ascending keys into order `n` without asking what is there.
    pub fn insert_other(&self, n: usize, keys: &[Key], xid: u32, cid: u32) {
        self.tree(n)
            .insert(keys, &self.writer(xid, cid), Mode::Force, &mut Vec::new())
            .unwrap_or_else(|e| fail(e));
    }

    /// Marks the versions of one key in order `n` that `snapshot` sees as deleted.
    pub fn mark_deleted(&self, n: usize, key: &Key, xid: u32, cid: u32, snapshot: &impl Snapshot) {
        self.tree(n)
            .mark_deleted(&[*key], &self.writer(xid, cid), snapshot)
            .unwrap_or_else(|e| fail(e));
    }

    /// Deletes a quad from all orders, or says what stands against it.
    pub fn delete(&self, quad: &Quad, xid: u32, cid: u32, snapshot: &PgSnapshot) -> Deleted {
        self.quads
            .delete(quad, &self.writer(xid, cid), snapshot)
            .unwrap_or_else(|e| fail(e))
            .into()
    }

    /// Locks a quad against deletion.
    pub fn lock(&self, quad: &Quad, xid: u32, cid: u32, snapshot: &PgSnapshot) -> Deleted {
        self.quads
            .lock(quad, &self.writer(xid, cid), snapshot)
            .unwrap_or_else(|e| fail(e))
            .into()
    }

    /// Whether `snapshot` sees the quad.
    pub fn exists(&self, quad: &Quad, snapshot: &PgSnapshot) -> bool {
        self.quads
            .exists(quad, snapshot)
            .unwrap_or_else(|e| fail(e))
    }

    /// Whether no order has any entry, dead ones included.
    pub fn is_empty(&self) -> bool {
        (0..self.meta.orders().len()).all(|n| {
            let tree = self.tree(n);
            tree.is_empty().unwrap_or_else(|e| fail(e))
        })
    }

    /// Notes in the metapage what a build of all orders has put in.
    pub fn built(&self, live: u64) {
        self.quads.set_counters(live, 0).unwrap_or_else(|e| fail(e));
    }

    /// Entries in the best range that an order has for `key` (NULL = any), and the columns that the range takes account
    /// of.
    pub fn range_count(&self, key: [Option<i64>; 4]) -> (u64, [bool; 4]) {
        let orders = self.orders();
        let (n, low, high) = range_for(&orders, key);
        let mut covered = [false; 4];
        for c in orders[n].columns() {
            if key[usize::from(c)].is_none() {
                break;
            }
            covered[usize::from(c)] = true;
        }
        let count = self
            .tree(n)
            .range_count(&low, &high)
            .unwrap_or_else(|e| fail(e));
        (count, covered)
    }

    /// Pages and entries of order `n`.
    pub fn stats(&self, n: usize) -> Stats {
        self.tree(n).stats().unwrap_or_else(|e| fail(e))
    }

    /// Calls `f` for every version in the first order, in key order, whoever sees it. Nobody else may change the table
    /// meanwhile.
    pub fn for_each_version(&self, f: impl FnMut(&Entry)) {
        self.tree(0).for_each_version(f).unwrap_or_else(|e| fail(e));
    }
}

/// The rows of one block, for ANALYZE: those of a leaf of the first order, none of any other page.
///
/// # Safety
/// `rel` is an open quad table.
pub unsafe fn leaf_sample(rel: pg_sys::Relation, block: u32) -> Vec<Sampled> {
    // SAFETY: the caller's promise.
    let (table, snapshot) = unsafe { (Table::open(rel), pg_sys::GetLatestSnapshot()) };
    let order = table.tree(0).order();
    // SAFETY: the latest snapshot stays valid until the next one is taken, which nothing here does.
    let view = unsafe { PgSnapshot::new(rel, snapshot) };
    table
        .tree(0)
        .leaf_entries(block)
        .unwrap_or_else(|e| fail(e))
        .iter()
        .map(|entry| {
            let seen = (entry.xmin == 2 || view.sees_insert(entry.xmin, entry.cmin))
                && (entry.xmax == 0
                    || entry.lock_only
                    || !view.sees_delete(entry.xmax, entry.cmax));
            if seen {
                Sampled::Live(pgquad_btree::quad_of(order, &entry.key))
            } else {
                Sampled::Dead
            }
        })
        .collect()
}
