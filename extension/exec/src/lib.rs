//! Choosing orders and key ranges for conditions on quads. Knows nothing of PostgreSQL.

mod access;

pub use access::{key_ranges, match_order, Bound, Prefix, Value};
