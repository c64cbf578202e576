//! Encoding of a document in a dictionary that is not distributed.
//!
//! The hashes of the terms seen are kept in memory, so that most terms need no probe of the table. New terms are
//! written in blocks as they come; their ids go into `quad.term_ids` at the end, or when the memory is used up. From
//! then on a Bloom filter tells most of the terms that are not in the table.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use pgquad_reader::{Batch, BatchTerm};
use pgquad_term::block::{Sampler, Symbols};
use pgquad_term::bloom::Bloom;
use pgquad_term::{tag, TermId};
use pgrx::check_for_interrupts;

use super::super::fresh::{self, Key, Known, NOT_STORED_BIT};
use super::super::state::{self, with_state, State};
use super::super::symbol_tables::Numbered;
use super::super::term_ids;
use super::super::write::{self, Packer, LOOK_AHEAD};
use super::batches::quads;
use super::training::{is_better, MIN_TRAINING_BYTES, TRAINING_BYTES, TRAINING_GROWTH};

/// Bytes that the map takes for each entry it has room for: 24 for key and id, one for the map, at most seven eighths
/// full.
const ENTRY_BYTES: usize = 29;

/// The part of the memory that the filter of the terms written takes. At the benchmarks' `maintenance_work_mem` of 256
/// MB that is 16 MB, ten bits for each of 13 million terms; with more, it spares fewer probes.
const FILTER_PART: usize = 8;

/// Terms that are in the table beside those in `known`.
enum TableTerms {
    None,
    /// No others than these.
    Some(Bloom),
    Any,
}

/// Gives ids to the terms of one document. Other transactions cannot add terms until this transaction ends.
pub struct LocalEncoder {
    known: Rc<RefCell<Known>>,
    memory: usize,
    table: TableTerms,
    /// Terms that this session had added otherwise when the document began.
    added_otherwise: u64,
    /// Makes the labels of blank nodes of this document differ from those of others.
    document: Option<u128>,
    packer: Option<Packer>,
    held_back: Vec<(u64, String)>,
    sampler: Sampler,
    text_bytes: usize,
    next_training: usize,
}

impl LocalEncoder {
    /// Begins a document; about `memory` bytes may be used, half of them for the terms seen.
    pub fn new(memory: usize) -> Self {
        state::will_write();
        let (is_empty, added_otherwise) = with_state(|state| {
            write::lock_all_terms(&state.layout.tables);
            (term_ids::is_empty(&state.layout.tables), state.added)
        });
        LocalEncoder {
            known: fresh::begin(),
            memory,
            table: match is_empty {
                true => TableTerms::None,
                false => TableTerms::Any,
            },
            added_otherwise,
            document: None,
            packer: None,
            held_back: Vec::new(),
            sampler: Sampler::default(),
            text_bytes: 0,
            next_training: TRAINING_BYTES,
        }
    }

    /// The symbols that new terms are compressed with, once they have been chosen.
    pub fn symbols(&self) -> Option<&Numbered> {
        self.packer.as_ref().map(Packer::symbols)
    }

    /// The quads of a batch as ids.
    pub fn encode(&mut self, batch: &Batch) -> Vec<[i64; 4]> {
        with_state(|state| {
            let ids = self.encode_terms(state, batch);
            quads(batch, &ids)
        })
    }

    fn encode_terms(&mut self, state: &mut State, batch: &Batch) -> Vec<TermId> {
        let mut ids: Vec<Option<TermId>> = Vec::with_capacity(batch.terms.len());
        let mut unknown: Vec<(Key, usize)> = Vec::new();
        let shared = self.known.clone();
        let known = &mut *shared.borrow_mut();
        for (position, term) in batch.terms.iter().enumerate() {
            let id = term.inline.or_else(|| {
                let key = self.key(state, batch, term);
                let id = known.get(&key).map(|id| TermId(id & !NOT_STORED_BIT));
                if id.is_none() {
                    unknown.push((key, position));
                }
                id
            });
            ids.push(id);
        }
        self.probe(state, known, &mut unknown, &mut ids);
        self.add(state, known, batch, &unknown, &mut ids);
        // The map would double with another batch like this.
        let is_full = known.capacity() - known.len() < batch.terms.len();
        if is_full && 2 * known.capacity() * ENTRY_BYTES > self.memory / 2 {
            self.write_ids(state, std::mem::take(known));
        }
        ids.into_iter()
            .map(|id| id.expect("every term has an id now"))
            .collect()
    }

    fn key(&mut self, state: &mut State, batch: &Batch, term: &BatchTerm) -> Key {
        if !batch.text(term).starts_with('B') {
            return Key::new(term.hash);
        }
        let document = *self.document.get_or_insert_with(|| {
            // A number of our own stands for the document.
            let number = state.numbers.take(&state.layout.tables, 1)[0].start;
            pgquad_term::encoded_hash(&format!("document {number}"))
        });
        Key::new(term.hash ^ document)
    }

