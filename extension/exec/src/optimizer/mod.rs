//! The optimizer: what comes next for a batch, and by which operator, chosen while the join runs.

pub(crate) mod build_feedback;
pub(crate) mod cardinality_feedback;
pub(crate) mod chains;
pub(crate) mod estimates;
pub(crate) mod hash_policy;
pub(crate) mod join_order;
pub(crate) mod list_ranges;
pub(crate) mod lookahead;
pub(crate) mod next_reads;
pub(crate) mod prefetch;
pub(crate) mod range_pushdown;
pub(crate) mod read_ahead;
pub(crate) mod sampling;
pub(crate) mod star_planning;
pub(crate) mod start_feedback;
pub(crate) mod value_equality;
