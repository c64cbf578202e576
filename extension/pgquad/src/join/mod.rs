//! `Quad Join`: one custom scan node for all quad tables of a query level that are joined with each other. See README.md beside this file.

mod compile;
mod computed_equality;
mod count_exec;
mod count_paths;
mod eligible_relations;
mod exec;
mod explain;
mod join_tree;
mod operators;
mod outer_input;
mod outer_input_paths;
mod parameters;
mod paths;
mod plan;
mod required_properties;
mod row_estimates;
mod search;
mod single_pattern;
mod source;
mod value_equality;
mod vectorised_filters;

pub use count_paths::add as add_count;
pub use eligible_relations::outer_candidates;
pub use single_pattern::single_pattern_path;

/// Registers the nodes and the planner hooks; called once from `_PG_init`.
pub fn init() {
    crate::custom::register(&exec::SCAN_METHODS);
    crate::custom::register(&count_exec::SCAN_METHODS);
    paths::init();
    search::init();
}
