//! Terms that are collected for the shards of one node, packed in blocks as they lie on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgquad_cluster::dictionary::{Packed, Request};
use pgquad_cluster::Damaged;
use pgquad_term::block::{Block, BlockBuilder, Compressed, Symbols};
use pgquad_term::encoded_hash;

use super::super::symbol_tables::Numbered;
use super::super::write::BLOCK_BYTES;
use crate::cluster::damaged;

/// A term that is to get its id, with its text or a reference to that.
pub struct New<T> {
    /// The hash of its encoded form.
    pub hash: u128,
    /// Its encoded form.
    pub text: T,
    /// The number of its language; 0 where it has none.
    pub language: u16,
    /// What quads have in its place until it has an id.
    pub ticket: u64,
}

impl New<&str> {
    /// The term with a text of its own.
    pub fn owned(&self) -> New<String> {
        New {
            hash: self.hash,
            text: self.text.to_owned(),
            language: self.language,
            ticket: self.ticket,
        }
    }
}

impl New<String> {
    /// The term with a reference to its text.
    pub fn borrowed(&self) -> New<&str> {
        New {
            hash: self.hash,
            text: &self.text,
            language: self.language,
            ticket: self.ticket,
        }
    }
}

/// Terms of one shard.
struct OfShard {
    builder: BlockBuilder,
    /// The builder's symbol tables.
    symbols: Numbered,
    /// Blocks, with the symbols that they are compressed with: another node may not have them (yet).
    blocks: Vec<(Arc<Symbols>, Vec<u8>)>,
    tickets: Vec<u64>,
    languages: Vec<u16>,
}

impl OfShard {
    fn new(symbols: &Numbered) -> Self {
        OfShard {
            builder: BlockBuilder::new(symbols.number, BLOCK_BYTES),
            symbols: symbols.clone(),
            blocks: Vec::new(),
            tickets: Vec::new(),
            languages: Vec::new(),
        }
    }

    /// Adds a term to the block begun, if it fits.
    fn add(&mut self, text: &str, compressed: Option<Compressed<'_>>) -> bool {
        let (builder, symbols) = (&mut self.builder, &self.symbols.symbols);
        match compressed {
            Some(compressed) => builder.push_compressed(symbols, text, compressed),
            None => builder.push(symbols, text),
        }
    }

    /// Ends the block begun.
    fn end_block(&mut self) {
        if !self.builder.is_empty() {
            let block = self.builder.finish();
            self.blocks.push((self.symbols.symbols.clone(), block));
        }
    }
}

/// Bytes that are kept of each term beside its compressed form.
pub const BYTES_BESIDE: usize = size_of::<u64>() + size_of::<u16>();

/// Terms by Citus' number of their shard.
#[derive(Default)]
pub struct Collected {
    shards: BTreeMap<u64, OfShard>,
    bytes: usize,
    first: Option<u64>,
}

impl Collected {
    /// About how many bytes they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The least ticket.
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// Adds a term, which may come compressed with these symbols.
    pub fn push(
        &mut self,
        shard: u64,
        new: New<&str>,
        symbols: &Numbered,
        compressed: Option<Compressed<'_>>,
    ) {
        let of_shard = self.shards.entry(shard);
        let of_shard = of_shard.or_insert_with(|| OfShard::new(symbols));
        if of_shard.symbols.number != symbols.number {
            of_shard.end_block();
            of_shard.symbols = symbols.clone();
            of_shard.builder = BlockBuilder::new(symbols.number, BLOCK_BYTES);
        }
        let mut before = of_shard.builder.size();
        if !of_shard.add(new.text, compressed) {
            of_shard.end_block();
            before = of_shard.builder.size();
            let fits = of_shard.add(new.text, compressed);
            debug_assert!(fits, "an empty block takes any term");
        }
        self.bytes += of_shard.builder.size() - before;
        self.first.get_or_insert(new.ticket);
        of_shard.tickets.push(new.ticket);
        of_shard.languages.push(new.language);
        self.bytes += BYTES_BESIDE;
    }

    /// Ends the blocks begun.
    pub fn end_blocks(&mut self) {
        self.shards.values_mut().for_each(OfShard::end_block);
    }

    /// The shards.
    pub fn shards(&self) -> impl Iterator<Item = u64> + '_ {
        self.shards.keys().copied()
    }

    /// The message that asks for the ids of all terms, whose blocks have ended. The answer has them in the order of
    /// [`Self::tickets`]. `hash` gives the hash of a term by its ticket.
    pub fn message(&self, hash: impl Fn(u64) -> u128) -> Vec<u8> {
        let packed = self.shards.iter().map(|(&shard, of_shard)| Packed {
            shard,
            hashes: of_shard.tickets.iter().map(|&n| hash(n)).collect(),
            languages: of_shard.languages.clone(),
            blocks: of_shard
                .blocks
                .iter()
                .map(|(_, block)| &block[..])
                .collect(),
        });
        Request::EncodePacked(packed.collect()).encode()
    }

    /// The tickets of the terms.
    pub fn tickets(&self) -> Vec<u64> {
        let tickets = self.shards.values().map(|of_shard| &of_shard.tickets);
        tickets.flatten().copied().collect()
    }

    /// Calls `each` with the terms, whose blocks have ended, in the same order.
    pub fn unpack(&self, mut each: impl FnMut(New<String>)) {
        for of_shard in self.shards.values() {
            let mut beside = of_shard.tickets.iter().zip(&of_shard.languages);
            for (symbols, bytes) in &of_shard.blocks {
                let block = Block::open(bytes, symbols).unwrap_or_else(|_| damaged(Damaged));
                for (index, (&ticket, &language)) in (0..block.len()).zip(&mut beside) {
                    let text = block.get(index, symbols);
                    let text = text.unwrap_or_else(|_| damaged(Damaged));
                    each(New {
                        hash: encoded_hash(&text),
                        text,
                        language,
                        ticket,
                    });
                }
            }
        }
    }
}
