//! Prune and freeze: versions that nobody can see any more are dropped, and those that everybody sees are frozen.
//!
//! PostgreSQL does the same for heap pages in `access/heap/pruneheap.c` and `heapam.c`.

use crate::leaf::Entry;
use crate::page::{FROZEN_XID, NO_XID};
use crate::store::{TxnStatus, XidStatus};

/// What pruning found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    /// Entries dropped.
    pub removed: usize,
    /// Entries deleted by a committed transaction, but possibly still seen by someone.
    pub dead: usize,
    /// Newest transaction frozen, or whose deletion was carried out; 0 = none.
    pub conflict_xid: u32,
    /// Oldest transaction number left in the entries; 0 = none.
    pub oldest_xid: u32,
    /// Anything changed.
    pub changed: bool,
}

#[derive(Clone, Copy)]
struct Known {
    status: XidStatus,
    all_visible: bool,
}

/// Transaction states, asked once each.
struct Memo<'a> {
    status: &'a dyn TxnStatus,
    known: Vec<(u32, Known)>,
}

impl Memo<'_> {
    fn get(&mut self, xid: u32) -> Known {
        if let Some((_, k)) = self.known.iter().rev().take(16).find(|(x, _)| *x == xid) {
            return *k;
        }
        let status = self.status.status(xid);
        let all_visible = matches!(status, XidStatus::Committed | XidStatus::Aborted)
            && self.status.all_visible(xid);
        let k = Known {
            status,
            all_visible,
        };
        self.known.push((xid, k));
        k
    }
}

/// Prunes and freezes the entries of a page, sorted by key.
pub(crate) fn prune_and_freeze(entries: &mut Vec<Entry>, status: &dyn TxnStatus) -> Pruned {
    let mut memo = Memo {
        status,
        known: Vec::new(),
    };
    let mut out = Pruned::default();
    let before = entries.len();
    let newer = |a: u32, b: u32| a == NO_XID || status.precedes(a, b);
    entries.retain_mut(|e| {
        // As nearly all are.
        if e.xmin == FROZEN_XID && e.xmax == NO_XID {
            return true;
        }
        let old = *e;
        if e.xmin != FROZEN_XID {
            let k = memo.get(e.xmin);
            match k.status {
                XidStatus::Aborted => return false,
                XidStatus::Committed if k.all_visible => {
                    if newer(out.conflict_xid, e.xmin) {
                        out.conflict_xid = e.xmin;
                    }
                    e.xmin = FROZEN_XID;
                    e.cmin = 0;
                }
                // The command matters to the transaction itself only.
                XidStatus::Committed => e.cmin = 0,
                XidStatus::InProgress | XidStatus::Own => (),
            }
        }
        if e.xmax != NO_XID {
            let k = memo.get(e.xmax);
            match k.status {
                XidStatus::Aborted => e.clear_xmax(),
                XidStatus::Committed if e.lock_only => e.clear_xmax(),
                XidStatus::Committed if k.all_visible => {
                    if newer(out.conflict_xid, e.xmax) {
                        out.conflict_xid = e.xmax;
                    }
                    return false;
                }
                XidStatus::Committed => {
                    e.cmax = 0;
                    out.dead += 1;
                }
                XidStatus::InProgress | XidStatus::Own => (),
            }
        }
        out.changed |= old != *e;
        true
    });
    // Two versions that everyone sees and nobody deletes are one quad.
    entries.dedup_by(|b, a| {
        let all_visible = |e: &Entry| e.xmin == FROZEN_XID && e.xmax == NO_XID;
        all_visible(a) && all_visible(b) && a.key == b.key
    });
    out.removed = before - entries.len();
    out.changed |= out.removed > 0;
    for e in entries.iter() {
        for xid in [e.xmin, e.xmax] {
            if xid != NO_XID
                && xid != FROZEN_XID
                && (out.oldest_xid == NO_XID || status.precedes(xid, out.oldest_xid))
            {
                out.oldest_xid = xid;
            }
        }
    }
    out
}
