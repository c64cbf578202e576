//! State of running statements.

use std::cell::{Cell, RefCell};

/// A value that each statement sets for the time that it runs. An error leaves the statement before it puts the value
/// back. Where a subtransaction catches the error, what held when the subtransaction began holds again.
pub struct StatementState<T> {
    now: Cell<T>,
    /// What held at the start of each open subtransaction.
    before: RefCell<Vec<T>>,
}

impl<T: Copy> StatementState<T> {
    /// The value while nothing runs.
    pub const fn new(idle: T) -> Self {
        Self {
            now: Cell::new(idle),
            before: RefCell::new(Vec::new()),
        }
    }

    /// What holds now.
    pub fn get(&self) -> T {
        self.now.get()
    }

    /// Changes it; gives what held before.
    pub fn replace(&self, value: T) -> T {
        self.now.replace(value)
    }

    /// A subtransaction begins.
    pub fn begin_subtransaction(&self) {
        self.before.borrow_mut().push(self.now.get());
    }

    /// A subtransaction ends; `failed`: an error has left what ran within it.
    pub fn end_subtransaction(&self, failed: bool) {
        let before = self.before.borrow_mut().pop();
        if let Some(before) = before.filter(|_| failed) {
            self.now.set(before);
        }
    }

    /// Nothing is running; called when a transaction ends.
    pub fn reset(&self, idle: T) {
        self.now.set(idle);
        self.before.borrow_mut().clear();
    }
}
