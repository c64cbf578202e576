//! Sessions with the participants of a pushed join. Each participant gets its part of the work, and its messages are
//! taken as they come, in libpq's single-row mode. Flush messages acknowledge them ([`pgquad_cluster::results`]). So
//! the Sync that ends the call is sent behind the last of them.

use super::session::{Mesh, Mode, Session};
use super::{connecting, Received, IDLE};
use crate::cluster::exchange::EventSet;
use crate::cluster::protocol::damaged;
use crate::pg::compat;
use crate::settings::{ExchangeMode, EXCHANGE_MODE};
use crate::term::random_bytes;
use pgquad_cluster::exchange::MESH_BYTES;
use pgquad_cluster::push::{Found, Participant};
use pgquad_cluster::results::Incoming;
use pgquad_cluster::wire::{Damaged, Reader};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};
use pq_sys::ExecStatusType;
use std::ffi::CStr;
use std::time::Instant;

/// The sessions of one join. Dropped before the end, they are closed; the participants then stop.
pub struct Participants {
    sessions: Vec<Session>,
    /// Those from which rows may come.
    running: Vec<bool>,
    /// What has come from each.
    incoming: Vec<Incoming>,
    mesh: [u8; MESH_BYTES],
    /// They are being linked, and the join may be pulled as well.
    may_be_refused: bool,
    /// One of them sees shards at other places.
    moved: bool,
    /// A participant that has given up because another one has: that one knows why.
    given_up: Option<(usize, Received)>,
    /// Their sockets and the latch.
    events: *mut pg_sys::WaitEventSet,
    /// Bytes that have come.
    pub received: u64,
    /// Nanoseconds spent waiting.
    pub waited: u64,
}

/// Two participants that cannot be linked; twice the same one where that one takes no connections at all.
pub struct Unlinked {
    /// The one that has tried.
    pub from: usize,
    /// The one that it cannot reach.
    pub to: usize,
    /// What the network says.
    pub why: String,
}

/// Why participants do not begin.
pub enum Refusal {
    /// They cannot be linked.
    Unlinked(Unlinked),
    /// They do not agree on where shards are, and the join may be pulled as well.
    Moved,
}

/// What participants know of each other before they are linked.
pub struct Meeting {
    /// All of them.
    pub participants: Vec<Participant>,
    /// The number by which they know that they are linked already. It is a new one unless all of them were in the same
    /// query before, and that query has come to its end.
    pub mesh: [u8; MESH_BYTES],
    /// One that takes no connections, and why.
    pub deaf: Option<Unlinked>,
}

impl Participants {
    /// Whether this session has participants of an earlier join on all these groups of nodes.
    pub fn are_there(groups: &[i32]) -> bool {
        IDLE.with_borrow(|idle| {
            let is_there = |group: &i32| {
                let mut of_group = idle.iter().filter(|session| session.group == *group);
                of_group.any(|session| session.mode == Mode::Push)
            };
            groups.iter().all(is_there)
        })
    }

