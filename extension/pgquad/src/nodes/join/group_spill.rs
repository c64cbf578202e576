//! The groups of a hash aggregation: how their terms are compared, memory for them, and the temporary files for those
//! that it has no room for.

use crate::dictionary;
use crate::pg::interrupt::interrupt;
use crate::storage::TempFile;
use crate::term::order_of;
use pgquad_btree::SIGN;
use pgquad_exec::{Counted, HashAggregation, Slot, Spill};
use pgrx::pg_sys;
use std::cmp::Ordering;

/// Where groups wait; there is no file before there are any.
struct Waiting {
    file: Option<TempFile<u64>>,
    context: pg_sys::MemoryContext,
}

impl Spill for Waiting {
    fn append(&mut self, words: &[u64]) {
        let file = self.file.get_or_insert_with(|| TempFile::new(self.context));
        file.append(words);
    }

    fn read(&mut self, at: u64, words: &mut [u64]) {
        interrupt();
        if let Some(file) = &self.file {
            file.read(at, words);
        }
    }

    fn close(&mut self) {
        if let Some(file) = self.file.take() {
            file.close();
        }
    }
}

/// No groups yet, by these variables, whose terms are compared by way of the dictionary.
pub fn no_groups(by: Vec<Slot>, counted: Vec<Counted>) -> HashAggregation {
    HashAggregation::new(by, counted)
        .with_order(term_order)
        .with_offer(dictionary::offer)
}

/// Bytes for groups.
pub fn group_room() -> usize {
    // SAFETY: a plain setting.
    unsafe { pg_sys::get_hash_memory_limit() }
}

/// A file for groups that memory has no room for; it lasts as long as the memory context.
pub fn spill_file(context: pg_sys::MemoryContext) -> Box<dyn Spill> {
    Box::new(Waiting {
        file: None,
        context,
    })
}

/// The order of the terms with two ids, in the form of keys.
pub fn term_order(a: u64, b: u64) -> Ordering {
    order_of((a ^ SIGN) as i64, (b ^ SIGN) as i64)
}
