//! Execution of `Quad Groups`: the conditions become key ranges and filters once per (re)scan; groups come in batches.

use super::decoded::Decoded;
use super::explain::{explain, Shown};
use super::shape::Output;
use crate::dictionary::Upcoming;
use crate::nodes::custom::{self, ScanNode};
use crate::nodes::scan::compared;
use crate::pg::ffi::Methods;
use crate::pg::interrupt::interrupt;
use crate::pg::list::list_node;
use crate::storage::{Sorted, Sorter};
use crate::table::{GroupScan, TableReader};
use pgquad_btree::{Filter, Groups, Work, SIGN};
use pgrx::{pg_sys, PgMemoryContexts};
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::ManuallyDrop;

/// What plans point at.
pub static SCAN_METHODS: Methods<pg_sys::CustomScanMethods> = custom::scan_methods::<QuadGroups>();

static EXEC_METHODS: Methods<pg_sys::CustomExecMethods> = custom::exec_methods::<QuadGroups>();

/// Groups of the first batch: a LIMIT reads little.
const FIRST_GROUPS: usize = 16;
/// Bytes that a value takes while scattered groups are counted.
const VALUE_BYTES: usize = 48;
/// Groups of later batches.
const MAX_GROUPS: usize = 1024;
/// The node's own part.
pub struct QuadGroups {
    /// The plan, decoded.
    plan: Decoded,
    /// What it reads from.
    reader: TableReader,
    /// Lives as long as the query.
    context: pg_sys::MemoryContext,
    values: Vec<*mut pg_sys::ExprState>,
    filters: Vec<Filter>,
    ranges: Vec<([u64; 4], [u64; 4])>,
    next_range: usize,
    cursor: Option<GroupScan>,
    batch: Groups,
    enough: usize,
    /// Scattered groups that are yet to be handed out. A failed statement leaves it be: its file is gone by then.
    sorted: Option<ManuallyDrop<Sorted>>,
    /// The group that may go on in the next batch.
    open: Option<Group>,
    started: bool,
    ended: bool,
    /// Finished groups, one column for each output.
    rows: Vec<Vec<u64>>,
    len: usize,
    at: usize,
    /// The ids of the finished groups, for whoever decodes them.
    upcoming: Upcoming,
    /// Pages read and skipped, over all rescans.
    work: Work,
}

/// A group under way.
struct Group {
    /// The columns of the last keys that belong to it.
    key: [u64; 4],
    rows: u64,
    distinct: u64,
}

impl ScanNode for QuadGroups {
    const NAME: &'static CStr = c"Quad Groups";

    fn methods() -> &'static Methods<pg_sys::CustomExecMethods> {
        &EXEC_METHODS
    }

    unsafe fn begin(
        node: *mut pg_sys::CustomScanState,
        estate: *mut pg_sys::EState,
        _eflags: core::ffi::c_int,
    ) -> Self {
        // SAFETY: the plan was made by `plan_path`; its relation is open.
        unsafe {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let plan = Decoded::read(scan);
            let parent = &raw mut (*node).ss.ps;
            let values = (0..plan.compared.len())
                .map(|n| pg_sys::ExecInitExpr(list_node((*scan).custom_exprs, n).cast(), parent))
                .collect();
            Self {
                context: (*estate).es_query_cxt,
                reader: TableReader::new((*node).ss.ss_currentRelation, (*estate).es_snapshot),
                values,
                filters: Vec::new(),
                ranges: Vec::new(),
                next_range: 0,
                cursor: None,
                batch: Groups::default(),
                enough: FIRST_GROUPS,
                sorted: None,
                open: None,
                started: false,
                ended: false,
                rows: vec![Vec::new(); plan.outputs.len()],
                len: 0,
                at: 0,
                upcoming: Upcoming::new(),
                work: Work::default(),
                plan,
            }
        }
    }

    #[inline]
    fn has_row(&self) -> bool {
        self.at < self.len
    }

    unsafe fn refill(&mut self, state: *mut pg_sys::ScanState) -> bool {
        if !self.started {
            // SAFETY: the begun node's own context.
            unsafe { self.start((*state).ps.ps_ExprContext) };
        }
        let found = self.finish_groups();
        self.offer();
        found
    }

    #[inline]
    unsafe fn fill(&mut self, slot: *mut pg_sys::TupleTableSlot) -> usize {
        let row = self.at;
        self.at += 1;
        for (place, column) in self.rows.iter().enumerate() {
            // SAFETY: there is a row; the slot has a place for every output.
            unsafe {
                *(*slot).tts_values.add(place) = pg_sys::Datum::from(*column.get_unchecked(row));
                *(*slot).tts_isnull.add(place) = false;
            }
        }
        self.rows.len()
    }

    unsafe fn rescan(&mut self, _node: *mut pg_sys::CustomScanState) {
        self.started = false;
        (self.at, self.len) = (0, 0);
        self.upcoming.withdraw();
    }

    unsafe fn end(&mut self) {
        self.forget_sorted();
        self.reader.close();
        self.rows = Vec::new();
        self.batch = Groups::default();
        (self.at, self.len) = (0, 0);
        self.upcoming.withdraw();
    }

    unsafe fn explain(
        &self,
        node: *mut pg_sys::CustomScanState,
        ancestors: *mut pg_sys::List,
        es: *mut pg_sys::ExplainState,
    ) {
        let shown = Shown {
            plan: &self.plan,
            reader: &self.reader,
            work: &self.work,
        };
        // SAFETY: EXPLAIN's own arguments.
        unsafe { explain(shown, node, ancestors, es) }
    }
}

