//! A document on its way into a distributed dictionary: the terms that wait for their ids, and the quads that wait for
//! those terms.
//!
//! A term that is not known gets a *ticket*, a running number that stands in its quads until the term's node has
//! answered. Quads come out in the order in which they went in.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher};
use std::num::NonZeroU64;

/// Marks a ticket. Ids never have the highest bit.
const TICKET: u64 = 1 << 63;

/// Bytes that the map of known terms takes for each entry it has room for: 24 for key and id, one for the map, at most
/// seven eighths full.
const ENTRY_BYTES: usize = 29;

/// An id or a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(u64);

impl Mark {
    /// The mark of an id.
    #[must_use]
    pub fn of_id(id: u64) -> Self {
        debug_assert!(id & TICKET == 0, "ids have 63 bits");
        Mark(id)
    }
}

/// The halves of a hash. (A `u128` would be aligned to 16 bytes and make the map a third larger.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(u64, u64);

impl Key {
    fn new(hash: u128) -> Self {
        Key((hash >> 64) as u64, hash as u64)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.1);
    }
}

/// Quads of one batch.
struct Chunk {
    /// Positions in `marks`; the last mark stands for all that are beyond it.
    quads: Vec<[u32; 4]>,
    marks: Vec<Mark>,
    /// The least ticket in them.
    first: u64,
    /// One more than the greatest.
    end: u64,
}

impl Chunk {
    fn bytes(&self) -> usize {
        size_of_val(&self.quads[..]) + size_of_val(&self.marks[..])
    }
}

/// Terms and quads that wait, and the terms seen lately.
pub struct Waiting<S> {
    known: HashMap<Key, Mark, S>,
    /// Ids that nobody else can tell.
    labels: HashMap<Key, Mark, S>,
    chunks: VecDeque<Chunk>,
    /// Bytes of the chunks.
    bytes: usize,
    /// Terms by ticket, from ticket `base` on, with the id of those that have got one.
    tickets: VecDeque<(Key, Option<NonZeroU64>)>,
    base: u64,
    /// All tickets below have their id.
    done: u64,
}

impl<S: BuildHasher + Default> Default for Waiting<S> {
    fn default() -> Self {
        Waiting {
            known: HashMap::default(),
            labels: HashMap::default(),
            chunks: VecDeque::new(),
            bytes: 0,
            tickets: VecDeque::new(),
            base: 0,
            done: 0,
        }
    }
}

impl<S: BuildHasher + Default> Waiting<S> {
    /// The id of the term with this hash, or the ticket it has.
    #[must_use]
    pub fn get(&self, hash: u128) -> Option<Mark> {
        let key = Key::new(hash);
        let known = self.known.get(&key);
        known.or_else(|| self.labels.get(&key)).copied()
    }

    /// Notes the id of a label, which means something in this document only. It is never forgotten.
    pub fn set(&mut self, hash: u128, id: u64) -> Mark {
        let mark = Mark::of_id(id);
        self.labels.insert(Key::new(hash), mark);
        mark
    }

    /// A ticket for the term with this hash, which is not known: its number, and the mark for quads.
    pub fn ticket(&mut self, hash: u128) -> (u64, Mark) {
        let number = self.base + self.tickets.len() as u64;
        let (key, mark) = (Key::new(hash), Mark(number | TICKET));
        self.tickets.push_back((key, None));
        self.known.insert(key, mark);
        (number, mark)
    }

    /// Gives its id, which is not 0, to the term with this ticket.
    pub fn resolve(&mut self, ticket: u64, id: u64) {
        let Some((key, place)) = self.tickets.get_mut((ticket - self.base) as usize) else {
            return;
        };
        *place = NonZeroU64::new(id);
        self.known.insert(*key, Mark::of_id(id));
        while let Some((_, Some(_))) = self.tickets.get((self.done - self.base) as usize) {
            self.done += 1;
        }
    }

    /// Adds the quads of a batch, by the positions of their terms in a list of marks, which is not empty. The last mark
    /// stands for all positions beyond it.
    pub fn push(&mut self, quads: Vec<[u32; 4]>, marks: Vec<Mark>) {
        let (mut first, mut end) = (u64::MAX, 0);
        for mark in marks.iter().filter(|mark| mark.0 & TICKET != 0) {
            let ticket = mark.0 & !TICKET;
            first = first.min(ticket);
            end = end.max(ticket + 1);
        }
        let chunk = Chunk {
            quads,
            marks,
            first,
            end,
        };
        self.bytes += chunk.bytes();
        self.chunks.push_back(chunk);
    }

