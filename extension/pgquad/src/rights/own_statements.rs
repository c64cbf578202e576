//! The statements of the extension's own plans, known by where PostgreSQL keeps their texts.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::c_char;

use pgrx::pg_sys;

thread_local! {
    /// Where the texts of all plans are.
    static TEXTS: RefCell<HashSet<usize>> = RefCell::default();
    /// The query that EXPLAIN was last asked to show, if it is one of such a plan; else NULL.
    static EXPLAINED: Cell<*mut pg_sys::Query> = const { Cell::new(std::ptr::null_mut()) };
}

/// A plan begins to live, whose text PostgreSQL keeps at this address.
pub fn add(text: usize) {
    TEXTS.with_borrow_mut(|texts| texts.insert(text));
}

/// The plan whose text is at this address is about to be freed.
pub fn remove(text: usize) {
    TEXTS.with_borrow_mut(|texts| texts.remove(&text));
}

/// EXPLAIN is about to show a query. Who does that in PostgreSQL's place may leave out the text when it has the query
/// planned, as Citus does (`CitusExplainOneQuery`).
pub fn explained(query: *mut pg_sys::Query, text: *const c_char) {
    let is_own = TEXTS.with_borrow(|texts| texts.contains(&(text as usize)));
    EXPLAINED.set(if is_own { query } else { std::ptr::null_mut() });
}

/// Whether a statement is one of such a plan. It is if its text is at the very address where PostgreSQL keeps the
/// plan's text: no other statement can have it there. A query without a text is one if EXPLAIN is showing it.
pub fn contains(query: *mut pg_sys::Query, text: *const c_char) -> bool {
    if text.is_null() {
        return query == EXPLAINED.get();
    }
    TEXTS.with_borrow(|texts| texts.contains(&(text as usize)))
}
