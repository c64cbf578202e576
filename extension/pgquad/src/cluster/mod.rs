//! Stores whose quads are on many nodes: where shards are, sessions to other nodes, what is asked and answered. See
//! README.md beside this file.

pub mod answer;
mod arrival;
mod catalogue;
mod check_nodes;
mod citus;
pub mod connection;
pub mod counters;
pub mod ddl;
mod estimates;
pub mod exchange;
pub mod explain;
pub mod groups;
pub mod guard;
pub mod inspect;
pub mod map;
pub mod mirror;
pub mod moves;
mod nodes;
mod own_writes;
pub mod pending_changes;
pub mod protocol;
pub mod reader;
pub mod rebuild;
mod relations;
mod secret;
mod serve;
pub mod serving;
pub mod snapshots;
pub mod statements;
mod statistics;
mod status;
mod stores_view;
pub mod trust;
pub mod write;

pub use citus::{
    local_node, lock_shards, making_shards, rows, with_sqlstate, ONE_PLACEMENT, SAME_VERSION_HINT,
};
pub use connection::{Mode, Scope};
pub use nodes::{as_superuser, has_citus, query};
pub use protocol::{check_version, damaged};
pub use reader::ShardedReader;
pub use secret::{ensure as ensure_secret, is_known as is_secret_known, number_of_cluster};
pub use trust::{check_trusted, is_trusted};

/// Callbacks; called once from `_PG_init`.
pub fn init() {
    connection::init();
    statistics::init();
}
