//! The visited set of a transitive closure: a queue of all rows found, and the set that keeps each from being found
//! twice.
//!
//! Both are in memory as long as they are small. A set that has grown too large becomes a sorted run in a temporary
//! file. Rows that are found from then on are compared with the runs, many at a time. Only blocks of a run that can
//! hold one of them are read. The queue goes on in a file of its own.

use crate::pg::interrupt::interrupt;
use crate::storage::TempFile;
use pgrx::pg_sys;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The column that the walk changes, the other one, and which of both are NULL.
pub type Row = [u64; 3];

const ROW_BYTES: usize = size_of::<Row>();
/// Bytes that a row takes in the set, its empty places included.
const SET_BYTES: usize = 2 * ROW_BYTES;
/// Rows compared with the runs at a time, and read from a file at a time (384 kB). Chosen, not measured.
const ROWS_AT_ONCE: usize = 16 * 1024;
/// Rows of a block of a run (6 kB); the first of each block is kept in memory. Chosen, not measured.
const BLOCK_ROWS: usize = 256;
/// Runs: more than this are merged into one. Chosen, not measured.
const MAX_RUNS: usize = 8;

/// Rows hash by a multiplication; ids are no one's choice.
#[derive(Default)]
pub struct RowHasher(u64);

impl Hasher for RowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// A temporary file of rows.
type RowFile = TempFile<Row>;

/// Reads at most `most` rows of a file from row `from` on.
fn read_some(file: &RowFile, from: u64, most: usize, rows: &mut Vec<Row>) {
    let count = most.min(file.records().saturating_sub(from) as usize);
    rows.clear();
    rows.resize(count, [0; 3]);
    file.read(from, rows);
}

/// A file of sorted rows.
struct Run {
    rows: RowFile,
    /// The first row of each block.
    first: Vec<Row>,
}

impl Run {
    fn new(context: pg_sys::MemoryContext) -> Self {
        Self {
            rows: RowFile::new(context),
            first: Vec::new(),
        }
    }

    /// Adds rows that follow those before; all but the last call bring whole blocks.
    fn append(&mut self, rows: &[Row]) {
        self.first.extend(rows.iter().step_by(BLOCK_ROWS));
        self.rows.append(rows);
    }

    /// Takes the rows of the run out of sorted rows.
    fn subtract(&self, rows: &mut Vec<Row>) {
        let (mut block, mut held) = (Vec::new(), None);
        rows.retain(|row| {
            let Some(place) = self
                .first
                .partition_point(|first| first <= row)
                .checked_sub(1)
            else {
                return true;
            };
            if held != Some(place) {
                read_some(
                    &self.rows,
                    (place * BLOCK_ROWS) as u64,
                    BLOCK_ROWS,
                    &mut block,
                );
                held = Some(place);
            }
            block.binary_search(row).is_err()
        });
    }
}

/// The rows of a walk.
pub struct VisitedSet {
    context: pg_sys::MemoryContext,
    most_in_set: usize,
    most_in_queue: usize,
    set: HashSet<Row, BuildHasherDefault<RowHasher>>,
    /// New to the set, and not yet compared with the runs.
    pending: Vec<Row>,
    runs: Vec<Run>,
    /// The queue from row `start` on; what was before it is in the file.
    queue: Vec<Row>,
    start: u64,
    file: Option<RowFile>,
    /// Runs written so far.
    pub spilled: u64,
}

