//! Why a link does not come to be.

use std::fmt;
use std::io;

use crate::wire::Damaged;

/// Why a link does not come to be.
#[derive(Debug)]
pub enum Refused {
    /// The stream.
    Io(io::Error),
    /// The other end speaks another version of the frames.
    Version(u8),
    /// The other end sends what cannot be read.
    Damaged,
    /// The other end does not know the secret.
    Secret,
    /// The other end belongs to other participants, or is none that is expected.
    Stranger,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Version(version) => write!(f, "it speaks version {version} of the exchange"),
            Self::Damaged => Damaged.fmt(f),
            Self::Secret => f.write_str("it does not know the secret of the cluster"),
            Self::Stranger => f.write_str("it belongs to another exchange"),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Damaged> for Refused {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}
