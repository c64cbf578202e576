//! Encoding of a document in a distributed dictionary.
//!
//! Terms that were not seen lately are collected for the nodes that give them their ids. When there is enough text, the
//! node with the most gets a message. It finds or adds the terms and answers while the next ones are collected. The
//! quads of their batches wait meanwhile.
//!
//! A message costs its node a new version of most leaves of its `term_ids`, whatever is in it. So messages are to be
//! large. One node after the other gets one: then each has nearly twice its share of the memory when its turn comes. And
//! the nodes are at work all the time, not all at once.

use std::collections::{BTreeMap, VecDeque};

use pgquad_cluster::dictionary::{Answer, Request, Term};
use pgquad_cluster::{Damaged, Mark, Waiting};
use pgquad_reader::{Batch, BatchTerm, DEFAULT_GRAPH_POSITION};
use pgquad_term::block::Sampler;
use pgquad_term::{tag, TermId};
use pgrx::check_for_interrupts;

use super::super::language_numbers;
use super::super::layout::Layout;
use super::super::new_numbers::{is_label, take_numbers};
use super::super::remote;
use super::super::state::{with_state, BuildHash};
use super::training::{is_better, MIN_TRAINING_BYTES, TRAINING_GROWTH};
use crate::cluster::{damaged, Scope};

/// Parts of the memory, one in so many: for text that is collected, for text that is under way, and for quads that
/// wait.
const COLLECTED_PART: usize = 8;
const UNDER_WAY_PART: usize = 8;
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

/// Terms that were sent to a node.
struct Sent {
    /// Citus' number of the group of the node.
    group: i32,
    terms: Terms,
    languages: Vec<u16>,
    /// The terms, by their numbers, in the order of the message.
    items: Vec<usize>,
}

/// Gives ids to the terms of one document.
pub struct DistributedEncoder {
    scope: Scope,
    waiting: Waiting<BuildHash>,
    /// Terms by the group of the node that they are collected for, and the bytes of their text.
    collected: BTreeMap<i32, Terms>,
    collected_bytes: usize,
    /// What was sent and is not answered, the oldest first; one message a node.
    under_way: VecDeque<Sent>,
    /// Memory for the terms that are collected next, so that the system need not give it anew, page by page.
    spare: Vec<Terms>,
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
            collected: BTreeMap::new(),
            collected_bytes: 0,
            under_way: VecDeque::new(),
            spare: Vec::new(),
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
        while self.collected_bytes >= self.memory / COLLECTED_PART {
            self.send_most();
        }
        let mut ready = self.waiting.take_ready();
        let most = self.memory / QUADS_PART / size_of::<[Mark; 4]>();
        if self.waiting.quads() > most {
            self.receive_all();
            ready.extend(self.waiting.take_ready());
        }
        if self.waiting.quads() > most {
            self.send_all();
            ready.extend(self.waiting.take_ready());
        }
        ready
    }

    /// As [`super::BulkEncoder::finish`].
    pub fn finish(mut self) -> Vec<[i64; 4]> {
        self.send_all();
        self.waiting.take_ready()
    }

    /// Marks for the terms of a batch. Terms that are not known are collected.
    fn marks(&mut self, batch: &Batch) -> Vec<Mark> {
        let layout = Layout::newest();
        let shards = remote::shards_of(&layout);
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
                let group = shards.group(shards.of_hash(hash));
                marks[position] = self.collect(group, hash, batch.text(term));
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

    fn collect(&mut self, group: i32, hash: u128, text: &str) -> Mark {
        let (ticket, mark) = self.waiting.ticket(hash);
        let spare = &mut self.spare;
        let terms = self.collected.entry(group);
        let terms = terms.or_insert_with(|| spare.pop().unwrap_or_default());
        terms.push(hash, text, ticket);
        self.collected_bytes += text.len();
        self.text_bytes += text.len();
        self.sampler.offer(text);
        mark
    }

    /// Sends what was collected for the node that has the most.
    fn send_most(&mut self) {
        let most = self
            .collected
            .iter()
            .max_by_key(|(_, terms)| terms.text.len());
        if let Some((&group, _)) = most {
            self.send(group);
        }
    }

    /// Sends everything that was collected, and takes all answers.
    fn send_all(&mut self) {
        while !self.collected.is_empty() {
            self.send_most();
        }
        self.receive_all();
    }

    fn receive_all(&mut self) {
        while !self.under_way.is_empty() {
            self.receive();
        }
    }

    /// Sends what was collected for a node, once there is room for more that is under way.
    fn send(&mut self, group: i32) {
        check_for_interrupts!();
        let Some(terms) = self.collected.remove(&group) else {
            return;
        };
        self.collected_bytes -= terms.text.len();
        while self.is_full_with(group, &terms) {
            self.receive();
        }
        self.choose_symbols();
        let languages = language_numbers::numbers_or_add(terms.texts());
        let layout = Layout::newest();
        let all: Vec<usize> = (0..terms.list.len()).collect();
        let shards = remote::shards_of(&layout);
        let term = |n: usize| Term {
            text: terms.text(n),
            language: languages[n],
        };
        let asked = remote::deal(shards, &all, |n| shards.of_hash(terms.list[n].1), term);
        // Shards that have moved since are another node's, which may have a message under way.
        let (here, moved): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|asked| asked.group == group);
        let mut items = Vec::new();
        for asked in here {
            self.scope
                .send(group, &Request::Encode(asked.parts).encode());
            items = asked.items;
        }
        let moved: Vec<usize> = moved.into_iter().flat_map(|asked| asked.items).collect();
        self.encode_now(&terms, &languages, moved);
        self.under_way.push_back(Sent {
            group,
            terms,
            languages,
            items,
        });
    }

    /// Whether these terms have to wait until more of what is under way has been answered.
    fn is_full_with(&self, group: i32, terms: &Terms) -> bool {
        let bytes: usize = self
            .under_way
            .iter()
            .map(|sent| sent.terms.text.len())
            .sum();
        let is_asked = self.under_way.iter().any(|sent| sent.group == group);
        is_asked || (bytes > 0 && bytes + terms.text.len() > self.memory / UNDER_WAY_PART)
    }

    /// Takes the answer to the oldest message that is under way.
    fn receive(&mut self) {
        let Some(sent) = self.under_way.pop_front() else {
            return;
        };
        let Sent {
            group,
            mut terms,
            languages,
            items,
        } = sent;
        if !items.is_empty() {
            let answer = self.scope.receive(group);
            match remote::read(&answer) {
                Answer::Moved => self.encode_now(&terms, &languages, items),
                answer => {
                    for (&n, id) in items.iter().zip(remote::ids_of(answer, items.len())) {
                        self.resolve(&terms, n, id);
                    }
                }
            }
        }
        terms.clear();
        self.spare.push(terms);
    }

    /// Gives ids to terms whose shards have moved, and waits for them.
    fn encode_now(&mut self, terms: &Terms, languages: &[u16], mut items: Vec<usize>) {
        if items.is_empty() {
            return;
        }
        items.sort_unstable();
        let with_languages: Vec<(u128, Term<'_>)> = (0..terms.list.len())
            .map(|n| {
                let (text, language) = (terms.text(n), languages[n]);
                (terms.list[n].1, Term { text, language })
            })
            .collect();
        remote::encode(items, &with_languages, |n, id| {
            self.resolve(terms, n, Some(id))
        });
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
