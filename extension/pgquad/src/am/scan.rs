//! Sequential scan: a walk over the first order, both directions. `Quad Scan` replaces it in plans; it remains for
//! COPY, ANALYZE, ALTER TABLE rewrites and `WHERE CURRENT OF`.

use super::{shape, tid};
use crate::pg::error::raise_hint;
use crate::pg::exit::keep_in_context;
use crate::storage::Sampled;
use crate::table::{pending, OrderCursor};
use pgquad_btree::{Order, Quad, SIGN};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Scan descriptor; the first field must be PostgreSQL's.
#[repr(C)]
struct Descriptor {
    base: pg_sys::TableScanDescData,
    walk: *mut Walk,
    /// Rows of the block that ANALYZE reads; null until the first.
    sample: *mut SampledBlock,
}

/// The rows of one block, in the order of the page.
struct SampledBlock {
    block: pg_sys::BlockNumber,
    rows: Vec<Sampled>,
    /// Index in `rows` of the row to give next.
    next: usize,
}

struct Walk {
    cursor: OrderCursor,
    order: Order,
    /// Equality keys given to the scan, per column, in tree form.
    equal: [Option<u64>; 4],
    batch: Vec<[u64; 4]>,
    /// Position of the row last returned; `None` before the first and after the last of a batch.
    at: Option<usize>,
    forward: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    NotStarted,
    Within,
    BeforeFirst,
    AfterLast,
}

/// Shared state of a parallel scan: the participant that claims it first reads all of it. An ordered tree has no block
/// ranges to hand out; the planner offers no parallel paths for quad tables, this serves forced parallel plans only.
#[repr(C)]
struct ParallelDescriptor {
    base: pg_sys::ParallelTableScanDescData,
    claimed: AtomicU32,
}

