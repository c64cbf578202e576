//! A document whose bytes are handed over piece by piece, as a client sends them.

use std::io::{self, Read};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender, TrySendError};

use crate::chunk::CHUNK_BYTES;

/// Small pieces are collected until they have this many bytes.
const PIECE_BYTES: usize = 1 << 18;
/// Pieces that may wait between the two ends: two chunks. A refused piece means that a whole chunk waits, so a batch is
/// sure to come. With fewer pieces, whoever waited for a batch would wait for one that this piece was missing from.
const WAITING_PIECES: usize = 2 * CHUNK_BYTES / PIECE_BYTES;

/// Makes the two ends: what is put into the feed comes out of the reader.
pub fn feed() -> (Feed, FeedReader) {
    let (sender, receiver) = sync_channel(WAITING_PIECES);
    let (read, used) = channel();
    (
        Feed {
            sender,
            used,
            piece: Vec::new(),
            is_over: false,
        },
        FeedReader {
            receiver,
            read,
            piece: Vec::new(),
            start: 0,
        },
    )
}

/// The end that takes bytes. Dropping it ends the document.
pub struct Feed {
    sender: SyncSender<Vec<u8>>,
    /// Pieces that have been read, to be filled again: new memory costs more than the copy into it.
    used: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    /// The other end has stopped before the end of the document.
    is_over: bool,
}

impl Feed {
    /// Adds bytes; they wait here until [`Feed::flush`] can send them.
    pub fn push(&mut self, bytes: &[u8]) {
        self.piece.extend_from_slice(bytes);
    }

    /// Whether there is enough to be sent.
    pub fn is_due(&self) -> bool {
        self.piece.len() >= PIECE_BYTES
    }

    /// Sends what was added. `false` when the other end is busy: take batches from the pipeline and try again.
    pub fn flush(&mut self) -> bool {
        if self.piece.is_empty() {
            return true;
        }
        match self.sender.try_send(std::mem::take(&mut self.piece)) {
            Ok(()) => {
                self.piece = self.used.try_recv().unwrap_or_default();
                self.piece.clear();
                true
            }
            Err(TrySendError::Full(piece)) => {
                self.piece = piece;
                false
            }
            Err(TrySendError::Disconnected(_)) => {
                self.is_over = true;
                true
            }
        }
    }

    /// Whether the reader has stopped, because of an error that the pipeline reports.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The end that gives bytes; waits when there are none.
pub struct FeedReader {
    receiver: Receiver<Vec<u8>>,
    read: Sender<Vec<u8>>,
    piece: Vec<u8>,
    start: usize,
}

impl Read for FeedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.piece.len() {
            let next = self.receiver.recv().unwrap_or_default();
            // Nobody takes it any more when the document has ended.
            let _ = self.read.send(std::mem::replace(&mut self.piece, next));
            self.start = 0;
        }
        let read = (&self.piece[self.start..]).read(buffer)?;
        self.start += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_no_part_of_the_next_batch() {
        let (mut feed, _reader) = feed();
        let mut waiting = 0;
        loop {
            feed.push(&[b'\n'; PIECE_BYTES]);
            if !feed.flush() {
                break;
            }
            waiting += PIECE_BYTES;
        }
        assert!(waiting > CHUNK_BYTES, "{waiting} bytes");
    }
}
