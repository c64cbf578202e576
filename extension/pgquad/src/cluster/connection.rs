//! Sessions to other nodes over libpq, waited for on the latch.
//!
//! A session belongs to a scope while that has a message under way or a transaction open, and is kept for the next
//! scope afterwards. In a query's scope the messages go as data of one long call (`stream.rs`), and all of a scope are
//! one transaction of the other node, REPEATABLE READ and READ ONLY. It begins with the first message. It ends with the
//! scope, or a little later with the next one (`deferred_end.rs`), without a round trip of its own. In other scopes
//! each message is a statement in pipeline mode; in an autonomous one it is a transaction, too.

mod connecting;
mod deferred_end;
mod history;
mod participants;
mod session;
mod stream;
mod unix_socket;

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::hash::Hash;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use pgquad_cluster::message::{self, Kind, Rows};
use pgquad_cluster::prefetch::Request;
use pgquad_cluster::read_history::{Reads, Run};
use pgquad_cluster::{Prefetches, ReadAhead, ReadCache, Traffic};
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};
use pq_sys::{ConnStatusType, ExecStatusType, PGconn, PGresult};

use super::exchange::{is_ready, EventSet, Woken};
use super::nodes::{self};
use super::protocol::damaged;
use super::{counters, map, snapshots};
use crate::pg::error::{raise, raise_detail, raise_hint};
use crate::pg::exit::is_exiting;
use crate::settings;
use crate::storage::has_transaction_snapshot;

pub use deferred_end::send_waiting as send_waiting_ends;
use deferred_end::{Became, DeferredEnd};
pub use participants::{Meeting, Participants, Refusal, Unlinked};
pub use session::Mode;
use session::{Arrival, Session};

/// Idle sessions kept for each node; more are closed.
const MAX_IDLE_SESSIONS: usize = 4;

thread_local! {
    static IDLE: RefCell<Vec<Session>> = const { RefCell::new(Vec::new()) };
    /// The generation of the map when idle sessions were last compared with its nodes.
    static SEEN_GENERATION: Cell<u64> = const { Cell::new(0) };
    /// Scopes of running statements, by the snapshot of the statement.
    static SCOPES: RefCell<Vec<(pg_sys::Snapshot, Weak<Scope>)>> = const { RefCell::new(Vec::new()) };
    /// The scope of a transaction whose snapshot lasts as long as it does.
    static OF_TRANSACTION: RefCell<Option<Rc<Scope>>> = const { RefCell::new(None) };
    /// The query that is about to be planned and run.
    static ANNOUNCED: RefCell<Option<Announced>> = const { RefCell::new(None) };
    /// Queries that have been announced.
    static ANNOUNCEMENTS: Cell<u64> = const { Cell::new(0) };
    /// All traffic of this session.
    static TOTAL: Cell<Traffic> = const { Cell::new(Traffic { messages: 0, sent: 0, received: 0, waited: 0 }) };
}

/// Watches the end of transactions; called once from `_PG_init`.
pub fn init() {
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    }
}

/// Time after which an attempt to connect is given up.
pub fn connect_timeout() -> Duration {
    Duration::from_millis(settings::NODE_CONNECT_TIMEOUT.get().max(1) as u64)
}

/// How long something that should come soon is looked for before the process sleeps.
pub fn poll_time() -> Duration {
    Duration::from_micros(settings::NODE_POLL_TIME.get().max(0) as u64)
}

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    use pg_sys::XactEvent::{
        XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PARALLEL_ABORT, XACT_EVENT_PARALLEL_COMMIT,
        XACT_EVENT_PREPARE, XACT_EVENT_PRE_COMMIT, XACT_EVENT_PRE_PREPARE,
    };
    if is_exiting() {
        return;
    }
    match event {
        XACT_EVENT_PRE_COMMIT | XACT_EVENT_PRE_PREPARE => {
            Scope::running().for_each(|scope| scope.unpin());
        }
        // PostgreSQL gives back what the transaction has registered.
        XACT_EVENT_ABORT => {
            Scope::running().for_each(|scope| scope.pinned.set(std::ptr::null_mut()));
        }
        _ => {}
    }
    if matches!(
        event,
        XACT_EVENT_ABORT
            | XACT_EVENT_COMMIT
            | XACT_EVENT_PREPARE
            | XACT_EVENT_PARALLEL_ABORT
            | XACT_EVENT_PARALLEL_COMMIT
    ) {
        OF_TRANSACTION.take();
        SCOPES.with_borrow_mut(|scopes| scopes.retain(|(_, scope)| scope.strong_count() > 0));
    }
}

/// A statement that failed within a savepoint has left answers under way where its scope goes on: with the transaction,
/// or with the statement around it. A query in a STABLE function has the snapshot of the one that calls it, and so its
/// scope. Nobody else waits for an answer: who sends to a scope takes the answers before it gives rows to anybody.
#[pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB && !is_exiting() {
        Scope::running().for_each(|scope| scope.abandon());
    }
}

/// Ends what other nodes show a transaction with one snapshot: their sessions hold locks of the shards that they have
/// read until then. To be called before the transaction locks shards exclusively, for which it would wait for itself.
pub fn end_scope_of_transaction(what: &str) {
    let is_in_use = OF_TRANSACTION.with_borrow(|scope| {
        let others = scope
            .as_ref()
            .map_or(0, |scope| Rc::strong_count(scope) - 1);
        others > 0
    });
    if is_in_use {
        refuse_in_use(what);
    }
    OF_TRANSACTION.take();
    send_waiting_ends();
}

