//! `Quad Step`: the recursive term below a `Quad Walk`, one step of the transitive closure. It hands out no rows: the
//! walk gives it a frontier and gets what can be reached from it. Example: `WHERE q.s = walk.n AND q.p = 2` goes from
//! each id of the frontier to the objects of its quads with predicate 2. A step may have several branches.
//!
//! `custom_exprs` = the values of all conditions, hop by hop; the private data is a [`StepData`]. `custom_plans` = the
//! members of the UNION ALL that the branches come from. They are never run. With them their tables are among those of
//! the statement, whose rights PostgreSQL checks.

use super::shape::{Hop, Shape};
use crate::am::shape::COLUMNS;
use crate::catalog::names::table_name;
use crate::nodes::custom::{self, ChosenPath, PlanPath, ScanNode};
use crate::nodes::scan::compared::{self, Compared};
use crate::nodes::scan::parameter;
use crate::pg::compat;
use crate::pg::exit::keep_in_context;
use crate::pg::ffi::Methods;
use crate::pg::interrupt::interrupt;
use crate::pg::list::{list_iter, list_node};
use crate::table::TableReader;
use pgquad_btree::{Batch, Filter, Key, Span};
use pgquad_cluster::Reading;
use pgquad_exec::{Bound, HopData, Oid, StepData, Value};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods::<StepPath>();

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods::<QuadStep>();

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods::<QuadStep>();

/// Quads read at a time.
const QUADS_AT_ONCE: usize = 10_000;
/// Places of a frontier whose quads are kept for those who read them next, at most.
const AHEAD_KEYS: usize = 32;

/// PostgreSQL's path with ours behind it; the first field must be the path.
#[repr(C)]
struct StepPath {
    path: pg_sys::CustomPath,
    shape: *const Shape,
}

/// The path of a step in the place of `joined`, the join of the recursive term.
///
/// # Safety
/// Live planner nodes; called while planning.
pub unsafe fn new_path(
    joined: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::PathTarget,
    shape: Shape,
) -> *mut pg_sys::Path {
    // SAFETY: the caller's promise.
    unsafe {
        let path: *mut StepPath = custom::new_path(joined, &PATH_METHODS);
        (*path).path.path.pathtarget = target;
        for &member in &shape.members {
            let of_member = (*member).cheapest_total_path;
            (*path).path.custom_paths =
                pg_sys::lappend((*path).path.custom_paths, of_member.cast());
        }
        (*path).shape = keep_in_context(shape);
        path.cast()
    }
}

impl PlanPath for StepPath {
    type Node = QuadStep;

    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        let ChosenPath {
            root,
            rel,
            path,
            tlist,
            plans,
            ..
        } = chosen;
        // SAFETY: arguments are the planner's own, and the path is one of ours.
        unsafe {
            let shape = &*(*path.cast::<StepPath>()).shape;
            let relids = compat::base_relations(root, (*rel).relids);
            let mut values = std::ptr::null_mut();
            let mut data = |hop: &Hop| {
                let bounds = hop.bounds.iter().map(|c| (c, false));
                let tests = hop.tests.iter().map(|t| (&t.condition, t.unequal));
                let mut compared = Vec::new();
                for (condition, unequal) in bounds.chain(tests) {
                    compared.push(condition.data(unequal));
                    values = pg_sys::lappend(values, condition.value.cast());
                }
                let place = || pg_sys::bms_member_index(relids, hop.rti as i32) as usize;
                HopData {
                    relation: shape.members.is_empty().then(place),
                    table: Oid(hop.table.to_u32()),
                    from: hop.from,
                    to: hop.to,
                    order: hop.order,
                    bounds: hop.bounds.len(),
                    compared,
                }
            };
            let branches = shape.branches.iter();
            let branches = branches
                .map(|hops| hops.iter().map(&mut data).collect())
                .collect();
            let mut columns = std::ptr::null_mut();
            let found = compat::variables((*(*path).path.pathtarget).exprs.cast());
            for var in found {
                columns = custom::with_entry(columns, var.cast());
            }
            let scan = custom::new_plan(path, tlist, &SCAN_METHODS);
            (*scan).custom_exprs = values;
            (*scan).custom_plans = plans;
            custom::set_private(scan, &StepData { branches });
            (*scan).custom_scan_tlist = columns;
            scan
        }
    }
}

