//! The PostgreSQL-facing crate of pgquad: the only one that may use `unsafe`.

use pgrx::prelude::*;

pub mod dictionary;
pub mod error;
pub mod store;
pub mod term;

::pgrx::pg_module_magic!();

/// Version of the extension's shared library.
#[pg_extern(immutable, parallel_safe)]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Runs once when PostgreSQL loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    store::init();
    dictionary::init();
}
