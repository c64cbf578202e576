//! A page store and a transaction manager in memory, for tests and benchmarks.
//!
//! The store really locks: readers and writers of a page wait for each other. It panics when a thread
//! locks a page that it holds already, and when a wait takes so long that it must be a deadlock. Tests
//! can make it "crash" before any commit.

use crate::block::BlockNo;
use crate::insert::Writer;
use crate::page::{Page, FROZEN_XID, NO_XID};
use crate::store::{
    Change, PageStore, Snapshot, TxnStatus, XidStatus, MAX_APPENDED_PAGES, MAX_ATOMIC_PAGES,
};
use crate::wal_delta::redo;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// A wait longer than this is a deadlock.
const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    static HELD: RefCell<Vec<(usize, BlockNo)>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct LockState {
    readers: u32,
    writer: bool,
    waiting: u32,
}

struct Slot {
    lock: Mutex<LockState>,
    released: Condvar,
    page: Mutex<Arc<Page>>,
}

impl Slot {
    fn new(page: Page) -> Arc<Self> {
        Arc::new(Slot {
            lock: Mutex::default(),
            released: Condvar::new(),
            page: Mutex::new(Arc::new(page)),
        })
    }

    fn contents(&self) -> Arc<Page> {
        let page = unpoisoned(self.page.lock());
        Arc::clone(&page)
    }
}

fn unpoisoned<T>(r: Result<T, PoisonError<T>>) -> T {
    r.unwrap_or_else(PoisonError::into_inner)
}

struct Inner {
    pages: RwLock<Vec<Arc<Slot>>>,
    free: Mutex<Vec<BlockNo>>,
    commits: AtomicU64,
    reads: AtomicU64,
    /// Commits until a simulated crash; negative = never.
    fuse: AtomicI64,
    /// What commits have written to the log, where it is kept.
    log: Mutex<Option<Vec<Logged>>>,
}

/// One page of a commit, as a log has it.
#[derive(Clone)]
pub struct Logged {
    /// The page.
    pub block: BlockNo,
    /// What was on it.
    pub before: Box<Page>,
    /// The WAL delta; empty where the whole page is logged.
    pub delta: Vec<u8>,
    /// What is on it after the commit.
    pub after: Box<Page>,
}

/// Pages in memory. Clones share the pages.
#[derive(Clone)]
pub struct MemStore(Arc<Inner>);

/// The payload of the panic that [`MemStore::crash_after`] arranges.
#[derive(Debug)]
pub struct Crash;

/// A locked page.
pub struct Guard {
    slot: Arc<Slot>,
    page: Arc<Page>,
    store: usize,
    block: BlockNo,
    exclusive: bool,
}

impl Deref for Guard {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.page
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = unpoisoned(self.slot.lock.lock());
        if self.exclusive {
            state.writer = false;
        } else {
            state.readers -= 1;
        }
        if state.readers == 0 && state.waiting > 0 {
            drop(state);
            self.slot.released.notify_all();
        }
        if cfg!(debug_assertions) {
            let me = (self.store, self.block);
            HELD.with_borrow_mut(|held| held.retain(|h| *h != me));
        }
    }
}

impl MemStore {
    /// A file with these pages.
    pub fn new(pages: Vec<Page>) -> Self {
        MemStore(Arc::new(Inner {
            pages: RwLock::new(pages.into_iter().map(Slot::new).collect()),
            free: Mutex::default(),
            commits: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            fuse: AtomicI64::new(-1),
            log: Mutex::default(),
        }))
    }

    /// Keeps what commits write to the log from now on.
    pub fn keep_log(&self) {
        *unpoisoned(self.0.log.lock()) = Some(Vec::new());
    }

