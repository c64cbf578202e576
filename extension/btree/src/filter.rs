//! Conditions on columns behind those that a key range binds, tested while a leaf is read.

use crate::inner::{ALL_VISIBLE, DEFAULT_GRAPH_ONLY};
use crate::key::Key;
use crate::key::GRAPH;
use crate::order::Order;
use crate::packed::Run;
use crate::scan::Sink;
use crate::visibility_marks::DEFAULT_GRAPH_KEY;

/// A condition on a column of a key: its value lies in a range, or outside of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The column of the key.
    pub column: u8,
    /// The least value of the range.
    pub low: u64,
    /// The greatest value of the range.
    pub high: u64,
    /// The values outside of the range pass, instead of those in it.
    pub outside: bool,
}

impl Filter {
    /// Whether a value of the column passes.
    #[inline]
    pub fn passes(&self, value: u64) -> bool {
        (self.low <= value && value <= self.high) != self.outside
    }
}

/// How many of the `count` quads of a child with these marks pass, if that can be told without reading it.
pub(crate) fn known_count(filters: &[Filter], order: Order, marks: u8, count: u64) -> Option<u64> {
    if marks & ALL_VISIBLE == 0 {
        return None;
    }
    let mut passing = count;
    for filter in filters {
        if marks & DEFAULT_GRAPH_ONLY == 0 || usize::from(filter.column) != order.position(GRAPH) {
            return None;
        }
        if !filter.passes(DEFAULT_GRAPH_KEY) {
            passing = 0;
        }
    }
    Some(passing)
}

/// Hands on what passes all filters.
pub(crate) struct Filtered<'a, S> {
    filters: &'a [Filter],
    values: Vec<u64>,
    pub to: S,
}

impl<'a, S: Sink> Filtered<'a, S> {
    pub fn new(filters: &'a [Filter], to: S) -> Self {
        Filtered {
            filters,
            values: Vec::new(),
            to,
        }
    }

    /// Entries `lo..hi`, which pass the filters before `n`.
    fn pass(&mut self, n: usize, run: &Run<'_, 4>, lo: usize, hi: usize) {
        let Some(filter) = self.filters.get(n) else {
            return self.to.range(run, lo, hi);
        };
        let column = usize::from(filter.column);
        if let Some(value) = run.constant(column) {
            if filter.passes(value) {
                self.pass(n + 1, run, lo, hi);
            }
            return;
        }
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        run.unpack(column, lo, hi, &mut values);
        let mut at = lo;
        for part in values.chunk_by(|a, b| filter.passes(*a) == filter.passes(*b)) {
            if filter.passes(part[0]) {
                self.pass(n + 1, run, at, at + part.len());
            }
            at += part.len();
        }
        self.values = values;
    }
}

impl<S: Sink> Sink for Filtered<'_, S> {
    fn range(&mut self, run: &Run<'_, 4>, lo: usize, hi: usize) {
        self.pass(0, run, lo, hi);
    }

    fn key(&mut self, key: &Key) {
        let passes = |f: &Filter| f.passes(key[usize::from(f.column)]);
        if self.filters.iter().all(passes) {
            self.to.key(key);
        }
    }
}
