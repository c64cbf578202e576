//! The results of a participant on their way to the node that asks: messages cut into pieces, of which only so many
//! bytes are under way.
//!
//! Whoever asks may take rows slowly, e.g. a cursor whose client thinks for an hour. Without a bound on what is under
//! way, the participant would wait for its socket, and its peers for the links that it does not empty. TCP counts a
//! peer as lost that takes nothing for `TCP_USER_TIMEOUT`, though it is well. With the bound, all that has been sent
//! has room in the buffers of the kernel.

use std::collections::VecDeque;

/// Most bytes of a piece. A piece of that size is not the last one of its message.
pub const PIECE_BYTES: usize = 16 << 10;

/// A piece is sent only while fewer bytes are under way.
pub const WINDOW_BYTES: u64 = 128 << 10;

/// What the socket of the asking node has to have room for: the window, a piece more, and what protocols add. Linux
/// allows 208 kB without being told otherwise (`net.core.rmem_max`).
pub const RECEIVE_BUFFER_BYTES: usize = 208 << 10;

/// Whoever asks acknowledges each time that it has taken so many bytes more.
pub const ACKNOWLEDGED_BYTES: u64 = 32 << 10;

/// Bytes that go around a piece: at least the header of a message of PostgreSQL, the number of columns, a length.
const ENVELOPE_BYTES: u64 = 16;

/// What a piece counts.
fn bytes_of(piece: &[u8]) -> u64 {
    piece.len() as u64 + ENVELOPE_BYTES
}

/// The messages of a participant.
#[derive(Default, Debug)]
pub struct Outgoing {
    pieces: VecDeque<Vec<u8>>,
    sent: u64,
    acknowledged: u64,
}

impl Outgoing {
    /// Adds a message.
    pub fn put(&mut self, message: Vec<u8>) {
        if message.len() < PIECE_BYTES {
            self.pieces.push_back(message);
            return;
        }
        self.pieces
            .extend(message.chunks(PIECE_BYTES).map(<[u8]>::to_vec));
        if message.len().is_multiple_of(PIECE_BYTES) {
            self.pieces.push_back(Vec::new());
        }
    }

    /// Whether nothing is left to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether a piece may be sent.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.sent - self.acknowledged < WINDOW_BYTES
    }

    /// The next piece, which is sent.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.pop_front()?;
        self.sent += bytes_of(&piece);
        Some(piece)
    }

    /// An acknowledgement has come. False where so much has not been sent.
    #[must_use]
    pub fn acknowledge(&mut self) -> bool {
        self.acknowledged += ACKNOWLEDGED_BYTES;
        self.acknowledged <= self.sent
    }
}

/// What has come from a participant.
#[derive(Default, Debug)]
pub struct Incoming {
    /// The pieces so far of the message.
    begun: Vec<u8>,
    taken: u64,
    acknowledged: u64,
}

impl Incoming {
    /// Takes a piece; gives the message that it is the last one of.
    pub fn take(&mut self, piece: Vec<u8>) -> Option<Vec<u8>> {
        self.taken += bytes_of(&piece);
        let is_last = piece.len() < PIECE_BYTES;
        if self.begun.is_empty() {
            self.begun = piece;
        } else {
            self.begun.extend_from_slice(&piece);
        }
        is_last.then(|| std::mem::take(&mut self.begun))
    }

    /// How many acknowledgements are due, which are sent.
    pub fn due(&mut self) -> u64 {
        let due = (self.taken - self.acknowledged) / ACKNOWLEDGED_BYTES;
        self.acknowledged += due * ACKNOWLEDGED_BYTES;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_of_whole_pieces_has_an_end() {
        for len in [
            0,
            1,
            PIECE_BYTES - 1,
            PIECE_BYTES,
            3 * PIECE_BYTES,
            3 * PIECE_BYTES + 5,
        ] {
            let message: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let (mut outgoing, mut incoming) = (Outgoing::default(), Incoming::default());
            outgoing.put(message.clone());
            let mut found = Vec::new();
            while let Some(piece) = outgoing.next_piece() {
                assert!(found.is_empty() && piece.len() <= PIECE_BYTES);
                found.extend(incoming.take(piece));
            }
            assert_eq!(found, [message]);
        }
    }

    #[test]
    fn more_acknowledgements_than_bytes_are_refused() {
        let mut outgoing = Outgoing::default();
        assert!(!outgoing.acknowledge());
    }

    proptest! {
        /// Whatever the sizes, and however late pieces and acknowledgements are taken: all messages come, in their
        /// order, and never more is under way than a window and a piece.
        #[test]
        fn all_messages_come_within_the_window(
            sizes in prop::collection::vec(prop_oneof![0usize..40, 0usize..5 * PIECE_BYTES], 0..40),
            turns in prop::collection::vec(0u8..3, 0..400),
        ) {
            let (mut outgoing, mut incoming) = (Outgoing::default(), Incoming::default());
            let messages: Vec<Vec<u8>> =
                sizes.iter().enumerate().map(|(n, &size)| vec![n as u8; size]).collect();
            let mut waiting = messages.iter();
            let (mut link, mut acknowledgements, mut found) = (VecDeque::new(), 0, Vec::new());
            let mut turns = turns.into_iter().chain([0, 1, 2].into_iter().cycle());
            let mut turn = |outgoing: &mut Outgoing| match turns.next() {
                Some(0) => {
                    if outgoing.is_empty() {
                        waiting.next().into_iter().for_each(|message| outgoing.put(message.clone()));
                    }
                    if outgoing.has_room() {
                        link.extend(outgoing.next_piece());
                    }
                    let under_way: u64 = link.iter().map(|piece: &Vec<u8>| bytes_of(piece)).sum();
                    assert!(under_way < WINDOW_BYTES + bytes_of(&[0; PIECE_BYTES]));
                    true
                }
                Some(1) => {
                    found.extend(link.pop_front().and_then(|piece| incoming.take(piece)));
                    acknowledgements += incoming.due();
                    true
                }
                _ => {
                    let all = (0..acknowledgements).all(|_| outgoing.acknowledge());
                    acknowledgements = 0;
                    all
                }
            };
            // Each message has five pieces at most, and each piece takes one round.
            for _ in 0..400 + 3 * 6 * sizes.len() {
                prop_assert!(turn(&mut outgoing));
            }
            prop_assert_eq!(found, messages);
        }
    }
}
