//! Read cache: answers of other nodes that are used again under the same snapshot.
//!
//! Subqueries of one query often have patterns in common. Example: a query compares the average price of each product
//! with the prices of its offers, and both parts begin with the offers of the same products. The second part then takes
//! these quads from the first one's answers, without a message.

use crate::message::Rows;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Bytes of requests and answers that are kept at most (4 MB, as PostgreSQL's default `work_mem`). An answer that does
/// not fit is asked for again.
const MAX_CACHED_BYTES: usize = 4 << 20;

/// Answers by group of nodes and request. An answer depends on nothing else, as all nodes keep their snapshots.
#[derive(Default)]
pub struct ReadCache {
    answers: FxHashMap<(i32, Vec<u8>), Rc<Rows>>,
    bytes: usize,
}

impl ReadCache {
    /// The answer that a node would give to an encoded request.
    #[must_use]
    pub fn get(&self, request: &(i32, Vec<u8>)) -> Option<Rc<Rows>> {
        self.answers.get(request).cloned()
    }

    /// Keeps an answer, if there is room.
    pub fn keep(&mut self, request: (i32, Vec<u8>), rows: &Rc<Rows>) {
        let bytes = request.1.len() + rows.bytes();
        if self.bytes + bytes <= MAX_CACHED_BYTES {
            self.bytes += bytes;
            self.answers.insert(request, Rc::clone(rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_btree::{Batch, Span};

    fn rows(len: usize) -> Rc<Rows> {
        Rc::new(Rows {
            batch: Batch::from_columns(1, [vec![7; len], Vec::new(), Vec::new(), Vec::new()], len),
            spans: vec![Span {
                range: 0,
                end: len as u32,
            }],
            ..Rows::default()
        })
    }

    #[test]
    fn an_answer_is_that_of_its_node_and_request() {
        let mut cache = ReadCache::default();
        cache.keep((1, vec![1, 2]), &rows(3));
        cache.keep((2, vec![1, 2]), &rows(4));
        let found = |group, request: &[u8]| {
            let rows = cache.get(&(group, request.to_vec()));
            rows.map(|rows| rows.batch.len())
        };
        assert_eq!(found(1, &[1, 2]), Some(3));
        assert_eq!(found(2, &[1, 2]), Some(4));
        assert_eq!(found(1, &[1, 3]), None);
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let mut cache = ReadCache::default();
        let large = rows(MAX_CACHED_BYTES / 16);
        for group in 0..3 {
            cache.keep((group, vec![1]), &large);
        }
        let is_kept = |group| cache.get(&(group, vec![1])).is_some();
        assert_eq!([0, 1, 2].map(is_kept), [true, false, false]);
        cache.keep((3, vec![1]), &rows(10));
        assert!(cache.get(&(3, vec![1])).is_some());
    }
}
