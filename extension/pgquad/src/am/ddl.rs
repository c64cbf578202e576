//! Creating, truncating, copying and rebuilding quad tables.

use super::{shape, table_as, table_options};
use crate::catalog::access_method;
use crate::pg::compat::{self, FileLocator};
use crate::pg::ffi;
use crate::storage::{self, options};
use pgquad_btree::{initial_pages, Page, PageStore};
use pgrx::pg_sys;
use pgrx::prelude::*;

const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
const INIT: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::INIT_FORKNUM;

/// New storage for a table: a file with the metapage and an empty root per order (and the same as init fork if
/// unlogged).
#[pg_guard]
pub unsafe extern "C-unwind" fn set_new_file(
    rel: pg_sys::Relation,
    newrnode: *const FileLocator,
    persistence: core::ffi::c_char,
    freeze_xid: *mut pg_sys::TransactionId,
    minmulti: *mut pg_sys::MultiXactId,
) {
    // SAFETY: PostgreSQL passes an open relation and places for the answers.
    unsafe {
        let rewritten = rewritten_table(rel);
        let was_quad = rewritten.is_some_and(access_method::is_quad_relid);
        let name = rewritten
            .and_then(name_of)
            .unwrap_or_else(|| shape::relation_name(rel));
        shape::check(rel, &name, !was_quad && !table_as::is_running());
        let options = storage::replaced_options(rel, &*newrnode)
            .or_else(|| rewritten.and_then(storage::rebuild::wanted))
            .or_else(|| rewritten.filter(|_| was_quad).and_then(storage::options_of))
            .unwrap_or_else(options::from_settings);
        let mut pages = initial_pages(&options).unwrap_or_else(|e| error!("{e}"));

        *freeze_xid = pg_sys::RecentXmin;
        *minmulti = pg_sys::GetOldestMultiXactId();
        let smgr = pg_sys::RelationCreateStorage(*newrnode, persistence, true);
        let logged = persistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
        write_pages(
            smgr,
            newrnode,
            MAIN,
            &mut pages,
            logged && wal_for_new_files(),
        );
        if persistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED {
            pg_sys::smgrcreate(smgr, INIT, false);
            ffi::log_smgrcreate(newrnode, INIT);
            // Recovery copies the init fork over the main fork, so it is always logged and synced.
            write_pages(smgr, newrnode, INIT, &mut pages, true);
            pg_sys::smgrimmedsync(smgr, INIT);
        }
        pg_sys::smgrclose(smgr);
        table_options::created(rewritten.unwrap_or((*rel).rd_id));
    }
}

/// Whether a file made by this transaction is logged; under `wal_level = minimal` it is synced at commit instead.
fn wal_for_new_files() -> bool {
    // SAFETY: a plain read of a setting.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32 }
}

/// Writes the first pages of a new fork.
///
/// # Safety
/// The fork was just created and is empty.
unsafe fn write_pages(
    smgr: pg_sys::SMgrRelation,
    node: *const FileLocator,
    fork: pg_sys::ForkNumber::Type,
    pages: &mut [Page],
    logged: bool,
) {
    // In this order: a checkpoint that begins behind the record syncs the page, and a base backup that begins there
    // has it.
    // SAFETY: the caller's promise; pages are whole and aligned.
    unsafe {
        for (block, page) in pages.iter_mut().enumerate() {
            let image = page.0.as_mut_ptr().cast::<core::ffi::c_char>();
            let block = block as pg_sys::BlockNumber;
            pg_sys::PageSetChecksumInplace(image.cast(), block);
            pg_sys::smgrextend(smgr, fork, block, image.cast(), false);
            if logged {
                pg_sys::log_newpage(node.cast_mut(), fork, block, image.cast(), true);
            }
        }
    }
}

/// The table whose contents `rel` is to receive, when `rel` is the transient table of a rewrite (`make_new_heap` names
/// it `pg_temp_<oid>`). Who rewrites a table has locked it; anybody may give a table such a name.
///
/// # Safety
/// `rel` is open.
unsafe fn rewritten_table(rel: pg_sys::Relation) -> Option<pg_sys::Oid> {
    // SAFETY: the caller's promise, within a transaction. REFRESH MATERIALIZED VIEW CONCURRENTLY has the weakest lock.
    unsafe {
        let name = shape::relation_name(rel);
        let oid = name.strip_prefix("pg_temp_")?.parse::<u32>().ok()?;
        let oid = pg_sys::Oid::from(oid);
        compat::is_locked(oid, pg_sys::ExclusiveLock).then_some(oid)
    }
}

