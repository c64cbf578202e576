//! Execution of `Quad Count` (hash aggregation): the join below counts its rows group by group; groups that memory has no room for wait in a
//! temporary file.

use super::count_paths::argument;
use super::exec;
use crate::custom::{self, clear, Callbacks};
use crate::ffi::Methods;
use crate::scan::conditions::list_iter;
use crate::storage::{interrupt, TempFile};
use pgquad_btree::SIGN;
use pgquad_exec::{Counted, HashAggregation, Slot, Spill};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The node's name.
pub const NAME: &std::ffi::CStr = c"Quad Count";

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> =
    custom::scan_methods(NAME, create_state);

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods(
    NAME,
    Callbacks {
        begin,
        exec,
        end,
        rescan,
        explain: Some(explain),
    },
);

/// The node's own part.
struct QuadCount {
    /// The join's variables that rows are grouped by.
    by: Vec<Slot>,
    /// What is counted, in the order of the aggregates.
    counted: Vec<Counted>,
    /// The groups that are being handed out.
    tally: Option<HashAggregation>,
    /// The next one.
    at: usize,
    /// Bytes of groups written to files.
    spilled: u64,
    /// Of the query.
    context: pg_sys::MemoryContext,
}

/// Where groups wait; there is no file before there are any.
struct Waiting {
    file: Option<TempFile<u64>>,
    context: pg_sys::MemoryContext,
}

impl Spill for Waiting {
    fn append(&mut self, words: &[u64]) {
        let file = self.file.get_or_insert_with(|| TempFile::new(self.context));
        file.append(words);
    }

    fn read(&mut self, at: u64, words: &mut [u64]) {
        interrupt();
        if let Some(file) = &self.file {
            file.read(at, words);
        }
    }

