//! Raising PostgreSQL errors with SQLSTATE, message, detail, and hint.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// Raises an error; does not return.
pub fn raise(code: PgSqlErrorCode, message: impl Into<String>) -> ! {
    report(ErrorReport::new(code, message.into(), ""))
}

/// Raises an error with a hint that says what the user can do.
pub fn raise_hint(code: PgSqlErrorCode, message: impl Into<String>, hint: impl Into<String>) -> ! {
    report(ErrorReport::new(code, message.into(), "").set_hint(hint))
}

/// Raises an error with a detail line (what exactly, where).
pub fn raise_detail(
    code: PgSqlErrorCode,
    message: impl Into<String>,
    detail: impl Into<String>,
) -> ! {
    report(ErrorReport::new(code, message.into(), "").set_detail(detail))
}

/// Raises an error with a detail line and a hint.
pub fn raise_all(
    code: PgSqlErrorCode,
    message: impl Into<String>,
    detail: impl Into<String>,
    hint: impl Into<String>,
) -> ! {
    report(
        ErrorReport::new(code, message.into(), "")
            .set_detail(detail)
            .set_hint(hint),
    )
}

/// Writes to the server's log what its operator should know and no statement fails of.
pub fn log(
    code: PgSqlErrorCode,
    message: impl Into<String>,
    detail: impl Into<String>,
    hint: impl Into<String>,
) {
    ErrorReport::new(code, message.into(), "")
        .set_detail(detail)
        .set_hint(hint)
        .report(PgLogLevel::LOG);
}

/// The value of an argument that must not be NULL, of a function that takes NULL for others.
pub fn required<T>(name: &str, value: Option<T>) -> T {
    value.unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            format!("argument \"{name}\" must not be null"),
        )
    })
}

fn report(report: ErrorReport) -> ! {
    report.report(PgLogLevel::ERROR);
    unreachable!("an error report of level ERROR does not return")
}
