//! Quads sorted in several orders on threads: crate `pgquad-sort` with the temporary files of PostgreSQL.

use super::buffers::RelationStore;
use super::error::fail;
use super::run_files::RunFiles;
use crate::pg::error::{raise, raise_detail};
use pgquad_btree::{Key, Order, Quad, Tree};
use pgquad_sort::{build, Chunks, Error, Sorted, Sorter};
use pgrx::PgSqlErrorCode;

/// Collects quads.
pub struct QuadSorter {
    sorter: Sorter,
    files: RunFiles,
}

impl QuadSorter {
    /// A sorter for these orders that holds about `bytes` of quads in memory.
    pub fn new(orders: &[Order], bytes: usize) -> Self {
        Self {
            sorter: Sorter::new(orders, bytes),
            files: RunFiles::default(),
        }
    }

    /// Adds quads in any order, with repetitions.
    pub fn push(&mut self, quads: &[Quad]) {
        let pushed = self.sorter.push(quads, &mut self.files);
        pushed.unwrap_or_else(|error| sort_failed(error));
    }

    /// Ends the input.
    pub fn finish(mut self) -> SortedQuads {
        let sorted = self.sorter.finish(&mut self.files);
        SortedQuads {
            sorted: sorted.unwrap_or_else(|error| sort_failed(error)),
            files: self.files,
        }
    }
}

/// Quads in ascending order, each once, in each of the orders. They have to be closed, unless an error ends the
/// statement.
pub struct SortedQuads {
    sorted: Sorted,
    files: RunFiles,
}

impl SortedQuads {
    /// Number of orders.
    pub fn orders(&self) -> usize {
        self.sorted.orders()
    }

    /// Begins to merge the keys of order number `n` on a thread.
    pub fn chunks(&self, n: usize) -> Chunks {
        let chunks = Chunks::start(self.sorted.stream(n, &self.files), &self.files);
        chunks.unwrap_or_else(|error| sort_failed(error))
    }

    /// The next keys of what [`Self::chunks`] has begun; `None` at the end.
    pub fn next(&self, chunks: &mut Chunks) -> Option<Vec<Key>> {
        let chunk = chunks.next(&self.files);
        chunk.unwrap_or_else(|error| sort_failed(error))
    }

    /// Builds empty trees of all orders: [`pgquad_sort::build()`]. Returns the number of quads.
    pub fn build(&self, trees: &[Tree<RelationStore>], writer: (u32, u32), fill: f64) -> u64 {
        let built = build(trees, &self.sorted, writer, fill, &self.files);
        built.unwrap_or_else(|error| sort_failed(error))
    }

    /// Removes the files. Threads that still read them can do so.
    pub fn close(self) {
        self.files.close();
    }
}

/// Raises an error of the sort with its SQLSTATE.
pub fn sort_failed(error: Error) -> ! {
    match error {
        Error::Tree(error) => fail(error),
        Error::Read(_) => raise(PgSqlErrorCode::ERRCODE_IO_ERROR, error.to_string()),
        Error::Thread(what) => raise_detail(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
            "a thread that sorts or builds failed",
            what,
        ),
        Error::Differ { .. } => raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string()),
    }
}