    fn close(&mut self) {
        if let Some(file) = self.file.take() {
            file.close();
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: called where PostgreSQL makes the state.
    unsafe { custom::new_state::<QuadCount>(&EXEC_METHODS) }
}

#[pg_guard]
unsafe extern "C-unwind" fn begin(
    node: *mut pg_sys::CustomScanState,
    estate: *mut pg_sys::EState,
    eflags: core::ffi::c_int,
) {
    // SAFETY: the node was made by `create_state` from a plan of ours, whose only child is a `Quad Join`.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let child = custom::begin_children(node, estate, eflags)[0];
        let (mut by, mut counted) = (Vec::new(), Vec::new());
        for entry in list_iter::<pg_sys::TargetEntry>((*scan).custom_scan_tlist) {
            let expr = (*entry).expr.cast::<pg_sys::Node>();
            let slot = |column: *mut pg_sys::Node| {
                exec::slot_of(child, column.cast()).unwrap_or_else(|| {
                    crate::error::raise(
                        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                        "a column that is grouped or counted is missing in the Quad Join below",
                    )
                })
            };
            if (*expr).type_ == pg_sys::NodeTag::T_Var {
                by.push(slot(expr));
                continue;
            }
            let argument = argument(expr.cast());
            counted.push(if argument.is_null() {
                Counted::Rows
            } else {
                match slot(argument) {
                    slot if exec::is_always_bound(child, slot) => Counted::Rows,
                    slot => Counted::Bound(slot),
                }
            });
        }
        let own = QuadCount {
            by,
            counted,
            tally: None,
            at: 0,
            spilled: 0,
            context: (*estate).es_query_cxt,
        };
        custom::set_own(node, own);
    }
}

/// The child, a begun `Quad Join`.
unsafe fn child(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::PlanState {
    // SAFETY: `begin` has put one there.
    unsafe {
        list_iter((*node).custom_ps)
            .next()
            .unwrap_or(std::ptr::null_mut())
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn exec(
    node: *mut pg_sys::CustomScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a begun node, whose scan slot is a virtual one with a place for each column and each aggregate.
    unsafe {
        let own = &mut *custom::own::<QuadCount, _>(node);
        let slot = (*node).ss.ss_ScanTupleSlot;
        clear(slot);
        let Some((keys, counts)) = own.next(child(node)) else {
            return if (*node).ss.ps.ps_ProjInfo.is_null() {
                slot
            } else {
                clear((*node).ss.ps.ps_ResultTupleSlot)
            };
        };
        let keys = keys.into_iter().map(|key| key.map(|id| id ^ SIGN));
        let values = keys.chain(counts.into_iter().map(Some));
        for (place, value) in values.enumerate() {
            *(*slot).tts_values.add(place) = pg_sys::Datum::from(value.unwrap_or(0));
            *(*slot).tts_isnull.add(place) = value.is_none();
        }
        pg_sys::ExecStoreVirtualTuple(slot);
        custom::project(node)
    }
}

/// The values of a group's columns, and its counts.
type Group = (Vec<Option<u64>>, Vec<u64>);

impl QuadCount {
    /// The next group.
    ///
    /// # Safety
    /// `join` is the begun child.
    unsafe fn next(&mut self, join: *mut pg_sys::PlanState) -> Option<Group> {
        if self.tally.is_none() {
            let file = Waiting {
                file: None,
                context: self.context,
            };
            let tally = HashAggregation::new(self.by.clone(), self.counted.clone());
            // SAFETY: the caller's promise.
            let tally = unsafe { run(join, tally.within(room(), Box::new(file))) };
            self.at = 0;
            if tally.is_empty() && self.by.is_empty() {
                // Without GROUP BY no rows are one group.
                self.tally = Some(tally);
                return Some((Vec::new(), vec![0; self.counted.len()]));
            }
            self.tally = Some(tally);
        }
        let tally = self.tally.as_mut()?;
        while self.at >= tally.len() {
            if !tally.next_part() {
                return None;
            }
            self.at = 0;
        }
        let group = self.at;
        self.at += 1;
        let keys = (0..self.by.len()).map(|place| tally.value(group, place));
        let counts = (0..self.counted.len()).map(|place| tally.count(group, place));
        Some((keys.collect(), counts.collect()))
    }

    /// Forgets all groups.
    fn close(&mut self) {
        if let Some(tally) = self.tally.take() {
            self.spilled += tally.spilled();
            tally.close();
        }
    }
}

/// Bytes for groups.
fn room() -> usize {
    // SAFETY: a plain setting.
    unsafe { pg_sys::get_hash_memory_limit() }
}

/// Runs the join, counting with `tally`.
///
/// # Safety
/// `join` is the begun child.
unsafe fn run(join: *mut pg_sys::PlanState, tally: HashAggregation) -> HashAggregation {
    // SAFETY: the caller's promise.
    unsafe {
        let instrument = (*join).instrument;
        if !instrument.is_null() {
            pg_sys::InstrStartNode(instrument);
        }
        let tally = exec::aggregate_rows(join, tally);
        if !instrument.is_null() {
            pg_sys::InstrStopNode(instrument, tally.rows() as f64);
        }
        tally
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a begun node; our part is dropped with its memory context.
    unsafe {
        let own = custom::own::<QuadCount, _>(node);
        if !own.is_null() {
            (*own).close();
        }
        pg_sys::ExecEndNode(child(node));
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: a begun node. A child whose parameters have changed is rescanned when it is next asked, which this node does past the
    // executor's entry: so it is told at once.
    unsafe {
        (*custom::own::<QuadCount, _>(node)).close();
        custom::rescan_now(child(node), (*node).ss.ps.chgParam);
    }
}

/// ExplainCustomScan: what went to temporary files, if anything did.
#[pg_guard]
unsafe extern "C-unwind" fn explain(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN passes a begun node of ours and its own state.
    unsafe {
        let own = &*custom::own::<QuadCount, _>(node);
        let spilled = own.spilled + own.tally.as_ref().map_or(0, HashAggregation::spilled);
        if (*es).analyze && spilled > 0 {
            custom::explain_integer(c"Spilled", (spilled / 1024) as i64, es);
        }
    }
}