    /// One participant on each of these groups of nodes, under the snapshots of these names where there are some.
    ///
    /// # Errors
    /// A node that no session can be made to, where `quad.exchange_mode` is `auto`.
    pub fn open(groups: &[i32], snapshots: &[String]) -> Result<(Self, Meeting), Unlinked> {
        let sessions = groups.iter().map(|&group| Session::take(group, Mode::Push));
        let mut sessions: Vec<Session> = sessions.collect();
        let is_new = |session: &&mut Session| session.connecting.is_some();
        let mut new: Vec<&mut Session> = sessions.iter_mut().filter(is_new).collect();
        connecting::connect(&mut new);
        let failed = |(n, session): (usize, &Session)| {
            let why = session.connecting.as_ref()?.failed.clone()?;
            let (from, to) = (n, n);
            Some(Unlinked { from, to, why })
        };
        if let Some(failed) = sessions.iter().enumerate().find_map(failed) {
            let there = sessions.into_iter().filter(|s| s.connecting.is_none());
            there.for_each(Session::keep);
            return Err(failed);
        }
        let mut new: Vec<&mut Session> = sessions.iter_mut().filter(is_new).collect();
        connecting::establish(&mut new);
        let mut all = Self {
            sessions,
            running: vec![false; groups.len()],
            incoming: groups.iter().map(|_| Incoming::default()).collect(),
            mesh: [0; MESH_BYTES],
            may_be_refused: false,
            moved: false,
            given_up: None,
            events: std::ptr::null_mut(),
            received: 0,
            waited: 0,
        };
        for (n, session) in all.sessions.iter_mut().enumerate() {
            if let Some(snapshot) = snapshots.get(n) {
                session.import(snapshot);
            }
            session.call(c"participant", None);
            session.request_flush();
            session.flush();
        }
        let mut deaf = None;
        let known =
            all.sessions
                .iter_mut()
                .zip(groups)
                .enumerate()
                .map(|(n, (session, &group))| {
                    let answer = session.receive();
                    // The end of its results.
                    session.next_result();
                    let mut reader = Reader::new(&answer);
                    let listens = reader.u8().unwrap_or_else(|e| damaged(e)) != 0;
                    let mut text = || {
                        let bytes = reader.bytes().unwrap_or_else(|e| damaged(e));
                        String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| damaged(Damaged))
                    };
                    let (address, snapshot) = (text(), text());
                    if !listens {
                        let (from, to, why) = (n, n, address.clone());
                        deaf = Some(Unlinked { from, to, why });
                    }
                    Participant {
                        group,
                        name: session.node.name(),
                        address,
                        snapshot,
                    }
                });
        let participants = known.collect();
        let first = all.sessions.first().and_then(|session| session.mesh);
        let count = all.sessions.len();
        let mesh = first
            .filter(|_| all.sessions.iter().all(|session| session.mesh == first))
            .filter(|mesh| mesh.participants == count)
            .map(|mesh| mesh.number);
        // Until this query has come to its end.
        all.sessions
            .iter_mut()
            .for_each(|session| session.mesh = None);
        all.mesh = mesh.unwrap_or_else(random_bytes);
        let mesh = all.mesh;
        let meeting = Meeting {
            participants,
            mesh,
            deaf,
        };
        Ok((all, meeting))
    }

    /// Gives each participant its work.
    pub fn start(&mut self, messages: &[Vec<u8>]) {
        for (session, message) in self.sessions.iter_mut().zip(messages) {
            session.call(c"push", Some(message));
            // SAFETY: a live connection in pipeline mode, whose only command is this one.
            if unsafe { pq_sys::PQsetSingleRowMode(session.conn) } != 1 {
                session.lost("lost the connection to");
            }
        }
        self.sessions.iter_mut().for_each(Session::flush);
        self.running.fill(true);
        self.may_be_refused = EXCHANGE_MODE.get() == ExchangeMode::Auto;
        // SAFETY: the set lives as long as this value; the sockets stay the same.
        unsafe {
            let count = self.sessions.len() as i32 + 2;
            self.events = compat::wait_event_set(count);
            let add = |event, socket, latch| {
                pg_sys::AddWaitEventToSet(self.events, event, socket, latch, std::ptr::null_mut());
            };
            let none = std::ptr::null_mut();
            add(pg_sys::WL_LATCH_SET, -1, pg_sys::MyLatch);
            add(pg_sys::WL_EXIT_ON_PM_DEATH, -1, none);
            for session in &self.sessions {
                let socket = pq_sys::PQsocket(session.conn);
                add(pg_sys::WL_SOCKET_READABLE, socket, none);
            }
        }
    }

    /// Waits until each participant has its links to all others. Nothing else is taken from any of them meanwhile.
    ///
    /// # Errors
    /// Two of them cannot be linked, or one sees shards at other places.
    pub fn linked(&mut self) -> Result<(), Refusal> {
        let mut silent: Vec<usize> = (0..self.sessions.len()).collect();
        let (mut apart, mut left_alone) = (None, None);
        while !silent.is_empty() {
            let mut still = Vec::new();
            for from in silent {
                let Some(found) = self.take(from) else {
                    if self.running[from] {
                        still.push(from);
                    }
                    continue;
                };
                match found {
                    Found::Linked => {}
                    Found::Unlinked { peer, why, closed } => {
                        // The first of two participants connects to the other one. So it is the first that does not
                        // reach the other, whichever of them tells.
                        let peer = peer as usize;
                        let (from, to) = (from.min(peer), from.max(peer));
                        let unlinked = Unlinked { from, to, why };
                        if closed {
                            left_alone.get_or_insert(unlinked);
                        } else {
                            apart.get_or_insert(unlinked);
                        }
                    }
                    _ => damaged(Damaged),
                }
            }
            // Whoever sees shards elsewhere takes no connections any more.
            if self.moved {
                return Err(Refusal::Moved);
            }
            if let Some(unlinked) = apart {
                return Err(Refusal::Unlinked(unlinked));
            }
            silent = still;
            self.wait_for(&silent);
        }
        self.may_be_refused = false;
        left_alone.map_or(Ok(()), |unlinked| Err(Refusal::Unlinked(unlinked)))
    }

    /// Waits until something has come from one of these, and takes it from the kernel.
    fn wait_for(&mut self, which: &[usize]) {
        if which.is_empty() {
            return;
        }
        let since = Instant::now();
        let mut events = EventSet::new(which.len());
        for &n in which {
            // SAFETY: a live connection.
            let socket = unsafe { pq_sys::PQsocket(self.sessions[n].conn) };
            events.add(socket, pg_sys::WL_SOCKET_READABLE);
        }
        events.wait(-1);
        for &n in which {
            let session = &mut self.sessions[n];
            // SAFETY: a live connection; what is not there yet is not waited for.
            if unsafe { pq_sys::PQconsumeInput(session.conn) } == 0 {
                session.lost("lost the connection to");
            }
        }
        self.waited += since.elapsed().as_nanos() as u64;
    }

    /// The next message of any participant; `None` when all are done. Waits.
    pub fn next_message(&mut self) -> Option<(usize, Found)> {
        loop {
            for n in 0..self.sessions.len() {
                if let Some(found) = self.take(n) {
                    return Some((n, found));
                }
            }
            if !self.running.contains(&true) {
                if let Some((n, result)) = self.given_up.take() {
                    self.sessions[n].fail(&result);
                }
                return None;
            }
            self.wait();
        }
    }

    /// A message that has come from a participant.
    fn take(&mut self, n: usize) -> Option<Found> {
        let session = &mut self.sessions[n];
        while self.running[n] {
            // SAFETY: a live connection.
            if unsafe { pq_sys::PQisBusy(session.conn) } == 1 {
                return None;
            }
            let Some(result) = session.next_result() else {
                continue;
            };
            match result.status() {
                ExecStatusType::PGRES_SINGLE_TUPLE => {
                    let piece = result.bytes();
                    self.received += piece.len() as u64;
                    if let Some(found) = session.take_piece(&mut self.incoming[n], piece) {
                        return Some(found);
                    }
                }
                ExecStatusType::PGRES_TUPLES_OK => {}
                ExecStatusType::PGRES_PIPELINE_SYNC => {
                    session.is_over();
                    self.running[n] = false;
                }
                _ if result.code() == Some(PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION) => {
                    session.ended = true;
                    self.given_up.get_or_insert((n, result));
                    self.running[n] = false;
                }
                _ if self.may_be_refused
                    && result.code() == Some(PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE) =>
                {
                    session.end_call();
                    self.moved = true;
                }
                _ => session.fail(&result),
            }
        }
        None
    }

    /// Waits until something has come, and takes it from the kernel.
    fn wait(&mut self) {
        let since = Instant::now();
        let mut event = pg_sys::WaitEvent::default();
        // SAFETY: a live set; the latch of this process.
        unsafe {
            pg_sys::WaitEventSetWait(self.events, -1, &mut event, 1, pg_sys::PG_WAIT_EXTENSION);
            if event.events & pg_sys::WL_LATCH_SET != 0 {
                pg_sys::ResetLatch(pg_sys::MyLatch);
                check_for_interrupts!();
            }
        }
        // The latch and the death of the postmaster come first in the set.
        let ready = usize::try_from(event.pos - 2).ok();
        if let Some(session) = ready.and_then(|n| self.sessions.get_mut(n)) {
            // SAFETY: a live connection.
            if unsafe { pq_sys::PQconsumeInput(session.conn) } == 0 {
                session.lost("lost the connection to");
            }
        }
        self.waited += since.elapsed().as_nanos() as u64;
    }

    /// Ends the join: those that are still at work are cancelled. The sessions are kept for the next one, but for those
    /// that cannot be told, and for those that have given up: their links are gone. Closing a session ends its
    /// participant.
    pub fn finish(mut self) {
        for (session, running) in self.sessions.iter_mut().zip(&self.running) {
            session.ended |= *running && !session.cancel();
        }
        let incoming = std::mem::take(&mut self.incoming);
        let sessions = std::mem::take(&mut self.sessions);
        let is_over = !self.events.is_null() && !self.running.contains(&true);
        let participants = sessions.len();
        let keeps_links = is_over && !sessions.iter().any(|session| session.ended);
        let states = self.running.iter().zip(incoming);
        for (mut session, (running, incoming)) in sessions.into_iter().zip(states) {
            if session.ended {
                continue;
            }
            // The transaction of one that has got no work is open still.
            if session.open && !running {
                session.end_call();
            }
            if *running || session.syncs > 0 {
                session.drain(incoming);
            }
            session.mesh = keeps_links.then_some(Mesh {
                number: self.mesh,
                participants,
            });
            session.keep();
        }
    }
}