/// One quad of the step.
struct Walked {
    /// Its table's place among the readers.
    reader: usize,
    table: pg_sys::Oid,
    /// Its relation in the range table, unless it is of a member of a UNION ALL.
    relation: Option<i32>,
    from: usize,
    to: usize,
    order: usize,
    bounds: usize,
    compared: Vec<Compared>,
    values: Vec<*mut pg_sys::ExprState>,
    /// Key ranges of a start that is yet to be filled in.
    templates: Vec<(Key, Key)>,
    filters: Vec<Filter>,
    /// Columns of the key that have to be members of a list, which is sorted.
    lists: Vec<(u8, Vec<u64>)>,
    /// Remembers the place in the tree from frontier to frontier.
    reading: Reading,
    frontiers: u64,
    keys: u64,
    probes: u64,
    rows: u64,
}

/// The node's own part.
pub struct QuadStep {
    readers: Vec<TableReader>,
    branches: Vec<Vec<Walked>>,
    context: *mut pg_sys::ExprContext,
    started: bool,
    batch: Batch,
    spans: Vec<Span>,
}

/// A place reached, and the number of the start from which it was.
pub type Reached = (u64, u32);

impl ScanNode for QuadStep {
    const NAME: &'static CStr = c"Quad Step";

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
            let relations = compat::members((*scan).custom_relids);
            let data: StepData = custom::private_data(scan);
            let (mut readers, mut tables) = (Vec::new(), Vec::new());
            let mut value = 0;
            let mut walked = |hop: HopData| {
                let table = pg_sys::Oid::from(hop.table.0);
                let reader = match tables.iter().position(|&t| t == table) {
                    Some(known) => known,
                    None => {
                        let place = range_table_place(estate, table);
                        let rel = pg_sys::ExecOpenScanRelation(estate, place, eflags);
                        tables.push(table);
                        readers.push(TableReader::new(rel, (*estate).es_snapshot));
                        readers.len() - 1
                    }
                };
                let values = (0..hop.compared.len())
                    .map(|n| {
                        let expr = list_node((*scan).custom_exprs, value + n);
                        pg_sys::ExecInitExpr(expr.cast(), &raw mut (*node).ss.ps)
                    })
                    .collect();
                value += hop.compared.len();
                Walked {
                    reader,
                    table,
                    relation: hop.relation.map(|place| relations[place]),
                    from: hop.from,
                    to: hop.to,
                    order: hop.order,
                    bounds: hop.bounds,
                    compared: hop.compared.into_iter().map(Compared::from).collect(),
                    values,
                    templates: Vec::new(),
                    filters: Vec::new(),
                    lists: Vec::new(),
                    reading: Reading::new(0),
                    frontiers: 0,
                    keys: 0,
                    probes: 0,
                    rows: 0,
                }
            };
            let branches = data.branches.into_iter();
            let branches = branches
                .map(|hops| hops.into_iter().map(&mut walked).collect())
                .collect();
            Self {
                readers,
                branches,
                context: (*node).ss.ps.ps_ExprContext,
                started: false,
                batch: Batch::new(),
                spans: Vec::new(),
            }
        }
    }

    fn has_row(&self) -> bool {
        false
    }

    unsafe fn refill(&mut self, _state: *mut pg_sys::ScanState) -> bool {
        crate::pg::error::raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "a Quad Step runs below a Quad Walk only",
        )
    }

    unsafe fn fill(&mut self, _slot: *mut pg_sys::TupleTableSlot) -> usize {
        0
    }

    unsafe fn rescan(&mut self, _node: *mut pg_sys::CustomScanState) {
        self.started = false;
    }

    unsafe fn end(&mut self) {
        self.batch = Batch::default();
        self.spans = Vec::new();
        self.readers.iter_mut().for_each(TableReader::close);
    }

    /// One line, or group of properties, per quad of the step.
    unsafe fn explain(
        &self,
        _node: *mut pg_sys::CustomScanState,
        _ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    ) {
        // SAFETY: EXPLAIN's own state.
        unsafe {
            let show = |hop: &Walked| {
                let alias = match hop.relation {
                    Some(relation) => custom::relation_name(relation, es),
                    None => table_name(hop.table),
                };
                let reader = &self.readers[hop.reader];
                let order = reader.orders()[hop.order];
                let (from, to) = (COLUMNS[hop.from], COLUMNS[hop.to]);
                let counts = [
                    (c"Frontiers", "frontiers", hop.frontiers),
                    (c"Keys", "keys", hop.keys),
                    (c"Probes", "probes", hop.probes),
                    (c"Actual Rows", "rows", hop.rows),
                ];
                if !custom::is_text(es) {
                    custom::explain_group(c"Hop", true, es, || {
                        custom::explain_text("Alias", &alias, es);
                        custom::explain_text("From", from, es);
                        custom::explain_text("To", to, es);
                        custom::explain_text("Index Order", &order.to_string(), es);
                        if (*es).analyze {
                            for (label, _, value) in counts {
                                custom::explain_integer(label, value as i64, es);
                            }
                            if !reader.ranges_are_sorted() {
                                custom::explain_traffic(&reader.traffic(), es);
                            }
                        }
                    });
                    return;
                }
                let mut line = format!("{alias} ({from} to {to}): index_order={order}");
                if (*es).analyze {
                    for (_, name, value) in counts {
                        line += &format!(" {name}={value}");
                    }
                    if !reader.ranges_are_sorted() {
                        line += &custom::traffic(&reader.traffic(), (*es).timing);
                    }
                }
                custom::explain_text("Hop", &line, es);
            };
            if custom::is_text(es) {
                self.branches.iter().flatten().for_each(show);
            } else {
                custom::explain_group(c"Hops", false, es, || {
                    self.branches.iter().flatten().for_each(show);
                });
            }
        }
    }
}

