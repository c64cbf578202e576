//! The custom scan nodes of the executor and their planning. See README.md beside this file.

mod counts;
pub mod custom;
mod find_ahead;
pub mod groups;
pub mod join;
pub mod scan;
mod triples;
mod upper;
mod walk;

/// Registers all nodes and their hooks; called once from `_PG_init`.
pub fn init() {
    scan::init();
    join::init();
    groups::init();
    walk::init();
    upper::init();
}
