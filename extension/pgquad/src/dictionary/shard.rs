//! New terms in a shard of a distributed dictionary.

use std::ops::Range;

use pgquad_cluster::Damaged;
use pgquad_term::block::Compressed;
use pgquad_term::{encoded, TermId};
use pgrx::pg_sys;

use super::extents;
use super::state::with_state;
use super::symbol_tables::Numbered;
use super::tables::Tables;
use super::term_ids;
use super::write::Packer;
use crate::cluster::damaged;
use pgquad_term::encoded::MAX_TERM_BYTES;

/// A term that is to have an id.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Its encoded form.
    pub text: &'a str,
    /// The number of its language; 0 where it has none.
    pub language: u16,
    /// Its compressed form with the number of the symbol tables, where it comes with one.
    pub compressed: Option<(u32, Compressed<'a>)>,
}

/// A block that terms come in, as it lies on disk.
pub struct Packed<'a> {
    /// The block.
    pub bytes: &'a [u8],
    /// The places of its terms among all.
    pub terms: Range<usize>,
}

/// Gives ids to the terms of a shard that have none in `ids`. The caller holds the shard's lock, and has looked the
/// terms up since: it has their hashes with their order for probes. A block whose terms are all new is stored as it is.
/// The extents that are `own` belong to the shard. `horizon`: [`super::horizon::without_loads`].
pub fn add(
    tables: &Tables,
    (terms, blocks): (&[Wanted<'_>], &[Packed<'_>]),
    (hashes, order): (&[u128], &[usize]),
    ids: &mut [Option<TermId>],
    own: impl Fn(u64) -> bool,
    horizon: pg_sys::TransactionId,
) {
    // Equal terms, which the order has side by side, get one id: that of the first.
    let mut is_new: Vec<bool> = ids.iter().map(Option::is_none).collect();
    for pair in order.windows(2) {
        is_new[pair[1]] &= hashes[pair[0]] != hashes[pair[1]];
    }
    let is_whole = |block: &&Packed<'_>| is_new[block.terms.clone()].iter().all(|&new| new);
    let whole: Vec<&Packed<'_>> = blocks.iter().filter(is_whole).collect();
    let mut packed_anew = is_new.clone();
    for block in &whole {
        packed_anew[block.terms.clone()].fill(false);
    }
    let packed_anew: Vec<usize> = places(&packed_anew).collect();

    let lengths: Vec<u64> = whole.iter().map(|block| block.terms.len() as u64).collect();
    let taken = extents::take_runs(tables, &lengths, packed_anew.len() as u64, own);
    let new = places(&is_new).map(|n| &terms[n]);
    let mut packer = Packer::new(symbols_for(tables, new));
    for (block, first) in whole.iter().zip(taken.runs) {
        packer.push_block(first, block.bytes);
        for (n, number) in block.terms.clone().zip(first..) {
            ids[n] = Some(id_of(&terms[n], number));
        }
    }
    let symbols = packer.symbols().number;
    let packed = packed_anew.iter().map(|&n| {
        let compressed = terms[n].compressed.filter(|(number, _)| *number == symbols);
        (
            n,
            terms[n].text,
            compressed.map(|(_, compressed)| compressed),
        )
    });
    packer.push_all(taken.single.into_iter().flatten(), packed, |n, number| {
        ids[n] = Some(id_of(&terms[n], number));
    });
    packer.end_block();
    packer.write(tables);
    let entries = order.iter().filter(|&&n| is_new[n]);
    let entries = entries.filter_map(|&n| Some((hashes[n], ids[n]?)));
    term_ids::insert(tables, entries, Some(horizon));

    for pair in order.windows(2) {
        if ids[pair[1]].is_none() {
            ids[pair[1]] = ids[pair[0]];
        }
    }
}

/// The places that are marked.
fn places(marks: &[bool]) -> impl Iterator<Item = usize> + '_ {
    (0..marks.len()).filter(|&n| marks[n])
}

/// The symbols to store terms with: those that the first one comes compressed with, or the newest.
fn symbols_for<'a>(tables: &Tables, mut terms: impl Iterator<Item = &'a Wanted<'a>>) -> Numbered {
    let given = terms.next().and_then(|term| term.compressed);
    with_state(|state| {
        let given = given.and_then(|(number, _)| {
            let symbols = state.symbols.find(tables, number)?;
            Some(Numbered { number, symbols })
        });
        given.unwrap_or_else(|| state.symbols.newest(tables))
    })
}

/// The id of the term that has got `number`.
fn id_of(term: &Wanted<'_>, number: u64) -> TermId {
    let decoded = encoded::decode(term.text).filter(|_| term.text.len() <= MAX_TERM_BYTES);
    let decoded = decoded.unwrap_or_else(|| damaged(Damaged));
    let language = (term.language != 0).then_some(term.language);
    TermId::in_dictionary(&decoded, number, language)
}
