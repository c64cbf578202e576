//! A quad table as statements see it, whether its quads are in the pages of this node or in shards. See README.md
//! beside this file.

mod cursor;
pub mod pending;
mod reader;
mod relation;

pub use cursor::OrderCursor;
pub use reader::{count_matching, GroupScan, TableReader};
pub use relation::{count_ahead, entry_count, is_sharded, orders_of, range_count_of};
