//! Execution of `Quad Join`: parameters are evaluated once per (re)scan, then the pipeline's batches are handed out row
//! by row.

use super::candidates::Candidates;
use super::columns::{place_in, to_places};
use super::expression_filters::TestExpr;
use super::feedback::with_feedback;
use super::outer_input::OuterInput;
use super::parameters::Parameter;
use super::pushed::Report;
use super::source::{ArgumentExpr, NodeSource};
use super::state::QuadJoin;
use crate::am::tid;
use crate::cluster::ShardedReader;
use crate::dictionary::Upcoming;
use crate::nodes::custom::{self, ScanNode};
use crate::pg::compat;
use crate::pg::ffi::Methods;
use crate::pg::list::{list_iter, list_node};
use crate::settings;
use crate::table::TableReader;
use pgquad_btree::SIGN;
use pgquad_cluster::push::Cost;
use pgquad_exec::{
    Argument, Bindings, Column, Group, HashAggregation, JoinData, OuterInputData, Pipeline, Plan,
    Slot, Tuning, Value,
};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::time::Instant;

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods::<QuadJoin>();

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods::<QuadJoin>();

/// Rows of the first batch of a step.
const FIRST_BATCH: usize = 100;
/// The same where quads are read from other nodes: a message costs as much as reading some hundred quads. As many as a
/// round of a semi-join there, whose figures are those of both (`REMOTE_ROUND_ROWS`).
const FIRST_REMOTE_BATCH: usize = 400;
/// Batches from this size on may be joined by hash or merge. LIMIT queries over tables seldom get there; over other
/// nodes their first batches do.
const BULK_BATCH: usize = 128;
/// Quads from which on it is worth to see what filters leave of them.
const RANGE_PUSHDOWN_FROM: usize = 1000;

impl ScanNode for QuadJoin {
    const NAME: &'static CStr = c"Quad Join";

