//! What the custom scan nodes share: the executor's skeleton ([`ScanNode`]), paths and plans with private data,
//! properties in EXPLAIN.

mod explain;
mod node;
mod plan;

pub use explain::{
    deparse, explain_group, explain_integer, explain_milliseconds, explain_text, explain_traffic,
    is_text, relation_name, traffic,
};
pub use node::{
    at_next_row, begin_children, clear, exec_methods, exec_scan, next, own, register, rescan_now,
    scan_methods, ScanNode,
};
pub use plan::{
    new_path, new_plan, path_methods, private_data, set_private, with_entry, ChosenPath, PlanPath,
};
