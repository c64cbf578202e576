//! Counters of what goes from node to node, in shared memory, always on.
//!
//! Each backend has a slot of its own, which only it and a reset write to. So counting is an addition to a cache line
//! of the backend's own. A slot stays when its backend ends, and goes on with the next one. Server without the library
//! preloaded: nothing is counted.

use std::cell::Cell;
use std::mem::size_of;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::shared_memory::Piece;

/// What messages are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Kind {
    /// Quads, counts and groups that a node asks another for.
    Pull,
    /// Batches of a join that go on to the node of their next quads.
    Push,
    /// Terms and their ids.
    Dictionary,
}

/// All kinds.
pub const KINDS: [Kind; 3] = [Kind::Pull, Kind::Push, Kind::Dictionary];

impl Kind {
    /// Its name in views.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Dictionary => "dictionary",
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Counter {
    /// Messages given to the network, answers too.
    MessagesSent,
    /// Their bytes.
    BytesSent,
    /// Messages taken from the network.
    MessagesReceived,
    /// Their bytes.
    BytesReceived,
    /// Batches of keys, quads, rows or terms in the messages sent.
    Batches,
    /// Writes that had to wait because the network took no more.
    BlockedWrites,
    /// Nanoseconds that they waited.
    BlockedTime,
    /// Nanoseconds of waiting for other nodes.
    WaitedTime,
}

const COUNTERS: usize = Counter::WaitedTime as usize + 1;

/// One value of each counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts([u64; COUNTERS]);

impl Counts {
    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }
}

/// What a backend has counted.
#[repr(C, align(64))]
struct Slot {
    counts: [[AtomicU64; COUNTERS]; KINDS.len()],
    /// When the wait for other nodes began that goes on ([`now`]); 0 = none.
    waiting_since: [AtomicU64; KINDS.len()],
    /// The process while it watches the cluster; 0 = it does not.
    watcher: AtomicI32,
}

/// Before the slots.
#[repr(C, align(64))]
struct Header {
    /// When the counters began, as [`now`].
    since: AtomicU64,
    /// The same as a PostgreSQL timestamp.
    since_timestamp: AtomicI64,
    slots: usize,
}

static SHARED: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// The slot of this backend, once it has counted something.
    static OWN: Cell<Option<&'static Slot>> = const { Cell::new(None) };
}

/// The counters: a header and a slot for each backend. Zeroes are valid ones.
pub const PIECE: Piece = Piece {
    name: c"pgquad counters",
    bytes: || size_of::<Header>() + slots() * size_of::<Slot>(),
    start: |piece, is_new| {
        let shared = piece.cast::<Header>();
        if is_new {
            // SAFETY: nobody else has the piece yet, which begins with a header.
            unsafe {
                (*shared).slots = slots();
                note_start(&*shared);
            }
        }
        SHARED.store(shared, Relaxed);
    },
};

fn slots() -> usize {
    // SAFETY: plain state of the server, which knows it before it gives out shared memory.
    unsafe { pg_sys::MaxBackends as usize }
}

fn note_start(header: &Header) {
    header.since.store(now(), Relaxed);
    // SAFETY: reads the clock.
    let timestamp = unsafe { pg_sys::GetCurrentTimestamp() };
    header.since_timestamp.store(timestamp, Relaxed);
}

/// Nanoseconds of the clock that all processes of the machine share and nobody sets.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills the structure; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn shared() -> Option<(&'static Header, &'static [Slot])> {
    let header = SHARED.load(Relaxed);
    if header.is_null() {
        return None;
    }
    // SAFETY: [`PIECE`], as long as the server; all that changes is atomic.
    unsafe {
        let slots = header.add(1).cast::<Slot>();
        Some((&*header, std::slice::from_raw_parts(slots, (*header).slots)))
    }
}

/// The slot of this backend; `None` where nothing is counted.
fn own() -> Option<&'static Slot> {
    OWN.get().or_else(|| {
        let (_, slots) = shared()?;
        // SAFETY: plain process state; the difference is the number of this process among all.
        let number = unsafe {
            if pg_sys::MyProc.is_null() {
                return None;
            }
            pg_sys::MyProc.offset_from((*pg_sys::ProcGlobal).allProcs)
        };
        let slot = slots.get(usize::try_from(number).ok()?)?;
        // A session that is ended while it waits leaves no wait behind.
        // SAFETY: the callback is a plain function that lives as long as the process.
        unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)) };
        OWN.set(Some(slot));
        Some(slot)
    })
}

