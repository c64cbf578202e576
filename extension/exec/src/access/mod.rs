//! How one pattern is read: the index permutation, the key ranges, and the conditions that are left to test on the
//! quads.

pub(crate) mod access_path;
pub(crate) mod index_choice;
pub(crate) mod residual_predicates;
