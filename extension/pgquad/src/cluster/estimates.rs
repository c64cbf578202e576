//! Estimates of other nodes that this session remembers, for the choice of the order of joins. As counts from
//! remembered inner pages they are forgotten after some seconds.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pgquad_btree::Key;
use pgrx::pg_sys;
use rustc_hash::FxHashMap;

/// After this time all is asked anew, as inner pages are read anew.
const FRESH: Duration = Duration::from_secs(10);
/// Estimates that are remembered at most (some 100 bytes each).
const MOST: usize = 16 * 1024;

/// Table, order and range.
type Range = (u32, usize, Key, Key);

struct Remembered {
    since: Instant,
    counts: FxHashMap<Range, u64>,
}

thread_local! {
    static COUNTS: RefCell<Option<Remembered>> = const { RefCell::new(None) };
}

/// What was last heard of a range.
pub fn known(relid: pg_sys::Oid, order: usize, (low, high): (Key, Key)) -> Option<u64> {
    COUNTS.with_borrow(|counts| {
        let fresh = counts.as_ref().filter(|c| c.since.elapsed() < FRESH)?;
        fresh
            .counts
            .get(&(relid.to_u32(), order, low, high))
            .copied()
    })
}

/// Remembers an answer.
pub fn note(relid: pg_sys::Oid, order: usize, (low, high): (Key, Key), count: u64) {
    COUNTS.with_borrow_mut(|counts| {
        let is_full = |c: &Remembered| c.since.elapsed() >= FRESH || c.counts.len() >= MOST;
        if counts.as_ref().is_none_or(is_full) {
            *counts = Some(Remembered {
                since: Instant::now(),
                counts: FxHashMap::default(),
            });
        }
        if let Some(counts) = counts {
            counts
                .counts
                .insert((relid.to_u32(), order, low, high), count);
        }
    });
}