impl Drop for Participants {
    fn drop(&mut self) {
        if !self.events.is_null() {
            // SAFETY: made by `start`, freed only here.
            unsafe { pg_sys::FreeWaitEventSet(self.events) };
        }
    }
}

impl Session {
    /// Sends a call that was prepared, with at most one argument, its result in binary.
    fn call(&mut self, name: &CStr, argument: Option<&[u8]>) {
        let values: Vec<_> = argument.iter().map(|a| a.as_ptr().cast()).collect();
        let lengths: Vec<i32> = argument.iter().map(|a| a.len() as i32).collect();
        // SAFETY: a live connection in pipeline mode; the argument is copied.
        let sent = unsafe {
            pq_sys::PQsendQueryPrepared(
                self.conn,
                name.as_ptr(),
                values.len() as i32,
                values.as_ptr(),
                lengths.as_ptr(),
                [1].as_ptr(),
                1,
            ) == 1
        };
        if !sent {
            self.lost("lost the connection to");
        }
        self.open = true;
        self.waiting += 1;
    }

    /// Takes a piece, and acknowledges it. Gives the message that is complete by it; behind the last one, it ends the
    /// call.
    fn take_piece(&mut self, incoming: &mut Incoming, piece: Vec<u8>) -> Option<Found> {
        let message = incoming.take(piece);
        let due = incoming.due();
        for _ in 0..due {
            self.request_flush();
        }
        let found = message.map(|message| Found::decode(&message).unwrap_or_else(|e| damaged(e)));
        if found.as_ref().is_some_and(Found::is_last) {
            self.end_call();
        } else if due > 0 {
            self.flush();
        }
        found
    }