    /// What commits have written to the log since [`Self::keep_log`] or the last call.
    pub fn take_log(&self) -> Vec<Logged> {
        let mut log = unpoisoned(self.0.log.lock());
        log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Number of commits so far.
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::Relaxed)
    }

    /// Number of page locks taken so far.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Number of pages in the file.
    pub fn pages(&self) -> usize {
        unpoisoned(self.0.pages.read()).len()
    }

    /// Number of pages waiting for reuse.
    pub fn free_pages(&self) -> usize {
        unpoisoned(self.0.free.lock()).len()
    }

    /// Lets `commits` more commits pass and panics with [`Crash`] at the next one, before it changes
    /// anything.
    pub fn crash_after(&self, commits: u64) {
        self.0.fuse.store(commits as i64, Ordering::Relaxed);
    }

    /// Overwrites a page, to test how corruption is dealt with.
    pub fn overwrite(&self, block: BlockNo, page: Page) {
        if let Some(slot) = unpoisoned(self.0.pages.read()).get(block as usize) {
            *unpoisoned(slot.page.lock()) = Arc::new(page);
        }
    }

    fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    fn slot(&self, block: BlockNo) -> Arc<Slot> {
        match unpoisoned(self.0.pages.read()).get(block as usize) {
            Some(slot) => Arc::clone(slot),
            None => Slot::new(*Page::zeroed()),
        }
    }

    fn lock(&self, block: BlockNo, exclusive: bool, wait: bool) -> Option<Guard> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        if cfg!(debug_assertions) {
            let me = (self.id(), block);
            HELD.with_borrow_mut(|held| {
                assert!(
                    !held.contains(&me),
                    "page {block} is locked by this thread already"
                );
                held.push(me);
            });
        }
        let slot = self.slot(block);
        let busy = |s: &mut LockState| s.writer || (exclusive && s.readers > 0);
        let mut state = unpoisoned(slot.lock.lock());
        if busy(&mut state) {
            if !wait {
                if cfg!(debug_assertions) {
                    let me = (self.id(), block);
                    HELD.with_borrow_mut(|held| held.retain(|h| *h != me));
                }
                return None;
            }
            state.waiting += 1;
            let (next, timeout) =
                unpoisoned(slot.released.wait_timeout_while(state, PATIENCE, busy));
            assert!(!timeout.timed_out(), "deadlock on page {block}");
            state = next;
            state.waiting -= 1;
        }
        if exclusive {
            state.writer = true;
        } else {
            state.readers += 1;
        }
        drop(state);
        let page = slot.contents();
        Some(Guard {
            slot,
            page,
            store: self.id(),
            block,
            exclusive,
        })
    }
}

impl PageStore for MemStore {
    type Read = Guard;
    type Write = Guard;

    fn read(&self, block: BlockNo) -> Guard {
        self.lock(block, false, true).expect("waits for the lock")
    }

    fn write(&self, block: BlockNo) -> Guard {
        self.lock(block, true, true).expect("waits for the lock")
    }

    fn block_of(&self, page: &Guard) -> BlockNo {
        page.block
    }

    fn allocate(&self) -> Guard {
        loop {
            let block = unpoisoned(self.0.free.lock()).pop();
            let Some(block) = block else { break };
            match self.lock(block, true, false) {
                Some(page) if page.is_free() => return page,
                _ => (),
            }
        }
        let block = {
            let mut pages = unpoisoned(self.0.pages.write());
            pages.push(Slot::new(*Page::zeroed()));
            (pages.len() - 1) as BlockNo
        };
        self.lock(block, true, true).expect("waits for the lock")
    }

    fn free(&self, block: BlockNo) {
        let mut free = unpoisoned(self.0.free.lock());
        if !free.contains(&block) {
            free.push(block);
        }
    }

    fn commit(&self, changes: &mut [Change<'_, Guard>], _conflict_xid: u32) {
        assert!(
            !changes.is_empty() && changes.len() <= MAX_ATOMIC_PAGES,
            "too many pages at once"
        );
        let fuse = self.0.fuse.load(Ordering::Relaxed);
        if fuse == 0 {
            self.0.fuse.store(-1, Ordering::Relaxed);
            std::panic::panic_any(Crash);
        }
        if fuse > 0 {
            self.0.fuse.store(fuse - 1, Ordering::Relaxed);
        }
        self.0.commits.fetch_add(1, Ordering::Relaxed);
        for change in changes {
            assert!(
                change.page.exclusive,
                "page {} is not locked for writing",
                change.page.block
            );
            let mut image = change.image.clone();
            // As in PostgreSQL's log: the hole does not survive.
            image.clear_hole();
            if !change.delta.is_empty() {
                let mut again = (*change.page.page).clone();
                redo(&mut again, change.page.block, &change.delta).expect("a delta fits its page");
                assert!(
                    again.0[10..] == image.0[10..],
                    "replaying the delta of page {} gives another page",
                    change.page.block
                );
            }
            if let Some(log) = unpoisoned(self.0.log.lock()).as_mut() {
                log.push(Logged {
                    block: change.page.block,
                    before: Box::new((*change.page.page).clone()),
                    delta: change.delta.clone(),
                    after: Box::new(image.clone()),
                });
            }
            let image = Arc::new(image);
            change.page.page = Arc::clone(&image);
            *unpoisoned(change.page.slot.page.lock()) = image;
        }
    }

    fn extend(&self, count: usize) -> BlockNo {
        let mut pages = unpoisoned(self.0.pages.write());
        let first = pages.len() as BlockNo;
        pages.extend((0..count).map(|_| Slot::new(*Page::zeroed())));
        first
    }

    fn put(&self, first: BlockNo, images: &mut [Page]) {
        assert!(images.len() <= MAX_APPENDED_PAGES, "too many pages at once");
        for (image, block) in images.iter().zip(first..) {
            let page = self.write(block);
            assert!(page.is_free(), "page {block} is in use");
            *unpoisoned(page.slot.page.lock()) = Arc::new(image.clone());
        }
    }

    fn blocks(&self) -> BlockNo {
        self.pages() as BlockNo
    }

    fn interrupt(&self) {}
}

#[derive(Default)]
struct TxnState {
    next: u32,
    running: Vec<u32>,
    aborted: HashSet<u32>,
    /// Horizons of the snapshots in use: (token, oldest transaction running when taken).
    snapshots: Vec<(u64, u32)>,
    token: u64,
}

/// A transaction manager: numbers from 10 on, snapshots, commits, aborts. Clones share the state.
#[derive(Clone, Default)]
pub struct Txns(Arc<Mutex<TxnState>>);

/// A snapshot of [`Txns`], registered until dropped.
pub struct MemSnapshot {
    txns: Txns,
    token: u64,
    next: u32,
    running: Vec<u32>,
    aborted: HashSet<u32>,
    own: Vec<u32>,
    cid: u32,
}

/// The view of one session on the transactions: which ones are its own.
#[derive(Clone)]
pub struct Session {
    txns: Txns,
    own: Vec<u32>,
}

impl Txns {
    fn state(&self) -> MutexGuard<'_, TxnState> {
        let mut state = unpoisoned(self.0.lock());
        state.next = state.next.max(10);
        state
    }

