//! Read history: the reads of other nodes that the last run of a query has made.
//!
//! A dashboard asks the same again and again. Each of its queries is a chain of reads, and each read depends on the
//! answers of those before it: a round of messages for each. When the same query runs again, these reads are mostly the
//! same. So all of them are prefetched with its first message. A read that turns out different is asked for as always:
//! the history tells what to ask for, never an answer.
//!
//! Whether a run is believed to repeat the last one is a saturating counter, as in a branch predictor (J. E. Smith, A
//! Study of Branch Prediction Strategies, 1981).

use crate::prefetch::Request;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;

/// Queries that are remembered at most. Those that were asked least recently make room.
const MAX_QUERIES: usize = 2048;
/// Bytes of all remembered reads at most. Those of a query of the Explore mix are some 500.
const MAX_BYTES: usize = 2 << 20;
/// Share of the queries that are forgotten at once, so that looking for the oldest ones costs little.
const FORGOTTEN_SHARE: usize = 4;
/// Bytes of the reads of one query at most.
const MAX_QUERY_BYTES: usize = 256 << 10;
/// Reads of a query at most: what has more takes long, and a round of messages is little of it.
const MAX_READS: usize = 128;
/// Bytes of the answers to these reads at most. They come at once, and wait until they are needed.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Bound of the counter, which goes up with each run that is like the one before, and down with others. Where it is
/// positive, the next run is expected to be like the last one.
const MAX_TRUST: i8 = 2;

/// The reads of the last runs of queries, by a hash that tells queries and their parameters apart.
#[derive(Default)]
pub struct ReadHistory {
    queries: FxHashMap<u64, Remembered>,
    bytes: usize,
    runs: u64,
}

/// What a run reads.
#[derive(Default)]
pub struct Reads {
    /// Each read once, in the order in which they were made.
    pub requests: Vec<Request>,
    /// The tables whose shards they read.
    pub tables: Vec<u32>,
}

/// The last run of a query.
struct Remembered {
    reads: Reads,
    bytes: usize,
    trust: i8,
    /// Number of the last run.
    last: u64,
}

impl ReadHistory {
    /// What the next run of a query will probably read, where that is known.
    #[must_use]
    pub fn expected(&self, query: u64) -> Option<&Reads> {
        let known = self.queries.get(&query);
        known
            .filter(|known| known.trust > 0)
            .map(|known| &known.reads)
    }

    /// The reads of a query were made in vain. They are not expected again until some runs have been alike.
    pub fn distrust(&mut self, query: u64) {
        if let Some(known) = self.queries.get_mut(&query) {
            known.trust = -MAX_TRUST;
        }
    }

    fn forget(&mut self, query: u64) -> Option<Remembered> {
        let forgotten = self.queries.remove(&query)?;
        self.bytes -= forgotten.bytes;
        Some(forgotten)
    }

    /// Takes notice of a run.
    pub fn add(&mut self, run: Run) {
        let old = self.forget(run.query);
        // One read is one message, whether it is foreseen or not.
        if run.is_large || run.reads.requests.len() < 2 {
            return;
        }
        let trust = old.map_or(1, |old| {
            let old_reads = &old.reads.requests;
            let again = old_reads
                .iter()
                .filter(|read| run.seen.contains(&digest(read)));
            let is_alike = 2 * again.count() >= old_reads.len();
            (old.trust + if is_alike { 1 } else { -1 }).clamp(-MAX_TRUST, MAX_TRUST)
        });
        self.runs += 1;
        self.bytes += run.bytes;
        let remembered = Remembered {
            reads: run.reads,
            bytes: run.bytes,
            trust,
            last: self.runs,
        };
        self.queries.insert(run.query, remembered);
        while self.queries.len() > MAX_QUERIES || self.bytes > MAX_BYTES {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let all = self.queries.iter();
        let mut by_age: Vec<(u64, u64)> = all.map(|(query, known)| (known.last, *query)).collect();
        by_age.sort_unstable();
        let oldest = by_age.len().div_ceil(FORGOTTEN_SHARE);
        for (_, query) in &by_age[..oldest] {
            self.forget(*query);
        }
    }
}

fn digest(read: &Request) -> u64 {
    FxBuildHasher.hash_one(read)
}

/// The reads of a run, while it goes on.
pub struct Run {
    query: u64,
    reads: Reads,
    /// Hashes of the reads. If two are equal, one of them is not remembered.
    seen: FxHashSet<u64>,
    bytes: usize,
    answer_bytes: usize,
    is_large: bool,
}

impl Run {
    /// A run of a query begins.
    #[must_use]
    pub fn new(query: u64) -> Self {
        Self {
            query,
            reads: Reads::default(),
            seen: FxHashSet::default(),
            bytes: 0,
            answer_bytes: 0,
            is_large: false,
        }
    }

