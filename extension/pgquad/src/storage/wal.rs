//! Write-ahead log of page changes.
//!
//! Where the library is preloaded, it is a resource manager of its own. A record holds, for each page, the *delta* that
//! made it what it is (crate `pgquad-btree`, `wal_delta.rs`). So a single insertion costs some 70 bytes per order, and
//! pruning a page little more than a list of what was pruned. A page without a delta, or one that PostgreSQL wants an
//! image of, goes in whole. Recovery and standbys apply the deltas, with the same code.
//!
//! Where it is not preloaded (recovery could not call it then), changes are logged by PostgreSQL's generic records.

use super::conflict;
use super::error::fail;
use super::locked_page::Locked;
use crate::pg::error::raise_hint;
use pgquad_btree::{Change, Page, PAGE_SIZE, PAGE_STAMP_BYTES};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of the resource manager. PostgreSQL's wiki (CustomWALResourceManagers) keeps the list of those given out;
/// this is the one for extensions that have none yet.
const RESOURCE_MANAGER: u8 = pg_sys::RM_EXPERIMENTAL_ID as u8;

static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Registers the resource manager when the library is being preloaded; called once from `_PG_init`.
pub fn init() {
    // SAFETY: `_PG_init` runs in the postmaster then; PostgreSQL copies the structure.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        let mut methods = pg_sys::RmgrData {
            rm_name: c"pgquad".as_ptr(),
            rm_redo: Some(redo),
            rm_desc: Some(describe),
            rm_identify: Some(identify),
            rm_mask: Some(mask),
            ..Default::default()
        };
        pg_sys::RegisterCustomRmgr(RESOURCE_MANAGER, &mut methods);
    }
    REGISTERED.store(true, Ordering::Relaxed);
}

/// Whether the server has preloaded the library.
pub fn preloaded() -> bool {
    REGISTERED.load(Ordering::Relaxed)
}

/// Changes pages, atomically and, if `logged`, with a log record. `conflict_xid`: see
/// [`pgquad_btree::PageStore::commit`].
///
/// # Safety
/// The pages belong to the open relation `rel`, are exclusively locked, and the images are valid pages.
pub unsafe fn apply(
    rel: pg_sys::Relation,
    changes: &mut [Change<'_, Locked>],
    conflict_xid: u32,
    logged: bool,
) {
    // SAFETY: a setting of PostgreSQL; otherwise the caller's promise.
    unsafe {
        let conflicts = logged
            && conflict_xid >= pg_sys::FirstNormalTransactionId.into_inner()
            && pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32;
        let conflict_xid = if conflicts { conflict_xid } else { 0 };
        if logged && !REGISTERED.load(Ordering::Relaxed) {
            return apply_generic(rel, changes, conflict_xid);
        }
        pg_sys::CritSectionCount += 1;
        for change in changes.iter_mut() {
            put_image(change.page.contents(), change.image);
            pg_sys::MarkBufferDirty(change.page.buffer());
        }
        if logged {
            let lsn = insert_record(changes, conflict_xid);
            for change in changes.iter_mut() {
                set_lsn(change.page.contents(), lsn);
            }
        }
        pg_sys::CritSectionCount -= 1;
    }
}

/// Writes the record of changes that have been made.
///
/// # Safety
/// As for [`apply`], in a critical section.
unsafe fn insert_record(changes: &mut [Change<'_, Locked>], conflict_xid: u32) -> u64 {
    let mut conflict = conflict_xid.to_ne_bytes();
    // SAFETY: what is registered lives until the record is inserted.
    unsafe {
        pg_sys::XLogBeginInsert();
        if conflict_xid != 0 {
            pg_sys::XLogRegisterData(conflict.as_mut_ptr().cast(), conflict.len() as _);
        }
        for (id, change) in changes.iter_mut().enumerate() {
            let whole = change.delta.is_empty();
            let flags =
                pg_sys::REGBUF_STANDARD | if whole { pg_sys::REGBUF_FORCE_IMAGE } else { 0 };
            pg_sys::XLogRegisterBuffer(id as u8, change.page.buffer(), flags as u8);
            if !whole {
                let (delta, len) = (change.delta.as_mut_ptr(), change.delta.len());
                pg_sys::XLogRegisterBufData(id as u8, delta.cast(), len as _);
            }
        }
        pg_sys::XLogInsert(RESOURCE_MANAGER, pgquad_btree::record_info())
    }
}

/// Logs whole pages as one record of PostgreSQL's own, as its `log_newpage_range` does.
///
/// # Safety
/// The pages are exclusively locked and dirty, at most [`pg_sys::XLR_MAX_BLOCK_ID`]; the caller is in a critical
/// section and has called `XLogEnsureRecordSpace` for so many before it.
pub unsafe fn log_whole(pages: &mut [Locked]) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::XLogBeginInsert();
        let flags = pg_sys::REGBUF_STANDARD | pg_sys::REGBUF_FORCE_IMAGE;
        for (id, page) in pages.iter().enumerate() {
            pg_sys::XLogRegisterBuffer(id as u8, page.buffer(), flags as u8);
        }
        let lsn = pg_sys::XLogInsert(pg_sys::RmgrIds::RM_XLOG_ID as u8, pg_sys::XLOG_FPI as u8);
        for page in pages {
            set_lsn(page.contents(), lsn);
        }
    }
}

