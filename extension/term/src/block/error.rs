//! Errors of blocks and symbol tables.

use std::fmt;

/// A block or symbol table that does not follow the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// The bytes end before the block does.
    Truncated,
    /// Written by a later version of this crate.
    Version(u8),
    /// A value that the format does not allow; says which.
    Invalid(&'static str),
    /// No term with this index.
    NoSuchTerm(usize),
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockError::Truncated => write!(f, "block of dictionary terms ends too early"),
            BlockError::Version(version) => write!(
                f,
                "block of dictionary terms has unknown format version {version}"
            ),
            BlockError::Invalid(what) => {
                write!(f, "block of dictionary terms has an invalid {what}")
            }
            BlockError::NoSuchTerm(index) => write!(
                f,
                "block of dictionary terms has no term with index {index}"
            ),
        }
    }
}

impl std::error::Error for BlockError {}
