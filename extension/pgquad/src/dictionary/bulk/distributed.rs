//! Encoding of a document in a distributed dictionary.
//!
//! Terms that were not seen lately are compressed and collected for the nodes that give them their ids. When there are
//! enough, the node whose terms have waited longest gets a message. It finds or adds the terms and answers while the
//! next ones are collected. The quads of their batches wait meanwhile.
//!
//! A message costs its node a new version of most leaves of its `term_ids`, whatever is in it. So messages are to be
//! large. One node after the other gets one: then each has nearly twice its share of the memory when its turn comes,
//! and the nodes are at work all the time, not all at once.
//!
//! A node holds the locks of the shards that it adds to until its answer is taken. So all answers are taken before the
//! dictionary is asked for anything else, and whoever waits for one answer takes the others as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgquad_btree::Quad;
use pgquad_cluster::dictionary::{Answer, Term, MAX_TERMS};
use pgquad_cluster::{Damaged, Mark, Waiting};
use pgquad_reader::{Batch, BatchTerm};
use pgquad_term::block::{Compressed, Sampler};
use pgquad_term::{tag, TermId};
use pgrx::check_for_interrupts;

use super::super::language_numbers;
use super::super::layout::Layout;
use super::super::new_numbers::{is_label, take_numbers_asking, NUMBERS_AT_ONCE};
use super::super::remote;
use super::super::state::{with_state, BuildHash};
use super::super::symbol_tables::Numbered;
use super::collected::{Collected, New, BYTES_BESIDE};
use super::training::{is_better, MIN_TRAINING_BYTES, TRAINING_BYTES, TRAINING_GROWTH};
use crate::cluster::{damaged, Scope};

/// Parts of the memory, one in so many: for text that is held back, terms that are collected, and those that are under
/// way. Few terms a message leave many of them in the tails of leaves: with a 24th for those collected, the `term_ids`
/// of 10 million triples of the Berlin data took 91 MB on one node instead of 69. And each message changes most leaves:
/// with an eighth instead of a 16th, eight nodes write the `term_ids` of the same data in 2.3 CPU seconds, not in 3.4.
const HELD_BACK_PART: usize = 8;
const COLLECTED_PART: usize = 8;
const UNDER_WAY_PART: usize = 16;
/// Terms that are collected take about this many bytes at most: a message of them all has fewer than [`MAX_TERMS`].
const MAX_COLLECTED_BYTES: usize = BYTES_BESIDE * MAX_TERMS / 2;
/// Sixteenths of the memory for quads that wait for terms. They wait until all nodes have had their turns. When there
/// are more, the session stops until all nodes have answered: four times in 88 messages of the data above, with 128 MB.
const WAITING_SIXTEENTHS: usize = 5;

/// Most numbers of blank nodes that are fetched at once: as many as there were in the document so far.
const MAX_NUMBERS_AT_ONCE: usize = 1 << 13;

/// Terms that were sent to a node.
struct Sent {
    /// Citus' number of the group of the node.
    group: i32,
    terms: Collected,
}

/// Gives ids to the terms of one document.
pub struct DistributedEncoder {
    scope: Scope,
    waiting: Waiting<BuildHash>,
    /// Terms by the group of the node that they are collected for, and the bytes of all.
    collected: BTreeMap<i32, Collected>,
    collected_bytes: usize,
    /// What was sent and is not answered; one message a node.
    under_way: Vec<Sent>,
    memory: usize,
    /// Makes the labels of blank nodes of this document differ from those of others.
    document: Option<u128>,
    /// Numbers that blank nodes have got.
    numbers_taken: usize,
    /// The symbols that terms are compressed with, once they have been chosen; the terms before.
    symbols: Option<Numbered>,
    held_back: Vec<New<String>>,
    sampler: Sampler,
    text_bytes: usize,
    next_training: usize,
}

impl DistributedEncoder {
    /// Begins a document; about `memory` bytes may be used, half of them for the terms seen.
    pub fn new(memory: usize) -> Self {
        DistributedEncoder {
            scope: remote::scope(),
            waiting: Waiting::default(),
            collected: BTreeMap::new(),
            collected_bytes: 0,
            under_way: Vec::new(),
            memory,
            document: None,
            numbers_taken: 0,
            symbols: None,
            held_back: Vec::new(),
            sampler: Sampler::default(),
            text_bytes: 0,
            next_training: TRAINING_BYTES.min(memory / HELD_BACK_PART),
        }
    }

    /// As [`super::BulkEncoder::symbols`].
    pub fn symbols(&self) -> Option<&Numbered> {
        self.symbols.as_ref()
    }

