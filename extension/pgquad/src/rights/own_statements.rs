//! The statements of the extension's own plans, known by where PostgreSQL keeps their texts.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::c_char;

use pgrx::pg_sys;

thread_local! {
    /// Where the texts of all plans are.
    static TEXTS: RefCell<HashSet<usize>> = RefCell::default();
    /// The query that EXPLAIN is showing, if it is one of such a plan; else NULL.
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

/// The query that EXPLAIN shows is this one, as long as this lives. Who shows it in PostgreSQL's place may leave out
/// the text when it has the query planned, as Citus does (`CitusExplainOneQuery`).
pub struct Explained(*mut pg_sys::Query);

impl Explained {
    /// EXPLAIN begins to show a query with this text.
    pub fn begin(query: *mut pg_sys::Query, text: *const c_char) -> Self {
        let own = if is_own_text(text) {
            query
        } else {
            std::ptr::null_mut()
        };
        Self(EXPLAINED.replace(own))
    }
}

impl Drop for Explained {
    /// Later another query may have the same address.
    fn drop(&mut self) {
        EXPLAINED.set(self.0);
    }
}

/// Whether a statement is one of such a plan. A query without a text is one if EXPLAIN is showing it.
pub fn contains(query: *mut pg_sys::Query, text: *const c_char) -> bool {
    if text.is_null() {
        return query == EXPLAINED.get();
    }
    is_own_text(text)
}

/// Whether a text is at the very address where PostgreSQL keeps the text of such a plan: no other statement can have it
/// there.
fn is_own_text(text: *const c_char) -> bool {
    TEXTS.with_borrow(|texts| texts.contains(&(text as usize)))
}
