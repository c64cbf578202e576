//! Encoded terms, one behind the other.

/// Encoded terms, one behind the other, each UTF-8.
#[derive(Default)]
pub struct Texts {
    /// The terms.
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
}
