//! What running commands keep back of their changes, to write it at one go.

use super::executor_depth::depth;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// What a command keeps back for a table.
pub struct Pending<T> {
    /// The table.
    pub relid: pg_sys::Oid,
    /// The subtransaction that the command runs in.
    pub subtransaction: u32,
    /// The command.
    pub cid: u32,
    /// Nesting of executor runs that it came from.
    pub depth: usize,
    /// What it keeps back.
    pub work: T,
}

/// All that is kept back.
pub struct PendingWork<T> {
    all: RefCell<Vec<Pending<T>>>,
    /// It is empty: looked at whenever a table is read.
    none: Cell<bool>,
}

impl<T> PendingWork<T> {
    /// Nothing is kept back.
    pub const fn empty() -> Self {
        Self {
            all: RefCell::new(Vec::new()),
            none: Cell::new(true),
        }
    }

    /// Adds to what a command keeps back for a table: to the work that `is_same`, or to new work.
    pub fn add<R>(
        &self,
        relid: pg_sys::Oid,
        cid: u32,
        is_same: impl Fn(&T) -> bool,
        new: impl FnOnce() -> T,
        add: impl FnOnce(&mut T) -> R,
    ) -> R {
        // SAFETY: within a transaction.
        let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
        let mut all = self.all.borrow_mut();
        self.none.set(false);
        let found = all.iter().position(|p| {
            p.relid == relid
                && p.cid == cid
                && p.subtransaction == subtransaction
                && is_same(&p.work)
        });
        let at = found.unwrap_or_else(|| {
            all.push(Pending {
                relid,
                subtransaction,
                cid,
                depth: depth(),
                work: new(),
            });
            all.len() - 1
        });
        add(&mut all[at].work)
    }

    /// Whether there is such work.
    pub fn any(&self, is: impl FnMut(&Pending<T>) -> bool) -> bool {
        !self.none.get() && self.all.borrow().iter().any(is)
    }

    /// Takes out what is due. While the caller writes it, more may be added.
    pub fn take_due(&self, is_due: impl Fn(&Pending<T>) -> bool) -> Vec<Pending<T>> {
        if self.none.get() {
            return Vec::new();
        }
        let mut all = self.all.borrow_mut();
        let (due, kept) = std::mem::take(&mut *all).into_iter().partition(is_due);
        *all = kept;
        self.none.set(all.is_empty());
        due
    }

    /// Drops what an aborted subtransaction kept back.
    pub fn forget_subtransaction(&self, subtransaction: u32) {
        let mut all = self.all.borrow_mut();
        all.retain(|p| p.subtransaction != subtransaction);
        self.none.set(all.is_empty());
    }

    /// Drops everything; called when a transaction ends.
    pub fn forget_all(&self) {
        self.none.set(true);
        self.all.take();
    }
}
