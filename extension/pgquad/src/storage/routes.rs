//! The inner pages that this session remembers of the tables it reads ([`pgquad_btree::Routes`]).

use crate::compat::{self, FileLocator};
use pgquad_btree::Routes;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// After this time all is read anew: counts of remembered pages should not be much older.
const FRESH: Duration = Duration::from_secs(10);
/// Most tables remembered.
const MOST: usize = 64;

struct Kept {
    file: FileLocator,
    since: Instant,
    orders: Rc<[Rc<Routes>]>,
}

thread_local! {
    static KEPT: RefCell<HashMap<pg_sys::Oid, Kept>> = RefCell::default();
}

/// What is remembered of a table with so many orders, one value for each.
///
/// # Safety
/// `rel` is open.
pub unsafe fn of(rel: pg_sys::Relation, orders: usize) -> Rc<[Rc<Routes>]> {
    // SAFETY: the caller's promise.
    let (relid, file) = unsafe { ((*rel).rd_id, *compat::file_of(rel)) };
    let now = Instant::now();
    KEPT.with_borrow_mut(|kept| {
        if let Some(known) = kept.get(&relid) {
            let fresh = now.duration_since(known.since) < FRESH;
            if fresh && compat::same_file(&known.file, &file) && known.orders.len() == orders {
                return known.orders.clone();
            }
        }
        if kept.len() >= MOST {
            kept.clear();
        }
        let new: Rc<[_]> = (0..orders).map(|_| Rc::new(Routes::new())).collect();
        let known = Kept {
            file,
            since: now,
            orders: new.clone(),
        };
        kept.insert(relid, known);
        new
    })
}

/// Forgets a table, whose file has got other contents; `InvalidOid` stands for every one.
pub fn forget(relid: pg_sys::Oid) {
    KEPT.with(|kept| {
        // It is borrowed only when the process exits in the middle of a call.
        if let Ok(mut kept) = kept.try_borrow_mut() {
            if relid == pg_sys::InvalidOid {
                kept.clear();
            } else {
                kept.remove(&relid);
            }
        }
    });
}

/// Watches for changes of tables; called once per process.
pub fn init() {
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0)) };
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relid: pg_sys::Oid) {
    forget(relid);
}
