//! Residual predicates: conditions on quads that the key ranges do not enforce, tested a batch at a time.

use crate::access::access_path::{holds, Residual};
use crate::plan::condition::{Bound, Value};
use pgquad_btree::Batch;

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
                    let param = &params[usize::from(param)];
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
