//! The dictionary: RDF terms and their ids, one for the whole database.
//!
//! Short and numeric terms are in their id already ([`pgquad_term::inline_id`]); all others are numbered, kept in blocks in table
//! `quad.terms`, and found again through their hash in `quad.term_ids`. Everything is transactional: an aborted transaction leaves
//! nothing behind but unused numbers.
//!
//! The functions work on batches: probes are sorted, so that each page is touched once.

mod ahead;
mod blocks;
mod bulk;
mod compare;
mod extents;
mod languages;
mod layout;
mod numbers;
mod read;
mod relation;
mod run;
mod sql;
mod state;
mod symbol_tables;
mod tables;
mod term_ids;
mod values;
mod write;

use std::collections::HashMap;

pub use ahead::Upcoming;
pub use bulk::BulkEncoder;
pub use layout::relation_changed;
pub use sql::term_id;
pub use state::BuildHash;
pub use tables::Tables;
pub use values::number;

use pgquad_reader::Batch;
use pgquad_term::{encoded_hash, inline_id, inline_term, Term, TermBuf, TermId};

use read::Reader;
use state::{with_state, State, ID_BYTES};
use write::Encoded;

/// Longest term in bytes, in its encoded form (text, and datatype or language tag).
pub const MAX_TERM_BYTES: usize = 1 << 20;

/// Settings and callbacks; called once from `_PG_init`.
pub fn init() {
    state::init();
}

/// The id of `term`, or `None` when it is not in the dictionary (and so in no store).
pub fn find(term: &Term<'_>) -> Option<TermId> {
    find_many(std::slice::from_ref(term))[0]
}

