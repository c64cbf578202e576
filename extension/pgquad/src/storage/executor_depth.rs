//! How deep running executors are nested: functions and triggers run statements within a statement.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a running executor in.
pub fn enter() {
    DEPTH.set(DEPTH.get() + 1);
}

/// How many are running.
pub fn depth() -> usize {
    DEPTH.get()
}

/// Counts the innermost one out.
pub fn leave() {
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

/// Counts all out; called when a transaction ends.
pub fn reset() {
    DEPTH.set(0);
}
