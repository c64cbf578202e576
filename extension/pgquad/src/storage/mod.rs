//! Quad tables as trees in PostgreSQL's pages. See README.md beside this file.

mod buffers;
pub mod bulk;
mod conflict;
mod cursor;
mod error;
pub mod inner_page_cache;
mod key_range;
mod locked_page;
mod maintenance;
pub mod options;
mod order_task;
pub mod pending;
mod reader;
pub mod rebuild;
mod run_files;
mod snapshot;
mod sorter;
pub mod stop_points;
mod table;
mod temp_file;
mod trees;
pub mod wal;
mod workers;

pub use buffers::RelationStore;
pub use cursor::OrderCursor;
pub use error::fail;
pub use key_range::range_for;
pub use reader::{count_matching, GroupScan, LocalReader, TableReader};
pub use snapshot::PgSnapshot;
pub use sorter::{Kept, Sorted, Sorter};
pub use table::{leaf_sample, Deleted, Sampled, Table};
pub use temp_file::TempFile;
pub use trees::forget_meta;

use crate::catalog::access_method;
use crate::catalog::distributed_store::{sides_of, ORDERS};
use crate::cluster;
use crate::pg::compat::{self, FileLocator};
use pgquad_btree::Options;
use pgrx::pg_sys;

/// Cancellation point.
pub fn interrupt() {
    pgrx::check_for_interrupts!();
}

/// Runs `f` on a quad table that the current statement has locked already.
fn with_open<T>(relid: pg_sys::Oid, f: impl FnOnce(pg_sys::Relation) -> T) -> T {
    // SAFETY: opened and closed here; callers hold a lock, so none is taken.
    unsafe {
        let rel = pg_sys::table_open(relid, pg_sys::NoLock as i32);
        let result = f(rel);
        pg_sys::table_close(rel, pg_sys::NoLock as i32);
        result
    }
}

/// The options of a quad table that the current statement has locked.
pub fn options_of(relid: pg_sys::Oid) -> Option<Options> {
    // SAFETY: the relation is open during the call.
    with_open(relid, |rel| unsafe {
        access_method::is_quad(rel).then(|| Table::open(rel).meta().options())
    })
}

/// The column permutations of a quad table that the current statement has locked: those that its readers have.
pub fn orders_of(relid: pg_sys::Oid) -> Option<Vec<[u8; 4]>> {
    if is_sharded(relid) {
        return Some(ORDERS.to_vec());
    }
    options_of(relid).map(|o| o.orders.iter().map(|o| o.order.columns()).collect())
}

/// The options of the file that a new file of the same table replaces (TRUNCATE), if there is one.
///
/// # Safety
/// `rel` is open; `new` is the file about to be made for it.
pub unsafe fn replaced_options(rel: pg_sys::Relation, new: &FileLocator) -> Option<Options> {
    // SAFETY: the caller's promise; a relation of ours whose file is another than the new one has a metapage.
    unsafe {
        (!compat::same_file(&*compat::file_of(rel), new) && access_method::is_quad(rel))
            .then(|| Table::open(rel).meta().options())
    }
}

/// Number of quads matching `key` and which of its columns the number takes account of.
///
/// The relation must be locked by the current statement.
pub fn range_count_of(relid: pg_sys::Oid, key: [Option<i64>; 4]) -> (f64, [bool; 4]) {
    // SAFETY: the relation is open during the call.
    with_open(relid, |rel| unsafe {
        let (count, covered) = match sides_of(rel) {
            Some(sides) => cluster::reader::range_count(sides, key),
            None => Table::open(rel).range_count(key),
        };
        (count as f64, covered)
    })
}

/// Asks for the numbers that [`range_count_of`] gives for these keys of a distributed store, one message a node.
///
/// The relation must be locked by the current statement.
pub fn count_ahead(relid: pg_sys::Oid, keys: &[[Option<i64>; 4]]) {
    // SAFETY: the relation is open during the call.
    with_open(relid, |rel| unsafe {
        if let Some(sides) = sides_of(rel) {
            cluster::reader::count_ahead(sides, keys);
        }
    });
}

/// Whether the quads of a quad table that the current statement has locked are in shards.
pub fn is_sharded(relid: pg_sys::Oid) -> bool {
    // SAFETY: the relation is open during the call.
    with_open(relid, |rel| unsafe { sides_of(rel).is_some() })
}

/// Number of stored entries of the first order.
///
/// # Safety
/// `rel` is an open quad table.
pub unsafe fn entry_count(rel: pg_sys::Relation) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match sides_of(rel) {
            Some(sides) => cluster::reader::range_count(sides, [None; 4]).0,
            None => Table::open(rel).range_count([None; 4]).0,
        }
    }
}