/// The ids of terms, in their order; `None` for those that are not in the dictionary.
///
/// Blank nodes that have a label only are never found: a label means something in its document only.
pub fn find_many(terms: &[Term<'_>]) -> Vec<Option<TermId>> {
    let mut ids: Vec<Option<TermId>> = terms.iter().map(inline_id).collect();
    let wanted: Vec<(usize, Encoded)> = (0..terms.len())
        .filter(|&index| ids[index].is_none() && !matches!(terms[index], Term::Blank(_)))
        .filter(|&index| !write::is_too_long(&terms[index]))
        .map(|index| (index, Encoded::new(&terms[index])))
        .collect();
    if !wanted.is_empty() {
        with_state(|state| {
            let hashes: Vec<u128> = wanted.iter().map(|(_, term)| term.hash).collect();
            for ((index, _), id) in wanted.iter().zip(find_hashes(state, &hashes)) {
                ids[*index] = id;
            }
        });
    }
    ids
}

/// The ids of terms given as N-Triples texts, in their order; `None` for those that are not in the dictionary. `parse` makes the terms
/// of texts that have not come lately.
pub fn find_written(texts: &[&str], parse: impl Fn(&str) -> TermBuf) -> Vec<Option<TermId>> {
    let hashes: Vec<u128> = texts.iter().map(|text| encoded_hash(text)).collect();
    let mut ids: Vec<Option<TermId>> = with_state(|state| {
        let known = |hash| state.written.get(hash, |_| ID_BYTES);
        hashes.iter().map(known).collect()
    });
    let missing: Vec<usize> = (0..ids.len()).filter(|&n| ids[n].is_none()).collect();
    if missing.is_empty() {
        return ids;
    }
    let terms: Vec<TermBuf> = missing.iter().map(|&n| parse(texts[n])).collect();
    let borrowed: Vec<Term<'_>> = terms.iter().map(TermBuf::as_term).collect();
    let found = find_many(&borrowed);
    with_state(|state| {
        for (n, id) in missing.into_iter().zip(found) {
            ids[n] = id;
            if let Some(id) = id {
                state.written.put(hashes[n], id, ID_BYTES);
            }
        }
    });
    ids
}

/// The id of `term`, which is added to the dictionary if need be.
pub fn encode(term: &Term<'_>) -> TermId {
    encode_many(std::slice::from_ref(term))[0]
}

/// The ids of terms, in their order; those that are not in the dictionary yet are added.
///
/// A blank node that has a label only gets a new id; equal labels in one call get the same. Raises errors: a term is too long (54000),
/// the transaction may not write.
pub fn encode_many(terms: &[Term<'_>]) -> Vec<TermId> {
    let mut ids: Vec<Option<TermId>> = terms.iter().map(inline_id).collect();
    let missing: Vec<usize> = (0..terms.len())
        .filter(|&index| ids[index].is_none())
        .collect();
    let encoded: Vec<Encoded> = missing
        .iter()
        .map(|&index| Encoded::new(&terms[index]))
        .collect();
    let borrowed: Vec<(u128, &str)> = encoded
        .iter()
        .map(|term| (term.hash, term.text.as_str()))
        .collect();
    for (index, id) in missing.into_iter().zip(encode_hashed(&borrowed)) {
        ids[index] = Some(id);
    }
    ids.into_iter()
        .map(|id| id.expect("every term has an id now"))
        .collect()
}

/// The quads of a small document as ids, its new terms added to the dictionary.
pub fn encode_batch(batch: &Batch) -> Vec<[i64; 4]> {
    let missing: Vec<(u128, &str)> = batch
        .terms
        .iter()
        .filter(|term| term.inline.is_none())
        .map(|term| (term.hash, batch.text(term)))
        .collect();
    let mut found = encode_hashed(&missing).into_iter();
    let ids: Vec<TermId> = batch
        .terms
        .iter()
        .map(|term| {
            term.inline
                .or_else(|| found.next())
                .expect("every term has an id now")
        })
        .collect();
    bulk::quads(batch, &ids)
}

/// The ids of encoded terms that are not inlined, with their hashes; those that are not in the dictionary yet are added.
fn encode_hashed(terms: &[(u128, &str)]) -> Vec<TermId> {
    if terms.is_empty() {
        return Vec::new();
    }
    with_state(|state| {
        // Blank nodes with a label only. They are in no table.
        let labels: Vec<&str> = terms
            .iter()
            .filter(|(_, text)| text.starts_with('B'))
            .map(|(_, text)| *text)
            .collect();
        let labels = if labels.is_empty() {
            HashMap::new()
        } else {
            write::number_labels(state, &labels)
        };

        let mut positions: write::HashMapByHash<usize> = HashMap::default();
        let mut distinct: Vec<(u128, &str)> = Vec::new();
        for (hash, text) in terms {
            if !text.starts_with('B') {
                positions.entry(*hash).or_insert_with(|| {
                    distinct.push((*hash, *text));
                    distinct.len() - 1
                });
            }
        }
        let hashes: Vec<u128> = distinct.iter().map(|(hash, _)| *hash).collect();
        let mut ids = find_hashes(state, &hashes);
        let missing: Vec<usize> = (0..ids.len())
            .filter(|&position| ids[position].is_none())
            .collect();
        if !missing.is_empty() {
            let new: Vec<(u128, &str)> =
                missing.iter().map(|&position| distinct[position]).collect();
            for (position, id) in missing.into_iter().zip(write::add(state, &new)) {
                ids[position] = Some(id);
            }
        }
        terms
            .iter()
            .map(|(hash, text)| {
                let id = match positions.get(hash) {
                    Some(&position) => ids[position],
                    None => labels.get(text).copied(),
                };
                id.expect("every term has an id now")
            })
            .collect()
    })
}

/// What `body` makes of the encoded term with this id, which it must not use the dictionary for; `None` for the default graph, an error
/// for an id that is not in the dictionary. For expressions, which ask for the terms of a row one by one: terms are decoded ahead where
/// the rows come in batches, and nothing is allocated for one that is not kept.
pub fn with_encoded<T>(id: TermId, body: impl FnOnce(&str) -> T) -> Option<T> {
    let Some(number) = id.dictionary_number() else {
        return decode(id).map(|term| body(term.as_encoded()));
    };
    let checked = |encoded: &str| match fits(id, encoded) {
        true => body(encoded),
        false => read::unknown_id(id),
    };
    Some(with_state(|state| {
        if let Some(encoded) = state.ahead.look(number) {
            ahead::count_read();
            return checked(encoded);
        }
        if let Some(term) = state.terms.look(&number, state::term_bytes) {
            return checked(term.as_encoded());
        }
        ahead::count_read();
        if ahead::fetch(state, id) {
            if let Some(encoded) = state.ahead.look(number) {
                return checked(encoded);
            }
        }
        ahead::count_decoded(1);
        match Reader::default().term(state, number) {
            Some(term) => checked(term.as_encoded()),
            None => read::unknown_id(id),
        }
    }))
}

/// What `body` makes of the term with this id, as [`with_encoded`].
pub fn with_term<T>(id: TermId, body: impl FnOnce(&Term<'_>) -> T) -> Option<T> {
    with_encoded(id, |encoded| {
        let term = pgquad_term::encoded::decode(encoded);
        body(&term.expect("the dictionary holds encoded terms"))
    })
}

/// The term with this id; `None` for the default graph, an error for an id that is not in the dictionary.
pub fn decode(id: TermId) -> Option<TermBuf> {
    let Some(number) = id.dictionary_number() else {
        let inline = inline_term(id);
        if inline.is_none() && id != TermId::DEFAULT_GRAPH {
            read::unknown_id(id);
        }
        return inline;
    };
    let term = with_state(|state| {
        let cached = state.terms.get(&number, state::term_bytes);
        cached.or_else(|| Reader::default().term(state, number))
    });
    Some(
        term.filter(|term| fits(id, term.as_encoded()))
            .unwrap_or_else(|| read::unknown_id(id)),
    )
}

/// The terms with these ids, in their order; `None` for the default graph, an error for an id that is not in the dictionary.
pub fn decode_many(ids: &[TermId]) -> Vec<Option<TermBuf>> {
    let mut terms: Vec<Option<TermBuf>> = vec![None; ids.len()];
    let wanted: Vec<(TermId, usize)> = ids.iter().copied().zip(0..).collect();
    for_each_term(&wanted, |place, term| terms[place] = Some(term.clone()));
    terms
}

/// Calls `each` with the term of each id and what stands beside the id, in any order; not for the default graph. An error for an id
/// that is not in the dictionary. `each` must not use the dictionary.
pub fn for_each_term<T: Copy>(wanted: &[(TermId, T)], mut each: impl FnMut(T, &TermBuf)) {
    let mut numbers: Vec<(u64, usize)> = Vec::with_capacity(wanted.len());
    for (place, (id, beside)) in wanted.iter().enumerate() {
        match id.dictionary_number() {
            Some(number) => numbers.push((number, place)),
            None if *id == TermId::DEFAULT_GRAPH => {}
            None => {
                let term = inline_term(*id).unwrap_or_else(|| read::unknown_id(*id));
                each(*beside, &term);
            }
        }
    }
    if numbers.is_empty() {
        return;
    }
    let mut found = |place: usize, term: Option<&TermBuf>| {
        let (id, beside) = wanted[place];
        match term {
            Some(term) if fits(id, term.as_encoded()) => each(beside, term),
            _ => read::unknown_id(id),
        }
    };
    with_state(|state| {
        numbers.retain(|(number, place)| {
            let term = state.terms.look(number, state::term_bytes);
            if term.is_some() {
                found(*place, term);
            }
            term.is_none()
        });
        // In the order of the table, and terms that are wanted repeatedly one after the other.
        numbers.sort_unstable();
        let mut reader = Reader::default();
        let mut last: Option<(u64, Option<TermBuf>)> = None;
        for (number, place) in numbers {
            let known = last.take().filter(|(known, _)| *known == number);
            let (_, term) = known.unwrap_or_else(|| (number, reader.term(state, number)));
            found(place, term.as_ref());
            last = Some((number, term));
        }
    });
}

/// What `body` makes of the language tag with this number ([`TermId::language_number`]), as a string; `None` when none has it.
pub fn with_language<T>(number: u16, body: impl FnOnce(&TermBuf) -> T) -> Option<T> {
    with_state(|state| state.languages.term(&state.layout.tables, number).map(body))
}

/// The language tag with this number ([`TermId::language_number`]).
pub fn language(number: u16) -> Option<String> {
    with_state(|state| state.languages.tag(&state.layout.tables, number))
}

/// Numbers of language tags; it may lack some that were given out lately.
pub fn languages() -> Vec<(u16, String)> {
    with_state(|state| state.languages.all(&state.layout.tables))
}

/// The number of a language tag (in lower case), `None` when no term in the dictionary has it.
pub fn language_number(tag: &str) -> Option<u16> {
    with_state(|state| state.languages.find(&state.layout.tables, tag))
}

/// Whether an encoded term that was found by the number in `id` is of the kind that the tag of `id` says.
fn fits(id: TermId, encoded: &str) -> bool {
    use pgquad_term::tag;
    match (id.tag(), encoded.as_bytes().first()) {
        (tag::IRI, first) => first == Some(&b'I'),
        (tag::STRING, first) => first == Some(&b'S'),
        (tag::LANG_STRING, first) => first == Some(&b'L'),
        (tag::OTHER, first) => !matches!(first, Some(b'I' | b'S')),
        _ => true,
    }
}

/// Ids by hash, from the cache or the table.
fn find_hashes(state: &mut State, hashes: &[u128]) -> Vec<Option<TermId>> {
    let mut ids: Vec<Option<TermId>> = hashes
        .iter()
        .map(|hash| state.ids.get(hash, |_| ID_BYTES))
        .collect();
    let mut missing: Vec<usize> = (0..hashes.len())
        .filter(|&index| ids[index].is_none())
        .collect();
    if missing.is_empty() {
        return ids;
    }
    missing.sort_by_key(|&index| term_ids::probe_order(hashes[index]));
    let probes: Vec<u128> = missing.iter().map(|&index| hashes[index]).collect();
    for (index, id) in missing
        .into_iter()
        .zip(term_ids::probe(&state.layout.tables, &probes))
    {
        if let Some(id) = id {
            state.ids.put(hashes[index], id, ID_BYTES);
            ids[index] = Some(id);
        }
    }
    ids
}
