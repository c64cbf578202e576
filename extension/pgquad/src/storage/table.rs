//! One open quad table: its metapage and operations on all its orders.

use super::reader::range_for;
use super::snapshot::{PgSnapshot, PgStatus};
use super::workers::{self, Task};
use super::RelationStore;
use super::{inner_page_cache, pending};
use crate::cluster::guard::is_side;
use crate::pg::error::{raise, raise_hint};
use pgquad_btree::{
    key_of, Deletion, Entry, Error, InnerPageCache, Key, Meta, Mode, Order, Quad, Quads, Snapshot,
    Stats, Tree, TxnStatus, VacuumStats, Writer, NO_XID,
};
use pgquad_cluster::taken::Taken;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::rc::Rc;

/// Raises an error of the tree crate with its SQLSTATE.
pub fn fail(e: Error) -> ! {
    use PgSqlErrorCode::*;
    match e {
        Error::Corrupt { .. } => raise_hint(
            ERRCODE_INDEX_CORRUPTED,
            e.to_string(),
            "Run quad.verify on the table; VACUUM FULL rebuilds its orders from the first one.",
        ),
        Error::OtherFormat { .. } => raise_hint(
            ERRCODE_FEATURE_NOT_SUPPORTED,
            e.to_string(),
            "Export the quads with the library that wrote the table, and load them with this one.",
        ),
        Error::TooManyVersions { .. } => raise_hint(
            ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "too many versions of one quad are in use by running transactions",
            "One page holds at most about 150 versions; commit, or wait until older transactions have ended.",
        ),
        Error::BadOptions(_) => raise(ERRCODE_INVALID_PARAMETER_VALUE, e.to_string()),
        Error::NotEmpty | Error::Unsorted | Error::NoSuchOrder(_) => {
            raise(ERRCODE_INTERNAL_ERROR, e.to_string())
        }
    }
}

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

/// What VACUUM found and did, over all orders; numbers of quads are those of the first.
#[derive(Default)]
pub struct Vacuumed {
    /// Quads that are live.
    pub live: u64,
    /// Deleted quads that some snapshot may still see.
    pub dead: u64,
    /// Versions removed.
    pub removed: u64,
    /// Pages given back to the free space map.
    pub freed_pages: u64,
    /// Oldest transaction number left in any order.
    pub oldest_xid: Option<u32>,
}

/// Bytes for the problems that are found in an order; there may be more of them than find room.
const PROBLEM_BYTES: usize = 4 * 1024;

/// What has come out of a task with one order. It lies in shared memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct OrderReport {
    vacuumed: VacuumStats,
    visible: u64,
    digest: u128,
    /// Problems, each ended by a line feed.
    text: [u8; PROBLEM_BYTES],
    length: usize,
}

impl Default for OrderReport {
    fn default() -> Self {
        Self {
            vacuumed: VacuumStats::default(),
            visible: 0,
            digest: 0,
            text: [0; PROBLEM_BYTES],
            length: 0,
        }
    }
}

impl OrderReport {
    /// Adds a problem if there is room.
    fn note(&mut self, problem: &str) {
        let end = self.length + problem.len() + 1;
        if let Some(room) = self.text.get_mut(self.length..end) {
            room[..problem.len()].copy_from_slice(problem.as_bytes());
            room[problem.len()] = b'\n';
            self.length = end;
        }
    }

    fn problems(&self) -> impl Iterator<Item = String> + '_ {
        String::from_utf8_lossy(&self.text[..self.length])
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// An open quad table.
pub struct Table {
    rel: pg_sys::Relation,
    meta: Meta,
    quads: Quads<RelationStore>,
    status: PgStatus,
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