    /// As [`super::BulkEncoder::encode`].
    pub fn encode(&mut self, batch: Batch, mut each: impl FnMut(&[Quad])) {
        self.waiting.limit(self.memory / 2, batch.terms.len());
        let marks = self.marks(&batch);
        self.waiting.push(batch.quads, marks);
        while self.collected_bytes >= (self.memory / COLLECTED_PART).min(MAX_COLLECTED_BYTES) {
            self.send_oldest();
        }
        self.take_answers();
        self.waiting.take_ready(&mut each);
        let most = self.memory / 16 * WAITING_SIXTEENTHS;
        if self.waiting.bytes() > most {
            self.receive_all();
            self.waiting.take_ready(&mut each);
        }
        if self.waiting.bytes() > most {
            if !self.held_back.is_empty() {
                self.choose_symbols();
            }
            self.send_all();
            self.waiting.take_ready(&mut each);
        }
    }

    /// As [`super::BulkEncoder::take_answers`].
    pub fn take_answers(&mut self) {
        while self.receive(false) {}
    }

    /// As [`super::BulkEncoder::finish`].
    pub fn finish(mut self, each: impl FnMut(&[Quad])) {
        if self.symbols.is_none() {
            self.choose_symbols();
        }
        self.send_all();
        self.waiting.take_ready(each);
        if !self.waiting.is_empty() {
            damaged(Damaged);
        }
    }

    /// Marks for the terms of a batch, and behind them the one of the default graph. Terms that are not known are
    /// collected.
    fn marks(&mut self, batch: &Batch) -> Vec<Mark> {
        let mut marks = vec![Mark::of_id(TermId::DEFAULT_GRAPH.0); batch.terms.len() + 1];
        let mut blanks: Vec<(u128, usize)> = Vec::new();
        let mut new: Vec<(u128, usize)> = Vec::new();
        for (position, term) in batch.terms.iter().enumerate() {
            if let Some(id) = term.inline {
                marks[position] = Mark::of_id(id.0);
                continue;
            }
            let hash = self.hash(batch, term);
            if let Some(known) = self.waiting.get(hash) {
                marks[position] = known;
            } else if is_label(batch.text(term)) {
                blanks.push((hash, position));
            } else {
                new.push((hash, position));
            }
        }
        let numbers = self.take_numbers(blanks.len());
        for ((hash, position), number) in blanks.into_iter().zip(numbers) {
            let id = TermId::new(tag::BLANK, number).0;
            marks[position] = self.waiting.set(hash, id);
        }
        self.collect(batch, &new, &mut marks);
        marks
    }

    fn hash(&mut self, batch: &Batch, term: &BatchTerm) -> u128 {
        if !is_label(batch.text(term)) {
            return term.hash;
        }
        let document = match self.document {
            Some(document) => document,
            None => {
                // A number of our own stands for the document.
                let number = self.take_numbers(1).next().unwrap_or_default();
                pgquad_term::encoded_hash(&format!("document {number}"))
            }
        };
        self.document = Some(document);
        term.hash ^ document
    }

    /// Numbers for so many blank nodes.
    fn take_numbers(&mut self, count: usize) -> impl Iterator<Item = u64> {
        let at_once = self
            .numbers_taken
            .clamp(NUMBERS_AT_ONCE, MAX_NUMBERS_AT_ONCE);
        self.numbers_taken += count;
        take_numbers_asking(count, at_once, || self.receive_all())
            .into_iter()
            .flatten()
    }

    /// Collects new terms of a batch, given by hash and position.
    fn collect(&mut self, batch: &Batch, new: &[(u128, usize)], marks: &mut [Mark]) {
        let texts = new
            .iter()
            .map(|&(_, position)| batch.text(&batch.terms[position]));
        let languages = language_numbers::numbers_or_add(texts.clone(), || self.receive_all());
        let layout = Layout::newest();
        // Out of `self` while terms are pushed. A copy for each would be counted beside those of the parsers' threads.
        let symbols = self.symbols.take();
        for ((&(hash, position), text), language) in new.iter().zip(texts).zip(languages) {
            let (ticket, mark) = self.waiting.ticket(hash);
            marks[position] = mark;
            self.text_bytes += text.len();
            self.sampler.offer(text);
            let new = New {
                hash,
                text,
                language,
                ticket,
            };
            match &symbols {
                None => self.held_back.push(new.owned()),
                Some(symbols) => {
                    let compressed = batch.compressed(&batch.terms[position], symbols.number);
                    self.push(&layout, new, symbols, compressed);
                }
            }
        }
        self.symbols = symbols;
        let beside = self.held_back.len() * size_of::<New<String>>();
        if self.text_bytes + beside >= self.next_training {
            self.choose_symbols();
        }
    }

    /// Packs a term for its node.
    fn push(
        &mut self,
        layout: &Layout,
        new: New<&str>,
        symbols: &Numbered,
        compressed: Option<Compressed<'_>>,
    ) {
        let shards = remote::shards_of(layout);
        let place = shards.of_hash(new.hash);
        let collected = self.collected.entry(shards.group(place)).or_default();
        self.collected_bytes -= collected.bytes();
        collected.push(shards.id(place), new, symbols, compressed);
        self.collected_bytes += collected.bytes();
    }

