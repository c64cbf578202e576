//! ANALYZE: samples blocks of the whole file; leaves of the first order give rows, every other page counts as empty.

use super::scan::{analyze_page, store_quad};
use crate::storage::{leaf_sample, Sampled};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::OnceLock;

#[cfg(not(feature = "pg17"))]
#[pg_guard]
pub unsafe extern "C-unwind" fn next_block(
    scan: pg_sys::TableScanDesc,
    block: pg_sys::BlockNumber,
    _strategy: pg_sys::BufferAccessStrategy,
) -> bool {
    // SAFETY: ANALYZE passes a scan made by our `begin` and a block of the relation.
    unsafe { sample(scan, block) }
    true
}

/// ANALYZE of PostgreSQL 17 hands out pages by a stream, which reads ahead.
#[cfg(feature = "pg17")]
#[pg_guard]
pub unsafe extern "C-unwind" fn next_block(
    scan: pg_sys::TableScanDesc,
    stream: *mut pg_sys::ReadStream,
) -> bool {
    // SAFETY: ANALYZE passes a scan made by our `begin`; the stream gives pinned pages of the relation.
    unsafe {
        let buffer = pg_sys::read_stream_next_buffer(stream, std::ptr::null_mut());
        if buffer == 0 {
            return false;
        }
        let block = pg_sys::BufferGetBlockNumber(buffer);
        pg_sys::ReleaseBuffer(buffer);
        sample(scan, block);
    }
    true
}

/// Gets the rows of a block ready for `next_tuple`.
///
/// # Safety
/// `scan` was made by our `begin`; the relation has the block.
unsafe fn sample(scan: pg_sys::TableScanDesc, block: pg_sys::BlockNumber) {
    // SAFETY: the caller's promise.
    unsafe {
        let sample = leaf_sample((*scan).rs_rd, block);
        analyze_page(scan, block, sample);
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn next_tuple(
    scan: pg_sys::TableScanDesc,
    _oldest_xmin: pg_sys::TransactionId,
    liverows: *mut f64,
    deadrows: *mut f64,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as for `next_block`; the slot is a virtual one.
    unsafe {
        while let Some((position, sampled)) = super::scan::next_sampled(scan) {
            match sampled {
                Sampled::Dead => *deadrows += 1.0,
                Sampled::Live(quad) => {
                    *liverows += 1.0;
                    if let Some(clear) = (*(*slot).tts_ops).clear {
                        clear(slot);
                    }
                    store_quad(slot, quad);
                    (*slot).tts_tid = position;
                    (*slot).tts_ops = positioned_slot();
                    return true;
                }
            }
        }
        false
    }
}

/// What a virtual slot does, except that a copied tuple keeps the slot's position. ANALYZE copies every sampled row and
/// sorts the copies by `t_self`; of a virtual slot all have the same, invalid one, and PostgreSQL's assertion fails.
fn positioned_slot() -> *const pg_sys::TupleTableSlotOps {
    static OPS: OnceLock<pg_sys::TupleTableSlotOps> = OnceLock::new();
    OPS.get_or_init(|| {
        // SAFETY: PostgreSQL's table of functions is constant.
        let ops = unsafe { pg_sys::TTSOpsVirtual };
        pg_sys::TupleTableSlotOps {
            copy_heap_tuple: Some(copy_with_position),
            ..ops
        }
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn copy_with_position(
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::HeapTuple {
    // SAFETY: a slot that `next_tuple` filled: virtual in all but this function, so its values are all there.
    unsafe {
        let tuple = pg_sys::heap_form_tuple(
            (*slot).tts_tupleDescriptor,
            (*slot).tts_values,
            (*slot).tts_isnull,
        );
        (*tuple).t_self = (*slot).tts_tid;
        tuple
    }
}
