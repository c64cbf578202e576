//! The sorted keys of one order.

use std::io;
use std::sync::Arc;

use pgquad_btree::{Key, Order};

use crate::merge::Merge;
use crate::resort::{resort, sort};
use crate::run::RunReader;

/// The keys of one order in ascending order, each once. The work is done where the stream is read, which can be any
/// thread.
pub struct Stream(Keys);

enum Keys {
    /// Sorted when the first one is asked for.
    Memory {
        keys: Arc<Vec<Key>>,
        from: Order,
        to: Order,
    },
    Sorted(std::vec::IntoIter<Key>),
    Runs(Merge<RunReader>),
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
            Keys::Memory { .. } | Keys::Sorted(_) => Ok(()),
        }
    }

    fn sort(&mut self) {
        if let Keys::Memory { keys, from, to } = &self.0 {
            let mut sorted = Vec::new();
            if keys.is_sorted() {
                resort(keys, *from, *to, &mut sorted);
            } else {
                sorted.extend_from_slice(keys);
                sort(&mut sorted, *from, *to);
            }
            sorted.dedup();
            self.0 = Keys::Sorted(sorted.into_iter());
        }
    }
}

impl Iterator for Stream {
    type Item = Key;

    #[inline]
    fn next(&mut self) -> Option<Key> {
        match &mut self.0 {
            Keys::Sorted(keys) => keys.next(),
            Keys::Runs(merge) => merge.next(),
            Keys::Memory { .. } => {
                self.sort();
                self.next()
            }
        }
    }
}
