//! A batch on its way through a pattern, by whichever kind of step.

use crate::access::Value;
use crate::bindings::Bindings;
use crate::keyed::Keyed;
use crate::matching::Matching;
use crate::probe::Probing;
use crate::source::Source;
use crate::table::Table;
use std::rc::Rc;

/// The kinds of steps.
pub(crate) enum Joining {
    /// Ranges of the tree are read for the keys of the batch.
    Probe(Box<Probing>),
    /// The quads are in memory.
    Match(Box<Matching>),
    /// Quads are found by a key of the value.
    Keyed(Box<Keyed>),
}

impl Joining {
    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        // Rows may come out for long without anything being read.
        source.interrupt();
        match self {
            Self::Probe(probing) => probing.next(source, params),
            Self::Match(matching) => matching.next(),
            Self::Keyed(keyed) => keyed.next(source, params),
        }
    }

    /// The number of rows that come out for each of those that went in, none of which is made.
    pub fn weigh<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Vec<u64> {
        match self {
            Self::Probe(probing) => probing.weigh(source, params),
            Self::Match(matching) => matching.weigh(),
            Self::Keyed(keyed) => keyed.weigh(source, params),
        }
    }

    /// Keys looked up, and quads found for them so far; none where what has been read says nothing about keys of the tree.
    pub fn found(&self) -> (usize, usize) {
        match self {
            Self::Probe(probing) => (probing.distinct_keys(), probing.read),
            Self::Match(matching) => (matching.rows(), matching.count),
            Self::Keyed(_) => (0, 0),
        }
    }

    /// Hands out at least so many rows at once from now on.
    pub fn widen(&mut self, rows: usize) {
        match self {
            Self::Probe(probing) => probing.widen(rows),
            Self::Match(matching) => matching.widen(rows),
            Self::Keyed(keyed) => keyed.widen(rows),
        }
    }

    /// How many times as much as now there will be in the end, if `expected` quads are found in all.
    pub fn outlook(&self, expected: f64) -> f64 {
        let times = match self {
            Self::Probe(probing) => expected / probing.read as f64,
            Self::Match(matching) => 1.0 / matching.done(),
            Self::Keyed(_) => 1.0,
        };
        if times.is_finite() {
            times.max(1.0)
        } else {
            1.0
        }
    }

    /// Memory of tables that are not among those that `is_held` knows.
    pub fn own_bytes(&self, is_held: impl Fn(&Rc<Table>) -> bool) -> usize {
        match self {
            Self::Match(matching) if !is_held(matching.table()) => matching.table().bytes(),
            Self::Keyed(keyed) => keyed.own_bytes(),
            _ => 0,
        }
    }
}
