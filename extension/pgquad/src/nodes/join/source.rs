//! What the pipeline reads from: the tables of the node, and PostgreSQL's expressions over its rows.

use super::batch_row::{evaluate_unguarded, BatchRow};
use super::expression_filters::TestExpr;
use super::value_equality;
use super::vectorised_filters::VectorisedFilter;
use crate::catalog::distributed_store::ORDERS;
use crate::cluster::ShardedReader;
use crate::dictionary::{self, Upcoming};
use crate::pg::interrupt::interrupt;
use crate::table::TableReader;
use crate::term::number_of_datum;
use pgquad_btree::{Batch, Key, Order, Span, SIGN};
use pgquad_cluster::{Reading, Traffic};
use pgquad_exec::{
    Argument, Bindings, ColumnNumber, Expr, Prefetch, Slot, Source, TableNumber, TablePart,
    ValueKey, Wanted,
};
use pgquad_term::number::Number;
use pgrx::pg_sys;
use std::time::Instant;

/// Rows that show whether terms are read, before the dictionary is offered all that come.
const TERM_TRIAL_ROWS: usize = 16;

/// Bytes that the results of an argument take before they are read and given back; a term may be large.
const RESULT_BYTES: pg_sys::Size = 256 << 10;

/// The argument of a sum or an extreme: what gives an id, or a term.
pub struct ArgumentExpr {
    /// The expression over the scan tuple.
    pub expr: *mut pg_sys::Expr,
    /// It gives terms.
    pub is_term: bool,
    /// The same, compiled.
    pub state: *mut pg_sys::ExprState,
    /// For each variable that it is computed from, its place in the scan tuple.
    pub places: Vec<usize>,
    /// What the dictionary is told of the rows to come.
    pub upcoming: Upcoming,
}

/// Tables and expressions of a begun node.
pub struct NodeSource {
    /// One reader for each table.
    pub readers: Vec<TableReader>,
    /// The reader of each of the plan's tables.
    pub tables: Vec<usize>,
    /// The filters' expressions, in the order of the plan.
    pub tests: Vec<TestExpr>,
    /// The arguments of sums and extremes that are made of the node's rows.
    pub arguments: Vec<ArgumentExpr>,
    /// The node's scan slot, which expressions read.
    pub slot: *mut pg_sys::TupleTableSlot,
    /// The node's expression context.
    pub context: *mut pg_sys::ExprContext,
    /// Set when EXPLAIN wants to know where the time goes.
    pub since: Option<Instant>,
}

impl NodeSource {
    /// Prepares for a new run, in which parameters may have other values.
    pub fn restart(&mut self) {
        let vectorised = self
            .tests
            .iter_mut()
            .filter_map(|test| test.vectorised.as_mut());
        vectorised.for_each(VectorisedFilter::restart);
    }

    fn reader(&self, table: TableNumber) -> &TableReader {
        &self.readers[self.tables[table.whole().index()]]
    }

    /// The reader of a part of a table, and the number of its first order in the whole table; `None` for a whole table.
    fn part(&self, table: TableNumber) -> Option<(&ShardedReader, usize)> {
        let first = match table.part()? {
            TablePart::BySubject => 0,
            TablePart::ByObject => ORDERS.len() / 2,
        };
        self.reader(table).sharded().map(|sharded| (sharded, first))
    }
}

impl ArgumentExpr {
    /// What the expression has in some rows, one after the other, in `results`; none where it is NULL. Terms are in the
    /// memory of the context for a row, which the caller gives back. When that context holds [`RESULT_BYTES`], the
    /// remaining rows are left out. How many rows were done, at least one.
    ///
    /// # Safety
    /// The slot and the context are those of the node that it was compiled for.
    unsafe fn evaluate(
        &self,
        context: *mut pg_sys::ExprContext,
        row: &BatchRow<'_>,
        rows: &[usize],
        results: &mut Vec<Option<pg_sys::Datum>>,
    ) -> usize {
        results.clear();
        results.reserve(rows.len());
        // SAFETY: the caller's promise; the slot has room for every place. One guard serves all rows, as for filters:
        // nothing inside owns memory, and the expression is called straight through its pointer.
        unsafe {
            let memory = (*context).ecxt_per_tuple_memory;
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                row.begin();
                (*context).ecxt_scantuple = row.slot;
                for (n, &at) in rows.iter().enumerate() {
                    if n > 0 && row.is_equal(rows[n - 1], at) {
                        results.push(results[n - 1]);
                        continue;
                    }
                    if n > 0 && (*memory).mem_allocated >= RESULT_BYTES {
                        return n;
                    }
                    row.put(at);
                    results.push(evaluate_unguarded(self.state, context));
                }
                rows.len()
            })
        }
    }
}

