//! Execution of `Quad Count` (hash aggregation): the join below counts its rows, and adds up numbers, group by group;
//! groups that memory has no room for wait in a temporary file.

use super::count_paths::{argument, Aggregate};
use super::exec;
use crate::custom::{self, clear, Callbacks};
use crate::ffi::Methods;
use crate::scan::conditions::list_iter;
use crate::storage::{interrupt, TempFile};
use crate::term::{average, average_id, sum_id, total};
use pgquad_btree::SIGN;
use pgquad_exec::{Counted, HashAggregation, Slot, Spill};
use pgquad_term::aggregate::Sum;
use pgrx::prelude::*;
use pgrx::{pg_sys, IntoDatum, PgMemoryContexts};

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
    /// What becomes of it.
    aggregates: Vec<Aggregate>,
    /// By argument of a sum, the variables that it is computed from.
    arguments: Vec<Vec<Slot>>,
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
        let (mut by, mut counted, mut aggregates) = (Vec::new(), Vec::new(), Vec::new());
        let mut arguments = Vec::new();
        for entry in list_iter::<pg_sys::TargetEntry>((*scan).custom_scan_tlist) {
            let expr = (*entry).expr.cast::<pg_sys::Node>();
            let slot = |column: *mut pg_sys::Node| {
                exec::slot_of(child, column.cast()).unwrap_or_else(|| missing())
            };
            if (*expr).type_ == pg_sys::NodeTag::T_Var {
                by.push(slot(expr));
                continue;
            }
            let argument = argument(expr.cast());
            let aggregate = Aggregate::of(expr.cast()).unwrap_or_else(|| missing());
            aggregates.push(aggregate);
            counted.push(if aggregate != Aggregate::Count {
                let added = exec::add_argument(child, argument);
                let (number, needs) = added.unwrap_or_else(|| missing());
                arguments.push(needs);
                Counted::Sum(number)
            } else if argument.is_null() {
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
            aggregates,
            arguments,
            tally: None,
            at: 0,
            spilled: 0,
            context: (*estate).es_query_cxt,
        };
        custom::set_own(node, own);
    }
}

fn missing() -> ! {
    crate::error::raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "a column that is grouped or counted is missing in the Quad Join below",
    )
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
        let context = (*node).ss.ps.ps_ExprContext;
        loop {
            clear(slot);
            // The values of the group before are no longer needed.
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            let Some((keys, values)) = own.next(child(node)) else {
                return if (*node).ss.ps.ps_ProjInfo.is_null() {
                    slot
                } else {
                    clear((*node).ss.ps.ps_ResultTupleSlot)
                };
            };
            let keys = keys.into_iter().map(|key| key.map(|id| id ^ SIGN));
            let values = PgMemoryContexts::For((*context).ecxt_per_tuple_memory)
                .switch_to(|_| values.into_iter().map(datum).collect::<Vec<_>>());
            let columns = keys.map(|key| key.map(pg_sys::Datum::from)).chain(values);
            for (place, value) in columns.enumerate() {
                *(*slot).tts_isnull.add(place) = value.is_none();
                *(*slot).tts_values.add(place) = value.unwrap_or(pg_sys::Datum::from(0));
            }
            pg_sys::ExecStoreVirtualTuple(slot);
            if own.is_wanted(node) {
                return custom::project(node);
            }
        }
    }
}

/// The result of an aggregate, in the current memory context.
fn datum((aggregate, value): (Aggregate, Total)) -> Option<pg_sys::Datum> {
    let sum = match value {
        Total::Count(count) => return Some(pg_sys::Datum::from(count)),
        Total::Sum(sum) => sum,
    };
    match aggregate {
        Aggregate::SumId => sum_id(&sum).into_datum(),
        Aggregate::AverageId => average_id(&sum).into_datum(),
        Aggregate::Average => average(&sum).into_datum(),
        Aggregate::Sum | Aggregate::Count => total(&sum).into_datum(),
    }
}

/// What a group has of an aggregate.
enum Total {
    Count(u64),
    Sum(Sum),
}

/// The values of a group's columns, and its aggregates.
type Group = (Vec<Option<u64>>, Vec<(Aggregate, Total)>);

impl QuadCount {
    /// Whether a group passes HAVING.
    ///
    /// # Safety
    /// `node` is the begun node; the group is in its scan slot.
    unsafe fn is_wanted(&self, node: *mut pg_sys::CustomScanState) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let (qual, context) = ((*node).ss.ps.qual, (*node).ss.ps.ps_ExprContext);
            if qual.is_null() {
                return true;
            }
            (*context).ecxt_scantuple = (*node).ss.ss_ScanTupleSlot;
            let mut is_null = false;
            let kept = pg_sys::ExecEvalExprSwitchContext(qual, context, &mut is_null);
            let is_kept = !is_null && kept.value() != 0;
            let instrument = (*node).ss.ps.instrument;
            if !is_kept && !instrument.is_null() {
                (*instrument).nfiltered1 += 1.0;
            }
            is_kept
        }
    }

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
            let tally = HashAggregation::new(self.by.clone(), self.counted.clone())
                .with_arguments(self.arguments.clone());
            // SAFETY: the caller's promise.
            let tally = unsafe { run(join, tally.within(room(), Box::new(file))) };
            self.at = 0;
            if tally.is_empty() && self.by.is_empty() {
                // Without GROUP BY no rows are one group.
                self.tally = Some(tally);
                let of_none = |&aggregate: &Aggregate| match aggregate {
                    Aggregate::Count => (aggregate, Total::Count(0)),
                    _ => (aggregate, Total::Sum(Sum::default())),
                };
                return Some((Vec::new(), self.aggregates.iter().map(of_none).collect()));
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
        let aggregates = self.aggregates.iter().enumerate();
        let totals = aggregates.map(|(place, &aggregate)| match aggregate {
            Aggregate::Count => (aggregate, Total::Count(tally.count(group, place))),
            _ => (aggregate, Total::Sum(tally.sum(group, place))),
        });
        Some((keys.collect(), totals.collect()))
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
    // SAFETY: a begun node. A child whose parameters have changed is rescanned when it is next asked, which this node
    // does past the executor's entry: so it is told at once.
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
