//! The long call in which a session answers another node: messages and answers go as CopyData of one statement, as
//! those of replication do (PostgreSQL's documentation, "COPY Operations": copy-both mode).
//!
//! A statement of its own for each message costs more than most answers. Bind, Describe, Execute and the executor were
//! 45 % of what a node spends on a short one (Explore 1M on three nodes, eight clients).

use std::ffi::CString;
use std::time::{Duration, Instant};

use pgquad_cluster::message::{self, Kind};
use pgquad_cluster::serving::COPY_DATA;
use pgquad_cluster::wire::{Damaged, Reader};
use pgquad_cluster::Polling;
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys, PgMemoryContexts};

use super::answer::answer;
use super::connection::poll_time;
use super::exchange::{is_ready, EventSet, Woken};
use super::protocol::{check_version, damaged};
use super::serving::{Lender, Outcome};
use super::trust::{meet, refuse};
use crate::dictionary;
use crate::pg::compat;
use crate::pg::error::raise;
use crate::pg::ffi::{self, FromClient, Timeout};
use crate::settings;

/// The next transaction is looked for during so many poll times. It takes longer to come than the next message of one:
/// the client gets its answer and asks again. Explore 1M on three nodes of two processors, one client: query 9 takes
/// 0.91 times as long with it, query 11 0.79 times, others 0.96 to 1.09 times, and the mix as long as before.
const GAP_POLL_TIMES: u32 = 4;
/// After this time a transaction is not used for the next query any more: with its first snapshot it holds the horizon
/// of VACUUM. Chosen: sixteen clients ask each of eight nodes of two processors some six times in
/// it.
const MAX_TRANSACTION_AGE: Duration = Duration::from_millis(100);
/// While more messages are there, answers are collected, and sent with the first one that is ready later than this
/// after the last sending: the session that asks goes on with them meanwhile. Measured on three nodes of two
/// processors, where queries of the Business Intelligence mix are asked again and send all messages at once: 0.93 of
/// the time of answers that are all collected, and 0.98 of that of answers that are sent one by one.
const COLLECTED_ANSWERS_TIME: Duration = Duration::from_micros(60);
/// Pauses of the processor between two looks. Measured as above: 1.06 times the mixes of system calls without a pause;
/// with 100 pauses 1.05 times. The turns of one kind differ by more.
const SPINS: u32 = 20;
/// Processors of a machine on which a session that answers looks for messages: one for it besides those of two that
/// work. On fewer it is in their way. A process that waits for a processor stays with its own for long, while one that
/// wakes up gets a free one. Measured on three nodes of two processors, without looking against looking: queries of
/// the Business Intelligence mix take 0.7 of the time, Explore 1M has 1.35 times the mixes with two clients, and as
/// many with one or four.
const MIN_POLLING_PROCESSORS: u32 = 3;

/// Other types of messages of PostgreSQL's protocol.
mod protocol {
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    pub const SYNC: u8 = b'S';
    pub const TERMINATE: u8 = b'X';
    /// The body of a CopyBothResponse: text, no columns.
    pub const NO_COLUMNS: [u8; 3] = [0; 3];
}

/// Answers the messages of another node until that closes the connection. The call begins with the version of the
/// messages and the proof that a node asks, as `cluster_hello` does.
///
/// The messages up to an end of transaction are answered under one snapshot, which the first of them takes. Where the
/// next message is there already, it takes another one in the same transaction: to begin and to end one is a fifth of
/// what a node spends (Explore 10M on eight nodes, 16 clients). Otherwise the transaction ends. Between transactions
/// the session is idle, as one that waits for a statement: it can be ended, not cancelled, and takes up changed
/// settings.
///
/// The session ends with the connection and not with the call. After that, PostgreSQL would miss the end of the
/// statement (Sync), which has been taken here, and complain of a client that is gone.
///
/// # Errors
/// That of a message ends the call. 42501 for callers who are no node, 08P01 for what is no message.
#[pg_extern(sql = r#"
CREATE PROCEDURE "cluster_serve"("version" INT, "token" bytea)
LANGUAGE c
AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn cluster_serve(version: Option<i32>, token: Option<&[u8]>) {
    let (Some(version), Some(token)) = (version, token) else {
        refuse()
    };
    meet(version, token);
    // SAFETY: plain session state.
    let is_client = unsafe { !pg_sys::MyProcPort.is_null() && !pg_sys::IsTransactionBlock() };
    if !is_client {
        refuse();
    }
    ffi::put_to_client(protocol::COPY_BOTH_RESPONSE, &protocol::NO_COLUMNS);
    let mut served = Served::new();
    let mut context = PgMemoryContexts::new("message of another node");
    loop {
        // SAFETY: what the closure allocates does not outlive the reset.
        unsafe { context.switch_to(|_| served.next()) };
        // SAFETY: as above.
        unsafe { context.reset() };
    }
}

