//! File descriptors that PostgreSQL has to know of, so that it leaves room for its own files.

use pgrx::{pg_sys, PgSqlErrorCode};

use crate::pg::error::raise_hint;

/// Room for one descriptor.
pub struct Descriptor(());

impl Descriptor {
    /// Takes room; raises an error where there is none.
    pub fn acquire() -> Self {
        Self::try_acquire().unwrap_or_else(|| {
            raise_hint(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                "no file descriptor is left for a connection between nodes",
                "Raise max_files_per_process.",
            )
        })
    }

    /// Takes room; `None` where there is none.
    pub fn try_acquire() -> Option<Self> {
        // SAFETY: counts.
        unsafe { pg_sys::AcquireExternalFD() }.then_some(Self(()))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: acquired above; counts.
        unsafe { pg_sys::ReleaseExternalFD() }
    }
}
