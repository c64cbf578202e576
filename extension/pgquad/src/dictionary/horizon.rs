//! The horizon of the dictionary's own tables while loads run: whose insertions everybody sees.
//!
//! A leaf keeps entries that somebody may not see in 52 bytes each, others in a tenth of that. A load of a distributed
//! store adds its terms by many short transactions, and its own statement has a snapshot that sees none of them. With
//! PostgreSQL's horizon all terms of the load stay entries of the first kind, and leaves split half empty. Measured: 10
//! million triples of the Berlin data on one node took 22 bytes a triple for `quad.term_ids` instead of 7.
//!
//! A load looks terms up with the latest snapshot only. So its old snapshot need not be regarded. All others are:
//! pg_dump, as an example, must not find ids of terms that it does not see.

use pgrx::pg_sys;

use crate::load::is_load_of_one_snapshot;
use crate::pg::compat;

/// All transactions before this one have ended before any snapshot was taken that is in use. Loads are left out, unless
/// their sessions use older snapshots, too.
pub fn without_loads() -> pg_sys::TransactionId {
    // SAFETY: plain calls in a transaction; the entries are copies that stay until they are cleared.
    unsafe {
        // This comes first. Who takes a snapshot later sees that all before it have ended. Who has taken one earlier is
        // found below.
        let mut horizon = pg_sys::GetOldestActiveTransactionId();
        let mut regard = |xmin: pg_sys::TransactionId| {
            if xmin != pg_sys::InvalidTransactionId && pg_sys::TransactionIdPrecedes(xmin, horizon)
            {
                horizon = xmin;
            }
        };
        let (mut of_slots, mut of_catalogs) = Default::default();
        pg_sys::ProcArrayGetReplicationSlotXmin(&mut of_slots, &mut of_catalogs);
        regard(of_slots);
        pg_sys::pgstat_clear_backend_activity_snapshot();
        for n in 1..=pg_sys::pgstat_fetch_stat_numbackends() {
            let Some(session) = compat::session_status(n).as_ref() else {
                continue;
            };
            let status = &session.backendStatus;
            if status.st_procpid != pg_sys::MyProcPid && !is_load_of_one_snapshot(status) {
                regard(session.backend_xmin);
            }
        }
        horizon
    }
}
