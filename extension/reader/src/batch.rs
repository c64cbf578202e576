//! Quads over a list of distinct terms.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pgquad_term::block::{self, Compressed, Symbols};
use pgquad_term::encoded::{self, MAX_TERM_BYTES};
use pgquad_term::{encoded_hash, inline_id, TermId};

use crate::error::{ErrorKind, ReadError};

/// Stands for the default graph, which is no term, in the place of a position in [`Batch::terms`]. Its id is
/// [`pgquad_term::TermId::DEFAULT_GRAPH`].
pub const DEFAULT_GRAPH_POSITION: u32 = u32::MAX;

/// Terms from this many bytes on are compressed ahead. Shorter ones are often known already, and quickly compressed.
const MIN_AHEAD_BYTES: usize = 48;

/// Quads in document order.
#[derive(Default)]
pub struct Batch {
    text: String,
    compressed: Vec<u8>,
    /// Number of the symbol tables that terms have been compressed with.
    symbols: Option<u32>,
    /// The distinct terms, in order of first sight.
    pub terms: Vec<BatchTerm>,
    /// Subject, predicate, object, graph: positions in `terms`, [`DEFAULT_GRAPH_POSITION`] for the default graph.
    pub quads: Vec<[u32; 4]>,
}

/// A term of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchTerm {
    /// Hash of the encoded form.
    pub hash: u128,
    /// The id, when the term is inlined.
    pub inline: Option<TermId>,
    start: u32,
    end: u32,
    ahead: Ahead,
}

/// Where the compressed form of a term is; empty when there is none.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    start: u32,
    end: u32,
    raw: bool,
}

impl Batch {
    /// The encoded form of a term of this batch ([`pgquad_term::encoded`]). Blank nodes have labels, which mean
    /// something within the document only.
    pub fn text(&self, term: &BatchTerm) -> &str {
        &self.text[term.start as usize..term.end as usize]
    }

    /// Compresses the longer terms, which takes most of the time that a new term takes, with the symbol tables of this
    /// number.
    pub(crate) fn compress(&mut self, number: u32, symbols: &Symbols) {
        self.symbols = Some(number);
        for term in &mut self.terms {
            let text = &self.text[term.start as usize..term.end as usize];
            if term.inline.is_some() || text.len() < MIN_AHEAD_BYTES {
                continue;
            }
            let start = self.compressed.len();
            let raw = block::compress(symbols, text, &mut self.compressed);
            term.ahead = Ahead {
                start: start as u32,
                end: self.compressed.len() as u32,
                raw,
            };
        }
    }

    /// The compressed form of a term of this batch, if it has been made with the symbol tables of this number.
    pub fn compressed(&self, term: &BatchTerm, symbols: u32) -> Option<Compressed<'_>> {
        let Ahead { start, end, raw } = term.ahead;
        (self.symbols == Some(symbols) && start < end).then(|| Compressed {
            bytes: &self.compressed[start as usize..end as usize],
            raw,
        })
    }
}

/// The hash map is keyed by what is a hash already.
#[derive(Default)]
struct HashOfHash(u64);

impl Hasher for HashOfHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only u128 is hashed");
    }
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

/// Collects quads.
#[derive(Default)]
pub(crate) struct BatchBuilder {
    text: String,
    terms: Vec<BatchTerm>,
    quads: Vec<[u32; 4]>,
    positions: HashMap<u128, u32, BuildHasherDefault<HashOfHash>>,
}

impl BatchBuilder {
    /// The position of the term with this encoded form, which is valid if `check` says so; `check` is asked about new
    /// terms only.
    #[inline]
    pub fn term<E>(
        &mut self,
        encoded: &str,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<u32, E> {
        let hash = encoded_hash(encoded);
        if let Some(position) = self.positions.get(&hash) {
            return Ok(*position);
        }
        check()?;
        Ok(self.add(hash, encoded))
    }

    fn add(&mut self, hash: u128, encoded: &str) -> u32 {
        let position = self.terms.len() as u32;
        let start = self.text.len() as u32;
        self.text.push_str(encoded);
        let inline = match encoded.as_bytes().first() {
            // These kinds are never inlined.
            Some(b'I' | b'B' | b'L' | b'T') => None,
            _ => encoded::decode(encoded).and_then(|term| inline_id(&term)),
        };
        self.terms.push(BatchTerm {
            hash,
            inline,
            start,
            end: self.text.len() as u32,
            ahead: Ahead::default(),
        });
        self.positions.insert(hash, position);
        position
    }

    /// Adds a quad of terms of this batch.
    #[inline]
    pub fn quad(&mut self, quad: [u32; 4]) {
        self.quads.push(quad);
    }

    /// Number of quads.
    pub fn len(&self) -> usize {
        self.quads.len()
    }

    /// Bytes of text.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The batch; the builder is empty again.
    pub fn finish(&mut self) -> Batch {
        self.positions.clear();
        Batch {
            compressed: Vec::new(),
            symbols: None,
            text: std::mem::take(&mut self.text),
            terms: std::mem::take(&mut self.terms),
            quads: std::mem::take(&mut self.quads),
        }
    }
}

/// An error for a term that is too long for the dictionary.
pub(crate) fn check_length(encoded: &str) -> Result<(), ReadError> {
    if encoded.len() <= MAX_TERM_BYTES {
        return Ok(());
    }
    let start: String = encoded
        .chars()
        .skip(1)
        .filter(|char| !char.is_control())
        .take(40)
        .collect();
    let message = format!(
        "term of {} bytes is too long, the limit is {MAX_TERM_BYTES} bytes; it begins with \"{start}\"",
        encoded.len()
    );
    Err(ReadError::new(ErrorKind::TooLong, message))
}
