//! `quad.rebuild` of a distributed store: each shard on its node, in a transaction of its own. It waits for the readers
//! of its shard for a moment at a time (`storage::rebuild`), so that nobody waits for long behind it.

use pgrx::{pg_sys, PgSqlErrorCode};

use super::citus::{self, literal};
use super::inspect::{each_shard, refuse_after_writes};
use super::map;
use crate::am::table_options;
use crate::catalog::distributed_store::Sides;
use crate::pg::compat;
use crate::pg::error::raise_hint;
use crate::storage;

/// Rebuilds the shards of a store with other limits of pages (`None`: as they are). The caller owns it.
pub fn shards(
    sides: Sides,
    orders: Option<&str>,
    inner_fanout: Option<&str>,
    leaf_quads: Option<&str>,
) {
    if orders.is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot change the orders of a distributed store",
            "It has the orders spog, psog, ospg and posg always.",
        );
    }
    citus::require_coordinator("rebuild a distributed store");
    refuse_after_writes("rebuild");
    // SAFETY: raises an error within a transaction block.
    unsafe {
        pg_sys::PreventInTransactionBlock(true, c"quad.rebuild of a distributed store".as_ptr())
    };
    let tables = [sides.by_subject, sides.by_object];
    for table in tables {
        refuse_locked(table);
        storage::options::check_change(table, inner_fanout, leaf_quads);
    }
    let text = |value: Option<&str>| value.map_or("NULL".to_owned(), literal);
    let command = format!(
        "SELECT quad.rebuild(%s, NULL, {}, {})::text",
        text(inner_fanout),
        text(leaf_quads)
    );
    for table in tables {
        each_shard(table, &command);
        // Shards that Citus makes later get the limits of the table.
        if storage::rebuild::in_place(table, None, inner_fanout, leaf_quads) {
            // SAFETY: in the transaction that has rebuilt the table, which is locked exclusively.
            unsafe { table_options::record(table) }
        }
    }
}

/// Refuses a statement that has read shards of this node before, in a function: who rebuilds them would wait for it for
/// ever.
fn refuse_locked(table: pg_sys::Oid) {
    let Some(table) = map::table_of(table) else {
        return;
    };
    let mut shards = table.here.iter().flatten();
    // SAFETY: within a transaction.
    let is_locked =
        shards.any(|&shard| unsafe { compat::is_locked(shard, pg_sys::AccessShareLock) });
    if is_locked {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
            "cannot rebuild a distributed store in a transaction that has read it",
            "Run SELECT quad.rebuild(..) as a statement of its own.",
        );
    }
}
