//! Establishing sessions to other nodes. All connections that are needed are made at once, since each node takes some
//! milliseconds to start a process.

use std::ffi::{CStr, CString};
use std::time::{Duration, Instant};

use pgquad_cluster::results::RECEIVE_BUFFER_BYTES;
use pgquad_cluster::{message, Polling};
use pgrx::{pg_sys, PgSqlErrorCode};
use pq_sys::{ConnStatusType, PGconn, PostgresPollingStatusType};

use super::session::{Arrival, Connecting, Mode, Session};
use super::unix_socket;
use crate::catalog::names::role_name;
use crate::cluster::citus;
use crate::cluster::exchange::EventSet;
use crate::cluster::nodes::{self, as_superuser, Node};
use crate::cluster::secret;
use crate::pg::error::raise;
use crate::settings::{ExchangeMode, EXCHANGE_MODE, NODE_CONNECT_TIMEOUT, NODE_TIMEOUT};

/// Keepalive probes without an answer after which a connection counts as lost.
const KEEPALIVE_PROBES: i32 = 6;
/// Milliseconds after which a node that works on an answer looks whether its asker is still there.
const CHECK_INTERVAL_MS: i32 = 1_000;
/// Milliseconds after which connections that are being made are looked at, whatever their sockets say.
const LOOK_MS: u64 = 1_000;

/// Waits until all these connections stand.
pub(super) fn connect(sessions: &mut [&mut Session]) {
    loop {
        let mut sockets = EventSet::new(sessions.len());
        let (mut count, mut patience) = (0, LOOK_MS);
        for session in sessions.iter_mut() {
            if let Some((socket, events, left)) = session.awaited() {
                sockets.add(socket, events);
                count += 1;
                patience = patience.min(left);
            }
        }
        if count == 0 {
            return;
        }
        sockets.wait(patience as i64);
        sessions.iter_mut().for_each(|session| session.go_on());
    }
}

/// Establishes sessions: connected, the asker known to the other nodes, what was to be sent on its way.
pub(super) fn establish(sessions: &mut [&mut Session]) {
    if sessions.is_empty() {
        return;
    }
    connect(sessions);
    for session in sessions.iter_mut() {
        session.watch();
        session.greet();
    }
    for session in sessions.iter_mut() {
        if session.mode == Mode::Query {
            session.is_served();
        }
        for _ in 0..session.waiting {
            session.take_result();
        }
        if matches!(session.mode, Mode::Autonomous | Mode::Command) {
            // What comes next is an answer: see `Scope::receive_first`.
            session.take_commit();
        }
        if let Some(Connecting {
            snapshot, requests, ..
        }) = session.connecting.take()
        {
            if let Some(name) = snapshot {
                session.import(&name);
            }
            let requests: Vec<&[u8]> = requests.iter().map(Vec::as_slice).collect();
            session.send(&requests);
        }
    }
}

impl Session {
    /// Begins to connect.
    pub(super) fn begin(node: Node, role: pg_sys::Oid, mode: Mode) -> Self {
        let socket = unix_socket::directory(&node, role, mode);
        Self {
            conn: start(&conninfo(&node, socket.as_deref(), role, mode)),
            events: None,
            group: node.group,
            node,
            role,
            mode,
            kind: mode.kind(),
            waiting: 0,
            abandoned: 0,
            syncs: 0,
            open: false,
            deferred_end: None,
            imports: 0,
            ended: false,
            polling: Polling::default(),
            arrival: Arrival::Read,
            last_message: 0,
            connecting: Some(Connecting {
                since: Instant::now(),
                by_unix_socket: socket.is_some(),
                events: pg_sys::WL_SOCKET_WRITEABLE,
                failed: None,
                snapshot: None,
                requests: Vec::new(),
            }),
            mesh: None,
        }
    }

    /// Whether it has given up for this reason: a participant of a join that may be pulled as well.
    fn gives_up(&mut self, why: String) -> bool {
        let gives_up = self.mode == Mode::Push && EXCHANGE_MODE.get() == ExchangeMode::Auto;
        if let Some(connecting) = self.connecting.as_mut().filter(|_| gives_up) {
            connecting.failed = Some(why);
            connecting.events = 0;
        }
        gives_up
    }

    /// Begins to connect over TCP where connecting over a Unix-domain socket has failed; else gives up, or raises the
    /// error.
    fn connect_otherwise(&mut self) {
        let Some(connecting) = self.connecting.as_mut().filter(|c| c.by_unix_socket) else {
            if self.gives_up(self.error_message()) {
                return;
            }
            self.lost("could not connect to");
        };
        connecting.by_unix_socket = false;
        connecting.events = pg_sys::WL_SOCKET_WRITEABLE;
        unix_socket::refused(&self.node, self.role);
        let failed = std::mem::replace(&mut self.conn, std::ptr::null_mut());
        // SAFETY: made in `start`, and known to nobody else from now on.
        unsafe { pq_sys::PQfinish(failed) };
        self.conn = start(&conninfo(&self.node, None, self.role, self.mode));
    }

