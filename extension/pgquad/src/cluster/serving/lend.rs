//! The process of a session: when it lends its connection, and how it waits until it gets that back.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pgquad_cluster::serving::{is_short, Return, MAX_FRAME_BYTES};
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys, IntoDatum};
use socket2::Socket;

use super::control;
use super::registry::{self, busy_sessions, find, lent_from, owner_bytes, Found, OWNER_BYTES};
use crate::cluster::exchange::{EventSet, Woken};
use crate::pg::compat;

/// A session that has been given back because something was in the way is not lent for so long. Chosen: a hundred short
/// messages weigh more than the way there and back.
const UNFIT_PAUSE: Duration = Duration::from_millis(100);
/// Where no worker can be started another one is tried after this time.
const START_PAUSE: Duration = Duration::from_secs(10);

/// What has become of a session that was to be lent.
pub enum Outcome {
    /// It has not been lent: its process answers the message.
    Kept,
    /// It is back, between two queries.
    Back {
        /// Its process answers the message with which it was lent.
        is_unanswered: bool,
    },
    /// The other node has closed the connection, or got an error that ends the call.
    Over,
}

/// When a session is lent.
#[derive(Default)]
pub struct Lender {
    /// The window of time in which it was last noted as busy.
    noted: u32,
    /// Not before.
    not_before: Option<Instant>,
}

impl Lender {
    /// Whether the session is to be lent with this message, the first one of a transaction.
    pub fn wants(&mut self, request: &[u8]) -> bool {
        let Some(lent_from) = lent_from() else {
            return false;
        };
        busy_sessions(&mut self.noted) >= lent_from
            && is_short(request)
            && OWNER_BYTES + request.len() <= MAX_FRAME_BYTES
            && self.not_before.is_none_or(|then| then <= Instant::now())
    }

    /// Lends the session, outside of a transaction, with a message that is to be answered first. Nothing else of the
    /// client's has been read from its socket. `attend` does what a session does that waits.
    pub fn lend(&mut self, worker: &Socket, request: &[u8], attend: impl Fn()) -> Outcome {
        // SAFETY: plain session state; the session has a client.
        let (owner, client) = unsafe {
            let owner = owner_bytes(pg_sys::MyDatabaseId, pg_sys::GetUserId());
            (owner, compat::client_socket())
        };
        let parcel = [&owner[..], request].concat();
        let mut events = EventSet::new(1);
        events.add(worker.as_raw_fd(), pg_sys::WL_SOCKET_READABLE);
        if control::send(worker, &parcel, client).is_err() {
            return Outcome::Kept;
        }
        let back = wait(worker, &mut events, attend);
        if back.is_over {
            return Outcome::Over;
        }
        if back.is_unfit {
            self.not_before = Some(Instant::now() + UNFIT_PAUSE);
        }
        Outcome::Back {
            is_unanswered: back.is_unanswered,
        }
    }

    /// A connection to a worker of this session's database and role; `None` where there is none that takes sessions.
    pub fn find_worker(&mut self) -> Option<Socket> {
        // SAFETY: plain session state.
        let (database, role) = unsafe { (pg_sys::MyDatabaseId, pg_sys::GetUserId()) };
        match find(database, role) {
            Found::Ready(place) => control::connect(place).ok(),
            Found::Start(place) => {
                if !start(place) {
                    self.not_before = Some(Instant::now() + START_PAUSE);
                }
                None
            }
            Found::Nothing => None,
        }
    }
}

/// Waits until the session is back. Meanwhile this process sends nothing to the client, to whom the worker may have
/// sent a part of an answer. Where the worker is gone, this process ends.
fn wait(control: &Socket, events: &mut EventSet, attend: impl Fn()) -> Return {
    // SAFETY: plain session state, put back below; an error on the way ends the process.
    let destination = unsafe { pg_sys::whereToSendOutput };
    // SAFETY: as above.
    unsafe { pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone };
    loop {
        attend();
        check_for_interrupts!();
        if events.sleep(-1) == Woken::Socket {
            break;
        }
    }
    let mut flags = 0u8;
    // SAFETY: room for one byte.
    let length = unsafe {
        let flags = std::ptr::from_mut(&mut flags).cast();
        libc::recv(control.as_raw_fd(), flags, 1, libc::MSG_DONTWAIT)
    };
    let Some(back) = Return::decode(flags).filter(|_| length == 1) else {
        pg_sys::panic::ErrorReport::new(
            PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
            "the process that served this session has ended",
            function_name!(),
        )
        .report(PgLogLevel::FATAL);
        unreachable!("a FATAL error ends the process")
    };
    // SAFETY: what it was.
    unsafe { pg_sys::whereToSendOutput = destination };
    back
}

/// Starts a worker for a place; false where that is not possible.
fn start(place: usize) -> bool {
    // SAFETY: plain state of the server.
    let is_standby = unsafe { pg_sys::RecoveryInProgress() };
    // It comes up while this session goes on.
    let is_started = !is_standby
        && BackgroundWorkerBuilder::new("pgquad serving worker")
            .set_type("pgquad serving worker")
            .set_library("pgquad")
            .set_function("pgquad_serve_sessions")
            .set_argument((place as i32).into_datum())
            .enable_spi_access()
            .load_dynamic()
            .is_ok();
    if !is_started {
        registry::free(place);
    }
    is_started
}