impl VisitedSet {
    /// No rows yet. Uses about `bytes` of memory; files live in `context`.
    pub fn new(bytes: usize, context: pg_sys::MemoryContext) -> Self {
        Self {
            context,
            most_in_set: (bytes / 2 / SET_BYTES).max(64),
            most_in_queue: (bytes / 2 / ROW_BYTES).max(64),
            set: HashSet::default(),
            pending: Vec::new(),
            runs: Vec::new(),
            queue: Vec::new(),
            start: 0,
            file: None,
            spilled: 0,
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.set.clear();
        self.pending.clear();
        self.queue.clear();
        self.start = 0;
        let runs = self.runs.drain(..).map(|run| run.rows);
        runs.chain(self.file.take()).for_each(RowFile::close);
    }

    /// Adds a row if it is new.
    pub fn add(&mut self, row: Row) {
        if self.set.insert(row) {
            self.pending.push(row);
            if self.pending.len() >= ROWS_AT_ONCE || self.set.len() >= self.most_in_set {
                self.enqueue_pending();
            }
        }
    }

    /// Lets all rows added so far be in the queue.
    pub fn enqueue_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        if !self.runs.is_empty() {
            pending.sort_unstable();
            for run in &self.runs {
                run.subtract(&mut pending);
            }
        }
        self.queue.append(&mut pending);
        self.pending = pending;
        if self.queue.len() > self.most_in_queue {
            let file = self.file.get_or_insert_with(|| RowFile::new(self.context));
            file.append(&self.queue);
            self.start += self.queue.len() as u64;
            self.queue.clear();
        }
        if self.set.len() >= self.most_in_set {
            self.spill();
        }
    }

    /// Writes the set as a run.
    fn spill(&mut self) {
        let mut rows: Vec<Row> = self.set.drain().collect();
        rows.sort_unstable();
        let mut run = Run::new(self.context);
        run.append(&rows);
        self.runs.push(run);
        self.spilled += 1;
        if self.runs.len() > MAX_RUNS {
            self.merge();
        }
    }

    /// Makes one run of all.
    fn merge(&mut self) {
        let mut merged = Run::new(self.context);
        let runs = self.runs.iter().map(|run| &run.rows);
        let mut sources: Vec<Source> = runs.map(Source::new).collect();
        let mut out = Vec::with_capacity(ROWS_AT_ONCE);
        loop {
            let least = sources.iter_mut().filter_map(Source::peek).min();
            let Some(row) = least else { break };
            for source in &mut sources {
                source.pass(&row);
            }
            out.push(row);
            if out.len() == ROWS_AT_ONCE {
                interrupt();
                merged.append(&out);
                out.clear();
            }
        }
        merged.append(&out);
        drop(sources);
        let runs = self.runs.drain(..).map(|run| run.rows);
        runs.for_each(RowFile::close);
        self.runs.push(merged);
    }

    /// Number of rows in the queue, whether read or not.
    pub fn len(&self) -> u64 {
        self.start + self.queue.len() as u64
    }

    /// Reads at most `most` rows of the queue from row `from` on.
    pub fn read(&self, from: u64, most: usize, rows: &mut Vec<Row>) {
        if from < self.start {
            if let Some(file) = &self.file {
                return read_some(file, from, most.min((self.start - from) as usize), rows);
            }
        }
        rows.clear();
        let first = (from - self.start) as usize;
        let end = self.queue.len().min(first + most);
        rows.extend_from_slice(&self.queue[first..end]);
    }
}

/// A run that is read from its start to its end.
struct Source<'a> {
    run: &'a RowFile,
    next: u64,
    buffer: Vec<Row>,
    at: usize,
}

impl<'a> Source<'a> {
    fn new(run: &'a RowFile) -> Self {
        Self {
            run,
            next: 0,
            buffer: Vec::new(),
            at: 0,
        }
    }

    fn peek(&mut self) -> Option<Row> {
        if self.at == self.buffer.len() {
            read_some(
                self.run,
                self.next,
                ROWS_AT_ONCE / MAX_RUNS,
                &mut self.buffer,
            );
            self.next += self.buffer.len() as u64;
            self.at = 0;
        }
        self.buffer.get(self.at).copied()
    }

    /// Goes on behind `row` if that is next.
    fn pass(&mut self, row: &Row) {
        if self.peek().as_ref() == Some(row) {
            self.at += 1;
        }
    }
}