    /// Starts a transaction.
    pub fn begin(&self) -> u32 {
        let mut state = self.state();
        let xid = state.next;
        state.next += 1;
        state.running.push(xid);
        xid
    }

    /// Ends a transaction.
    pub fn commit(&self, xid: u32) {
        self.state().running.retain(|x| *x != xid);
    }

    /// Rolls a transaction back.
    pub fn abort(&self, xid: u32) {
        let mut state = self.state();
        state.running.retain(|x| *x != xid);
        state.aborted.insert(xid);
    }

    /// Runs a command as a transaction of its own, and commits it.
    pub fn run<T>(&self, command: impl FnOnce(&Writer<'_>, &MemSnapshot) -> T) -> T {
        let xid = self.begin();
        let (session, snapshot) = (self.session(&[xid]), self.snapshot(&[xid], 1));
        let writer = Writer {
            xid,
            cid: 0,
            status: &session,
        };
        let result = command(&writer, &snapshot);
        self.commit(xid);
        result
    }

    /// A snapshot for command `cid` of a transaction that consists of `own`.
    pub fn snapshot(&self, own: &[u32], cid: u32) -> MemSnapshot {
        let mut state = self.state();
        state.token += 1;
        let token = state.token;
        let horizon = state.running.iter().copied().min().unwrap_or(state.next);
        state.snapshots.push((token, horizon));
        MemSnapshot {
            txns: self.clone(),
            token,
            next: state.next,
            running: state.running.clone(),
            aborted: state.aborted.clone(),
            own: own.to_vec(),
            cid,
        }
    }

    /// The view of the session whose transaction consists of `own`.
    pub fn session(&self, own: &[u32]) -> Session {
        Session {
            txns: self.clone(),
            own: own.to_vec(),
        }
    }
}

impl MemSnapshot {
    /// Goes on to another command of the same transaction.
    pub fn set_command(&mut self, cid: u32) {
        self.cid = cid;
    }
}

impl Drop for MemSnapshot {
    fn drop(&mut self) {
        let token = self.token;
        self.txns.state().snapshots.retain(|(t, _)| *t != token);
    }
}

impl Snapshot for MemSnapshot {
    fn sees_insert(&self, xmin: u32, cmin: u32) -> bool {
        assert!(xmin != NO_XID && xmin != FROZEN_XID);
        if self.own.contains(&xmin) {
            // An aborted subtransaction may have been listed as own when it ran.
            return cmin < self.cid && !self.aborted.contains(&xmin);
        }
        xmin < self.next && !self.running.contains(&xmin) && !self.aborted.contains(&xmin)
    }

    fn sees_delete(&self, xmax: u32, cmax: u32) -> bool {
        self.sees_insert(xmax, cmax)
    }
}

impl TxnStatus for Session {
    fn status(&self, xid: u32) -> XidStatus {
        assert!(xid != NO_XID && xid != FROZEN_XID);
        let state = self.txns.state();
        if state.aborted.contains(&xid) {
            XidStatus::Aborted
        } else if self.own.contains(&xid) {
            XidStatus::Own
        } else if state.running.contains(&xid) {
            XidStatus::InProgress
        } else {
            XidStatus::Committed
        }
    }

    fn all_visible(&self, xid: u32) -> bool {
        let state = self.txns.state();
        let oldest = state
            .running
            .iter()
            .copied()
            .chain(state.snapshots.iter().map(|(_, h)| *h))
            .min()
            .unwrap_or(state.next);
        xid < oldest
    }

    fn precedes(&self, a: u32, b: u32) -> bool {
        a < b
    }
}
