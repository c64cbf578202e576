//! How deep running executors are nested: functions and triggers run statements within a statement.

use crate::pg::statement_state::StatementState;

/// The executors that are running.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Running {
    depth: usize,
    may_delete: bool,
}

const NOTHING: Running = Running {
    depth: 0,
    may_delete: false,
};

thread_local! {
    static RUNNING: StatementState<Running> = const { StatementState::new(NOTHING) };
}

/// Counts a running executor in; gives those that were running, for [`leave`]. `may_delete`: its statement changes
/// tables in several parts, one of which may delete what another one meets.
pub fn enter(may_delete: bool) -> Running {
    let depth = depth() + 1;
    RUNNING.with(|state| state.replace(Running { depth, may_delete }))
}

/// How many are running.
pub fn depth() -> usize {
    RUNNING.with(StatementState::get).depth
}

/// Whether the statement of the innermost one changes tables in several parts.
pub fn may_delete() -> bool {
    RUNNING.with(StatementState::get).may_delete
}

/// Counts the innermost one out.
pub fn leave(outer: Running) {
    RUNNING.with(|state| state.replace(outer));
}

/// A subtransaction begins.
pub fn begin_subtransaction() {
    RUNNING.with(StatementState::begin_subtransaction);
}

/// A subtransaction ends; `failed`: an error has left the executors that ran within it.
pub fn end_subtransaction(failed: bool) {
    RUNNING.with(|state| state.end_subtransaction(failed));
}

/// Counts all out; called when a transaction ends.
pub fn reset() {
    RUNNING.with(|state| state.reset(NOTHING));
}