/// Refuses what would drop shards that a cursor of this session has read on other nodes, which keep their locks for it.
pub fn refuse_open_cursors(what: &str) {
    if Scope::running().any(|scope| !scope.sessions.borrow().is_empty()) {
        refuse_in_use(what);
    }
}

fn refuse_in_use(what: &str) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
        format!("cannot {what} a distributed store while a cursor reads from other nodes"),
        "Close the cursors of this transaction first.",
    )
}

/// A query whose first join has not begun.
struct Announced {
    /// Number of the announcement.
    number: u64,
    /// What tells the query apart.
    query: u64,
    /// The scope that has sent its reads, and waits for nothing.
    early: Option<Scope>,
}

/// A query that is announced, until its first join begins, or this is dropped.
pub struct Announcement(u64);

impl Announcement {
    /// Announces a query, told apart by all that says what it reads. The reads of its last run are sent at once, so it
    /// must be possible that other nodes are asked.
    pub fn new(query: impl Hash) -> Self {
        end_early_reads();
        let number = ANNOUNCEMENTS.get() + 1;
        ANNOUNCEMENTS.set(number);
        let query = history::identity(query);
        let early = history::with_lockable(query, |reads| {
            let scope = Scope::new(Mode::Query);
            scope.prefetch_all(reads);
            scope.send_prefetches();
            scope
        });
        ANNOUNCED.replace(Some(Announced {
            number,
            query,
            early,
        }));
        Self(number)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let is_mine = |announced: &mut Announced| announced.number == self.0;
        if ANNOUNCED.with_borrow_mut(|announced| announced.as_mut().is_some_and(is_mine)) {
            end_early_reads();
            ANNOUNCED.take();
        }
    }
}

/// Gives up early reads that no join has come for, and closes their sessions. They must not stay beside another
/// session to the same node: a node that cannot get rid of an answer holds locks of shards, and the other session
/// could wait for whoever waits for these. Nor must an answer that nobody needs be an error.
fn end_early_reads() {
    let early = ANNOUNCED.with_borrow_mut(|announced| {
        let announced = announced.as_mut()?;
        Some((announced.query, announced.early.take()?))
    });
    if let Some((query, _)) = early {
        history::distrust(query);
    }
}

/// Sessions for the messages of a statement.
pub struct Scope {
    mode: Mode,
    /// What its messages are counted as.
    kind: counters::Kind,
    /// The scopes whose sessions it uses, by group; they get them back.
    lenders: RefCell<HashMap<i32, Weak<Scope>>>,
    /// Names of the snapshots under which nodes are to be read, by group; others choose their own.
    snapshots: RefCell<HashMap<i32, String>>,
    /// Names under which nodes have exported the snapshots that this scope reads with, by group.
    exported: RefCell<HashMap<i32, String>>,
    sessions: RefCell<HashMap<i32, Session>>,
    /// What is read ahead of what is asked for, under the snapshots of this scope.
    ahead: RefCell<ReadAhead>,
    /// What has been asked for, under the same snapshots.
    read_cache: RefCell<ReadCache>,
    /// What is asked for before it is needed, under the same snapshots.
    prefetches: RefCell<Prefetches>,
    /// What is asked for, from where the first join of the query began.
    run: RefCell<Option<Run>>,
    traffic: Cell<Traffic>,
    /// The snapshot that it is found by, registered with the transaction. A cursor that has failed within a savepoint
    /// stays until the transaction ends, and its snapshot would not: another one would get its address, and this scope.
    pinned: Cell<pg_sys::Snapshot>,
}

impl Scope {
    /// A scope of its own.
    pub fn new(mode: Mode) -> Self {
        Self::counted_as(mode.kind(), mode)
    }

    fn counted_as(kind: counters::Kind, mode: Mode) -> Self {
        Self {
            mode,
            kind,
            lenders: RefCell::default(),
            snapshots: RefCell::default(),
            exported: RefCell::default(),
            sessions: RefCell::default(),
            ahead: RefCell::default(),
            read_cache: RefCell::default(),
            prefetches: RefCell::default(),
            run: RefCell::default(),
            traffic: Cell::default(),
            pinned: Cell::new(std::ptr::null_mut()),
        }
    }

    /// Keeps the address of the snapshot as long as the scope lives.
    fn pin(&self, snapshot: pg_sys::Snapshot) {
        // SAFETY: a live snapshot, within a transaction. What is no copy already would be copied.
        unsafe {
            if (*snapshot).copied {
                let owner = pg_sys::TopTransactionResourceOwner;
                self.pinned
                    .set(pg_sys::RegisterSnapshotOnOwner(snapshot, owner));
            }
        }
    }

    fn unpin(&self) {
        let pinned = self.pinned.replace(std::ptr::null_mut());
        if !pinned.is_null() {
            // SAFETY: registered by `pin`, in the transaction that runs still.
            unsafe {
                let owner = pg_sys::TopTransactionResourceOwner;
                pg_sys::UnregisterSnapshotFromOwner(pinned, owner);
            }
        }
    }

    /// A scope for looking up terms. It uses the sessions of running queries where they are free, else idle ones of
    /// queries. So a node has one process for a query and its terms. What reads a dictionary sees what is committed at
    /// that moment, whatever the snapshot of the session.
    pub fn of_lookups() -> Self {
        Self::counted_as(counters::Kind::Dictionary, Mode::Query)
    }

