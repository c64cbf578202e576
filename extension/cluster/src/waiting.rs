//! A document on its way into a distributed dictionary: the terms that wait for their ids, and the quads that wait for
//! those terms.
//!
//! A term that is not known gets a *ticket*, a running number that stands in its quads until the term's node has
//! answered. Quads come out in the order in which they went in.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher};

/// Marks a ticket. Ids never have the highest bit.
const TICKET: u64 = 1 << 63;

/// Bytes that the map of known terms takes for each entry it has room for: 20 for key and ticket, one for the map,
/// at most seven eighths full; and 8 for the id.
const ENTRY_BYTES: usize = 32;

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

/// A hash. (A `u128` would be aligned to 16 bytes and make the map half as large again.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key([u32; 4]);

impl Key {
    fn new(hash: u128) -> Self {
        Key([0, 32, 64, 96].map(|bits| (hash >> bits) as u32))
    }

    fn value(self) -> u128 {
        let parts = self.0.iter().rev();
        parts.fold(0, |hash, &part| hash << 32 | u128::from(part))
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0[1]) << 32 | u64::from(self.0[0]));
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
///
/// Terms are remembered in two generations, as in `pgquad_term::cache`. When the younger one is full, the older one is
/// forgotten, and the younger one takes its place. A term of the older one that has its id joins the younger one when
/// it is seen again. So those that a document repeats, like its predicates, are never forgotten, and no other node is
/// asked for them twice.
pub struct Waiting<S> {
    /// The terms by the lower halves of their tickets. An answer changes nothing here. Beside those with tickets from
    /// `first_young` on there are older ones that still waited when their generation was forgotten.
    young: HashMap<Key, u32, S>,
    old: HashMap<Key, u32, S>,
    /// The least ticket of the younger generation.
    first_young: u64,
    /// The ids of the terms with tickets from `base` on; 0 where they have none yet.
    ids: Vec<u64>,
    base: u64,
    /// Ids that nobody else can tell.
    labels: HashMap<Key, Mark, S>,
    chunks: VecDeque<Chunk>,
    /// Bytes of the chunks.
    bytes: usize,
    /// The terms with tickets from `done` on, which is the first that has no id. Some of the others may have theirs.
    open: VecDeque<Key>,
    done: u64,
    /// Memory for the ids of a batch and for its quads: new memory costs a page fault for each of its pages.
    buffers: (Vec<i64>, Vec<[i64; 4]>),
}

impl<S: BuildHasher + Default> Default for Waiting<S> {
    fn default() -> Self {
        Waiting {
            young: HashMap::default(),
            old: HashMap::default(),
            first_young: 0,
            ids: Vec::new(),
            base: 0,
            labels: HashMap::default(),
            chunks: VecDeque::new(),
            bytes: 0,
            open: VecDeque::new(),
            done: 0,
            buffers: Default::default(),
        }
    }
}

impl<S: BuildHasher + Default> Waiting<S> {
    /// The id of the term with this hash, or the ticket it has.
    #[must_use]
    pub fn get(&mut self, hash: u128) -> Option<Mark> {
        let key = Key::new(hash);
        let young = self.young.get(&key);
        if let Some(mark) = young.and_then(|&ticket| self.mark(ticket)) {
            return Some(mark);
        }
        let old = self.old.get(&key);
        if let Some(mark) = old.and_then(|&ticket| self.mark(ticket)) {
            if mark.0 & TICKET == 0 {
                self.add(key, mark.0);
            }
            return Some(mark);
        }
        self.labels.get(&key).copied()
    }

    /// The mark of a term by the lower half of its ticket; `None` where its id has been forgotten.
    fn mark(&self, ticket: u32) -> Option<Mark> {
        let place = ticket.wrapping_sub(self.base as u32);
        match *self.ids.get(place as usize)? {
            0 => Some(Mark((self.base + u64::from(place)) | TICKET)),
            id => Some(Mark::of_id(id)),
        }
    }

    /// Adds a term to the younger generation, with its id or 0; its ticket.
    fn add(&mut self, key: Key, id: u64) -> u64 {
        let ticket = self.base + self.ids.len() as u64;
        self.ids.push(id);
        self.open.push_back(key);
        self.young.insert(key, ticket as u32);
        self.pass_done();
        ticket
    }

    /// Notes the id of a label, which means something in this document only. It is never forgotten.
    pub fn set(&mut self, hash: u128, id: u64) -> Mark {
        let mark = Mark::of_id(id);
        self.labels.insert(Key::new(hash), mark);
        mark
    }

    /// A ticket for the term with this hash, which is not known: its number, and the mark for quads.
    pub fn ticket(&mut self, hash: u128) -> (u64, Mark) {
        let number = self.add(Key::new(hash), 0);
        (number, Mark(number | TICKET))
    }

