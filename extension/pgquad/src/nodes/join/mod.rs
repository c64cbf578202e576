//! `Quad Join`: one custom scan node for all quad tables of a query level that are joined with each other. See
//! README.md beside this file.

mod aggregate;
mod batch_row;
mod candidates;
mod columns;
mod compile;
mod computed_equality;
mod computed_groups;
mod count_exec;
mod count_paths;
mod eligible_relations;
mod exec;
mod explain;
mod expression_filters;
mod feedback;
mod first_rows;
mod group_spill;
mod join_tree;
mod operators;
mod outer_input;
mod outer_input_paths;
mod parameters;
mod participant;
mod path;
mod paths;
mod plan;
mod push;
mod pushed;
mod required_properties;
mod results;
mod row_estimates;
mod search;
mod shipped_filters;
mod single_pattern;
mod source;
mod state;
mod value_equality;
mod vectorised_filters;

pub use count_paths::{add as add_count, add_distinct};
pub use eligible_relations::outer_candidates;
pub use single_pattern::single_pattern_path;

/// Registers the nodes and the planner hooks; called once from `_PG_init`.
pub fn init() {
    crate::nodes::custom::register(&exec::SCAN_METHODS);
    crate::nodes::custom::register(&count_exec::SCAN_METHODS);
    paths::init();
    search::init();
}
