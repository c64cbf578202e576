//! Execution of `Quad Scan`: evaluates the conditions once per (re)scan, turns them into key ranges of the chosen order
//! and walks the ranges leaf by leaf. Where a list among the conditions leaves a choice of two orders, it is made then:
//! lists of parameters and subqueries are not known before.

use super::compared::{ranges_of, Compared};
use super::condition_values::parameter;
use super::explain::{explain, Counters, Shown};
use crate::am::tid;
use crate::dictionary::Upcoming;
use crate::nodes::custom::{self, clear, ScanNode};
use crate::nodes::find_ahead::FindAhead;
use crate::pg::ffi::Methods;
use crate::pg::interrupt::interrupt;
use crate::pg::list::{list_iter, list_node};
use crate::table::{OrderCursor, TableReader};
use pgquad_btree::{quad_of, Key, Order, SIGN};
use pgquad_cluster::message::KEYS_AHEAD;
use pgquad_exec::{
    holds, match_order, most_ranges, read_cost, Bound, ScanData, Value, MAX_LIST_RANGES,
};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods::<QuadScan>();

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods::<QuadScan>();

/// One condition as the executor sees it.
struct BoundExpr {
    column: usize,
    bound: Bound,
    value_type: pg_sys::Oid,
    state: *mut pg_sys::ExprState,
}

/// One order, and how the scan reads it.
struct Way {
    /// The order.
    order: Order,
    /// Its number.
    number: usize,
    /// Key columns that are read (bit `i` = column `i` of the order).
    needed: u8,
    output: Option<Output>,
    /// The conditions that its key ranges enforce, by number.
    used: Vec<usize>,
    cursor: OrderCursor,
}

impl Way {
    /// The key ranges for conditions with these values.
    fn ranges(&self, conditions: &[(usize, Bound, Value)]) -> Vec<(Key, Key)> {
        let used = self.used.iter().map(|&i| conditions[i].clone());
        ranges_of(self.order, &used.collect::<Vec<_>>())
    }

    /// The most key ranges that conditions with these values make.
    fn most_ranges(&self, conditions: &[(usize, Bound, Value)]) -> usize {
        most_ranges(self.used.iter().map(|&i| &conditions[i].2))
    }
}

/// The node's own part, allocated in the executor's per-query context.
pub struct QuadScan {
    /// The order that is walked.
    way: Way,
    /// The order that may be walked instead.
    other: Option<Way>,
    /// How often the two have been there to choose from.
    choices: u64,
    needs_tid: bool,
    /// Few quads are expected, of values that other nodes of the plan find.
    is_inner: bool,
    bounds: Vec<BoundExpr>,
    /// Whether quads come in descending order.
    backward: bool,
    ranges: Vec<(Key, Key)>,
    /// Conditions that the key ranges do not enforce: place in the key, kind of bound, value.
    tests: Vec<(usize, Bound, Value)>,
    next_range: usize,
    started: bool,
    /// Number of rows of the cursor's batch, and how many have been returned.
    rows: usize,
    at: usize,
    /// Columns of the table: four, and one more that is always NULL in shards of distributed stores.
    columns: usize,
    /// What the dictionary is told of the rows to come.
    upcoming: Upcoming,
    /// Terms of the rows to come that the scan looks up.
    find_ahead: FindAhead,
    context: *mut pg_sys::ExprContext,
    /// Totals over all rescans.
    counters: Counters,
}

impl ScanNode for QuadScan {
    const NAME: &'static CStr = c"Quad Scan";

