//! New terms in a shard of a distributed dictionary.

use pgquad_term::TermId;
use pgrx::pg_sys;

use super::extents;
use super::state::with_state;
use super::tables::Tables;
use super::term_ids;
use super::wanted::{Packed, Wanted};
use super::write::Packer;

/// Gives ids to the terms of a shard that have none in `ids`. The caller holds the shard's lock, and has looked the
/// terms up since. `order`: the order of the hashes for probes. A block whose terms are all new is stored as it is.
/// The extents that are `own` belong to the shard. `horizon`: [`super::horizon::without_loads`].
pub fn add(
    tables: &Tables,
    wanted: &Wanted<'_>,
    order: &[usize],
    ids: &mut [Option<TermId>],
    own: impl Fn(u64) -> bool,
    horizon: pg_sys::TransactionId,
) {
    let hashes = &wanted.hashes[..];
    // Equal terms, which the order has side by side, get one id: that of the first.
    let mut is_new: Vec<bool> = ids.iter().map(Option::is_none).collect();
    for pair in order.windows(2) {
        is_new[pair[1]] &= hashes[pair[0]] != hashes[pair[1]];
    }
    let is_whole = |block: &&Packed<'_>| is_new[block.terms.clone()].iter().all(|&new| new);
    let whole: Vec<&Packed<'_>> = wanted.blocks().iter().filter(is_whole).collect();
    let mut packed_anew = is_new.clone();
    for block in &whole {
        packed_anew[block.terms.clone()].fill(false);
    }
    let packed_anew: Vec<usize> = places(&packed_anew).collect();

    let lengths: Vec<u64> = whole.iter().map(|block| block.terms.len() as u64).collect();
    let taken = extents::take_runs(tables, &lengths, packed_anew.len() as u64, own);
    // The symbols that the first new one comes compressed with, or the newest.
    let given = places(&is_new).next().and_then(|n| wanted.symbols(n));
    let newest = || with_state(|state| state.symbols.newest(tables));
    let mut packer = Packer::new(given.cloned().unwrap_or_else(newest));
    let symbols = packer.symbols().number;
    for (block, first) in whole.iter().zip(taken.runs) {
        packer.push_block(first, block.bytes);
        for (n, number) in block.terms.clone().zip(first..) {
            ids[n] = Some(wanted.id(n, number));
        }
    }
    let opened = wanted.open(&packed_anew);
    let packed = packed_anew.iter().enumerate().map(|(i, &n)| {
        let (text, compressed) = opened.get(i, symbols);
        (n, text, compressed)
    });
    packer.push_all(taken.single.into_iter().flatten(), packed, |n, number| {
        ids[n] = Some(wanted.id(n, number));
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
