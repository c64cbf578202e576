//! What carries frames between participants.

use std::{fmt, io};

/// A peer that cannot be reached any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The participant.
    pub peer: usize,
    /// What the network says.
    pub why: String,
    /// The peer has closed the link: it has given up, which another one may have heard in more words, or its process
    /// has ended.
    pub closed: bool,
}

impl Lost {
    /// What an error of the stream says of the peer.
    #[must_use]
    pub fn of(peer: usize, error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        Self {
            peer,
            why: error.to_string(),
            closed: matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "lost the connection to participant {}: {}",
            self.peer, self.why
        )
    }
}

impl std::error::Error for Lost {}

/// The links of one participant to all others. Frames of one link come out whole and in the order in which they went
/// in; nothing is said about the order between links. Only [`Self::wait`] may block.
///
/// Where the user cancels, an implementation leaves by its own way (in PostgreSQL an error that unwinds).
pub trait Transport {
    /// Number of participants, this one included.
    fn peers(&self) -> usize;

    /// The number of this participant.
    fn me(&self) -> usize;

    /// Whether the link takes a frame: all that was sent before has been given to the network. Gives it what it takes
    /// without blocking.
    ///
    /// # Errors
    /// The peer is lost.
    fn takes(&mut self, to: usize) -> Result<bool, Lost>;

    /// Sends a frame, as the exchange makes them; only where [`Self::takes`] has said so. The part that the network
    /// does not take at once is kept, and given to it by later calls of any of these functions.
    ///
    /// # Errors
    /// The peer is lost.
    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost>;

    /// The next frame that has come, and who sent it.
    ///
    /// # Errors
    /// A peer is lost.
    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost>;

    /// Waits until something may have come, or a link to one of `writable` may take frames again.
    ///
    /// # Errors
    /// A peer is lost.
    fn wait(&mut self, writable: &[usize]) -> Result<(), Lost>;

    /// Ends the link to a peer that cannot be told otherwise that this participant has given up. Raises nothing.
    fn close(&mut self, peer: usize);

    /// Nanoseconds since some fixed moment.
    fn now(&self) -> u64;
}

impl<T: Transport + ?Sized> Transport for &mut T {
    fn peers(&self) -> usize {
        (**self).peers()
    }

    fn me(&self) -> usize {
        (**self).me()
    }

    fn takes(&mut self, to: usize) -> Result<bool, Lost> {
        (**self).takes(to)
    }

    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost> {
        (**self).send(to, frame)
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost> {
        (**self).receive()
    }

    fn wait(&mut self, writable: &[usize]) -> Result<(), Lost> {
        (**self).wait(writable)
    }

    fn close(&mut self, peer: usize) {
        (**self).close(peer);
    }

    fn now(&self) -> u64 {
        (**self).now()
    }
}