    fn methods() -> &'static Methods<pg_sys::CustomExecMethods> {
        &EXEC_METHODS
    }

    unsafe fn begin(
        node: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: core::ffi::c_int,
    ) -> Self {
        // SAFETY: the plan was made by `plan_path`.
        unsafe {
            let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let data: ScanData = custom::private_data(plan);
            let (first, second) = (data.order, data.second);
            let (needs_tid, wanted, backward) = (data.needs_tid, data.needed, data.backward);
            let of_bounds = data.bounds.into_iter().map(Compared::from).enumerate();
            let bounds: Vec<BoundExpr> = of_bounds
                .map(|(i, bound)| BoundExpr {
                    column: bound.column,
                    bound: bound.bound,
                    value_type: bound.value_type,
                    state: pg_sys::ExecInitExpr(
                        list_node((*plan).custom_exprs, i).cast(),
                        &raw mut (*node).ss.ps,
                    ),
                })
                .collect();
            let rel = (*node).ss.ss_currentRelation;
            let snapshot = (*estate).es_snapshot;
            let way = |number: usize| {
                let mut cursor = OrderCursor::new(rel, snapshot, number);
                let order = cursor.order();
                let columns = order.columns();
                let needed = if needs_tid {
                    pgquad_btree::ALL_COLUMNS
                } else {
                    (0..4)
                        .filter(|&i| wanted & 1 << columns[i] != 0)
                        .map(|i| 1 << i)
                        .sum()
                };
                cursor.set_columns(needed);
                let compared: Vec<_> = bounds.iter().map(|b| (b.column, b.bound)).collect();
                Way {
                    order,
                    number,
                    needed,
                    output: plain_output(plan, order),
                    used: match_order(order, &compared).used.to_vec(),
                    cursor,
                }
            };
            let expressions = [(*plan).scan.plan.targetlist, (*plan).scan.plan.qual]
                .map(|list| list.cast::<pg_sys::Node>());
            let mut scan = Self {
                way: way(first),
                other: second.map(way),
                choices: 0,
                needs_tid,
                is_inner: depends_on_others(plan),
                bounds,
                backward,
                ranges: Vec::new(),
                tests: Vec::new(),
                next_range: 0,
                started: false,
                rows: 0,
                at: 0,
                columns: (*(*rel).rd_att).natts as usize,
                upcoming: Upcoming::new(),
                find_ahead: FindAhead::new(&expressions, &raw mut (*node).ss.ps),
                context: (*node).ss.ps.ps_ExprContext,
                counters: Counters::default(),
            };
            let is_run = eflags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as core::ffi::c_int == 0;
            let is_open = scan.other.is_some();
            if is_run
                && !is_open
                && scan.way.cursor.is_remote()
                && is_small_and_constant(plan, scan.bounds.len(), (*estate).es_param_list_info)
            {
                scan.compute_ranges(&raw mut (*node).ss);
                scan.way.cursor.read_ahead(&scan.ranges);
            }
            scan
        }
    }

    #[inline]
    fn has_row(&self) -> bool {
        self.at < self.rows
    }

    unsafe fn refill(&mut self, state: *mut pg_sys::ScanState) -> bool {
        // SAFETY: a begun node, whose scan slot has four columns. The slot keeps what never changes from row to row:
        // the table, and values of columns that nobody reads.
        unsafe {
            let slot = (*state).ss_ScanTupleSlot;
            (*slot).tts_tableOid = (*(*state).ss_currentRelation).rd_id;
            (*slot).tts_tid = tid::NO_IDENTITY;
            // `WHERE CURRENT OF` looks whether there is a row, also where it goes straight to the result.
            (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*slot).tts_isnull.cast::<u32>().write_unaligned(0);
            if self.columns > 4 {
                *(*slot).tts_isnull.add(4) = true;
            }
            self.read_batch(state)
        }
    }

    #[inline]
    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) -> usize {
        let row = self.at;
        self.at += 1;
        // SAFETY: there is a row.
        unsafe {
            if row >= self.find_ahead.until {
                look_up(self, slot);
            }
            self.put(slot, row);
            if self.needs_tid {
                remember(self, slot, row);
            }
        }
        self.columns
    }

    #[inline]
    unsafe fn exec(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the executor passes a begun node.
        unsafe {
            let ps = &(*node).ss.ps;
            if ps.qual.is_null() && (*ps.state).es_epq_active.is_null() {
                if ps.ps_ProjInfo.is_null() {
                    return custom::next::<Self>(&raw mut (*node).ss);
                }
                if (*custom::own::<Self, _>(node)).way.output.is_some() {
                    return next_projected(&raw mut (*node).ss);
                }
            }
            custom::exec_scan::<Self>(node)
        }
    }

    /// Quads never change in place, so only the conditions that are this node's have to be looked at again.
    unsafe fn recheck(
        &mut self,
        state: *mut pg_sys::ScanState,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        // SAFETY: EvalPlanQual passes a filled slot of the scanned table.
        unsafe {
            pg_sys::slot_getallattrs(slot);
            let values: [u64; 4] =
                std::array::from_fn(|i| (*(*slot).tts_values.add(i)).value() as u64 ^ SIGN);
            let conditions = self.conditions(state);
            conditions
                .iter()
                .all(|(column, bound, value)| holds(values[*column], *bound, value))
        }
    }

    unsafe fn rescan(&mut self, _node: *mut pg_sys::CustomScanState) {
        self.started = false;
        self.rows = 0;
        self.at = 0;
        self.upcoming.withdraw();
        self.find_ahead.forget();
    }

    unsafe fn end(&mut self) {
        self.rows = 0;
        self.upcoming.withdraw();
        self.find_ahead.forget();
        self.way.cursor.close();
        if let Some(other) = &mut self.other {
            other.cursor.close();
        }
    }

    unsafe fn explain(
        &self,
        node: *mut pg_sys::CustomScanState,
        ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    ) {
        let shown = Shown {
            order: self.way.order,
            other: self.other.as_ref().map(|other| other.order),
            backward: self.backward,
            enforced: &self.way.used,
            counters: self.counters,
            traffic: self.way.cursor.traffic(),
        };
        // SAFETY: EXPLAIN's own arguments.
        unsafe { explain(shown, node, ancestors, es) }
    }
}

