//! Sealed frames: nobody between two participants can read, change, repeat or drop one unnoticed.

use std::io;

use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};

use super::frame::LENGTH_BYTES;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Bytes that sealing adds to a frame.
pub const TAG_BYTES: usize = 16;

/// One direction of a link. Each has a key of its own, used for nothing else; frames are numbered, so that no number is
/// used twice.
pub struct Seal {
    cipher: ChaCha20Poly1305,
    frames: u64,
}

impl Seal {
    /// The first frame comes next.
    pub fn new(key: [u8; KEY_BYTES]) -> Self {
        Self {
            cipher: ChaCha20Poly1305::new(&key.into()),
            frames: 0,
        }
    }

    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.frames.to_le_bytes());
        self.frames += 1;
        nonce.into()
    }

    /// Seals a frame: what is behind its length.
    ///
    /// # Errors
    /// The frame is longer than the cipher can take.
    pub fn seal(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let nonce = self.next_nonce();
        set_length(frame, TAG_BYTES);
        let (length, body) = frame.split_at_mut(LENGTH_BYTES);
        let tag = self.cipher.encrypt_in_place_detached(&nonce, length, body);
        frame.extend_from_slice(&tag.map_err(damaged)?);
        Ok(())
    }

    /// Opens a frame that the other end has sealed.
    ///
    /// # Errors
    /// It is not the next one that the other end has sealed.
    pub fn open(&mut self, frame: &mut Vec<u8>) -> io::Result<()> {
        let nonce = self.next_nonce();
        let end = frame.len().checked_sub(TAG_BYTES);
        let end = end.filter(|end| *end >= LENGTH_BYTES);
        let tag = frame.split_off(end.ok_or_else(|| damaged(chacha20poly1305::Error))?);
        let (length, body) = frame.split_at_mut(LENGTH_BYTES);
        let tag = Tag::from_slice(&tag);
        let opened = self
            .cipher
            .decrypt_in_place_detached(&nonce, length, body, tag);
        opened.map_err(damaged)?;
        set_length(frame, 0);
        Ok(())
    }
}

/// Writes the length of a frame that has so many bytes more.
fn set_length(frame: &mut [u8], more: usize) {
    let length = (frame.len() - LENGTH_BYTES + more) as u32;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

fn damaged(_: chacha20poly1305::Error) -> io::Error {
    let error = "a sealed frame was changed on its way";
    io::Error::new(io::ErrorKind::InvalidData, error)
}
