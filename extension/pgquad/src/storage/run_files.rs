//! The host of a sort: temporary files of PostgreSQL that threads can read, and threads.
//!
//! The files are made and written by PostgreSQL (`temp_tablespaces`, `temp_file_limit`, removal at the end of the query
//! or after a crash). Threads read them by descriptors of their own, since PostgreSQL's are for its own thread. All
//! other spill files are [`super::TempFile`], whose `BufFile` has neither.

use crate::pg::error::raise;
use crate::pg::interrupt::interrupt;
use crate::pg::threads::with_signals_blocked;
use pgquad_sort::Host;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

/// Temporary files by number. They have to be closed, unless an error ends the statement: then the resource owner
/// closes them. It is the owner that was current when this value was made. A portal that runs when a file is first
/// written may end earlier.
pub struct RunFiles {
    files: Vec<Option<RunFile>>,
    owner: pg_sys::ResourceOwner,
}

impl Default for RunFiles {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            // SAFETY: a variable of the backend.
            owner: unsafe { pg_sys::CurrentResourceOwner },
        }
    }
}

struct RunFile {
    file: pg_sys::File,
    reader: Arc<File>,
    length: u64,
    _counted: ExternalDescriptor,
}

/// A descriptor that PostgreSQL has been told of, so that it keeps within its limit.
struct ExternalDescriptor;

impl Drop for ExternalDescriptor {
    fn drop(&mut self) {
        // SAFETY: counts down what `RunFile::new` has counted up.
        unsafe { pg_sys::ReleaseExternalFD() }
    }
}

impl RunFile {
    fn new(owner: pg_sys::ResourceOwner) -> Self {
        // SAFETY: plain calls on the backend's thread. The owner lives as long as the statement, and the current one is
        // put back, here or by PostgreSQL after an error. The descriptor is open, as the file has just been made, and
        // the copy of it is ours.
        unsafe {
            if !pg_sys::AcquireExternalFD() {
                raise(
                    PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                    "too many open files for another temporary sort file",
                );
            }
            let counted = ExternalDescriptor;
            pg_sys::PrepareTempTablespaces();
            let current = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = owner;
            let file = pg_sys::OpenTemporaryFile(false);
            pg_sys::CurrentResourceOwner = current;
            let descriptor = libc::fcntl(
                pg_sys::FileGetRawDesc(file),
                libc::F_DUPFD_CLOEXEC,
                libc::STDERR_FILENO + 1,
            );
            if descriptor < 0 {
                cannot("open", &io::Error::last_os_error());
            }
            RunFile {
                file,
                reader: Arc::new(File::from(OwnedFd::from_raw_fd(descriptor))),
                length: 0,
                _counted: counted,
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> u64 {
        let start = self.length;
        let mut rest = bytes;
        while !rest.is_empty() {
            // SAFETY: the file is open; the bytes are only read. `FileWrite` raises an error beyond `temp_file_limit`.
            let written = unsafe {
                pg_sys::FileWrite(
                    self.file,
                    rest.as_ptr().cast_mut().cast(),
                    // `int` before PostgreSQL 17, `size_t` since.
                    rest.len().min(i32::MAX as usize) as _,
                    self.length as pg_sys::off_t,
                    pg_sys::WaitEventIO::WAIT_EVENT_BUFFILE_WRITE,
                )
            };
            if written <= 0 {
                cannot("write to", &io::Error::last_os_error());
            }
            rest = &rest[written as usize..];
            self.length += written as u64;
        }
        start
    }
}

fn cannot(what: &str, error: &io::Error) -> ! {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => PgSqlErrorCode::ERRCODE_DISK_FULL,
        _ => PgSqlErrorCode::ERRCODE_IO_ERROR,
    };
    raise(
        code,
        format!("could not {what} a temporary sort file: {error}"),
    )
}

impl RunFiles {
    /// Removes the files. Threads that still read them can do so.
    pub fn close(self) {
        for file in self.files.into_iter().flatten() {
            // SAFETY: opened by `RunFile::new`, closed once.
            unsafe { pg_sys::FileClose(file.file) }
        }
    }
}

impl Host for RunFiles {
    fn write(&mut self, file: usize, bytes: &[u8]) -> u64 {
        if self.files.len() <= file {
            self.files.resize_with(file + 1, || None);
        }
        let owner = self.owner;
        self.files[file]
            .get_or_insert_with(|| RunFile::new(owner))
            .write(bytes)
    }

    fn reader(&self, file: usize) -> Arc<File> {
        let file = self.files.get(file).and_then(Option::as_ref);
        file.expect("a file that has been written to")
            .reader
            .clone()
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let builder = std::thread::Builder::new().name(name.to_owned());
        with_signals_blocked(|| builder.spawn(body).map(drop))
    }

    fn interrupt(&self) {
        interrupt();
    }
}
