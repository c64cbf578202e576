//! One task for each order of a table, side by side in parallel workers: what VACUUM and `quad.verify` do.
//!
//! The workers are those of a parallel index build or VACUUM (`access/parallel.h`): they share the leader's
//! transaction, snapshot and locks. Each takes the next order that nobody has begun; so does the leader.

use super::order_task::{OrderReport, Task};
use super::table::Table;
use pgquad_btree::MAX_ORDERS;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Key of [`Shared`] in the table of contents of the shared memory.
const SHARED_KEY: u64 = 1;
/// `BUFFERALIGN` of `c.h`, to which `shm_toc` rounds sizes up.
const ALIGNMENT: usize = 32;

/// What leader and workers have in common. Each report is written by the process that has taken the order, and read by
/// the leader when all workers have ended.
#[repr(C)]
struct Shared {
    table: pg_sys::Oid,
    task: Task,
    orders: u32,
    /// The next order that nobody has taken.
    next: AtomicU32,
    reports: [OrderReport; MAX_ORDERS],
}

/// The number of workers for a table: at most one for each order but the leader's, as many as
/// `max_parallel_maintenance_workers` allows, and none for a table smaller than `min_parallel_table_scan_size`.
///
/// # Safety
/// `rel` is an open quad table.
unsafe fn workers_for(rel: pg_sys::Relation, orders: usize, most: i32) -> i32 {
    // SAFETY: the caller's promise; settings of PostgreSQL.
    unsafe {
        let pages = pg_sys::RelationGetNumberOfBlocksInFork(rel, pg_sys::ForkNumber::MAIN_FORKNUM);
        let is_small = pages < pg_sys::min_parallel_table_scan_size.max(1) as u32;
        let is_local = (*(*rel).rd_rel).relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
        if is_small || is_local || pg_sys::IsInParallelMode() {
            return 0;
        }
        (orders as i32 - 1)
            .min(pg_sys::max_parallel_maintenance_workers)
            .min(most)
            .max(0)
    }
}

/// Does the task with each order; `most`: workers at most. Returns the reports by order.
///
/// # Safety
/// `rel` is an open quad table, locked for the task by this session.
pub unsafe fn for_each_order(
    rel: pg_sys::Relation,
    table: &Table,
    task: Task,
    most: i32,
) -> Vec<OrderReport> {
    let orders = table.orders().len();
    // SAFETY: the caller's promise.
    let workers = unsafe { workers_for(rel, orders, most) };
    if workers == 0 {
        return (0..orders).map(|n| table.work_on(task, n)).collect();
    }
    // SAFETY: the sequence of calls that `access/transam/README.parallel` prescribes. The shared memory lives until the
    // context is destroyed, here or by PostgreSQL after an error.
    unsafe {
        pg_sys::EnterParallelMode();
        let context = pg_sys::CreateParallelContext(
            c"pgquad".as_ptr(),
            c"pgquad_work_on_orders".as_ptr(),
            workers,
        );
        let size = size_of::<Shared>();
        (*context).estimator.space_for_chunks += size.next_multiple_of(ALIGNMENT);
        (*context).estimator.number_of_keys += 1;
        pg_sys::InitializeParallelDSM(context);
        let shared: *mut Shared = pg_sys::shm_toc_allocate((*context).toc, size).cast();
        shared.write(Shared {
            table: (*rel).rd_id,
            task,
            orders: orders as u32,
            next: AtomicU32::new(0),
            reports: [OrderReport::default(); MAX_ORDERS],
        });
        pg_sys::shm_toc_insert((*context).toc, SHARED_KEY, shared.cast());
        pg_sys::LaunchParallelWorkers(context);
        work(shared, table);
        pg_sys::WaitForParallelWorkersToFinish(context);
        let reports = (&raw const (*shared).reports).read()[..orders].to_vec();
        pg_sys::DestroyParallelContext(context);
        pg_sys::ExitParallelMode();
        reports
    }
}

/// Takes orders as long as there are any.
///
/// # Safety
/// `shared` is the shared memory of the parallel operation that this process takes part in.
unsafe fn work(shared: *mut Shared, table: &Table) {
    // SAFETY: the caller's promise; nobody else has a reference to the report of an order taken here.
    unsafe {
        loop {
            let n = (*shared).next.fetch_add(1, Ordering::Relaxed);
            if n >= (*shared).orders {
                return;
            }
            let report = table.work_on((*shared).task, n as usize);
            (&raw mut (*shared).reports[n as usize]).write(report);
        }
    }
}

/// The entry point of a parallel worker.
///
/// # Safety
/// Called by PostgreSQL, for [`for_each_order`].
#[pg_guard]
#[no_mangle]
pub unsafe extern "C-unwind" fn pgquad_work_on_orders(
    _segment: *mut pg_sys::dsm_segment,
    contents: *mut pg_sys::shm_toc,
) {
    // SAFETY: the leader has put it there.
    unsafe {
        let shared: *mut Shared = pg_sys::shm_toc_lookup(contents, SHARED_KEY, false).cast();
        // Locks of one group do not stand in each other's way.
        let lock = match (*shared).task {
            Task::Verify => pg_sys::AccessShareLock,
            Task::Vacuum => pg_sys::ShareUpdateExclusiveLock,
        };
        let rel = pg_sys::table_open((*shared).table, lock as pg_sys::LOCKMODE);
        work(shared, &Table::open(rel));
        pg_sys::table_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}
