//! Symbol tables for text compression: FSST (Boncz, Neumann, Leis, VLDB 2020) with one table for IRIs and one for
//! literals.
//!
//! A code byte stands for a symbol of one to eight bytes; code 255 is followed by one byte that stands for itself.

use std::fmt;
use std::sync::OnceLock;

use fsst::{Compressor, Symbol};

use super::affix::{split, table_for, Table};
use super::builtin;
use super::error::BlockError;

const ESCAPE: u8 = 255;
const FORMAT_VERSION: u8 = 1;
const MAX_SYMBOL_BYTES: usize = 8;

/// Two symbol tables: one for IRIs, one for literals.
pub struct Symbols {
    iri: SymbolTable,
    literal: SymbolTable,
}

/// Serialized symbol tables that do not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolError;

impl fmt::Display for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "symbol table of the dictionary is damaged or of an unknown format version"
        )
    }
}

impl std::error::Error for SymbolError {}

struct SymbolTable {
    /// Symbols, padded with zeros, and their lengths by code; the length of codes that stand for nothing is 0.
    by_code: Box<[([u8; MAX_SYMBOL_BYTES], u8); 256]>,
    /// Codes that stand for something: the first ones.
    count: usize,
    /// Built at the first compression: reading does not need it.
    compressor: OnceLock<Compressor>,
}

impl SymbolTable {
    fn new(symbols: &[([u8; MAX_SYMBOL_BYTES], u8)]) -> Result<Self, SymbolError> {
        // The order that FSST's compressor relies on: lengths 2 to 8 ascending, then 1.
        let rank = |(_, length): &(_, u8)| if *length == 1 { 9 } else { *length };
        let is_length = |length: u8| (1..=MAX_SYMBOL_BYTES).contains(&usize::from(length));
        let valid = symbols.len() < usize::from(ESCAPE)
            && symbols.iter().all(|(_, length)| is_length(*length))
            && symbols.is_sorted_by_key(rank);
        if !valid {
            return Err(SymbolError);
        }
        let mut by_code = Box::new([([0; MAX_SYMBOL_BYTES], 0); 256]);
        by_code[..symbols.len()].copy_from_slice(symbols);
        Ok(SymbolTable {
            by_code,
            count: symbols.len(),
            compressor: OnceLock::new(),
        })
    }

    fn symbols(&self) -> &[([u8; MAX_SYMBOL_BYTES], u8)] {
        &self.by_code[..self.count]
    }

    fn train(sample: &[Vec<u8>]) -> Self {
        let lines: Vec<&[u8]> = sample.iter().map(Vec::as_slice).collect();
        let compressor = Compressor::train(&lines);
        // Code 254 stays unused, so that a table always has room for its count in one byte.
        let keep = compressor.n_symbols().min(usize::from(ESCAPE) - 1);
        let lengths = &compressor.symbol_lengths()[..keep];
        let symbols: Vec<_> = compressor.symbol_table()[..keep]
            .iter()
            .zip(lengths)
            .map(|(symbol, length)| (symbol.to_u64().to_le_bytes(), *length))
            .collect();
        SymbolTable::new(&symbols).expect("a trained table is in the order its own crate asks for")
    }

    fn compressor(&self) -> &Compressor {
        self.compressor.get_or_init(|| {
            let symbols = self.symbols().iter();
            let (symbols, lengths): (Vec<Symbol>, Vec<u8>) = symbols
                .map(|(symbol, length)| (Symbol::from_slice(symbol), *length))
                .unzip();
            Compressor::rebuild_from(symbols, &lengths)
        })
    }

    fn expand(&self, codes: &[u8], out: &mut Vec<u8>) -> Result<(), BlockError> {
        let start = out.len();
        out.resize(start + MAX_SYMBOL_BYTES * codes.len(), 0);
        let mut end = start;
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            if code == ESCAPE {
                out[end] = *codes.next().ok_or(BlockError::Truncated)?;
                end += 1;
                continue;
            }
            let (symbol, length) = &self.by_code[usize::from(code)];
            if *length == 0 {
                return Err(BlockError::Invalid("symbol"));
            }
            // All eight bytes at once, whose rest the next symbol covers: faster than a copy of varying length.
            out[end..end + MAX_SYMBOL_BYTES].copy_from_slice(symbol);
            end += usize::from(*length);
        }
        out.truncate(end);
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.count as u8);
        out.extend(self.symbols().iter().map(|(_, length)| *length));
        for (symbol, length) in self.symbols() {
            out.extend_from_slice(&symbol[..usize::from(*length)]);
        }
    }

    fn read(cursor: &mut &[u8]) -> Result<Self, SymbolError> {
        let (count, rest) = cursor.split_first().ok_or(SymbolError)?;
        let (lengths, mut rest) = rest
            .split_at_checked(usize::from(*count))
            .ok_or(SymbolError)?;
        let mut symbols = Vec::with_capacity(lengths.len());
        for length in lengths {
            let mut symbol = [0u8; MAX_SYMBOL_BYTES];
            let (bytes, after) = rest
                .split_at_checked(usize::from(*length))
                .ok_or(SymbolError)?;
            symbol
                .get_mut(..bytes.len())
                .ok_or(SymbolError)?
                .copy_from_slice(bytes);
            symbols.push((symbol, *length));
            rest = after;
        }
        *cursor = rest;
        SymbolTable::new(&symbols)
    }
}