    /// Looks up unknown terms in other documents that are under way, and in the table. Those that are in neither remain
    /// in `unknown`.
    fn probe(
        &mut self,
        state: &State,
        known: &mut Known,
        unknown: &mut Vec<(Key, usize)>,
        ids: &mut [Option<TermId>],
    ) {
        if state.added != self.added_otherwise {
            // A function that makes lines for `quad.load_stdin` may encode terms.
            self.table = TableTerms::Any;
        }
        if fresh::are_several() {
            for (key, position) in unknown.iter() {
                ids[*position] = fresh::find(key.value());
            }
            unknown.retain(|(_, position)| ids[*position].is_none());
        }
        let mut sorted: Vec<(u128, usize)> = unknown
            .iter()
            .map(|(key, position)| (key.value(), *position))
            .filter(|(hash, _)| match &self.table {
                TableTerms::None => false,
                TableTerms::Some(filter) => filter.may_contain(*hash),
                TableTerms::Any => true,
            })
            .collect();
        if sorted.is_empty() {
            return;
        }
        sorted.sort_unstable_by_key(|(hash, _)| term_ids::probe_key(*hash));
        let hashes: Vec<u128> = sorted.iter().map(|(hash, _)| *hash).collect();
        for ((hash, position), found) in sorted
            .iter()
            .zip(term_ids::probe(&state.layout.tables, &hashes))
        {
            if let Some(id) = found {
                known.insert(Key::new(*hash), id.0);
                ids[*position] = Some(id);
            }
        }
        unknown.retain(|(_, position)| ids[*position].is_none());
    }

    /// Numbers the terms that are in no table, about in order of first sight.
    fn add(
        &mut self,
        state: &mut State,
        known: &mut Known,
        batch: &Batch,
        unknown: &[(Key, usize)],
        ids: &mut [Option<TermId>],
    ) {
        let text = |position: usize| batch.text(&batch.terms[position]);
        let (blanks, terms): (Vec<_>, Vec<_>) = unknown
            .iter()
            .partition(|(_, position)| text(*position).starts_with('B'));
        // Numbers apart, so that those of the terms follow each other.
        let numbers = state.numbers.take(&state.layout.tables, terms.len());
        let blank_numbers = state.numbers.take(&state.layout.tables, blanks.len());

        let mut terms = VecDeque::from(terms);
        for number in numbers.into_iter().flatten() {
            let chosen = match &mut self.packer {
                Some(packer) => {
                    let symbols = packer.symbols().number;
                    let next = terms.iter().take(LOOK_AHEAD).map(|(_, position)| {
                        let term = &batch.terms[*position];
                        (batch.text(term), batch.compressed(term, symbols))
                    });
                    packer.push_one_of(number, next)
                }
                None => 0,
            };
            let (key, position) = terms.remove(chosen).expect("as many terms as numbers");
            let text = text(position);
            if self.packer.is_none() {
                self.held_back.push((number, text.to_owned()));
            }
            self.note_text(state, text);
            let id = write::id_of(state, text, number);
            known.insert(key, id.0 | NOT_STORED_BIT);
            ids[position] = Some(id);
        }
        for ((key, position), number) in blanks.into_iter().zip(blank_numbers.into_iter().flatten())
        {
            let id = TermId::new(tag::BLANK, number);
            known.insert(key, id.0 | NOT_STORED_BIT);
            ids[position] = Some(id);
        }
        if let Some(packer) = &mut self.packer {
            packer.write(&state.layout.tables);
        }
    }

    /// Looks at new text for the symbol tables.
    fn note_text(&mut self, state: &mut State, text: &str) {
        self.text_bytes += text.len();
        self.sampler.offer(text);
        if self.text_bytes >= self.next_training {
            self.next_training = self.text_bytes.saturating_mul(TRAINING_GROWTH);
            self.choose_symbols(state);
        }
    }

    /// Goes on with the symbol tables that suit the terms seen since the last time, and packs what was held back.
    fn choose_symbols(&mut self, state: &mut State) {
        let sampler = std::mem::take(&mut self.sampler);
        let mut symbols = state.symbols.newest(&state.layout.tables);
        if sampler.bytes() >= MIN_TRAINING_BYTES {
            let trained: Symbols = sampler.train();
            if is_better(&sampler, &trained, &symbols.symbols) {
                symbols = state.symbols.add(&state.layout.tables, trained);
            } else if self.packer.is_some() {
                return;
            }
        }
        if let Some(packer) = &mut self.packer {
            packer.end_block();
            packer.write(&state.layout.tables);
        }
        let packer = self.packer.insert(Packer::new(symbols));
        for (number, text) in self.held_back.drain(..) {
            packer.push(number, &text);
        }
    }

    /// Writes the ids of those of the terms that are new.
    fn write_ids(&mut self, state: &mut State, known: Known) {
        if matches!(self.table, TableTerms::None) {
            self.table = TableTerms::Some(Bloom::new(self.memory / FILTER_PART));
        }
        let filter = &mut self.table;
        let mut written = 0;
        let fresh = known
            .into_iter()
            .filter(|(_, id)| id & NOT_STORED_BIT != 0)
            .map(|(key, id)| {
                let hash = key.value();
                written += 1;
                if let TableTerms::Some(filter) = filter {
                    filter.insert(hash);
                }
                (hash, TermId(id & !NOT_STORED_BIT))
            });
        let memory = self.memory / 2 - self.memory / FILTER_PART;
        term_ids::insert_many(&state.layout.tables, memory, fresh);
        // A document around this one is to look for them.
        state.added += written;
        self.added_otherwise += written;
    }

    /// Ends the document: all its terms are in the tables now.
    pub fn finish(mut self) {
        with_state(|state| {
            if !self.held_back.is_empty() {
                self.choose_symbols(state);
            }
            if let Some(packer) = &mut self.packer {
                packer.end_block();
                packer.write(&state.layout.tables);
            }
            check_for_interrupts!();
            // The labels of blank nodes have served their purpose.
            let mut known = self.known.take();
            known.retain(|_, id| TermId(*id & !NOT_STORED_BIT).tag() != tag::BLANK);
            self.write_ids(state, known);
        });
    }
}
