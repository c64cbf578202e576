//! Sorted keys that are merged on a thread while the caller uses those before.

use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};

use pgquad_btree::Key;

use crate::error::Error;
use crate::host::{Host, PATIENCE};
use crate::stream::Stream;

/// Keys of a chunk: those of some tens of leaves.
const CHUNK_KEYS: usize = 16 * 1024;
/// Chunks that wait for the caller.
const CHUNKS_AHEAD: usize = 2;

/// A stream in chunks.
pub struct Chunks {
    chunks: Receiver<Result<Vec<Key>, Error>>,
    /// The stream has ended, as it should.
    ended: bool,
}

impl Chunks {
    /// Starts to read a stream on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn start(mut stream: Stream, host: &impl Host) -> Result<Self, Error> {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let body = move || loop {
            let chunk: Vec<Key> = stream.by_ref().take(CHUNK_KEYS).collect();
            let is_end = chunk.is_empty();
            // An empty chunk says that these were all.
            let chunk = match is_end {
                true => stream.check().map(|()| chunk).map_err(Error::Read),
                false => Ok(chunk),
            };
            if sender.send(chunk).is_err() || is_end {
                return;
            }
        };
        host.spawn("quad merge", Box::new(body))
            .map_err(|error| Error::Thread(error.to_string()))?;
        Ok(Chunks {
            chunks,
            ended: false,
        })
    }

    /// The next chunk of ascending keys; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Thread`].
    pub fn next(&mut self, host: &impl Host) -> Result<Option<Vec<Key>>, Error> {
        while !self.ended {
            host.interrupt();
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => {
                    let chunk = chunk?;
                    if !chunk.is_empty() {
                        return Ok(Some(chunk));
                    }
                    self.ended = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Thread("it ended before its stream".to_owned()))
                }
            }
        }
        Ok(None)
    }
}
