//! Rebuilding a table: every order bottom-up into a new file, for VACUUM FULL and `quad.rebuild`.

use super::quad_sorter::QuadSorter;
use super::relation::options_of;
use super::snapshot::{Everything, PgStatus};
use super::table::Table;
use super::{bulk, options, pending};
use crate::catalog::distributed_store;
use crate::pg::ffi;
use crate::pg::guc::with_settings;
use crate::pg::interrupt::interrupt;
use crate::pg::subtransaction;
use pgquad_btree::{
    key_of, quad_of, Entry, Key, Options, Order, Quad, TxnStatus, XidStatus, FROZEN_XID,
};
use pgrx::{pg_sys, PgSqlErrorCode};
use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

/// Milliseconds for which a rebuild waits for the readers of a shard, at first and at most, before it leaves the lock
/// to others. At most is longer than `deadlock_timeout`, so that circles within a node are seen.
const SHARD_LOCK_WAITS_MS: Range<u64> = 500..8_000;
/// How long it leaves it to them.
const SHARD_LOCK_PAUSE: Duration = Duration::from_millis(100);

thread_local! {
    /// Options that the running rebuild of a table gives its new file.
    static WANTED: RefCell<Option<(pg_sys::Oid, Options)>> = const { RefCell::new(None) };
}

/// What a rebuild found.
#[derive(Default)]
pub struct Outcome {
    /// Quads in the new file.
    pub live: u64,
    /// Versions that nobody can see, left behind.
    pub removed: u64,
    /// Deleted quads that some snapshot may still see, carried over.
    pub recently_dead: u64,
    /// The oldest transaction that a version carried over names.
    pub oldest_xid: Option<u32>,
}

/// Options for the new file of table `oid`, if a rebuild with other options is running.
pub fn wanted(oid: pg_sys::Oid) -> Option<Options> {
    WANTED.with_borrow(|w| w.as_ref().filter(|w| w.0 == oid).map(|w| w.1.clone()))
}

/// Forgets the options of a failed rebuild; called at the end of a transaction.
pub fn forget_wanted() {
    WANTED.set(None);
}

/// Rebuilds table `oid` in place; `None` keeps an option as it is. False where it is no quad table. The options in its
/// definition are to be recorded anew then.
pub fn in_place(
    oid: pg_sys::Oid,
    orders: Option<&str>,
    inner_fanout: Option<&str>,
    leaf_quads: Option<&str>,
) -> bool {
    // SAFETY: cluster_rel locks the table exclusively and checks that it is not in use; without an index it is what
    // VACUUM FULL runs.
    unsafe {
        // It is sorted in the orders of before.
        pending::flush(oid);
        lock(oid);
        let Some(old) = options_of(oid) else {
            return false;
        };
        let options = options::changed(&old, orders, inner_fanout, leaf_quads);
        WANTED.set(Some((oid, options)));
        let mut params = ffi::ClusterParams { options: 0 };
        ffi::cluster_rel(oid, pg_sys::InvalidOid, &mut params);
        WANTED.set(None);
        true
    }
}

/// Locks a table exclusively.
///
/// Whoever comes after a lock that is waited for waits, too. Sessions on other nodes may wait for such a reader of a
/// shard, and the one that holds the shard for them: a circle that no deadlock detector sees. So the wait for a shard
/// is given up again and again. A `lock_timeout` of the session's own is kept.
fn lock(oid: pg_sys::Oid) {
    // SAFETY: within a transaction, of an oid that may be that of no relation.
    let wait = || unsafe { pg_sys::LockRelationOid(oid, pg_sys::AccessExclusiveLock as i32) };
    // SAFETY: a look-up by oid; plain session state.
    let (schema, own_timeout) = unsafe { (pg_sys::get_rel_namespace(oid), pg_sys::LockTimeout) };
    if own_timeout != 0 || !distributed_store::is_shard_schema(schema) {
        return wait();
    }
    let mut limit = SHARD_LOCK_WAITS_MS.start;
    let within = |limit: u64| with_settings(&[(c"lock_timeout", &limit.to_string())], wait);
    let code = PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE;
    while subtransaction::unless(code, || within(limit)).is_none() {
        limit = SHARD_LOCK_WAITS_MS.end.min(limit * 2);
        interrupt();
        std::thread::sleep(SHARD_LOCK_PAUSE);
    }
}

/// A version that some snapshot may see differently from others.
struct Recent {
    key: Key,
    xmin: u32,
    cmin: u32,
    deleted: Option<(u32, u32)>,
}

/// Quads that are handed to the sort at a time.
const BATCH_QUADS: usize = 4096;

