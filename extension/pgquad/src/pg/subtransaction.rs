//! What may fail without failing the statement around it.

use std::panic::AssertUnwindSafe;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{pg_sys, PgSqlErrorCode, PgTryBuilder};

/// Classes of errors that say nothing of what was attempted: they pass through.
const SERIOUS: [PgSqlErrorCode; 4] = [
    PgSqlErrorCode::ERRCODE_TRANSACTION_ROLLBACK,
    PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
    PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION,
    PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
];

/// Runs `body` in a subtransaction. When it raises an error the subtransaction is rolled back, and the message is
/// given.
pub fn attempt<T>(body: impl Fn() -> T) -> Result<T, String> {
    within(None, body).map_err(|error| match &*error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
            if !is_serious(report.sql_error_code()) =>
        {
            report.message().to_owned()
        }
        _ => error.rethrow(),
    })
}

/// Runs `body` in a subtransaction; `None` where it raises an error of this code. Other errors pass through.
pub fn unless<T>(code: PgSqlErrorCode, body: impl Fn() -> T) -> Option<T> {
    match within(None, body) {
        Ok(value) => Some(value),
        Err(error) => match &*error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
                if report.sql_error_code() == code =>
            {
                None
            }
            _ => error.rethrow(),
        },
    }
}

/// Runs `body` in a subtransaction, which is rolled back when it raises an error. The locks that it takes stay with
/// `owner`, or with the current one.
pub fn within<T>(
    owner: Option<pg_sys::ResourceOwner>,
    body: impl Fn() -> T,
) -> Result<T, Box<CaughtError>> {
    // SAFETY: within a function call there is a transaction, a memory context and a resource owner; both are put back
    // below, as PL/pgSQL does for its exception blocks. Locks of a subtransaction go to the parent of its owner
    // (`CommitSubTransaction` of `access/transam/xact.c`), which lives until the transaction ends or longer.
    let (context, before) = unsafe {
        let before = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        if let Some(owner) = owner {
            pg_sys::ResourceOwnerNewParent(pg_sys::CurTransactionResourceOwner, owner);
        }
        pg_sys::MemoryContextSwitchTo(before.0);
        before
    };
    let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(body())))
        .catch_others(|error| Err(Box::new(error)))
        .execute();
    // SAFETY: the subtransaction is the one that was begun above: `body` has ended all that it began, or the error has
    // left it open.
    unsafe {
        match result {
            Ok(_) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = before;
    }
    result
}

fn is_serious(code: PgSqlErrorCode) -> bool {
    // The class of an SQLSTATE is its first two characters, six bits each.
    let class = |code: PgSqlErrorCode| code as i32 & 0xfff;
    SERIOUS.iter().any(|serious| class(*serious) == class(code))
}
