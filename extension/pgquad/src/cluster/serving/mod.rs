//! Multiplexing: background workers that serve sessions of other nodes together, where many are busy on few processors
//! (`pgquad_cluster::serving`).
//!
//! A session of another node has its own process (`serve.rs`). That process lends its connection to a worker of the
//! same role and database: `lend.rs`. The worker answers queries that begin with short reads, of all sessions lent to
//! it: `worker.rs`, `lent.rs`, `transaction.rs`. A session goes back between two queries: where the next one is for its
//! own process, where few sessions are busy, or where somebody waits for a lock of the worker. A query that waits for a
//! lock or meets an error with its first message begins anew in its own process.
//!
//! Connections are passed over Unix-domain sockets (`control.rs`) whose names are in shared memory (`registry.rs`).

mod control;
mod lend;
mod lent;
mod registry;
mod transaction;
mod worker;

pub use lend::{Lender, Outcome};
pub use registry::PIECE;