    /// What is read ahead.
    pub fn ahead(&self) -> RefMut<'_, ReadAhead> {
        self.ahead.borrow_mut()
    }

    /// Answers that are used again.
    pub fn read_cache(&self) -> RefMut<'_, ReadCache> {
        self.read_cache.borrow_mut()
    }

    /// Notes an encoded read that goes to the node of a group with the next message, unless its answer is known.
    pub fn prefetch(&self, group: i32, request: Vec<u8>) {
        let request = (group, request);
        if self.read_cache().get(&request).is_none() {
            self.prefetches.borrow_mut().ask(request);
        }
    }

    fn prefetch_all(&self, reads: &Reads) {
        let requests = reads.requests.iter().cloned();
        requests.for_each(|(group, request)| self.prefetch(group, request));
    }

    /// A join begins; `hash` gives what tells it and its parameters apart. The first one of a query has the reads of
    /// the query's last run prefetched, and reads are noted for the next run from here on. False where nothing is
    /// prefetched.
    pub fn begin_run(&self, hash: impl FnOnce() -> u64) -> bool {
        let has_begun = self.run.borrow().is_some();
        if has_begun || !self.sessions.borrow().is_empty() {
            end_early_reads();
        }
        if has_begun {
            return false;
        }
        let announced = ANNOUNCED.take();
        let (query, early) = match announced {
            Some(announced) => (announced.query, announced.early),
            None => (history::identity(hash()), None),
        };
        self.run.replace(Some(Run::new(query)));
        if let Some(early) = early {
            self.adopt(&early);
            return true;
        }
        history::with_lockable(query, |reads| self.prefetch_all(reads)).is_some()
    }

    /// Goes on with the sessions of another scope, and with what is under way in them.
    fn adopt(&self, other: &Self) {
        self.sessions.replace(other.sessions.take());
        self.prefetches.replace(other.prefetches.take());
        // The session has counted it already.
        add_traffic(&self.traffic, other.traffic());
    }

    /// Notes a read of shards of a table for the next run of this query.
    pub fn note_read(&self, table: u32, request: &Request) {
        if let Some(run) = self.run.borrow_mut().as_mut() {
            run.note_read(table, request);
        }
    }

    /// Whether a read is prefetched: it is to be sent, under way, or answered.
    pub fn is_prefetched(&self, request: &Request) -> bool {
        self.prefetches.borrow().has(request)
    }

    /// The answer to a prefetched read; waits for it.
    pub fn await_prefetched(&self, request: &Request) -> Option<Rc<Rows>> {
        self.send_prefetches();
        loop {
            let found = self.prefetches.borrow_mut().take(request);
            if found.is_some() || !self.takes_prefetched(request.0) {
                return found;
            }
        }
    }

    /// Takes all answers to prefetched reads that are under way. They are kept as those to other reads are.
    pub fn take_prefetches(&self) {
        let groups = self.prefetches.borrow().groups_under_way();
        for group in groups {
            while self.takes_prefetched(group) {}
        }
        let (mut prefetches, mut cache) = (self.prefetches.borrow_mut(), self.read_cache());
        for (request, rows) in prefetches.take_all() {
            cache.keep(request, &rows);
        }
    }

    /// Sends what was to go with messages that did not come.
    fn send_prefetches(&self) {
        let groups = self.prefetches.borrow().groups_to_ask();
        for group in groups {
            self.send_all(group, &[]);
        }
    }

    /// Takes the next answer of a node, where it is that to a prefetched read.
    fn takes_prefetched(&self, group: i32) -> bool {
        if !self.prefetches.borrow().is_next(group) {
            return false;
        }
        let (answer, prefetched) = self.next_answer(group);
        if let Some(request) = prefetched {
            let rows = Rows::decode(&answer).unwrap_or_else(|e| damaged(e));
            self.prefetches.borrow_mut().keep(request, rows);
        }
        true
    }

    /// The scope of what reads with this snapshot: other nodes show it one state of theirs. It lasts as long as
    /// somebody holds it; in REPEATABLE READ and SERIALIZABLE as long as the transaction.
    pub fn of_snapshot(snapshot: pg_sys::Snapshot) -> Rc<Self> {
        if has_transaction_snapshot() {
            return OF_TRANSACTION.with_borrow_mut(|scope| {
                scope
                    .get_or_insert_with(|| Rc::new(Self::new(Mode::Query)))
                    .clone()
            });
        }
        SCOPES.with_borrow_mut(|scopes| {
            scopes.retain(|(_, scope)| scope.strong_count() > 0);
            let known = scopes.iter().find(|(of, _)| *of == snapshot);
            if let Some(scope) = known.and_then(|(_, scope)| scope.upgrade()) {
                return scope;
            }
            let scope = Rc::new(Self::new(Mode::Query));
            scope.pin(snapshot);
            scopes.push((snapshot, Rc::downgrade(&scope)));
            scope
        })
    }

    /// Reads the nodes of these groups under snapshots that have been exported there, from their first message on.
    pub fn import(&self, snapshots: HashMap<i32, String>) {
        self.snapshots.replace(snapshots);
    }

    /// The names under which nodes have exported the snapshots of this scope, for the participants of a join. This node
    /// exports the snapshot of its transaction, which therefore has to keep one snapshot to its end.
    pub fn export(&self, groups: &[i32]) -> Vec<String> {
        let own = map::local_group();
        let mut exported = self.exported.borrow_mut();
        let is_new = |group: &i32| !exported.contains_key(group);
        let (here, elsewhere): (Vec<i32>, Vec<i32>) = groups
            .iter()
            .copied()
            .filter(is_new)
            .partition(|&group| group == own);
        let ask = |&group: &i32| (group, message::request(Kind::ExportSnapshot).finish());
        let requests: Vec<_> = elsewhere.iter().map(ask).collect();
        for (group, name) in elsewhere.iter().zip(self.exchange(&requests)) {
            exported.insert(*group, String::from_utf8_lossy(&name).into_owned());
        }
        for group in here {
            exported.insert(group, snapshots::export());
        }
        groups.iter().map(|group| exported[group].clone()).collect()
    }

    /// Nobody waits for the answers under way any more.
    fn abandon(&self) {
        self.ahead().forget_wishes();
        self.prefetches.borrow_mut().abandon();
        let mut sessions = self.sessions.borrow_mut();
        sessions.retain(|_, session| session.connecting.is_none());
        for session in sessions.values_mut() {
            session.abandon();
        }
    }

    /// What has gone over the wire.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    fn count(&self, more: Traffic) {
        add_traffic(&self.traffic, more);
        TOTAL.with(|total| add_traffic(total, more));
    }

    /// Sends a request to the node of a group; does not wait for the answer. Nor does it wait for a connection: those
    /// that are missing are made at once, when the first answer is waited for.
    pub fn send(&self, group: i32, request: &[u8]) {
        self.send_all(group, &[request]);
    }

    /// Sends messages to the node of a group, and what is to be prefetched there.
    fn send_all(&self, group: i32, messages: &[&[u8]]) {
        let mut sessions = self.sessions.borrow_mut();
        let session = sessions
            .entry(group)
            .or_insert_with(|| self.session_to(group));
        let prefetched = {
            let mut prefetches = self.prefetches.borrow_mut();
            messages.iter().for_each(|_| prefetches.message_sent(group));
            let waiting = session.waited_for() + messages.len();
            prefetches.send(group, waiting)
        };
        let prefetched = prefetched.iter().map(Vec::as_slice);
        let requests: Vec<&[u8]> = messages.iter().copied().chain(prefetched).collect();
        session.send(&requests);
        session.last_message = self.traffic.get().messages;
        for request in requests {
            counters::sent(self.kind, request.len());
            let batches = message::kind_of(request).is_some_and(Kind::is_batch);
            counters::batches(self.kind, usize::from(batches));
            self.count(Traffic {
                messages: 1,
                sent: request.len() as u64,
                ..Traffic::default()
            });
        }
    }

    /// A session for the messages of this scope.
    fn session_to(&self, group: i32) -> Session {
        let is_for_lookups = self.kind != self.mode.kind();
        let borrowed = is_for_lookups.then(|| self.borrow_session(group)).flatten();
        let mut session = borrowed.unwrap_or_else(|| Session::take(group, self.mode));
        session.kind = self.kind;
        if let Some(name) = self.snapshots.borrow().get(&group) {
            session.import(name);
        }
        session
    }

    /// The scopes of running statements, the newest first, and that of the transaction.
    fn running() -> impl Iterator<Item = Rc<Self>> {
        let of_transaction = OF_TRANSACTION.with_borrow(Clone::clone);
        let of_statements: Vec<Rc<Self>> = SCOPES.with_borrow(|scopes| {
            let newest_first = scopes.iter().rev();
            newest_first
                .filter_map(|(_, scope)| scope.upgrade())
                .collect()
        });
        of_statements.into_iter().chain(of_transaction)
    }

    /// The session that a running query has to a node, where nothing is under way in it. The query gets it back before
    /// it goes on, when this scope is dropped.
    fn borrow_session(&self, group: i32) -> Option<Session> {
        let role = asking_role();
        Self::running().find_map(|scope| {
            if scope.sessions.try_borrow_mut().is_ok() {
                while scope.takes_prefetched(group) {}
            }
            let mut sessions = scope.sessions.try_borrow_mut().ok()?;
            let is_free = |session: &&Session| {
                let is_quiet = session.connecting.is_none() && session.waiting == 0;
                is_quiet && !session.ended && session.role == role && session.is_alive()
            };
            sessions.get(&group).filter(is_free)?;
            let session = sessions.remove(&group)?;
            let mut lenders = self.lenders.borrow_mut();
            lenders.insert(group, Rc::downgrade(&scope));
            Some(session)
        })
    }

    /// Takes a session back that was lent; gives it on where that is not possible. Nobody waits for answers that are
    /// still under way.
    fn take_back(&self, mut session: Session) -> Option<Session> {
        let Ok(mut sessions) = self.sessions.try_borrow_mut() else {
            return Some(session);
        };
        session.kind = self.kind;
        session.abandon();
        sessions.insert(session.group, session);
        None
    }

    /// The answer to the first request sent to a node that has not been answered.
    pub fn receive(&self, group: i32) -> Vec<u8> {
        self.send_prefetches();
        while self.takes_prefetched(group) {}
        self.next_answer(group).0
    }

    /// The next answer of a node, and the prefetched read that it is for, if it is for one.
    fn next_answer(&self, group: i32) -> (Vec<u8>, Option<Request>) {
        let since = Instant::now();
        let answer = {
            let mut sessions = self.sessions.borrow_mut();
            establish_new(&mut sessions);
            await_last(&mut sessions, group);
            let Some(session) = sessions.get_mut(&group) else {
                nodes::unknown(group)
            };
            session.receive()
        };
        let prefetched = self.prefetches.borrow_mut().message_answered(group);
        if let Some(run) = self.run.borrow_mut().as_mut() {
            run.answered(answer.len());
        }
        counters::received(self.kind, answer.len());
        self.count(Traffic {
            received: answer.len() as u64,
            waited: since.elapsed().as_nanos() as u64,
            ..Traffic::default()
        });
        (answer, prefetched)
    }

    /// The answer of whichever of these nodes has answered first, with its group. With `wait` there is one. What the
    /// others send is taken from the kernel meanwhile: a node that cannot get rid of its answer holds the locks of its
    /// transaction, and another session may be waiting for them before it takes its own answers.
    pub fn receive_first(&self, groups: &[i32], wait: bool) -> Option<(i32, Vec<u8>)> {
        let since = Instant::now();
        let first = loop {
            let mut sessions = self.sessions.borrow_mut();
            establish_new(&mut sessions);
            let mut first = None;
            for &group in groups {
                let session = sessions
                    .get_mut(&group)
                    .unwrap_or_else(|| nodes::unknown(group));
                if session.has_result() {
                    first.get_or_insert(group);
                }
            }
            if first.is_some() || !wait {
                break first?;
            }
            let mut events = EventSet::new(groups.len());
            for group in groups {
                // SAFETY: a live connection.
                let socket = unsafe { pq_sys::PQsocket(sessions[group].conn) };
                events.add(socket, pg_sys::WL_SOCKET_READABLE);
            }
            drop(sessions);
            let _waiting = counters::wait(self.kind);
            events.wait(-1);
        };
        self.count(Traffic {
            waited: since.elapsed().as_nanos() as u64,
            ..Traffic::default()
        });
        Some((first, self.receive(first)))
    }

    /// Sends one request to each of several nodes, and gives their answers in the same order.
    pub fn exchange(&self, requests: &[(i32, Vec<u8>)]) -> Vec<Vec<u8>> {
        requests
            .iter()
            .for_each(|(group, request)| self.send(*group, request));
        requests
            .iter()
            .map(|(group, _)| self.receive(*group))
            .collect()
    }
}

