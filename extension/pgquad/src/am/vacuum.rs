//! VACUUM: prunes and freezes every order, gives empty pages back, advances relfrozenxid.

use crate::pg::compat;
use crate::storage::Table;
use pgrx::pg_sys;
use pgrx::prelude::*;

#[pg_guard]
pub unsafe extern "C-unwind" fn vacuum(
    rel: pg_sys::Relation,
    params: *mut pg_sys::VacuumParams,
    _strategy: pg_sys::BufferAccessStrategy,
) {
    // SAFETY: VACUUM passes an open relation under ShareUpdateExclusiveLock and its parameters.
    unsafe {
        let (oldest_xmin, oldest_multi) = compat::oldest_needed(rel, params);
        // -1 says VACUUM (PARALLEL 0), or autovacuum; 0 leaves the number open.
        let workers = match (*params).nworkers {
            -1 => 0,
            0 => i32::MAX,
            most => most,
        };
        let outcome = Table::open(rel).vacuum(workers);
        pg_sys::IndexFreeSpaceMapVacuum(rel);

        // Whatever is older than every snapshot has been frozen or removed; what is left is named by the trees.
        let frozen = match outcome.oldest_xid {
            Some(left) if pg_sys::TransactionIdPrecedes(left.into(), oldest_xmin) => left.into(),
            _ => oldest_xmin,
        };
        let pages = pg_sys::RelationGetNumberOfBlocksInFork(rel, pg_sys::ForkNumber::MAIN_FORKNUM);
        let (mut frozen_updated, mut multi_updated) = (false, false);
        pg_sys::vac_update_relstats(
            rel,
            pages,
            outcome.live as f64,
            0,
            false,
            frozen,
            oldest_multi,
            &mut frozen_updated,
            &mut multi_updated,
            false,
        );
        pg_sys::pgstat_report_vacuum(
            (*rel).rd_id,
            (*(*rel).rd_rel).relisshared,
            outcome.live as i64,
            outcome.dead as i64,
        );
        if (*params).options & pg_sys::VACOPT_VERBOSE != 0 {
            notice!(
                "quad table \"{}\": {} quads, {} versions removed, {} deleted quads still needed by some snapshot, {} of {} pages freed",
                super::shape::relation_name(rel),
                outcome.live,
                outcome.removed,
                outcome.dead,
                outcome.freed_pages,
                pages
            );
        }
    }
}
