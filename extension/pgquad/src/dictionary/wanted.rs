//! Terms of a shard that another node wants ids for: as text or, where they are many, in blocks as they lie on disk.

use std::ops::Range;

use pgquad_cluster::dictionary::{self, Part, Term};
use pgquad_cluster::Damaged;
use pgquad_term::block::{table_of, Block, BlockError, Compressed, View};
use pgquad_term::{encoded, encoded_hash, TermId};

use super::state::with_state;
use super::symbol_tables::Numbered;
use super::tables::Tables;
use super::texts::Texts;
use crate::cluster::damaged;

/// Terms of one shard.
pub struct Wanted<'a> {
    /// Citus' number of the shard of `quad.term_ids`.
    pub shard: u64,
    /// The hashes of the terms.
    pub hashes: Vec<u128>,
    /// What their encoded forms begin with.
    kinds: Vec<u8>,
    /// The numbers of their languages; 0 for those that have none.
    languages: Vec<u16>,
    form: Form<'a>,
}

enum Form<'a> {
    Texts(Vec<&'a str>),
    Blocks(Vec<Packed<'a>>),
}

/// A block that terms come in, as it lies on disk.
pub struct Packed<'a> {
    /// The block.
    pub bytes: &'a [u8],
    /// The places of its terms among all.
    pub terms: Range<usize>,
    symbols: Numbered,
}

fn refuse<T>(_: BlockError) -> T {
    damaged(Damaged)
}

/// Refuses what is no encoded term of the dictionary.
fn check(text: &str) {
    if text.len() > encoded::MAX_TERM_BYTES || encoded::decode(text).is_none() {
        damaged(Damaged);
    }
}

impl<'a> Wanted<'a> {
    /// Terms that come as text.
    pub fn of_texts(part: &Part<Term<'a>>) -> Self {
        let texts: Vec<&str> = part.items.iter().map(|term| term.text).collect();
        let kind = |text: &&str| {
            check(text);
            text.as_bytes()[0]
        };
        Self {
            shard: part.shard,
            hashes: texts.iter().map(|text| encoded_hash(text)).collect(),
            kinds: texts.iter().map(kind).collect(),
            languages: part.items.iter().map(|term| term.language).collect(),
            form: Form::Texts(texts),
        }
    }

    /// Terms that come in blocks. `None` where this node does not have their symbol tables (yet).
    ///
    /// Nearly all terms are new, and their blocks are stored as they are. So the node that asks is believed what their
    /// hashes are; only the first term of each block is hashed to see that they belong together.
    pub fn in_blocks(tables: &Tables, packed: dictionary::Packed<'a>) -> Option<Self> {
        let (mut blocks, mut kinds) = (Vec::with_capacity(packed.blocks.len()), Vec::new());
        let mut firsts = Texts::default();
        for (n, bytes) in packed.blocks.into_iter().enumerate() {
            let number = table_of(bytes).unwrap_or_else(refuse);
            let symbols = with_state(|state| state.symbols.find(tables, number))?;
            let start = kinds.len();
            let view = View::new(bytes).unwrap_or_else(refuse);
            let Texts { bytes: text, ends } = &mut firsts;
            // This looks at the places of all terms, too.
            view.append(0..1, &symbols, text, ends)
                .and_then(|()| view.kinds(&symbols, &mut kinds))
                .unwrap_or_else(refuse);
            if packed.hashes.get(start) != Some(&encoded_hash(firsts.get(n))) {
                damaged(Damaged);
            }
            blocks.push(Packed {
                bytes,
                terms: start..kinds.len(),
                symbols: Numbered { number, symbols },
            });
        }
        if kinds.len() != packed.hashes.len() || kinds.len() != packed.languages.len() {
            damaged(Damaged);
        }
        Some(Self {
            shard: packed.shard,
            hashes: packed.hashes,
            kinds,
            languages: packed.languages,
            form: Form::Blocks(blocks),
        })
    }

    /// The id of a term that has got `number`.
    pub fn id(&self, n: usize, number: u64) -> TermId {
        let language = self.languages[n];
        let language = (language != 0).then_some(language);
        TermId::of_kind(self.kinds[n], number, language).unwrap_or_else(|| damaged(Damaged))
    }

    /// The blocks that the terms come in; none where they come as text.
    pub fn blocks(&self) -> &[Packed<'a>] {
        match &self.form {
            Form::Texts(_) => &[],
            Form::Blocks(blocks) => blocks,
        }
    }

    /// The symbols that a term comes compressed with.
    pub fn symbols(&self, n: usize) -> Option<&Numbered> {
        self.block_of(n).map(|block| &self.blocks()[block].symbols)
    }

    fn block_of(&self, n: usize) -> Option<usize> {
        let before = |block: &Packed<'_>| block.terms.end <= n;
        let block = self.blocks().partition_point(before);
        (block < self.blocks().len()).then_some(block)
    }

    /// Opens some terms, whose places ascend.
    pub fn open(&self, places: &[usize]) -> Opened {
        let mut opened = Opened::default();
        match &self.form {
            Form::Texts(all) => places.iter().for_each(|&n| {
                opened.texts.bytes.extend_from_slice(all[n].as_bytes());
                opened.texts.ends.push(opened.texts.bytes.len());
            }),
            Form::Blocks(blocks) => opened.unpack(blocks, |n| self.block_of(n), places),
        }
        opened
    }
}

/// Terms with their texts.
#[derive(Default)]
pub struct Opened {
    texts: Texts,
    /// The blocks that they come in, with the numbers of their symbol tables.
    blocks: Vec<(u32, Block)>,
    /// Where each term is: its block, and the place in it. None where they come as text.
    places: Vec<(usize, usize)>,
}

impl Opened {
    fn unpack(
        &mut self,
        blocks: &[Packed<'_>],
        block_of: impl Fn(usize) -> Option<usize>,
        places: &[usize],
    ) {
        let mut rest = places;
        while let Some(block) = rest.first().and_then(|&n| block_of(n)) {
            let block = &blocks[block];
            let Numbered { number, symbols } = &block.symbols;
            let opened = Block::open(block.bytes, symbols).unwrap_or_else(refuse);
            let (here, later) = rest.split_at(rest.partition_point(|&n| n < block.terms.end));
            for n in here {
                let index = n - block.terms.start;
                let appended = opened.append(index, symbols, &mut self.texts.bytes);
                appended.unwrap_or_else(refuse);
                self.texts.ends.push(self.texts.bytes.len());
                check(self.texts.get(self.places.len()));
                self.places.push((self.blocks.len(), index));
            }
            self.blocks.push((*number, opened));
            rest = later;
        }
    }

    /// The text of the `i`th term, and its form compressed with the symbol tables of a number, where it comes with
    /// them.
    pub fn get(&self, i: usize, symbols: u32) -> (&str, Option<Compressed<'_>>) {
        let compressed = self.places.get(i).and_then(|&(block, index)| {
            let (number, block) = &self.blocks[block];
            (*number == symbols).then(|| block.compressed(index).ok())?
        });
        (self.texts.get(i), compressed)
    }
}
