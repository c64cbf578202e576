//! Setting PostgreSQL's settings for a while (`utils/guc.h`).

use super::error::raise;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::ffi::{c_char, CStr, CString};

/// Sets a setting until its nesting level ends (`NewGUCNestLevel`, `AtEOXact_GUC`), as the clause SET of a function
/// does.
///
/// # Safety
/// Within a level that was opened, whose end undoes it.
pub unsafe fn set_in_level(name: &CStr, value: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { set_in_level_as(name, value, pg_sys::GucContext::PGC_USERSET) }
}

/// As [`set_in_level`], with the rights of a user or of a superuser (`PGC_SUSET`).
///
/// # Safety
/// As [`set_in_level`].
pub unsafe fn set_in_level_as(
    name: &CStr,
    value: *const c_char,
    context: pg_sys::GucContext::Type,
) {
    // SAFETY: the caller's promise; both texts are copied.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value,
            context,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

/// Sets a setting until the transaction ends, as SET LOCAL does.
pub fn set_in_transaction(name: &CStr, value: &CStr) {
    // SAFETY: within a transaction; both texts are copied.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_LOCAL,
            true,
            0,
            false,
        );
    }
}

/// Runs `body` with the settings in force and puts the former values back afterwards (on an error the abort of the
/// transaction does).
pub fn with_settings<T>(settings: &[(&CStr, &str)], body: impl FnOnce() -> T) -> T {
    // SAFETY: opens a nesting level of settings, closed below; names and values are NUL-terminated strings that outlive
    // the calls.
    let level = unsafe { pg_sys::NewGUCNestLevel() };
    for (name, value) in settings {
        let value = CString::new(*value).unwrap_or_else(|_| {
            raise(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "an option must not contain a NUL character",
            )
        });
        // SAFETY: as above.
        unsafe {
            set_in_level(name, value.as_ptr());
        }
    }
    let result = body();
    // SAFETY: `level` is the level opened above.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
    result
}
