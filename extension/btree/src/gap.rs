//! Gaps of an open leaf: ranges of keys that are known to be empty.

use crate::key::{cmp, Key};
use crate::leaf::LeafView;
use crate::page::Frame;
use std::cmp::Ordering;

/// Keys of an open leaf that nothing lies between: ranges within are known to be empty.
#[derive(Clone, Copy)]
pub(crate) struct Gap {
    low: Key,
    /// The first key behind; `None` where the tree ends.
    next: Option<Key>,
}

impl Gap {
    /// Whether nothing lies between two keys, both included.
    #[inline]
    pub(crate) fn holds(&self, low: &Key, high: &Key) -> bool {
        cmp(&self.low, low) != Ordering::Greater
            && self
                .next
                .is_none_or(|next| cmp(high, &next) == Ordering::Less)
    }
}

impl<'l> LeafView<'l> {
    /// From `low` on, where base entry `place` is the first that does not come before it.
    pub(crate) fn gap(&self, low: &Key, place: usize, frame: &Frame) -> Gap {
        Gap {
            low: *low,
            next: if place < self.run.len() {
                Some(self.run.key(place))
            } else {
                frame.high
            },
        }
    }
}