/// Copies the contents of `old` to the empty table `new`.
///
/// # Safety
/// Both are open quad tables under exclusive locks of this transaction.
pub unsafe fn copy(old: pg_sys::Relation, new: pg_sys::Relation) -> Outcome {
    // SAFETY: the caller's promise; a setting of PostgreSQL.
    let (source, target, status, memory) = unsafe {
        let memory = pg_sys::maintenance_work_mem as usize * 1024;
        (
            Table::open(old),
            Table::open(new),
            PgStatus::new(old),
            memory,
        )
    };
    let from = source.orders()[0];
    let mut outcome = Outcome::default();
    let mut sorter = QuadSorter::new(&target.orders(), memory);
    let mut all_visible: Vec<Quad> = Vec::with_capacity(BATCH_QUADS);
    let mut recent: Vec<Recent> = Vec::new();
    let mut of_key: Vec<Entry> = Vec::new();
    let mut take = |versions: &mut Vec<Entry>| {
        let Some(key) = versions.first().map(|version| version.key) else {
            return;
        };
        let before = recent.len();
        let mut is_visible = false;
        for version in versions.drain(..) {
            match judge(&version, &status) {
                Fate::AllVisible => is_visible = true,
                Fate::Dead => outcome.removed += 1,
                Fate::Recent(version) => {
                    outcome.recently_dead += u64::from(version.deleted.is_some());
                    recent.push(version);
                }
            }
        }
        let is_deleted = |version: &Recent| version.deleted.is_some();
        if is_visible && recent[before..].iter().any(is_deleted) {
            // The deletion would be marked on it, too, if it were there already.
            recent.push(Recent {
                key,
                xmin: FROZEN_XID,
                cmin: 0,
                deleted: None,
            });
        } else if is_visible {
            all_visible.push(quad_of(from, &key));
            if all_visible.len() == BATCH_QUADS {
                sorter.push(&all_visible);
                all_visible.clear();
            }
        }
    };
    source.for_each_version(|entry| {
        if of_key.last().is_some_and(|last| last.key != entry.key) {
            take(&mut of_key);
        }
        of_key.push(*entry);
    });
    take(&mut of_key);
    sorter.push(&all_visible);
    let sorted = sorter.finish();
    outcome.live = bulk::build(&target, &sorted, FROZEN_XID, 0);
    sorted.close();
    if !recent.is_empty() {
        outcome.oldest_xid = oldest_of(&recent, &status);
        outcome.live += recent.iter().filter(|r| r.deleted.is_none()).count() as u64;
        add_recent(&target, from, recent);
        target.built(outcome.live);
    }
    outcome
}

/// The oldest transaction that these versions name.
fn oldest_of(recent: &[Recent], status: &PgStatus) -> Option<u32> {
    let writers = recent.iter().map(|version| version.xmin);
    let deleters = recent.iter().filter_map(|version| version.deleted);
    let named = writers.chain(deleters.map(|(xmax, _)| xmax));
    let normal = named.filter(|&xid| xid != FROZEN_XID);
    normal.reduce(|a, b| if status.precedes(b, a) { b } else { a })
}

enum Fate {
    /// Seen by everybody.
    AllVisible,
    /// Seen by nobody.
    Dead,
    /// Seen by some.
    Recent(Recent),
}

fn judge(entry: &Entry, status: &PgStatus) -> Fate {
    if entry.xmin != FROZEN_XID && status.status(entry.xmin) == XidStatus::Aborted {
        return Fate::Dead;
    }
    let deleted =
        (entry.xmax != 0 && !entry.lock_only && status.status(entry.xmax) != XidStatus::Aborted)
            .then_some((entry.xmax, entry.cmax));
    if let Some((xmax, _)) = deleted {
        if status.status(xmax) == XidStatus::Committed && status.all_visible(xmax) {
            return Fate::Dead;
        }
    }
    let all_visible = entry.xmin == FROZEN_XID
        || (status.status(entry.xmin) == XidStatus::Committed && status.all_visible(entry.xmin));
    match deleted {
        None if all_visible => Fate::AllVisible,
        deleted => Fate::Recent(Recent {
            key: entry.key,
            xmin: if all_visible { FROZEN_XID } else { entry.xmin },
            cmin: if all_visible { 0 } else { entry.cmin },
            deleted,
        }),
    }
}

/// Adds versions with their own transactions, whose keys are those of order `from`, to all orders.
fn add_recent(target: &Table, from: Order, mut recent: Vec<Recent>) {
    let mut before = from;
    for (n, order) in target.orders().into_iter().enumerate() {
        for version in &mut recent {
            version.key = key_of(order, &quad_of(before, &version.key));
        }
        before = order;
        recent.sort_by_key(|version| version.key);
        add_recent_to(target, n, &recent);
    }
}

/// Adds versions to order `n`; runs of one transaction and command go in together. A key that has a deleted version is
/// not in the order yet: marks are set on all versions of it that are there.
fn add_recent_to(target: &Table, n: usize, recent: &[Recent]) {
    let mut plain: Vec<&Recent> = recent.iter().filter(|r| r.deleted.is_none()).collect();
    for version in recent.iter() {
        if let Some((xmax, cmax)) = version.deleted {
            target.insert_other(n, &[version.key], version.xmin, version.cmin);
            target.mark_deleted(n, &version.key, xmax, cmax, &Everything);
        }
    }
    let writer = |version: &&Recent| (version.xmin, version.cmin);
    plain.sort_unstable_by_key(|version| (writer(version), version.key));
    for versions in plain.chunk_by(|a, b| writer(a) == writer(b)) {
        let keys: Vec<Key> = versions.iter().map(|version| version.key).collect();
        let (xmin, cmin) = writer(&versions[0]);
        target.insert_other(n, &keys, xmin, cmin);
    }
}
