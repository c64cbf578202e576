//! Checks of quads that key ranges do not make, a batch at a time.

use crate::access::Value;
use crate::order::{holds, Check};
use pgquad_btree::Batch;

/// Which quads of a batch have passed.
#[derive(Default)]
pub(crate) struct Checked {
    /// Empty when all have.
    passed: Vec<bool>,
}

impl Checked {
    /// Makes `checks` (by place in the key) on all quads of a batch.
    pub fn new(checks: &[(usize, Check)], batch: &Batch, params: &[Value]) -> Self {
        let mut passed = Vec::new();
        for &(at, check) in checks {
            let column = &batch.columns[at];
            match check {
                Check::Same(other) => {
                    let both = column.iter().zip(&batch.columns[other]);
                    keep(&mut passed, both, |(a, b)| a == b);
                }
                Check::Param(bound, param) => {
                    let param = &params[usize::from(param)];
                    match (bound, param) {
                        (crate::Bound::Eq, Value::One(wanted)) => {
                            keep(&mut passed, column.iter(), |v| v == wanted);
                        }
                        _ => keep(&mut passed, column.iter(), |v| holds(*v, bound, param)),
                    }
                }
            }
        }
        Self { passed }
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
