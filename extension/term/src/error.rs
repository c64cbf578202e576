//! Errors of SPARQL expressions.

use std::fmt;

/// Why an expression has no value. In SPARQL all of these make the expression an error (SQL NULL),
/// except [`Error::NotSupported`] and [`Error::TooLong`], which the caller must report: the spec defines a value there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The operator or function is not defined for arguments of these types.
    Type,
    /// Integer or decimal division by zero (FOAR0001).
    DivisionByZero,
    /// The result does not fit its type (FOAR0002).
    Overflow,
    /// An argument of the right type has an impossible value, such as a malformed regular
    /// expression.
    Argument(String),
    /// A feature that the spec defines and this implementation lacks.
    NotSupported(String),
    /// The result would be a text of more than [`MAX_TEXT_BYTES`].
    TooLong,
}

/// Bytes of the text that an expression makes at most: REPLACE of a text of a megabyte can make one of a terabyte.
pub const MAX_TEXT_BYTES: usize = 1 << 28;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type => f.write_str("the operation is not defined for these types"),
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::Overflow => f.write_str("the result is out of range"),
            Self::Argument(message) => f.write_str(message),
            Self::NotSupported(what) => write!(f, "{what} is not supported"),
            Self::TooLong => write!(f, "a text is longer than {MAX_TEXT_BYTES} bytes"),
        }
    }
}

impl std::error::Error for Error {}

/// Value of an expression.
pub type Result<T> = std::result::Result<T, Error>;
