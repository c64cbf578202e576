//! Terms decoded ahead of the row that wants them.
//!
//! A node hands out rows one by one, and expressions above it ask for the term of one id after the other. The node,
//! however, has the ids of a whole batch. It offers them ([`Upcoming`]) once it sees that terms of its rows are being
//! read. Where the dictionary is on several nodes, it offers each batch: a term that is not in a chunk is a message
//! there. The first id of an offered column that is wanted brings a chunk of that column. Each distinct id is decoded
//! once, in the order of the dictionary, so each block of terms is looked up once. Nothing depends on an offer: an id
//! that is in no chunk is read by itself.

use std::cell::{Cell, RefCell};

use pgquad_btree::SIGN;
use pgquad_term::TermId;

use super::layout::Layout;
use super::texts::Texts;

/// Most rows of a chunk: those of a batch from shards. Rows of a shard have terms from nearly all blocks of a
/// distributed dictionary, and each chunk reads these once. A chunk of labels is a megabyte.
const CHUNK_ROWS: usize = 16 * 1024;
/// Rows of a column's first chunk, which shows how long its terms are. Later ones have as many as there is room for.
const FIRST_ROWS: usize = 256;
/// Least rows of a later one; rows of a chunk whose terms may not all be wanted.
const LEAST_ROWS: usize = 64;
/// Share of [`CHUNK_BYTES`] that the rows of a chunk are expected to fill: terms that find no room are read one by one.
const FILLED_SHARE: f64 = 0.75;
/// Bytes of text that a chunk is planned for, by the length of the terms in the one before.
pub const CHUNK_BYTES: usize = 2 << 20;
/// Bytes of text from which on no more terms of other nodes are added to a chunk: what finds no room is a message each.
pub const MAX_CHUNK_BYTES: usize = 4 * CHUNK_BYTES;
/// Chunks that are kept: columns that expressions read side by side.
const KEPT_CHUNKS: usize = 8;
/// Rows behind the last one found that are looked at before the whole chunk is searched.
const NEAR_ROWS: usize = 8;
/// After so many ids in a row that no chunk has, the chunks are dropped; an offer likewise.
const MAX_MISSES: u32 = 64;
/// One row of so many has to read a term for the others to be expected to read theirs.
const ROWS_PER_READ: u64 = 4;

thread_local! {
    /// Terms of the dictionary that expressions have read.
    static READS: Cell<u64> = const { Cell::new(0) };
    /// Terms that have been decoded for expressions.
    static DECODED: Cell<u64> = const { Cell::new(0) };
    static OFFERS: RefCell<Vec<Offer>> = const { RefCell::new(Vec::new()) };
    /// Bytes of a term in the last chunk of each column, by node and column.
    static LENGTHS: RefCell<Vec<(ColumnOfNode, f64)>> = const { RefCell::new(Vec::new()) };
    static NEXT_NODE: Cell<u64> = const { Cell::new(0) };
}

/// What a node knows of the ids it is about to hand out.
pub struct Upcoming {
    node: u64,
    rows: u64,
    reads: u64,
    offered: bool,
}

impl Default for Upcoming {
    fn default() -> Self {
        Self::new()
    }
}

impl Upcoming {
    /// Of a node that has not handed out anything.
    pub fn new() -> Self {
        Self {
            node: NEXT_NODE.replace(NEXT_NODE.get() + 1),
            rows: 0,
            reads: 0,
            offered: false,
        }
    }

    /// To be called before the rows of a batch are handed out. `columns` gives the ids of the rows, in the form of
    /// keys, for each column. It is called if terms of the batch before were read, and where each term may be a
    /// message.
    pub fn batch(&mut self, rows: usize, columns: impl FnOnce() -> Vec<Vec<u64>>) {
        let reads = READS.get();
        let is_message = Layout::is_known_distributed();
        let expected = match self.rows {
            0 => is_message,
            before => (reads - self.reads) * ROWS_PER_READ >= before,
        };
        (self.rows, self.reads) = (rows as u64, reads);
        self.withdraw();
        if expected || is_message {
            self.offered = true;
            let offer = Offer::new(self.node, columns(), expected);
            OFFERS.with_borrow_mut(|offers| offers.push(offer));
        }
    }

    /// Takes back what was offered last.
    pub fn withdraw(&mut self) {
        if std::mem::take(&mut self.offered) {
            OFFERS.with_borrow_mut(|offers| offers.retain(|offer| offer.node != self.node));
        }
    }
}

impl Drop for Upcoming {
    fn drop(&mut self) {
        self.withdraw();
        LENGTHS.with_borrow_mut(|lengths| lengths.retain(|(of, _)| of.node != self.node));
    }
}