/// Puts an image in the place of a page: everything but `pd_lsn` and `pd_checksum`, and with zeroes in the hole. So it
/// is byte for byte the page that recovery makes.
fn put_image(page: &mut Page, image: &Page) {
    page.0[PAGE_STAMP_BYTES..].copy_from_slice(&image.0[PAGE_STAMP_BYTES..]);
    page.clear_hole();
}

/// `PageSetLSN` of `storage/bufpage.h`: two halves, the high one first.
fn set_lsn(page: &mut Page, lsn: u64) {
    page.0[..4].copy_from_slice(&((lsn >> 32) as u32).to_ne_bytes());
    page.0[4..8].copy_from_slice(&(lsn as u32).to_ne_bytes());
}

/// [`apply`] by generic records.
///
/// # Safety
/// As for [`apply`].
unsafe fn apply_generic(
    rel: pg_sys::Relation,
    changes: &mut [Change<'_, Locked>],
    conflict_xid: u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if conflict_xid != 0 {
            conflict::log_before(rel, conflict_xid);
        }
        let state = pg_sys::GenericXLogStart(rel);
        for change in changes.iter() {
            let flags = if change.page.is_free() {
                pg_sys::GENERIC_XLOG_FULL_IMAGE as i32
            } else {
                0
            };
            let copy = pg_sys::GenericXLogRegisterBuffer(state, change.page.buffer(), flags);
            // The first bytes (pd_lsn, pd_checksum) stay the buffer's own.
            std::ptr::copy_nonoverlapping(
                change.image.0.as_ptr().add(PAGE_STAMP_BYTES),
                copy.cast::<u8>().add(PAGE_STAMP_BYTES),
                PAGE_SIZE - PAGE_STAMP_BYTES,
            );
        }
        pg_sys::GenericXLogFinish(state);
    }
}

/// Carries out a record in recovery. All pages stay locked until all are changed, as they were when the change was
/// made.
#[pg_guard]
unsafe extern "C-unwind" fn redo(record: *mut pg_sys::XLogReaderState) {
    // SAFETY: PostgreSQL passes a record of this resource manager, decoded.
    unsafe {
        let decoded = &*(*record).record;
        if let Some(format) = pgquad_btree::unreadable_format(decoded.header.xl_info) {
            refuse(format);
        }
        if decoded.main_data_len == 4
            && pg_sys::standbyState >= pg_sys::HotStandbyState::STANDBY_SNAPSHOT_PENDING
        {
            conflict::resolve(record, decoded.main_data.cast::<u32>().read_unaligned());
        }
        let mut locked = Vec::new();
        for id in 0..=decoded.max_block_id {
            let (id, mut buffer) = (id as u8, 0);
            let action = pg_sys::XLogReadBufferForRedo(record, id, &mut buffer);
            if action == pg_sys::XLogRedoAction::BLK_NEEDS_REDO {
                let mut len = 0;
                let data = pg_sys::XLogRecGetBlockData(record, id, &mut len);
                let delta = match data.is_null() {
                    true => &[],
                    false => std::slice::from_raw_parts(data.cast::<u8>(), len),
                };
                let page = &mut *pg_sys::BufferGetPage(buffer).cast::<Page>();
                pgquad_btree::redo(page, pg_sys::BufferGetBlockNumber(buffer), delta)
                    .unwrap_or_else(|e| fail(e));
                set_lsn(page, (*record).EndRecPtr);
                pg_sys::MarkBufferDirty(buffer);
            }
            if buffer != 0 {
                locked.push(buffer);
            }
        }
        for buffer in locked {
            pg_sys::UnlockReleaseBuffer(buffer);
        }
    }
}

/// Ends recovery at a record that another version has written.
fn refuse(format: u8) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!(
            "log record of pgquad has format {format}, this library reads format {}",
            pgquad_btree::RECORD_FORMAT
        ),
        "Recover with the library that wrote the log, stop the server cleanly, and start it with this one. Upgrade standbys \
         together with their primary.",
    )
}

/// What `pg_waldump` and error contexts say about a record; the pages are named by PostgreSQL itself.
#[pg_guard]
unsafe extern "C-unwind" fn describe(
    out: pg_sys::StringInfo,
    record: *mut pg_sys::XLogReaderState,
) {
    // SAFETY: as for `redo`; PostgreSQL copies the text.
    unsafe {
        let decoded = &*(*record).record;
        let mut text = format!("pages {}", decoded.max_block_id + 1);
        if decoded.main_data_len == 4 {
            let xid = decoded.main_data.cast::<u32>().read_unaligned();
            text.push_str(&format!(", conflicts with snapshots of {xid}"));
        }
        pg_sys::appendBinaryStringInfo(out, text.as_ptr().cast(), text.len() as i32);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn identify(info: u8) -> *const core::ffi::c_char {
    match pgquad_btree::unreadable_format(info) {
        None => c"CHANGE".as_ptr(),
        Some(_) => c"CHANGE OF ANOTHER FORMAT".as_ptr(),
    }
}

/// Leaves of a page what has to be the same here and in recovery (`wal_consistency_checking`).
#[pg_guard]
unsafe extern "C-unwind" fn mask(page: *mut core::ffi::c_char, _block: pg_sys::BlockNumber) {
    // SAFETY: PostgreSQL passes a copy of a page, aligned.
    let page = unsafe { &mut *page.cast::<Page>() };
    page.0[..PAGE_STAMP_BYTES].fill(0);
    page.clear_hole();
}
