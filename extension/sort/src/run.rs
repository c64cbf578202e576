//! Sorted runs as bytes.
//!
//! A run is a list of blocks, each of which can be read by itself. A key is a head of two bytes, four bits for each
//! column, and then for each column as many bytes as its four bits say. These are the low bytes of the column's
//! difference (exclusive or) from the key before. Neighbours in a sorted run share most of their bytes: a quad of the
//! Berlin benchmark takes 6 bytes instead of 32.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use pgquad_btree::{Key, KEY_MIN};

use crate::merge::Source;

/// Most bytes of a block: what a merge holds of each run.
const BLOCK_BYTES: usize = 16 * 1024;
/// Blocks that are written at once.
const PIECE_BLOCKS: usize = 16;
const HEAD_BYTES: usize = 2;
const MAX_KEY_BYTES: usize = HEAD_BYTES + size_of::<Key>();
/// Columns are stored and loaded eight bytes at a time, whatever their length.
const SLACK_BYTES: usize = 8;

/// Blocks of a run, one after the other.
pub struct Piece {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
}

impl Piece {
    /// The bytes to be written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The blocks of a piece that has been written at `at`.
    pub fn blocks(&self, mut at: u64) -> impl Iterator<Item = Block> + '_ {
        self.lengths.iter().map(move |&length| {
            let block = Block { at, length };
            at += u64::from(length);
            block
        })
    }
}

/// Where a block is.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    at: u64,
    length: u32,
}

/// Encodes ascending keys; calls `each` with one piece after the other while it says `true`. Says whether it always
/// did.
pub fn encode(keys: &[Key], mut each: impl FnMut(Piece) -> bool) -> bool {
    let mut rest = keys;
    while !rest.is_empty() {
        let (piece, after) = encode_piece(rest);
        rest = after;
        if !each(piece) {
            return false;
        }
    }
    true
}

fn encode_piece(keys: &[Key]) -> (Piece, &[Key]) {
    let room = (keys.len() * MAX_KEY_BYTES).min(PIECE_BLOCKS * BLOCK_BYTES);
    let mut bytes = vec![0; room + SLACK_BYTES];
    let mut lengths = Vec::with_capacity(PIECE_BLOCKS);
    let (mut rest, mut at) = (keys, 0);
    while !rest.is_empty() && lengths.len() < PIECE_BLOCKS {
        let start = at;
        let mut previous = KEY_MIN;
        let mut count = 0;
        for key in rest {
            if at - start + MAX_KEY_BYTES > BLOCK_BYTES {
                break;
            }
            at = put(&previous, key, &mut bytes, at);
            previous = *key;
            count += 1;
        }
        rest = &rest[count..];
        lengths.push((at - start) as u32);
    }
    bytes.truncate(at);
    (Piece { bytes, lengths }, rest)
}

/// Writes a key; returns where the next one goes.
#[inline]
fn put(previous: &Key, key: &Key, bytes: &mut [u8], start: usize) -> usize {
    let mut head = 0u16;
    let mut at = start + HEAD_BYTES;
    for (column, (value, before)) in key.iter().zip(previous).enumerate() {
        let difference = value ^ before;
        let length = (u64::BITS - difference.leading_zeros()).div_ceil(8) as usize;
        head |= (length as u16) << (4 * column);
        bytes[at..at + 8].copy_from_slice(&difference.to_le_bytes());
        at += length;
    }
    bytes[start..start + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
    at
}

/// Reads a run back.
pub struct RunReader {
    file: Arc<File>,
    blocks: std::vec::IntoIter<Block>,
    bytes: Vec<u8>,
    at: usize,
    end: usize,
    previous: Key,
    error: Option<io::Error>,
}

impl RunReader {
    /// A reader of the run with these blocks.
    pub fn new(file: Arc<File>, blocks: Vec<Block>) -> Self {
        RunReader {
            file,
            blocks: blocks.into_iter(),
            bytes: Vec::new(),
            at: 0,
            end: 0,
            previous: KEY_MIN,
            error: None,
        }
    }

    /// Reads the next block; `false`: there is none.
    fn advance(&mut self) -> bool {
        let Some(block) = self.blocks.next() else {
            return false;
        };
        let length = block.length as usize;
        self.bytes.resize(length + SLACK_BYTES, 0);
        if let Err(error) = self.file.read_exact_at(&mut self.bytes[..length], block.at) {
            self.error = Some(error);
            return false;
        }
        (self.at, self.end, self.previous) = (0, length, KEY_MIN);
        true
    }
}

impl Source for RunReader {
    #[inline]
    fn next(&mut self) -> Option<Key> {
        if self.at >= self.end && !self.advance() {
            return None;
        }
        let head = u16::from_le_bytes([self.bytes[self.at], self.bytes[self.at + 1]]);
        self.at += HEAD_BYTES;
        for (column, value) in self.previous.iter_mut().enumerate() {
            let length = usize::from(head >> (4 * column) & 15);
            let mut difference = [0; 8];
            difference.copy_from_slice(&self.bytes[self.at..self.at + 8]);
            *value ^= u64::from_le_bytes(difference) & low_bytes(length);
            self.at += length;
        }
        Some(self.previous)
    }

    fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

#[inline]
fn low_bytes(count: usize) -> u64 {
    match count {
        0 => 0,
        1..8 => (1 << (8 * count)) - 1,
        _ => u64::MAX,
    }
}
