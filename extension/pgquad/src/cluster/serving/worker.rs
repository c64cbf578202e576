//! The worker: waits for all sessions that are lent to it, and answers what has come.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use pgquad_cluster::serving::{Return, MAX_FRAME_BYTES};
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys, PgMemoryContexts};
use socket2::Socket;

use super::control;
use super::lent::{give_back, Lent, State};
use super::registry::{self, owner_bytes, Own, OWNER_BYTES};
use super::transaction::Transaction;
use crate::cluster::exchange::{Descriptor, EventSet};
use crate::cluster::serve::attend;
use crate::pg::ffi::handle_signals_as_session;

/// A worker without sessions ends after this time. Chosen: less than DROP DATABASE waits for others to leave.
const LINGER: Duration = Duration::from_secs(2);
/// How often the worker looks for those who wait for its locks, and for locks that its sessions wait for.
const TICK: Duration = Duration::from_millis(100);
/// Events that are taken at a time.
const EVENTS: usize = 64;
/// How a session comes back that cannot be taken.
const NOT_TAKEN: Return = Return {
    is_over: false,
    is_unanswered: true,
    is_unfit: true,
};

/// Settings of a worker.
const SETTINGS: &[(&std::ffi::CStr, &std::ffi::CStr)] = &[
    // The session's own process waits longer for a lock.
    (c"lock_timeout", c"1ms"),
    // Each query has a snapshot of its own.
    (c"default_transaction_isolation", c"read committed"),
    (c"default_transaction_read_only", c"on"),
    // The transaction is that of many queries.
    #[cfg(feature = "pg17")]
    (c"transaction_timeout", c"0"),
];

/// What an event of the kernel is about.
enum Subject {
    /// The socket on which sessions are lent.
    Listening,
    /// The client of a session.
    Client(usize),
    /// The process of a session.
    Process(usize),
}

impl Subject {
    fn number(&self) -> u64 {
        match *self {
            Self::Listening => 0,
            Self::Client(place) => 1 + 2 * place as u64,
            Self::Process(place) => 2 + 2 * place as u64,
        }
    }

    fn of(number: u64) -> Self {
        match number {
            0 => Self::Listening,
            n if n % 2 == 1 => Self::Client((n / 2) as usize),
            n => Self::Process((n / 2 - 1) as usize),
        }
    }
}

/// An event of the kernel.
struct Event {
    subject: Subject,
    /// The other side sends nothing more.
    is_closing: bool,
}

impl Event {
    fn is_of_new(&self) -> bool {
        matches!(self.subject, Subject::Listening)
    }
}

/// Who has a place in a worker.
enum Guest {
    /// A process that is about to lend its session.
    Arriving(Socket, Room),
    /// A session.
    Lent(Lent, Room),
}

/// For the descriptors of a session: its client's socket and the one to its own process.
type Room = [Descriptor; 2];

/// The sessions of this worker and what it waits for.
struct Worker {
    own: Own,
    place: usize,
    /// The database and the role, as its sessions name them.
    owner: [u8; OWNER_BYTES],
    listening: Socket,
    /// An epoll instance. Sockets tell once of what has come.
    events: OwnedFd,
    guests: Vec<Option<Guest>>,
    transaction: Transaction,
    /// It takes sessions at the moment.
    takes: bool,
    /// It takes none any more.
    is_closing: bool,
    buffer: Vec<u8>,
    /// Since when there has been no session.
    unused_since: Instant,
}

