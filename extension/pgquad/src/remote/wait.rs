//! Waiting for a request.

use std::time::Duration;

use pgquad_remote::{Client, Error, Job, Step};
use pgrx::{check_for_interrupts, PgSqlErrorCode};

use crate::pg::error::raise;
use crate::pg::threads::with_signals_blocked;

/// Longest wait before the next look for a cancel request.
const PATIENCE: Duration = Duration::from_millis(20);

/// Starts a request on a thread of its own.
pub fn start<T: Send + 'static>(
    client: Client,
    work: impl FnOnce(&Client, &mut dyn FnMut(T) -> bool) -> Result<(), Error> + Send + 'static,
) -> Job<T> {
    with_signals_blocked(|| Job::start(client, work)).unwrap_or_else(|error| {
        raise(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
            format!("could not start a thread: {error}"),
        )
    })
}

/// The next result of a request, `None` when there are no more. Ends with an error when the query is cancelled
/// meanwhile.
pub fn next<T: Send + 'static>(job: &mut Job<T>) -> Result<Option<T>, Error> {
    loop {
        check_for_interrupts!();
        match job.next(PATIENCE)? {
            Step::Item(item) => return Ok(Some(item)),
            Step::Waiting => {}
            Step::End => return Ok(None),
        }
    }
}