fn add_traffic(cell: &Cell<Traffic>, more: Traffic) {
    let mut now = cell.get();
    now += more;
    cell.set(now);
}

/// Where the processors are busy, and several nodes have been asked: sleeps until the one that was asked last begins to
/// answer, before the answer of `group` is waited for. By then most others have answered. So this process wakes up once
/// for all of them, not once for each.
fn await_last(sessions: &mut HashMap<i32, Session>, group: i32) {
    let most = poll_time();
    let would_sleep = |session: &Session| {
        session.mode == Mode::Query
            && session.arrival != Arrival::Read
            && session.polling.budget(most).is_zero()
    };
    if !sessions.get(&group).is_some_and(would_sleep) {
        return;
    }
    // Nobody waits for abandoned answers, which may take any time.
    let is_asked = |session: &&mut Session| session.waiting > session.abandoned && !session.ended;
    let asked = sessions.values_mut().filter(is_asked);
    let Some(last) = asked.max_by_key(|session| session.last_message) else {
        return;
    };
    let waited = match last.arrival {
        // An error that has come with the answer before is in libpq's buffer, and nothing follows it.
        Arrival::Expected if last.group != group && last.is_silent() => last.sleep_until_begun(),
        Arrival::Begun => Duration::ZERO,
        Arrival::Expected | Arrival::Read => return,
    };
    if let Some(session) = sessions.get_mut(&group) {
        if !waited.is_zero() {
            session.polling.waited(waited, most);
        }
        session.consume();
    }
}