/// The step below a walk, of which `node` is the recursive term.
///
/// # Safety
/// `node` is the begun state of a plan that has a step, below a subquery scan at most.
pub unsafe fn step_of(node: *mut pg_sys::PlanState) -> *mut pg_sys::CustomScanState {
    // SAFETY: the caller's promise; the cast follows a check of the tag.
    unsafe {
        let mut node = node;
        while (*node).type_ == pg_sys::NodeTag::T_SubqueryScanState {
            node = (*node.cast::<pg_sys::SubqueryScanState>()).subplan;
        }
        node.cast()
    }
}

impl QuadStep {
    /// Where one step leads from each start (with its number); `reached` gets what is found, possibly more than once.
    pub fn expand(&mut self, starts: Vec<Reached>, mut reached: impl FnMut(u64, u32)) {
        if !self.started {
            self.started = true;
            for hop in self.branches.iter_mut().flatten() {
                hop.start(&self.readers[hop.reader], self.context);
            }
        }
        let (readers, batch, spans) = (&self.readers, &mut self.batch, &mut self.spans);
        let (last, others) = self.branches.split_last_mut().expect("a step has a branch");
        for hops in others {
            expand(hops, readers, starts.clone(), batch, spans, &mut reached);
        }
        expand(last, readers, starts, batch, spans, &mut reached);
    }
}

/// Where one branch leads from each start.
fn expand(
    hops: &mut [Walked],
    readers: &[TableReader],
    starts: Vec<Reached>,
    batch: &mut Batch,
    spans: &mut Vec<Span>,
    reached: &mut impl FnMut(u64, u32),
) {
    let mut from = starts;
    let last = hops.len() - 1;
    for (n, hop) in hops.iter_mut().enumerate() {
        from.sort_unstable();
        from.dedup();
        let reader = &readers[hop.reader];
        if n == last {
            hop.expand(reader, &from, batch, spans, reached);
            return;
        }
        let mut next = Vec::new();
        hop.expand(reader, &from, batch, spans, &mut |to, start| {
            next.push((to, start))
        });
        from = next;
    }
}