/// Whether `rel` is the transient table of a rewrite of a quad table.
///
/// # Safety
/// `rel` is open.
pub unsafe fn is_rewrite_of_quads(rel: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe { rewritten_table(rel) }.is_some_and(access_method::is_quad_relid)
}

/// Name of the table that the user knows, `None` if there is none with this OID.
fn name_of(table: pg_sys::Oid) -> Option<String> {
    // SAFETY: a look-up in the system cache; the copy that it allocates is NUL terminated.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        (!name.is_null()).then(|| {
            std::ffi::CStr::from_ptr(name)
                .to_string_lossy()
                .into_owned()
        })
    }
}

/// Empties a table that nobody else sees: ON COMMIT DELETE ROWS, TRUNCATE of a table of this transaction.
#[pg_guard]
pub unsafe extern "C-unwind" fn nontransactional_truncate(rel: pg_sys::Relation) {
    // SAFETY: PostgreSQL holds an exclusive lock on a relation made or truncated by this very transaction.
    unsafe {
        let options = storage::Table::open(rel).meta().options();
        let mut pages = initial_pages(&options).unwrap_or_else(|e| error!("{e}"));
        // The first pages are written where pages are already: a disk that is full does not leave a file without them.
        storage::RelationStore::new(rel).put(0, &mut pages);
        pg_sys::RelationTruncate(rel, pages.len() as pg_sys::BlockNumber);
        storage::forget_meta(rel);
    }
}

/// Copies the forks of a table to another tablespace.
#[pg_guard]
pub unsafe extern "C-unwind" fn copy_data(rel: pg_sys::Relation, newrnode: *const FileLocator) {
    // SAFETY: as `heapam_relation_copy_data`: an exclusively locked relation is copied fork by fork to a new file.
    unsafe {
        let persistence = (*(*rel).rd_rel).relpersistence;
        pg_sys::FlushRelationBuffers(rel);
        let target = pg_sys::RelationCreateStorage(*newrnode, persistence, true);
        let source = pg_sys::RelationGetSmgr(rel);
        pg_sys::RelationCopyStorage(source, target, MAIN, persistence);
        for fork in MAIN + 1..=INIT {
            if pg_sys::smgrexists(source, fork) {
                pg_sys::smgrcreate(target, fork, false);
                let logged = persistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT
                    || (persistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED && fork == INIT);
                if logged {
                    ffi::log_smgrcreate(newrnode, fork);
                }
                pg_sys::RelationCopyStorage(source, target, fork, persistence);
            }
        }
        pg_sys::RelationDropStorage(rel);
        pg_sys::smgrclose(target);
    }
}

/// VACUUM FULL: rebuilds every order bottom-up in the new file.
#[pg_guard]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C-unwind" fn copy_for_cluster(
    old: pg_sys::Relation,
    new: pg_sys::Relation,
    _index: pg_sys::Relation,
    _use_sort: bool,
    _oldest_xmin: pg_sys::TransactionId,
    xid_cutoff: *mut pg_sys::TransactionId,
    _multi_cutoff: *mut pg_sys::MultiXactId,
    num_tuples: *mut f64,
    tups_vacuumed: *mut f64,
    tups_recently_dead: *mut f64,
) {
    // SAFETY: PostgreSQL holds exclusive locks on both relations.
    unsafe {
        let outcome = storage::rebuild::copy(old, new);
        *num_tuples = outcome.live as f64;
        *tups_vacuumed = outcome.removed as f64;
        *tups_recently_dead = outcome.recently_dead as f64;
        // PostgreSQL may freeze more than every snapshot sees alike (`old_snapshot_threshold`).
        if let Some(left) = outcome.oldest_xid.map(pg_sys::TransactionId::from) {
            if pg_sys::TransactionIdPrecedes(left, *xid_cutoff) {
                *xid_cutoff = left;
            }
        }
    }
}