impl Drop for Scope {
    /// Gives borrowed sessions back, ends the transactions of the others and keeps them. Runs at the end of a
    /// transaction too, so that nothing in it may raise an error.
    fn drop(&mut self) {
        if is_exiting() {
            return;
        }
        self.unpin();
        // What has been read until an error is not all.
        // SAFETY: plain session state.
        let is_going_on = unsafe { pg_sys::IsTransactionState() } && !std::thread::panicking();
        if let Some(run) = self.run.take().filter(|_| is_going_on) {
            history::add(run);
        }
        let lenders = self.lenders.take();
        for (group, session) in self.sessions.take() {
            let lender = lenders.get(&group).and_then(Weak::upgrade);
            let left = match lender {
                Some(lender) => lender.take_back(session),
                None => Some(session),
            };
            let Some(mut session) = left else {
                continue;
            };
            if session.end() {
                session.keep();
            }
        }
    }
}

/// Establishes the sessions that are not yet, all at once.
fn establish_new(sessions: &mut HashMap<i32, Session>) {
    let is_new = |session: &&mut Session| session.connecting.is_some();
    let mut new: Vec<&mut Session> = sessions.values_mut().filter(is_new).collect();
    connecting::establish(&mut new);
}

/// Connects to the node of a group and closes the connection again; raises the error where that does not work.
pub fn reach(group: i32) {
    let mut session = Session::begin(map::node(group), asking_role(), Mode::Autonomous);
    connecting::connect(&mut [&mut session]);
}

/// The role that sessions are opened as: the current one, or that of the session where the current one may not log in.
/// Rights on stores are checked where the statement is planned, so the role does not change the answer.
fn asking_role() -> pg_sys::Oid {
    // SAFETY: plain session state and a look-up in the catalogue; the tuple is released.
    unsafe {
        let current = pg_sys::GetUserId();
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::AUTHOID as i32,
            pg_sys::Datum::from(current),
        );
        if tuple.is_null() {
            return current;
        }
        let may_log_in =
            (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_authid>()).rolcanlogin;
        pg_sys::ReleaseSysCache(tuple);
        if may_log_in {
            current
        } else {
            pg_sys::GetSessionUserId()
        }
    }
}

/// Closes idle sessions to nodes that have been removed or moved to another address since the last call.
fn close_sessions_of_removed_nodes() {
    let generation = map::generation();
    if SEEN_GENERATION.get() != generation {
        let nodes = map::nodes();
        SEEN_GENERATION.set(generation);
        IDLE.with_borrow_mut(|idle| idle.retain(|session| nodes.contains(&session.node)));
    }
}