/// The node that ids outside of a batch of rows are offered by.
const NO_NODE: u64 = u64::MAX;

/// Offers ids, in the form of keys, whose terms will be read column by column, in the place of those that were offered
/// here before. Unlike those of a batch ([`Upcoming`]) they are sure to be read.
pub fn offer(columns: Vec<Vec<u64>>) {
    OFFERS.with_borrow_mut(|offers| {
        offers.retain(|offer| offer.node != NO_NODE);
        if columns.iter().any(|keys| !keys.is_empty()) {
            offers.push(Offer::new(NO_NODE, columns, true));
        }
    });
}

/// The ids of a batch.
struct Offer {
    node: u64,
    columns: Vec<Column>,
    misses: u32,
    /// Many rows are expected to read their terms ([`ROWS_PER_READ`]).
    expected: bool,
}

/// A column of the rows that a node offers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ColumnOfNode {
    node: u64,
    column: usize,
}

impl ColumnOfNode {
    /// Rows of its next chunk.
    fn chunk_rows(self) -> usize {
        let length = LENGTHS.with_borrow(|all| all.iter().find(|(of, _)| *of == self).map(|l| l.1));
        length.map_or(FIRST_ROWS, |bytes| {
            let rows = CHUNK_BYTES as f64 * FILLED_SHARE / bytes;
            (rows as usize).clamp(LEAST_ROWS, CHUNK_ROWS)
        })
    }

    /// Notes how long the terms of a chunk are.
    fn note(self, texts: &Texts) {
        let bytes = texts.bytes.len().max(1) as f64 / texts.ends.len().max(1) as f64;
        LENGTHS.with_borrow_mut(|all| match all.iter_mut().find(|(of, _)| *of == self) {
            Some((_, known)) => *known = bytes,
            None => all.push((self, bytes)),
        });
    }
}

struct Column {
    keys: Vec<u64>,
    /// Rows up to here are in a chunk, or behind what was wanted first.
    taken: usize,
    /// Rows of the last chunk, and [`READS`] when it was taken.
    last_rows: usize,
    last_reads: u64,
}

impl Column {
    /// Whether many of the rows from the last chunk's first one up to the one that is `skipped` rows behind its end
    /// have read a term ([`ROWS_PER_READ`]), of this column or another one.
    fn is_read(&self, skipped: usize) -> bool {
        let passed = (self.last_rows + skipped) as u64;
        self.last_rows > 0 && (READS.get() - self.last_reads) * ROWS_PER_READ >= passed
    }
}

/// Terms of some rows of a column.
struct Chunk {
    /// Their numbers in the dictionary, ascending.
    numbers: Vec<u64>,
    /// The terms.
    texts: Texts,
    /// The place of each row's term.
    rows: Vec<u32>,
    /// The first row of each term.
    first: Vec<u32>,
    /// The row that was found last.
    at: usize,
    /// The chunk that was found in after this one, the last time.
    followed_by: usize,
}

/// The chunks of this backend.
#[derive(Default)]
pub struct Ahead {
    chunks: Vec<Chunk>,
    /// The chunk that was found in last.
    last: usize,
    /// Ids in a row that no chunk had.
    misses: u32,
}

/// Counts a term that an expression reads.
pub fn count_read() {
    READS.set(READS.get() + 1);
}

/// Counts terms that are decoded for expressions.
pub fn count_decoded(terms: usize) {
    DECODED.set(DECODED.get() + terms as u64);
}

/// Terms decoded for expressions so far.
pub fn decoded() -> u64 {
    DECODED.get()
}

impl Ahead {
    /// Puts in a chunk of rows, with the terms of these numbers.
    pub fn put(&mut self, rows: Rows, numbers: Vec<u64>, texts: Texts) {
        rows.of.note(&texts);
        if self.chunks.len() == KEPT_CHUNKS {
            self.chunks.remove(0);
        }
        self.chunks.push(Chunk::new(&rows, numbers, texts));
        // Places have changed.
        self.last = 0;
        let chunks = self.chunks.iter_mut();
        chunks.for_each(|chunk| chunk.followed_by = 0);
    }

    /// The encoded term with this number, if a chunk has it.
    #[inline]
    pub fn look(&mut self, number: u64) -> Option<&str> {
        if self.chunks.is_empty() {
            return None;
        }
        let Some(found) = self.find(number) else {
            self.misses += 1;
            if self.misses == MAX_MISSES {
                *self = Self::default();
            }
            return None;
        };
        self.misses = 0;
        self.chunks[self.last].followed_by = found;
        self.last = found;
        let chunk = &self.chunks[found];
        Some(chunk.texts.get(chunk.rows[chunk.at] as usize))
    }

