//! Sort support: PostgreSQL sorts by a 64-bit key of each term and compares terms only where the keys are equal.

use pgquad_term::sort_key;
use pgrx::datum::Internal;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::opclass::cmp;
use super::TermArg;

unsafe extern "C-unwind" {
    // Declared here because tuplesort recognises this very function by its address, not a wrapper of it.
    fn ssup_datum_unsigned_cmp(
        x: pg_sys::Datum,
        y: pg_sys::Datum,
        ssup: pg_sys::SortSupport,
    ) -> core::ffi::c_int;
}

#[pg_guard]
unsafe extern "C-unwind" fn compare(
    x: pg_sys::Datum,
    y: pg_sys::Datum,
    _ssup: pg_sys::SortSupport,
) -> core::ffi::c_int {
    // SAFETY: the sort passes non-null datums of the type it was set up for.
    let (a, b) = unsafe {
        (
            TermArg::from_datum_unchecked(x),
            TermArg::from_datum_unchecked(y),
        )
    };
    cmp(&a, &b) as core::ffi::c_int
}

#[pg_guard]
unsafe extern "C-unwind" fn abbreviate(
    original: pg_sys::Datum,
    _ssup: pg_sys::SortSupport,
) -> pg_sys::Datum {
    // SAFETY: the sort passes a non-null datum of the type it was set up for.
    let term = unsafe { TermArg::from_datum_unchecked(original) };
    pg_sys::Datum::from(sort_key(&term.term()))
}

/// Keys are cheap to make and compare, so they are kept even when many are equal.
unsafe extern "C-unwind" fn never_abort(
    _tuples: core::ffi::c_int,
    _ssup: pg_sys::SortSupport,
) -> bool {
    false
}

/// Sort support function of the btree operator class.
#[pg_extern(immutable, parallel_safe)]
pub(super) fn term_sortsupport(support: Internal) {
    let Some(datum) = support.unwrap() else {
        return;
    };
    // SAFETY: the server calls this function with the SortSupport that is to be filled in, and for sorting `quad.term`
    // only.
    let support = unsafe { &mut *datum.cast_mut_ptr::<pg_sys::SortSupportData>() };
    support.comparator = Some(compare);
    if support.abbreviate && size_of::<pg_sys::Datum>() == size_of::<u64>() {
        support.abbrev_full_comparator = Some(compare);
        support.comparator = Some(ssup_datum_unsigned_cmp);
        support.abbrev_converter = Some(abbreviate);
        support.abbrev_abort = Some(never_abort);
    }
}