#[pg_guard]
unsafe extern "C-unwind" fn at_exit(_code: core::ffi::c_int, _argument: pg_sys::Datum) {
    KINDS.into_iter().for_each(end_wait);
    own().inspect(|slot| slot.watcher.store(0, Relaxed));
}

fn add(kind: Kind, counter: Counter, more: u64) {
    if let Some(slot) = own() {
        slot.counts[kind as usize][counter as usize].fetch_add(more, Relaxed);
    }
}

/// Counts a message that was given to the network.
pub fn sent(kind: Kind, bytes: usize) {
    add(kind, Counter::MessagesSent, 1);
    add(kind, Counter::BytesSent, bytes as u64);
}

/// Counts a message that came.
pub fn received(kind: Kind, bytes: usize) {
    add(kind, Counter::MessagesReceived, 1);
    add(kind, Counter::BytesReceived, bytes as u64);
}

/// Counts batches of keys, quads, rows or terms in messages that were sent.
pub fn batches(kind: Kind, number: usize) {
    add(kind, Counter::Batches, number as u64);
}

/// Counts a write that waited until the network took more.
pub fn blocked(kind: Kind, time: Duration) {
    add(kind, Counter::BlockedWrites, 1);
    add(kind, Counter::BlockedTime, time.as_nanos() as u64);
}

/// A wait for other nodes: from [`wait`] until it is dropped.
pub struct Wait(Option<Kind>);

/// Begins to wait for other nodes. A wait within another one of the same kind is a part of that.
pub fn wait(kind: Kind) -> Wait {
    let begins = own().is_some_and(|slot| {
        let since = &slot.waiting_since[kind as usize];
        since.compare_exchange(0, now(), Relaxed, Relaxed).is_ok()
    });
    Wait(begins.then_some(kind))
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.into_iter().for_each(end_wait);
    }
}

fn end_wait(kind: Kind) {
    let (Some(slot), Some((header, _))) = (own(), shared()) else {
        return;
    };
    let since = slot.waiting_since[kind as usize].swap(0, Relaxed);
    if since != 0 {
        add(kind, Counter::WaitedTime, elapsed(header, since));
    }
}

/// Nanoseconds of a wait that the counters have not seen, none from before they began.
fn elapsed(header: &Header, since: u64) -> u64 {
    now().saturating_sub(since.max(header.since.load(Relaxed)))
}

/// This session watches the cluster, until this is dropped.
pub struct Watching(());

/// Notes that this session watches the cluster: it is none of those that do something.
pub fn watch() -> Watching {
    // SAFETY: plain process state.
    let process = unsafe { pg_sys::MyProcPid };
    own().inspect(|slot| slot.watcher.store(process, Relaxed));
    Watching(())
}

impl Drop for Watching {
    fn drop(&mut self) {
        own().inspect(|slot| slot.watcher.store(0, Relaxed));
    }
}

/// The processes that watch the cluster, separated by commas.
pub fn watchers() -> String {
    let slots = shared().map_or(&[][..], |(_, slots)| slots);
    let processes = slots.iter().map(|slot| slot.watcher.load(Relaxed));
    let processes: Vec<String> = processes
        .filter(|process| *process != 0)
        .map(|process| process.to_string())
        .collect();
    processes.join(",")
}

/// The counters of this server by kind, waits that go on included.
pub fn read() -> [Counts; KINDS.len()] {
    collect(|counter| counter.load(Relaxed))
}

/// Sets the counters of this server to zero and gives what they were.
pub fn reset() -> [Counts; KINDS.len()] {
    let counts = collect(|counter| counter.swap(0, Relaxed));
    if let Some((header, _)) = shared() {
        note_start(header);
    }
    counts
}

fn collect(take: impl Fn(&AtomicU64) -> u64) -> [Counts; KINDS.len()] {
    let mut sums = [Counts::default(); KINDS.len()];
    let Some((header, slots)) = shared() else {
        return sums;
    };
    for slot in slots {
        for kind in KINDS.map(|kind| kind as usize) {
            let sum = &mut sums[kind].0;
            for (sum, counter) in sum.iter_mut().zip(&slot.counts[kind]) {
                *sum += take(counter);
            }
            let since = slot.waiting_since[kind].load(Relaxed);
            if since != 0 {
                sum[Counter::WaitedTime as usize] += elapsed(header, since);
            }
        }
    }
    sums
}

/// Since when the counters of this server count; `None` where nothing is counted.
pub fn since() -> Option<TimestampWithTimeZone> {
    let (header, _) = shared()?;
    TimestampWithTimeZone::try_from(header.since_timestamp.load(Relaxed)).ok()
}
