//! The transaction of a worker.

use std::time::{Duration, Instant};

use pgrx::pg_sys;

/// No query begins in a transaction that is as old, so that it ends and what it has counted is seen. Chosen: the way
/// there and back of all sessions takes a tenth of a second.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The transaction of the worker. Queries begin and end in it one over the other, each with a snapshot of its own; it
/// ends when there is no query.
#[derive(Default)]
pub struct Transaction {
    /// When it began.
    begun: Option<Instant>,
    /// A snapshot has been exported, which is kept until it ends.
    has_exported: bool,
    /// Somebody may be waiting for a lock that it has, or for its end.
    is_awaited: bool,
    /// The worker ends.
    is_last: bool,
}

impl Transaction {
    /// Begins it unless it is open.
    pub fn begin(&mut self) {
        if self.begun.is_some() {
            return;
        }
        // SAFETY: there is no transaction; the memory context becomes the current one again.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::MemoryContextSwitchTo(context);
        }
        self.begun = Some(Instant::now());
    }

    /// Ends it, where no query is within it.
    pub fn end(&mut self) {
        if self.begun.is_none() {
            return;
        }
        // SAFETY: a transaction that is no block, without snapshots; the memory context becomes the current one again.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CommitTransactionCommand();
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::pgstat_report_stat(false);
        }
        self.begun = None;
        self.has_exported = false;
    }

    /// Whether no query is to begin, so that it ends.
    pub fn is_ending(&self) -> bool {
        let is_old = |begun: Instant| begun.elapsed() > MAX_AGE;
        let is_old = self.begun.is_some_and(is_old);
        self.has_exported || self.is_awaited || self.is_last || is_old
    }

    /// Notes that it has exported a snapshot.
    pub fn has_exported(&mut self) {
        self.has_exported = true;
    }

    /// Lets no query begin any more.
    pub fn is_last(&mut self) {
        self.is_last = true;
    }

    /// Looks for those who wait for its locks. While queries begin and end in it one over the other, the worker has its
    /// locks of shards throughout.
    pub fn look_for_waits(&mut self) {
        self.is_awaited = is_reader_awaited();
    }
}

/// Whether some process of this database waits for readers: for an exclusive lock, or for the end of transactions, as
/// CREATE INDEX CONCURRENTLY does.
fn is_reader_awaited() -> bool {
    // SAFETY: the processes are an array of shared memory, as long as the server; so is the table of locks. What is
    // read without a lock may be old by a moment.
    unsafe {
        let (all, here) = (&*pg_sys::ProcGlobal, pg_sys::MyDatabaseId);
        (0..all.allProcCount as usize).any(|n| {
            let process = all.allProcs.add(n);
            let awaited = std::ptr::read_volatile(&raw const (*process).waitLock);
            let mode = std::ptr::read_volatile(&raw const (*process).waitLockMode);
            !awaited.is_null()
                && (*process).databaseId == here
                && (mode == pg_sys::AccessExclusiveLock as i32
                    || u32::from((*awaited).tag.locktag_type)
                        == pg_sys::LockTagType::LOCKTAG_VIRTUALTRANSACTION)
        })
    }
}
