//! How deep running executors are nested: functions and triggers run statements within a statement.

use crate::pg::statement_state::StatementState;

thread_local! {
    static DEPTH: StatementState<usize> = const { StatementState::new(0) };
}

/// Counts a running executor in; gives how many were running, for [`leave`].
pub fn enter() -> usize {
    let outer = depth();
    DEPTH.with(|state| state.replace(outer + 1))
}

/// How many are running.
pub fn depth() -> usize {
    DEPTH.with(StatementState::get)
}

/// Counts the innermost one out.
pub fn leave(outer: usize) {
    DEPTH.with(|state| state.replace(outer));
}

/// A subtransaction begins.
pub fn begin_subtransaction() {
    DEPTH.with(StatementState::begin_subtransaction);
}

/// A subtransaction ends; `failed`: an error has left the executors that ran within it.
pub fn end_subtransaction(failed: bool) {
    DEPTH.with(|state| state.end_subtransaction(failed));
}

/// Counts all out; called when a transaction ends.
pub fn reset() {
    DEPTH.with(|state| state.reset(0));
}