    /// The chunk that has the term, moved to its row. Expressions take the columns of each row in the same order.
    fn find(&mut self, number: u64) -> Option<usize> {
        let expected = self.chunks[self.last].followed_by;
        if self.chunks[expected].find_near(number) {
            return Some(expected);
        }
        let chunks = &mut self.chunks;
        let near = chunks.iter_mut().position(|chunk| chunk.find_near(number));
        near.or_else(|| chunks.iter_mut().position(|chunk| chunk.find(number)))
    }
}

/// The rows of a chunk that has this id, if a column that was offered has it.
pub fn offered(id: TermId) -> Option<Rows> {
    OFFERS.with_borrow_mut(|offers| {
        let mut from = |expected: bool| {
            let offers = offers.iter_mut().rev();
            let mut offers = offers.filter(|offer| offer.expected == expected);
            offers.find_map(|offer| offer.take(id))
        };
        let rows = from(true).or_else(|| from(false));
        offers.retain(|offer| offer.misses < MAX_MISSES);
        rows
    })
}

/// Rows whose terms are to be decoded: the dictionary's number of each. What ids tell is left out.
pub struct Rows {
    numbers: Vec<u64>,
    of: ColumnOfNode,
}

impl Rows {
    fn new(keys: &[u64], of: ColumnOfNode) -> Self {
        let number = |&key: &u64| TermId(key ^ SIGN).dictionary_number();
        Rows {
            numbers: keys.iter().filter_map(number).collect(),
            of,
        }
    }

    /// The distinct numbers, ascending.
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

impl Offer {
    fn new(node: u64, columns: Vec<Vec<u64>>, expected: bool) -> Self {
        let column = |keys| Column {
            keys,
            taken: 0,
            last_rows: 0,
            last_reads: 0,
        };
        Self {
            node,
            columns: columns.into_iter().map(column).collect(),
            misses: 0,
            expected,
        }
    }

    /// The rows from the first with this id on, or from before it, as many as a chunk has.
    fn take(&mut self, id: TermId) -> Option<Rows> {
        let key = id.0 ^ SIGN;
        let node = self.node;
        for (number, column) in self.columns.iter_mut().enumerate() {
            let of = ColumnOfNode {
                node,
                column: number,
            };
            let rest = &column.keys[column.taken..];
            if let Some(first) = rest.iter().position(|&k| k == key) {
                let most = match self.expected || column.is_read(first) {
                    true => of.chunk_rows(),
                    false => LEAST_ROWS,
                };
                // Rows that are sure to be wanted are not left out.
                let start = if node == NO_NODE && first < most {
                    0
                } else {
                    first
                };
                let rest = &rest[start..];
                let keys = &rest[..rest.len().min(most)];
                let rows = Rows::new(keys, of);
                column.taken += start + keys.len();
                (column.last_rows, column.last_reads) = (keys.len(), READS.get());
                self.misses = 0;
                return Some(rows);
            }
        }
        self.misses += 1;
        None
    }
}

impl Chunk {
    /// The terms of rows whose numbers are among these, which ascend.
    fn new(rows: &Rows, numbers: Vec<u64>, texts: Texts) -> Self {
        count_decoded(numbers.len());
        let place = |number: &u64| numbers.binary_search(number).ok();
        let rows: Vec<u32> = rows
            .numbers
            .iter()
            .filter_map(place)
            .map(|n| n as u32)
            .collect();
        let mut first = vec![0; numbers.len()];
        for (row, &place) in rows.iter().enumerate().rev() {
            first[place as usize] = row as u32;
        }
        Self {
            numbers,
            texts,
            rows,
            first,
            at: 0,
            followed_by: 0,
        }
    }

    /// Moves to a row with this number that is the current one or just behind it; false if there is none.
    #[inline]
    fn find_near(&mut self, number: u64) -> bool {
        let near = self.rows[self.at..].iter().take(NEAR_ROWS);
        let distance = near
            .enumerate()
            .find(|(_, &place)| self.numbers[place as usize] == number);
        if let Some((distance, _)) = distance {
            self.at += distance;
        }
        distance.is_some()
    }

    /// Moves to the first row with this number; false if there is none.
    fn find(&mut self, number: u64) -> bool {
        let found = self.numbers.binary_search(&number);
        if let Ok(place) = found {
            self.at = self.first[place] as usize;
        }
        found.is_ok()
    }
}
