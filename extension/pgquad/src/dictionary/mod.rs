//! The dictionary: RDF terms and their ids, one for the whole database.
//!
//! Short and numeric terms are in their id already ([`pgquad_term::inline_id`]); all others are numbered, kept in
//! blocks in table
//! `quad.terms`, and found again through their hash in `quad.term_ids`. Everything is transactional: an aborted
//! transaction leaves nothing behind but unused numbers.
//!
//! The functions work on batches: probes are sorted, so that each page is touched once. Where the dictionary is
//! distributed, shards of this node are read as local tables are, and the others asked with one message to each node
//! (`README.md` beside this file).

mod absent;
mod ahead;
mod answer;
mod blocks;
mod bulk;
mod casts;
mod compare;
mod distribute;
mod extents;
mod fresh;
mod horizon;
mod language_numbers;
mod languages;
mod layout;
mod lock;
mod new_numbers;
mod numbers;
mod read;
mod relation;
mod remote;
mod run;
mod shard;
mod shared_cache;
mod sql;
mod state;
mod symbol_tables;
mod tables;
mod term_ids;
mod texts;
mod values;
mod wanted;
mod write;

use std::collections::HashMap;
use std::rc::Rc;

pub use absent::LookedUp;
pub use ahead::{offer, Upcoming};
pub use answer::answer;
pub use bulk::BulkEncoder;
pub use distribute::{
    check_joined_worker, distribute, distribute_ahead, finish as finish_distribution,
    is_distributed,
};
pub use layout::{forget_locks, relation_changed};
pub use shared_cache::PIECE as SHARED_TERMS;
pub use sql::{no_term_id, term_id};
pub use state::BuildHash;
pub use tables::Tables;
pub use values::{number, numbers};

use pgquad_cluster::dictionary::Term as NewTerm;
use pgquad_cluster::Damaged;
use pgquad_reader::Batch;
use pgquad_term::{encoded_hash, inline_id, inline_term, Term, TermBuf, TermId};

use crate::cluster::damaged;
use layout::Layout;
use new_numbers::{is_label, number_labels};
use read::Reader;
use state::{with_state, State, ID_BYTES};
use texts::Texts;
use write::Encoded;

/// Terms of a chunk that are asked for at once, so that little more is fetched than it has room for: those asked for
/// first, and least and most of the others, which is told by the length of the first.
const FIRST_TERMS_AT_ONCE: usize = 1024;
const MIN_TERMS_AT_ONCE: usize = 64;
const MAX_TERMS_AT_ONCE: usize = 4096;

pub use pgquad_term::encoded::MAX_TERM_BYTES;

/// Callbacks; called once from `_PG_init`.
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
    let hash_of = |(index, term)| Some((index, lookup_hash(term)?));
    let wanted = terms.iter().enumerate().filter_map(hash_of);
    let (places, hashes): (Vec<usize>, Vec<u128>) = wanted.unzip();
    if !places.is_empty() {
        for (place, id) in places.into_iter().zip(find_hashes(&hashes)) {
            ids[place] = id;
        }
    }
    ids
}

/// Looks up terms by their hashes for the rows that a scan will hand out, in the place of those before.
pub fn find_ahead(looked_up: &LookedUp, hashes: &[u128]) {
    looked_up.forget();
    let ids = find_hashes(hashes);
    let absent = hashes.iter().zip(ids).filter(|(_, id)| id.is_none());
    looked_up.keep_absent(absent.map(|(hash, _)| *hash).collect());
}

/// The hash by which a term is looked up; `None` where the term says its id, or is never found.
pub fn lookup_hash(term: &Term<'_>) -> Option<u128> {
    let is_looked_up =
        inline_id(term).is_none() && !matches!(term, Term::Blank(_)) && !write::is_too_long(term);
    is_looked_up.then(|| Encoded::new(term).hash)
}