/// The place in the range table of a relation that is this table.
///
/// # Panics
/// The statement does not read the table.
unsafe fn range_table_place(estate: *mut pg_sys::EState, table: pg_sys::Oid) -> pg_sys::Index {
    // SAFETY: the state of a statement that has begun.
    let found = unsafe {
        list_iter::<pg_sys::RangeTblEntry>((*estate).es_range_table).position(|entry| {
            (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && (*entry).relid == table
        })
    };
    let place = found.expect("the tables of a step are those of its statement");
    place as pg_sys::Index + 1
}

impl Walked {
    /// Evaluates the conditions.
    fn start(&mut self, reader: &TableReader, context: *mut pg_sys::ExprContext) {
        let order = reader.orders()[self.order];
        let start = vec![(self.from, Bound::Eq, Value::One(0))];
        let conditions = self.compared.iter().zip(self.values.iter().copied());
        let is_list =
            |n: usize, compared: &Compared| n >= self.bounds && compared.bound == Bound::Any;
        let (lists, others): (Vec<_>, Vec<_>) = conditions
            .enumerate()
            .partition(|(n, (compared, _))| is_list(*n, compared));
        let others = others.into_iter().map(|(_, condition)| condition);
        // SAFETY: expressions of the node, whose context this is.
        (self.templates, self.filters) =
            unsafe { compared::evaluate(start, others, self.bounds, order, context) };
        self.lists.clear();
        for (_, (compared, expr)) in lists {
            // SAFETY: as above.
            let members = match unsafe { parameter(expr, context, compared.value_type) } {
                Value::List(mut members) => {
                    members.sort_unstable();
                    members
                }
                _ => Vec::new(),
            };
            let place = reader.place(self.order, compared.column) as u8;
            self.lists.push((place, members));
        }
        let to = reader.place(self.order, self.to);
        let tested = self.filters.iter().map(|filter| filter.column);
        let tested = tested.chain(self.lists.iter().map(|list| list.0));
        self.reading = Reading::new(tested.fold(1 << to, |mask, place| mask | 1 << place));
    }

    /// Reads the quads of sorted starts, those of equal starts once.
    fn expand(
        &mut self,
        reader: &TableReader,
        starts: &[Reached],
        batch: &mut Batch,
        spans: &mut Vec<Span>,
        reached: &mut impl FnMut(u64, u32),
    ) {
        let place = |column| reader.place(self.order, column);
        let (from, to) = (place(self.from), place(self.to));
        let groups: Vec<&[Reached]> = starts.chunk_by(|a, b| a.0 == b.0).collect();
        let mut ranges: Vec<((Key, Key), usize)> = Vec::new();
        for (n, group) in groups.iter().enumerate() {
            for &(mut low, mut high) in &self.templates {
                (low[from], high[from]) = (group[0].0, group[0].0);
                ranges.push(((low, high), n));
            }
        }
        ranges.sort_unstable();
        let keys: Vec<(Key, Key)> = ranges.iter().map(|r| r.0).collect();
        self.frontiers += 1;
        self.keys += groups.len() as u64;
        self.probes += keys.len() as u64;
        self.reading.restart();
        // All quads of a subject, as a description asks for: it reads them again.
        let is_whole = |(low, high): &(Key, Key)| low[0] == high[0] && low[1] != high[1];
        if keys.len() <= AHEAD_KEYS && keys.iter().all(is_whole) {
            reader.read_ahead(self.order, &keys);
        }
        loop {
            interrupt();
            let more = reader.read(
                self.order,
                &mut self.reading,
                &keys,
                QUADS_AT_ONCE,
                batch,
                spans,
            );
            let mut at = 0;
            for span in spans.iter() {
                let group = groups[ranges[span.range as usize].1];
                for row in at..span.end as usize {
                    let passes = |f: &Filter| f.passes(batch.columns[usize::from(f.column)][row]);
                    let is_member = |(place, members): &(u8, Vec<u64>)| {
                        let value = batch.columns[usize::from(*place)][row];
                        members.binary_search(&value).is_ok()
                    };
                    if self.filters.iter().all(passes) && self.lists.iter().all(is_member) {
                        self.rows += 1;
                        for start in group {
                            reached(batch.columns[to][row], start.1);
                        }
                    }
                }
                at = span.end as usize;
            }
            if !more {
                return;
            }
        }
    }
}
