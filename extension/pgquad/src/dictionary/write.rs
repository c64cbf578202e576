//! New terms.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use pgquad_term::block::{compress, BlockBuilder, Compressed};
use pgquad_term::{encoded, Term, TermBuf, TermId};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::extents::extent_of;
use super::fresh;
use super::relation::{Inserter, Relation};
use super::state::{self, BuildHash, State, ID_BYTES};
use super::symbol_tables::Numbered;
use super::tables::Tables;
use super::{lock, term_ids};
use crate::pg::error::raise_detail;
use pgquad_term::encoded::MAX_TERM_BYTES;

/// Largest block: with it a row of `quad.terms` fills a page exactly.
pub const BLOCK_BYTES: usize = 8124;

/// So many locks on single terms a transaction takes at most; then it locks all terms that do not exist yet.
const MAX_TERM_LOCKS: usize = 256;

/// A block is filled up with one of so many terms that come next.
pub const LOOK_AHEAD: usize = 16;

/// A term that is not inlined, with its hash.
pub struct Encoded {
    /// The encoded form.
    pub text: String,
    /// Its hash.
    pub hash: u128,
}

impl Encoded {
    /// Encodes a term; an error when it is too long for the dictionary.
    pub fn new(term: &Term<'_>) -> Self {
        let mut text = String::with_capacity(encoded::encoded_len(term));
        encoded::encode(term, &mut text);
        if text.len() > MAX_TERM_BYTES {
            too_long(&text);
        }
        let hash = pgquad_term::encoded_hash(&text);
        Encoded { text, hash }
    }
}

/// Whether a term is too long for the dictionary, so that it cannot be in it.
pub fn is_too_long(term: &Term<'_>) -> bool {
    encoded::encoded_len(term) > MAX_TERM_BYTES
}

fn too_long(text: &str) -> ! {
    let start: String = text
        .chars()
        .filter(|char| !char.is_control())
        .skip(1)
        .take(60)
        .collect();
    raise_detail(
        PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!(
            "term of {} bytes is too long for the dictionary",
            text.len()
        ),
        format!("The limit is {MAX_TERM_BYTES} bytes. The term begins with \"{start}\"."),
    )
}

/// Whether the transaction may write.
pub fn is_writable() -> bool {
    // SAFETY: the functions only look at the state of the transaction.
    unsafe { !(pg_sys::XactReadOnly || pg_sys::RecoveryInProgress() || pg_sys::IsInParallelMode()) }
}

/// Raises an error where the transaction may not write.
pub fn check_writable() {
    // SAFETY: the functions only look at the state of the transaction.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(c"adding terms to the dictionary".as_ptr());
        pg_sys::PreventCommandDuringRecovery(c"adding terms to the dictionary".as_ptr());
        pg_sys::PreventCommandIfParallelMode(c"adding terms to the dictionary".as_ptr());
    }
}

