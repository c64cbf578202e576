//! What the surroundings give to a sort.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for a thread before the next look for a cancel request.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// Temporary files, threads and cancellation. Everything but the bodies of the threads is called on the caller's
/// thread; errors unwind.
pub trait Host {
    /// Writes at the end of temporary file `file`, which is made at the first call. Returns where the bytes begin.
    fn write(&mut self, file: usize, bytes: &[u8]) -> u64;

    /// Temporary file `file`, which has been written to, for reading on any thread.
    fn reader(&self, file: usize) -> Arc<File>;

    /// Starts a thread, which never calls the host.
    ///
    /// # Errors
    /// As [`std::thread::Builder::spawn`].
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Called while waiting: the place for cancellation (by unwinding).
    fn interrupt(&self);
}
