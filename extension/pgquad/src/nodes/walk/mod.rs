//! `Quad Walk`: semi-naive transitive closure along quads, for `WITH RECURSIVE ... UNION`, a whole frontier at a time.
//! See README.md beside this file.

mod exec;
mod paths;
mod shape;
mod step;
mod visited_set;

pub use paths::add;

/// Registers the nodes; called once from `_PG_init`.
pub fn init() {
    crate::nodes::custom::register(&exec::SCAN_METHODS);
    crate::nodes::custom::register(&step::SCAN_METHODS);
}