    /// It reads shards of a table.
    pub fn note_read(&mut self, table: u32, request: &Request) {
        if self.is_large || !self.seen.insert(digest(request)) {
            return;
        }
        self.bytes += request.1.len();
        self.reads.requests.push(request.clone());
        if !self.reads.tables.contains(&table) {
            self.reads.tables.push(table);
        }
        self.is_large = self.reads.requests.len() > MAX_READS || self.bytes > MAX_QUERY_BYTES;
        self.forget_if_large();
    }

    /// It has got an answer of so many bytes.
    pub fn answered(&mut self, bytes: usize) {
        self.answer_bytes += bytes;
        self.is_large |= self.answer_bytes > MAX_ANSWER_BYTES;
        self.forget_if_large();
    }

    fn forget_if_large(&mut self) {
        if self.is_large {
            self.reads = Reads::default();
            self.seen.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(query: u64, reads: &[u8]) -> Run {
        let mut run = Run::new(query);
        for &read in reads {
            run.note_read(9, &(1, vec![read]));
        }
        run
    }

    fn expected(history: &ReadHistory, query: u64) -> Vec<u8> {
        let reads = history.expected(query).into_iter();
        let requests = reads.flat_map(|reads| &reads.requests);
        requests.map(|(_, bytes)| bytes[0]).collect()
    }

    #[test]
    fn the_last_run_is_expected_again() {
        let mut history = ReadHistory::default();
        history.add(run(7, &[1, 2, 1, 3]));
        history.add(run(8, &[4, 5]));
        assert_eq!(expected(&history, 7), [1, 2, 3]);
        assert_eq!(expected(&history, 8), [4, 5]);
        assert!(history.expected(9).is_none());
        history.add(run(7, &[1, 2, 4]));
        assert_eq!(expected(&history, 7), [1, 2, 4]);
    }

    #[test]
    fn runs_that_differ_are_not_believed_until_they_are_alike() {
        let mut history = ReadHistory::default();
        history.add(run(7, &[1, 2]));
        for reads in [[3, 4], [5, 6], [7, 8], [7, 8], [7, 8]] {
            history.add(run(7, &reads));
            assert!(history.expected(7).is_none());
        }
        history.add(run(7, &[7, 8]));
        assert_eq!(expected(&history, 7), [7, 8]);
    }

    #[test]
    fn one_read_is_not_worth_it_nor_is_a_large_run() {
        let mut history = ReadHistory::default();
        history.add(run(7, &[1]));
        assert!(history.expected(7).is_none());
        let mut many = Run::new(8);
        for read in 0..=MAX_READS {
            many.note_read(9, &(1, read.to_le_bytes().to_vec()));
        }
        history.add(many);
        assert!(history.expected(8).is_none());
        let mut much = run(9, &[1, 2]);
        much.answered(MAX_ANSWER_BYTES + 1);
        history.add(run(9, &[1, 2]));
        history.add(much);
        assert!(history.expected(9).is_none() && history.bytes == 0);
    }

    #[test]
    fn memory_is_bounded_and_old_queries_make_room() {
        let mut history = ReadHistory::default();
        for query in 0..2 * MAX_QUERIES as u64 {
            history.add(run(query, &[1, 2]));
            history.add(run(0, &[1, 2]));
        }
        let kept = history.queries.len();
        assert!((MAX_QUERIES - MAX_QUERIES / FORGOTTEN_SHARE..=MAX_QUERIES).contains(&kept));
        assert_eq!(history.bytes, 2 * kept);
        assert_eq!(expected(&history, 0), [1, 2]);
        assert!(history.expected(1).is_none());
        for query in 0..100 {
            let mut large = run(query, &[1]);
            large.note_read(9, &(1, vec![0; MAX_QUERY_BYTES - 1]));
            history.add(large);
            assert!(history.bytes <= MAX_BYTES);
        }
        assert_eq!(history.expected(99).map(|r| r.requests.len()), Some(2));
        assert_eq!(history.expected(99).map(|r| r.tables.len()), Some(1));
        history.distrust(99);
        assert!(history.expected(99).is_none());
    }
}
