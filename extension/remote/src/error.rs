//! What can go wrong with a request.

use std::fmt;

/// Class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The address is not that of a document on the web.
    Address,
    /// The rules do not allow to ask this server.
    NotAllowed,
    /// The rules do not allow to connect to an address of this server.
    PrivateAddress,
    /// There is no connection.
    Connect,
    /// Nothing came for too long.
    Timeout,
    /// The server has answered with an error; its status.
    Status(u16),
    /// The answer is not what was asked for.
    Answer,
    /// The answer is larger than allowed.
    TooLarge,
    /// The thread has failed.
    Internal,
}

/// An error, and the address that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Class of the error.
    pub kind: ErrorKind,
    /// The address.
    pub url: String,
    /// What is wrong.
    pub message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, url: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            url: url.to_owned(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>: {}", self.url, self.message)
    }
}

impl std::error::Error for Error {}
