//! What adapts PostgreSQL for the rest of the crate; nothing here imports from above. See README.md beside this file.

mod allocator;
pub mod compat;
pub mod error;
pub mod exit;
pub mod ffi;
pub mod guc;
pub mod interrupt;
pub mod list;
pub mod replan;
pub mod shared_memory;
pub mod statement_state;
pub mod subtransaction;
pub mod threads;

/// Called once from `_PG_init`, before all others.
pub fn init() {
    allocator::init();
}
