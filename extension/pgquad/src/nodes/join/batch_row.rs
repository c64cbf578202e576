//! Rows of a batch, one at a time in the slot that expressions of PostgreSQL read.

use pgquad_btree::SIGN;
use pgquad_exec::{Bindings, Slot};
use pgrx::pg_sys;

/// The slot that an expression reads, and the columns of a batch that belong into its places.
pub struct BatchRow<'a> {
    /// A virtual slot with room for every place.
    pub slot: *mut pg_sys::TupleTableSlot,
    /// Places with their columns; a column without values is NULL in every row.
    pub columns: Vec<(usize, Option<&'a [u64]>)>,
}

impl<'a> BatchRow<'a> {
    /// Rows of a batch for an expression that needs these variables, which belong into these places.
    pub fn new(
        slot: *mut pg_sys::TupleTableSlot,
        places: &[usize],
        needs: &[Slot],
        rows: &'a Bindings,
    ) -> Self {
        let columns = places.iter().zip(needs);
        Self {
            slot,
            columns: columns.map(|(&p, &slot)| (p, rows.ids(slot))).collect(),
        }
    }

    /// The columns that have values.
    pub fn values(&self) -> impl Iterator<Item = &'a [u64]> + '_ {
        self.columns.iter().filter_map(|column| column.1)
    }

    /// Whether two rows have the same values.
    pub fn is_equal(&self, a: usize, b: usize) -> bool {
        self.values().all(|ids| ids[a] == ids[b])
    }

    /// Makes the slot a filled one.
    ///
    /// # Safety
    /// A virtual slot.
    pub unsafe fn begin(&self) {
        // SAFETY: the caller's promise.
        unsafe { mark_filled(self.slot) }
    }

    /// Puts a row of the batch into the slot.
    ///
    /// # Safety
    /// A slot with room for every place.
    pub unsafe fn put(&self, row: usize) {
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

/// Makes a slot a filled one.
///
/// # Safety
/// A virtual slot.
pub unsafe fn mark_filled(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's promise.
    unsafe {
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
    }
}

/// What a compiled expression has for the row in its slot, in the context's memory for a row; `None` is NULL.
///
/// It is called straight through the pointer: a guarded call would turn an ERROR into a panic, which must not cross the
/// guard that the caller has around all rows.
///
/// # Safety
/// The context's slot is filled. The caller is within a guard, and owns no memory there.
#[inline]
pub unsafe fn evaluate_unguarded(
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise; a compiled expression has a function.
    unsafe {
        let evaluate = (*state).evalfunc.expect("a compiled expression");
        let mut is_null = false;
        let before = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = (*context).ecxt_per_tuple_memory;
        let datum = evaluate(state, context, &mut is_null);
        pg_sys::CurrentMemoryContext = before;
        (!is_null).then_some(datum)
    }
}
