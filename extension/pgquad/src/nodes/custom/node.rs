//! The skeleton of a custom scan node: what is the same in each of them, as one trait and its callbacks. The executor
//! calls the callbacks; they find the node's own part and call the trait. Example: the executor rescans a `Quad Scan`,
//! [`rescan`] calls `QuadScan::rescan` and then resets what PostgreSQL keeps. Contract of the callbacks:
//! `nodes/extensible.h`.

use crate::pg::exit::keep_in_context;
use crate::pg::ffi::{self, Methods};
use crate::pg::list::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// A custom scan node: its own part of the executor's state, which lives as long as the query, and what the executor
/// asks of it.
///
/// Rows come in batches: [`ScanNode::refill`] reads the next one and may fail, [`ScanNode::fill`] hands out one row of
/// it and may not.
///
/// # Safety
/// All functions are called from the callbacks of this module only, with a begun node whose own part is `self`. All but
/// [`ScanNode::has_row`] and [`ScanNode::fill`], which are called for each row, run under pgrx's guard: a Rust panic
/// there is an `ERROR`.
pub trait ScanNode: Sized + 'static {
    /// What EXPLAIN calls the node, and plans that are sent as text.
    const NAME: &'static CStr;

    /// What the node's state points at: a static, as PostgreSQL keeps the address.
    fn methods() -> &'static Methods<pg_sys::CustomExecMethods>;

    /// BeginCustomScan: makes the own part from the plan.
    unsafe fn begin(
        node: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: core::ffi::c_int,
    ) -> Self;

    /// Whether [`ScanNode::fill`] has a row to hand out.
    fn has_row(&self) -> bool;

    /// Reads the next rows, at least one; false at the end.
    unsafe fn refill(&mut self, state: *mut pg_sys::ScanState) -> bool;

    /// Puts the next row into the scan slot, a virtual one, and returns the number of its columns. Rows are plain
    /// memory: nothing here raises an `ERROR`, unless it is guarded on its own.
    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) -> usize;

    /// ExecCustomScan, for each row and so without a guard: conditions and target list as PostgreSQL has them. A node
    /// with a faster way for some plans takes it here.
    #[inline]
    unsafe fn exec(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the executor passes a begun node.
        unsafe { exec_scan::<Self>(node) }
    }

    /// Whether a row of the scan slot, changed by a concurrent update, still meets the conditions that the node itself
    /// enforces. Nodes that stand for joins or groups are never asked: they are not planned where rows are locked.
    unsafe fn recheck(
        &mut self,
        _state: *mut pg_sys::ScanState,
        _slot: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        true
    }

    /// ReScanCustomScan: the next row is the first again, perhaps with other parameters.
    unsafe fn rescan(&mut self, node: *mut pg_sys::CustomScanState);

    /// EndCustomScan: gives up what is not plain memory, and large memory. The plans below are ended afterwards.
    unsafe fn end(&mut self);

    /// ExplainCustomScan: the node's properties, and with ANALYZE what it has done.
    unsafe fn explain(
        &self,
        node: *mut pg_sys::CustomScanState,
        ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    );
}

/// PostgreSQL's node with our part behind it; the first field must be the node.
#[repr(C)]
struct State<N> {
    css: pg_sys::CustomScanState,
    /// Set by BeginCustomScan; in the executor's per-query context.
    own: *mut N,
}

/// The table that the state of a node points at.
pub const fn exec_methods<N: ScanNode>() -> Methods<pg_sys::CustomExecMethods> {
    Methods(pg_sys::CustomExecMethods {
        CustomName: N::NAME.as_ptr(),
        BeginCustomScan: Some(begin::<N>),
        ExecCustomScan: Some(exec::<N>),
        EndCustomScan: Some(end::<N>),
        ReScanCustomScan: Some(rescan::<N>),
        MarkPosCustomScan: None,
        RestrPosCustomScan: None,
        EstimateDSMCustomScan: None,
        InitializeDSMCustomScan: None,
        ReInitializeDSMCustomScan: None,
        InitializeWorkerCustomScan: None,
        ShutdownCustomScan: None,
        ExplainCustomScan: Some(explain::<N>),
    })
}

/// The table that the plan of a node points at.
pub const fn scan_methods<N: ScanNode>() -> Methods<pg_sys::CustomScanMethods> {
    Methods(pg_sys::CustomScanMethods {
        CustomName: N::NAME.as_ptr(),
        CreateCustomScanState: Some(create_state::<N>),
    })
}

/// Makes plans with a node readable by copies (parallel workers, plan trees sent as text). To be called from
/// `_PG_init`.
pub fn register(methods: &'static Methods<pg_sys::CustomScanMethods>) {
    // SAFETY: the table lives as long as the process.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const methods.0) }
}