/// The ids of terms given as N-Triples texts, in their order; `None` for those that are not in the dictionary. `parse`
/// makes the terms of texts that have not come lately.
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
/// A blank node that has a label only gets a new id; equal labels in one call get the same. Raises errors: a term is
/// too long (54000), the transaction may not write.
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

/// The ids of encoded terms that are not inlined, with their hashes; those that are not in the dictionary yet are
/// added.
fn encode_hashed(terms: &[(u128, &str)]) -> Vec<TermId> {
    if terms.is_empty() {
        return Vec::new();
    }
    // Blank nodes with a label only. They are in no table.
    let labels = number_labels(terms.iter().map(|(_, text)| *text));

    let mut positions: write::HashMapByHash<usize> = HashMap::default();
    let mut distinct: Vec<(u128, &str)> = Vec::new();
    for (hash, text) in terms {
        if !is_label(text) {
            positions.entry(*hash).or_insert_with(|| {
                distinct.push((*hash, *text));
                distinct.len() - 1
            });
        }
    }
    let ids = find_or_add(&distinct);
    terms
        .iter()
        .map(|(hash, text)| {
            let id = match positions.get(hash) {
                Some(&position) => Some(ids[position]),
                None => labels.get(text).copied(),
            };
            id.expect("every term has an id now")
        })
        .collect()
}

/// The ids of distinct terms, none of which is a label; those that are not in the dictionary yet are added.
fn find_or_add(terms: &[(u128, &str)]) -> Vec<TermId> {
    if terms.is_empty() {
        return Vec::new();
    }
    let hashes: Vec<u128> = terms.iter().map(|(hash, _)| *hash).collect();
    let layout = Layout::current();
    let distributed = layout.shards.is_some();
    // A writer's new terms go to their nodes in any case, so here it looks only at this node. A reader asks the nodes
    // what is there.
    let mut ids = if distributed && write::is_writable() {
        find_here(&hashes)
    } else {
        find_hashes(&hashes)
    };
    let missing: Vec<usize> = (0..ids.len()).filter(|&n| ids[n].is_none()).collect();
    if !missing.is_empty() {
        write::check_writable();
        if distributed {
            add_to_shards(missing, terms, &mut ids);
        } else {
            let new: Vec<(u128, &str)> = missing.iter().map(|&n| terms[n]).collect();
            let added = with_state(|state| write::add(state, &new));
            for (n, id) in missing.into_iter().zip(added) {
                ids[n] = Some(id);
            }
        }
    }
    ids.into_iter()
        .map(|id| id.expect("every term has an id now"))
        .collect()
}

