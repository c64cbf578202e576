//! Sorting ids in the order of their terms, for the first few of many rows. PostgreSQL keeps the best so far, and
//! compares each further row with the worst of them. The term of that one is remembered with its 64-bit key, as are
//! those that MIN and MAX have found for some hundred groups. The key of the other one decides most comparisons.
//! Otherwise its term is read once, where the dictionary keeps it, and never copied.
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

/// A term that was compared with.
struct KnownTerm {
    id: TermId,
    key: u64,
    term: TermBuf,
}

/// Places of terms that are remembered.
const PLACES: usize = 512;
/// Bytes of a term that shares the places with others (half a megabyte). Of the longer ones the last is remembered.
const MAX_BYTES: usize = 1024;
/// Bytes of a term that is remembered.
const MAX_LONG_BYTES: usize = 256 * 1024;

/// Terms that were compared with lately.
struct KnownTerms {
    /// Of the dictionary that they are from.
    generation: u64,
    /// By the last bits of their ids.
    places: [Option<Box<KnownTerm>>; PLACES],
    /// The long one that was compared with last.
    long: Option<Box<KnownTerm>>,
}

thread_local! {
    static KNOWN: RefCell<KnownTerms> = const {
        RefCell::new(KnownTerms {
            generation: 0,
            places: [const { None }; PLACES],
            long: None,
        })
    };
}

fn place(id: TermId) -> usize {
    // Neighbouring terms have neighbouring numbers.
    id.0 as usize % PLACES
}

/// Takes out a term that is remembered.
fn take_known(id: TermId) -> Option<Box<KnownTerm>> {
    let is_it = |known: &mut Box<KnownTerm>| known.id == id;
    let generation = dictionary::generation();
    KNOWN.with_borrow_mut(|all| {
        if all.generation != generation {
            all.places.fill_with(|| None);
            all.long = None;
            all.generation = generation;
        }
        let short = all.places[place(id)].take_if(is_it);
        short.or_else(|| all.long.take_if(is_it))
    })
}

fn remember(known: Box<KnownTerm>) {
    KNOWN.with_borrow_mut(|all| {
        let place = &mut all.places[place(known.id)];
        let bytes = known.term.as_encoded().len();
        if bytes <= MAX_BYTES {
            *place = Some(known);
        } else if bytes <= MAX_LONG_BYTES {
            all.long = Some(known);
        }
    });
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
    let known = take_known(b).or_else(|| {
        let term = dictionary::with_term(b, |term| term.to_buf())?;
        let key = sort_key(&term.as_term());
        Some(Box::new(KnownTerm { id: b, key, term }))
    });
    let Some(known) = known else {
        return Ordering::Greater;
    };
    let compared = dictionary::with_term(a, |term| compare(term, &known));
    remember(known);
    compared.unwrap_or(Ordering::Less)
}

fn compare(term: &Term<'_>, known: &KnownTerm) -> Ordering {
    let by_key = sort_key(term).cmp(&known.key);
    by_key.then_with(|| order(term, &known.term.as_term()))
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
