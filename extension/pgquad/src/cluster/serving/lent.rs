//! A session that is lent to this worker: its connection, the snapshot of its query, and its messages.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use pgquad_cluster::message::{self, Kind};
use pgquad_cluster::serving::{
    frame_bytes, is_short, put_frame, Failure, Frame, Return, MAX_FRAME_BYTES,
};
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use socket2::Socket;

use super::registry::{busy_sessions, lent_from, window};
use super::transaction::Transaction;
use crate::cluster::serve::{release_locks, respond};
use crate::pg::ffi::Timeout;
use crate::pg::subtransaction;

/// A query with a message that has taken so long is the last one of its session here, for a while. Chosen: others wait
/// for it meanwhile, whose messages take some hundredths of a millisecond.
const SLOW_MESSAGE: Duration = Duration::from_millis(5);
/// A query that waits so long within itself for a lock fails. The worker itself does not wait, so that PostgreSQL's
/// search for deadlocks does not see this wait. Chosen: long beside the last step of a move.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(30);

/// What a session reads under: a registered snapshot, and the owner of it and of the locks taken for it.
struct Reading {
    snapshot: pg_sys::Snapshot,
    owner: pg_sys::ResourceOwner,
}

/// Why a session goes back to its own process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaving {
    /// Few sessions are busy by now, or no query is to begin here at the moment.
    Unneeded,
    /// Its next query is not for this worker.
    Unfit,
    /// The other node has closed the connection, or got an error that ends the call.
    Over,
}

/// What has become of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It stays, and waits for its client.
    Lent,
    /// It stays, and its client takes no more at the moment.
    Full,
    /// It is over for this worker.
    Gone,
}

/// A long message of a query, on its way.
struct Long {
    /// Room for all of it.
    bytes: Vec<u8>,
    /// So much has come.
    filled: usize,
}

/// A message of a query that waits for a lock.
struct Waiting {
    request: Vec<u8>,
    since: Instant,
}

/// A session.
pub struct Lent {
    client: OwnedFd,
    /// To its own process.
    control: Socket,
    reading: Option<Reading>,
    /// The message with which it was lent, until that has been answered.
    first: Option<Vec<u8>>,
    long: Option<Long>,
    waiting: Option<Waiting>,
    /// What is to be sent.
    answers: Vec<u8>,
    /// So much of it has been.
    sent: usize,
    /// The kernel tells when there is room to send.
    watches_room: bool,
    leaving: Option<Leaving>,
    /// The kernel has told that nothing follows what has come. It tells once.
    is_closing: bool,
    /// A message of the query has taken long.
    is_slow: bool,
    /// The window of time in which it was last noted as busy.
    noted: u32,
}

impl Lent {
    /// A session with the message that is to be answered first.
    pub fn new(client: OwnedFd, control: Socket, first: Vec<u8>) -> Self {
        Self {
            client,
            control,
            reading: None,
            first: Some(first),
            long: None,
            waiting: None,
            answers: Vec::new(),
            sent: 0,
            watches_room: false,
            leaving: None,
            is_closing: false,
            is_slow: false,
            noted: window(),
        }
    }

    /// The socket of its client.
    pub fn client(&self) -> RawFd {
        self.client.as_raw_fd()
    }

    /// Notes whether the kernel is to tell of room to send; whether that is new.
    pub fn watches_room(&mut self, watches: bool) -> bool {
        std::mem::replace(&mut self.watches_room, watches) != watches
    }

