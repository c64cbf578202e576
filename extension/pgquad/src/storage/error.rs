//! Errors of the trees as PostgreSQL's, with their SQLSTATEs.

use crate::pg::error::{raise, raise_hint};
use pgquad_btree::Error;
use pgrx::PgSqlErrorCode;

/// Raises an error of the tree crate with its SQLSTATE.
pub fn fail(e: Error) -> ! {
    use PgSqlErrorCode::*;
    match e {
        Error::Corrupt { .. } => raise_hint(
            ERRCODE_INDEX_CORRUPTED,
            e.to_string(),
            "Run quad.verify on the table; VACUUM FULL rebuilds its orders from the first one.",
        ),
        Error::OtherFormat { .. } => raise_hint(
            ERRCODE_FEATURE_NOT_SUPPORTED,
            e.to_string(),
            "Export the quads with the library that wrote the table, and load them with this one.",
        ),
        Error::TooManyVersions { .. } => raise_hint(
            ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "too many versions of one quad are in use by running transactions",
            "One page holds at most about 150 versions; commit, or wait until older transactions have ended.",
        ),
        Error::BadOptions(_) => raise(ERRCODE_INVALID_PARAMETER_VALUE, e.to_string()),
        Error::NotEmpty | Error::Unsorted | Error::NoSuchOrder(_) => {
            raise(ERRCODE_INTERNAL_ERROR, e.to_string())
        }
    }
}
