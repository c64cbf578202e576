//! Estimates of other nodes that this session remembers, for the choice of the order of joins. As counts from
//! remembered inner pages they are forgotten after some seconds.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pgquad_btree::Key;
use pgrx::pg_sys;
use rustc_hash::FxHashMap;

/// After this time all is asked anew, as inner pages are read anew.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Most estimates that a session remembers, of some 100 bytes each (1.6 MB). Chosen, not measured.
const MAX_ESTIMATES: usize = 16 * 1024;

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
        let fresh = counts.as_ref().filter(|c| c.since.elapsed() < MAX_AGE)?;
        fresh
            .counts
            .get(&(relid.to_u32(), order, low, high))
            .copied()
    })
}

/// Remembers an answer.
pub fn note(relid: pg_sys::Oid, order: usize, (low, high): (Key, Key), count: u64) {
    COUNTS.with_borrow_mut(|counts| {
        let is_full =
            |c: &Remembered| c.since.elapsed() >= MAX_AGE || c.counts.len() >= MAX_ESTIMATES;
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
