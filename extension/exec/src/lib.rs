//! Joins of quad patterns: orders and key ranges for conditions on quads, and a pipeline of batched probes over sorted trees.
//! Knows nothing of PostgreSQL. See README.md beside this crate.

mod access;
mod arms;
mod bindings;
mod checks;
mod choose;
mod codec;
mod distinct;
mod fanout;
mod filter;
mod held;
mod identity;
mod joining;
mod keyed;
mod keys;
mod layout;
mod matching;
mod narrow;
mod order;
mod pipeline;
mod plan;
mod probe;
mod rounds;
mod sort;
mod source;
mod spill;
mod star;
mod stats;
mod table;
mod tally;
mod weights;

pub use access::{key_ranges, match_order, Bound, Prefix, Value};
pub use bindings::{Bindings, Column};
pub use codec::DecodeError;
pub use fanout::Fanouts;
pub use pipeline::{Pipeline, Tuning};
pub use plan::{
    Child, Filter, Group, Kind, Pattern, Plan, SameValue, Slot, SlotSet, Test, MOST_PATTERNS,
    MOST_SLOTS,
};
pub use source::{Source, ValueKey, Wanted};
pub use spill::Spill;
pub use stats::StepStats;
pub use tally::{Counted, Tally};
