//! `Quad Groups`: counts, DISTINCT and GROUP BY over one quad table from the trees' own counts and loose scans. See
//! README.md beside this file.

mod decoded;
mod exec;
mod explain;
mod paths;
mod plan;
mod shape;

pub use paths::{add_distinct, add_grouping};

/// Registers the node; called once from `_PG_init`.
pub fn init() {
    crate::nodes::custom::register(&exec::SCAN_METHODS);
}