    fn methods() -> &'static Methods<pg_sys::CustomExecMethods> {
        &EXEC_METHODS
    }

    unsafe fn begin(
        node: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        eflags: core::ffi::c_int,
    ) -> Self {
        // SAFETY: the plan was made by `plan_path`; its relations are locked.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let data: JoinData = custom::private_data(scan);
            let plan = data.plan;
            let parent = &raw mut (*node).ss.ps;
            let expr = |n: usize| list_node((*scan).custom_exprs, n).cast::<pg_sys::Expr>();
            let params: Vec<_> = data
                .param_types
                .iter()
                .enumerate()
                .map(|(n, &kind)| {
                    Parameter::new(expr(n), pg_sys::Oid::from(kind.0), parent, estate)
                })
                .collect();
            let mut tests = Vec::new();
            for places in data.tests {
                let test = expr(params.len() + tests.len());
                tests.push(TestExpr::new(test, places, parent, changes(test.cast())));
            }
            let (mut readers, mut of_readers) = (Vec::new(), Vec::new());
            let mut tables = Vec::new();
            let mut names: Vec<u64> = Vec::new();
            let members = compat::members((*scan).custom_relids);
            let relids: Vec<i32> = data.tables.iter().map(|&place| members[place]).collect();
            for &member in &relids {
                let rte = pg_sys::list_nth((*estate).es_range_table, member - 1);
                let Some(relid) = compat::relation_of(rte.cast()) else {
                    continue;
                };
                let name = u64::from(relid.to_u32());
                // Most patterns read the same table, which is opened once.
                let reader = match names.iter().position(|&known| known == name) {
                    Some(table) => tables[table],
                    None => {
                        let rel =
                            pg_sys::ExecOpenScanRelation(estate, member as pg_sys::Index, eflags);
                        readers.push(TableReader::new(rel, (*estate).es_snapshot));
                        of_readers.push(relid);
                        readers.len() - 1
                    }
                };
                names.push(name);
                tables.push(reader);
            }
            let tuning = tuning(&plan, readers.iter().any(TableReader::is_remote));
            let outer_input = outer_input(node, data.outer_input, estate, eflags, tuning);
            let mut pipeline = Pipeline::new(&plan, names, tuning);
            if data.limited {
                pipeline.expect_few_rows();
            }
            Self {
                pipeline,
                plan,
                relations: data.relations.iter().map(|&table| relids[table]).collect(),
                tuning,
                relids: of_readers,
                outer_input,
                pushed: None,
                limited: data.limited,
                first_rows: data.first_rows,
                candidates: data.leading_key.as_ref().map(Candidates::new),
                for_fed_rows: None,
                report: Report::default(),
                values: Vec::new(),
                source: NodeSource {
                    readers,
                    tables,
                    tests,
                    arguments: Vec::new(),
                    slot: (*node).ss.ss_ScanTupleSlot,
                    context: (*node).ss.ps.ps_ExprContext,
                    since: ((*estate).es_instrument != 0).then(Instant::now),
                },
                params,
                output: data.output,
                identities: (data.identities.into_iter())
                    .map(|identity| (identity, pg_sys::ItemPointerData::default()))
                    .collect(),
                started: false,
                is_begun: false,
                rows: Bindings::default(),
                at: 0,
                behind: None,
                upcoming: Upcoming::new(),
            }
        }
    }

    #[inline]
    fn has_row(&self) -> bool {
        self.at < self.rows.len
    }

    unsafe fn refill(&mut self, state: *mut pg_sys::ScanState) -> bool {
        if !self.started {
            // SAFETY: the begun node.
            unsafe { self.start(state, None) };
        }
        self.at = 0;
        loop {
            let rows = self.next_rows();
            if let Some(rows) = rows.or_else(|| self.loose()) {
                self.rows = rows;
                self.keep_candidates();
                if self.rows.len > 0 {
                    self.offer();
                    return true;
                }
                continue;
            }
            self.rows = Bindings::default();
            // SAFETY: the plan below was begun with the node.
            if !unsafe { self.take_batch() } {
                return false;
            }
        }
    }

    #[inline]
    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) -> usize {
        let row = self.at;
        self.at += 1;
        // SAFETY: there is a row; the slot has a place for every variable of the answer and for what outer rows carry.
        unsafe {
            for (&place, &variable) in self.output.iter().zip(&self.plan.output) {
                let (value, null) = match &self.rows.columns[variable.index()] {
                    Column::Ids(ids) => (ids[row] ^ SIGN, false),
                    _ => (0, true),
                };
                *(*slot).tts_values.add(place) = pg_sys::Datum::from(value);
                *(*slot).tts_isnull.add(place) = null;
            }
            if let Some(outer_input) = &self.outer_input {
                if let Column::Ids(numbers) = &self.rows.columns[outer_input.row().index()] {
                    for (place, value, null) in outer_input.carried(numbers[row] as usize) {
                        *(*slot).tts_values.add(place) = value;
                        *(*slot).tts_isnull.add(place) = null;
                    }
                }
            }
            if !self.identities.is_empty() {
                identify(self, slot);
            }
            (*(*slot).tts_tupleDescriptor).natts as usize
        }
    }

    unsafe fn rescan(&mut self, node: *mut pg_sys::CustomScanState) {
        self.started = false;
        self.rows = Bindings::default();
        self.at = 0;
        self.behind = None;
        self.upcoming.withdraw();
        self.stop_pushed();
        if let Some(candidates) = &mut self.candidates {
            candidates.restart();
        }
        if let Some(outer_input) = &mut self.outer_input {
            self.pipeline.stop();
            // SAFETY: the plan below was begun with the node.
            unsafe { outer_input.rescan((*node).ss.ps.chgParam, self.tuning.first) };
        }
    }

    unsafe fn end(&mut self) {
        self.pipeline.stop();
        self.stop_pushed();
        self.rows = Bindings::default();
        self.at = 0;
        self.behind = None;
        let readers = &mut self.source.readers;
        readers.iter_mut().for_each(TableReader::close);
        self.upcoming.withdraw();
        if let Some(outer_input) = &mut self.outer_input {
            outer_input.end();
        }
    }

    unsafe fn explain(
        &self,
        node: *mut pg_sys::CustomScanState,
        ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    ) {
        // SAFETY: EXPLAIN's own arguments.
        unsafe { super::explain::explain(self, node, ancestors, es) }
    }
}

