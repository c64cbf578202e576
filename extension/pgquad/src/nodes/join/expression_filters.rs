//! Filters of `Quad Join` that PostgreSQL evaluates, on batches of rows.

use super::vectorised_filters::VectorisedFilter;
use crate::dictionary::Upcoming;
use crate::nodes::find_ahead::{FindAhead, MOST_ROWS};
use pgquad_btree::SIGN;
use pgquad_exec::{Bindings, Slot};
use pgrx::pg_sys;
use std::cmp::Ordering;

/// Fewer rows are not worth sorting.
const MAX_UNSORTED_ROWS: usize = 16;

/// A filter's expression.
pub struct TestExpr {
    /// Compiled expression.
    pub state: *mut pg_sys::ExprState,
    /// For each variable of the filter, its place in the scan tuple.
    pub places: Vec<usize>,
    /// Equal rows may have different results.
    pub volatile: bool,
    /// The same as a test of ids, where there is one.
    pub vectorised: Option<VectorisedFilter>,
    /// The terms that it computes.
    pub find_ahead: FindAhead,
    /// What the dictionary is told of the rows to come.
    pub upcoming: Upcoming,
    /// Rows that have failed it.
    pub removed: u64,
}

impl TestExpr {
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
        let mut row = Row {
            slot,
            columns: Vec::with_capacity(needs.len()),
        };
        for (&place, &slot) in self.places.iter().zip(needs) {
            row.columns.push((place, rows.ids(slot)));
        }
        // Rows for which terms are computed from the same values stand side by side.
        let computed_from = self.find_ahead.columns().map(|places| {
            let columns = &mut row.columns;
            columns.sort_by_key(|(place, _)| !places.contains(place));
            columns.partition_point(|(place, _)| places.contains(place))
        });
        let values: Vec<&[u64]> = row.columns.iter().filter_map(|column| column.1).collect();
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
        row: &Row<'_>,
        order: &[usize],
        keep: &mut [bool],
    ) {
        let mut last: Option<(usize, bool)> = None;
        let state = self.state;
        // SAFETY: the caller's promise. One guard serves the whole batch: nothing inside owns memory, so that an ERROR
        // may leave it at any row.
        unsafe {
            let evaluate = (*state).evalfunc.expect("a compiled expression");
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
                    let mut is_null = false;
                    // Straight through the pointer: a guarded call would turn an ERROR into a panic, which must not
                    // cross the guard around this loop.
                    let before = pg_sys::CurrentMemoryContext;
                    pg_sys::CurrentMemoryContext = (*context).ecxt_per_tuple_memory;
                    let datum = evaluate(state, context, &mut is_null);
                    pg_sys::CurrentMemoryContext = before;
                    keep[n] = !is_null && datum.value() != 0;
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
    row: &Row<'_>,
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

/// The slot that a filter reads, and the columns of a batch that belong into its places.
struct Row<'a> {
    slot: *mut pg_sys::TupleTableSlot,
    columns: Vec<(usize, Option<&'a [u64]>)>,
}

impl Row<'_> {
    fn is_equal(&self, a: usize, b: usize) -> bool {
        let mut values = self.columns.iter().filter_map(|column| column.1);
        values.all(|ids| ids[a] == ids[b])
    }

    /// Makes the slot a filled one.
    ///
    /// # Safety
    /// A virtual slot.
    unsafe fn begin(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            (*self.slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*self.slot).tts_nvalid = (*(*self.slot).tts_tupleDescriptor).natts as i16;
        }
    }

    /// Puts a row of the batch into the slot.
    ///
    /// # Safety
    /// A slot with room for every place.
    unsafe fn put(&self, row: usize) {
        for &(place, ids) in &self.columns {
            // SAFETY: the caller's promise.
            unsafe {
                *(*self.slot).tts_isnull.add(place) = ids.is_none();
                *(*self.slot).tts_values.add(place) =
                    pg_sys::Datum::from(ids.map_or(0, |ids| ids[row] ^ SIGN));
            }
        }
    }
}