/// The transaction of a session in the long call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    /// There is none.
    None,
    /// It has neither a snapshot nor locks: it has ended for the other node, and what comes next is there already.
    Resting,
    /// Messages are being answered under its active snapshot.
    Open,
}

/// A session in the long call.
struct Served {
    /// The socket and the latch.
    events: EventSet,
    /// The connection is encrypted.
    is_secure: bool,
    transaction: Transaction,
    /// When it began.
    begun: Instant,
    /// Answers wait to be sent.
    is_full: bool,
    /// How long the next message of a transaction takes to come.
    polling: Polling,
    /// How long the message that was taken last has been waited for within a transaction.
    waited: Option<Duration>,
    /// When the last answer of the last transaction was given, until the next one begins.
    ended: Option<Instant>,
    /// How long the next transaction takes to come.
    gaps: Polling,
    /// When all answers had been sent.
    flushed: Instant,
    /// When the session is lent to a worker.
    lender: Lender,
}

impl Served {
    /// Ends the transaction in which the call has begun.
    fn new() -> Self {
        let mut events = EventSet::new(1);
        // SAFETY: the session has a client, whose socket stays the same.
        let socket = unsafe { compat::client_socket() };
        events.add(socket, pg_sys::WL_SOCKET_READABLE);
        let mut served = Self {
            events,
            is_secure: is_secure(),
            transaction: Transaction::Open,
            begun: Instant::now(),
            is_full: true,
            polling: Polling::default(),
            waited: None,
            ended: None,
            gaps: Polling::default(),
            flushed: Instant::now(),
            lender: Lender::default(),
        };
        // SAFETY: a procedure that was called outside of a block, whose caller needs no snapshot afterwards.
        unsafe { pg_sys::ForgetPortalSnapshots() };
        Timeout::Statement.stop();
        served.commit();
        served
    }

    /// Takes the next message and answers it. Where there will be none, the session ends.
    fn next(&mut self) {
        let (kind, message) = self.take();
        match kind {
            ffi::FLUSH | protocol::SYNC => return,
            protocol::TERMINATE => exit(pg_sys::SessionEndType::DISCONNECT_NORMAL),
            COPY_DATA => {}
            other => raise(
                PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
                format!("unexpected message type 0x{other:02X} between nodes"),
            ),
        }
        // SAFETY: the bytes of the message, in a memory context that outlives this call.
        let request =
            unsafe { std::slice::from_raw_parts(message.data.cast::<u8>(), message.len as usize) };
        let (kind, waited) = (message::kind_of(request), self.waited.take());
        if kind == Some(Kind::EndTransaction) {
            self.end(waited.unwrap_or_default());
            return;
        }
        if let Some(waited) = waited {
            self.polling.waited(waited, poll_time());
        }
        match kind {
            Some(Kind::ImportSnapshot) => self.import(request),
            _ => {
                if self.transaction != Transaction::Open {
                    if self.is_served_together(request) {
                        return;
                    }
                    self.begin(None);
                }
                self.answer(request);
            }
        }
    }

    /// What has come from the other node, with its type; waits for it, after all answers have been sent.
    fn take(&mut self) -> (u8, pg_sys::StringInfoData) {
        let (mut patience, mut is_readable) = (-1, false);
        loop {
            // What is known to come takes one system call instead of three. A secure connection may have taken from
            // the socket what it has not given yet, so it is asked in any case.
            let is_coming = ffi::has_client_data() || is_readable && !self.is_secure;
            if is_coming || self.is_secure {
                match ffi::take_from_client(is_coming) {
                    FromClient::Message(kind, message) => return (kind, message),
                    FromClient::End => exit(pg_sys::SessionEndType::DISCONNECT_CLIENT_EOF),
                    FromClient::Nothing => {}
                }
            }
            if self.is_full {
                self.flush();
            }
            // Before each sleep: sending may have reset the latch that told of an interrupt.
            attend(self.transaction == Transaction::Open);
            check_for_interrupts!();
            match self.transaction {
                Transaction::None => {}
                Transaction::Resting => self.commit(),
                Transaction::Open => {
                    is_readable = self.wait_within();
                    continue;
                }
            }
            is_readable = self.follows_soon();
            if is_readable {
                continue;
            }
            if patience < 0 {
                // SAFETY: outside of a transaction.
                patience = unsafe { pg_sys::pgstat_report_stat(false) };
                if patience == 0 {
                    patience = -1;
                }
            }
            match self.events.sleep(patience) {
                Woken::Socket => is_readable = true,
                Woken::Latch => {}
                Woken::Late => {
                    // SAFETY: as above.
                    unsafe { pg_sys::pgstat_report_stat(true) };
                    patience = -1;
                }
            }
        }
    }

