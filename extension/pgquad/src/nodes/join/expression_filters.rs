//! Filters of `Quad Join` that PostgreSQL evaluates, on batches of rows.

use super::batch_row::{evaluate_unguarded, BatchRow};
use super::vectorised_filters::VectorisedFilter;
use crate::dictionary::Upcoming;
use crate::nodes::find_ahead::{FindAhead, MOST_ROWS};
use pgquad_exec::{Bindings, Slot};
use pgrx::pg_sys;
use std::cmp::Ordering;

/// Fewer rows are not worth sorting.
const MAX_UNSORTED_ROWS: usize = 16;

/// A filter's expression.
pub struct TestExpr {
    /// Compiled expression.
    state: *mut pg_sys::ExprState,
    /// For each variable of the filter, its place in the scan tuple.
    pub places: Vec<usize>,
    /// Equal rows may have different results.
    volatile: bool,
    /// The same as a test of ids, where there is one.
    pub vectorised: Option<VectorisedFilter>,
    /// The terms that it computes.
    find_ahead: FindAhead,
    /// What the dictionary is told of the rows to come.
    pub upcoming: Upcoming,
    /// Rows that have failed it.
    pub removed: u64,
}

impl TestExpr {
    /// A filter whose variables have these places in the scan tuple.
    ///
    /// # Safety
    /// The expression is of the node `parent`, which begins; it is null for one without subplans. The current memory
    /// context lasts as long as the filter.
    pub unsafe fn new(
        expr: *mut pg_sys::Expr,
        places: Vec<usize>,
        parent: *mut pg_sys::PlanState,
        volatile: bool,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                state: pg_sys::ExecInitExpr(expr, parent),
                vectorised: VectorisedFilter::new(expr, &places, parent),
                places,
                find_ahead: FindAhead::new(&[expr.cast()], parent).of_whole_batches(),
                volatile,
                upcoming: Upcoming::new(),
                removed: 0,
            }
        }
    }

    /// Clears those of `keep` whose rows fail the filter.
    ///
    /// # Safety
    /// `slot` and `context` are those of the node that it was compiled for. The slot is a virtual one with room for
    /// every place; nothing in the context's memory for a row is needed any more.
    pub unsafe fn evaluate(
        &mut self,
        (slot, context): (*mut pg_sys::TupleTableSlot, *mut pg_sys::ExprContext),
        needs: &[Slot],
        rows: &Bindings,
        keep: &mut [bool],
    ) {
        let mut order: Vec<usize> = match &mut self.vectorised {
            // SAFETY: the caller's promise.
            Some(vectorised) => unsafe { vectorised.test(context, needs, rows, keep) },
            None => (0..keep.len()).collect(),
        };
        if order.is_empty() {
            return;
        }
        let mut row = BatchRow::new(slot, &self.places, needs, rows);
        // Rows for which terms are computed from the same values stand side by side.
        let computed_from = self.find_ahead.columns().map(|places| {
            let columns = &mut row.columns;
            columns.sort_by_key(|(place, _)| !places.contains(place));
            columns.partition_point(|(place, _)| places.contains(place))
        });
        let values: Vec<&[u64]> = row.values().collect();
        // Equal rows do, too, so that each is tested once.
        if !self.volatile && order.len() > MAX_UNSORTED_ROWS {
            order.sort_unstable_by(|&a, &b| {
                let differing = values.iter().find(|ids| ids[a] != ids[b]);
                differing.map_or(Ordering::Equal, |ids| ids[a].cmp(&ids[b]))
            });
        }
        self.upcoming.batch(order.len(), || {
            let of_rows = |ids: &&[u64]| order.iter().map(|&row| ids[row]).collect();
            values.iter().map(of_rows).collect()
        });
        let Some(computed_from) = computed_from else {
            // SAFETY: the caller's promise.
            unsafe { self.evaluate_rows(context, &row, &order, keep) };
            return;
        };
        let mut left = &order[..];
        while !left.is_empty() {
            // SAFETY: the caller's promise.
            unsafe {
                let many = look_up(&mut self.find_ahead, context, &row, computed_from, left);
                self.evaluate_rows(context, &row, &left[..many], keep);
                left = &left[many..];
            }
        }
        self.find_ahead.forget();
    }

    /// The same for some of the rows, one after the other.
    ///
    /// # Safety
    /// As for `evaluate`.
    unsafe fn evaluate_rows(
        &self,
        context: *mut pg_sys::ExprContext,
        row: &BatchRow<'_>,
        order: &[usize],
        keep: &mut [bool],
    ) {
        let mut last: Option<(usize, bool)> = None;
        // SAFETY: the caller's promise. One guard serves the whole batch: nothing inside owns memory, so that an ERROR
        // may leave it at any row.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                row.begin();
                (*context).ecxt_scantuple = row.slot;
                for &n in order {
                    if !keep[n] {
                        continue;
                    }
                    let known = last.filter(|&(other, _)| !self.volatile && row.is_equal(other, n));
                    if let Some((_, kept)) = known {
                        keep[n] = kept;
                        continue;
                    }
                    row.put(n);
                    let result = evaluate_unguarded(self.state, context);
                    keep[n] = result.is_some_and(|datum| datum.value() != 0);
                    last = Some((n, keep[n]));
                    pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                }
            });
        }
    }
}

/// Looks up the terms that are computed in the first of some rows. Rows that have the same values in the columns before
/// `computed_from` have the same terms; those that stand side by side are computed once. How many rows it has done.
///
/// # Safety
/// As for [`TestExpr::evaluate`].
unsafe fn look_up(
    find_ahead: &mut FindAhead,
    context: *mut pg_sys::ExprContext,
    row: &BatchRow<'_>,
    computed_from: usize,
    order: &[usize],
) -> usize {
    let values = row.columns[..computed_from].iter();
    let values: Vec<&[u64]> = values.filter_map(|column| column.1).collect();
    let is_other = |n: usize| {
        let (this, before) = (order[n], order[n.wrapping_sub(1)]);
        values.iter().any(|ids| ids[this] != ids[before])
    };
    let different = (0..order.len()).filter(|&n| n == 0 || is_other(n));
    let different: Vec<usize> = different.take(MOST_ROWS + 1).collect();
    find_ahead.begin_batch();
    // SAFETY: the caller's promise.
    unsafe {
        let fill = |n: usize| {
            row.begin();
            row.put(order[different[n]]);
        };
        find_ahead.look_up(row.slot, context, different.len(), fill);
    }
    let next = different.get(find_ahead.until);
    next.copied().unwrap_or(order.len())
}
