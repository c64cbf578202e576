//! Sorting ids in the order of their terms, for the first few of many rows. PostgreSQL keeps the best so far, and
//! compares each further row with the worst of them. The term of that one is remembered with its 64-bit key. The key of
//! the other one decides most comparisons. Otherwise its term is read once, where the dictionary keeps it, and never
//! copied.
//!
//! The operator class is none that PostgreSQL would choose by itself: `ORDER BY id USING OPERATOR(quad.<#)` asks for
//! it.

use std::cell::RefCell;
use std::cmp::Ordering;

use pgquad_term::{compare_inline, order, sort_key, Term, TermBuf, TermId};
use pgrx::datum::Internal;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::dictionary::{self, term_id};
use crate::rights;

/// The term that was compared with last.
struct LastTerm {
    id: TermId,
    key: u64,
    term: TermBuf,
}

thread_local! {
    static LAST: RefCell<Option<LastTerm>> = const { RefCell::new(None) };
}

/// The order of the terms with two ids; that of the default graph, which is no term, comes first.
pub fn order_of(a: i64, b: i64) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (a, b) = (term_id(a), term_id(b));
    // Values that are equal to the operators still have an order.
    if let Some(order) = compare_inline(a, b).filter(|order| order.is_ne()) {
        return order;
    }
    let last = LAST.take().filter(|last| last.id == b);
    let last = last.or_else(|| {
        let term = dictionary::with_term(b, |term| term.to_buf())?;
        let key = sort_key(&term.as_term());
        Some(LastTerm { id: b, key, term })
    });
    let Some(last) = last else {
        return Ordering::Greater;
    };
    let compared = dictionary::with_term(a, |term| compare(term, &last));
    LAST.set(Some(last));
    compared.unwrap_or(Ordering::Less)
}

fn compare(term: &Term<'_>, last: &LastTerm) -> Ordering {
    let by_key = sort_key(term).cmp(&last.key);
    by_key.then_with(|| order(term, &last.term.as_term()))
}

/// Order of the terms with two ids: negative, zero, or positive.
#[pg_extern(stable, strict, parallel_safe)]
fn id_order_cmp(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> i32 {
    rights::check(call, &[a, b]);
    order_of(a, b) as i32
}

/// The same id.
#[pg_extern(immutable, strict, parallel_safe)]
fn id_same(a: i64, b: i64) -> bool {
    a == b
}

/// The term comes before, in the order of ORDER BY.
#[pg_extern(stable, strict, parallel_safe)]
fn id_before(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> bool {
    rights::check(call, &[a, b]);
    order_of(a, b).is_lt()
}

/// The term comes before or is the same.
#[pg_extern(stable, strict, parallel_safe)]
fn id_not_after(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> bool {
    rights::check(call, &[a, b]);
    order_of(a, b).is_le()
}

/// The term comes after.
#[pg_extern(stable, strict, parallel_safe)]
fn id_after(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> bool {
    rights::check(call, &[a, b]);
    order_of(a, b).is_gt()
}

/// The term comes after or is the same.
#[pg_extern(stable, strict, parallel_safe)]
fn id_not_before(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> bool {
    rights::check(call, &[a, b]);
    order_of(a, b).is_ge()
}

#[pg_guard]
unsafe extern "C-unwind" fn compare_datums(
    x: pg_sys::Datum,
    y: pg_sys::Datum,
    _support: pg_sys::SortSupport,
) -> core::ffi::c_int {
    order_of(x.value() as i64, y.value() as i64) as core::ffi::c_int
}

/// Sort support function of the operator class.
#[pg_extern(immutable, parallel_safe)]
fn id_order_sortsupport(support: Internal) {
    let Some(datum) = support.unwrap() else {
        return;
    };
    rights::notes::check_sort();
    // SAFETY: the server calls this function with the SortSupport that is to be filled in, and for sorting `bigint`
    // only.
    let support = unsafe { &mut *datum.cast_mut_ptr::<pg_sys::SortSupportData>() };
    support.comparator = Some(compare_datums);
}

extension_sql_file!(
    "../../../../sql/id_order_operators.sql",
    name = "id_order_operators",
    requires = [
        id_order_cmp,
        id_same,
        id_before,
        id_not_after,
        id_after,
        id_not_before,
        id_order_sortsupport
    ]
);
