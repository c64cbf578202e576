//! Work on a thread of its own, whose results are waited for in small steps.

use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::error::{Error, ErrorKind};

/// Results that may wait to be taken.
const WAITING_RESULTS: usize = 4;

/// What [`Job::next`] has found.
#[derive(Debug)]
pub enum Step<T> {
    /// A result.
    Item(T),
    /// Nothing within the time given.
    Waiting,
    /// There are no more.
    End,
}

enum Message<T> {
    Item(T),
    End(Result<(), Error>),
}

/// Work under way. Dropping it ends the work: connections are closed, and the thread stops by itself.
pub struct Job<T> {
    client: Client,
    messages: Receiver<Message<T>>,
    ended: bool,
}

impl<T: Send + 'static> Job<T> {
    /// Starts the work. It hands over results until it is told `false`. The thread inherits the signal mask of the
    /// calling one.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(
        client: Client,
        work: impl FnOnce(&Client, &mut dyn FnMut(T) -> bool) -> Result<(), Error> + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, messages) = sync_channel(WAITING_RESULTS);
        let own = client.clone();
        thread::Builder::new()
            .name("quad http".to_owned())
            .spawn(move || {
                let mut give = |item| sender.send(Message::Item(item)).is_ok();
                let result = catch_unwind(AssertUnwindSafe(|| work(&own, &mut give)));
                let result = result.unwrap_or_else(|_| {
                    Err(Error::new(
                        ErrorKind::Internal,
                        "",
                        "the thread that makes the request has failed",
                    ))
                });
                // Nobody waits any more when this fails.
                let _ = sender.send(Message::End(result));
            })?;
        Ok(Self {
            client,
            messages,
            ended: false,
        })
    }

    /// The next result; waits for it at most this long.
    ///
    /// # Errors
    /// That of the work. There is nothing after it.
    pub fn next(&mut self, patience: Duration) -> Result<Step<T>, Error> {
        if self.ended {
            return Ok(Step::End);
        }
        match self.messages.recv_timeout(patience) {
            Ok(Message::Item(item)) => Ok(Step::Item(item)),
            Ok(Message::End(result)) => {
                self.ended = true;
                result.map(|()| Step::End)
            }
            Err(RecvTimeoutError::Timeout) => Ok(Step::Waiting),
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                Err(Error::new(
                    ErrorKind::Internal,
                    "",
                    "the thread that makes the request has gone",
                ))
            }
        }
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.client.shut_down();
    }
}
