//! Blocks of terms that this backend has read.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pgquad_term::block::{Block, BlockError, Symbols};
use pgquad_term::TermBuf;

/// A block in memory.
pub struct CachedBlock {
    first: u64,
    block: Block,
    symbols: Arc<Symbols>,
}

impl CachedBlock {
    /// The block whose first term has the number `first`.
    pub fn new(first: u64, block: Block, symbols: Arc<Symbols>) -> Self {
        CachedBlock {
            first,
            block,
            symbols,
        }
    }

    /// Whether the block holds the term with this number.
    pub fn holds(&self, number: u64) -> bool {
        (self.first..self.first + self.block.len() as u64).contains(&number)
    }

    /// Appends the encoded term with this number.
    pub fn append(&self, number: u64, out: &mut Vec<u8>) -> Result<(), BlockError> {
        let index = (number - self.first) as usize;
        self.block.append(index, &self.symbols, out)
    }

    /// The encoded term with this number.
    pub fn text(&self, number: u64) -> Result<String, BlockError> {
        self.block
            .get((number - self.first) as usize, &self.symbols)
    }

    /// The term with this number.
    pub fn term(&self, number: u64) -> Result<TermBuf, BlockError> {
        let term = TermBuf::from_encoded(self.text(number)?);
        term.ok_or(BlockError::Invalid("term"))
    }

    /// The number of the first term.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The numbers of the terms that are of the same kind as the one with this number, and have the same datatype, it
    /// among them.
    pub fn alike(&self, number: u64) -> impl Iterator<Item = u64> + '_ {
        let indexes = self.block.alike((number - self.first) as usize);
        indexes.map(|index| self.first + index as u64)
    }
}

/// Blocks by the number of their first term, in two generations as in [`pgquad_term::cache`].
#[derive(Default)]
pub struct BlockCache {
    last: Option<Rc<CachedBlock>>,
    young: BTreeMap<u64, Rc<CachedBlock>>,
    old: BTreeMap<u64, Rc<CachedBlock>>,
    young_bytes: usize,
    limit: usize,
}

impl BlockCache {
    /// Changes the limit in bytes; what is too much goes with the coming insertions.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The block that holds the term with this number.
    pub fn get(&mut self, number: u64) -> Option<Rc<CachedBlock>> {
        if let Some(block) = self.last.as_ref().filter(|block| block.holds(number)) {
            return Some(block.clone());
        }
        let find = |blocks: &BTreeMap<u64, Rc<CachedBlock>>| {
            let (_, block) = blocks.range(..=number).next_back()?;
            block.holds(number).then(|| block.clone())
        };
        let block = match find(&self.young) {
            Some(block) => block,
            None => {
                let block = find(&self.old)?;
                self.old.remove(&block.first);
                self.put(block.clone());
                block
            }
        };
        self.last = Some(block.clone());
        Some(block)
    }

    /// Puts in a block.
    pub fn put(&mut self, block: Rc<CachedBlock>) {
        let bytes = block.block.memory() + 128;
        if self.young_bytes + bytes > self.limit / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(block.first, block);
    }
}
