//! What can go wrong beside the host's own errors, which unwind.

use std::fmt;
use std::io;

/// Why keys could not be sorted or built.
#[derive(Debug)]
pub enum Error {
    /// The tree cannot take them.
    Tree(pgquad_btree::Error),
    /// A run cannot be read back.
    Read(io::Error),
    /// A thread did not start, or ended without a result.
    Thread(String),
    /// The orders do not hold the same number of quads.
    Differ {
        /// Quads of the first order.
        first: u64,
        /// Quads of another one.
        other: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Tree(error) => error.fmt(f),
            Error::Read(error) => write!(f, "could not read a temporary sort file: {error}"),
            Error::Thread(what) => write!(f, "a thread of the sort failed: {what}"),
            Error::Differ { first, other } => write!(
                f,
                "the orders of a bulk load differ: {first} quads in the first one, {other} in another"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<pgquad_btree::Error> for Error {
    fn from(error: pgquad_btree::Error) -> Self {
        Error::Tree(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Read(error)
    }
}
