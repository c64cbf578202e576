//! `Quad Scan`: the custom scan node for one quad table.

pub mod compared;
pub mod conditions;
pub mod estimate;
mod exec;
mod explain;
mod known;
mod paths;

pub use exec::{parameter, value_of};
pub use known::Expecting;
pub use paths::{complete, pathkeys_of};

/// Registers the node and the planner hook; called once from `_PG_init`.
pub fn init() {
    crate::custom::register(&exec::SCAN_METHODS);
    paths::init();
}
