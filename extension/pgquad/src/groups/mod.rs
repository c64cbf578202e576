//! `Quad Groups`: counts, DISTINCT and GROUP BY over one quad table from the trees' own counts and loose scans. See README.md beside this
//! file.

mod exec;
mod explain;
mod paths;
mod plan;
mod shape;

/// Registers the node and the planner hook; called once from `_PG_init`.
pub fn init() {
    crate::custom::register(&exec::SCAN_METHODS);
    paths::init();
}
