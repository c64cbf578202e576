//! Joins of quad patterns: orders and key ranges for conditions on quads, and a pipeline of batched probes over sorted
//! trees. Knows nothing of PostgreSQL. See README.md beside this crate.

mod access;
mod bindings;
mod cost;
#[cfg(test)]
mod cost_measure;
mod operators;
mod optimizer;
mod pipeline;
mod plan;
mod plan_data;
mod source;
mod stats;
mod tuning;

pub use access::access_path::holds;
pub use access::index_choice::{
    candidate_orders, key_ranges, match_order, most_ranges, read_cost, OrderMatch, Prefix,
    MAX_LIST_RANGES,
};
pub use bindings::{Bindings, Column};
pub use operators::extremes::{Extreme, TermOffer, TermOrder};
pub use operators::first_rows::{AnswerRows, FirstRows, SortKey};
pub use operators::hash_aggregation::{Counted, HashAggregation, SetParcel};
pub use operators::leading_key::LeadingKey;
pub use operators::spill::Spill;
pub use optimizer::cardinality_feedback::CardinalityFeedback;
pub use pipeline::participant::{FirstPattern, Parcel};
pub use pipeline::repartition::Outlook;
pub use pipeline::{Pipeline, Progress};
pub use plan::condition::{Bound, Value};
pub use plan::limits::GroupSize;
pub use plan::part::TablePart;
pub use plan::words::{DecodeError, Oid, Reader, Words};
pub use plan::{
    Argument, Child, ColumnNumber, Comparison, Expr, Filter, Group, Kind, Link, Param, ParamRange,
    Pattern, Plan, SameValue, Slot, SlotSet, TableNumber, Test, MAX_PATTERNS, MAX_SLOTS,
};
pub use plan_data::{
    ConditionData, CountData, FirstRowsData, GroupOutput, GroupsData, HopData, JoinData,
    LeadingKeyData, OuterInputData, PlanData, RowIdentityData, ScanData, StepData, WalkData,
};
pub use source::{Prefetch, Source, ValueKey, Wanted};
pub use stats::StepStats;
pub use tuning::Tuning;