    /// Goes on with the symbol tables that suit the terms seen since the last time, and packs what was held back.
    fn choose_symbols(&mut self) {
        let grown = self.text_bytes.saturating_mul(TRAINING_GROWTH);
        self.next_training = grown.max(TRAINING_BYTES);
        let sampler = std::mem::take(&mut self.sampler);
        let in_use = self.symbols.take();
        let mut symbols = in_use
            .unwrap_or_else(|| with_state(|state| state.symbols.newest(&state.layout.tables)));
        if sampler.bytes() >= MIN_TRAINING_BYTES {
            let trained = sampler.train();
            if is_better(&sampler, &trained, &symbols.symbols) {
                self.receive_all();
                symbols = Numbered {
                    number: remote::add_symbols(&trained.to_bytes()),
                    symbols: Arc::new(trained),
                };
            }
        }
        self.symbols = Some(symbols.clone());
        let layout = Layout::newest();
        for held in std::mem::take(&mut self.held_back) {
            self.push(&layout, held.borrowed(), &symbols, None);
        }
    }

    /// Sends what was collected for the node whose terms have waited longest.
    fn send_oldest(&mut self) {
        let oldest = self.collected.iter().min_by_key(|(_, terms)| terms.first());
        if let Some((&group, _)) = oldest {
            self.send(group);
        }
    }

    /// Sends everything that was collected, and takes all answers.
    fn send_all(&mut self) {
        while !self.collected.is_empty() {
            self.send_oldest();
        }
        self.receive_all();
    }

    fn receive_all(&mut self) {
        while self.receive(true) {}
    }

    /// Sends what was collected for a node, once there is room for more that is under way.
    fn send(&mut self, group: i32) {
        check_for_interrupts!();
        let Some(mut terms) = self.collected.remove(&group) else {
            return;
        };
        self.collected_bytes -= terms.bytes();
        terms.end_blocks();
        while self.is_full_with(group, &terms) {
            self.receive(true);
        }
        let layout = Layout::newest();
        let shards = remote::shards_of(&layout);
        let is_there = |shard| shards.place_of_id(shard).map(|place| shards.group(place));
        if terms.shards().any(|shard| is_there(shard) != Some(group)) {
            self.encode_now(&terms);
            return;
        }
        let message = terms.message(|ticket| self.waiting.hash(ticket));
        self.scope.send(group, &message);
        self.under_way.push(Sent { group, terms });
    }

    /// Whether these terms have to wait until more of what is under way has been answered.
    fn is_full_with(&self, group: i32, terms: &Collected) -> bool {
        let bytes: usize = self.under_way.iter().map(|sent| sent.terms.bytes()).sum();
        let is_asked = self.under_way.iter().any(|sent| sent.group == group);
        is_asked || (bytes > 0 && bytes + terms.bytes() > self.memory / UNDER_WAY_PART)
    }

    /// Takes the answer of the node that has answered first; false when none is under way, or has come yet where this
    /// does not `wait`.
    fn receive(&mut self, wait: bool) -> bool {
        let groups: Vec<i32> = self.under_way.iter().map(|sent| sent.group).collect();
        if groups.is_empty() {
            return false;
        }
        let Some((group, answer)) = self.scope.receive_first(&groups, wait) else {
            return false;
        };
        let place = groups.iter().position(|of| *of == group);
        let Some(Sent { terms, .. }) = place.map(|place| self.under_way.swap_remove(place)) else {
            return false;
        };
        match remote::read(&answer) {
            Answer::Moved => self.encode_now(&terms),
            answer => {
                let tickets = terms.tickets();
                let ids = remote::ids_of(answer, tickets.len());
                for (ticket, id) in tickets.into_iter().zip(ids) {
                    let id = id.unwrap_or_else(|| damaged(Damaged));
                    self.waiting.resolve(ticket, id.0);
                }
            }
        }
        true
    }

    /// Gives ids to terms of which some shard has moved, and waits for them. They are sent as text: the node that has
    /// them now may not know the symbols.
    fn encode_now(&mut self, terms: &Collected) {
        self.receive_all();
        let mut new: Vec<New<String>> = Vec::new();
        terms.unpack(|term| new.push(term));
        let with_languages: Vec<(u128, Term<'_>)> = new
            .iter()
            .map(|term| {
                let (text, language) = (&term.text[..], term.language);
                (term.hash, Term { text, language })
            })
            .collect();
        let all = (0..new.len()).collect();
        remote::encode(all, &with_languages, |n, id| {
            self.waiting.resolve(new[n].ticket, id.0);
        });
    }
}
