//! The operators: what a batch of rows goes through. They read and join; which of them runs when is chosen elsewhere.

pub(crate) mod distinct;
pub(crate) mod extremes;
pub(crate) mod filter;
pub(crate) mod first_rows;
pub(crate) mod hash_aggregation;
pub(crate) mod hash_build;
pub(crate) mod hash_probe;
pub(crate) mod hash_table;
pub(crate) mod incremental_semi_join;
pub(crate) mod index_probe;
pub(crate) mod join_operator;
pub(crate) mod keys;
pub(crate) mod leading_key;
pub(crate) mod multiplicity_cache;
pub(crate) mod sort;
pub(crate) mod spill;
pub(crate) mod star_join;
pub(crate) mod value_hash_join;
