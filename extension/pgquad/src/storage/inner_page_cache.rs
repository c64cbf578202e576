//! The inner pages that this session remembers of the tables it reads ([`pgquad_btree::InnerPageCache`]).

use super::buffers::RelationStore;
use crate::pg::compat::{self, FileLocator};
use pgquad_btree::{CacheBudget, InnerPageCache, Order, Tree};
use pgrx::pg_sys;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// After this time all is read anew: counts of remembered pages should not be much older.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Bytes for all tables together. The inner pages take some 50 bytes for each leaf, so these lead to some 4 GB of
/// leaves: all orders of about a hundred million quads. Where there are more, a look-up waits for its leaf rather than
/// for the pages above it. The memory of many sessions is then better spent on a cache of leaves.
const CACHE_BYTES: usize = 32 << 20;

/// The trees of a relation for reading.
pub struct ReadTrees {
    /// One for each order.
    pub trees: Vec<Tree<RelationStore>>,
    /// Those orders.
    pub orders: Vec<Order>,
}

struct Kept {
    file: FileLocator,
    since: Instant,
    /// When it was last asked for.
    used: Instant,
    orders: Rc<[Rc<InnerPageCache>]>,
    /// The trees that were made for reading, of the relation cache's entry at this address.
    trees: Option<(pg_sys::Relation, Rc<ReadTrees>)>,
}

/// What is remembered of all tables.
struct Memory {
    tables: FxHashMap<pg_sys::Oid, Kept>,
    budget: Rc<CacheBudget>,
}

impl Memory {
    /// Makes room for a table, by forgetting others, those first that were used longest ago.
    fn make_room(&mut self, relid: pg_sys::Oid) {
        while self.budget.is_full() {
            let others = self.tables.iter().filter(|(&table, _)| table != relid);
            let Some((&oldest, _)) = others.min_by_key(|(_, kept)| kept.used) else {
                return;
            };
            self.tables.remove(&oldest);
        }
    }
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::new(Memory {
        tables: FxHashMap::default(),
        budget: Rc::new(CacheBudget::new(CACHE_BYTES)),
    });
}

impl Memory {
    /// What is remembered of an open table with so many orders.
    fn of(&mut self, relid: pg_sys::Oid, file: FileLocator, orders: usize) -> &mut Kept {
        let now = Instant::now();
        self.make_room(relid);
        let is_good = |known: &Kept| {
            now.duration_since(known.since) < MAX_AGE
                && compat::same_file(&known.file, &file)
                && known.orders.len() == orders
        };
        if !self.tables.get(&relid).is_some_and(is_good) {
            let caches = (0..orders).map(|_| Rc::new(InnerPageCache::new(&self.budget)));
            let new = Kept {
                file,
                since: now,
                used: now,
                orders: caches.collect(),
                trees: None,
            };
            self.tables.insert(relid, new);
        }
        let kept = self.tables.get_mut(&relid).expect("inserted above");
        kept.used = now;
        kept
    }
}

/// What is remembered of a table with so many orders, one value for each.
///
/// # Safety
/// `rel` is open.
pub unsafe fn of(rel: pg_sys::Relation, orders: usize) -> Rc<[Rc<InnerPageCache>]> {
    // SAFETY: the caller's promise.
    let (relid, file) = unsafe { ((*rel).rd_id, *compat::file_of(rel)) };
    MEMORY.with_borrow_mut(|memory| memory.of(relid, file, orders).orders.clone())
}

/// The trees of a table with so many orders, for reading. Trees that were made before serve as long as nothing of the
/// table has changed. Otherwise `make` makes new ones of the inner pages that are remembered.
///
/// # Safety
/// `rel` is open, for as long as the trees are used. What is kept points to the entry of the relation cache, and is
/// given out only while that entry is open.
pub unsafe fn trees(
    rel: pg_sys::Relation,
    orders: usize,
    make: impl FnOnce(&[Rc<InnerPageCache>]) -> ReadTrees,
) -> Rc<ReadTrees> {
    // SAFETY: the caller's promise.
    let (relid, file) = unsafe { ((*rel).rd_id, *compat::file_of(rel)) };
    MEMORY.with_borrow_mut(|memory| {
        let kept = memory.of(relid, file, orders);
        match &kept.trees {
            Some((of, trees)) if *of == rel => trees.clone(),
            _ => {
                let new = Rc::new(make(&kept.orders));
                kept.trees = Some((rel, new.clone()));
                new
            }
        }
    })
}

/// Forgets a table, whose file has got other contents; `InvalidOid` stands for every one.
pub fn forget(relid: pg_sys::Oid) {
    MEMORY.with(|memory| {
        // It is borrowed only when the process exits in the middle of a call.
        if let Ok(mut memory) = memory.try_borrow_mut() {
            if relid == pg_sys::InvalidOid {
                memory.tables.clear();
            } else {
                memory.tables.remove(&relid);
            }
        }
    });
}
