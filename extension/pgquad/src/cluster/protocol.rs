//! What the two ends of messages between nodes have in common: how PostgreSQL's protocol carries them, and errors where
//! they are damaged or of another version.

use pgquad_cluster::message;
use pgquad_cluster::wire::Damaged;
use pgrx::PgSqlErrorCode;

use crate::pg::error::{raise, raise_detail};

/// Raises the error for a message that cannot be read.
pub fn damaged(_: Damaged) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
        "a message between nodes is damaged",
    )
}

/// Refuses a node whose messages have another version.
pub fn check_version(version: u8) {
    if version != message::VERSION {
        raise_detail(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "nodes of the cluster have different versions of pgquad",
            format!(
                "A message has version {version}, this node speaks version {}.",
                message::VERSION
            ),
        );
    }
}
