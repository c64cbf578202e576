//! The values of one column of a key range, wherever the column is in the order, and how many keys have each.

use crate::count::Work;
use crate::error::Result;
use crate::filter::{known_count, Filter, Filtered};
use crate::inner::DEFAULT_GRAPH_ONLY;
use crate::key::Key;
use crate::key::GRAPH;
use crate::packed::Run;
use crate::scan::Sink;
use crate::store::{PageStore, Snapshot};
use crate::tree::Tree;
use crate::visibility_marks::DEFAULT_GRAPH_KEY;

/// Hands on the values of a column, those of neighbours together.
struct Values<F> {
    column: usize,
    scratch: Vec<u64>,
    each: F,
}

impl<F: FnMut(u64, u64)> Sink for Values<F> {
    fn range(&mut self, run: &Run<'_, 4>, lo: usize, hi: usize) {
        if let Some(value) = run.constant(self.column) {
            return (self.each)(value, (hi - lo) as u64);
        }
        self.scratch.clear();
        run.unpack(self.column, lo, hi, &mut self.scratch);
        for equal in self.scratch.chunk_by(|a, b| a == b) {
            (self.each)(equal[0], equal.len() as u64);
        }
    }

    fn key(&mut self, key: &Key) {
        (self.each)(key[self.column], 1);
    }
}

impl<S: PageStore> Tree<S> {
    /// Calls `each` for the values of key column `column` and the number of keys that have it, any number of times for
    /// each value. The keys are those from `lower` to `upper`, both included, that the snapshot sees and that pass the
    /// filters. Leaves known to hold quads of the default graph only are not read for graphs, nor are those known to
    /// hold nothing that passes.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn column_values(
        &self,
        (lower, upper): (&Key, &Key),
        column: usize,
        filters: &[Filter],
        snapshot: &dyn Snapshot,
        work: &mut Work,
        mut each: impl FnMut(u64, u64),
    ) -> Result<()> {
        let is_graph = column == self.order().position(GRAPH);
        let mut of_default = 0;
        let values = Values {
            column,
            scratch: Vec::new(),
            each: &mut each,
        };
        let mut sink = Filtered::new(filters, values);
        self.visit(
            (lower, upper),
            snapshot,
            work,
            &mut sink,
            &mut |marks, count| match known_count(filters, self.order(), marks, count) {
                Some(0) => true,
                Some(passing) if is_graph && marks & DEFAULT_GRAPH_ONLY != 0 => {
                    of_default += passing;
                    true
                }
                _ => false,
            },
        )?;
        if of_default > 0 {
            each(DEFAULT_GRAPH_KEY, of_default);
        }
        Ok(())
    }
}
