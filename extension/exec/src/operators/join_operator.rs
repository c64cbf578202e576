//! The join operators: a batch of rows goes through one pattern by an index probe, a hash join or a hash join on
//! values.

use crate::bindings::Bindings;
use crate::operators::hash_probe::HashProbe;
use crate::operators::hash_table::Table;
use crate::operators::index_probe::IndexProbe;
use crate::operators::value_hash_join::ValueHashJoin;
use crate::plan::condition::Value;
use crate::source::Source;
use std::rc::Rc;

/// The kinds of steps.
pub(crate) enum JoinOperator {
    /// Ranges of the tree are read for the keys of the batch.
    IndexProbe(Box<IndexProbe>),
    /// The quads are in memory.
    HashProbe(Box<HashProbe>),
    /// Quads are found by a key of the value.
    ValueHashJoin(Box<ValueHashJoin>),
}

impl JoinOperator {
    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        // Rows may come out for long without anything being read.
        source.interrupt();
        match self {
            Self::IndexProbe(index_probe) => index_probe.next(source, params),
            Self::HashProbe(hash_probe) => hash_probe.next(),
            Self::ValueHashJoin(join) => join.next(source, params),
        }
    }

    /// The number of rows that come out for each row that went in; the rows themselves are not made.
    pub fn multiplicities<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Vec<u64> {
        match self {
            Self::IndexProbe(index_probe) => index_probe.multiplicities(source, params),
            Self::HashProbe(hash_probe) => hash_probe.multiplicities(),
            Self::ValueHashJoin(join) => join.multiplicities(source, params),
        }
    }

    /// Keys looked up, and quads found for them so far; none where what has been read says nothing about keys of the
    /// tree.
    pub fn found(&self) -> (usize, usize) {
        match self {
            Self::IndexProbe(index_probe) => (index_probe.distinct_keys(), index_probe.read),
            Self::HashProbe(hash_probe) => (hash_probe.rows(), hash_probe.count),
            Self::ValueHashJoin(_) => (0, 0),
        }
    }

    /// Hands out at least so many rows at once from now on.
    pub fn widen(&mut self, rows: usize) {
        match self {
            Self::IndexProbe(index_probe) => index_probe.widen(rows),
            Self::HashProbe(hash_probe) => hash_probe.widen(rows),
            Self::ValueHashJoin(join) => join.widen(rows),
        }
    }

    /// How many times as much as now there will be in the end, if `expected` quads are found in all.
    pub fn outlook(&self, expected: f64) -> f64 {
        let times = match self {
            Self::IndexProbe(index_probe) => expected / index_probe.read as f64,
            Self::HashProbe(hash_probe) => 1.0 / hash_probe.done(),
            Self::ValueHashJoin(_) => 1.0,
        };
        if times.is_finite() {
            times.max(1.0)
        } else {
            1.0
        }
    }

    /// Memory of tables that are not among those that `is_hash_build` knows.
    pub fn own_bytes(&self, is_hash_build: impl Fn(&Rc<Table>) -> bool) -> usize {
        match self {
            Self::HashProbe(hash_probe) if !is_hash_build(hash_probe.table()) => {
                hash_probe.table().bytes()
            }
            Self::ValueHashJoin(join) => join.own_bytes(),
            _ => 0,
        }
    }
}
