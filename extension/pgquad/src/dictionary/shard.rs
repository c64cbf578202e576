//! New terms in a shard of a distributed dictionary.

use pgquad_cluster::Damaged;
use pgquad_term::block::Compressed;
use pgquad_term::{encoded, TermId};
use pgrx::pg_sys;

use super::extents;
use super::state::with_state;
use super::symbol_tables::Numbered;
use super::tables::Tables;
use super::term_ids;
use super::write::{HashMapByHash, Packer};
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

/// Gives ids to the terms of a shard that have none in `ids`. The caller holds the shard's lock, and has looked the
/// terms up since: it has their hashes with their order for probes. The extents that are `own` belong to the shard.
/// `horizon`: [`super::horizon::without_loads`].
pub fn add(
    tables: &Tables,
    terms: &[Wanted<'_>],
    (hashes, order): (&[u128], &[usize]),
    ids: &mut [Option<TermId>],
    own: impl Fn(u64) -> bool,
    horizon: pg_sys::TransactionId,
) {
    // Equal terms get one id.
    let mut first: HashMapByHash<usize> = HashMapByHash::default();
    let new: Vec<usize> = (0..terms.len())
        .filter(|&n| ids[n].is_none())
        .filter(|&n| *first.entry(hashes[n]).or_insert(n) == n)
        .collect();

    let in_order = order.iter().copied();
    let added: Vec<usize> = in_order
        .filter(|&n| ids[n].is_none() && first[&hashes[n]] == n)
        .collect();
    let numbers = extents::take(tables, new.len() as u64, own);
    let mut packer = Packer::new(symbols_for(tables, new.iter().map(|&n| &terms[n])));
    let symbols = packer.symbols().number;
    let packed = new.iter().map(|&n| {
        let compressed = terms[n].compressed.filter(|(number, _)| *number == symbols);
        (
            n,
            terms[n].text,
            compressed.map(|(_, compressed)| compressed),
        )
    });
    packer.push_all(numbers.into_iter().flatten(), packed, |n, number| {
        ids[n] = Some(id_of(&terms[n], number));
    });
    packer.end_block();
    packer.write(tables);
    let entries = added.iter().map(|&n| (hashes[n], ids[n]));
    let entries = entries.filter_map(|(hash, id)| Some((hash, id?)));
    term_ids::insert(tables, entries, Some(horizon));

    for n in 0..terms.len() {
        if ids[n].is_none() {
            ids[n] = first.get(&hashes[n]).and_then(|&n| ids[n]);
        }
    }
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