    /// Waits for the next message of a transaction, or for its end, which comes with the next transaction where that
    /// follows soon. Looks for it for a while where it should come soon, then sleeps. False
    /// where the latch has ended the wait.
    fn wait_within(&mut self) -> bool {
        let (since, most) = (Instant::now(), poll_time());
        let gap = self.gaps.budget(most * GAP_POLL_TIMES);
        let budget = self.polling.budget(most).max(gap);
        let has_come = poll(since, budget) || self.events.sleep(-1) == Woken::Socket;
        // An interrupt may have ended an earlier part of the wait.
        self.waited = Some(self.waited.unwrap_or_default() + since.elapsed());
        has_come
    }

    /// Looks for the next transaction for a while after the end of one, where transactions follow each other soon.
    fn follows_soon(&mut self) -> bool {
        let budget = self.gaps.budget(poll_time() * GAP_POLL_TIMES);
        self.ended.is_some_and(|ended| poll(ended, budget))
    }

    /// Lends the session to a worker where that pays, and waits until it is back. Whether the request has been answered
    /// there.
    fn is_served_together(&mut self, request: &[u8]) -> bool {
        // What has been read from the socket cannot be lent.
        if self.is_secure || ffi::has_client_data() || !self.lender.wants(request) {
            return false;
        }
        let Some(worker) = self.lender.find_worker() else {
            return false;
        };
        if self.transaction == Transaction::Resting {
            self.commit();
        }
        if self.is_full {
            self.flush();
        }
        self.ended = None;
        match self.lender.lend(&worker, request, || attend(false)) {
            Outcome::Kept => false,
            Outcome::Back { is_unanswered } => !is_unanswered,
            Outcome::Over => exit(pg_sys::SessionEndType::DISCONNECT_CLIENT_EOF),
        }
    }

    /// Sends all answers.
    fn flush(&mut self) {
        ffi::flush_to_client();
        self.is_full = false;
        self.flushed = Instant::now();
    }

    fn answer(&mut self, request: &[u8]) {
        // SAFETY: plain settings.
        Timeout::Statement.start(unsafe { pg_sys::StatementTimeout });
        let answer = respond(request);
        Timeout::Statement.stop();
        ffi::put_to_client(COPY_DATA, &answer);
        self.is_full = true;
        if ffi::has_client_data() && self.flushed.elapsed() > COLLECTED_ANSWERS_TIME {
            self.flush();
        }
    }

    /// Begins the transaction under a snapshot that another session of this node has exported.
    fn import(&mut self, request: &[u8]) {
        let mut reader = Reader::new(request);
        check_version(reader.u8().unwrap_or_else(|e| damaged(e)));
        let name = reader.u8().and_then(|_| reader.bytes());
        let name = CString::new(name.unwrap_or_else(|e| damaged(e)));
        if self.transaction == Transaction::Open {
            damaged(Damaged);
        }
        self.begin(Some(&name.unwrap_or_else(|_| damaged(Damaged))));
    }

    fn begin(&mut self, snapshot: Option<&CString>) {
        if self.transaction == Transaction::Resting && snapshot.is_some() {
            // A snapshot is imported before any other one is taken.
            self.commit();
        }
        // SAFETY: there is no transaction, or one that has no active snapshot; the context of the message becomes the
        // current one again.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::SetCurrentStatementStartTimestamp();
            let running = pg_sys::BackendState::STATE_RUNNING;
            // With the text, PostgreSQL notes when the work began, too.
            pg_sys::pgstat_report_activity(running, pg_sys::debug_query_string);
            if self.transaction == Transaction::Resting {
                // As at the beginning of a transaction.
                pg_sys::AcceptInvalidationMessages();
                pg_sys::InvalidateCatalogSnapshot();
                pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
            } else {
                pg_sys::StartTransactionCommand();
                if let Some(name) = snapshot {
                    pg_sys::ImportSnapshot(name.as_ptr());
                }
                pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
                Timeout::ClientCheck.start(pg_sys::client_connection_check_interval);
                self.begun = Instant::now();
            }
            pg_sys::MemoryContextSwitchTo(context);
        }
        self.transaction = Transaction::Open;
        if let Some(ended) = self.ended.take() {
            let gap = ended.elapsed();
            self.gaps.waited(gap, poll_time() * GAP_POLL_TIMES);
        }
    }

    /// Ends what was answered under one snapshot, whose end has been waited for, and the transaction, unless the next
    /// message is there already.
    fn end(&mut self, waited: Duration) {
        if self.transaction != Transaction::Open {
            return;
        }
        // SAFETY: pushed by `begin`.
        unsafe { pg_sys::PopActiveSnapshot() };
        let rests = ffi::has_client_data() && self.begun.elapsed() < MAX_TRANSACTION_AGE;
        if rests {
            // The next query may be a long one of another store: it does not hold these locks.
            release_locks();
            self.transaction = Transaction::Resting;
        } else {
            self.commit();
        }
        self.ended = Instant::now().checked_sub(waited);
        if rests {
            return;
        }
        // Where transactions follow each other without a pause, nobody waits outside of one.
        // SAFETY: outside of a transaction.
        unsafe { pg_sys::pgstat_report_stat(false) };
        attend(false);
    }

    /// Ends the transaction. The session is idle then.
    fn commit(&mut self) {
        self.transaction = Transaction::None;
        Timeout::ClientCheck.stop();
        // SAFETY: a transaction is open and not a block, without an active snapshot; the context of the message becomes
        // the current one again.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CommitTransactionCommand();
            pg_sys::MemoryContextSwitchTo(context);
            let idle = pg_sys::BackendState::STATE_IDLE;
            pg_sys::pgstat_report_activity(idle, std::ptr::null());
        }
        self.ended = Some(Instant::now());
    }
}