impl QuadGroups {
    /// Evaluates the conditions.
    unsafe fn start(&mut self, context: *mut pg_sys::ExprContext) {
        self.started = true;
        let order = self.reader.orders()[self.plan.order];
        let conditions = self.plan.compared.iter().zip(self.values.iter().copied());
        // SAFETY: expressions of the node, whose context this is.
        (self.ranges, self.filters) =
            unsafe { compared::evaluate(Vec::new(), conditions, self.plan.bounds, order, context) };
        self.next_range = 0;
        self.cursor = None;
        self.enough = FIRST_GROUPS;
        self.forget_sorted();
        self.open = None;
        self.ended = false;
    }

    /// Lets the dictionary know the ids of the finished groups.
    fn offer(&mut self) {
        let outputs = self.plan.outputs.iter().zip(&self.rows);
        self.upcoming.batch(self.len, || {
            let ids = outputs.filter(|(output, _)| matches!(output, Output::Column(_)));
            ids.map(|(_, ids)| ids.iter().map(|id| id ^ SIGN).collect())
                .collect()
        });
    }

    fn forget_sorted(&mut self) {
        self.sorted.take().map(ManuallyDrop::into_inner);
    }

    /// Finishes the next groups; false at the end.
    fn finish_groups(&mut self) -> bool {
        self.rows.iter_mut().for_each(Vec::clear);
        (self.at, self.len) = (0, 0);
        while self.len == 0 && !self.ended {
            interrupt();
            if let Some(column) = self.plan.scattered {
                self.read_scattered(column);
            } else if self.plan.inner_depth == 0 || (!self.plan.grouped && !self.distinct()) {
                self.count_all();
            } else if self.count_distinct() || !self.read_groups() {
                self.ended = true;
                self.close();
            }
        }
        self.len > 0
    }

    fn distinct(&self) -> bool {
        self.plan.outputs.contains(&Output::Distinct)
    }

    /// Groups by a column that the order does not have together: all are found before the first is handed out.
    fn read_scattered(&mut self, column: usize) {
        let place = self.reader.place(self.plan.order, column);
        if self.sorted.is_none() {
            let sorted = self.sort_scattered(place);
            self.sorted = Some(ManuallyDrop::new(sorted));
        }
        while self.len < MAX_GROUPS {
            let Some([value, rows, ..]) = self.sorted.as_mut().and_then(|sorted| sorted.next())
            else {
                self.ended = true;
                return self.close();
            };
            match &mut self.open {
                Some(open) if open.key[place] == value => open.rows += rows,
                _ => {
                    self.close();
                    let mut key = [0; 4];
                    key[place] = value;
                    self.open = Some(Group {
                        key,
                        rows,
                        distinct: 1,
                    });
                }
            }
        }
    }