/// Has the nodes of a distributed dictionary find or add the terms at `missing`.
fn add_to_shards(missing: Vec<usize>, terms: &[(u128, &str)], ids: &mut [Option<TermId>]) {
    let numbers = language_numbers::numbers_or_add(terms.iter().map(|(_, text)| *text), || {});
    let with_languages: Vec<(u128, NewTerm<'_>)> = terms
        .iter()
        .zip(numbers)
        .map(|(&(hash, text), language)| (hash, NewTerm { text, language }))
        .collect();
    remote::encode(missing.clone(), &with_languages, |n, id| ids[n] = Some(id));
    with_state(|state| {
        for n in missing {
            if let Some(id) = ids[n] {
                state.ids.put(terms[n].0, id, ID_BYTES);
            }
        }
    });
}

/// What `body` makes of the encoded term with this id; `body` must not use the dictionary. `None` for the default
/// graph, an error for an id that is not in the dictionary. For expressions, which ask for the terms of a row one by
/// one. Terms are decoded ahead where the rows come in batches, and nothing is allocated for one that is not kept.
pub fn with_encoded<T>(id: TermId, body: impl FnOnce(&str) -> T) -> Option<T> {
    let Some(number) = id.dictionary_number() else {
        return decode(id).map(|term| body(term.as_encoded()));
    };
    let checked = |encoded: &str| match fits(id, encoded) {
        true => body(encoded),
        false => read::unknown_id(id),
    };
    ahead::count_read();
    if is_distributed() {
        fetch_ahead(id, number);
    }
    Some(with_state(|state| {
        if let Some(encoded) = state.ahead.look(number) {
            return checked(encoded);
        }
        if let Some(term) = state.terms.look(&number, state::term_bytes) {
            return checked(term.as_encoded());
        }
        if state.layout.shards.is_none() && run::fetch_ahead(state, id) {
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

/// Sees to it that [`with_encoded`] need not ask another node: brings a chunk of terms, or this one, where it is not
/// here.
fn fetch_ahead(id: TermId, number: u64) {
    let is_known = || {
        with_state(|state| {
            state.ahead.look(number).is_some()
                || state.terms.look(&number, state::term_bytes).is_some()
        })
    };
    if is_known() {
        return;
    }
    if let Some(rows) = ahead::offered(id) {
        let (numbers, texts) = chunk_of(rows.numbers());
        with_state(|state| state.ahead.put(rows, numbers, texts));
        if is_known() {
            return;
        }
    }
    if Layout::current().holding(number).is_none() {
        term_of(number);
    }
}

/// The first of these terms in their encoded form, wherever they are; they are given by their numbers in ascending
/// order. About as many as fit into a chunk, until one is not there.
fn chunk_of(mut numbers: Vec<u64>) -> (Vec<u64>, Texts) {
    let mut texts = Texts::default();
    let mut start = 0;
    while start < numbers.len() && texts.bytes.len() < ahead::MAX_CHUNK_BYTES {
        let at_once = match texts.bytes.len() / texts.ends.len().max(1) {
            0 => FIRST_TERMS_AT_ONCE,
            length => (ahead::CHUNK_BYTES / length).clamp(MIN_TERMS_AT_ONCE, MAX_TERMS_AT_ONCE),
        };
        let asked = &numbers[start..numbers.len().min(start + at_once)];
        let (mut found, elsewhere) = with_state(|state| run::texts_here(state, asked));
        let asked_elsewhere: Vec<u64> = elsewhere.iter().map(|&n| asked[n]).collect();
        remote::decode(&asked_elsewhere, |n, text| {
            found[elsewhere[n]] = text.map(str::to_owned);
        });
        let count = asked.len();
        let whole = found.iter().map_while(Option::as_ref);
        for text in whole {
            if texts.bytes.len() >= ahead::MAX_CHUNK_BYTES {
                break;
            }
            texts.bytes.extend_from_slice(text.as_bytes());
            texts.ends.push(texts.bytes.len());
        }
        start += count;
        if texts.ends.len() < start {
            break;
        }
    }
    numbers.truncate(texts.ends.len());
    (numbers, texts)
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
    let term = term_of(number);
    Some(
        term.filter(|term| fits(id, term.as_encoded()))
            .unwrap_or_else(|| read::unknown_id(id)),
    )
}

/// A number that is another one whenever ids may have come to stand for other terms: after a rollback of new ones, or
/// for another dictionary.
pub fn generation() -> u64 {
    with_state(|state| state.generation)
}

/// The term with this dictionary number; `None` when there is none.
fn term_of(number: u64) -> Option<TermBuf> {
    let found = with_state(|state| {
        let cached = state.terms.get(&number, state::term_bytes);
        if cached.is_some() || state.layout.holding(number).is_some() {
            let mut reader = Reader::default();
            return Ok(cached.or_else(|| reader.term(state, number)));
        }
        Err(())
    });
    found.unwrap_or_else(|()| {
        let mut term = None;
        remote_terms(&[number], |_, found| term = found.cloned());
        term
    })
}

/// Calls `each` with the place of each number in the list, which ascends, and the term that another node has under it.
fn remote_terms(numbers: &[u64], mut each: impl FnMut(usize, Option<&TermBuf>)) {
    remote::decode(numbers, |place, text| {
        let term = text
            .map(|text| TermBuf::from_encoded(text.to_owned()).unwrap_or_else(|| damaged(Damaged)));
        each(place, term.as_ref());
        if let Some(term) = term {
            let bytes = state::term_bytes(&term);
            with_state(|state| state.terms.put(numbers[place], term, bytes));
        }
    });
}

/// The terms with these ids, in their order; `None` for the default graph, an error for an id that is not in the
/// dictionary.
pub fn decode_many(ids: &[TermId]) -> Vec<Option<TermBuf>> {
    let mut terms: Vec<Option<TermBuf>> = vec![None; ids.len()];
    let wanted: Vec<(TermId, usize)> = ids.iter().copied().zip(0..).collect();
    for_each_term(&wanted, |place, term| terms[place] = Some(term.clone()));
    terms
}

/// Calls `each` with the term of each id and what stands beside the id, in any order; not for the default graph. An
/// error for an id that is not in the dictionary. `each` must not use the dictionary.
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
    let is_shared = shared_cache::is_ready();
    with_state(|state| {
        numbers.retain(|(number, place)| {
            let term = state.terms.look(number, state::term_bytes);
            if term.is_some() {
                found(*place, term);
            }
            term.is_none()
        });
        let layout = state.layout.clone();
        let is_here = |&(number, _): &(u64, usize)| layout.holding(number).is_some();
        let (here, elsewhere) = std::mem::take(&mut numbers).into_iter().partition(is_here);
        numbers = elsewhere;
        read_here(state, here, is_shared, &mut found);
    });
    if numbers.is_empty() {
        return;
    }
    numbers.sort_unstable();
    let mut distinct: Vec<u64> = numbers.iter().map(|(number, _)| *number).collect();
    distinct.dedup();
    remote_terms(&distinct, |n, term| {
        let number = distinct[n];
        let first = numbers.partition_point(|(other, _)| *other < number);
        let same = numbers[first..]
            .iter()
            .take_while(|(other, _)| *other == number);
        same.for_each(|(_, place)| found(*place, term));
    });
}

/// Calls `each` with what stands beside each number and the term, which is on this node. `is_shared`: all sessions of
/// the node keep what is read.
fn read_here<T: Copy + Ord>(
    state: &mut State,
    mut wanted: Vec<(u64, T)>,
    is_shared: bool,
    mut each: impl FnMut(T, Option<&TermBuf>),
) {
    let layout = state.layout.clone();
    // In the order of the tables, and terms that are wanted repeatedly one after the other.
    wanted.sort_unstable_by_key(|&(number, beside)| (layout.shard_of(number), number, beside));
    let mut distinct: Vec<&[(u64, T)]> = wanted.chunk_by(|a, b| a.0 == b.0).collect();
    let mut give = |same: &[(u64, T)], term: Option<&TermBuf>| {
        same.iter().for_each(|&(_, beside)| each(beside, term));
    };
    // Terms that came one after the other are in as many blocks as a distributed dictionary has shards. So a session
    // would read a block for nearly every term that other sessions have read before.
    let is_shared = is_shared && distinct.len() <= shared_cache::MAX_TERMS_AT_ONCE;
    if is_shared {
        let numbers: Vec<u64> = distinct.iter().map(|same| same[0].0).collect();
        let missing = shared_cache::terms(&numbers, |n, text| {
            let term = TermBuf::from_encoded(text.to_owned()).unwrap_or_else(|| damaged(Damaged));
            give(distinct[n], Some(&term));
            let bytes = state::term_bytes(&term);
            state.terms.put(numbers[n], term, bytes);
        });
        distinct = missing.into_iter().map(|n| distinct[n]).collect();
    }
    let mut reader = Reader::default();
    for same in distinct {
        let number = same[0].0;
        let term = reader.term(state, number);
        give(same, term.as_ref());
        if let (true, Some(term)) = (is_shared, term) {
            shared_cache::keep_term(number, term.as_encoded());
        }
    }
}

/// What `body` makes of the language tag with this number ([`TermId::language_number`]), as a string; `None` when no
/// tag has the number.
pub fn with_language<T>(number: u16, body: impl FnOnce(&TermBuf) -> T) -> Option<T> {
    let mut body = Some(body);
    let mut find = || {
        with_state(|state| {
            let term = state.languages.term(&state.layout.tables, number)?;
            body.take().map(|body| body(term))
        })
    };
    let found = find();
    if found.is_some() || Layout::current().shards.is_none() {
        return found;
    }
    // A number in an id has been given out. This node's copy of the table may be behind: a commit reaches one node
    // after the other.
    language_numbers::ask();
    find()
}

/// Numbers of language tags; it may lack some that were given out lately.
pub fn languages() -> Vec<(u16, String)> {
    let some = |all: Vec<_>| (!all.is_empty()).then_some(all);
    let all = language_numbers::look_up(|state| some(state.languages.all(&state.layout.tables)));
    all.unwrap_or_default()
}

/// The number of a language tag (in lower case), `None` when no term in the dictionary has it.
pub fn language_number(tag: &str) -> Option<u16> {
    language_numbers::look_up(|state| state.languages.find(&state.layout.tables, tag))
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

/// Ids by hash, from the cache or the tables, wherever they are.
fn find_hashes(hashes: &[u128]) -> Vec<Option<TermId>> {
    let (layout, mut ids) = loop {
        let layout = Layout::newest();
        let ids = find_here(hashes);
        // A shard that came here meanwhile would have been looked in on neither node.
        if Rc::ptr_eq(&layout, &Layout::current()) {
            break (layout, ids);
        }
    };
    if let Some(shards) = &layout.shards {
        let elsewhere = |n: usize| shards.here(shards.of_hash(hashes[n])).is_none();
        let missing: Vec<usize> = (0..ids.len())
            .filter(|&n| ids[n].is_none() && elsewhere(n) && !absent::is_absent(hashes[n]))
            .collect();
        remote::find(missing, hashes, |n, id| {
            ids[n] = Some(id);
            with_state(|state| state.ids.put(hashes[n], id, ID_BYTES));
        });
    }
    ids
}

/// Ids by hash, from the cache or the tables that are on this node.
fn find_here(hashes: &[u128]) -> Vec<Option<TermId>> {
    let is_shared = shared_cache::is_ready();
    with_state(|state| {
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
        missing.sort_by_key(|&index| term_ids::probe_key(hashes[index]));
        let layout = state.layout.clone();
        let mut found = |state: &mut State, index: usize, id: TermId| {
            state.ids.put(hashes[index], id, ID_BYTES);
            ids[index] = Some(id);
        };
        let probe = |tables: &Tables, places: &[usize]| {
            let probes: Vec<u128> = places.iter().map(|&index| hashes[index]).collect();
            term_ids::probe(tables, &probes)
        };
        let Some(shards) = &layout.shards else {
            for (&index, id) in missing.iter().zip(probe(&layout.tables, &missing)) {
                id.into_iter().for_each(|id| found(state, index, id));
            }
            return ids;
        };
        let place = |index: usize| shards.of_hash(hashes[index]);
        missing.retain(|&index| shards.here(place(index)).is_some());
        let is_shared = is_shared && missing.len() <= shared_cache::MAX_TERMS_AT_ONCE;
        if is_shared {
            missing = shared_cache::ids(missing, hashes, |index, id| found(state, index, id));
        }
        missing.sort_by_key(|&index| place(index));
        for of_shard in missing.chunk_by(|&a, &b| place(a) == place(b)) {
            let Some(tables) = shards.here(place(of_shard[0])) else {
                continue;
            };
            distribute::check_committed();
            for (&index, id) in of_shard.iter().zip(probe(tables, of_shard)) {
                let Some(id) = id else { continue };
                found(state, index, id);
                if is_shared {
                    shared_cache::keep_id(hashes[index], id);
                }
            }
        }
        ids
    })
}
