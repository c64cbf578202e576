//! Whether the running utility statement is a `CREATE TABLE AS` or its kin, which cannot declare NOT NULL columns.

use crate::pg::compat;
use crate::pg::statement_state::StatementState;
use pgrx::pg_sys;

thread_local! {
    static IN_TABLE_AS: StatementState<bool> = const { StatementState::new(false) };
}

/// The utility statement that an EXPLAIN is of (`EXPLAIN ANALYZE CREATE TABLE AS`); any other one itself.
///
/// # Safety
/// A live utility statement.
pub unsafe fn explained(statement: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe {
        let query = compat::explained_query(statement);
        if query.is_null() || (*query).utilityStmt.is_null() {
            statement
        } else {
            (*query).utilityStmt
        }
    }
}

/// Whether a utility statement is a `CREATE TABLE AS` or its kin, or an EXPLAIN of one.
///
/// # Safety
/// A live utility statement.
pub unsafe fn is_table_as(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise.
    let tag = unsafe { (*explained(statement)).type_ };
    matches!(
        tag,
        pg_sys::NodeTag::T_CreateTableAsStmt | pg_sys::NodeTag::T_RefreshMatViewStmt
    )
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
