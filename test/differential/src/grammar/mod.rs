//! Strategies for data, queries and updates. Few terms and few variables, so that joins hit.
//!
//! Everything is built in layers: what nests takes its parts from the layer below.

mod expression;
mod mutation;
mod path;
mod pattern;
mod query;
mod terms;
mod update;

pub use mutation::text;
pub use query::{computes, query, Query, Shape};
pub use terms::{data, Quad};
pub use update::{update, Update};

use proptest::strategy::{BoxedStrategy, Strategy, Union};

/// Which terms the data have, and with that which functions make sense to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Literals in canonical form; every function.
    Canonical,
    /// Also non-canonical forms, derived types and ill-typed literals. The reference forgets the lexical form of such a
    /// literal when it computes with it, so only functions of the value are used.
    Lexical,
}

/// One of the strategies; shrinks towards the first.
fn choice<T: std::fmt::Debug + 'static>(arms: Vec<(u32, BoxedStrategy<T>)>) -> BoxedStrategy<T> {
    Union::new_weighted(arms).boxed()
}
