//! `Quad Scan`: the custom scan node for one quad table.

mod bind_peeking;
pub mod compared;
pub mod condition_values;
pub mod conditions;
pub mod estimate;
mod exec;
mod explain;
mod paths;

pub use bind_peeking::{subquery_result, BindPeeking};
pub use condition_values::{parameter, value_of};
pub use paths::{complete, pathkeys_of};

/// Registers the node and the planner hook; called once from `_PG_init`.
pub fn init() {
    crate::nodes::custom::register(&exec::SCAN_METHODS);
    paths::init();
}
