//! The PostgreSQL-facing crate of pgquad: the only one that may use `unsafe`.

#![allow(unsafe_code)]

use pgrx::prelude::*;

pub mod am;
pub mod catalog;
pub mod cluster;
pub mod dictionary;
mod functions;
mod hints;
mod hooks;
mod load;
mod nodes;
mod pg;
mod relcache;
mod remote;
mod rights;
mod settings;
pub mod sparql;
pub mod storage;
pub mod store;
mod store_functions;
mod table;
pub mod term;

::pgrx::pg_module_magic!();

/// Version of the extension's shared library.
#[pg_extern(immutable, parallel_safe)]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// What has a piece of the server's shared memory.
const SHARED_MEMORY: [pg::shared_memory::Piece; 4] = [
    cluster::counters::PIECE,
    cluster::serving::PIECE,
    cluster::exchange::UNREACHABLE_NODES,
    dictionary::SHARED_TERMS,
];

/// Runs once when PostgreSQL loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    quiet_backtraces();
    pg::init();
    settings::init();
    relcache::init();
    storage::wal::init();
    hooks::init();
    hints::init();
    rights::mark::init();
    nodes::init();
    cluster::init();
    pg::shared_memory::init(&SHARED_MEMORY);
    dictionary::init();
    load::init();
    sparql::init();
}

/// Keeps Rust backtraces out of the DETAIL of every error: only RUST_LIB_BACKTRACE, not the common RUST_BACKTRACE, asks
/// for them.
fn quiet_backtraces() {
    if std::env::var_os("RUST_LIB_BACKTRACE").is_none() {
        std::env::set_var("RUST_LIB_BACKTRACE", "0");
    }
}
