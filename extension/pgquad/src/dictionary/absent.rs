//! Terms that a distributed dictionary does not have, as far as a scan has looked them up for rows to come.
//!
//! Ids that are found are cached for good. That a term has none holds only for the statement: others that run beside
//! it, as in a loop over a cursor, may see more terms. So it is remembered for the scan that has asked, until that asks
//! for other rows, and for its snapshot.

use std::cell::{Cell, RefCell};

use pgrx::pg_sys;
use rustc_hash::FxHashSet;

use super::layout::Layout;

/// Terms that are absent.
struct Absent {
    /// The number of the scan that has looked them up.
    scan: u64,
    /// The snapshot of its statement, which lasts as long as the scan.
    snapshot: pg_sys::Snapshot,
    hashes: FxHashSet<u128>,
}

thread_local! {
    static ABSENT: RefCell<Vec<Absent>> = const { RefCell::new(Vec::new()) };
    static NEXT_SCAN: Cell<u64> = const { Cell::new(0) };
}

/// The terms that a scan has looked up together.
pub struct LookedUp {
    scan: u64,
}

impl Default for LookedUp {
    fn default() -> Self {
        Self {
            scan: NEXT_SCAN.replace(NEXT_SCAN.get() + 1),
        }
    }
}

impl LookedUp {
    /// Whether terms that are looked up together save messages.
    pub fn saves_messages() -> bool {
        Layout::is_known_distributed()
    }

    /// Remembers terms that are absent, by their hashes, in the place of those before.
    pub fn keep_absent(&self, hashes: FxHashSet<u128>) {
        self.forget();
        if let (Some(snapshot), false) = (active_snapshot(), hashes.is_empty()) {
            let absent = Absent {
                scan: self.scan,
                snapshot,
                hashes,
            };
            ABSENT.with_borrow_mut(|all| all.push(absent));
        }
    }

    /// Forgets them.
    pub fn forget(&self) {
        ABSENT.with_borrow_mut(|all| all.retain(|absent| absent.scan != self.scan));
    }
}

impl Drop for LookedUp {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Whether a scan of the running statement has found that there is no term with this hash.
pub fn is_absent(hash: u128) -> bool {
    ABSENT.with_borrow(|all| {
        !all.is_empty() && {
            let snapshot = active_snapshot();
            let mut of_statement = all.iter().filter(|of| Some(of.snapshot) == snapshot);
            of_statement.any(|absent| absent.hashes.contains(&hash))
        }
    })
}

fn active_snapshot() -> Option<pg_sys::Snapshot> {
    // SAFETY: looks at the backend's stack of snapshots.
    unsafe { pg_sys::ActiveSnapshotSet().then(|| pg_sys::GetActiveSnapshot()) }
}

/// Forgets what all scans have found: some may have failed.
pub fn forget_all() {
    ABSENT.with_borrow_mut(Vec::clear);
}
