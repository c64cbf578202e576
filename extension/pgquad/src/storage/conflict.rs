//! Standby queries whose snapshots still need what a change hides: they have to be cancelled before the change is
//! replayed.

use crate::pg::compat::{self, FileLocator};
use pgrx::pg_sys;

/// Cancels, in recovery, the queries of a standby that still need what transaction `xid` froze or removed.
///
/// # Safety
/// `record` is a record being replayed, with a block reference.
pub unsafe fn resolve(record: *mut pg_sys::XLogReaderState, xid: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut file = FileLocator::default();
        let (fork, block) = (std::ptr::null_mut(), std::ptr::null_mut());
        pg_sys::XLogRecGetBlockTag(record, 0, &mut file, fork, block);
        compat::resolve_conflict(xid, file);
    }
}

/// Logs a conflict by itself, for changes that generic records describe. The record of nbtree's page reuse carries
/// exactly this and its redo does nothing else (`btree_xlog_reuse_page`).
///
/// # Safety
/// `rel` is open.
pub unsafe fn log_before(rel: pg_sys::Relation, xid: u32) {
    #[repr(C)]
    struct ReusePage {
        file: FileLocator,
        block: u32,
        conflict_horizon: u64,
        is_catalog: bool,
    }
    const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;
    const RM_BTREE_ID: u8 = 11;
    // 12 + 4 + 8 bytes; PostgreSQL 16 has added a flag.
    const SIZE: u32 = if cfg!(feature = "pg15") { 24 } else { 25 };
    // SAFETY: the record has the layout of `xl_btree_reuse_page` (nbtxlog.h).
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId().value;
        let age = (next as u32).wrapping_sub(xid);
        let mut record = ReusePage {
            file: *compat::file_of(rel),
            block: 0,
            conflict_horizon: next - u64::from(age),
            is_catalog: false,
        };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData((&raw mut record).cast(), SIZE as _);
        pg_sys::XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
    }
}
