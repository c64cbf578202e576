//! Whether the running utility statement is a `CREATE TABLE AS` or its kin, which cannot declare NOT NULL columns.

use std::cell::Cell;

thread_local! {
    static IN_TABLE_AS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the running utility statement is a `CREATE TABLE AS` or its kin.
pub fn is_running() -> bool {
    IN_TABLE_AS.get()
}

/// Notes whether the utility statement that begins is one; gives what held for the one around it, for [`leave`].
pub fn enter(table_as: bool) -> bool {
    IN_TABLE_AS.replace(table_as)
}

/// The statement around goes on.
pub fn leave(outer: bool) {
    IN_TABLE_AS.set(outer);
}

/// Nothing is running; called at the end of a transaction.
pub fn forget() {
    IN_TABLE_AS.set(false);
}
