//! Errors of the crate.

use crate::block::{BlockNo, VERSION};
use crate::key::Key;
use std::fmt;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in an operation on a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A page breaks an invariant of the format.
    Corrupt {
        /// The page.
        block: BlockNo,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A page was written in another version of the format.
    OtherFormat {
        /// The page.
        block: BlockNo,
        /// The version.
        version: u8,
    },
    /// The versions of one key that cannot be removed yet fill a whole page.
    TooManyVersions {
        /// The key, in the order of the tree.
        key: Key,
    },
    /// Options for a new file are not usable.
    BadOptions(String),
    /// A bulk build was asked of a tree that has entries.
    NotEmpty,
    /// The keys handed to a bulk operation are not in strictly ascending order.
    Unsorted,
    /// An order number that the file does not have.
    NoSuchOrder(usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Corrupt { block, what } => write!(f, "page {block} is corrupt: {what}"),
            Error::OtherFormat { block, version } => write!(
                f,
                "page {block} has version {version} of the page format; this library reads version {VERSION} only"
            ),
            Error::TooManyVersions { key } => write!(
                f,
                "too many versions of the quad with key {key:?} that running transactions may still need"
            ),
            Error::BadOptions(what) => write!(f, "bad storage options: {what}"),
            Error::NotEmpty => f.write_str("bulk build needs an empty tree"),
            Error::Unsorted => f.write_str("keys are not in strictly ascending order"),
            Error::NoSuchOrder(i) => write!(f, "the file has no order number {i}"),
        }
    }
}

impl std::error::Error for Error {}

/// Shorthand for [`Error::Corrupt`].
pub(crate) fn corrupt<T>(block: BlockNo, what: &'static str) -> Result<T> {
    Err(Error::Corrupt { block, what })
}

/// A finding of [`crate::Tree::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The page that shows the problem.
    pub block: BlockNo,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}: {}", self.block, self.what)
    }
}