impl Symbols {
    /// The tables that are used before any were trained; they never change, blocks on disk rely on them.
    pub fn built_in() -> Symbols {
        Symbols::from_bytes(builtin::TABLES).expect("the built-in tables are valid")
    }

    /// The serialized form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![FORMAT_VERSION];
        self.iri.write(&mut out);
        self.literal.write(&mut out);
        out
    }

    /// Reads the serialized form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SymbolError> {
        let [FORMAT_VERSION, rest @ ..] = bytes else {
            return Err(SymbolError);
        };
        let mut cursor = rest;
        let iri = SymbolTable::read(&mut cursor)?;
        let literal = SymbolTable::read(&mut cursor)?;
        if cursor.is_empty() {
            Ok(Symbols { iri, literal })
        } else {
            Err(SymbolError)
        }
    }

    fn table(&self, table: Table) -> &SymbolTable {
        match table {
            Table::Iri => &self.iri,
            Table::Literal => &self.literal,
        }
    }

    /// Appends `text` in its stored form to `out` and says whether that is the text itself (`true`) or FSST codes
    /// (`false`).
    ///
    /// Codes are used only where they are shorter and expand to the same text again.
    pub(super) fn compress(&self, table: Table, text: &[u8], out: &mut Vec<u8>) -> bool {
        let table = self.table(table);
        let codes = table.compressor().compress(text);
        if codes.len() < text.len() {
            let start = out.len();
            if table.expand(&codes, out).is_ok() && &out[start..] == text {
                out.truncate(start);
                out.extend_from_slice(&codes);
                return false;
            }
            out.truncate(start);
        }
        out.extend_from_slice(text);
        true
    }

    /// Appends the text whose stored form is `bytes`.
    pub(super) fn expand(
        &self,
        table: Table,
        bytes: &[u8],
        raw: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), BlockError> {
        if raw {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        self.table(table).expand(bytes, out)
    }
}

/// Collects sample text to train symbol tables from.
#[derive(Default)]
pub struct Sampler {
    iri: Vec<Vec<u8>>,
    literal: Vec<Vec<u8>>,
    iri_bytes: usize,
    literal_bytes: usize,
    iris: usize,
}

/// Bytes of sample text kept for each table, and of one term.
const SAMPLE_BYTES: usize = 1 << 19;
const SAMPLE_TEXT: usize = 512;

impl Sampler {
    /// Offers an encoded term; the sampler keeps what it needs.
    pub fn offer(&mut self, encoded: &str) {
        let (affix, rest) = split(encoded);
        let (lines, bytes) = match table_for(affix.as_bytes()) {
            Table::Iri => {
                self.iris += 1;
                // Affixes are stored once in a block: a few of them are enough.
                if self.iris % 64 == 1 && self.iri_bytes < SAMPLE_BYTES {
                    self.iri_bytes += affix.len();
                    self.iri.push(affix.as_bytes().to_vec());
                }
                (&mut self.iri, &mut self.iri_bytes)
            }
            Table::Literal => (&mut self.literal, &mut self.literal_bytes),
        };
        if *bytes < SAMPLE_BYTES {
            let text = &rest.as_bytes()[..rest.len().min(SAMPLE_TEXT)];
            *bytes += text.len();
            lines.push(text.to_vec());
        }
    }

    /// Bytes of text the sampler holds.
    pub fn bytes(&self) -> usize {
        self.iri_bytes + self.literal_bytes
    }

    /// Bytes that the sample takes when compressed with `symbols`.
    pub fn cost(&self, symbols: &Symbols) -> usize {
        let mut out = Vec::new();
        for (table, lines) in [(Table::Iri, &self.iri), (Table::Literal, &self.literal)] {
            for line in lines {
                symbols.compress(table, line, &mut out);
            }
        }
        out.len()
    }

    /// Trains tables from the sample.
    pub fn train(&self) -> Symbols {
        Symbols {
            iri: SymbolTable::train(&self.iri),
            literal: SymbolTable::train(&self.literal),
        }
    }
}
