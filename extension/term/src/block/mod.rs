//! Compact blocks of dictionary terms: the form in which terms lie on disk.
//!
//! A block holds up to [`MAX_TERMS`] terms in the [`crate::encoded`] form. The beginning that its terms share, an
//! *affix*, is stored once: the kind with the namespace of an IRI, the language tag, or the datatype. The rest of each
//! term is compressed by itself with the shared [`Symbols`], so that one term can be read without its neighbours.
//!
//! ```text
//! format version u8 | terms n u8 | affixes m u8 | number of the symbol tables varint
//! m x (head varint, bytes)                affixes
//! n x affix index u8 | n x head varint | n x bytes      rests of the terms, column by column
//! ```
//! A head is `length << 1 | raw`: raw bytes are the text itself, others FSST codes. Varints are little-endian, base
//! 128.

mod affix;
mod builtin;
mod error;
mod symbols;
mod varint;

pub use error::BlockError;
pub use symbols::{Sampler, SymbolError, Symbols};

use affix::{split, table_for, Table};

/// Most terms in one block.
pub const MAX_TERMS: usize = 255;

/// Most bytes of one field: more than any term that the dictionary takes.
const MAX_FIELD: usize = 1 << 22;

const FORMAT_VERSION: u8 = 1;
const MAX_AFFIXES: usize = 255;
/// Bytes before the affixes, with the longest table number.
const MAX_HEADER: usize = 3 + 5;

/// The rest of a term in its stored form, made by [`compress`].
#[derive(Clone, Copy, Debug)]
pub struct Compressed<'a> {
    /// FSST codes, or the text itself.
    pub bytes: &'a [u8],
    /// Whether it is the text itself.
    pub raw: bool,
}

/// Appends what a block stores of the rest of an encoded term to `out`; says whether that is the text itself. It can be
/// done ahead, on any thread, for [`BlockBuilder::push_compressed`].
pub fn compress(symbols: &Symbols, encoded: &str, out: &mut Vec<u8>) -> bool {
    let (affix, rest) = split(encoded);
    symbols.compress(table_for(affix.as_bytes()), rest.as_bytes(), out)
}

/// Collects records into one block.
pub struct BlockBuilder {
    table: u32,
    limit: usize,
    affixes: Vec<String>,
    affix_bytes: Vec<u8>,
    indexes: Vec<u8>,
    heads: Vec<u8>,
    payload: Vec<u8>,
    scratch: Vec<u8>,
}