impl NodeSource {
    /// The values of an argument in the wanted rows of a batch, as `read` takes them from a result.
    fn results<T: Clone>(
        &mut self,
        argument: Argument,
        needs: &[Slot],
        (rows, wanted): (&Bindings, &[bool]),
        read: impl Fn(pg_sys::Datum) -> Option<T>,
    ) -> Vec<Option<T>> {
        let (slot, context) = (self.slot, self.context);
        let argument = &mut self.arguments[argument.index()];
        let row = BatchRow::new(slot, &argument.places, needs, rows);
        let wanted: Vec<usize> = (0..rows.len).filter(|&row| wanted[row]).collect();
        let (mut results, mut data) = (vec![None; rows.len], Vec::new());
        // The first ones show whether terms are read; then the others are offered to the dictionary. A distributed one
        // is offered the first ones, too.
        let (trial, others) = wanted.split_at(wanted.len().min(TERM_TRIAL_ROWS));
        for part in [trial, others] {
            argument.upcoming.batch(part.len(), || {
                let of_rows = |ids: &[u64]| part.iter().map(|&row| ids[row]).collect();
                row.values().map(of_rows).collect()
            });
            let mut left = part;
            while !left.is_empty() {
                // SAFETY: slot and context are the node's; nothing keeps what is in the memory for a row.
                unsafe {
                    let done = argument.evaluate(context, &row, left, &mut data);
                    for (&row, datum) in left[..done].iter().zip(&data) {
                        results[row] = datum.and_then(&read);
                    }
                    left = &left[done..];
                    pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                }
            }
        }
        argument.upcoming.withdraw();
        results
    }

    /// The results that are ids.
    fn result_ids(
        &mut self,
        argument: Argument,
        needs: &[Slot],
        rows: (&Bindings, &[bool]),
    ) -> Vec<Option<i64>> {
        self.results(argument, needs, rows, |datum| Some(datum.value() as i64))
    }
}

impl Source for NodeSource {
    fn orders(&self, table: TableNumber) -> &[Order] {
        match self.part(table) {
            None => self.reader(table).orders(),
            Some((_, first)) => &ORDERS[first..first + ORDERS.len() / 2],
        }
    }

    fn count(&mut self, table: TableNumber, order: usize, low: &Key, high: &Key) -> u64 {
        match self.part(table) {
            None => self.reader(table).count(order, low, high),
            Some((sharded, first)) => sharded.counts_own(first + order, &[(*low, *high)])[0],
        }
    }

    fn counts(&mut self, table: TableNumber, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        match self.part(table) {
            None => self.reader(table).counts(order, ranges),
            Some((sharded, first)) => sharded.counts_own(first + order, ranges),
        }
    }

    fn is_remote(&self) -> bool {
        self.readers.iter().any(TableReader::is_remote)
    }

    fn is_counted_here(&self, table: TableNumber, order: usize, range: &(Key, Key)) -> bool {
        match self.part(table) {
            None => self.reader(table).is_counted_here(order, range),
            Some(_) => true,
        }
    }

    fn count_ahead(&mut self, wanted: &[Wanted]) {
        for (n, reader) in self.readers.iter().enumerate() {
            let of_reader = wanted
                .iter()
                .filter(|w| self.tables[w.table.whole().index()] == n);
            let ranges = of_reader.flat_map(|wanted| {
                let ranges = wanted.ranges.iter();
                ranges.map(|(low, high)| (wanted.order, *low, *high))
            });
            reader.count_ahead(&ranges.collect::<Vec<_>>());
        }
    }

    fn read_ahead(&mut self, wanted: &[Wanted]) {
        for reader in &self.readers {
            if let Some(sharded) = reader.sharded() {
                sharded.forget_wishes();
            }
        }
        for Wanted {
            table,
            order,
            ranges,
        } in wanted
        {
            self.reader(*table).read_ahead(*order, ranges);
        }
    }

    fn prefetch(&mut self, reads: &[Prefetch]) -> bool {
        let mut all = true;
        for read in reads {
            let Wanted {
                table,
                order,
                ranges,
            } = &read.wanted;
            if let Some(sharded) = self.reader(*table).sharded() {
                all &= sharded.prefetch(*order, read.mask, ranges, read.enough);
            }
        }
        all
    }

    fn begin_run(&mut self, hash: impl FnOnce() -> u64) -> bool {
        let mut sharded = self.readers.iter().filter_map(|reader| reader.sharded());
        sharded
            .next()
            .is_some_and(|sharded| sharded.begin_run(hash))
    }

