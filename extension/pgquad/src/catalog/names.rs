//! Names of relations and roles.

use crate::pg::error::raise;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::ffi::CString;

/// A NUL-terminated copy.
pub fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_NAME,
            "a name must not contain a NUL character",
        )
    })
}

/// A relation's qualified name in SQL, as the newest state of the catalogue has it.
pub fn table_name(relid: pg_sys::Oid) -> String {
    // SAFETY: look-ups in the catalogue; the result is a copy in the current memory context.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relid));
        let name = pg_sys::quote_qualified_identifier(schema, pg_sys::get_rel_name(relid));
        std::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

/// The name of a role.
pub fn role_name(role: pg_sys::Oid) -> String {
    // SAFETY: the name is a copy in the current memory context; an error where there is no such role.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, false);
        std::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}