impl BlockBuilder {
    /// A builder of blocks of at most `limit` bytes (a block of one term may be larger), compressed
    /// with the symbol tables of number `table`.
    pub fn new(table: u32, limit: usize) -> Self {
        BlockBuilder {
            table,
            limit,
            affixes: Vec::new(),
            affix_bytes: Vec::new(),
            indexes: Vec::new(),
            heads: Vec::new(),
            payload: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Number of terms in the block.
    pub fn len(&self) -> usize {
        self.indexes.len()
    }

    /// Whether the block has no terms yet.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Adds an encoded term, compressed with `symbols`, the tables of the number given to
    /// [`BlockBuilder::new`]; `false`, with nothing changed, when the block is full.
    pub fn push(&mut self, symbols: &Symbols, encoded: &str) -> bool {
        self.push_with(symbols, encoded, |affix, rest, out| {
            symbols.compress(table_for(affix.as_bytes()), rest.as_bytes(), out)
        })
    }

    /// As [`BlockBuilder::push`], for a term that has been compressed with the same symbols.
    pub fn push_compressed(
        &mut self,
        symbols: &Symbols,
        encoded: &str,
        compressed: Compressed<'_>,
    ) -> bool {
        self.push_with(symbols, encoded, |_, _, out| {
            out.extend_from_slice(compressed.bytes);
            compressed.raw
        })
    }

    /// Adds a term; `store` appends the rest that follows the affix in its stored form, and says whether that is the
    /// text itself.
    fn push_with(
        &mut self,
        symbols: &Symbols,
        encoded: &str,
        store: impl FnOnce(&str, &str, &mut Vec<u8>) -> bool,
    ) -> bool {
        if self.len() == MAX_TERMS {
            return false;
        }
        let (affix, rest) = split(encoded);
        let known = self.affixes.iter().rposition(|known| known == affix);
        let affix_start = self.affix_bytes.len();
        if known.is_none() {
            if self.affixes.len() == MAX_AFFIXES {
                return false;
            }
            self.scratch.clear();
            let raw = symbols.compress(Table::Iri, affix.as_bytes(), &mut self.scratch);
            varint::write(&mut self.affix_bytes, head(self.scratch.len(), raw));
            self.affix_bytes.extend_from_slice(&self.scratch);
        }
        let (head_start, payload_start) = (self.heads.len(), self.payload.len());
        let raw = store(affix, rest, &mut self.payload);
        varint::write(
            &mut self.heads,
            head(self.payload.len() - payload_start, raw),
        );
        if !self.is_empty() && self.size() + 1 > self.limit {
            self.affix_bytes.truncate(affix_start);
            self.heads.truncate(head_start);
            self.payload.truncate(payload_start);
            return false;
        }
        let index = known.unwrap_or_else(|| {
            self.affixes.push(affix.to_owned());
            self.affixes.len() - 1
        });
        self.indexes.push(index as u8);
        true
    }

    /// Bytes that are left.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.size())
    }

    /// Bytes that the finished block will take at most.
    pub fn size(&self) -> usize {
        MAX_HEADER
            + self.affix_bytes.len()
            + self.indexes.len()
            + self.heads.len()
            + self.payload.len()
    }

    /// The finished block; the builder is empty again. Must not be called without terms.
    pub fn finish(&mut self) -> Vec<u8> {
        assert!(!self.is_empty(), "a block has at least one term");
        let mut block = Vec::with_capacity(self.size());
        block.extend_from_slice(&[
            FORMAT_VERSION,
            self.indexes.len() as u8,
            self.affixes.len() as u8,
        ]);
        varint::write(&mut block, u64::from(self.table));
        block.append(&mut self.affix_bytes);
        block.append(&mut self.indexes);
        block.append(&mut self.heads);
        block.append(&mut self.payload);
        self.affixes.clear();
        block
    }
}

/// Number of the symbol tables that a block was compressed with.
pub fn table_of(block: &[u8]) -> Result<u32, BlockError> {
    read_start(&mut &block[..]).map(|start| start.table)
}

/// A block opened for reading.
pub struct Block {
    bytes: Box<[u8]>,
    /// The affixes, one behind the other.
    affixes: Box<[u8]>,
    /// Where each affix ends.
    affix_ends: Box<[u32]>,
    terms: Box<[Place]>,
}

/// A block as it lies on disk, for a few of its terms.
pub struct View<'a> {
    /// Affixes as they are stored, and whether raw.
    affixes: Vec<(&'a [u8], bool)>,
    /// The affix of each term.
    indexes: &'a [u8],
    /// The column of heads, and what follows it.
    heads: &'a [u8],
}

/// Where the rest of a term is.
#[derive(Clone, Copy)]
struct Place {
    start: u32,
    end: u32,
    affix: u8,
    raw: bool,
}

/// The first bytes of a block.
struct Start {
    table: u32,
    terms: usize,
    affixes: usize,
}

fn read_start(cursor: &mut &[u8]) -> Result<Start, BlockError> {
    let [version, terms, affixes, rest @ ..] = cursor else {
        return Err(BlockError::Truncated);
    };
    if *version != FORMAT_VERSION {
        return Err(BlockError::Version(*version));
    }
    let (terms, affixes) = (usize::from(*terms), usize::from(*affixes));
    *cursor = rest;
    let table = u32::try_from(varint::read(cursor)?)
        .map_err(|_| BlockError::Invalid("symbol table number"))?;
    if terms == 0 {
        return Err(BlockError::Invalid("number of terms"));
    }
    Ok(Start {
        table,
        terms,
        affixes,
    })
}

impl<'a> View<'a> {
    /// Looks at a block. Heads and terms are checked as they are read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, BlockError> {
        let mut cursor = bytes;
        let start = read_start(&mut cursor)?;
        let affixes = (0..start.affixes).map(|_| read_field(&mut cursor));
        let affixes = affixes.collect::<Result<Vec<_>, _>>()?;
        let (indexes, heads) = cursor
            .split_at_checked(start.terms)
            .ok_or(BlockError::Truncated)?;
        if indexes
            .iter()
            .any(|&affix| usize::from(affix) >= affixes.len())
        {
            return Err(BlockError::Invalid("affix number"));
        }
        Ok(View {
            affixes,
            indexes,
            heads,
        })
    }

    /// Number of terms; at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.indexes.len()
    }

    /// Where the rest of each term is among the rests, and the rests.
    fn places(&self) -> Result<(Box<[Place]>, &'a [u8]), BlockError> {
        let mut cursor = self.heads;
        let mut terms = Vec::with_capacity(self.len());
        let mut end = 0;
        for &affix in self.indexes {
            let (length, raw) = read_head(&mut cursor)?;
            let start = end;
            end += length as u32;
            terms.push(Place {
                start,
                end,
                affix,
                raw,
            });
        }
        if cursor.len() < end as usize {
            return Err(BlockError::Truncated);
        }
        Ok((terms.into_boxed_slice(), cursor))
    }

    /// Appends the first byte of each encoded term, which tells its kind. `symbols` must be the tables of number
    /// [`table_of`].
    pub fn kinds(&self, symbols: &Symbols, out: &mut Vec<u8>) -> Result<(), BlockError> {
        let (mut affix, mut kinds) = (Vec::new(), Vec::with_capacity(self.affixes.len()));
        for &(stored, raw) in &self.affixes {
            affix.clear();
            symbols.expand(Table::Iri, stored, raw, &mut affix)?;
            let kind = affix.first().ok_or(BlockError::Invalid("kind of term"))?;
            kinds.push(*kind);
        }
        out.extend(self.indexes.iter().map(|&affix| kinds[usize::from(affix)]));
        Ok(())
    }

    /// Appends the encoded terms at these indexes, which ascend, each of them UTF-8, and where each ends. `symbols`
    /// must be the tables of number [`table_of`].
    pub fn append(
        &self,
        indexes: impl Iterator<Item = usize>,
        symbols: &Symbols,
        out: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Result<(), BlockError> {
        let (places, rests) = self.places()?;
        for index in indexes {
            let place = places.get(index).ok_or(BlockError::NoSuchTerm(index))?;
            let (affix, raw) = self.affixes[usize::from(place.affix)];
            let start = out.len();
            symbols.expand(Table::Iri, affix, raw, out)?;
            let table = table_for(&out[start..]);
            let rest = &rests[place.start as usize..place.end as usize];
            symbols.expand(table, rest, place.raw, out)?;
            check_text(&out[start..])?;
            ends.push(out.len());
        }
        Ok(())
    }
}

