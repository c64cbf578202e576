//! File descriptors that PostgreSQL has to know of, so that it leaves room for its own files.

use pgrx::{pg_sys, PgSqlErrorCode};

use crate::pg::error::raise_hint;

/// Room for one descriptor.
pub struct Descriptor(());

impl Descriptor {
    /// Takes room; raises an error where there is none.
    pub fn acquire() -> Self {
        // SAFETY: counts.
        if !unsafe { pg_sys::AcquireExternalFD() } {
            raise_hint(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                "no file descriptor is left for a connection between nodes",
                "Raise max_files_per_process.",
            );
        }
        Self(())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: acquired above; counts.
        unsafe { pg_sys::ReleaseExternalFD() }
    }
}
