//! `quad.create_store` and `quad.drop_store`.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::cluster::ddl::{self, Limits};
use crate::pg::error::{raise_hint, required};
use crate::store;

/// Creates a store. `orders`, `inner_fanout` and `leaf_quads` take the place of the settings of the same names
/// (`quad.orders`, ...). `distributed`: over the nodes of the Citus cluster, in `shards` parts (default: the setting
/// `citus.shard_count`); the orders are then spog and psog by subject, ospg and posg by object.
#[pg_extern]
fn create_store(
    store: Option<&str>,
    orders: default!(Option<&str>, "NULL"),
    inner_fanout: default!(Option<&str>, "NULL"),
    leaf_quads: default!(Option<&str>, "NULL"),
    distributed: default!(Option<bool>, "false"),
    shards: default!(Option<i32>, "NULL"),
) {
    let store = required("store", store);
    let distributed = required("distributed", distributed);
    store::check_name(store);
    let shards = ddl::check_shards(shards);
    if distributed {
        check_distributed(orders);
    } else if shards.is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "only a distributed store has shards",
            "Add distributed => true.",
        );
    }
    let settings: Vec<(&CStr, &str)> = [
        (c"quad.orders", orders),
        (c"quad.inner_fanout", inner_fanout),
        (c"quad.leaf_quads", leaf_quads),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|value| (name, value)))
    .collect();
    store::create_new(store, &settings);
    if distributed {
        let limits = Limits {
            inner_fanout,
            leaf_quads,
        };
        ddl::distribute_new(&store::locked(store, pg_sys::NoLock), shards, &limits);
    }
}

/// Refuses what a distributed store cannot have, and where there can be none.
fn check_distributed(orders: Option<&str>) {
    if orders.is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the orders of a distributed store cannot be chosen",
            "Its quads are kept by subject in the orders spog and psog, and by object in ospg and posg.",
        );
    }
    ddl::check_cluster("create a distributed store");
}

/// Drops a store with all its quads. Terms stay in the dictionary, which serves all stores.
#[pg_extern]
fn drop_store(store: &str) {
    store::drop(store);
}