    /// Whether it is within a query.
    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether a message waits for a lock.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Goes on as far as that is possible without a wait: answers what has come, sends answers, gives the session back
    /// where it has to go. `is_closing`: the kernel has told that nothing follows what has come.
    pub fn advance(
        &mut self,
        transaction: &mut Transaction,
        buffer: &mut [u8],
        is_closing: bool,
    ) -> State {
        self.is_closing |= is_closing;
        if let Some(first) = self.first.take() {
            if !self.begins_with(&first, transaction) {
                self.first = Some(first);
            }
        }
        if let Some(waiting) = self.waiting.take() {
            self.answer(&waiting.request, waiting.since, transaction);
        }
        loop {
            match self.send() {
                Ok(true) => {}
                Ok(false) => return State::Full,
                Err(_) => self.leaving = Some(Leaving::Over),
            }
            if let Some(leaving) = self.leaving {
                self.give_back(leaving);
                return State::Gone;
            }
            if self.waiting.is_some() {
                if !self.is_closing {
                    return State::Lent;
                }
                self.leaving = Some(Leaving::Over);
                continue;
            }
            let is_long = self.long.is_some();
            let length = if is_long {
                self.read_long(transaction)
            } else {
                self.read_short(transaction, buffer)
            };
            match length {
                Ok(0) => self.leaving = Some(Leaving::Over),
                // The kernel tells of what comes from now on.
                Ok(length) => {
                    let is_all = length < buffer.len() && !is_long && self.long.is_none();
                    let is_quiet = self.answers.is_empty() && self.leaving.is_none();
                    if is_all && is_quiet && !self.is_closing {
                        return State::Lent;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return State::Lent,
                Err(_) => self.leaving = Some(Leaving::Over),
            }
        }
    }

    /// Takes the messages that have come whole, as far as they are for this worker; the others stay in the socket. The
    /// number of bytes that have come.
    fn read_short(
        &mut self,
        transaction: &mut Transaction,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let length = self.receive(buffer, libc::MSG_PEEK)?;
        let mut taken = 0;
        loop {
            match Frame::first(&buffer[taken..length]) {
                Frame::Data(request) => {
                    if !self.take(request, transaction) {
                        break;
                    }
                    taken += frame_bytes(request);
                    if self.leaving.is_some() || self.waiting.is_some() {
                        break;
                    }
                }
                Frame::Incomplete(whole) => {
                    let is_long = whole.is_some_and(|whole| whole > MAX_FRAME_BYTES);
                    if is_long && self.is_reading() {
                        let bytes = vec![0; whole.unwrap_or_default()];
                        self.long = Some(Long { bytes, filled: 0 });
                    } else if is_long {
                        self.leaving = Some(Leaving::Unfit);
                    } else if self.is_closing && taken == 0 {
                        // The rest does not come.
                        self.leaving = Some(Leaving::Over);
                    }
                    break;
                }
                Frame::Other => {
                    // Within a query other nodes send nothing else but an end of the session.
                    let ends = self.is_reading();
                    self.leaving = Some(if ends { Leaving::Over } else { Leaving::Unfit });
                    break;
                }
            }
        }
        // Answers are on their way while the messages are taken from the socket.
        if self.send().is_err() || !self.discard(&mut buffer[..taken]) {
            self.leaving = Some(Leaving::Over);
        }
        Ok(length)
    }

    /// Reads on in a long message and answers it when it is whole. The number of bytes that have come.
    fn read_long(&mut self, transaction: &mut Transaction) -> io::Result<usize> {
        let Some(mut long) = self.long.take() else {
            return Ok(0);
        };
        let received = self.receive(&mut long.bytes[long.filled..], 0);
        long.filled += received.as_ref().copied().unwrap_or_default();
        if long.filled < long.bytes.len() {
            self.long = Some(long);
        } else if let Frame::Data(request) = Frame::first(&long.bytes) {
            self.take(request, transaction);
        }
        received
    }

    /// Takes a message. False where it is not for this worker, which gives the session back then.
    fn take(&mut self, request: &[u8], transaction: &mut Transaction) -> bool {
        if message::kind_of(request) == Some(Kind::EndTransaction) {
            self.end();
            if self.is_slow {
                self.leaving = Some(Leaving::Unfit);
            }
            return true;
        }
        if !self.is_reading() {
            return self.begins_with(request, transaction);
        }
        self.answer(request, Instant::now(), transaction);
        true
    }

    /// Begins a query with a message and answers it. False where that is not possible here: the session goes back with
    /// the message unanswered.
    fn begins_with(&mut self, request: &[u8], transaction: &mut Transaction) -> bool {
        let busy = busy_sessions(&mut self.noted);
        self.leaving = if !is_short(request) {
            Some(Leaving::Unfit)
        } else if transaction.is_ending() || lent_from().is_none_or(|from| 2 * busy <= from) {
            // Half as many as sessions are lent for: none goes to and fro.
            Some(Leaving::Unneeded)
        } else {
            None
        };
        if self.leaving.is_some() {
            return false;
        }
        let began = Instant::now();
        let answer = answer_under(self.reading.insert(begin(transaction)), request);
        self.is_slow = began.elapsed() > SLOW_MESSAGE;
        match answer {
            Ok(answer) => put_frame(&mut self.answers, &answer),
            // It waits for locks and meets errors in its own process, where nobody else is concerned.
            Err(_) => {
                self.end();
                self.leaving = Some(Leaving::Unfit);
            }
        }
        self.leaving.is_none()
    }

    /// Answers a further message of the query. `since`: when it came.
    fn answer(&mut self, request: &[u8], since: Instant, transaction: &mut Transaction) {
        let Some(reading) = &self.reading else {
            return;
        };
        let began = Instant::now();
        let is_export = message::kind_of(request) == Some(Kind::ExportSnapshot);
        let answer = if is_export && request.first() == Some(&message::VERSION) {
            transaction.has_exported();
            Ok(export_under(reading, request))
        } else {
            answer_under(reading, request)
        };
        self.is_slow |= began.elapsed() > SLOW_MESSAGE;
        match answer {
            Ok(answer) => put_frame(&mut self.answers, &answer),
            Err(error) if is_lock_wait(&error) && since.elapsed() < MAX_LOCK_WAIT => {
                let request = request.to_vec();
                self.waiting = Some(Waiting { request, since });
            }
            // As with its own process, an error ends the session.
            Err(error) => {
                failure_of(&error).put(&mut self.answers);
                self.leaving = Some(Leaving::Over);
            }
        }
    }

    /// Sends what is to be sent; false where the socket takes no more at the moment.
    fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.answers.len() {
            let rest = &self.answers[self.sent..];
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the bytes outlive the call.
            let sent =
                unsafe { libc::send(self.client(), rest.as_ptr().cast(), rest.len(), flags) };
            if sent < 0 {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(false),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(error),
                }
            }
            self.sent += sent as usize;
        }
        self.sent = 0;
        if self.answers.capacity() > MAX_FRAME_BYTES {
            self.answers = Vec::new();
        }
        self.answers.clear();
        Ok(true)
    }

