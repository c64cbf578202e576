//! The workers of this server and how many sessions of other nodes are busy, in shared memory.

use std::mem::size_of;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use pgquad_cluster::serving::{Busy, WINDOW_MS};
use pgrx::pg_sys;

use crate::cluster::counters::now;
use crate::pg::shared_memory::Piece;
use crate::settings;

/// Bytes that say for which database and role a session is lent.
pub const OWNER_BYTES: usize = 8;
/// Most workers of a server.
const MAX_WORKERS: usize = 64;
/// A worker that has so many sessions is joined by another one.
const FULL_SESSIONS: u32 = 8;
/// A worker that does not come up in this time is given up.
const MAX_START_NS: u64 = 60_000_000_000;

/// States of a place.
const FREE: u32 = 0;
/// Taken, its other fields not written yet.
const CLAIMED: u32 = 1;
const STARTING: u32 = 2;
const READY: u32 = 3;
/// Its worker takes no sessions at the moment.
const PAUSED: u32 = 4;

/// The place of a worker. Zeroes are a free one.
#[repr(C, align(64))]
struct Place {
    state: AtomicU32,
    database: AtomicU32,
    role: AtomicU32,
    /// Sessions lent to it.
    sessions: AtomicU32,
    /// When it was taken, as [`now`].
    since: AtomicU64,
}

#[repr(C, align(64))]
struct Shared {
    busy: AtomicU64,
    places: [Place; MAX_WORKERS],
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

/// The registry.
pub const PIECE: Piece = Piece {
    name: c"pgquad serving workers",
    bytes: || size_of::<Shared>(),
    start: |piece, _| SHARED.store(piece.cast(), Relaxed),
};

fn shared() -> Option<&'static Shared> {
    // SAFETY: [`PIECE`], as long as the server; all that changes is atomic.
    unsafe { SHARED.load(Relaxed).as_ref() }
}

/// Busy sessions from which on they are lent; `None`: never.
pub fn lent_from() -> Option<u32> {
    match settings::SERVING_MIN_SESSIONS.get() {
        0 => None,
        n if n > 0 => Some(n as u32),
        _ => Some(2 * settings::processors()),
    }
}

/// The number of the window of time that goes on.
pub fn window() -> u32 {
    (now() / (WINDOW_MS * 1_000_000)) as u32
}

/// Notes that a session is busy and says how many are. `noted` is the session's own: the window in which it was noted
/// last.
pub fn busy_sessions(noted: &mut u32) -> u32 {
    let Some(shared) = shared() else {
        return 0;
    };
    let window = window();
    if *noted != window {
        *noted = window;
        let more = |busy| Some(Busy(busy).with_one_more(window).0);
        // The closure always gives a value.
        let _ = shared.busy.fetch_update(Relaxed, Relaxed, more);
    }
    Busy(shared.busy.load(Relaxed)).sessions(window)
}

/// What a session finds that looks for a worker.
pub enum Found {
    /// The place of a worker.
    Ready(usize),
    /// A place, for which a worker is to be started.
    Start(usize),
    /// Nothing at the moment.
    Nothing,
}

/// The worker with the fewest sessions of those for a database and a role.
pub fn find(database: pg_sys::Oid, role: pg_sys::Oid) -> Found {
    let Some(shared) = shared() else {
        return Found::Nothing;
    };
    let (mut all, mut workers, mut best, mut is_coming) = (0, 0, None, false);
    for (number, place) in shared.places.iter().enumerate() {
        let state = place.state.load(SeqCst);
        if state == FREE {
            continue;
        }
        let is_starting = now().saturating_sub(place.since.load(Relaxed)) < MAX_START_NS;
        if state == STARTING && !is_starting {
            // A worker that has not come up, whosever it was. Where this fails it has come up after all.
            let _ = place.state.compare_exchange(STARTING, FREE, SeqCst, SeqCst);
            continue;
        }
        all += 1;
        if state == CLAIMED || place.of() != (database.to_u32(), role.to_u32()) {
            continue;
        }
        // One that takes no sessions may have a query that lasts.
        workers += u32::from(state != PAUSED);
        match state {
            STARTING => is_coming = true,
            READY => {
                let sessions = place.sessions.load(Relaxed);
                if best.is_none_or(|(_, least)| sessions < least) {
                    best = Some((number, sessions));
                }
            }
            _ => {}
        }
    }
    let is_full = best.is_none_or(|(_, sessions)| sessions >= FULL_SESSIONS);
    if is_full && !is_coming && workers < max_workers() && all < max_workers_of_all() {
        if let Some(place) = shared.take(database.to_u32(), role.to_u32()) {
            return Found::Start(place);
        }
    }
    best.map_or(Found::Nothing, |(place, _)| Found::Ready(place))
}

/// Most workers of a database and a role.
fn max_workers() -> u32 {
    match settings::SERVING_WORKERS.get() {
        0 => settings::processors(),
        n => n as u32,
    }
}

/// Most workers of all: parallel queries, and Citus, need some of the server's background workers.
fn max_workers_of_all() -> u32 {
    // SAFETY: a plain setting.
    let workers = unsafe { pg_sys::max_worker_processes };
    (workers as u32 / 4).max(1)
}

/// What a session is lent with, so that no worker of another database or role takes it.
pub fn owner_bytes(database: pg_sys::Oid, role: pg_sys::Oid) -> [u8; OWNER_BYTES] {
    let of = u64::from(database.to_u32()) << 32 | u64::from(role.to_u32());
    of.to_ne_bytes()
}

impl Place {
    /// The database and the role.
    fn of(&self) -> (u32, u32) {
        (self.database.load(Relaxed), self.role.load(Relaxed))
    }
}

impl Shared {
    /// Takes a free place.
    fn take(&self, database: u32, role: u32) -> Option<usize> {
        self.places.iter().position(|place| {
            let is_taken = place
                .state
                .compare_exchange(FREE, CLAIMED, SeqCst, SeqCst)
                .is_ok();
            if is_taken {
                place.since.store(now(), Relaxed);
                place.sessions.store(0, Relaxed);
                place.database.store(database, Relaxed);
                place.role.store(role, Relaxed);
                place.state.store(STARTING, SeqCst);
            }
            is_taken
        })
    }
}

fn place(number: usize) -> Option<&'static Place> {
    shared()?.places.get(number)
}

/// Frees a place: that of a worker that ends, or of one that could not be started.
pub fn free(number: usize) {
    place(number).inspect(|place| place.state.store(FREE, SeqCst));
}

/// The place of this worker.
pub struct Own(&'static Place);

impl Own {
    /// The place with this number, which [`find`] has taken, with its database and role. `None` where it has been taken
    /// back: the worker has come up late.
    pub fn new(number: usize) -> Option<(Self, pg_sys::Oid, pg_sys::Oid)> {
        let place = place(number)?;
        let (database, role) = place.of();
        let is_starting = place.state.load(SeqCst) == STARTING;
        is_starting.then(|| (Self(place), database.into(), role.into()))
    }

    /// Sessions may be lent to this worker from now on; false where the place has been taken back.
    pub fn is_ready(&self) -> bool {
        let state = &self.0.state;
        state
            .compare_exchange(STARTING, READY, SeqCst, SeqCst)
            .is_ok()
    }

    /// Says whether sessions may be lent to this worker.
    pub fn takes_sessions(&self, takes: bool) {
        let state = if takes { READY } else { PAUSED };
        self.0.state.store(state, SeqCst);
    }

    /// Says how many sessions it has.
    pub fn has_sessions(&self, sessions: usize) {
        self.0.sessions.store(sessions as u32, Relaxed);
    }
}
