//! Execution of `Quad Count` (hash aggregation). The join below counts its rows, and adds up numbers, group by group.
//! Groups that memory has no room for wait in temporary files. Where nothing is counted (DISTINCT), the first
//! few may be enough and no participants do it, groups are handed out as they are found. So a LIMIT above stops the
//! join. Where rows are grouped by what is computed from columns, the join's groups by these columns are put together
//! ([`ComputedGroups`]).

use super::aggregate::{argument, is_column, Aggregate};
use super::computed_groups::{ComputedGroups, Key};
use super::exec;
use super::group_spill::{group_room, no_groups, spill_file};
use crate::dictionary::Upcoming;
use crate::nodes::custom::{self, ScanNode};
use crate::pg::compat;
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use crate::term::{average, average_id, sum_id, total};
use pgquad_btree::SIGN;
use pgquad_exec::{CountData, Counted, HashAggregation, Oid, Slot};
use pgquad_term::aggregate::Sum;
use pgrx::prelude::*;
use pgrx::{pg_sys, IntoDatum, PgMemoryContexts};
use std::ffi::CStr;
use std::ops::Range;

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods::<QuadCount>();

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods::<QuadCount>();

/// Groups whose ids are offered at once, to be decoded together.
const OFFERED_GROUPS: usize = 1024;

/// The node's own part.
pub struct QuadCount {
    /// The join's variables that rows are grouped by, or that keys are computed from.
    by: Vec<Slot>,
    /// The groups of computed keys.
    computed: Option<ComputedGroups>,
    /// What is counted, in the order of the aggregates.
    counted: Vec<Counted>,
    /// What becomes of it.
    aggregates: Vec<Aggregate>,
    /// By argument, the variables that it is computed from.
    arguments: Vec<Vec<Slot>>,
    /// The groups that are being handed out.
    aggregation: Option<HashAggregation>,
    /// All rows have been counted.
    is_complete: bool,
    /// Groups that are found before the next are handed out.
    at_once: usize,
    /// The next one.
    at: usize,
    /// Groups in memory that the dictionary has been told of.
    offered: usize,
    /// Its ids and those of the groups after it, for whoever decodes them.
    upcoming: Upcoming,
    /// Bytes of groups written to files.
    spilled: u64,
    /// The group that is handed out next.
    row: Option<Vec<Option<pg_sys::Datum>>>,
    /// Of the query.
    context: pg_sys::MemoryContext,
}

impl ScanNode for QuadCount {
    const NAME: &'static CStr = c"Quad Count";

