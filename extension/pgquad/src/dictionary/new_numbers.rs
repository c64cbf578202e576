//! Numbers for new blank nodes, wherever the dictionary gives them out.

use std::collections::HashMap;
use std::ops::Range;

use pgquad_term::TermId;
use pgrx::pg_sys;

use super::layout::Layout;
use super::relation::Relation;
use super::state::with_state;
use super::{numbers, remote, write};

/// Numbers of blank nodes that a session fetches at least when it has none in stock.
pub const NUMBERS_AT_ONCE: usize = 256;

/// Whether an encoded term is a blank node that has a label only.
pub fn is_label(text: &str) -> bool {
    text.starts_with('B')
}

/// Numbers for the labels among these terms, the same for equal labels.
pub fn number_labels<'a>(terms: impl Iterator<Item = &'a str>) -> HashMap<&'a str, TermId> {
    let mut ids: HashMap<&str, TermId> = terms
        .filter(|text| is_label(text))
        .map(|label| (label, TermId::DEFAULT_GRAPH))
        .collect();
    let numbers = take_numbers(ids.len());
    for (id, number) in ids.values_mut().zip(numbers.into_iter().flatten()) {
        *id = TermId::new(pgquad_term::tag::BLANK, number);
    }
    ids
}

/// Numbers that nobody else gets: ranges that together have `count` of them.
pub fn take_numbers(count: usize) -> Vec<Range<u64>> {
    take_numbers_asking(count, NUMBERS_AT_ONCE, || {})
}

/// The same where a node is asked for at least `at_once` of them, after a call of `before_asking`, when there are none
/// in stock.
pub fn take_numbers_asking(
    count: usize,
    at_once: usize,
    before_asking: impl FnOnce(),
) -> Vec<Range<u64>> {
    if count == 0 {
        return Vec::new();
    }
    write::check_writable();
    let layout = Layout::current();
    if layout.shards.is_none() {
        return with_state(|state| {
            // Whoever distributes the dictionary waits for all who may have taken numbers.
            Relation::open(layout.tables.term_ids, pg_sys::RowExclusiveLock);
            state.numbers.take(&state.layout.tables, count)
        });
    }
    let mut ranges = with_state(|state| state.numbers.take_from_stock(count));
    let missing = count - numbers::length(&ranges) as usize;
    if missing > 0 {
        before_asking();
        let taken = remote::take(missing.max(at_once));
        with_state(|state| {
            state.numbers.put(taken);
            ranges.extend(state.numbers.take_from_stock(missing));
        });
    }
    ranges
}
