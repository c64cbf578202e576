//! Snapshots by name, so that several sessions of a node read the same state of it.

use std::ffi::CStr;

use pgrx::pg_sys;

/// Exports the active snapshot; gives its name, which other sessions of this node and database can import as long as
/// this transaction lasts. PostgreSQL refuses that within a savepoint.
pub fn export() -> String {
    // SAFETY: a snapshot is active while a statement or function runs; its name is a C string.
    unsafe {
        let name = pg_sys::ExportSnapshot(pg_sys::GetActiveSnapshot());
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Whether this transaction, which keeps its snapshot, can give it to other sessions: not in a savepoint, as PostgreSQL
/// has it, and not where it is SERIALIZABLE, for what other sessions read is not watched for its conflicts.
pub fn can_export() -> bool {
    // SAFETY: plain session state.
    unsafe {
        pg_sys::XactIsoLevel == pg_sys::XACT_REPEATABLE_READ as i32
            && pg_sys::GetCurrentTransactionNestLevel() == 1
    }
}

/// Whether all statements of this transaction read with one snapshot.
pub fn is_kept() -> bool {
    // SAFETY: plain session state.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}