    /// What to wait for until the connection stands: the socket, the events it is to be ready for, and the milliseconds
    /// at most.
    fn awaited(&mut self) -> Option<(i32, u32, u64)> {
        self.connecting.as_ref().filter(|c| c.events != 0)?;
        // SAFETY: a connection that is being made.
        while unsafe { pq_sys::PQstatus(self.conn) } == ConnStatusType::CONNECTION_BAD {
            self.connect_otherwise();
            self.connecting.as_ref().filter(|c| c.failed.is_none())?;
        }
        let connecting = self.connecting.as_ref()?;
        let (events, since) = (connecting.events, connecting.since);
        let limit = NODE_CONNECT_TIMEOUT.get().max(1) as u64;
        let left = Duration::from_millis(limit).saturating_sub(since.elapsed());
        if left.is_zero() {
            if self.gives_up(format!("timeout after {limit} ms")) {
                return None;
            }
            raise(
                PgSqlErrorCode::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
                format!(
                    "could not connect to node {}: timeout after {limit} ms",
                    self.node.name()
                ),
            );
        }
        // SAFETY: as above.
        let socket = unsafe { pq_sys::PQsocket(self.conn) };
        Some((socket, events, left.as_millis() as u64 + 1))
    }

    /// Goes on with connecting, as far as that goes without waiting.
    fn go_on(&mut self) {
        let Some(connecting) = self.connecting.as_mut().filter(|c| c.events != 0) else {
            return;
        };
        let wanted = match connecting.events {
            pg_sys::WL_SOCKET_READABLE => libc::POLLIN,
            _ => libc::POLLOUT,
        };
        if !self.is_ready(wanted) {
            return;
        }
        // SAFETY: a connection that is being made, whose socket is ready for what libpq wants of it.
        let events = match unsafe { pq_sys::PQconnectPoll(self.conn) } {
            PostgresPollingStatusType::PGRES_POLLING_OK => 0,
            PostgresPollingStatusType::PGRES_POLLING_READING => pg_sys::WL_SOCKET_READABLE,
            PostgresPollingStatusType::PGRES_POLLING_WRITING => pg_sys::WL_SOCKET_WRITEABLE,
            _ => return self.connect_otherwise(),
        };
        if let Some(connecting) = &mut self.connecting {
            connecting.events = events;
        }
    }

    /// Prepares to wait for the socket.
    fn watch(&mut self) {
        let mut events = EventSet::new(1);
        // SAFETY: a live connection, whose socket stays the same.
        let socket = unsafe { pq_sys::PQsocket(self.conn) };
        events.add(socket, pg_sys::WL_SOCKET_READABLE);
        self.events = Some(events);
    }

    /// Says who speaks, and begins or prepares the calls; does not wait for the answers.
    fn greet(&mut self) {
        match self.mode {
            Mode::Query => self.call_serve(),
            Mode::Push => {
                self.widen_buffer();
                self.say_hello();
                self.prepare(c"participant", c"SELECT quad.cluster_participant()", 0);
                let push = c"SELECT quad.cluster_push($1::pg_catalog.bytea)";
                self.prepare(c"push", push, 1);
                self.sync();
            }
            Mode::Autonomous | Mode::Command => {
                self.say_hello();
                let answer = c"SELECT quad.cluster_answer($1::pg_catalog.bytea)";
                self.prepare(c"answer", answer, 1);
                self.sync();
            }
        }
        self.flush();
    }

    /// Gives the socket room for all that a participant may have under way. Linux begins with 64 kB.
    fn widen_buffer(&self) {
        let bytes = RECEIVE_BUFFER_BYTES as core::ffi::c_int;
        // Where the system allows less, a client that takes rows slowly may lose the join after `quad.node_timeout`.
        // SAFETY: the socket of a live connection; the value outlives the call.
        unsafe {
            libc::setsockopt(
                pq_sys::PQsocket(self.conn),
                libc::SOL_SOCKET,
                libc::SO_RCVBUF,
                (&raw const bytes).cast(),
                size_of_val(&bytes) as libc::socklen_t,
            );
        }
    }