#[pg_guard]
pub unsafe extern "C-unwind" fn begin(
    rel: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    nkeys: core::ffi::c_int,
    keys: *mut pg_sys::ScanKeyData,
    pscan: pg_sys::ParallelTableScanDesc,
    flags: pg_sys::uint32,
) -> pg_sys::TableScanDesc {
    // SAFETY: PostgreSQL passes an open relation and, unless ANALYZE scans, a valid snapshot.
    unsafe {
        pg_sys::RelationIncrementReferenceCount(rel);
        let scan = pg_sys::palloc0(size_of::<Descriptor>()).cast::<Descriptor>();
        (*scan).base.rs_rd = rel;
        (*scan).base.rs_snapshot = snapshot;
        (*scan).base.rs_nkeys = nkeys;
        (*scan).base.rs_flags = flags;
        (*scan).base.rs_parallel = pscan;
        if !snapshot.is_null() {
            if (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_DIRTY {
                refuse_replicated_change(rel);
            }
            let cursor = OrderCursor::new(rel, snapshot, 0);
            let order = cursor.order();
            let walk = Walk {
                cursor,
                order,
                equal: [None; 4],
                batch: Vec::new(),
                at: None,
                forward: true,
                state: State::NotStarted,
            };
            (*scan).walk = keep_in_context(walk);
            set_keys(scan, keys);
        }
        &raw mut (*scan).base
    }
}

/// Only logical replication looks for rows in a dirty snapshot where there is no index. It wants to know them by ctid
/// in a later call.
unsafe fn refuse_replicated_change(rel: pg_sys::Relation) -> ! {
    // SAFETY: the relation is open.
    let name = unsafe { shape::relation_name(rel) };
    raise_hint(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("logical replication cannot update or delete rows of quad table \"{name}\""),
        "Publish insertions only: CREATE PUBLICATION .. WITH (publish = 'insert').",
    )
}

/// # Safety
/// `scan` has a walk; `keys` is null or an array of `rs_nkeys` keys.
unsafe fn set_keys(scan: *mut Descriptor, keys: *mut pg_sys::ScanKeyData) {
    // SAFETY: the caller's promise.
    unsafe {
        let walk = &mut *(*scan).walk;
        walk.equal = [None; 4];
        for i in 0..(*scan).base.rs_nkeys as usize {
            if keys.is_null() {
                break;
            }
            let key = &*keys.add(i);
            let equality = key.sk_func.fn_oid == pg_sys::Oid::from(pg_sys::F_INT8EQ);
            if !equality || !(1..=4).contains(&key.sk_attno) {
                error!("scan keys of quad tables must be bigint equalities");
            }
            walk.equal[key.sk_attno as usize - 1] = Some(key.sk_argument.value() as u64 ^ SIGN);
        }
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn end(scan: pg_sys::TableScanDesc) {
    // SAFETY: a scan made by `begin`; the walk itself is dropped with its memory context.
    unsafe {
        let scan = scan.cast::<Descriptor>();
        if !(*scan).walk.is_null() {
            (*(*scan).walk).batch = Vec::new();
            (*(*scan).walk).cursor.close();
        }
        pg_sys::RelationDecrementReferenceCount((*scan).base.rs_rd);
        if (*scan).base.rs_flags & pg_sys::ScanOptions::SO_TEMP_SNAPSHOT != 0 {
            pg_sys::UnregisterSnapshot((*scan).base.rs_snapshot);
        }
        pg_sys::pfree(scan.cast());
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn rescan(
    scan: pg_sys::TableScanDesc,
    keys: *mut pg_sys::ScanKeyData,
    _set_params: bool,
    _allow_strat: bool,
    _allow_sync: bool,
    _allow_pagemode: bool,
) {
    // SAFETY: a scan made by `begin`.
    unsafe {
        let scan = scan.cast::<Descriptor>();
        if let Some(walk) = (*scan).walk.as_mut() {
            walk.batch.clear();
            walk.at = None;
            walk.state = State::NotStarted;
            if !keys.is_null() {
                set_keys(scan, keys);
            }
        }
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn getnextslot(
    scan: pg_sys::TableScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: a scan made by `begin`, a virtual slot of four columns.
    unsafe {
        let scan = scan.cast::<Descriptor>();
        if let Some(clear) = (*(*slot).tts_ops).clear {
            clear(slot);
        }
        let Some(walk) = (*scan).walk.as_mut() else {
            error!("a quad table scan needs a snapshot");
        };
        if walk.state == State::NotStarted && !claim(scan) {
            return false;
        }
        let forward = direction != pg_sys::ScanDirection::BackwardScanDirection;
        let Some(key) = walk.step(forward) else {
            return false;
        };
        let quad = pgquad_btree::quad_of(walk.order, &key);
        store_quad(slot, quad);
        // COPY and commands that rewrite the table come for the rows alone.
        (*slot).tts_tid = if pending::within_executor() {
            tid::remember(quad)
        } else {
            tid::NO_IDENTITY
        };
        (*slot).tts_tableOid = (*(*scan).base.rs_rd).rd_id;
        true
    }
}

/// Puts a quad into a cleared virtual slot.
///
/// # Safety
/// `slot` is a cleared virtual slot of four bigint columns.
pub unsafe fn store_quad(slot: *mut pg_sys::TupleTableSlot, quad: Quad) {
    // SAFETY: the caller's promise.
    unsafe {
        for (i, value) in quad.iter().enumerate() {
            *(*slot).tts_values.add(i) = pg_sys::Datum::from(*value);
            *(*slot).tts_isnull.add(i) = false;
        }
        if (*(*slot).tts_tupleDescriptor).natts > 4 {
            *(*slot).tts_isnull.add(4) = true;
        }
        pg_sys::ExecStoreVirtualTuple(slot);
    }
}

/// In a parallel scan only one participant may read.
///
/// # Safety
/// `scan` was made by `begin`.
unsafe fn claim(scan: *mut Descriptor) -> bool {
    // SAFETY: the shared part was initialised by `parallel_initialize`.
    unsafe {
        let shared = (*scan).base.rs_parallel.cast::<ParallelDescriptor>();
        shared.is_null() || (*shared).claimed.swap(1, Ordering::Relaxed) == 0
    }
}

impl Walk {
    /// The next quad in the given direction.
    fn step(&mut self, forward: bool) -> Option<[u64; 4]> {
        loop {
            if !self.position(forward) {
                return None;
            }
            let key = self.batch[self.at?];
            let wanted =
                self.order.columns().iter().zip(key).all(|(&c, value)| {
                    self.equal[usize::from(c)].is_none_or(|equal| equal == value)
                });
            if wanted {
                return Some(key);
            }
        }
    }

    /// Moves `at` by one; reads another leaf where the batch ends. False past either end.
    fn position(&mut self, forward: bool) -> bool {
        let (low, high) = self.limits();
        match (self.state, forward) {
            (State::NotStarted, true) | (State::BeforeFirst, true) => {
                self.cursor.seek(low, high);
                self.forward = true;
                self.batch.clear();
                self.at = None;
            }
            (State::NotStarted, false) | (State::AfterLast, false) => {
                self.cursor.seek_last(low, high);
                self.forward = false;
                self.batch.clear();
                self.at = None;
            }
            (State::AfterLast, true) | (State::BeforeFirst, false) => return false,
            (State::Within, _) => {
                let at = self.at.unwrap_or(0);
                let next = if forward {
                    at.checked_add(1)
                } else {
                    at.checked_sub(1)
                };
                if let Some(next) = next.filter(|n| *n < self.batch.len()) {
                    self.at = Some(next);
                    return true;
                }
                self.turn(forward, low, high);
            }
        }
        self.read(forward)
    }

    /// Prepares to read the leaf beyond the current batch, in a direction that may differ from the last one.
    fn turn(&mut self, forward: bool, low: [u64; 4], high: [u64; 4]) {
        if forward == self.forward {
            return;
        }
        self.forward = forward;
        let edge = if forward {
            self.batch.last()
        } else {
            self.batch.first()
        };
        let Some(&edge) = edge else { return };
        if forward {
            match successor(edge) {
                Some(next) if next <= high => self.cursor.seek(next, high),
                _ => self.cursor.finish_range(),
            }
        } else {
            match predecessor(edge) {
                Some(last) if last >= low => self.cursor.seek_last(low, last),
                _ => self.cursor.finish_range(),
            }
        }
    }

    fn read(&mut self, forward: bool) -> bool {
        loop {
            self.batch.clear();
            let more = if forward {
                self.cursor.next_batch(&mut self.batch)
            } else {
                self.cursor.previous_batch(&mut self.batch)
            };
            if !more {
                self.state = if forward {
                    State::AfterLast
                } else {
                    State::BeforeFirst
                };
                return false;
            }
            if !self.batch.is_empty() {
                self.state = State::Within;
                self.at = Some(if forward { 0 } else { self.batch.len() - 1 });
                return true;
            }
        }
    }

    /// The key range that the equality keys on leading columns leave.
    fn limits(&self) -> ([u64; 4], [u64; 4]) {
        let (mut low, mut high) = ([0; 4], [u64::MAX; 4]);
        for (i, &column) in self.order.columns().iter().enumerate() {
            let Some(value) = self.equal[usize::from(column)] else {
                break;
            };
            low[i] = value;
            high[i] = value;
        }
        (low, high)
    }
}

/// The next key in order, `None` after the last possible.
fn successor(mut key: [u64; 4]) -> Option<[u64; 4]> {
    for i in (0..4).rev() {
        let (next, overflow) = key[i].overflowing_add(1);
        key[i] = next;
        if !overflow {
            return Some(key);
        }
    }
    None
}

/// The previous key in order, `None` before the first possible.
fn predecessor(mut key: [u64; 4]) -> Option<[u64; 4]> {
    for i in (0..4).rev() {
        let (next, overflow) = key[i].overflowing_sub(1);
        key[i] = next;
        if !overflow {
            return Some(key);
        }
    }
    None
}

#[pg_guard]
pub unsafe extern "C-unwind" fn parallel_estimate(_rel: pg_sys::Relation) -> pg_sys::Size {
    size_of::<ParallelDescriptor>()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn parallel_initialize(
    rel: pg_sys::Relation,
    pscan: pg_sys::ParallelTableScanDesc,
) -> pg_sys::Size {
    // SAFETY: PostgreSQL allotted what `parallel_estimate` asked for.
    unsafe {
        let shared = pscan.cast::<ParallelDescriptor>();
        (*shared).base.phs_relid = (*rel).rd_id;
        (*shared).base.phs_syncscan = false;
        (*shared).claimed.store(0, Ordering::Relaxed);
    }
    size_of::<ParallelDescriptor>()
}

#[pg_guard]
pub unsafe extern "C-unwind" fn parallel_reinitialize(
    _rel: pg_sys::Relation,
    pscan: pg_sys::ParallelTableScanDesc,
) {
    // SAFETY: initialised by `parallel_initialize`.
    unsafe {
        (*pscan.cast::<ParallelDescriptor>())
            .claimed
            .store(0, Ordering::Relaxed);
    }
}

/// Hands the rows of one sampled block to an ANALYZE scan.
///
/// # Safety
/// `scan` was made by `begin`.
pub unsafe fn analyze_page(
    scan: pg_sys::TableScanDesc,
    block: pg_sys::BlockNumber,
    rows: Vec<Sampled>,
) {
    let sample = SampledBlock {
        block,
        rows,
        next: 0,
    };
    // SAFETY: the caller's promise.
    unsafe {
        let scan = scan.cast::<Descriptor>();
        match (*scan).sample.as_mut() {
            Some(place) => *place = sample,
            None => {
                (*scan).sample = keep_in_context(sample);
            }
        }
    }
}

/// The next row of the block given last, with its position: the block and, from 1, the place within the page.
///
/// # Safety
/// `scan` was made by `begin`.
pub unsafe fn next_sampled(
    scan: pg_sys::TableScanDesc,
) -> Option<(pg_sys::ItemPointerData, Sampled)> {
    // SAFETY: the caller's promise.
    let sample = unsafe { (*scan.cast::<Descriptor>()).sample.as_mut()? };
    let row = *sample.rows.get(sample.next)?;
    sample.next += 1;
    let mut position = pg_sys::ItemPointerData::default();
    // A page of 8 kB has fewer entries than an offset can count.
    pgrx::itemptr::item_pointer_set_all(&mut position, sample.block, sample.next as u16);
    Some((position, row))
}