    /// Bytes that the quads that wait take, with what is kept of their terms.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let ticket = size_of::<(Key, Option<NonZeroU64>)>();
        self.bytes + ticket * self.tickets.len()
    }

    /// The quads that need not wait any more.
    pub fn take_ready(&mut self) -> Vec<[i64; 4]> {
        let mut ready = Vec::new();
        while let Some(chunk) = self.chunks.front() {
            if chunk.end > self.done {
                break;
            }
            let ids: Vec<i64> = chunk.marks.iter().map(|&mark| self.id(mark)).collect();
            let last = ids.len() - 1;
            let id = |position: u32| ids[(position as usize).min(last)];
            ready.extend(chunk.quads.iter().map(|quad| quad.map(id)));
            self.bytes -= chunk.bytes();
            self.chunks.pop_front();
        }
        self.drop_tickets();
        ready
    }

    fn id(&self, mark: Mark) -> i64 {
        if mark.0 & TICKET == 0 {
            return mark.0 as i64;
        }
        let place = ((mark.0 & !TICKET) - self.base) as usize;
        let (_, id) = self.tickets[place];
        id.expect("tickets of quads that are ready have ids").get() as i64
    }

    /// Drops the tickets that no quad holds and no term waits for.
    fn drop_tickets(&mut self) {
        let held = self.chunks.iter().map(|chunk| chunk.first).min();
        let keep = held.unwrap_or(u64::MAX).min(self.done);
        while self.base < keep {
            self.tickets.pop_front();
            self.base += 1;
        }
    }

    /// Forgets terms that have ids, unless the map with room for `more` of them stays within so many bytes.
    pub fn limit(&mut self, bytes: usize, more: usize) {
        let room = self.known.capacity() - self.known.len();
        if room < more && 2 * self.known.capacity() * ENTRY_BYTES > bytes {
            let waiting = self.tickets.iter().zip(self.base..);
            let waiting = waiting.filter(|((_, id), _)| id.is_none());
            let waiting: Vec<(Key, Mark)> = waiting
                .map(|((key, _), ticket)| (*key, Mark(ticket | TICKET)))
                .collect();
            self.known = HashMap::default();
            self.known.extend(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::hash_map::RandomState;

    const DEFAULT_GRAPH: u64 = 0;

    /// The id that a term gets in the tests.
    fn id_of(term: u8) -> u64 {
        u64::from(term) + 1000
    }

    #[test]
    fn labels_are_not_forgotten() {
        let mut waiting: Waiting<RandomState> = Waiting::default();
        let label = waiting.set(7, 99);
        let (ticket, term) = waiting.ticket(8);
        waiting.limit(0, 1 << 10);
        assert_eq!((waiting.get(7), waiting.get(8)), (Some(label), Some(term)));
        waiting.resolve(ticket, 100);
        waiting.limit(0, 1 << 10);
        assert_eq!((waiting.get(7), waiting.get(8)), (Some(label), None));
    }

    proptest! {
        /// Whatever the order of the answers and the bound of the map, the quads come out with their ids, in order.
        #[test]
        fn quads_come_out_in_order(
            batches in prop::collection::vec(prop::collection::vec(any::<[u8; 3]>(), 0..12), 0..12),
            answers in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
            bytes in prop_oneof![Just(0usize), Just(1 << 20)],
        ) {
            let mut waiting: Waiting<RandomState> = Waiting::default();
            let mut open: Vec<(u64, u8)> = Vec::new();
            let mut answers = answers.into_iter();
            let mut expected: Vec<[i64; 4]> = Vec::new();
            let mut got: Vec<[i64; 4]> = Vec::new();
            for batch in &batches {
                let (mut quads, mut marks) = (Vec::new(), Vec::new());
                for terms in batch {
                    let first = marks.len() as u32;
                    marks.extend(terms.iter().map(|&term| {
                        let hash = u128::from(term) << 64 | u128::from(term);
                        waiting.get(hash).unwrap_or_else(|| {
                            let (ticket, mark) = waiting.ticket(hash);
                            open.push((ticket, term));
                            mark
                        })
                    }));
                    quads.push([first, first + 1, first + 2, u32::MAX]);
                    let [s, p, o] = terms.map(|term| id_of(term) as i64);
                    expected.push([s, p, o, 0]);
                }
                marks.push(Mark::of_id(DEFAULT_GRAPH));
                waiting.push(quads, marks);
                // Some of the answers come.
                for answer in answers.by_ref().take(5) {
                    if !open.is_empty() {
                        let (ticket, term) = open.swap_remove(answer.index(open.len()));
                        waiting.resolve(ticket, id_of(term));
                    }
                }
                got.extend(waiting.take_ready());
                let left: usize = waiting.chunks.iter().map(|chunk| chunk.quads.len()).sum();
                prop_assert_eq!(got.len() + left, expected.len());
                waiting.limit(bytes, 12);
            }
            for (ticket, term) in open {
                waiting.resolve(ticket, id_of(term));
            }
            got.extend(waiting.take_ready());
            prop_assert_eq!(got, expected);
            prop_assert_eq!(waiting.bytes(), 0);
        }
    }
}