/// Whether few quads are expected, and what their columns are compared with is there before the query runs.
unsafe fn is_small_and_constant(
    plan: *mut pg_sys::CustomScan,
    bounds: usize,
    parameters: pg_sys::ParamListInfo,
) -> bool {
    // SAFETY: a live plan and the parameters of its query; each cast follows a check of the tag.
    unsafe {
        // Those of functions are fetched when they are evaluated, which may fail and must not happen too soon.
        let are_there = !parameters.is_null() && (*parameters).paramFetch.is_none();
        let is_there = |expr: *mut pg_sys::Node| match (*expr).type_ {
            pg_sys::NodeTag::T_Const => true,
            pg_sys::NodeTag::T_Param => {
                let kind = (*expr.cast::<pg_sys::Param>()).paramkind;
                are_there && kind == pg_sys::ParamKind::PARAM_EXTERN
            }
            _ => false,
        };
        let mut values = list_iter::<pg_sys::Node>((*plan).custom_exprs).take(bounds);
        (*plan).scan.plan.plan_rows <= KEYS_AHEAD as f64 && values.all(is_there)
    }
}

/// Whether few quads are expected, of values that other nodes of the plan find.
unsafe fn depends_on_others(plan: *mut pg_sys::CustomScan) -> bool {
    // SAFETY: a live plan.
    unsafe {
        let plan = &(*plan).scan.plan;
        plan.plan_rows <= KEYS_AHEAD as f64 && !plan.extParam.is_null()
    }
}

/// The next row of a scan whose target list is nothing but columns: filled in straight from the batch.
unsafe fn next_projected(state: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as for `fill`; the result slot has one place for each output column.
    unsafe {
        let slot = (*state).ps.ps_ResultTupleSlot;
        let Some(scan) = custom::at_next_row::<QuadScan>(state) else {
            clear((*state).ss_ScanTupleSlot);
            return clear(slot);
        };
        // Not before: another order may have been chosen, and both have their columns or none has.
        let Some(output) = &scan.way.output else {
            return clear(slot);
        };
        let (batch, row) = (scan.way.cursor.batch(), scan.at);
        scan.at += 1;
        for n in 0..output.count {
            let value = *batch.columns[usize::from(output.from[n])].get_unchecked(row);
            *(*slot).tts_values.add(n) = pg_sys::Datum::from(value ^ SIGN);
            *(*slot).tts_isnull.add(n) = false;
        }
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = output.count as i16;
        slot
    }
}