    fn say_hello(&mut self) {
        let token = secret::token(&role_name(self.role));
        // SAFETY: a live connection; parameters outlive the calls, which copy them.
        let sent = unsafe {
            let version = CString::new(message::VERSION.to_string()).unwrap_or_default();
            let values = [version.as_ptr(), token.as_ptr().cast()];
            let lengths = [0, token.len() as i32];
            pq_sys::PQsetnonblocking(self.conn, 1) == 0
                && pq_sys::PQenterPipelineMode(self.conn) == 1
                && pq_sys::PQsendQueryParams(
                    self.conn,
                    c"SELECT quad.cluster_hello($1::pg_catalog.int4, $2::pg_catalog.bytea)"
                        .as_ptr(),
                    2,
                    std::ptr::null(),
                    values.as_ptr(),
                    lengths.as_ptr(),
                    [0, 1].as_ptr(),
                    1,
                ) == 1
        };
        if !sent {
            self.lost("lost the connection to");
        }
        self.waiting = 1;
    }

    /// Prepares a call of so many arguments, so that the other node parses and plans it once.
    fn prepare(&mut self, name: &CStr, sql: &CStr, arguments: i32) {
        let types = std::ptr::null();
        // SAFETY: a live connection in pipeline mode; the texts are copied.
        let sent = unsafe {
            pq_sys::PQsendPrepare(self.conn, name.as_ptr(), sql.as_ptr(), arguments, types) == 1
        };
        if !sent {
            self.lost("lost the connection to");
        }
        self.waiting += 1;
    }
}

/// Begins to connect.
fn start(info: &str) -> *mut PGconn {
    let info = CString::new(info).unwrap_or_default();
    // SAFETY: the result is freed by `Session::drop`.
    let conn = unsafe { pq_sys::PQconnectStart(info.as_ptr()) };
    if conn.is_null() {
        raise(
            PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
            "no memory for a connection to another node",
        );
    }
    conn
}

/// The connection string, as Citus makes it: `citus.node_conninfo` and `pg_dist_authinfo` have the last word. With
/// `socket` the host is the directory of a Unix-domain socket.
fn conninfo(node: &Node, socket: Option<&str>, role: pg_sys::Oid, mode: Mode) -> String {
    let role = role_name(role);
    // SAFETY: this session's database; the name is a copy in the current memory context.
    let database = unsafe {
        let name = pg_sys::get_database_name(pg_sys::MyDatabaseId);
        CStr::from_ptr(name).to_string_lossy().into_owned()
    };
    let mut info = String::new();
    let mut add = |key: &str, value: &str| {
        let value = value.replace('\\', "\\\\").replace('\'', "\\'");
        info += &format!("{key}='{value}' ");
    };
    add("host", socket.unwrap_or(&node.host));
    add("port", &node.port.to_string());
    add("dbname", &database);
    add("user", &role);
    add("application_name", "pgquad");
    add("client_encoding", "UTF8");
    // The session is that of the role which logs in, whatever it becomes by default.
    let mut options = String::from("-c jit=off -c role=none");
    if mode == Mode::Push {
        // A participant whose asker has gone stops soon. Its call lasts as long as the statement of the asker, whose
        // limits count.
        options += " -c search_path=pg_catalog -c client_connection_check_interval=500 \
                     -c statement_timeout=0 -c idle_session_timeout=0";
    }
    if mode == Mode::Autonomous {
        // Whatever the role has by default.
        options += " -c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off";
    } else {
        // Snapshots are imported without BEGIN, which PostgreSQL warns of.
        options += " -c client_min_messages=error";
        options += " -c default_transaction_isolation=repeatable\\ read -c default_transaction_read_only=on";
    }
    // Each end waits a third of the time without a word, and sends probes for the rest of it. So a node whose asker is
    // gone without a word keeps no transaction open. One that works for an asker that has gone away stops.
    let lost_after = NODE_TIMEOUT.get();
    let seconds = (lost_after / 1000).max(3);
    let (idle, interval) = (seconds / 3, (seconds / 9).max(1));
    options += &format!(
        " -c tcp_keepalives_idle={idle} -c tcp_keepalives_interval={interval} -c tcp_keepalives_count={KEEPALIVE_PROBES} \
         -c tcp_user_timeout={lost_after} -c client_connection_check_interval={CHECK_INTERVAL_MS}"
    );
    add("options", &options);
    add("tcp_user_timeout", &lost_after.to_string());
    add("keepalives_idle", &idle.to_string());
    add("keepalives_interval", &interval.to_string());
    add("keepalives_count", &KEEPALIVE_PROBES.to_string());
    // Only superusers may see it.
    let common = as_superuser(|| citus::setting(c"citus.node_conninfo"));
    info += &common.unwrap_or_default().to_string_lossy();
    info.push(' ');
    info += &nodes::authinfo(node, &role).unwrap_or_default();
    info
}