    /// Sends a Flush message.
    fn request_flush(&mut self) {
        // SAFETY: a live connection in pipeline mode.
        if unsafe { pq_sys::PQsendFlushRequest(self.conn) } != 1 {
            self.lost("lost the connection to");
        }
    }

    /// Asks the other node to end the transaction.
    fn end_call(&mut self) {
        if !self.sync() {
            self.lost("lost the connection to");
        }
        self.flush();
    }

    /// The synchronisation point behind the last command has come: the other node's transaction is over.
    fn is_over(&mut self) {
        self.waiting = 0;
        self.syncs = self.syncs.saturating_sub(1);
        self.open = false;
    }

    /// Asks the other node to cancel what it does. False where it cannot be told.
    fn cancel(&mut self) -> bool {
        let mut why = [0; 256];
        // SAFETY: a live connection; the buffer outlives the call.
        unsafe {
            let cancel = pq_sys::PQgetCancel(self.conn);
            let sent = !cancel.is_null()
                && pq_sys::PQcancel(cancel, why.as_mut_ptr(), why.len() as i32) == 1;
            pq_sys::PQfreeCancel(cancel);
            sent
        }
    }

    /// Takes what comes until the other node's transaction is over, whatever it is.
    fn drain(&mut self, mut incoming: Incoming) {
        loop {
            let result = self.next_result();
            match result.as_ref().map(Received::status) {
                Some(ExecStatusType::PGRES_PIPELINE_SYNC) => return self.is_over(),
                Some(ExecStatusType::PGRES_SINGLE_TUPLE) => {
                    let piece = result.map_or_else(Vec::new, |result| result.bytes());
                    self.take_piece(&mut incoming, piece);
                }
                // An error is the end of a call whose last message has not come.
                Some(ExecStatusType::PGRES_FATAL_ERROR) if self.syncs == 0 => self.end_call(),
                // SAFETY: a live connection.
                None if unsafe { pq_sys::PQstatus(self.conn) }
                    != pq_sys::ConnStatusType::CONNECTION_OK =>
                {
                    self.lost("lost the connection to");
                }
                _ => {}
            }
        }
    }
}