    fn methods() -> &'static Methods<pg_sys::CustomExecMethods> {
        &EXEC_METHODS
    }

    unsafe fn begin(
        node: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: core::ffi::c_int,
    ) -> Self {
        // SAFETY: a plan of ours, whose only child is a `Quad Join`.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let child = custom::begin_children(node, estate, eflags)[0];
            let (mut keys, mut counted, mut aggregates) = (Vec::new(), Vec::new(), Vec::new());
            let mut arguments = Vec::new();
            let slot = |column: *mut pg_sys::Node| {
                exec::slot_of(child, column.cast()).unwrap_or_else(|| missing())
            };
            for entry in list_iter::<pg_sys::TargetEntry>((*scan).custom_scan_tlist) {
                let expr = (*entry).expr.cast::<pg_sys::Node>();
                if (*expr).type_ != pg_sys::NodeTag::T_Aggref {
                    keys.push(expr);
                    continue;
                }
                let argument = argument(expr.cast());
                let aggregate = Aggregate::of(expr.cast()).unwrap_or_else(|| missing());
                check_right(expr.cast());
                aggregates.push(aggregate);
                counted.push(match aggregate {
                    Aggregate::Count if argument.is_null() => Counted::Rows,
                    Aggregate::Count => match slot(argument) {
                        slot if exec::is_always_bound(child, slot) => Counted::Rows,
                        slot => Counted::Bound(slot),
                    },
                    Aggregate::CountDistinct => Counted::Distinct(slot(argument)),
                    _ => {
                        let added = exec::add_argument(child, argument);
                        let (number, needs) = added.unwrap_or_else(|| missing());
                        arguments.push(needs);
                        match aggregate {
                            Aggregate::Extreme(extreme) => Counted::Extreme(number, extreme),
                            _ => Counted::Sum(number),
                        }
                    }
                });
            }
            let is_computed = keys.iter().any(|&key| !is_column(key));
            let computed = is_computed.then(|| {
                let CountData { equal } = custom::private_data(scan);
                let with_operator = |(&expr, equal): (_, Oid)| Key {
                    expr,
                    equal: equal.0.into(),
                };
                let keys: Vec<Key> = keys.iter().zip(equal).map(with_operator).collect();
                ComputedGroups::new(estate, &keys, &counted, slot)
            });
            let by = match &computed {
                Some(computed) => computed.by().to_vec(),
                None => keys.into_iter().map(slot).collect(),
            };
            Self {
                by,
                computed,
                counted,
                aggregates,
                arguments,
                aggregation: None,
                is_complete: false,
                at_once: 1,
                at: 0,
                offered: 0,
                upcoming: Upcoming::new(),
                spilled: 0,
                row: None,
                context: (*estate).es_query_cxt,
            }
        }
    }

    fn has_row(&self) -> bool {
        self.row.is_some()
    }

    unsafe fn refill(&mut self, state: *mut pg_sys::ScanState) -> bool {
        // SAFETY: the begun node; values live in the memory of the row, which the executor gives up before it asks for
        // the next one.
        unsafe {
            let context = (*state).ps.ps_ExprContext;
            let Some((keys, values)) = self.next_group(child(state.cast())) else {
                return false;
            };
            let values = PgMemoryContexts::For((*context).ecxt_per_tuple_memory)
                .switch_to(|_| values.into_iter().map(datum).collect::<Vec<_>>());
            self.row = Some(keys.into_iter().chain(values).collect());
            true
        }
    }

    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) -> usize {
        let row = self.row.take().unwrap_or_default();
        for (place, &value) in row.iter().enumerate() {
            // SAFETY: the slot has a place for each column and each aggregate.
            unsafe {
                *(*slot).tts_isnull.add(place) = value.is_none();
                *(*slot).tts_values.add(place) = value.unwrap_or(pg_sys::Datum::from(0));
            }
        }
        row.len()
    }

    /// The executor's entry rescans a child whose parameters have changed when the child is next asked. This node
    /// bypasses that entry, so it rescans the child at once.
    unsafe fn rescan(&mut self, node: *mut pg_sys::CustomScanState) {
        self.close();
        // SAFETY: a begun node.
        unsafe { custom::rescan_now(child(node), (*node).ss.ps.chgParam) }
    }

    unsafe fn end(&mut self) {
        self.close();
    }

    /// How many groups by columns the computed keys came from; what went to temporary files, if anything did.
    unsafe fn explain(
        &self,
        _node: *mut pg_sys::CustomScanState,
        _ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    ) {
        let spilled = self.spilled
            + self
                .aggregation
                .as_ref()
                .map_or(0, HashAggregation::spilled)
            + self.computed.as_ref().map_or(0, ComputedGroups::spilled);
        let column_groups = self.computed.as_ref().map(ComputedGroups::column_groups);
        // SAFETY: EXPLAIN's own state.
        unsafe {
            if let Some(groups) = column_groups.filter(|_| (*es).analyze) {
                custom::explain_integer(c"Column Groups", groups as i64, es);
            }
            if (*es).analyze && spilled > 0 {
                custom::explain_integer(c"Spilled", (spilled / 1024) as i64, es);
            }
        }
    }
}

/// Raises an error where the current user may not execute an aggregate, as PostgreSQL's `ExecInitAgg` does.
unsafe fn check_right(aggregate: *mut pg_sys::Aggref) {
    // SAFETY: the caller has looked at the node's tag; look-ups in the catalogue.
    unsafe {
        let function = (*aggregate).aggfnoid;
        if !compat::may_execute(function) {
            pg_sys::aclcheck_error(
                pg_sys::AclResult::ACLCHECK_NO_PRIV,
                pg_sys::ObjectType::OBJECT_AGGREGATE,
                pg_sys::get_func_name(function),
            );
        }
    }
}

