//! Stores whose quads are on many nodes: where shards are, sessions to other nodes, what is asked and answered. See README.md beside
//! this file.

mod answer;
pub mod connection;
mod estimates;
pub mod groups;
pub mod guard;
pub mod map;
mod nodes;
mod own_writes;
pub mod reader;
mod secret;
pub mod store;

pub use connection::{Mode, Scope};
pub use reader::ShardedReader;

/// Callbacks; called once from `_PG_init`.
pub fn init() {
    connection::init();
}
