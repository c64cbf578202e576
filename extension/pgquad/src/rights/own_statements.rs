//! The statements of the extension's own plans, known by where PostgreSQL keeps their texts.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::c_char;

thread_local! {
    /// Where the texts of all plans are.
    static TEXTS: RefCell<HashSet<usize>> = RefCell::default();
}

/// A plan begins to live, whose text PostgreSQL keeps at this address.
pub fn add(text: usize) {
    TEXTS.with_borrow_mut(|texts| texts.insert(text));
}

/// The plan whose text is at this address is about to be freed.
pub fn remove(text: usize) {
    TEXTS.with_borrow_mut(|texts| texts.remove(&text));
}

/// Whether a statement is one of such a plan. It is if its text is at the very address where PostgreSQL keeps the
/// plan's text: no other statement can have it there.
pub fn contains(text: *const c_char) -> bool {
    TEXTS.with_borrow(|texts| texts.contains(&(text as usize)))
}