fn missing() -> ! {
    crate::pg::error::raise(
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

/// The result of an aggregate, in the current memory context.
fn datum((aggregate, value): (Aggregate, Total)) -> Option<pg_sys::Datum> {
    let sum = match value {
        Total::Count(count) => {
            let Ok(count) = i64::try_from(count) else {
                crate::pg::error::raise(
                    PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                    "bigint out of range",
                );
            };
            return Some(pg_sys::Datum::from(count));
        }
        Total::Extreme(value) => return value.map(|value| pg_sys::Datum::from(value ^ SIGN)),
        Total::Sum(sum) => sum,
    };
    match aggregate {
        Aggregate::SumId => sum_id(&sum).into_datum(),
        Aggregate::AverageId => average_id(&sum).into_datum(),
        Aggregate::Average => average(&sum).into_datum(),
        Aggregate::Sum | Aggregate::Count | Aggregate::CountDistinct | Aggregate::Extreme(_) => {
            total(&sum).into_datum()
        }
    }
}

/// What a group has of an aggregate.
enum Total {
    Count(u64),
    Sum(Sum),
    /// The key of an id.
    Extreme(Option<u64>),
}

/// The keys of a group, and its aggregates.
type Group = (Vec<Option<pg_sys::Datum>>, Vec<(Aggregate, Total)>);

impl QuadCount {
    /// The next group.
    ///
    /// # Safety
    /// `join` is the begun child.
    unsafe fn next_group(&mut self, join: *mut pg_sys::PlanState) -> Option<Group> {
        if self.computed.is_some() {
            // SAFETY: the caller's promise.
            return unsafe { self.next_computed(join) };
        }
        let is_first = self.aggregation.is_none();
        if is_first {
            // SAFETY: the caller's promise.
            unsafe { self.begin_groups(join) };
        }
        let is_empty = || {
            let all = self.aggregation.as_ref();
            all.is_none_or(HashAggregation::is_empty)
        };
        if is_first && self.by.is_empty() && is_empty() {
            // Without GROUP BY no rows are one group.
            let of_none = |&aggregate: &Aggregate| match aggregate {
                Aggregate::Count | Aggregate::CountDistinct => (aggregate, Total::Count(0)),
                Aggregate::Extreme(_) => (aggregate, Total::Extreme(None)),
                _ => (aggregate, Total::Sum(Sum::default())),
            };
            return Some((Vec::new(), self.aggregates.iter().map(of_none).collect()));
        }
        loop {
            let aggregation = self.aggregation.as_mut()?;
            while self.at < aggregation.len() && (self.is_complete || !aggregation.has_spilled()) {
                let group = self.at;
                self.at += 1;
                if aggregation.hand_out(group) {
                    return Some(self.group(group));
                }
            }
            if !self.is_complete {
                // SAFETY: the caller's promise.
                unsafe { self.find_groups(join) };
            } else if aggregation.next_part() {
                self.restart_groups();
            } else {
                return None;
            }
        }
    }

    /// The next group by computed keys.
    ///
    /// # Safety
    /// `join` is the begun child.
    unsafe fn next_computed(&mut self, join: *mut pg_sys::PlanState) -> Option<Group> {
        let all = (!self.is_complete).then(|| {
            self.is_complete = true;
            let all = self.no_groups(ComputedGroups::room());
            // SAFETY: the caller's promise.
            unsafe {
                timed(join, 0, || (exec::begin_aggregation(join, &all), 0));
                aggregate_all(join, all)
            }
        });
        let computed = self.computed.as_mut()?;
        if let Some(all) = all {
            computed.take_all(all);
        }
        while self.at >= computed.len() {
            self.at = 0;
            computed.take_rest().then_some(())?;
        }
        self.at += 1;
        let group = self.at - 1;
        let totals = totals(&self.aggregates, computed.groups(), group);
        Some((computed.keys(group), totals))
    }

    /// Begins to count rows, and counts them all where no groups are handed out before.
    ///
    /// # Safety
    /// `join` is the begun child.
    unsafe fn begin_groups(&mut self, join: *mut pg_sys::PlanState) {
        let all = self.no_groups(group_room());
        let is_set = self.counted.is_empty() && !self.by.is_empty();
        self.restart_groups();
        // SAFETY: the caller's promise.
        unsafe {
            let few = timed(join, 0, || (exec::begin_aggregation(join, &all), 0));
            self.is_complete = !(few && is_set);
            self.aggregation = Some(match self.is_complete {
                true => aggregate_all(join, all),
                false => all.early(),
            });
        }
    }

    /// None yet; memory has `room` bytes for them.
    fn no_groups(&self, room: usize) -> HashAggregation {
        no_groups(self.by.clone(), self.counted.clone())
            .with_arguments(self.arguments.clone())
            .within(room, &mut || spill_file(self.context))
    }

    /// Counts rows until there are more groups to hand out.
    ///
    /// # Safety
    /// `join` is the begun child, which no participants run.
    unsafe fn find_groups(&mut self, join: *mut pg_sys::PlanState) {
        let Some(aggregation) = self.aggregation.take() else {
            return;
        };
        let (known, before) = (self.at + self.at_once - 1, aggregation.rows());
        // Whoever reads their terms asks for those of many together.
        self.at_once = (2 * self.at_once).min(OFFERED_GROUPS);
        // SAFETY: the caller's promise.
        let (aggregation, is_complete) = unsafe {
            timed(join, before, || {
                let some = exec::aggregate_some(join, aggregation, known);
                let rows = some.0.rows();
                (some, rows)
            })
        };
        self.is_complete = is_complete;
        if is_complete && aggregation.has_spilled() {
            self.restart_groups();
        }
        self.aggregation = Some(aggregation);
    }

    /// Goes on with the first group in memory.
    fn restart_groups(&mut self) {
        self.at = 0;
        self.offered = 0;
    }

    /// A group in memory.
    fn group(&mut self, group: usize) -> Group {
        let Some(aggregation) = &self.aggregation else {
            return (Vec::new(), Vec::new());
        };
        if group >= self.offered {
            let rows = group..aggregation.len().min(group + OFFERED_GROUPS);
            self.offered = rows.end;
            let (columns, counted) = (self.by.len(), &self.counted);
            self.upcoming
                .batch(rows.len(), || ids(aggregation, columns, counted, rows));
        }
        let key = |place| aggregation.value(group, place).map(|id| id ^ SIGN);
        let keys = (0..self.by.len()).map(key);
        let keys = keys.map(|key| key.map(pg_sys::Datum::from)).collect();
        (keys, totals(&self.aggregates, aggregation, group))
    }

    /// Forgets all groups.
    fn close(&mut self) {
        self.row = None;
        self.is_complete = false;
        self.at_once = 1;
        self.at = 0;
        self.upcoming.withdraw();
        if let Some(aggregation) = self.aggregation.take() {
            self.spilled += aggregation.spilled();
            aggregation.close();
        }
        if let Some(computed) = &mut self.computed {
            computed.close();
        }
    }
}

/// The aggregates of a group.
fn totals(
    aggregates: &[Aggregate],
    groups: &HashAggregation,
    group: usize,
) -> Vec<(Aggregate, Total)> {
    let total = |(place, &aggregate): (usize, &Aggregate)| match aggregate {
        Aggregate::Count | Aggregate::CountDistinct => {
            (aggregate, Total::Count(groups.count(group, place)))
        }
        Aggregate::Extreme(_) => (aggregate, Total::Extreme(groups.extreme(group, place))),
        _ => (aggregate, Total::Sum(groups.sum(group, place))),
    };
    aggregates.iter().enumerate().map(total).collect()
}

/// The ids of some groups, column by column.
fn ids(
    aggregation: &HashAggregation,
    columns: usize,
    counted: &[Counted],
    groups: Range<usize>,
) -> Vec<Vec<u64>> {
    let column = |value: &dyn Fn(usize) -> Option<u64>| groups.clone().filter_map(value).collect();
    let is_extreme = |&place: &usize| matches!(counted[place], Counted::Extreme(..));
    let keys = (0..columns).map(|place| column(&|group| aggregation.value(group, place)));
    let extremes = (0..counted.len()).filter(is_extreme);
    let extremes = extremes.map(|place| column(&|group| aggregation.extreme(group, place)));
    keys.chain(extremes).collect()
}

/// Has the join count all rows.
///
/// # Safety
/// `join` is the begun child, whose aggregation has begun.
unsafe fn aggregate_all(join: *mut pg_sys::PlanState, all: HashAggregation) -> HashAggregation {
    // SAFETY: the caller's promise.
    unsafe {
        timed(join, 0, || {
            let all = exec::aggregate_rows(join, all);
            let rows = all.rows();
            (all, rows)
        })
    }
}

/// Runs `body`, which has the join count rows, and gives how many there have been since it was begun; `before` of them
/// were known. EXPLAIN ANALYZE counts the time and the rows as the join's.
///
/// # Safety
/// `join` is the begun child.
unsafe fn timed<T>(
    join: *mut pg_sys::PlanState,
    before: u64,
    body: impl FnOnce() -> (T, u64),
) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        let instrument = (*join).instrument;
        if !instrument.is_null() {
            pg_sys::InstrStartNode(instrument);
        }
        let (result, rows) = body();
        if !instrument.is_null() {
            pg_sys::InstrStopNode(instrument, (rows - before) as f64);
        }
        result
    }
}