    /// The hash of the term with this ticket, which waits for its id.
    ///
    /// # Panics
    /// No term waits with this ticket.
    #[must_use]
    pub fn hash(&self, ticket: u64) -> u128 {
        self.open[(ticket - self.done) as usize].value()
    }

    /// Gives its id, which is not 0, to the term with this ticket.
    pub fn resolve(&mut self, ticket: u64, id: u64) {
        let place = ticket.checked_sub(self.base);
        if let Some(place) = place.and_then(|place| self.ids.get_mut(place as usize)) {
            *place = id;
            self.pass_done();
        }
    }

    fn pass_done(&mut self) {
        while self.ids.get((self.done - self.base) as usize) > Some(&0) {
            self.open.pop_front();
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
        self.bytes + size_of::<Key>() * self.open.len()
    }

    /// Whether quads wait for terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Calls `each` with the quads that need not wait any more, batch by batch.
    pub fn take_ready(&mut self, mut each: impl FnMut(&[[i64; 4]])) {
        let (mut ids, mut ready) = std::mem::take(&mut self.buffers);
        while let Some(chunk) = self.chunks.front().filter(|chunk| chunk.end <= self.done) {
            ids.clear();
            ids.extend(chunk.marks.iter().map(|&mark| self.id(mark)));
            let last = ids.len() - 1;
            let id = |position: u32| ids[(position as usize).min(last)];
            ready.clear();
            ready.extend(chunk.quads.iter().map(|quad| quad.map(id)));
            self.bytes -= chunk.bytes();
            self.chunks.pop_front();
            each(&ready);
        }
        self.buffers = (ids, ready);
    }

    /// The id of a term of quads that are ready.
    fn id(&self, mark: Mark) -> i64 {
        match mark.0 & TICKET {
            0 => mark.0 as i64,
            _ => self.ids[((mark.0 & !TICKET) - self.base) as usize] as i64,
        }
    }

    /// Begins a new generation and forgets the older one, but for terms that wait, unless the maps with room for `more`
    /// terms stay within so many bytes.
    pub fn limit(&mut self, bytes: usize, more: usize) {
        let room = self.young.capacity() - self.young.len();
        let is_full = room < more && 2 * self.young.capacity() * ENTRY_BYTES > bytes / 2;
        if !is_full && self.ids.len() + more <= u32::MAX as usize {
            return;
        }
        self.old = std::mem::take(&mut self.young);
        // Quads that wait hold the tickets of terms that have got their ids.
        let held = self.chunks.iter().map(|chunk| chunk.first).min();
        let new_base = held
            .unwrap_or(u64::MAX)
            .min(self.done)
            .min(self.first_young);
        let waiting = self.open.iter().zip(self.done..);
        let waiting = waiting.take_while(|(_, ticket)| *ticket < self.first_young);
        let waiting = waiting.filter(|(_, n)| self.ids[(n - self.base) as usize] == 0);
        let waiting: Vec<(Key, u32)> = waiting.map(|(key, n)| (*key, n as u32)).collect();
        self.young.extend(waiting);
        self.first_young = self.base + self.ids.len() as u64;
        self.ids.drain(..(new_base - self.base) as usize);
        self.base = new_base;
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
        for _ in 0..3 {
            waiting.limit(0, 1 << 10);
            assert_eq!((waiting.get(7), waiting.get(8)), (Some(label), Some(term)));
        }
        waiting.resolve(ticket, 100);
        for other in 9..12 {
            waiting.ticket(other);
            waiting.limit(0, 1 << 10);
        }
        assert_eq!((waiting.get(7), waiting.get(8)), (Some(label), None));
    }

    /// Terms that are seen between two forgettings are kept, and their ids with them.
    #[test]
    fn what_is_seen_again_is_kept() {
        let mut waiting: Waiting<RandomState> = Waiting::default();
        for hash in 1..100 {
            let (ticket, _) = waiting.ticket(hash);
            waiting.resolve(ticket, 1000 + hash as u64);
        }
        for round in 0..10 {
            waiting.limit(0, 1 << 10);
            for hash in 1..10 {
                let id = Mark::of_id(1000 + hash as u64);
                assert_eq!(waiting.get(hash), Some(id));
            }
            let (ticket, _) = waiting.ticket(1_000 + round);
            waiting.resolve(ticket, 7);
        }
        assert!((10..100).all(|hash| waiting.get(hash).is_none()));
        assert!(waiting.ids.len() < 30);
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
                waiting.take_ready(|quads| got.extend_from_slice(quads));
                let left: usize = waiting.chunks.iter().map(|chunk| chunk.quads.len()).sum();
                prop_assert_eq!(got.len() + left, expected.len());
                waiting.limit(bytes, 12);
            }
            for (ticket, term) in open {
                waiting.resolve(ticket, id_of(term));
            }
            waiting.take_ready(|quads| got.extend_from_slice(quads));
            prop_assert_eq!(got, expected);
            prop_assert_eq!(waiting.bytes(), 0);
        }
    }
}