impl Session {
    /// An idle session to the node of a group as the current role, or a new one, which is not established yet.
    fn take(group: i32, mode: Mode) -> Self {
        end_early_reads();
        let node = map::node(group);
        close_sessions_of_removed_nodes();
        let role = asking_role();
        let idle = IDLE.with_borrow_mut(|idle| {
            let fits = |session: &Session| {
                session.group == group && session.role == role && session.mode == mode
            };
            let at = idle.iter().rposition(fits)?;
            Some(idle.remove(at))
        });
        let usable = |session: &Self| session.node == node && session.is_alive();
        match idle.filter(usable).and_then(Self::resumed) {
            Some(session) => session,
            None => Self::begin(node, role, mode),
        }
    }

    /// Puts the end of the last transaction before what comes next, if it still waits; `None` where the other node
    /// cannot get it.
    fn resumed(mut self) -> Option<Self> {
        match self.deferred_end.take().map(DeferredEnd::take) {
            None | Some(Became::Sent) => Some(self),
            Some(Became::Waiting) => self.put_end().then_some(self),
            Some(Became::Failed) => None,
        }
    }

    /// Keeps the session for a later statement, in the place of one that has been idle for long.
    fn keep(self) {
        let dropped = IDLE.with_borrow_mut(|idle| {
            let same = |other: &Self| other.group == self.group && other.mode == self.mode;
            let is_full = idle.iter().filter(|other| same(other)).count() >= MAX_IDLE_SESSIONS;
            // One of another role first, which no statement of this one can use.
            let other_role = |other: &Self| same(other) && other.role != self.role;
            let oldest = idle.iter().position(other_role);
            let oldest = oldest.or_else(|| idle.iter().position(same));
            let dropped = oldest.filter(|_| is_full).map(|at| idle.remove(at));
            idle.push(self);
            dropped
        });
        // Outside of the borrow: what closes a session may look at the idle ones.
        drop(dropped);
    }

    /// Nobody waits for the answers under way any more.
    fn abandon(&mut self) {
        self.abandoned = self.waiting;
        self.arrival = Arrival::Read;
    }

    /// Whether nobody has closed it while it was idle, as far as that is known.
    fn is_alive(&self) -> bool {
        // Whoever closes a connection makes it readable. An error may have come together with the last answer.
        if !self.is_ready(libc::POLLIN) {
            return self.mode != Mode::Query || self.is_silent();
        }
        // SAFETY: a live connection; looks at what has arrived. The last words of a server that was stopped come before
        // the end.
        unsafe {
            pq_sys::PQconsumeInput(self.conn) == 1
                && pq_sys::PQconsumeInput(self.conn) == 1
                && pq_sys::PQstatus(self.conn) == ConnStatusType::CONNECTION_OK
                && (self.mode != Mode::Query || self.is_silent())
        }
    }

    /// Ends the transaction of the messages so far; false where they cannot be sent.
    fn end_transaction(&mut self) -> bool {
        match self.mode {
            Mode::Query => self.put_end(),
            Mode::Autonomous | Mode::Command | Mode::Push => self.sync(),
        }
    }

    /// Ends what the messages since the last point are one transaction of.
    fn sync(&mut self) -> bool {
        self.open = false;
        // SAFETY: a live connection in pipeline mode.
        let sent = unsafe { pq_sys::PQpipelineSync(self.conn) == 1 };
        self.syncs += usize::from(sent);
        sent
    }

    /// Begins the transaction under a snapshot that another one of the node has exported.
    fn import(&mut self, name: &str) {
        if let Some(connecting) = &mut self.connecting {
            connecting.snapshot = Some(name.to_owned());
            return;
        }
        if self.mode == Mode::Query {
            let mut message = message::request(Kind::ImportSnapshot);
            message.bytes(name.as_bytes());
            self.put(&message.finish());
            return;
        }
        let sql = format!(
            "SET TRANSACTION SNAPSHOT {}",
            pgrx::spi::quote_literal(name)
        );
        let sql = CString::new(sql).unwrap_or_default();
        // SAFETY: a live connection in pipeline mode; the text is copied.
        let sent = unsafe {
            pq_sys::PQsendQueryParams(
                self.conn,
                sql.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
                std::ptr::null(),
                std::ptr::null(),
                1,
            ) == 1
        };
        if !sent {
            self.lost("lost the connection to");
        }
        self.open = true;
        self.imports += 1;
    }

    /// So many answers are waited for.
    fn waited_for(&self) -> usize {
        let waiting = self.waiting - self.abandoned;
        waiting + self.connecting.as_ref().map_or(0, |c| c.requests.len())
    }

    /// Sends messages, together where that is possible.
    fn send(&mut self, requests: &[&[u8]]) {
        if let Some(connecting) = &mut self.connecting {
            let copies = requests.iter().map(|request| request.to_vec());
            connecting.requests.extend(copies);
            return;
        }
        if self.mode == Mode::Query {
            // No other answer is on its way. An error may be there already, which `await_last` looks for.
            self.arrival = match (self.waiting, requests.len()) {
                (0, 1) => Arrival::Expected,
                _ => Arrival::Read,
            };
            for request in requests {
                self.put(request);
                self.waiting += 1;
            }
            self.flush();
            return;
        }
        for request in requests {
            self.send_statement(request);
        }
    }

    fn send_statement(&mut self, request: &[u8]) {
        let value = request.as_ptr().cast();
        // SAFETY: a live connection in pipeline mode; the parameter is copied.
        let sent = unsafe {
            pq_sys::PQsendQueryPrepared(
                self.conn,
                c"answer".as_ptr(),
                1,
                [value].as_ptr(),
                [request.len() as i32].as_ptr(),
                [1].as_ptr(),
                1,
            ) == 1
        };
        if !sent {
            self.lost("lost the connection to");
        }
        self.open = true;
        self.waiting += 1;
        if !self.sync() {
            self.lost("lost the connection to");
        }
        self.flush();
    }

