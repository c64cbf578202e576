//! Joins of quad patterns: orders and key ranges for conditions on quads, and a pipeline of batched probes over sorted trees.
//! Knows nothing of PostgreSQL. See README.md beside this crate.

mod access_path;
mod bindings;
mod cardinality_feedback;
mod codec;
mod distinct;
mod filter;
mod hash_aggregation;
mod hash_build;
mod hash_probe;
mod hash_table;
mod incremental_semi_join;
mod index_choice;
mod index_probe;
mod join_operator;
mod join_order;
mod keys;
mod layout;
mod multiplicity_cache;
mod pipeline;
mod plan;
mod range_pushdown;
mod repartition;
mod residual_predicates;
mod sort;
mod source;
mod spill;
mod star_join;
mod star_planning;
mod stats;
mod value_equality;
mod value_hash_join;

pub use bindings::{Bindings, Column};
pub use cardinality_feedback::CardinalityFeedback;
pub use codec::DecodeError;
pub use hash_aggregation::{Counted, HashAggregation};
pub use index_choice::{key_ranges, match_order, Bound, Prefix, Value};
pub use pipeline::{Pipeline, Progress, Tuning};
pub use plan::{
    Child, Filter, Group, Kind, Pattern, Plan, SameValue, Slot, SlotSet, Test, MOST_PATTERNS,
    MOST_SLOTS,
};
pub use repartition::{whole, Outlook, Parcel, BY_OBJECT, BY_SUBJECT};
pub use source::{Source, ValueKey, Wanted};
pub use spill::Spill;
pub use stats::StepStats;
