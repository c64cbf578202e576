//! New terms in a shard of a distributed dictionary.

use pgquad_cluster::dictionary::Term;
use pgquad_cluster::Damaged;
use pgquad_term::{encoded, TermId};
use pgrx::pg_sys;

use super::extents;
use super::state::with_state;
use super::tables::Tables;
use super::term_ids;
use super::write::{HashMapByHash, Packer};
use crate::cluster::damaged;
use pgquad_term::encoded::MAX_TERM_BYTES;

/// Gives ids to the terms of a shard that have none in `ids`, looking for them once more. The caller holds the shard's
/// lock, and has the terms' hashes with their order for probes. The extents that are `own` belong to the shard.
/// `horizon`: [`super::horizon::without_loads`].
pub fn add(
    tables: &Tables,
    terms: &[Term<'_>],
    (hashes, order): (&[u128], &[usize]),
    ids: &mut [Option<TermId>],
    own: impl Fn(u64) -> bool,
    horizon: pg_sys::TransactionId,
) {
    // Equal terms get one id.
    let mut first: HashMapByHash<usize> = HashMapByHash::default();
    let missing: Vec<usize> = (0..terms.len())
        .filter(|&n| ids[n].is_none())
        .filter(|&n| *first.entry(hashes[n]).or_insert(n) == n)
        .collect();

    // Whoever added one of the terms since the first look has finished now.
    let in_order = order.iter().copied();
    let order: Vec<usize> = in_order
        .filter(|&n| ids[n].is_none() && first[&hashes[n]] == n)
        .collect();
    let sorted: Vec<u128> = order.iter().map(|&n| hashes[n]).collect();
    for (&n, id) in order.iter().zip(term_ids::probe(tables, &sorted)) {
        ids[n] = id;
    }
    let new: Vec<(usize, &str)> = missing
        .iter()
        .filter(|&&n| ids[n].is_none())
        .map(|&n| (n, terms[n].text))
        .collect();
    let added: Vec<usize> = order.into_iter().filter(|&n| ids[n].is_none()).collect();
    let numbers = extents::take(tables, new.len() as u64, own);
    let mut packer = with_state(|state| Packer::new(state.symbols.newest(tables)));
    packer.push_all(
        numbers.into_iter().flatten(),
        new.into_iter(),
        |n, number| {
            ids[n] = Some(id_of(&terms[n], number));
        },
    );
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

/// The id of the term that has got `number`.
fn id_of(term: &Term<'_>, number: u64) -> TermId {
    let decoded = encoded::decode(term.text).filter(|_| term.text.len() <= MAX_TERM_BYTES);
    let decoded = decoded.unwrap_or_else(|| damaged(Damaged));
    let language = (term.language != 0).then_some(term.language);
    TermId::in_dictionary(&decoded, number, language)
}