    /// The values of a key column with the numbers of their rows, ascending; a value may come several times.
    fn sort_scattered(&mut self, place: usize) -> Sorted {
        // SAFETY: a plain setting; the context outlives the sort.
        let (bytes, mut context) = unsafe {
            (
                pg_sys::get_hash_memory_limit(),
                PgMemoryContexts::For(self.context),
            )
        };
        let most = (bytes / 2 / VALUE_BYTES).max(64);
        let mut sorter = Sorter::new(bytes / 2);
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let mut flushes = 0;
        let mut flush = |counts: &mut HashMap<u64, u64>| {
            flushes += 1;
            for (value, rows) in counts.drain() {
                sorter.push([value, rows, flushes, 0]);
            }
        };
        let mut read = || {
            for (low, high) in &self.ranges {
                let each = |value, rows| {
                    *counts.entry(value).or_insert(0) += rows;
                    if counts.len() >= most {
                        flush(&mut counts);
                    }
                };
                self.reader.values(
                    self.plan.order,
                    (low, high),
                    place,
                    &self.filters,
                    &mut self.work,
                    each,
                );
            }
            flush(&mut counts);
        };
        // SAFETY: what is allocated inside belongs to the query.
        unsafe { context.switch_to(|_| read()) };
        sorter.finish()
    }

    /// One group of all rows.
    fn count_all(&mut self) {
        let mut rows = 0;
        for (low, high) in &self.ranges {
            rows += self.reader.count_visible(
                self.plan.order,
                (low, high),
                &self.filters,
                &mut self.work,
            );
        }
        self.open = Some(Group {
            key: [0; 4],
            rows,
            distinct: 0,
        });
        self.ended = true;
        self.close();
    }

    /// The one group of all rows and its distinct values, where those need not be read; false where they have to be, or
    /// are being read.
    fn count_distinct(&mut self) -> bool {
        let (&[range], false, 0) = (&self.ranges[..], self.plan.grouped, self.next_range) else {
            return false;
        };
        let (order, depth) = (self.plan.order, self.plan.inner_depth);
        let counting = (depth, self.plan.counting);
        let found = self
            .reader
            .count_groups(order, range, counting, &self.filters);
        let Some([distinct, rows]) = found else {
            return false;
        };
        self.open = Some(Group {
            key: [0; 4],
            rows,
            distinct,
        });
        true
    }

    /// Reads the next batch of groups; false at the end.
    fn read_groups(&mut self) -> bool {
        loop {
            let Some(cursor) = &mut self.cursor else {
                let Some(&(low, high)) = self.ranges.get(self.next_range) else {
                    return false;
                };
                self.next_range += 1;
                self.cursor = Some(self.reader.group_scan(
                    self.plan.order,
                    (low, high),
                    (self.plan.inner_depth, self.plan.counting),
                    &self.filters,
                ));
                continue;
            };
            let more = self.reader.groups(
                self.plan.order,
                cursor,
                &self.filters,
                self.enough,
                &mut self.batch,
                &mut self.work,
            );
            if more {
                break;
            }
            self.cursor = None;
        }
        self.enough = MAX_GROUPS;
        let (depth, inner) = (self.plan.depth, self.plan.inner_depth);
        let batch = std::mem::take(&mut self.batch);
        for (i, &rows) in batch.counts.iter().enumerate() {
            let mut key = [0; 4];
            for (value, column) in key.iter_mut().zip(&batch.columns[..inner]) {
                *value = column[i];
            }
            // Groups go on where one range ends and the next begins.
            match &mut self.open {
                Some(open) if open.key[..depth] == key[..depth] => {
                    open.distinct += u64::from(open.key[..inner] != key[..inner]);
                    open.rows += rows;
                    open.key = key;
                }
                _ => {
                    self.close();
                    self.open = Some(Group {
                        key,
                        rows,
                        distinct: 1,
                    });
                }
            }
        }
        self.batch = batch;
        true
    }

    /// Finishes the group under way. Without GROUP BY there is one, whatever there is to count.
    fn close(&mut self) {
        let group = match self.open.take() {
            Some(group) => group,
            None if self.plan.grouped || !self.ended => return,
            None => Group {
                key: [0; 4],
                rows: 0,
                distinct: 0,
            },
        };
        for (output, values) in self.plan.outputs.iter().zip(&mut self.rows) {
            values.push(match output {
                Output::Rows => group.rows,
                Output::Distinct => group.distinct,
                Output::Column(column) => {
                    group.key[self.reader.place(self.plan.order, *column)] ^ SIGN
                }
            });
        }
        self.len += 1;
    }
}
