//! Custom scan nodes.

mod conditions;
mod exec;
mod explain;
mod join_order;
mod paths;

/// Registers nodes and planner hooks; called once from `_PG_init`.
pub fn init() {
    exec::init();
    paths::init();
    join_order::init();
}
