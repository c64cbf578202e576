//! Encoding of a document in a distributed dictionary.
//!
//! Terms that were not seen lately are collected until there is enough text for blocks in every shard. Then each node
//! gets one message. It finds or adds the terms and answers while the next ones are collected. The quads of their
//! batches wait meanwhile.

use pgquad_cluster::dictionary::{Answer, Request, Term};
use pgquad_cluster::{Damaged, Mark, Waiting};
use pgquad_reader::{Batch, BatchTerm, DEFAULT_GRAPH_POSITION};
use pgquad_term::block::Sampler;
use pgquad_term::{tag, TermId};
use pgrx::check_for_interrupts;

use super::super::language_numbers;
use super::super::layout::Layout;
use super::super::new_numbers::{is_label, take_numbers};
use super::super::remote::{self, Asked};
use super::super::state::{with_state, BuildHash};
use super::training::{is_better, MIN_TRAINING_BYTES, TRAINING_GROWTH};
use crate::cluster::{damaged, Scope};

/// Parts of the memory, one in so many: for text that is collected or under way, each, and for quads that wait.
const TEXT_PART: usize = 8;
const QUADS_PART: usize = 4;

/// Terms that wait for their ids.
#[derive(Default)]
struct Terms {
    text: String,
    /// Where each term's text ends, its hash and its ticket.
    list: Vec<(usize, u128, u64)>,
}

impl Terms {
    fn push(&mut self, hash: u128, text: &str, ticket: u64) {
        self.text.push_str(text);
        self.list.push((self.text.len(), hash, ticket));
    }

    fn text(&self, n: usize) -> &str {
        let start = n.checked_sub(1).map_or(0, |before| self.list[before].0);
        &self.text[start..self.list[n].0]
    }

    /// Forgets the terms and keeps the memory.
    fn clear(&mut self) {
        self.text.clear();
        self.list.clear();
    }

    fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.list.len()).map(|n| self.text(n))
    }
}

/// Terms that were sent.
struct UnderWay {
    terms: Terms,
    languages: Vec<u16>,
    /// The nodes that answer, each for which of the terms.
    nodes: Vec<(i32, Vec<usize>)>,
}