fn check_text(bytes: &[u8]) -> Result<(), BlockError> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(BlockError::Invalid("text (not UTF-8)")),
    }
}

impl Block {
    /// Opens a block. `symbols` must be the tables of number [`table_of`].
    pub fn open(bytes: &[u8], symbols: &Symbols) -> Result<Self, BlockError> {
        Self::of_view(&View::new(bytes)?, symbols)
    }

    /// Opens a block that has been looked at. `symbols` must be the tables of number [`table_of`].
    pub fn of_view(view: &View<'_>, symbols: &Symbols) -> Result<Self, BlockError> {
        let mut affixes = Vec::new();
        let mut affix_ends = Vec::with_capacity(view.affixes.len());
        for &(stored, raw) in &view.affixes {
            symbols.expand(Table::Iri, stored, raw, &mut affixes)?;
            affix_ends.push(affixes.len() as u32);
        }
        let (terms, rests) = view.places()?;
        Ok(Block {
            bytes: rests.into(),
            affixes: affixes.into_boxed_slice(),
            affix_ends: affix_ends.into_boxed_slice(),
            terms,
        })
    }

    /// Number of terms; at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Bytes of memory that the block takes.
    pub fn memory(&self) -> usize {
        self.bytes.len()
            + self.affixes.len()
            + size_of_val(&*self.affix_ends)
            + size_of_val(&*self.terms)
    }

    fn affix(&self, number: u8) -> &[u8] {
        let number = usize::from(number);
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.affix_ends[before]);
        &self.affixes[start as usize..self.affix_ends[number] as usize]
    }

    /// The indexes of the terms that have the affix of the one at `index`, itself among them.
    pub fn alike(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let affix = self.terms.get(index).map(|place| place.affix);
        let has_it = move |place: &Place| Some(place.affix) == affix;
        let all = self.terms.iter().enumerate();
        all.filter_map(move |(index, place)| has_it(place).then_some(index))
    }

    /// What the block stores of the term at `index` behind its affix.
    pub fn compressed(&self, index: usize) -> Result<Compressed<'_>, BlockError> {
        let place = self.terms.get(index).ok_or(BlockError::NoSuchTerm(index))?;
        let bytes = &self.bytes[place.start as usize..place.end as usize];
        let raw = place.raw;
        Ok(Compressed { bytes, raw })
    }

    /// The encoded term at `index`. `symbols` must be those the block was opened with.
    pub fn get(&self, index: usize, symbols: &Symbols) -> Result<String, BlockError> {
        let mut text = Vec::new();
        self.append(index, symbols, &mut text)?;
        String::from_utf8(text).map_err(|_| BlockError::Invalid("text (not UTF-8)"))
    }

    /// Appends the encoded term at `index`, which is UTF-8. After an error the appended bytes may be anything.
    pub fn append(
        &self,
        index: usize,
        symbols: &Symbols,
        out: &mut Vec<u8>,
    ) -> Result<(), BlockError> {
        let place = self.terms.get(index).ok_or(BlockError::NoSuchTerm(index))?;
        let affix = self.affix(place.affix);
        let rest = &self.bytes[place.start as usize..place.end as usize];
        let start = out.len();
        out.extend_from_slice(affix);
        symbols.expand(table_for(affix), rest, place.raw, out)?;
        check_text(&out[start..])
    }
}

/// The number that stands before a field or in the column of heads.
fn head(length: usize, raw: bool) -> u64 {
    (length as u64) << 1 | u64::from(raw)
}

/// Length and raw flag.
fn read_head(cursor: &mut &[u8]) -> Result<(usize, bool), BlockError> {
    let head = varint::read(cursor)?;
    let length = usize::try_from(head >> 1)
        .ok()
        .filter(|length| *length <= MAX_FIELD)
        .ok_or(BlockError::Invalid("length"))?;
    Ok((length, head & 1 == 1))
}

fn read_field<'a>(cursor: &mut &'a [u8]) -> Result<(&'a [u8], bool), BlockError> {
    let (length, raw) = read_head(cursor)?;
    let (bytes, rest) = cursor
        .split_at_checked(length)
        .ok_or(BlockError::Truncated)?;
    *cursor = rest;
    Ok((bytes, raw))
}

#[cfg(test)]
mod tests;
