//! The path of `Quad Join`, which carries a described join from planning to the plan.

use super::join_tree::JoinTree;
use super::outer_input_paths::OuterInputPath;
use pgrx::pg_sys;

/// PostgreSQL's path with ours behind it; the first field must be the path.
#[repr(C)]
pub struct QuadJoinPath {
    pub path: pg_sys::CustomPath,
    /// What is joined; lives in the planner's memory.
    pub join_tree: *const JoinTree,
    /// What is taken from a plan below; NULL where there is none.
    pub outer_input: *const OuterInputPath,
}