/// Gives identities to the quads of a row. Where nothing has matched, there is none.
#[pg_guard]
unsafe extern "C-unwind" fn identify(join: *mut QuadJoin, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the columns of the row have been filled in; the identities live as long as the node.
    unsafe {
        for (identity, tid) in &mut (*join).identities {
            let columns = &identity.columns;
            let is_null =
                columns.is_empty() || columns.iter().any(|&place| *(*slot).tts_isnull.add(place));
            if !is_null {
                let value = |place: usize| (*(*slot).tts_values.add(place)).value() as i64;
                *tid = tid::remember(std::array::from_fn(|column| value(columns[column])));
            }
            *(*slot).tts_values.add(identity.place) = pg_sys::Datum::from(&raw mut *tid);
            *(*slot).tts_isnull.add(identity.place) = is_null;
        }
    }
}

/// Begins the plan below, if there is one.
unsafe fn outer_input(
    node: *mut pg_sys::CustomScanState,
    data: Option<OuterInputData>,
    estate: *mut pg_sys::EState,
    eflags: core::ffi::c_int,
    tuning: Tuning,
) -> Option<OuterInput> {
    // SAFETY: arguments are those of `begin`.
    unsafe {
        let children = custom::begin_children(node, estate, eflags);
        Some(OuterInput::new(*children.first()?, data?, tuning.first))
    }
}

/// Whether an expression may give equal rows different results; what a subquery does cannot be seen from here.
unsafe fn changes(expr: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression of a live plan.
    unsafe { pg_sys::contain_volatile_functions(expr) || pg_sys::contain_subplans(expr) }
}

/// Batches for which there is room: every pattern can have one under way, with every variable in it, and the quads just
/// read. Hash joins may take what is left of the memory for hash tables.
fn tuning(plan: &Plan, is_remote: bool) -> Tuning {
    // SAFETY: a plain setting.
    let bytes = unsafe { pg_sys::work_mem } as usize * 1024;
    let patterns = batches(&plan.root);
    let row = (8 * usize::from(plan.slots) + 64) * patterns.max(1);
    let most = (settings::JOIN_BATCH_SIZE.get() as usize)
        .min(bytes / row)
        .max(1);
    // SAFETY: a plain setting.
    let for_hashes = bytes as f64 * unsafe { pg_sys::hash_mem_multiplier };
    Tuning {
        first: match (plan.whole, is_remote) {
            (true, _) => most,
            (false, true) => FIRST_REMOTE_BATCH.min(most),
            (false, false) => FIRST_BATCH.min(most),
        },
        most,
        bulk_from: BULK_BATCH.min(most),
        range_pushdown_from: RANGE_PUSHDOWN_FROM,
        memory: (for_hashes as usize).saturating_sub(most * row),
    }
}

/// Batches that can be under way in a group: one for each pattern, two for each group inside.
fn batches(group: &Group) -> usize {
    let inside = group.children.iter().map(|child| 2 + batches(&child.group));
    group.patterns.len() + inside.sum::<usize>()
}

/// Begins to count the rows that a begun node would hand out by group; none of them is handed out. Whether the first
/// few groups may be enough, and it is not participants that count. A transaction that has written reads them all at
/// once: what it writes between two of them is not for this query.
///
/// # Safety
/// `state` is a begun node of this module that hands out no rows.
pub unsafe fn begin_aggregation(
    state: *mut pg_sys::PlanState,
    aggregation: &HashAggregation,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let join = &mut *custom::own::<QuadJoin, _>(state);
        join.start(state.cast(), Some(aggregation));
        let readers = &join.source.readers;
        let mut sharded = readers.iter().filter_map(TableReader::sharded);
        join.limited && join.pushed.is_none() && !sharded.any(ShardedReader::reads_own_writes)
    }
}

