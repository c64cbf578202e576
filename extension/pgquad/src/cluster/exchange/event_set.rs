//! Waiting for many sockets and the latch at once.

use std::os::fd::RawFd;

use crate::pg::compat;
use pgrx::{check_for_interrupts, pg_sys};

/// What has ended a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A socket.
    Socket,
    /// The latch.
    Latch,
    /// The time.
    Late,
}

/// A `WaitEventSet`, freed at its end. Always has the latch and the death of the postmaster in it.
pub struct EventSet {
    set: *mut pg_sys::WaitEventSet,
}

impl EventSet {
    /// A set with room for so many sockets.
    pub fn new(sockets: usize) -> Self {
        // SAFETY: the set is freed by `drop`; what does not fit is not added.
        unsafe {
            let set = compat::wait_event_set(sockets as i32 + 2);
            let own = Self { set };
            let (no_latch, no_data) = (std::ptr::null_mut(), std::ptr::null_mut());
            pg_sys::AddWaitEventToSet(set, pg_sys::WL_LATCH_SET, -1, pg_sys::MyLatch, no_data);
            pg_sys::AddWaitEventToSet(set, pg_sys::WL_EXIT_ON_PM_DEATH, -1, no_latch, no_data);
            own
        }
    }

    /// Adds an open socket; gives its place.
    pub fn add(&mut self, socket: RawFd, events: u32) -> i32 {
        let (no_latch, no_data) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the socket is open as long as the set is waited for.
        unsafe { pg_sys::AddWaitEventToSet(self.set, events, socket, no_latch, no_data) }
    }

    /// Waits for other events of the socket at a place.
    pub fn modify(&mut self, place: i32, events: u32) {
        // SAFETY: a place that `add` has given.
        unsafe { pg_sys::ModifyWaitEvent(self.set, place, events, std::ptr::null_mut()) }
    }

    /// Waits until something happens with a socket, or so many milliseconds (-1: any). An interrupt raises its error.
    pub fn wait(&mut self, milliseconds: i64) {
        self.sleep(milliseconds);
        check_for_interrupts!();
    }

    /// As [`Self::wait`], but leaves interrupts to the caller. Says what has happened first.
    pub fn sleep(&mut self, milliseconds: i64) -> Woken {
        let mut event = pg_sys::WaitEvent::default();
        // SAFETY: a set that is not freed; room for one event.
        unsafe {
            let happened = pg_sys::WaitEventSetWait(
                self.set,
                milliseconds,
                &mut event,
                1,
                pg_sys::PG_WAIT_EXTENSION,
            );
            if happened == 0 {
                return Woken::Late;
            }
            if event.events & pg_sys::WL_LATCH_SET == 0 {
                return Woken::Socket;
            }
            pg_sys::ResetLatch(pg_sys::MyLatch);
            Woken::Latch
        }
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed only here.
        unsafe { pg_sys::FreeWaitEventSet(self.set) }
    }
}

/// Whether a socket is ready for one of these events of poll(2), or broken. Does not wait.
pub fn is_ready(socket: RawFd, events: i16) -> bool {
    let mut socket = libc::pollfd {
        fd: socket,
        events,
        revents: 0,
    };
    // SAFETY: one descriptor, which outlives the call.
    unsafe { libc::poll(&mut socket, 1, 0) == 1 }
}