/// Whether the connection of the client is encrypted.
fn is_secure() -> bool {
    // SAFETY: the entry of this session, which has begun; it has the status of GSSAPI where it says so.
    unsafe {
        let Some(entry) = pg_sys::MyBEEntry.as_ref() else {
            return true;
        };
        entry.st_ssl || entry.st_gss && (*entry.st_gssstatus).gss_enc
    }
}

/// Ends the session whose client has gone, as `ProcessRepliesIfAny` of `replication/walsender.c` does. What is open is
/// aborted: it has read only.
fn exit(cause: pg_sys::SessionEndType::Type) -> ! {
    // SAFETY: plain session state; the process runs its own callbacks and ends.
    unsafe {
        pg_sys::pgStatSessionEndCause = cause;
        pg_sys::proc_exit(0)
    }
}

/// The answer to a message, within a transaction, under its active snapshot.
pub fn respond(request: &[u8]) -> Vec<u8> {
    match message::kind_of(request) {
        Some(Kind::Dictionary) => with_own_locks(|| answer(request)),
        _ => answer(request),
    }
}

/// Answers about terms and gives back the locks taken for that: whoever asks may wait next for one that adds terms, and
/// this one for somebody who waits for these locks. Reads of the dictionary see what is committed, so that nothing is
/// kept together by them.
fn with_own_locks<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: within a transaction. An error ends the (sub)transaction, and the owner with it. What `body`
    // opens it has closed at its end, locks aside.
    unsafe {
        let outer = pg_sys::CurrentResourceOwner;
        let own = pg_sys::ResourceOwnerCreate(outer, c"terms for another node".as_ptr());
        pg_sys::CurrentResourceOwner = own;
        let result = body();
        release_locks();
        pg_sys::CurrentResourceOwner = outer;
        pg_sys::ResourceOwnerDelete(own);
        result
    }
}

/// Gives back the locks of the current resource owner, which has nothing open.
pub fn release_locks() {
    // SAFETY: there is one, within a transaction; null stands for all locks of it.
    unsafe { pg_sys::LockReleaseCurrentOwner(std::ptr::null_mut(), 0) };
    dictionary::forget_locks();
}

/// Looks for something to read from the client for a time since some moment; false where nothing has come. Without any
/// time, or on a machine of few processors, it does not look.
fn poll(since: Instant, budget: Duration) -> bool {
    if budget.is_zero() || settings::processors() < MIN_POLLING_PROCESSORS {
        return false;
    }
    // SAFETY: the session has a client.
    let socket = unsafe { compat::client_socket() };
    while !is_ready(socket, libc::POLLIN) {
        if since.elapsed() >= budget {
            return false;
        }
        for _ in 0..SPINS {
            std::hint::spin_loop();
        }
        // Whoever asks may need this processor.
        // SAFETY: a plain system call.
        unsafe { libc::sched_yield() };
    }
    true
}

/// What PostgreSQL does for a session that waits for a statement (`PostgresMain` of `tcop/postgres.c`).
pub fn attend(is_open: bool) {
    // SAFETY: flags of this process; between two messages.
    unsafe {
        if pg_sys::catchupInterruptPending != 0 {
            pg_sys::ProcessCatchupInterrupt();
        }
        if is_open {
            return;
        }
        // There is nothing to cancel, and no client to look for.
        pg_sys::QueryCancelPending = 0;
        pg_sys::CheckClientConnectionPending = 0;
        if pg_sys::ConfigReloadPending != 0 {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
    }
}
