//! Ends of transactions of other nodes that go together with what they are asked next.
//!
//! The end of a query would be one more message to each node that the query has asked: a node that sleeps is woken up
//! for it, while the client waits for its answer. Mostly the next query follows soon, so the end waits for its first
//! message. Where none comes, a timer sends it. Until then the node keeps its snapshot and its locks of shards, which
//! are those of readers. Explore 1M on three nodes, eight clients: 1.11 times the mixes of ends that are sent at once;
//! 10M on eight nodes, 16 clients: 1.09 times.
//!
//! The signal of the timer may come at any moment, also while the session is idle. Its handler does only what is safe
//! then (signal-safety(7)): it uses atomics, and sends bytes that were made before. These do not get into another
//! message, for libpq has given all it had to the kernel when an end begins to wait. PostgreSQL's own timeouts would
//! not do: an error switches them off.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering::SeqCst};
use std::sync::OnceLock;
use std::time::Duration;

use pgquad_cluster::message::{self, Kind};
use pgquad_cluster::serving::put_frame;

/// An end is sent when it has waited for one to two times as long. Sixteen clients ask each of eight nodes of two
/// processors every 20 ms; locks and snapshots of readers that last a tenth of a second longer harm nobody.
const PATIENCE: Duration = Duration::from_millis(50);

/// Ends that can wait at the same time in a process; others are sent at once.
const SLOTS: usize = 64;

/// The real-time signal of the timer, counted from the first: glibc keeps the lowest for itself.
const SIGNAL_NUMBER: c_int = 7;

/// Nothing waits.
const FREE: u8 = 0;
/// An end waits since the timer came last.
const YOUNG: u8 = 1;
/// The timer has come once since it began to wait.
const OLD: u8 = 2;
/// The timer has sent it.
const SENT: u8 = 3;
/// The timer could not send it, and has closed the connection.
const FAILED: u8 = 4;

/// What the handler sees of an end.
struct Slot {
    state: AtomicU8,
    socket: AtomicI32,
}

static WAITING: [Slot; SLOTS] = [const {
    Slot {
        state: AtomicU8::new(FREE),
        socket: AtomicI32::new(-1),
    }
}; SLOTS];

/// The timer; null before it is made.
static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());
/// Whether the timer runs.
static RUNS: AtomicBool = AtomicBool::new(false);
/// Whether this process has a timer.
static HAS_TIMER: OnceLock<bool> = OnceLock::new();
/// The message, as the other node gets it.
static END: OnceLock<Vec<u8>> = OnceLock::new();

/// An end that waits. Dropped, it is not sent: the connection is closed then.
pub(super) struct DeferredEnd(&'static Slot);

/// What has become of an end.
pub(super) enum Became {
    /// It still waits, and does so no more: whoever asks sends it.
    Waiting,
    /// The other node has got it.
    Sent,
    /// It could not be sent.
    Failed,
}

impl DeferredEnd {
    /// Lets the end of the transaction of the session with this socket wait. Everything else has been sent, and goes
    /// unencrypted. `None` where it cannot wait.
    pub(super) fn new(socket: c_int) -> Option<Self> {
        let is_free = |slot: &&Slot| slot.state.load(SeqCst) == FREE;
        let slot = WAITING.iter().find(is_free)?;
        END.get_or_init(|| {
            let body = message::request(Kind::EndTransaction).finish();
            let mut frame = Vec::new();
            put_frame(&mut frame, &body);
            frame
        });
        if !HAS_TIMER.get_or_init(make_timer) {
            return None;
        }
        slot.socket.store(socket, SeqCst);
        slot.state.store(YOUNG, SeqCst);
        if !RUNS.swap(true, SeqCst) {
            run_timer(PATIENCE);
        }
        Some(Self(slot))
    }

    /// Takes the end from the timer.
    pub(super) fn take(self) -> Became {
        match self.0.state.swap(FREE, SeqCst) {
            SENT => Became::Sent,
            FAILED => Became::Failed,
            _ => Became::Waiting,
        }
    }
}

impl Drop for DeferredEnd {
    fn drop(&mut self) {
        self.0.state.store(FREE, SeqCst);
    }
}

/// Sends all ends that wait. To be called before a statement that may need what they hold.
pub fn send_waiting() {
    if RUNS.load(SeqCst) {
        // In this order: the timer may make a young one old in between.
        WAITING.iter().for_each(|slot| slot.send(YOUNG));
        WAITING.iter().for_each(|slot| slot.send(OLD));
    }
}

impl Slot {
    /// Sends the end where it is in this state. The handler may come in between: one of the two takes the state. Where
    /// it cannot be sent, the other node learns that nobody asks any more.
    fn send(&self, of_state: u8) {
        let taken = self.state.compare_exchange(of_state, SENT, SeqCst, SeqCst);
        let (Ok(_), Some(end)) = (taken, END.get()) else {
            return;
        };
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let socket = self.socket.load(SeqCst);
        // SAFETY: system calls with bytes that are there as long as the process, on the socket of a session that is
        // open as long as the slot is taken.
        unsafe {
            let sent = libc::send(socket, end.as_ptr().cast(), end.len(), flags);
            if sent != end.len() as isize {
                libc::shutdown(socket, libc::SHUT_RDWR);
                self.state.store(FAILED, SeqCst);
            }
        }
    }
}

/// Makes the timer; false where its signal is used by somebody else.
fn make_timer() -> bool {
    let signal = libc::SIGRTMIN() + SIGNAL_NUMBER;
    // SAFETY: plain system calls with initialized arguments. The handler is in place before the timer is made.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        if libc::sigaction(signal, ptr::null(), &mut action) != 0
            || action.sa_sigaction != libc::SIG_DFL
        {
            return false;
        }
        action.sa_sigaction = timer_came as *const () as usize;
        // As for PostgreSQL's own signals (`pqsignal`).
        action.sa_flags = libc::SA_RESTART;
        let mut event = std::mem::zeroed::<libc::sigevent>();
        // No other thread gets it, whatever signals that blocks.
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = libc::gettid();
        event.sigev_signo = signal;
        let mut timer: libc::timer_t = ptr::null_mut();
        let is_made = libc::sigaction(signal, &action, ptr::null_mut()) == 0
            && libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) == 0;
        TIMER.store(timer, SeqCst);
        is_made
    }
}

/// Makes the timer come again and again after such a time; never, where it is zero.
fn run_timer(period: Duration) {
    let period = libc::timespec {
        tv_sec: period.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(period.subsec_nanos()),
    };
    let times = libc::itimerspec {
        it_interval: period,
        it_value: period,
    };
    // SAFETY: a timer of this process; safe in a signal handler.
    unsafe { libc::timer_settime(TIMER.load(SeqCst), 0, &times, ptr::null_mut()) };
}

/// The handler of the timer's signal. The session's own thread gets it, so nothing of the session runs beside it.
extern "C" fn timer_came(_signal: c_int) {
    // SAFETY: the thread's own error number, which what was interrupted may be about to read.
    let errno = unsafe { *libc::__errno_location() };
    let mut is_any_left = false;
    for slot in &WAITING {
        slot.send(OLD);
        let aged = slot.state.compare_exchange(YOUNG, OLD, SeqCst, SeqCst);
        is_any_left |= aged.is_ok();
    }
    if !is_any_left {
        RUNS.store(false, SeqCst);
        run_timer(Duration::ZERO);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