/// Target list of plain columns: where in the key each comes from.
#[derive(Clone, Copy)]
struct Output {
    from: [u8; MAX_OUTPUT_COLUMNS],
    count: usize,
}

/// Longer target lists go through the executor's own projection.
const MAX_OUTPUT_COLUMNS: usize = 8;

/// The target list as columns of the key, if it is nothing else.
unsafe fn plain_output(plan: *mut pg_sys::CustomScan, order: Order) -> Option<Output> {
    // SAFETY: a live plan; each cast follows a check of the tag.
    unsafe {
        let mut output = Output {
            from: [0; MAX_OUTPUT_COLUMNS],
            count: 0,
        };
        for entry in list_iter::<pg_sys::TargetEntry>((*plan).scan.plan.targetlist) {
            let expr = (*entry).expr.cast::<pg_sys::Node>();
            if (*expr).type_ != pg_sys::NodeTag::T_Var || output.count == MAX_OUTPUT_COLUMNS {
                return None;
            }
            let attribute = (*expr.cast::<pg_sys::Var>()).varattno;
            let from = order
                .columns()
                .iter()
                .position(|&c| i16::from(c) + 1 == attribute)?;
            output.from[output.count] = from as u8;
            output.count += 1;
        }
        Some(output)
    }
}

/// Gives the row an identity.
#[pg_guard]
unsafe extern "C-unwind" fn remember(
    scan: *mut QuadScan,
    slot: *mut pg_sys::TupleTableSlot,
    row: usize,
) {
    // SAFETY: as for `fill`; scans that need identities read all columns.
    unsafe {
        let key = (*scan).way.cursor.batch().key(row);
        (*slot).tts_tid = tid::remember(quad_of((*scan).way.order, &key));
    }
}

/// Looks up terms of the rows to come.
#[pg_guard]
unsafe extern "C-unwind" fn look_up(scan: *mut QuadScan, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: as for `fill`. The executor resets the memory for a row before it asks for the next one, and the slot
    // gets its row afterwards.
    unsafe {
        let (rows, context) = ((*scan).rows, (*scan).context);
        let columns = (*scan).columns as i16;
        let fill = |row| {
            (*scan).put(slot, row);
            (*slot).tts_nvalid = columns;
        };
        (*scan).find_ahead.look_up(slot, context, rows, fill);
    }
}

impl QuadScan {
    /// Puts a row of the batch into a slot.
    #[inline]
    unsafe fn put(&self, slot: *mut pg_sys::TupleTableSlot, row: usize) {
        let batch = self.way.cursor.batch();
        // SAFETY: there is such a row; the columns of the batch that are needed have a value for it, and the slot has
        // four places.
        unsafe {
            let values = (*slot).tts_values;
            for (i, &column) in self.way.order.columns().iter().enumerate() {
                if self.way.needed & 1 << i != 0 {
                    let value = *batch.columns[i].get_unchecked(row);
                    *values.add(usize::from(column)) = pg_sys::Datum::from(value ^ SIGN);
                }
            }
        }
    }

    /// Reads the next non-empty leaf's worth of quads; false at the end.
    unsafe fn read_batch(&mut self, state: *mut pg_sys::ScanState) -> bool {
        // SAFETY: a begun node.
        unsafe {
            if !self.started {
                self.started = true;
                self.compute_ranges(state);
                self.keep_subject();
                self.next_range = 0;
                self.way.cursor.finish_range();
            }
        }
        self.at = 0;
        loop {
            if self.way.cursor.advance() {
                self.counters.leaves += 1;
                self.test();
                self.rows = self.way.cursor.batch().len();
                if self.rows == 0 {
                    interrupt();
                    continue;
                }
                self.offer();
                self.find_ahead.begin_batch();
                return true;
            }
            self.rows = 0;
            let Some(((low, high), _)) = self.ranges[self.next_range..].split_first() else {
                return false;
            };
            let begun = if self.backward {
                self.way.cursor.seek_last(*low, *high);
                1
            } else {
                self.way.cursor.seek_some(&self.ranges[self.next_range..])
            };
            self.next_range += begun;
            self.counters.probes += begun as u64;
        }
    }

