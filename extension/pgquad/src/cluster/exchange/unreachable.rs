//! Pairs of nodes that could not be linked lately, in shared memory. Joins are not pushed over such a link for a while,
//! so that not every join waits for a connection that nobody answers. Server without the library preloaded: nothing is
//! remembered.

use std::mem::size_of;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use pgrx::pg_sys;

use crate::cluster::counters::now;
use crate::pg::shared_memory::Piece;

/// Nanoseconds for which a pair of nodes is remembered: a minute, as long as an operator waits to see that an opened
/// port helps.
const REMEMBERED_NS: u64 = 60_000_000_000;

/// Pairs that are remembered at a time: a node that nobody reaches has one with each node of a cluster of this size.
const MAX_PAIRS: usize = 64;

/// A pair of nodes. Its fields are not written at once: who reads them meanwhile pulls a join that could be pushed, or
/// tries a link once more.
#[repr(C)]
struct Pair {
    database: AtomicU32,
    /// Groups of the node that has tried and of the one that it could not reach.
    from: AtomicI32,
    to: AtomicI32,
    /// When it is forgotten, by the clock of the counters; 0: no pair.
    until: AtomicU64,
}

static SHARED: AtomicPtr<Pair> = AtomicPtr::new(std::ptr::null_mut());

/// The pairs. Zeroes are valid ones.
pub const UNREACHABLE_NODES: Piece = Piece {
    name: c"pgquad unreachable nodes",
    bytes: || MAX_PAIRS * size_of::<Pair>(),
    start: |piece, _| SHARED.store(piece.cast(), Relaxed),
};

fn pairs() -> &'static [Pair] {
    let shared = SHARED.load(Relaxed);
    if shared.is_null() {
        return &[];
    }
    // SAFETY: a piece of this size, as long as the server; all that changes is atomic.
    unsafe { std::slice::from_raw_parts(shared, MAX_PAIRS) }
}

fn database() -> u32 {
    // SAFETY: plain session state.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}

impl Pair {
    fn is(&self, from: i32, to: i32) -> bool {
        self.database.load(Relaxed) == database()
            && self.from.load(Relaxed) == from
            && self.to.load(Relaxed) == to
    }
}

/// Remembers that the node of one group could not be linked with that of another; false where that is known already.
pub fn remember(from: i32, to: i32) -> bool {
    let (now, pairs) = (now(), pairs());
    let same = pairs.iter().find(|pair| pair.is(from, to));
    let oldest = || pairs.iter().min_by_key(|pair| pair.until.load(Relaxed));
    let Some(pair) = same.or_else(oldest) else {
        return true;
    };
    let is_known = same.is_some() && pair.until.load(Relaxed) > now;
    pair.database.store(database(), Relaxed);
    pair.from.store(from, Relaxed);
    pair.to.store(to, Relaxed);
    pair.until.store(now + REMEMBERED_NS, Relaxed);
    !is_known
}

/// Two of these groups whose nodes could not be linked lately.
pub fn remembered(groups: &[i32]) -> Option<(i32, i32)> {
    let now = now();
    let mut known = pairs()
        .iter()
        .filter(|pair| pair.until.load(Relaxed) > now && pair.database.load(Relaxed) == database())
        .map(|pair| (pair.from.load(Relaxed), pair.to.load(Relaxed)));
    known.find(|(from, to)| groups.contains(from) && groups.contains(to))
}
