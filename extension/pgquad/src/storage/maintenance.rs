//! VACUUM and verification of a table: all of its orders, side by side.

use super::error::fail;
use super::order_task::{OrderReport, Task};
use super::table::Table;
use super::workers::for_each_order;
use pgquad_btree::{TxnStatus, NO_XID};

/// What VACUUM found and did, over all orders; numbers of quads are those of the first.
#[derive(Default)]
pub struct Vacuumed {
    /// Quads that are live.
    pub live: u64,
    /// Deleted quads that some snapshot may still see.
    pub dead: u64,
    /// Versions removed.
    pub removed: u64,
    /// Pages given back to the free space map.
    pub freed_pages: u64,
    /// Oldest transaction number left in any order.
    pub oldest_xid: Option<u32>,
}

impl Table {
    /// Prunes and freezes every order and takes empty pages out, in at most so many parallel workers beside this
    /// session.
    pub fn vacuum(&self, workers: i32) -> Vacuumed {
        // Pages that an earlier vacuum gave up, or that a crash kept from the free space map.
        self.quads.reclaim();
        // SAFETY: the relation is open, and locked by VACUUM.
        let reports = unsafe { for_each_order(self.rel, self, Task::Vacuum, workers) };
        let first = &reports[0].vacuumed;
        let mut all = Vacuumed {
            live: first.live,
            dead: first.dead,
            removed: first.removed,
            ..Vacuumed::default()
        };
        for OrderReport { vacuumed: one, .. } in &reports {
            all.freed_pages += one.freed;
            if one.oldest_xid != NO_XID {
                all.oldest_xid = Some(match all.oldest_xid {
                    Some(other) if self.status.precedes(other, one.oldest_xid) => other,
                    _ => one.oldest_xid,
                });
            }
        }
        self.quads
            .set_counters(all.live, all.dead)
            .unwrap_or_else(|e| fail(e));
        all
    }

    /// Checks all orders against their invariants and each other; one line per problem. Rows that are kept back have to
    /// be in the trees.
    pub fn verify(&self) -> Vec<String> {
        // SAFETY: the relation is open and locked.
        let reports = unsafe { for_each_order(self.rel, self, Task::Verify, i32::MAX) };
        let name = |n: usize| self.meta().orders()[n].order.to_string();
        let mut problems: Vec<String> = Vec::new();
        for (n, report) in reports.iter().enumerate() {
            problems.extend(report.problems().map(|p| format!("order {}: {p}", name(n))));
            let (first, other) = (name(0), name(n));
            if report.visible != reports[0].visible {
                problems.push(format!(
                    "order {first} has {} quads, order {other} has {}",
                    reports[0].visible, report.visible
                ));
            } else if report.digest != reports[0].digest {
                problems.push(format!("orders {first} and {other} hold different quads"));
            }
        }
        problems
    }
}