    /// Has all quads of a subject kept that is joined with others, as in a description: its walk reads them next.
    fn keep_subject(&mut self) {
        if !self.is_inner || !self.way.cursor.is_remote() {
            return;
        }
        if let [(low, high)] = &self.ranges[..] {
            if low[0] == high[0] && low[1] != high[1] {
                self.way.cursor.read_ahead(&self.ranges);
            }
        }
    }

    /// Lets the dictionary know the ids of the batch.
    fn offer(&mut self) {
        let (batch, needed) = (self.way.cursor.batch(), self.way.needed);
        self.upcoming.batch(self.rows, || {
            let needed = (0..4).filter(|&i| needed & 1 << i != 0);
            needed.map(|i| batch.columns[i].clone()).collect()
        });
    }

    /// Leaves those rows of the batch that pass the conditions which the key ranges do not enforce.
    fn test(&mut self) {
        if self.tests.is_empty() {
            return;
        }
        let batch = self.way.cursor.batch();
        let passes = |row: usize| {
            let test = |(place, bound, value): &(usize, Bound, Value)| {
                holds(batch.columns[*place][row], *bound, value)
            };
            self.tests.iter().all(test)
        };
        let keep: Vec<bool> = (0..batch.len()).map(passes).collect();
        self.counters.removed += keep.iter().filter(|k| !**k).count() as u64;
        self.way.cursor.retain(&keep);
    }

    /// The conditions with their values; lists are sorted.
    unsafe fn conditions(&self, state: *mut pg_sys::ScanState) -> Vec<(usize, Bound, Value)> {
        let evaluated = self.bounds.iter().map(|b| {
            // SAFETY: a begun node; expressions are evaluated in its per-tuple context.
            let mut value = unsafe { parameter(b.state, (*state).ps.ps_ExprContext, b.value_type) };
            if let Value::List(list) = &mut value {
                list.sort_unstable();
            }
            (b.column, b.bound, value)
        });
        evaluated.collect()
    }

    /// Whether the other order costs less than that of the last time. That takes counts, so it is asked the first time,
    /// and then each time that the scans have doubled.
    unsafe fn is_other_cheaper(
        &mut self,
        state: *mut pg_sys::ScanState,
        conditions: &[(usize, Bound, Value)],
    ) -> bool {
        let Some(other) = &self.other else {
            return false;
        };
        let (here, there) = (
            self.way.most_ranges(conditions),
            other.most_ranges(conditions),
        );
        if here.max(there) > MAX_LIST_RANGES {
            return there < here;
        }
        self.choices += 1;
        if !self.choices.is_power_of_two() {
            return false;
        }
        // SAFETY: the table is open and the snapshot registered while the node runs.
        let mut reader = unsafe {
            let snapshot = (*(*state).ps.state).es_snapshot;
            TableReader::new((*state).ss_currentRelation, snapshot)
        };
        let cost = |way: &Way| {
            let ranges = way.ranges(conditions);
            read_cost(&ranges, |some| reader.counts(way.number, some))
        };
        let is_cheaper = cost(other) < cost(&self.way);
        reader.close();
        is_cheaper
    }

    /// Evaluates the conditions into key ranges of the order that costs less, and tests.
    unsafe fn compute_ranges(&mut self, state: *mut pg_sys::ScanState) {
        // SAFETY: a begun node.
        let conditions = unsafe { self.conditions(state) };
        // SAFETY: a begun node.
        if unsafe { self.is_other_cheaper(state, &conditions) } {
            if let Some(other) = &mut self.other {
                std::mem::swap(&mut self.way, other);
            }
        }
        self.ranges = self.way.ranges(&conditions);
        if self.other.is_none() {
            return;
        }
        let way = &self.way;
        let tested = conditions.into_iter().enumerate();
        let tested = tested.filter(|(i, _)| !way.used.contains(i));
        self.tests = tested
            .map(|(_, (column, bound, value))| (way.order.position(column), bound, value))
            .collect();
    }
}
