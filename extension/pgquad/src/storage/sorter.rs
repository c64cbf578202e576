//! External sort of keys in one order, on the backend's own thread: in memory up to a limit, then sorted runs in a
//! temporary file, merged on reading. Bulk loads sort in several orders, on threads: `bulk.rs`.

use super::run_files::RunFiles;
use crate::pg::error::raise;
use pgquad_btree::Key;
use pgquad_sort::{encode, Block, Host, Merge, RunReader, Source};
use pgrx::PgSqlErrorCode;
use std::io;

const KEY_BYTES: usize = size_of::<Key>();
/// Least number of keys that are held in memory.
const MIN_KEYS: usize = 4096;
/// The only file of a sorter.
const FILE: usize = 0;

/// Collects keys and gives them back in order, each once.
pub struct Sorter {
    memory: Vec<Key>,
    limit: usize,
    files: RunFiles,
    runs: Vec<Vec<Block>>,
}

impl Sorter {
    /// A sorter that holds at most `bytes` of keys in memory.
    pub fn new(bytes: usize) -> Self {
        Self {
            memory: Vec::new(),
            limit: (bytes / KEY_BYTES).max(MIN_KEYS),
            files: RunFiles::default(),
            runs: Vec::new(),
        }
    }

    /// Adds one key.
    pub fn push(&mut self, key: Key) {
        if self.memory.len() >= self.limit {
            self.spill();
        }
        self.memory.push(key);
    }

    fn sort(&mut self) {
        self.memory.sort_unstable();
        self.memory.dedup();
    }

    fn spill(&mut self) {
        self.sort();
        let mut run = Vec::new();
        encode(&self.memory, |piece| {
            let at = self.files.write(FILE, piece.bytes());
            run.extend(piece.blocks(at));
            true
        });
        self.runs.push(run);
        self.memory.clear();
    }

    /// The keys in ascending order without duplicates.
    pub fn finish(mut self) -> Sorted {
        self.sort();
        let runs = self.runs.into_iter();
        let mut sources: Vec<Input> = runs
            .map(|run| Input::Run(RunReader::new(self.files.reader(FILE), run)))
            .collect();
        sources.push(Input::Memory(self.memory.into_iter()));
        Sorted {
            merge: Merge::new(sources),
            files: Some(self.files),
        }
    }
}

/// What is merged.
enum Input {
    Run(RunReader),
    Memory(std::vec::IntoIter<Key>),
}

impl Source for Input {
    #[inline]
    fn next(&mut self) -> Option<Key> {
        match self {
            Input::Run(run) => run.next(),
            Input::Memory(keys) => keys.next(),
        }
    }

    fn take_error(&mut self) -> Option<io::Error> {
        match self {
            Input::Run(run) => run.take_error(),
            Input::Memory(_) => None,
        }
    }
}

/// Closes files, but not while unwinding: then the transaction's end does.
fn close(files: &mut Option<RunFiles>) {
    if let (Some(files), false) = (files.take(), std::thread::panicking()) {
        files.close();
    }
}

/// The merged output of a [`Sorter`].
pub struct Sorted {
    merge: Merge<Input>,
    files: Option<RunFiles>,
}

impl Iterator for Sorted {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        let key = self.merge.next();
        if key.is_none() {
            if let Some(error) = self.merge.take_error() {
                raise(
                    PgSqlErrorCode::ERRCODE_IO_ERROR,
                    format!("could not read a temporary sort file: {error}"),
                );
            }
        }
        key
    }
}

impl Drop for Sorted {
    fn drop(&mut self) {
        close(&mut self.files);
    }
}
