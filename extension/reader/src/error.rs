//! What can be wrong with a document.

use std::fmt;
use std::io;

/// Class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The document does not follow the syntax of its format.
    Syntax,
    /// The document is not valid UTF-8.
    Encoding,
    /// A line, token, or term is longer than allowed.
    TooLong,
    /// The compressed data is damaged or ends too early.
    Compression,
    /// The document could not be read; the code of the operating system where there is one.
    Io(Option<i32>),
    /// A thread of the pipeline has failed.
    Internal,
}

/// An error with its place in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Class of the error.
    pub kind: ErrorKind,
    /// Line, from 1, where known.
    pub line: Option<u64>,
    /// Column in characters, from 1, where known.
    pub column: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl ReadError {
    /// An error without a place.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ReadError {
            kind,
            line: None,
            column: None,
            message: message.into(),
        }
    }

    /// The same error in this line.
    pub(crate) fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The same error in this column.
    pub(crate) fn at_column(mut self, column: u64) -> Self {
        self.column = Some(column);
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        // An error that a reader of this crate has made travels through the parsers as the inner error.
        if let Some(inner) = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<ReadError>())
        {
            return inner.clone();
        }
        let kind = match error.kind() {
            io::ErrorKind::InvalidData => ErrorKind::Syntax,
            _ => ErrorKind::Io(error.raw_os_error()),
        };
        ReadError::new(kind, error.to_string())
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        io::Error::other(error)
    }
}
