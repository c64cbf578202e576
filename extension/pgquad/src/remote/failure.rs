//! Errors of a request as PostgreSQL errors.

use pgquad_remote::{Error, ErrorKind};
use pgrx::PgSqlErrorCode;

use crate::pg::error::{raise, raise_hint};

/// Raises the error. `what` was to be done, e.g. `SERVICE`.
pub fn raise_failure(what: &str, error: &Error) -> ! {
    let message = format!("{what} {error}");
    let hint = match error.kind {
        ErrorKind::NotAllowed => {
            "A superuser can allow servers with the setting quad.http_allowed."
        }
        ErrorKind::PrivateAddress => {
            "A superuser can allow networks with the setting quad.http_private_networks."
        }
        ErrorKind::Timeout => "The setting quad.http_timeout bounds the wait.",
        ErrorKind::TooLarge => "The setting quad.http_max_size bounds the size.",
        _ => raise(code(error.kind), message),
    };
    raise_hint(code(error.kind), message, hint)
}

fn code(kind: ErrorKind) -> PgSqlErrorCode {
    match kind {
        ErrorKind::Address => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        ErrorKind::NotAllowed | ErrorKind::PrivateAddress => {
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE
        }
        ErrorKind::Connect | ErrorKind::Timeout => PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
        ErrorKind::Status(_) => PgSqlErrorCode::ERRCODE_FDW_ERROR,
        ErrorKind::Answer => PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
        ErrorKind::TooLarge => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        ErrorKind::Internal => PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
    }
}