/// Counts some rows, until there are more groups than the first `known`, or no more rows; the second result says that
/// there are none.
///
/// # Safety
/// As for [`aggregate_rows`]; participants do not do it.
pub unsafe fn aggregate_some(
    state: *mut pg_sys::PlanState,
    aggregation: HashAggregation,
    known: usize,
) -> (HashAggregation, bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let join = &mut *custom::own::<QuadJoin, _>(state);
        let (pipeline, source) = (&mut join.pipeline, &mut join.source);
        with_feedback(|feedback| pipeline.aggregate_some(source, feedback, aggregation, known))
    }
}

/// Counts all rows.
///
/// # Safety
/// `state` is a node whose aggregation has begun ([`begin_aggregation`]).
pub unsafe fn aggregate_rows(
    state: *mut pg_sys::PlanState,
    aggregation: HashAggregation,
) -> HashAggregation {
    // SAFETY: the caller's promise.
    unsafe {
        let join = &mut *custom::own::<QuadJoin, _>(state);
        let (pipeline, source) = (&mut join.pipeline, &mut join.source);
        let aggregation = match &mut join.pushed {
            Some(pushed) => {
                let ended = |cost: &Cost| note(pipeline, source, cost);
                pushed.count(aggregation, &mut join.report, ended)
            }
            None => with_feedback(|feedback| pipeline.aggregate(source, feedback, aggregation)),
        };
        for argument in &mut source.arguments {
            argument.upcoming.withdraw();
        }
        aggregation
    }
}

/// The variable of the answer that a column of the query is.
///
/// # Safety
/// `state` is a begun node of this module, `var` a column as its plan has them.
pub unsafe fn slot_of(state: *mut pg_sys::PlanState, var: *mut pg_sys::Var) -> Option<Slot> {
    // SAFETY: the caller's promise; the entries of the scan tuple are columns.
    unsafe {
        let join = &*custom::own::<QuadJoin, _>(state);
        let place = place_of(state, var)?;
        let at = join.output.iter().position(|&p| p == place)?;
        Some(join.plan.output[at])
    }
}

