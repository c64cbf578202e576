//! Standby queries whose snapshots still need what a change hides: they have to be cancelled before the change is replayed.

use pgrx::pg_sys;

/// Cancels, in recovery, the queries of a standby that still need what transaction `xid` froze or removed.
///
/// # Safety
/// `record` is a record being replayed, with a block reference.
pub unsafe fn resolve(record: *mut pg_sys::XLogReaderState, xid: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut file = pg_sys::RelFileNode::default();
        let (fork, block) = (std::ptr::null_mut(), std::ptr::null_mut());
        pg_sys::XLogRecGetBlockTag(record, 0, &mut file, fork, block);
        pg_sys::ResolveRecoveryConflictWithSnapshot(pg_sys::TransactionId::from(xid), file);
    }
}

/// Logs a conflict by itself, for changes that generic records describe. The record of nbtree's page reuse carries exactly this
/// and its redo does nothing else (`btree_xlog_reuse_page`).
///
/// # Safety
/// `rel` is open.
pub unsafe fn log_before(rel: pg_sys::Relation, xid: u32) {
    #[repr(C)]
    struct ReusePage {
        node: pg_sys::RelFileNode,
        block: u32,
        latest_removed_full_xid: u64,
    }
    const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;
    const RM_BTREE_ID: u8 = 11;
    const SIZE: u32 = 24;
    // SAFETY: the record has the layout of `xl_btree_reuse_page` (nbtxlog.h of PostgreSQL 15): 12 + 4 + 8 bytes.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId().value;
        let age = (next as u32).wrapping_sub(xid);
        let mut record = ReusePage {
            node: (*rel).rd_node,
            block: 0,
            latest_removed_full_xid: next - u64::from(age),
        };
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData((&raw mut record).cast(), SIZE as i32);
        pg_sys::XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
    }
}
