//! What is remembered of relations is forgotten when PostgreSQL says that one has changed: one callback for all
//! modules. A process has places for ten (`MAX_RELCACHE_CALLBACKS`), PostgreSQL itself takes up to four and Citus five.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::exit::is_exiting;
use crate::{catalog, cluster, dictionary, storage};

/// Registers the callback; called once from `_PG_init`.
pub fn init() {
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0)) };
}

/// `relation`: the one that has changed; `InvalidOid` stands for every relation.
#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    if is_exiting() {
        return;
    }
    storage::inner_page_cache::forget(relation);
    dictionary::relation_changed(relation);
    cluster::map::relation_changed(relation);
    catalog::distributed_store::relation_changed(relation);
    cluster::mirror::relation_changed(relation);
}
