//! Stores whose quads are on many nodes: where shards are, sessions to other nodes, what is asked and answered. See
//! README.md beside this file.

pub mod answer;
mod arrival;
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
pub mod reader;
pub mod rebuild;
mod secret;
mod serve;
pub mod snapshots;
pub mod statements;
mod statistics;
mod status;
pub mod store;
mod stores_view;
pub mod write;

pub use answer::{check_trusted, check_version, damaged, is_trusted};
pub use citus::{lock_shards, making_shards, with_sqlstate};
pub use connection::{Mode, Scope};
pub use nodes::{as_superuser, has_citus, query};
pub use reader::ShardedReader;
pub use secret::{ensure as ensure_secret, number_of_cluster};

/// Callbacks; called once from `_PG_init`.
pub fn init() {
    connection::init();
    exchange::init();
    statistics::init();
}