    fn take_prefetched(&mut self) {
        for reader in &self.readers {
            if let Some(sharded) = reader.sharded() {
                sharded.take_prefetched();
            }
        }
    }

    fn is_known(&self, table: TableNumber, order: usize, range: &(Key, Key)) -> bool {
        let sharded = self.reader(table).sharded();
        sharded.is_none_or(|sharded| sharded.is_known(order, range))
    }

    fn known_keys(
        &self,
        table: TableNumber,
        order: usize,
        range: &(Key, Key),
        most: usize,
        keys: &mut Vec<Key>,
    ) -> bool {
        let sharded = self.reader(table).sharded();
        sharded.is_some_and(|sharded| sharded.known_keys(order, range, most, keys))
    }

    fn only_shard(&self, part: TableNumber, keys: &[u64]) -> Option<(usize, usize)> {
        let (sharded, first) = self.part(part)?;
        sharded.only_shard(first, keys)
    }

    fn ranges_are_sorted(&self, table: TableNumber) -> bool {
        self.reader(table).ranges_are_sorted()
    }

    fn read(
        &mut self,
        table: TableNumber,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        match self.part(table) {
            None => self
                .reader(table)
                .read(order, reading, ranges, enough, batch, spans),
            Some((sharded, first)) => {
                sharded.read_own(first + order, reading, ranges, enough, batch, spans)
            }
        }
    }

    fn test(&mut self, expr: Expr, needs: &[Slot], rows: &Bindings, keep: &mut [bool]) {
        let left = |keep: &[bool]| keep.iter().filter(|&&kept| kept).count() as u64;
        let before = left(keep);
        let test = &mut self.tests[expr.index()];
        // SAFETY: slot and context are those of the node, which has compiled the filter; nothing keeps what is in the
        // memory for a row.
        unsafe { test.evaluate((self.slot, self.context), needs, rows, keep) };
        test.removed += before - left(keep);
    }

    fn numbers(
        &mut self,
        argument: Argument,
        needs: &[Slot],
        rows: &Bindings,
        wanted: &[bool],
    ) -> Vec<Option<Number>> {
        let rows = (rows, wanted);
        if !self.arguments[argument.index()].is_term {
            return dictionary::numbers(&self.result_ids(argument, needs, rows));
        }
        // SAFETY: the results are terms.
        let number = |datum| unsafe { number_of_datum(datum) };
        self.results(argument, needs, rows, number)
    }

    fn values(
        &mut self,
        argument: Argument,
        needs: &[Slot],
        rows: &Bindings,
        wanted: &[bool],
    ) -> Vec<Option<u64>> {
        let ids = self.result_ids(argument, needs, (rows, wanted));
        let keys = ids.into_iter();
        keys.map(|id| id.map(|id| id as u64 ^ SIGN)).collect()
    }

    fn pushdown_ranges(
        &mut self,
        expr: Expr,
        _needs: &[Slot],
        unknown: usize,
        row: &[Option<u64>],
    ) -> Option<Vec<(u64, u64)>> {
        let context = self.context;
        let vectorised = self.tests[expr.index()].vectorised.as_mut()?;
        // SAFETY: the context is that of the node.
        let intervals = unsafe { vectorised.pushdown_ranges(context, unknown, row) };
        (!intervals.is_all()).then(|| intervals.ranges().to_vec())
    }

    fn value_keys(&mut self, ids: &[u64]) -> Vec<ValueKey> {
        value_equality::value_keys(ids)
    }

    fn placed_by(&self, table: TableNumber, order: usize) -> Option<ColumnNumber> {
        let sharded = self.reader(table).sharded()?;
        sharded.placed_by(order).map(ColumnNumber::new)
    }

    fn holders(&mut self, table: TableNumber, column: ColumnNumber, values: &[u64]) -> Vec<u16> {
        match self.reader(table).sharded() {
            Some(sharded) => sharded.holders(column.number(), values),
            None => vec![0; values.len()],
        }
    }

    fn whole_order(&self, table: TableNumber, order: usize) -> usize {
        order + self.part(table).map_or(0, |(_, first)| first)
    }

    fn interrupt(&mut self) {
        interrupt();
    }

    fn clock(&self) -> u64 {
        self.since
            .map_or(0, |since| since.elapsed().as_nanos() as u64)
    }

    fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        self.readers
            .iter()
            .for_each(|reader| sum += reader.traffic());
        sum
    }

    fn pages(&self) -> (u64, u64) {
        // SAFETY: plain counters of this backend.
        let usage = unsafe { pg_sys::pgBufferUsage };
        (
            usage.shared_blks_hit as u64 + usage.local_blks_hit as u64,
            usage.shared_blks_read as u64 + usage.local_blks_read as u64,
        )
    }
}