    /// Gives the kernel all that is to be sent, and takes what arrives meanwhile. So two nodes that send to each other
    /// do not wait for ever.
    fn flush(&mut self) {
        let mut blocked = None;
        loop {
            // SAFETY: a live connection.
            match unsafe { pq_sys::PQflush(self.conn) } {
                0 => {
                    if let Some(since) = blocked {
                        counters::blocked(self.kind, Instant::elapsed(&since));
                    }
                    return;
                }
                1 => {
                    // Before it gives up, libpq reads what has come.
                    self.arrival = Arrival::Read;
                    blocked.get_or_insert_with(Instant::now);
                    // SAFETY: the latch of this process and an open socket.
                    let ready = unsafe {
                        pg_sys::WaitLatchOrSocket(
                            pg_sys::MyLatch,
                            (pg_sys::WL_LATCH_SET
                                | pg_sys::WL_EXIT_ON_PM_DEATH
                                | pg_sys::WL_SOCKET_READABLE
                                | pg_sys::WL_SOCKET_WRITEABLE) as i32,
                            pq_sys::PQsocket(self.conn),
                            -1,
                            pg_sys::PG_WAIT_EXTENSION,
                        )
                    } as u32;
                    if ready & pg_sys::WL_LATCH_SET != 0 {
                        // SAFETY: the latch of this process.
                        unsafe { pg_sys::ResetLatch(pg_sys::MyLatch) };
                        check_for_interrupts!();
                    }
                    if ready & pg_sys::WL_SOCKET_READABLE != 0 {
                        self.consume();
                    }
                }
                _ => self.lost("lost the connection to"),
            }
        }
    }

    /// The answer to the oldest message.
    fn receive(&mut self) -> Vec<u8> {
        if self.waiting == 0 {
            raise(
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                "no answer is under way",
            );
        }
        if self.mode == Mode::Query {
            return self.take_answer();
        }
        let result = self.take_result();
        if self.mode != Mode::Push {
            self.take_commit();
        }
        result.bytes()
    }

    /// Takes what has come, and says whether that is a whole result.
    fn has_result(&mut self) -> bool {
        self.consume();
        // SAFETY: a live connection.
        unsafe { pq_sys::PQisBusy(self.conn) == 0 }
    }

    /// Waits until the transaction of the message just answered has been committed.
    fn take_commit(&mut self) {
        loop {
            let Some(result) = self.next_result() else {
                continue;
            };
            match result.status() {
                ExecStatusType::PGRES_PIPELINE_SYNC => {
                    self.syncs = self.syncs.saturating_sub(1);
                    return;
                }
                _ => self.fail(&result),
            }
        }
    }

    /// Takes the result of the oldest command.
    fn take_result(&mut self) -> Received {
        let result = loop {
            let Some(result) = self.next_result() else {
                // The end of the results of one command.
                continue;
            };
            match result.status() {
                ExecStatusType::PGRES_PIPELINE_SYNC => self.syncs = self.syncs.saturating_sub(1),
                ExecStatusType::PGRES_COMMAND_OK if self.imports > 0 => self.imports -= 1,
                _ if self.abandoned > 0 => {
                    self.abandoned -= 1;
                    self.waiting -= 1;
                }
                _ => break result,
            }
        };
        self.waiting -= 1;
        match result.status() {
            ExecStatusType::PGRES_TUPLES_OK | ExecStatusType::PGRES_COMMAND_OK => result,
            _ => self.fail(&result),
        }
    }

    /// The next result, `None` at the end of those of one command. Waits.
    fn next_result(&mut self) -> Option<Received> {
        // SAFETY: a live connection.
        self.wait_until(|conn| unsafe { pq_sys::PQisBusy(conn) } == 0);
        // SAFETY: a live connection.
        unsafe {
            let result = pq_sys::PQgetResult(self.conn);
            (!result.is_null()).then_some(Received(result))
        }
    }

    /// Waits until something is there: looks for it for a while where it should come soon, then sleeps.
    fn wait_until(&mut self, mut is_there: impl FnMut(*mut PGconn) -> bool) {
        if is_there(self.conn) {
            return;
        }
        let _waiting = counters::wait(self.kind);
        let (since, most) = (Instant::now(), poll_time());
        let budget = self.polling.budget(most);
        while !is_there(self.conn) {
            if since.elapsed() >= budget {
                self.sleep();
            } else if !self.is_ready(libc::POLLIN) {
                // Whoever answers may need this processor.
                // SAFETY: a plain system call.
                unsafe { libc::sched_yield() };
                continue;
            }
            self.consume();
        }
        self.polling.waited(since.elapsed(), most);
    }

    /// Takes from the socket what has come.
    fn consume(&mut self) {
        self.arrival = Arrival::Read;
        // SAFETY: a live connection.
        if unsafe { pq_sys::PQconsumeInput(self.conn) } == 0 {
            self.lost("lost the connection to");
        }
    }

    /// Sleeps until the socket has something.
    fn sleep(&mut self) {
        let Some(events) = &mut self.events else {
            self.lost("could not connect to");
        };
        while events.sleep(-1) != Woken::Socket {
            check_for_interrupts!();
        }
    }

    /// Sleeps until the expected answer begins to come; how long that has taken.
    fn sleep_until_begun(&mut self) -> Duration {
        let _waiting = counters::wait(self.kind);
        let since = Instant::now();
        self.sleep();
        self.arrival = Arrival::Begun;
        let waited = since.elapsed();
        self.polling.waited(waited, poll_time());
        waited
    }

