//! ANALYZE: samples blocks of the whole file; leaves of the first order give rows, every other page counts as empty.

use super::scan::{analyze_page, store_quad};
use crate::storage::{leaf_sample, Sampled};
use pgrx::pg_sys;
use pgrx::prelude::*;

#[pg_guard]
pub unsafe extern "C-unwind" fn next_block(
    scan: pg_sys::TableScanDesc,
    block: pg_sys::BlockNumber,
    _strategy: pg_sys::BufferAccessStrategy,
) -> bool {
    // SAFETY: ANALYZE passes a scan made by our `begin` and a block of the relation.
    unsafe {
        let sample = leaf_sample((*scan).rs_rd, block);
        analyze_page(scan, sample);
        true
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
        while let Some(sampled) = super::scan::next_sampled(scan) {
            match sampled {
                Sampled::Dead => *deadrows += 1.0,
                Sampled::Live(quad) => {
                    *liverows += 1.0;
                    if let Some(clear) = (*(*slot).tts_ops).clear {
                        clear(slot);
                    }
                    store_quad(slot, quad);
                    return true;
                }
            }
        }
        false
    }
}
