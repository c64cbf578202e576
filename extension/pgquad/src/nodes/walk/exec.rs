//! Execution of `Quad Walk`: the semi-naive transitive closure. Rows of the first term are the first frontier. Each
//! frontier goes to the step. The rows that it reaches and that are not in the visited set are the next frontier. Rows
//! are handed out as they are found.

use super::step::{self, QuadStep, Reached};
use super::visited_set::{Row, VisitedSet};
use crate::nodes::custom::{self, ScanNode};
use crate::pg::ffi::Methods;
use crate::pg::interrupt::interrupt;
use crate::pg::list::list_iter;
use pgquad_btree::SIGN;
use pgquad_exec::WalkData;
use pgrx::pg_sys;
use std::ffi::CStr;

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods::<QuadWalk>();

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods::<QuadWalk>();

/// Rows taken from the first term, and handed out, at a time.
const BATCH_ROWS: usize = 1024;
/// Rows handed to the step at a time, and the bytes that each of them takes there.
const FRONTIER_ROWS: std::ops::Range<usize> = 1024..65_536;
const FRONTIER_BYTES: usize = 200;
/// The node's own part.
pub struct QuadWalk {
    arity: usize,
    at: usize,
    first: *mut pg_sys::PlanState,
    step: *mut pg_sys::CustomScanState,
    /// Most rows of a frontier.
    most: usize,
    /// All rows of the first term have been taken.
    begun: bool,
    visited: VisitedSet,
    /// Rows of the queue that have been handed to the step, and those in `rows` or handed out before.
    expanded: u64,
    emitted: u64,
    frontier: Vec<Row>,
    rows: Vec<Row>,
    row: usize,
    frontiers: u64,
}

impl ScanNode for QuadWalk {
    const NAME: &'static CStr = c"Quad Walk";

    fn methods() -> &'static Methods<pg_sys::CustomExecMethods> {
        &EXEC_METHODS
    }

    unsafe fn begin(
        node: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: core::ffi::c_int,
    ) -> Self {
        // SAFETY: the plan was made by `plan_path`, with two plans below it.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let children = custom::begin_children(node, estate, eflags);
            let bytes = pg_sys::get_hash_memory_limit();
            let data: WalkData = custom::private_data(scan);
            Self {
                arity: data.arity,
                at: data.at,
                first: children[0],
                step: step::step_of(children[1]),
                begun: false,
                most: (bytes / 4 / FRONTIER_BYTES).clamp(FRONTIER_ROWS.start, FRONTIER_ROWS.end),
                visited: VisitedSet::new(bytes / 4 * 3, (*estate).es_query_cxt),
                expanded: 0,
                emitted: 0,
                frontier: Vec::new(),
                rows: Vec::new(),
                row: 0,
                frontiers: 0,
            }
        }
    }

    #[inline]
    fn has_row(&self) -> bool {
        self.row < self.rows.len()
    }

    unsafe fn refill(&mut self, _state: *mut pg_sys::ScanState) -> bool {
        self.row = 0;
        loop {
            interrupt();
            self.visited.read(self.emitted, BATCH_ROWS, &mut self.rows);
            if !self.rows.is_empty() {
                self.emitted += self.rows.len() as u64;
                return true;
            }
            if !self.begun {
                // SAFETY: the plan below was begun with the node.
                unsafe { self.take_first() };
            } else if self.expanded < self.visited.len() {
                // SAFETY: as above.
                unsafe { self.expand() };
            } else {
                return false;
            }
        }
    }

    #[inline]
    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) -> usize {
        // SAFETY: there is a row; the slot has a place for each of its columns.
        unsafe {
            let row = *self.rows.get_unchecked(self.row);
            self.row += 1;
            for column in 0..self.arity {
                let part = usize::from(column != self.at);
                *(*slot).tts_values.add(column) = pg_sys::Datum::from(row[part] ^ SIGN);
                *(*slot).tts_isnull.add(column) = row[2] >> part & 1 != 0;
            }
        }
        self.arity
    }

    unsafe fn rescan(&mut self, node: *mut pg_sys::CustomScanState) {
        self.begun = false;
        self.visited.clear();
        (self.expanded, self.emitted) = (0, 0);
        self.rows.clear();
        self.row = 0;
        // SAFETY: begun nodes. The step is used past the executor's entry, so both children are told at once.
        unsafe {
            for child in list_iter::<pg_sys::PlanState>((*node).custom_ps) {
                custom::rescan_now(child, (*node).ss.ps.chgParam);
            }
            // A subquery scan leaves that to the executor's entry of what is below it.
            let step = self.step.cast::<pg_sys::PlanState>();
            if !(*step).chgParam.is_null() {
                pg_sys::ExecReScan(step);
            }
        }
    }

    unsafe fn end(&mut self) {
        self.visited.clear();
        self.rows = Vec::new();
        self.row = 0;
    }

    unsafe fn explain(
        &self,
        _node: *mut pg_sys::CustomScanState,
        _ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    ) {
        // SAFETY: EXPLAIN's own state.
        unsafe {
            if !(*es).analyze {
                return;
            }
            for (label, value) in [
                (c"Frontiers", self.frontiers),
                (c"Runs Spilled", self.visited.spilled),
            ] {
                custom::explain_integer(label, value as i64, es);
            }
        }
    }
}

impl QuadWalk {
    /// Takes rows of the first term.
    unsafe fn take_first(&mut self) {
        // SAFETY: a begun node, whose slots have as many columns of `bigint` as the walk's own.
        unsafe {
            for _ in 0..BATCH_ROWS {
                let slot = next_row(self.first);
                if slot.is_null() {
                    self.begun = true;
                    break;
                }
                let mut row = [0; 3];
                for column in 0..self.arity {
                    let part = usize::from(column != self.at);
                    if *(*slot).tts_isnull.add(column) {
                        row[2] |= 1 << part;
                    } else {
                        row[part] = (*(*slot).tts_values.add(column)).value() as u64 ^ SIGN;
                    }
                }
                self.visited.add(row);
            }
            self.visited.enqueue_pending();
        }
    }

    /// Hands rows to the step.
    unsafe fn expand(&mut self) {
        self.visited
            .read(self.expanded, self.most, &mut self.frontier);
        self.expanded += self.frontier.len() as u64;
        // NULL leads nowhere. Rows of one column that are not told apart by another one are all the same start.
        self.frontier.retain(|row| row[2] & 1 == 0);
        let starts: Vec<Reached> = (0u32..)
            .zip(&self.frontier)
            .map(|(n, row)| (row[0], if self.arity == 1 { 0 } else { n }))
            .collect();
        if starts.is_empty() {
            return;
        }
        self.frontiers += 1;
        let (frontier, visited) = (&self.frontier, &mut self.visited);
        // SAFETY: the step below this node, begun.
        let step = unsafe { &mut *custom::own::<QuadStep, _>(self.step) };
        step.expand(starts, |to, start| {
            let from = &frontier[start as usize];
            visited.add([to, from[1], from[2]]);
        });
        self.visited.enqueue_pending();
    }
}

/// The next row of a plan, with all its columns; NULL at the end.
unsafe fn next_row(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a begun node. What `ExecProcNode` of `executor/executor.h` does, which is inline there.
    unsafe {
        if !(*node).chgParam.is_null() {
            pg_sys::ExecReScan(node);
        }
        let run = (*node).ExecProcNode.expect("a begun node");
        let slot = pg_sys::ffi::pg_guard_ffi_boundary(|| run(node));
        if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
            return std::ptr::null_mut();
        }
        pg_sys::slot_getallattrs(slot);
        slot
    }
}
