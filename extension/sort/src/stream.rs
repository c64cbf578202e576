//! The sorted keys of one order.

use std::io;
use std::sync::Arc;

use pgquad_btree::{key_of, quad_of, Key, Order};

use crate::merge::Merge;
use crate::resort::{sequence, sort};
use crate::run::RunReader;

/// The keys of one order in ascending order, each once. The work is done where the stream is read, which can be any
/// thread.
pub struct Stream(Keys);

enum Keys {
    /// To be looked at when the first one is asked for.
    Memory {
        keys: Arc<Vec<Key>>,
        from: Order,
        to: Order,
    },
    InPlace(InPlace),
    Sorted(std::vec::IntoIter<Key>),
    Runs(Merge<RunReader>),
}

/// Keys that stay where they are, which spares a copy of all of them: memory costs a page fault for each of its pages
/// when it is touched first.
struct InPlace {
    keys: Arc<Vec<Key>>,
    from: Order,
    to: Order,
    /// Their places in the sequence of order `to`; `None` where they lie in it.
    sequence: Option<Vec<u32>>,
    next: usize,
    last: Option<Key>,
}

impl Iterator for InPlace {
    type Item = Key;

    #[inline]
    fn next(&mut self) -> Option<Key> {
        while self.next < self.keys.len() {
            let key = match &self.sequence {
                Some(sequence) => {
                    let key = &self.keys[sequence[self.next] as usize];
                    key_of(self.to, &quad_of(self.from, key))
                }
                None => self.keys[self.next],
            };
            self.next += 1;
            if self.last.replace(key) != Some(key) {
                return Some(key);
            }
        }
        None
    }
}

impl Stream {
    /// The keys of an array that has keys of order `from` in any sequence.
    pub(crate) fn memory(keys: Arc<Vec<Key>>, from: Order, to: Order) -> Self {
        Stream(Keys::Memory { keys, from, to })
    }

    pub(crate) fn runs(runs: Vec<RunReader>) -> Self {
        Stream(Keys::Runs(Merge::new(runs)))
    }

    /// To be asked when there are no more keys: whether these were all.
    ///
    /// # Errors
    /// Why the others could not be read.
    pub fn check(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Keys::Runs(merge) => merge.take_error().map_or(Ok(()), Err),
            Keys::Memory { .. } | Keys::InPlace(_) | Keys::Sorted(_) => Ok(()),
        }
    }

    fn sort(&mut self) {
        if let Keys::Memory { keys, from, to } = &self.0 {
            let (from, to) = (*from, *to);
            let is_sorted = keys.is_sorted();
            let sequence = (is_sorted && from != to)
                .then(|| sequence(keys, from, to))
                .flatten();
            self.0 = if is_sorted && (from == to || sequence.is_some()) {
                Keys::InPlace(InPlace {
                    keys: keys.clone(),
                    from,
                    to,
                    sequence,
                    next: 0,
                    last: None,
                })
            } else {
                let mut sorted = keys.to_vec();
                sort(&mut sorted, from, to);
                sorted.dedup();
                Keys::Sorted(sorted.into_iter())
            };
        }
    }
}

impl Iterator for Stream {
    type Item = Key;

    #[inline]
    fn next(&mut self) -> Option<Key> {
        match &mut self.0 {
            Keys::InPlace(keys) => keys.next(),
            Keys::Sorted(keys) => keys.next(),
            Keys::Runs(merge) => merge.next(),
            Keys::Memory { .. } => {
                self.sort();
                self.next()
            }
        }
    }
}
