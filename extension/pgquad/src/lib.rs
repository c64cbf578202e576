//! The PostgreSQL-facing crate of pgquad: the only one that may use `unsafe`.

#![allow(unsafe_code)]

use pgrx::prelude::*;

mod allocator;
pub mod am;
pub mod cluster;
mod compat;
mod counts;
mod custom;
pub mod dictionary;
pub mod error;
mod exit;
mod ffi;
mod functions;
mod groups;
mod guc;
mod hooks;
mod join;
mod load;
mod relcache;
mod remote;
mod rights;
mod scan;
pub mod sparql;
pub mod storage;
pub mod store;
mod subtransaction;
pub mod term;
mod threads;
mod upper;
mod walk;

::pgrx::pg_module_magic!();

/// Version of the extension's shared library.
#[pg_extern(immutable, parallel_safe)]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Runs once when PostgreSQL loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    quiet_backtraces();
    allocator::init();
    guc::init();
    storage::stop_points::init();
    relcache::init();
    storage::wal::init();
    hooks::init();
    rights::mark::init();
    scan::init();
    join::init();
    groups::init();
    walk::init();
    upper::init();
    store::init();
    cluster::init();
    dictionary::init();
    load::init();
    sparql::init();
    remote::init();
}

/// Keeps Rust backtraces out of the DETAIL of every error: only RUST_LIB_BACKTRACE, not the common RUST_BACKTRACE, asks for them.
fn quiet_backtraces() {
    if std::env::var_os("RUST_LIB_BACKTRACE").is_none() {
        std::env::set_var("RUST_LIB_BACKTRACE", "0");
    }
}
