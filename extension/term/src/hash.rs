//! The hash by which the dictionary finds a term. Stored on disk: it must never change.

use crate::{encoded, Term};
use xxhash_rust::xxh3::{xxh3_128, xxh3_64_with_seed};

/// xxh3-128 of the [`encoded`] form: kind, then language tag or datatype, then lexical form.
#[must_use]
pub fn term_hash(term: &Term<'_>) -> u128 {
    let mut text = String::with_capacity(encoded::encoded_len(term));
    encoded::encode(term, &mut text);
    encoded_hash(&text)
}

/// The same from an encoding that is already at hand.
#[inline]
#[must_use]
pub fn encoded_hash(encoded: &str) -> u128 {
    xxh3_128(encoded.as_bytes())
}

/// A 64-bit hash of an encoding, for hash tables and hash partitions.
#[inline]
#[must_use]
pub fn encoded_hash_with_seed(encoded: &str, seed: u64) -> u64 {
    xxh3_64_with_seed(encoded.as_bytes(), seed)
}