/// The main function of a worker; the argument is its place in the registry.
#[pg_guard]
#[no_mangle]
pub unsafe extern "C-unwind" fn pgquad_serve_sessions(place: pg_sys::Datum) {
    let place = place.value() & 0xffff;
    let Some((own, database, role)) = Own::new(place) else {
        return;
    };
    handle_signals_as_session();
    // SAFETY: a background worker that begins; the callback is a plain function that lives as long as the process.
    // Where the role or the database takes no sessions the place stays taken for a while.
    unsafe {
        pg_sys::BackgroundWorkerUnblockSignals();
        pg_sys::BackgroundWorkerInitializeConnectionByOid(database, role, 0);
        for (name, value) in SETTINGS {
            pg_sys::SetConfigOption(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_OVERRIDE,
            );
        }
        let running = pg_sys::BackendState::STATE_RUNNING;
        pg_sys::pgstat_report_activity(running, c"messages of other nodes".as_ptr());
    }
    let worker = Worker::new(own, place, owner_bytes(database, role));
    match worker {
        Ok(Some(mut worker)) => worker.run(),
        Ok(None) => {}
        Err(error) => ereport!(
            LOG,
            PgSqlErrorCode::ERRCODE_SYSTEM_ERROR,
            format!("sessions of other nodes cannot be served together: {error}")
        ),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn at_exit(_code: core::ffi::c_int, place: pg_sys::Datum) {
    let place = place.value();
    control::remove(place);
    registry::free(place);
}

impl Worker {
    /// `None` where its place has been taken back.
    fn new(own: Own, place: usize, owner: [u8; OWNER_BYTES]) -> io::Result<Option<Self>> {
        // SAFETY: a plain system call; the descriptor is this process's own.
        let events = unsafe {
            let events = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if events < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(events)
        };
        let listening = control::listen(place)?;
        let worker = Self {
            own,
            place,
            owner,
            listening,
            events,
            guests: Vec::new(),
            transaction: Transaction::default(),
            takes: true,
            is_closing: false,
            buffer: vec![0; MAX_FRAME_BYTES],
            unused_since: Instant::now(),
        };
        worker.watch(worker.listening.as_raw_fd(), &Subject::Listening)?;
        if !worker.own.is_ready() {
            return Ok(None);
        }
        // SAFETY: as above.
        unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(place)) };
        Ok(Some(worker))
    }

    /// Tells the kernel to tell of a socket.
    fn watch(&self, socket: RawFd, subject: &Subject) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, subject, 0)
    }

    /// Changes what the kernel tells of a socket. Beside what comes it can tell of room to send (`more`).
    fn control(&self, what: i32, socket: RawFd, subject: &Subject, more: i32) -> io::Result<()> {
        let kinds = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET | more;
        let mut event = libc::epoll_event {
            events: kinds as u32,
            u64: subject.number(),
        };
        // SAFETY: open descriptors.
        let result = unsafe { libc::epoll_ctl(self.events.as_raw_fd(), what, socket, &mut event) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Serves sessions until there have been none for a while.
    fn run(&mut self) {
        let mut set = EventSet::new(1);
        set.add(self.events.as_raw_fd(), pg_sys::WL_SOCKET_READABLE);
        let mut context = PgMemoryContexts::new("messages of other nodes");
        let mut looked = Instant::now();
        loop {
            let events = self.events();
            // SAFETY: what the closure allocates does not outlive the reset.
            unsafe {
                context.switch_to(|_| {
                    if looked.elapsed() >= TICK {
                        self.look_around();
                        looked = Instant::now();
                    }
                    // A place that is given to another session has no events of the one before any more.
                    let known = events.iter().filter(|event| !event.is_of_new());
                    let new = events.iter().filter(|event| event.is_of_new());
                    known.chain(new).for_each(|event| self.attend_to(event));
                });
            };
            // SAFETY: as above.
            unsafe { context.reset() };
            attend(false);
            check_for_interrupts!();
            if events.len() == EVENTS {
                continue;
            }
            self.end_transaction();
            if self.is_over() {
                return;
            }
            set.sleep(TICK.as_millis() as i64);
        }
    }

    /// Whether there is nothing to do any more. Who connects until the last moment is served.
    fn is_over(&mut self) -> bool {
        let is_unused = self.guests.iter().all(Option::is_none);
        if is_unused && !self.is_closing && self.unused_since.elapsed() > LINGER {
            self.is_closing = true;
            self.transaction.is_last();
            self.own.takes_sessions(false);
            control::remove(self.place);
            self.accept();
        }
        self.is_closing && self.guests.iter().all(Option::is_none)
    }

    /// Ends the transaction where there is no query, and sees to it that there will be none where it is to end.
    fn end_transaction(&mut self) {
        if !self.lent().any(|lent| lent.is_reading()) {
            self.transaction.end();
        }
        let takes = !self.transaction.is_ending();
        if takes != self.takes {
            self.takes = takes;
            self.own.takes_sessions(takes);
        }
    }

    fn lent(&self) -> impl Iterator<Item = &Lent> {
        self.guests
            .iter()
            .flatten()
            .filter_map(|guest| match guest {
                Guest::Lent(lent, _) => Some(lent),
                Guest::Arriving(..) => None,
            })
    }

    /// What has happened; does not wait.
    fn events(&self) -> Vec<Event> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: room for so many events.
        let count = unsafe {
            let (set, room) = (self.events.as_raw_fd(), EVENTS as i32);
            libc::epoll_wait(set, events.as_mut_ptr(), room, 0)
        };
        let closing = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
        let count = usize::try_from(count).unwrap_or_default();
        let event = |event: &libc::epoll_event| Event {
            subject: Subject::of(event.u64),
            is_closing: event.events & closing != 0,
        };
        events[..count].iter().map(event).collect()
    }

    fn attend_to(&mut self, event: &Event) {
        match event.subject {
            Subject::Listening => self.accept(),
            Subject::Client(place) => self.advance(place, event.is_closing),
            Subject::Process(place) => match &self.guests[place] {
                Some(Guest::Arriving(..)) => self.take(place),
                // It sends nothing more: it has ended.
                Some(Guest::Lent(..)) => self.drop(place),
                None => {}
            },
        }
    }

    /// Lets in who is about to lend a session.
    fn accept(&mut self) {
        while let Some(process) = control::accept(&self.listening) {
            let place = self.guests.iter().position(Option::is_none);
            let place = place.unwrap_or_else(|| {
                self.guests.push(None);
                self.guests.len() - 1
            });
            let watched = self.watch(process.as_raw_fd(), &Subject::Process(place));
            let room = watched.ok().and_then(|()| {
                let client = Descriptor::try_acquire()?;
                Some([client, Descriptor::try_acquire()?])
            });
            let Some(room) = room else {
                // What is not taken out of a socket that is closed would be an error at its other end. Where it has
                // not come yet it cannot be sent.
                let _ = control::receive(&process, &mut self.buffer);
                give_back(&process, NOT_TAKEN);
                continue;
            };
            self.guests[place] = Some(Guest::Arriving(process, room));
            self.count();
            self.take(place);
        }
    }

    /// Takes a session, where it has come.
    fn take(&mut self, place: usize) {
        let Some(Guest::Arriving(process, _)) = &self.guests[place] else {
            return;
        };
        let (length, client) = match control::receive(process, &mut self.buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => return self.refuse(place),
        };
        let Some(first) = self.buffer[..length].strip_prefix(&self.owner) else {
            return self.refuse(place);
        };
        let first = first.to_vec();
        let watched = self.watch(client.as_raw_fd(), &Subject::Client(place));
        if watched.is_err() {
            return self.refuse(place);
        }
        if let Some(Guest::Arriving(process, room)) = self.guests[place].take() {
            self.guests[place] = Some(Guest::Lent(Lent::new(client, process, first), room));
        }
        self.advance(place, false);
    }

    /// Gives back a session that cannot be taken.
    fn refuse(&mut self, place: usize) {
        if let Some(Guest::Arriving(process, _)) = &self.guests[place] {
            give_back(process, NOT_TAKEN);
        }
        self.drop(place);
    }

    fn advance(&mut self, place: usize, is_closing: bool) {
        let Some(Guest::Lent(lent, _)) = &mut self.guests[place] else {
            return;
        };
        let state = lent.advance(&mut self.transaction, &mut self.buffer, is_closing);
        let (client, is_new) = (lent.client(), lent.watches_room(state == State::Full));
        let room = if state == State::Full {
            libc::EPOLLOUT
        } else {
            0
        };
        let subject = Subject::Client(place);
        let is_lost = is_new
            && self
                .control(libc::EPOLL_CTL_MOD, client, &subject, room)
                .is_err();
        if state == State::Gone || is_lost {
            self.drop(place);
        }
    }

    fn drop(&mut self, place: usize) {
        if let Some(Guest::Lent(mut lent, _room)) = self.guests[place].take() {
            lent.end();
            // Its own process has the client's socket, too: closing this one does not make the kernel forget it. Nor
            // does it fail.
            let (delete, subject) = (libc::EPOLL_CTL_DEL, Subject::Client(place));
            let _ = self.control(delete, lent.client(), &subject, 0);
        }
        self.unused_since = Instant::now();
        self.count();
    }

    fn count(&self) {
        let sessions = self.guests.iter().flatten().count();
        self.own.has_sessions(sessions);
    }

    /// What is not told by an event: locks, and connections for which there was no descriptor.
    fn look_around(&mut self) {
        self.transaction.look_for_waits();
        self.accept();
        for place in 0..self.guests.len() {
            if matches!(&self.guests[place], Some(Guest::Lent(lent, _)) if lent.is_waiting()) {
                self.advance(place, false);
            }
        }
    }
}