/// Gives ids to terms that were not found in the dictionary, in the order they are given in; no two of them are equal.
pub fn add(state: &mut State, terms: &[(u128, &str)]) -> Vec<TermId> {
    check_writable();
    state::will_write();
    lock_terms(state, terms);

    // Whoever added one of the terms since we looked has finished now.
    let hashes: Vec<u128> = terms.iter().map(|(hash, _)| *hash).collect();
    let order = term_ids::probe_order(&hashes);
    let hashes: Vec<u128> = order.iter().map(|&index| hashes[index]).collect();
    let mut ids: Vec<Option<TermId>> = vec![None; terms.len()];
    for (index, found) in order
        .iter()
        .zip(term_ids::probe(&state.layout.tables, &hashes))
    {
        ids[*index] = found.or_else(|| {
            let (hash, text) = terms[*index];
            let id = fresh::find(hash)?;
            // Its text may not be in a table either.
            let term = TermBuf::from_encoded(text.to_owned());
            if let (Some(term), Some(number)) = (term, id.dictionary_number()) {
                let bytes = state::term_bytes(&term);
                state.terms.put(number, term, bytes);
            }
            Some(id)
        });
    }

    let new: Vec<usize> = (0..terms.len())
        .filter(|&index| ids[index].is_none())
        .collect();
    state.added += new.len() as u64;
    let symbols = state.symbols.newest(&state.layout.tables);
    let mut packer = Packer::new(symbols);
    let numbers = state.numbers.take(&state.layout.tables, new.len());
    for (&index, number) in new.iter().zip(numbers.into_iter().flatten()) {
        packer.push(number, terms[index].1);
        ids[index] = Some(id_of(state, terms[index].1, number));
    }
    packer.end_block();
    packer.write(&state.layout.tables);
    term_ids::insert(
        &state.layout.tables,
        order
            .iter()
            .filter(|index| new.binary_search(index).is_ok())
            .map(|&index| {
                (
                    terms[index].0,
                    ids[index].expect("every new term has got an id"),
                )
            }),
        None,
    );

    let ids: Vec<TermId> = ids
        .into_iter()
        .map(|id| id.expect("every term has an id now"))
        .collect();
    for ((hash, _), id) in terms.iter().zip(&ids) {
        state.ids.put(*hash, *id, ID_BYTES);
    }
    ids
}

/// The id of the term with this encoding that has got `number`.
pub fn id_of(state: &mut State, text: &str, number: u64) -> TermId {
    let term = encoded::decode(text).expect("what was encoded can be decoded");
    let language = match &term {
        Term::Literal(literal) => match literal.kind {
            pgquad_term::LiteralKind::Language(tag) => {
                state.languages.find_or_add(&state.layout.tables, tag)
            }
            _ => None,
        },
        _ => None,
    };
    TermId::in_dictionary(&term, number, language)
}

/// Makes sure that no other transaction adds one of the terms before this one ends.
fn lock_terms(state: &State, terms: &[(u128, &str)]) {
    let oid = state.layout.tables.term_ids;
    let all = pg_sys::ShareRowExclusiveLock;
    if terms.len() <= MAX_TERM_LOCKS {
        let table = Relation::open(oid, pg_sys::RowExclusiveLock);
        // SAFETY: the relation is open.
        if unsafe { pg_sys::CheckRelationLockedByMe(table.as_ptr(), all as pg_sys::LOCKMODE, true) }
        {
            return;
        }
        if state::count_term_locks(terms.len()) <= MAX_TERM_LOCKS {
            let mut hashes: Vec<u128> = terms.iter().map(|(hash, _)| *hash).collect();
            // One order for all transactions keeps them from waiting for each other in a circle.
            hashes.sort_unstable();
            hashes.into_iter().for_each(lock::term);
            return;
        }
    }
    lock_all_terms(&state.layout.tables);
}

/// The compressed form of a term.
enum Stored<'a> {
    Given(Compressed<'a>),
    /// Where it is among those that were made here, and whether it is the text itself.
    Made(Range<usize>, bool),
}

/// Packs terms with ascending numbers into blocks.
pub struct Packer {
    symbols: Numbered,
    builder: BlockBuilder,
    first: u64,
    blocks: Vec<(u64, Vec<u8>)>,
}

impl Packer {
    /// A packer that compresses with these symbols.
    pub fn new(symbols: Numbered) -> Self {
        let builder = BlockBuilder::new(symbols.number, BLOCK_BYTES);
        Packer {
            symbols,
            builder,
            first: 0,
            blocks: Vec::new(),
        }
    }

    /// Adds a term; its number is larger than that of the term before.
    pub fn push(&mut self, number: u64, encoded: &str) {
        self.push_one_of(number, [(encoded, None)].into_iter());
    }

    /// The symbols that terms are compressed with.
    pub fn symbols(&self) -> &Numbered {
        &self.symbols
    }

