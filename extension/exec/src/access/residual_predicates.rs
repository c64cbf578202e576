//! Residual predicates: conditions on quads that the key ranges do not enforce, tested a batch at a time.

use crate::access::access_path::{holds, AccessPath, Residual, GRAPH};
use crate::plan::condition::{Bound, Value};
use pgquad_btree::{Batch, Key, Span};
use rustc_hash::FxHashSet;

/// Which quads of a batch have passed.
#[derive(Default)]
pub(crate) struct ResidualMask {
    /// Empty when all have.
    passed: Vec<bool>,
}

impl ResidualMask {
    /// Makes `residuals` (by place in the key) on all quads of a batch.
    pub fn new(residuals: &[(usize, Residual)], batch: &Batch, params: &[Value]) -> Self {
        let mut passed = Vec::new();
        for &(at, check) in residuals {
            let column = &batch.columns[at];
            match check {
                Residual::Same(other) => {
                    let both = column.iter().zip(&batch.columns[other]);
                    keep(&mut passed, both, |(a, b)| a == b);
                }
                Residual::Param(bound, param) => {
                    let param = &params[param.index()];
                    match (bound, param) {
                        (Bound::Eq, Value::One(wanted)) => {
                            keep(&mut passed, column.iter(), |v| v == wanted);
                        }
                        _ => keep(&mut passed, column.iter(), |v| holds(*v, bound, param)),
                    }
                }
            }
        }
        Self { passed }
    }

    /// Makes the residuals of `access`, and where it reads triples, leaves out quads that repeat the triple of the one
    /// before them. Within a span quads are in order, so that equal triples stand side by side.
    pub fn of_access(
        access: &AccessPath,
        batch: &Batch,
        spans: &[Span],
        params: &[Value],
        last: &mut LastTriples,
    ) -> Self {
        let mut mask = Self::new(&access.residuals, batch, params);
        if let Some(from) = access.triples_from {
            mask.leave_out_repeats(from, batch, spans, last);
        }
        mask
    }

    fn leave_out_repeats(
        &mut self,
        from: usize,
        batch: &Batch,
        spans: &[Span],
        last: &mut LastTriples,
    ) {
        let columns = &batch.columns[from..GRAPH];
        let key_of = |row: usize| {
            let mut key = Key::default();
            for (place, column) in key.iter_mut().zip(columns) {
                *place = column[row];
            }
            key
        };
        let mut repeats = Vec::new();
        let mut start = 0;
        for span in spans {
            // The quad before, in this span.
            let mut before: Option<usize> = None;
            for row in start..span.end as usize {
                if !self.accepts(row) {
                    continue;
                }
                let is_repeat = match before {
                    Some(other) => columns.iter().all(|c| c[row] == c[other]),
                    None => last.contains(span.range, || key_of(row)),
                };
                if is_repeat {
                    repeats.push(row);
                } else {
                    before = Some(row);
                }
            }
            if let Some(row) = before {
                last.insert(span.range, key_of(row));
            }
            start = span.end as usize;
        }
        if !repeats.is_empty() {
            self.passed.resize(batch.len(), true);
            repeats.iter().for_each(|&row| self.passed[row] = false);
        }
    }

    /// Whether there is no quad that has failed.
    pub fn all(&self) -> bool {
        self.passed.is_empty()
    }

    /// Whether quad `row` has passed.
    #[inline]
    pub fn accepts(&self, row: usize) -> bool {
        self.passed.is_empty() || self.passed[row]
    }
}

/// The last triples of the spans that have been read: the number of their range, and what their quads have from the
/// first place on that may differ within the range.
///
/// A range goes on in a later span, whose first quad may repeat the last one of the earlier span. Of a table on one
/// node that is the span read just before. Of shards, the spans of one range take turns: those of one shard follow
/// each other in order, those of other shards come between them. Equal triples are in the same shard.
pub(crate) enum LastTriples {
    /// Spans come in the order of the keys.
    One(Option<(u32, Key)>),
    /// Spans of several shards take turns.
    OfShards(FxHashSet<(u32, Key)>),
}

impl LastTriples {
    /// For reading a table whose spans are in order, or not.
    pub fn new(ranges_are_sorted: bool) -> Self {
        if ranges_are_sorted {
            Self::One(None)
        } else {
            Self::OfShards(FxHashSet::default())
        }
    }

    fn contains(&self, range: u32, key: impl FnOnce() -> Key) -> bool {
        match self {
            Self::One(last) => last.is_some_and(|last| last.0 == range && last.1 == key()),
            Self::OfShards(last) => !last.is_empty() && last.contains(&(range, key())),
        }
    }

    fn insert(&mut self, range: u32, key: Key) {
        match self {
            Self::One(last) => *last = Some((range, key)),
            Self::OfShards(last) => {
                last.insert((range, key));
            }
        }
    }
}

/// Tells triples from repeats within the quads of one key.
pub(crate) fn repeats_triple(from: usize, batch: &Batch, row: usize, before: Option<u32>) -> bool {
    let columns = &batch.columns[from..GRAPH];
    before.is_some_and(|other| columns.iter().all(|c| c[row] == c[other as usize]))
}

fn keep<T: Copy>(
    passed: &mut Vec<bool>,
    values: impl ExactSizeIterator<Item = T> + Clone,
    test: impl Fn(T) -> bool,
) {
    if passed.is_empty() {
        // Most checks fail for none: nothing is written down then.
        if values.clone().map(&test).fold(true, |all, ok| all & ok) {
            return;
        }
        passed.extend(values.map(test));
    } else {
        for (passed, value) in passed.iter_mut().zip(values) {
            *passed &= test(value);
        }
    }
}
