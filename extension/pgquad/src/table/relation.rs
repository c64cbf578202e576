//! What planning asks of a quad table: its orders, and counts of ranges of keys, wherever its quads are.

use crate::catalog::distributed_store::{sides_of, ORDERS};
use crate::cluster::reader;
use crate::storage::{options_of, with_open, Table};
use pgquad_btree::Order;
use pgrx::pg_sys;

/// The orders of a quad table that the current statement has locked: those that its readers have.
pub fn orders_of(relid: pg_sys::Oid) -> Option<Vec<Order>> {
    if is_sharded(relid) {
        return Some(ORDERS.to_vec());
    }
    options_of(relid).map(|o| o.orders.iter().map(|o| o.order).collect())
}

/// Number of quads matching `key` and which of its columns the number takes account of.
///
/// The relation must be locked by the current statement.
pub fn range_count_of(relid: pg_sys::Oid, key: [Option<i64>; 4]) -> (f64, [bool; 4]) {
    // SAFETY: the relation is open during the call.
    with_open(relid, |rel| unsafe {
        let (count, covered) = match sides_of(rel) {
            Some(sides) => reader::range_count(sides, key),
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
            reader::count_ahead(sides, keys);
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
            Some(sides) => reader::range_count(sides, [None; 4]).0,
            None => Table::open(rel).range_count([None; 4]).0,
        }
    }
}