    /// Adds the first of the terms or, when it does not fit into the block begun, one of the others
    /// that does. Returns which. Terms may come compressed with [`Packer::symbols`] already.
    pub fn push_one_of<'a>(
        &mut self,
        number: u64,
        mut terms: impl Iterator<Item = (&'a str, Option<Compressed<'a>>)>,
    ) -> usize {
        let first = terms.next().expect("at least one term");
        let follows = number == self.first + self.builder.len() as u64;
        if follows && extent_of(number) == extent_of(self.first) {
            if self.add(first) {
                return 0;
            }
            let room = self.builder.room();
            if room > BLOCK_BYTES / 50 {
                // Text is rarely compressed to less than a third; namespaces cost nothing.
                for (index, term) in terms.enumerate() {
                    if term.0.len() <= 3 * room + 64 && self.add(term) {
                        return index + 1;
                    }
                }
            }
        }
        self.end_block();
        self.first = number;
        self.add(first);
        0
    }

    /// Adds terms with ascending numbers, each with what stands beside it, about in their order. `each` gets to know
    /// their numbers. Terms may come compressed with [`Packer::symbols`] already; the others are compressed once,
    /// however many blocks they are tried for.
    pub fn push_all<'a, T>(
        &mut self,
        numbers: impl Iterator<Item = u64>,
        terms: impl Iterator<Item = (T, &'a str, Option<Compressed<'a>>)>,
        mut each: impl FnMut(T, u64),
    ) {
        let mut stored = Vec::new();
        let mut made = |text: &str| {
            let start = stored.len();
            let raw = compress(&self.symbols.symbols, text, &mut stored);
            Stored::Made(start..stored.len(), raw)
        };
        let mut terms: VecDeque<(T, &str, Stored<'a>)> = terms
            .map(|(beside, text, compressed)| {
                (
                    beside,
                    text,
                    compressed.map_or_else(|| made(text), Stored::Given),
                )
            })
            .collect();
        for number in numbers {
            let next = terms.iter().take(LOOK_AHEAD).map(|(_, text, compressed)| {
                let compressed = match compressed {
                    Stored::Given(compressed) => *compressed,
                    Stored::Made(place, raw) => {
                        let (bytes, raw) = (&stored[place.clone()], *raw);
                        Compressed { bytes, raw }
                    }
                };
                (*text, Some(compressed))
            });
            let chosen = self.push_one_of(number, next);
            let (beside, ..) = terms.remove(chosen).expect("as many terms as numbers");
            each(beside, number);
        }
    }

    /// Adds a block as it lies on disk, whose terms have the numbers from `first` on.
    pub fn push_block(&mut self, first: u64, bytes: &[u8]) {
        self.end_block();
        self.blocks.push((first, bytes.to_vec()));
    }

    /// Adds a term to the block begun, if it fits.
    fn add(&mut self, (encoded, compressed): (&str, Option<Compressed<'_>>)) -> bool {
        let symbols = &self.symbols.symbols;
        match compressed {
            Some(compressed) => self.builder.push_compressed(symbols, encoded, compressed),
            None => self.builder.push(symbols, encoded),
        }
    }

    /// Ends the block begun, so that [`Packer::write`] writes it too.
    pub fn end_block(&mut self) {
        if !self.builder.is_empty() {
            self.blocks.push((self.first, self.builder.finish()));
        }
    }

    /// Writes the finished blocks to `quad.terms`.
    pub fn write(&mut self, tables: &Tables) {
        if self.blocks.is_empty() {
            return;
        }
        let rows = Inserter::new(Relation::open(tables.terms, pg_sys::RowExclusiveLock));
        for (first, block) in self.blocks.drain(..) {
            check_for_interrupts!();
            let numbers =
                [extent_of(first), first].map(|number| pg_sys::Datum::from(number as i64));
            rows.insert_bytes(&numbers, &block);
        }
    }
}

/// Makes sure that no other transaction adds any term before this one ends.
pub fn lock_all_terms(tables: &Tables) {
    Relation::open(tables.term_ids, pg_sys::ShareRowExclusiveLock);
}

/// Map by term hash.
pub type HashMapByHash<V> = HashMap<u128, V, BuildHash>;