    /// Takes from the socket what has been looked at; false where it is gone.
    fn discard(&self, mut bytes: &mut [u8]) -> bool {
        while !bytes.is_empty() {
            match self.receive(bytes, 0) {
                Ok(length) if length > 0 => bytes = &mut bytes[length..],
                _ => return false,
            }
        }
        true
    }

    fn receive(&self, into: &mut [u8], flags: i32) -> io::Result<usize> {
        loop {
            let flags = flags | libc::MSG_DONTWAIT;
            // SAFETY: the buffer is as long as the call is told.
            let length =
                unsafe { libc::recv(self.client(), into.as_mut_ptr().cast(), into.len(), flags) };
            if let Ok(length) = usize::try_from(length) {
                return Ok(length);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn give_back(&mut self, leaving: Leaving) {
        self.end();
        let back = Return {
            is_over: leaving == Leaving::Over,
            is_unanswered: self.first.is_some(),
            is_unfit: leaving == Leaving::Unfit,
        };
        give_back(&self.control, back);
    }

    /// Ends the query: its snapshot and its locks.
    pub fn end(&mut self) {
        let Some(Reading { snapshot, owner }) = self.reading.take() else {
            return;
        };
        // SAFETY: registered and made by `begin`, within the transaction that goes on.
        unsafe {
            pg_sys::UnregisterSnapshotFromOwner(snapshot, owner);
            let outer = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = owner;
            release_locks();
            pg_sys::CurrentResourceOwner = outer;
            pg_sys::ResourceOwnerDelete(owner);
        }
    }
}

/// Tells the process of a session that the session is its own again. Where that does not get there, the process sees
/// the connection closed.
pub fn give_back(control: &Socket, back: Return) {
    let flags = back.encode();
    // SAFETY: one byte, which outlives the call.
    unsafe {
        libc::send(
            control.as_raw_fd(),
            std::ptr::from_ref(&flags).cast(),
            1,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        );
    }
}

/// Begins a query.
fn begin(transaction: &mut Transaction) -> Reading {
    transaction.begin();
    // SAFETY: within a transaction; the owner is deleted by `end`, or with the transaction's.
    unsafe {
        // As at the beginning of a transaction.
        pg_sys::AcceptInvalidationMessages();
        pg_sys::InvalidateCatalogSnapshot();
        let outer = pg_sys::TopTransactionResourceOwner;
        let owner = pg_sys::ResourceOwnerCreate(outer, c"session of another node".as_ptr());
        let snapshot = pg_sys::RegisterSnapshotOnOwner(pg_sys::GetLatestSnapshot(), owner);
        Reading { snapshot, owner }
    }
}

/// The answer to a request, within a subtransaction whose locks become the session's.
fn answer_under(reading: &Reading, request: &[u8]) -> Result<Vec<u8>, Box<CaughtError>> {
    let answer = subtransaction::within(Some(reading.owner), || {
        // SAFETY: a registered snapshot; an error leaves it to the end of the subtransaction.
        unsafe { pg_sys::PushActiveSnapshot(reading.snapshot) };
        // SAFETY: a plain setting.
        Timeout::Statement.start(unsafe { pg_sys::StatementTimeout });
        let answer = respond(request);
        // SAFETY: pushed above.
        unsafe { pg_sys::PopActiveSnapshot() };
        answer
    });
    Timeout::Statement.stop();
    // A time that was over at the last moment is not for the next message.
    // SAFETY: a flag of this process, between two messages.
    unsafe { pg_sys::QueryCancelPending = 0 };
    answer
}

/// The answer to a request for the name of the snapshot. PostgreSQL exports none in a subtransaction.
fn export_under(reading: &Reading, request: &[u8]) -> Vec<u8> {
    // SAFETY: a registered snapshot, within a transaction.
    unsafe {
        pg_sys::PushActiveSnapshot(reading.snapshot);
        let answer = respond(request);
        pg_sys::PopActiveSnapshot();
        answer
    }
}

fn is_lock_wait(error: &CaughtError) -> bool {
    match error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => {
            report.sql_error_code() == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE
        }
        CaughtError::RustPanic { .. } => false,
    }
}

/// What the client is told of an error.
fn failure_of(error: &CaughtError) -> Failure {
    let report = match error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
        CaughtError::RustPanic { ereport, .. } => ereport,
    };
    // MAKE_SQLSTATE of PostgreSQL's utils/elog.h: six bits for each character.
    let code = report.sql_error_code() as i32;
    ereport!(
        LOG,
        report.sql_error_code(),
        format!("a message of another node has failed: {}", report.message())
    );
    let code = (0..5).map(|n| char::from((code >> (6 * n) & 0x3f) as u8 + b'0'));
    Failure {
        code: code.collect(),
        message: report.message().to_owned(),
        detail: report.detail().map(str::to_owned),
        hint: report.hint().map(str::to_owned),
    }
}