    fn tree(&self, n: usize) -> &Tree<RelationStore> {
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
            self.quads
                .insert(quads, &self.writer(xid, cid), self.mode(snapshot))
                .unwrap_or_else(|e| fail(e))
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

    /// Inserts the new quad of an updated row. Only quads that the command itself has inserted count as there. Earlier
    /// ones are no reason to leave a quad out, for the command may yet delete them.
    pub fn insert_updated(&self, quad: Quad, xid: u32, cid: u32) {
        self.quads
            .insert(&mut vec![quad], &self.writer(xid, cid), Mode::Update)
            .unwrap_or_else(|e| fail(e));
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
                .unwrap_or_else(|e| fail(e))
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

    /// Prunes and freezes every order and takes empty pages out, in at most so many parallel workers beside this
    /// session.
    pub fn vacuum(&self, workers: i32) -> Vacuumed {
        // Pages that an earlier vacuum gave up, or that a crash kept from the free space map.
        self.quads.reclaim();
        // SAFETY: the relation is open, and locked by VACUUM.
        let reports = unsafe { workers::for_each_order(self.rel, self, Task::Vacuum, workers) };
        let first = &reports[0].vacuumed;
        let mut all = Vacuumed {
            live: first.live,
            dead: first.dead,
            removed: first.removed,
            ..Vacuumed::default()
        };
        for OrderReport { vacuumed: one, .. } in &reports {
            all.freed_pages += one.freed;
            if one.oldest_xid != NO_XID {
                all.oldest_xid = Some(match all.oldest_xid {
                    Some(other) if self.status.precedes(other, one.oldest_xid) => other,
                    _ => one.oldest_xid,
                });
            }
        }
        self.quads
            .set_counters(all.live, all.dead)
            .unwrap_or_else(|e| fail(e));
        all
    }

    /// Does a task with order `n`.
    pub fn work_on(&self, task: Task, n: usize) -> OrderReport {
        match task {
            Task::Verify => self.verify_order(n),
            Task::Vacuum => OrderReport {
                vacuumed: self
                    .tree(n)
                    .vacuum(&self.status)
                    .unwrap_or_else(|e| fail(e)),
                ..OrderReport::default()
            },
        }
    }

    /// Entries in the best range that an order has for `key` (NULL = any), and the columns that the range takes account
    /// of.
    pub fn range_count(&self, key: [Option<i64>; 4]) -> (u64, [bool; 4]) {
        let orders: Vec<[u8; 4]> = self
            .meta
            .orders()
            .iter()
            .map(|o| o.order.columns())
            .collect();
        let (n, low, high) = range_for(&orders, key);
        let mut covered = [false; 4];
        for &c in self.meta.orders()[n].order.columns().iter() {
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

    /// Checks all orders against their invariants and each other; one line per problem.
    pub fn verify(&self) -> Vec<String> {
        // SAFETY: the relation is open and locked.
        let reports = unsafe {
            pending::flush((*self.rel).rd_id);
            workers::for_each_order(self.rel, self, Task::Verify, i32::MAX)
        };
        let name = |n: usize| self.meta.orders()[n].order.to_string();
        let mut problems: Vec<String> = Vec::new();
        for (n, report) in reports.iter().enumerate() {
            problems.extend(report.problems().map(|p| format!("order {}: {p}", name(n))));
            let (first, other) = (name(0), name(n));
            if report.visible != reports[0].visible {
                problems.push(format!(
                    "order {first} has {} quads, order {other} has {}",
                    reports[0].visible, report.visible
                ));
            } else if report.digest != reports[0].digest {
                problems.push(format!("orders {first} and {other} hold different quads"));
            }
        }
        problems
    }

    fn verify_order(&self, n: usize) -> OrderReport {
        // SAFETY: functions run with an active snapshot; parallel workers have that of their leader.
        let snapshot = unsafe { PgSnapshot::new(self.rel, pg_sys::GetActiveSnapshot()) };
        let found = self.tree(n).verify(&snapshot).unwrap_or_else(|e| fail(e));
        let mut report = OrderReport {
            visible: found.visible,
            digest: found.digest,
            ..OrderReport::default()
        };
        for problem in &found.problems {
            report.note(&problem.to_string());
        }
        report
    }

    /// Calls `f` for every version in the first order, in key order, whoever sees it. Nobody else may change the table
    /// meanwhile.
    pub fn for_each_version(&self, f: impl FnMut(&Entry)) {
        self.tree(0).for_each_version(f).unwrap_or_else(|e| fail(e));
    }
}

/// Forgets the metapage kept with a relation's cache entry, whose file has got other contents.
///
/// # Safety
/// `rel` is an open quad table.
pub unsafe fn forget_meta(rel: pg_sys::Relation) {
    // SAFETY: `rd_amcache` is ours, see `cached_meta`.
    unsafe {
        inner_page_cache::forget((*rel).rd_id);
        if !(*rel).rd_amcache.is_null() {
            pg_sys::pfree((*rel).rd_amcache);
            (*rel).rd_amcache = std::ptr::null_mut();
        }
    }
}

/// The trees of a relation for reading.
pub struct ReadTrees {
    /// One for each order.
    pub trees: Vec<Tree<RelationStore>>,
    /// Their column permutations.
    pub orders: Vec<[u8; 4]>,
}

/// The trees of a relation for reading, which go by what this session remembers of their inner pages.
///
/// # Safety
/// As for [`Table::open`].
pub unsafe fn trees_to_read(rel: pg_sys::Relation) -> Rc<ReadTrees> {
    // SAFETY: the caller's promise.
    unsafe {
        let store = RelationStore::new(rel);
        let meta = cached_meta(rel, &store);
        let make = |caches: &[Rc<InnerPageCache>]| {
            let tree = |(n, cache): (usize, &Rc<InnerPageCache>)| {
                let tree = Tree::new(store, meta, n).unwrap_or_else(|e| fail(e));
                tree.with_inner_page_cache(cache.clone())
            };
            let trees: Vec<_> = caches.iter().enumerate().map(tree).collect();
            ReadTrees {
                orders: trees.iter().map(|tree| tree.order().columns()).collect(),
                trees,
            }
        };
        inner_page_cache::trees(rel, meta.orders().len(), make)
    }
}

/// One of [`trees_to_read`].
///
/// # Safety
/// As for [`Table::open`].
pub unsafe fn tree_to_read(rel: pg_sys::Relation, n: usize) -> Tree<RelationStore> {
    // SAFETY: the caller's promise.
    unsafe {
        let store = RelationStore::new(rel);
        let meta = cached_meta(rel, &store);
        let tree = Tree::new(store, meta, n).unwrap_or_else(|e| fail(e));
        tree.with_inner_page_cache(inner_page_cache::of(rel, meta.orders().len())[n].clone())
    }
}

/// The metapage, from the relation's cache entry if it is there.
///
/// # Safety
/// `rel` is an open quad table with a file; the metapage is not used when invalidations may have been taken in since.
unsafe fn cached_meta<'a>(rel: pg_sys::Relation, store: &RelationStore) -> &'a Meta {
    // SAFETY: `rd_amcache` is ours: null, or a Meta put there below, freed by the relation cache with the entry's
    // contents.
    unsafe {
        let cached = (*rel).rd_amcache.cast::<Meta>();
        if let Some(meta) = cached.as_ref() {
            return meta;
        }
        let meta = Meta::read(store).unwrap_or_else(|e| fail(e));
        let place = pg_sys::MemoryContextAlloc(pg_sys::CacheMemoryContext, size_of::<Meta>());
        place.cast::<Meta>().write(meta);
        (*rel).rd_amcache = place;
        &*place.cast::<Meta>()
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