/// Gives ids to the terms of one document.
pub struct DistributedEncoder {
    scope: Scope,
    waiting: Waiting<BuildHash>,
    collected: Terms,
    under_way: Option<UnderWay>,
    /// Memory for the terms that are collected next, so that the system need not give it anew, page by page.
    spare: Terms,
    memory: usize,
    /// Makes the labels of blank nodes of this document differ from those of others.
    document: Option<u128>,
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
            collected: Terms::default(),
            under_way: None,
            spare: Terms::default(),
            memory,
            document: None,
            sampler: Sampler::default(),
            text_bytes: 0,
            next_training: MIN_TRAINING_BYTES,
        }
    }

    /// As [`super::BulkEncoder::encode`].
    pub fn encode(&mut self, batch: &Batch) -> Vec<[i64; 4]> {
        self.waiting.limit(self.memory / 2, batch.terms.len());
        let marks = self.marks(batch);
        let mark = |position: u32| match position {
            DEFAULT_GRAPH_POSITION => Mark::of_id(TermId::DEFAULT_GRAPH.0),
            position => marks[position as usize],
        };
        let quads = batch.quads.iter().map(|quad| quad.map(mark)).collect();
        self.waiting.push(quads);
        if self.collected.text.len() >= self.memory / TEXT_PART {
            self.send();
        }
        let mut ready = self.waiting.take_ready();
        if self.waiting.quads() > self.memory / QUADS_PART / size_of::<[Mark; 4]>() {
            self.send();
            self.receive();
            ready.extend(self.waiting.take_ready());
        }
        ready
    }

    /// As [`super::BulkEncoder::finish`].
    pub fn finish(mut self) -> Vec<[i64; 4]> {
        self.send();
        self.receive();
        self.waiting.take_ready()
    }

    /// Marks for the terms of a batch. Terms that are not known are collected.
    fn marks(&mut self, batch: &Batch) -> Vec<Mark> {
        let mut marks = vec![Mark::of_id(0); batch.terms.len()];
        let mut blanks: Vec<(u128, usize)> = Vec::new();
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
                marks[position] = self.collect(hash, batch.text(term));
            }
        }
        let numbers = take_numbers(blanks.len()).into_iter().flatten();
        for ((hash, position), number) in blanks.into_iter().zip(numbers) {
            // One label may stand in a batch twice.
            let known = self.waiting.get(hash);
            let id = TermId::new(tag::BLANK, number).0;
            marks[position] = known.unwrap_or_else(|| self.waiting.set(hash, id));
        }
        marks
    }

    fn hash(&mut self, batch: &Batch, term: &BatchTerm) -> u128 {
        if !is_label(batch.text(term)) {
            return term.hash;
        }
        let document = *self.document.get_or_insert_with(|| {
            // A number of our own stands for the document.
            let number = take_numbers(1)[0].start;
            pgquad_term::encoded_hash(&format!("document {number}"))
        });
        term.hash ^ document
    }

    fn collect(&mut self, hash: u128, text: &str) -> Mark {
        let (ticket, mark) = self.waiting.ticket(hash);
        self.collected.push(hash, text, ticket);
        self.text_bytes += text.len();
        self.sampler.offer(text);
        mark
    }

    /// Sends what was collected, after the answers to what was sent before.
    fn send(&mut self) {
        check_for_interrupts!();
        self.receive();
        if self.collected.list.is_empty() {
            return;
        }
        self.choose_symbols();
        let terms = std::mem::replace(&mut self.collected, std::mem::take(&mut self.spare));
        let languages = language_numbers::numbers_or_add(terms.texts());
        let layout = Layout::newest();
        let nodes = match &layout.shards {
            None => Vec::new(),
            Some(shards) => {
                let all: Vec<usize> = (0..terms.list.len()).collect();
                let term = |n: usize| Term {
                    text: terms.text(n),
                    language: languages[n],
                };
                let asked = remote::deal(shards, &all, |n| shards.of_hash(terms.list[n].1), term);
                let send = |asked: Asked<Term<'_>>| {
                    let request = Request::Encode(asked.parts).encode();
                    self.scope.send(asked.group, &request);
                    (asked.group, asked.items)
                };
                asked.into_iter().map(send).collect()
            }
        };
        self.under_way = Some(UnderWay {
            terms,
            languages,
            nodes,
        });
    }

    /// Takes the answers to what is under way.
    fn receive(&mut self) {
        let Some(sent) = self.under_way.take() else {
            return;
        };
        let UnderWay {
            mut terms,
            languages,
            nodes,
        } = sent;
        let mut moved = Vec::new();
        for (group, items) in nodes {
            let answer = self.scope.receive(group);
            match remote::read(&answer) {
                Answer::Moved => moved.extend(items),
                answer => {
                    for (&n, id) in items.iter().zip(remote::ids_of(answer, items.len())) {
                        self.resolve(&terms, n, id);
                    }
                }
            }
        }
        if !moved.is_empty() {
            moved.sort_unstable();
            let with_languages: Vec<(u128, Term<'_>)> = (0..terms.list.len())
                .map(|n| {
                    let (text, language) = (terms.text(n), languages[n]);
                    (terms.list[n].1, Term { text, language })
                })
                .collect();
            remote::encode(moved, &with_languages, |n, id| {
                self.resolve(&terms, n, Some(id))
            });
        }
        terms.clear();
        self.spare = terms;
    }

    fn resolve(&mut self, terms: &Terms, n: usize, id: Option<TermId>) {
        let (.., ticket) = terms.list[n];
        let id = id.unwrap_or_else(|| damaged(Damaged));
        self.waiting.resolve(ticket, id.0);
    }

    /// Makes new symbol tables the newest ones where they suit the terms seen since the last time better.
    fn choose_symbols(&mut self) {
        if self.text_bytes < self.next_training {
            return;
        }
        self.next_training = self.text_bytes.saturating_mul(TRAINING_GROWTH);
        let sampler = std::mem::take(&mut self.sampler);
        if sampler.bytes() < MIN_TRAINING_BYTES {
            return;
        }
        let trained = sampler.train();
        let newest = with_state(|state| state.symbols.newest(&state.layout.tables));
        if is_better(&sampler, &trained, &newest.symbols) {
            remote::add_symbols(&trained.to_bytes());
        }
    }
}
