//! Batches of rows pushed from node to node while a join runs: a repartition at every step. See README.md in this
//! folder.
//!
//! [`Exchange`] drives the [`Work`] of one participant over a [`Transport`]. It takes what peers have sent and has the
//! work do one unit. It cuts what the work has dealt out into frames, and notices the end. Knows nothing of PostgreSQL,
//! of quads or of what the work is.

mod driver;
mod ending;
mod frame;
mod greeting;
mod inbox;
mod link;
pub mod memory;
mod outbox;
mod ports;
mod refused;
mod rows;
mod seal;
mod spill;
mod stats;
mod transport;
mod work;

pub use driver::{Error, Exchange, Settings, Step};
pub use frame::has_rows;
pub use greeting::{Ends, Greeting, MESH_BYTES, NONCE_BYTES};
pub use link::Link;
pub use outbox::{Dealt, MAX_BATCH_BYTES, MIN_BATCH_BYTES};
pub use ports::port_range;
pub use refused::Refused;
pub use rows::{Rows, MAX_ROWS};
pub use spill::SpillFile;
pub use stats::{PeerStats, StateStats, Stats};
pub use transport::{Lost, Transport};
pub use work::{Ran, Work};