    /// Whether the socket is ready for one of these events of poll(2), or broken.
    fn is_ready(&self, events: i16) -> bool {
        // SAFETY: a live connection.
        is_ready(unsafe { pq_sys::PQsocket(self.conn) }, events)
    }

    /// Raises the error that the node has answered with.
    fn fail(&mut self, result: &Received) -> ! {
        // SAFETY: a live connection.
        if unsafe { pq_sys::PQstatus(self.conn) } != ConnStatusType::CONNECTION_OK {
            self.lost("lost the connection to");
        }
        if result.status() == ExecStatusType::PGRES_PIPELINE_ABORTED {
            self.has_ended();
        }
        let field = |code: u8| {
            // SAFETY: a field is a C string of the result, or null.
            unsafe {
                let text = pq_sys::PQresultErrorField(result.0, i32::from(code));
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let message = field(b'M').unwrap_or_else(|| "it did not answer".to_owned());
        let code = match result.code() {
            // The end of the node's session, not of this one, whose client would close it.
            Some(
                PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN
                | PgSqlErrorCode::ERRCODE_CRASH_SHUTDOWN
                | PgSqlErrorCode::ERRCODE_CANNOT_CONNECT_NOW,
            ) => PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
            Some(code) => code,
            None => PgSqlErrorCode::ERRCODE_CONNECTION_EXCEPTION,
        };
        let mut text = format!("node {}: {message}", self.node.name());
        if let Some(hint) = field(b'H') {
            text += &format!(" ({hint})");
        }
        raise(code, text)
    }

    /// Raises the error for a message within a transaction that an earlier one has ended.
    fn has_ended(&self) -> ! {
        raise_hint(
            PgSqlErrorCode::ERRCODE_IN_FAILED_SQL_TRANSACTION,
            format!(
                "the transaction that reads node {} has ended with an earlier error",
                self.node.name()
            ),
            "Run ROLLBACK and begin the transaction again: its snapshot of that node is gone.",
        )
    }

    /// What libpq says of the connection.
    fn error_message(&self) -> String {
        // SAFETY: a connection, whatever its state.
        let why = unsafe { CStr::from_ptr(pq_sys::PQerrorMessage(self.conn)) };
        why.to_string_lossy().trim().to_owned()
    }

    /// Raises the error for a connection that is not there. Nothing is sent or waited for in it any more.
    fn lost(&mut self, what: &str) -> ! {
        self.ended = true;
        let why = self.error_message();
        let code = if what.starts_with("could not") {
            PgSqlErrorCode::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION
        } else {
            PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE
        };
        raise_detail(code, format!("{what} node {}", self.node.name()), why)
    }

    /// Ends the transaction of the other node, without waiting. False where the session is of no further use.
    fn end(&mut self) -> bool {
        // SAFETY: a live connection; what is sent does not raise errors.
        unsafe {
            let is_sound = self.connecting.is_none()
                && self.waiting == 0
                && !self.ended
                && pq_sys::PQstatus(self.conn) == ConnStatusType::CONNECTION_OK;
            if is_sound && self.open && self.mode == Mode::Query && self.defer_end() {
                return true;
            }
            is_sound && (!self.open || self.end_transaction()) && pq_sys::PQflush(self.conn) >= 0
        }
    }

    /// Lets the end of the transaction wait for the next one; false where it cannot.
    fn defer_end(&mut self) -> bool {
        // SAFETY: a live connection; what is sent does not raise errors.
        let socket = unsafe {
            let is_plain =
                pq_sys::PQsslInUse(self.conn) == 0 && pq_sys::PQgssEncInUse(self.conn) == 0;
            (is_plain && pq_sys::PQflush(self.conn) == 0).then(|| pq_sys::PQsocket(self.conn))
        };
        self.deferred_end = socket.and_then(DeferredEnd::new);
        self.open = self.deferred_end.is_none();
        !self.open
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Before its socket is closed.
        self.deferred_end = None;
        self.events = None;
        // SAFETY: made in `connect`, freed only here.
        unsafe { pq_sys::PQfinish(self.conn) }
    }
}

/// A result, freed at its end.
struct Received(*mut PGresult);

impl Received {
    /// The error's SQLSTATE, where it is one.
    fn code(&self) -> Option<PgSqlErrorCode> {
        // SAFETY: a field is a C string of the result, or null.
        let text = unsafe {
            let text = pq_sys::PQresultErrorField(self.0, i32::from(b'C'));
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy())
        };
        sqlstate(&text?)
    }

    /// The value of a result of one row with one column, which was asked for in binary.
    fn bytes(&self) -> Vec<u8> {
        // SAFETY: a live result, which has this value.
        unsafe {
            let length = pq_sys::PQgetlength(self.0, 0, 0) as usize;
            let value = pq_sys::PQgetvalue(self.0, 0, 0).cast::<u8>();
            if value.is_null() {
                return Vec::new();
            }
            std::slice::from_raw_parts(value, length).to_vec()
        }
    }

    fn status(&self) -> ExecStatusType {
        // SAFETY: a live result.
        unsafe { pq_sys::PQresultStatus(self.0) }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: freed only here.
        unsafe { pq_sys::PQclear(self.0) };
    }
}

/// The code of an SQLSTATE in text.
fn sqlstate(text: &str) -> Option<PgSqlErrorCode> {
    let bytes: [u8; 5] = text.as_bytes().try_into().ok()?;
    // MAKE_SQLSTATE of PostgreSQL's utils/elog.h: six bits for each character.
    let six = |c: u8| i32::from(c.wrapping_sub(b'0') & 0x3f);
    let code = (0..5).fold(0, |code, n| code | six(bytes[n]) << (6 * n));
    Some(PgSqlErrorCode::from(code))
}
