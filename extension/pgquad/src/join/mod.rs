//! `Quad Join`: one custom scan node for all quad tables of a query level that are joined with each other. See README.md beside this file.

mod alone;
mod compile;
mod count;
mod demand;
mod describe;
mod exec;
mod explain;
mod fed;
mod feed;
mod hashed;
mod level;
mod native;
mod operators;
mod params;
mod paths;
mod plan;
mod rows;
mod search;
mod source;
mod tally;
mod values;

pub use alone::read_alone;
pub use count::add as add_count;
pub use level::outer_candidates;

/// Registers the nodes and the planner hooks; called once from `_PG_init`.
pub fn init() {
    crate::custom::register(&exec::SCAN_METHODS);
    crate::custom::register(&tally::SCAN_METHODS);
    paths::init();
    search::init();
}