/// The own part of a node; NULL before it has begun.
///
/// # Safety
/// `node` is a node of kind `N`; it may be passed as any of the types that its state starts with.
#[inline]
pub unsafe fn own<N: ScanNode, S>(node: *mut S) -> *mut N {
    // SAFETY: the caller's promise.
    unsafe { (*node.cast::<State<N>>()).own }
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state<N: ScanNode>(
    _scan: *mut pg_sys::CustomScan,
) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a valid state apart from tag and methods, which are set.
    unsafe {
        let state = pg_sys::palloc0(size_of::<State<N>>()).cast::<State<N>>();
        (*state).css.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*state).css.methods = &raw const N::methods().0;
        state.cast()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin<N: ScanNode>(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: core::ffi::c_int,
) {
    // SAFETY: the executor's own arguments; the state was made by `create_state`. The part is dropped with the query's
    // memory.
    unsafe {
        let own = N::begin(node, estate, eflags);
        (*node.cast::<State<N>>()).own = keep_in_context(own);
    }
}

unsafe extern "C-unwind" fn exec<N: ScanNode>(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the executor passes a begun node.
    unsafe { N::exec(node) }
}

/// The next row that meets the conditions, as the target list wants it.
///
/// # Safety
/// `node` is a begun node of kind `N`.
#[inline]
pub unsafe fn exec_scan<N: ScanNode>(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe { ffi::ExecScanUnguarded(&raw mut (*node).ss, Some(next::<N>), Some(recheck::<N>)) }
}

/// The next row in the scan slot, which is empty at the end. No Rust value with a destructor lives in this frame.
///
/// # Safety
/// `state` is the first part of a begun node of kind `N`.
pub unsafe extern "C-unwind" fn next<N: ScanNode>(
    state: *mut pg_sys::ScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        let slot = (*state).ss_ScanTupleSlot;
        let Some(own) = at_next_row::<N>(state) else {
            return clear(slot);
        };
        let columns = own.fill(slot);
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = columns as i16;
        slot
    }
}

/// The own part of a node that has a row to hand out; `None` at the end. The reference is made after `refill`, which
/// changes the part through a reference of its own.
///
/// # Safety
/// As for [`next`].
#[inline]
pub unsafe fn at_next_row<'a, N: ScanNode>(state: *mut pg_sys::ScanState) -> Option<&'a mut N> {
    // SAFETY: the caller's promise.
    unsafe {
        let own = own::<N, _>(state);
        if !(*own).has_row() && !refill::<N>(state) {
            return None;
        }
        Some(&mut *own)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn refill<N: ScanNode>(state: *mut pg_sys::ScanState) -> bool {
    // SAFETY: as for `next`.
    unsafe { (*own::<N, _>(state)).refill(state) }
}

/// What ExecScan calls instead of [`next`] within EvalPlanQual. PostgreSQL before 15.15 calls it for every node that
/// stands for no single table. That includes nodes in expressions (`SET n = (SELECT count(*) ..)`), which give their
/// rows as ever.
unsafe extern "C-unwind" fn recheck<N: ScanNode>(
    state: *mut pg_sys::ScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: EvalPlanQual passes a begun node and its scan slot.
    unsafe {
        let scan = (*state).ps.plan.cast::<pg_sys::Scan>();
        if (*scan).scanrelid == 0 {
            let row = next::<N>(state);
            return (*row).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0;
        }
        meets_conditions::<N>(state, slot)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn meets_conditions<N: ScanNode>(
    state: *mut pg_sys::ScanState,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: EvalPlanQual passes a begun node and its filled scan slot.
    unsafe { (*own::<N, _>(state)).recheck(state, slot) }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan<N: ScanNode>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the executor passes a begun node.
    unsafe {
        (*own::<N, _>(node)).rescan(node);
        pg_sys::ExecScanReScan(&raw mut (*node).ss);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end<N: ScanNode>(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the executor passes a node; the value itself is dropped with its memory context.
    unsafe {
        let own = own::<N, _>(node);
        if !own.is_null() {
            (*own).end();
        }
        for child in list_iter::<pg_sys::PlanState>((*node).custom_ps) {
            pg_sys::ExecEndNode(child);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn explain<N: ScanNode>(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN passes a begun node and its own state.
    unsafe { (*own::<N, _>(node)).explain(node, ancestors, es) }
}

/// Begins the plans below a node; returns them in their order.
///
/// # Safety
/// Arguments are those of BeginCustomScan.
pub unsafe fn begin_children(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: core::ffi::c_int,
) -> Vec<*mut pg_sys::PlanState> {
    // SAFETY: the caller's promise.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let begin = |plan| {
            let child = pg_sys::ExecInitNode(plan, estate, eflags);
            (*node).custom_ps = pg_sys::lappend((*node).custom_ps, child.cast());
            child
        };
        list_iter((*scan).custom_plans).map(begin).collect()
    }
}

/// Rescans a plan below at once, for a node that bypasses the executor's entry. That entry would rescan the plan when
/// it is next asked.
///
/// # Safety
/// `child` is a begun node; `changed` are the parameters that have changed, or NULL.
pub unsafe fn rescan_now(child: *mut pg_sys::PlanState, changed: *mut pg_sys::Bitmapset) {
    // SAFETY: the caller's promise.
    unsafe {
        if !changed.is_null() {
            pg_sys::UpdateChangedParamSet(child, changed);
        }
        pg_sys::ExecReScan(child);
    }
}

/// The slot, empty: what a node returns at its end.
///
/// # Safety
/// `slot` is a live slot.
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            clear(slot);
        }
    }
    slot
}