/// An expression over columns of the query as an argument of sums or extremes of the join's rows: its number, and the
/// variables that it is computed from.
/// `None` where it reads something else than variables of the answer.
///
/// # Safety
/// `state` is a begun node of this module that has not been asked for rows; `expr` is an expression of a live plan,
/// which gives an id or a term.
pub unsafe fn add_argument(
    state: *mut pg_sys::PlanState,
    expr: *mut pg_sys::Node,
) -> Option<(Argument, Vec<Slot>)> {
    // SAFETY: the caller's promise; the columns of an expression are found by their tag.
    unsafe {
        let mut places = Vec::new();
        let columns = pg_sys::pull_var_clause(expr, 0);
        for var in list_iter::<pg_sys::Var>(columns) {
            let place = place_of(state, var)?;
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let join = &mut *custom::own::<QuadJoin, _>(state);
        let slot = |&place: &usize| {
            let at = join.output.iter().position(|&p| p == place)?;
            Some(join.plan.output[at])
        };
        let needs: Vec<Slot> = places.iter().map(slot).collect::<Option<_>>()?;
        let place = |var| place_of(state, var).unwrap_or_default();
        let expr = to_places(expr, &place).cast::<pg_sys::Expr>();
        let arguments = &mut join.source.arguments;
        arguments.push(ArgumentExpr {
            expr,
            is_term: pg_sys::exprType(expr.cast()) != pg_sys::INT8OID,
            state: pg_sys::ExecInitExpr(expr, state),
            places,
            upcoming: Upcoming::new(),
        });
        Some((Argument::from_index(arguments.len() - 1), needs))
    }
}

/// The place of a column of the query in the scan tuple.
unsafe fn place_of(state: *mut pg_sys::PlanState, var: *mut pg_sys::Var) -> Option<usize> {
    // SAFETY: a begun node of this module; a column as its plan has them.
    unsafe {
        let scan = (*state).plan.cast::<pg_sys::CustomScan>();
        place_in((*scan).custom_scan_tlist, var)
    }
}

/// Whether no row of the answer lacks a variable.
///
/// # Safety
/// `state` is a begun node of this module.
pub unsafe fn is_always_bound(state: *mut pg_sys::PlanState, slot: Slot) -> bool {
    // SAFETY: the caller's promise.
    let join = unsafe { &*custom::own::<QuadJoin, _>(state) };
    let patterns = &join.plan.root.patterns;
    patterns.iter().any(|p| p.cells.contains(&Some(slot)))
}

/// Adds the costs of a participant to the costs of patterns and filters.
fn note(pipeline: &mut Pipeline, source: &mut NodeSource, cost: &Cost) {
    pipeline.add_steps(&cost.steps);
    for (test, removed) in source.tests.iter_mut().zip(&cost.removed) {
        test.removed += removed;
    }
}

impl QuadJoin {
    /// Leaves out rows of the batch that are none of the first.
    fn keep_candidates(&mut self) {
        if let Some(candidates) = &mut self.candidates {
            let of_answer = (&self.plan, &self.output[..]);
            candidates.thin(&mut self.rows, of_answer, self.outer_input.as_ref());
        }
    }

    /// Lets the dictionary know the ids of the batch.
    fn offer(&mut self) {
        let (rows, variables) = (&self.rows, &self.plan.output);
        self.upcoming.batch(rows.len, || {
            let ids = variables.iter().filter_map(|&slot| rows.ids(slot));
            ids.map(<[u64]>::to_vec).collect()
        });
    }

    /// The next rows, from the pipeline or the participants.
    fn next_rows(&mut self) -> Option<Bindings> {
        let (pipeline, source) = (&mut self.pipeline, &mut self.source);
        match &mut self.pushed {
            Some(pushed) => {
                let ended = |cost: &Cost| note(pipeline, source, cost);
                let shape = (usize::from(self.plan.slots), &self.plan.output[..]);
                pushed.rows(shape, &mut self.report, ended)
            }
            None => with_feedback(|feedback| pipeline.next(source, feedback)),
        }
    }

    /// Ends what participants are doing.
    fn stop_pushed(&mut self) {
        if let Some(mut pushed) = self.pushed.take() {
            pushed.finish(&mut self.report);
        }
    }

    /// Rows of the batch from below that need no join.
    fn loose(&mut self) -> Option<Bindings> {
        let slots = usize::from(self.plan.slots);
        self.outer_input.as_mut()?.take_loose(slots)
    }

    /// Begins the join with the next batch from below; false at the end.
    unsafe fn take_batch(&mut self) -> bool {
        let Some(outer_input) = &mut self.outer_input else {
            return false;
        };
        let of_answer = (&self.plan, &self.output[..]);
        let is_new = self.behind.is_none();
        let behind = self.behind.take();
        // SAFETY: the plan below was begun with the node.
        let fed = behind.or_else(|| unsafe {
            outer_input.next(usize::from(self.plan.slots), self.tuning.most)
        });
        let Some(mut rows) = fed else {
            return false;
        };
        if let Some(candidates) = &mut self.candidates {
            candidates.thin_fed(&mut rows, of_answer, outer_input);
            if is_new {
                self.behind = candidates.divide(&mut rows, of_answer, outer_input);
            }
        }
        self.stop_pushed();
        if rows.len > 0 {
            let params = std::mem::take(&mut self.values);
            self.pushed = self.push_rows(&params, &rows);
            self.values = params;
            if self.pushed.is_none() {
                self.pipeline.start_from(self.values.clone(), rows);
            }
        }
        true
    }

    /// Evaluates the parameters and begins the join; `counting`: its rows are to be counted.
    unsafe fn start(&mut self, state: *mut pg_sys::ScanState, counting: Option<&HashAggregation>) {
        self.started = true;
        self.source.restart();
        // SAFETY: the node that this is a part of, begun.
        let params: Vec<Value> = unsafe {
            let context = (*state).ps.ps_ExprContext;
            self.params
                .iter()
                .map(|param| param.value(context))
                .collect()
        };
        self.for_fed_rows = None;
        self.is_begun = false;
        // SAFETY: as above.
        self.pushed = unsafe { self.push(state, &params, counting) };
        if self.outer_input.is_some() {
            self.values = params;
        } else if self.pushed.is_some() {
            self.pipeline.stop();
        } else if !self.is_begun {
            self.pipeline.start(params);
        }
    }
}
