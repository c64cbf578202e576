//! Whether the running utility statement is a `CREATE TABLE AS` or its kin, which cannot declare NOT NULL columns.

use crate::pg::statement_state::StatementState;

thread_local! {
    static IN_TABLE_AS: StatementState<bool> = const { StatementState::new(false) };
}

/// Whether the running utility statement is a `CREATE TABLE AS` or its kin.
pub fn is_running() -> bool {
    IN_TABLE_AS.with(StatementState::get)
}

/// Notes whether the utility statement that begins is one; gives what held for the one around it, for [`leave`].
pub fn enter(table_as: bool) -> bool {
    IN_TABLE_AS.with(|state| state.replace(table_as))
}

/// The statement around goes on.
pub fn leave(outer: bool) {
    IN_TABLE_AS.with(|state| state.replace(outer));
}

/// A subtransaction begins.
pub fn begin_subtransaction() {
    IN_TABLE_AS.with(StatementState::begin_subtransaction);
}

/// A subtransaction ends; `failed`: an error has left what ran within it.
pub fn end_subtransaction(failed: bool) {
    IN_TABLE_AS.with(|state| state.end_subtransaction(failed));
}

/// Nothing is running; called at the end of a transaction.
pub fn forget() {
    IN_TABLE_AS.with(|state| state.reset(false));
}
