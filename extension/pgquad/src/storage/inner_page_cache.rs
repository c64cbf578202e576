//! The inner pages that this session remembers of the tables it reads ([`pgquad_btree::InnerPageCache`]).

use crate::compat::{self, FileLocator};
use pgquad_btree::{CacheBudget, InnerPageCache};
use pgrx::pg_sys;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// After this time all is read anew: counts of remembered pages should not be much older.
const FRESH: Duration = Duration::from_secs(10);
/// Bytes for all tables together. The way to a leaf takes some 50 of them, so this leads to some 4 GB of leaves: all orders of about a
/// hundred million quads. Where there are more, a look-up waits for its leaf rather than for the pages above it, and the memory
/// of many sessions serves better as a cache of leaves.
const MOST: usize = 32 << 20;

struct Kept {
    file: FileLocator,
    since: Instant,
    /// When it was last asked for.
    used: Instant,
    orders: Rc<[Rc<InnerPageCache>]>,
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
        budget: Rc::new(CacheBudget::new(MOST)),
    });
}

/// What is remembered of a table with so many orders, one value for each.
///
/// # Safety
/// `rel` is open.
pub unsafe fn of(rel: pg_sys::Relation, orders: usize) -> Rc<[Rc<InnerPageCache>]> {
    // SAFETY: the caller's promise.
    let (relid, file) = unsafe { ((*rel).rd_id, *compat::file_of(rel)) };
    let now = Instant::now();
    MEMORY.with_borrow_mut(|memory| {
        memory.make_room(relid);
        if let Some(known) = memory.tables.get_mut(&relid) {
            let fresh = now.duration_since(known.since) < FRESH;
            if fresh && compat::same_file(&known.file, &file) && known.orders.len() == orders {
                known.used = now;
                return known.orders.clone();
            }
        }
        let new: Rc<[_]> = (0..orders)
            .map(|_| Rc::new(InnerPageCache::new(&memory.budget)))
            .collect();
        let known = Kept {
            file,
            since: now,
            used: now,
            orders: new.clone(),
        };
        memory.tables.insert(relid, known);
        new
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
