//! The links of a participant during one query.

use std::convert::Infallible;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::time::Instant;

use pgquad_cluster::exchange::{has_rows, Error, Lost, Transport};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::event_set::EventSet;
use super::peers::{keep, Connected, Mesh, Peer};
use crate::cluster::counters::{self, Kind};
use crate::pg::compat;
use crate::pg::error::{raise, raise_detail};

/// The transport of a query. Dropped without [`Self::keep`], it closes the links.
pub struct Links {
    mesh: Mesh,
    query: u64,
    /// Whom to ask next for frames.
    turn: usize,
    /// What is waited for; made anew when other sockets are.
    events: Option<EventSet>,
    /// By participant, and at the end of the client: what is waited for, and the place in the set.
    watched: Vec<(u32, i32)>,
    /// By participant: since when its link takes nothing.
    blocked: Vec<Option<Instant>>,
    began: Instant,
}

impl Links {
    pub(super) fn new(mesh: Mesh, query: u64) -> Self {
        let watched = vec![(0, 0); mesh.peers.len() + 1];
        let blocked = vec![None; mesh.peers.len()];
        Self {
            mesh,
            query,
            turn: 0,
            events: None,
            watched,
            blocked,
            began: Instant::now(),
        }
    }

    /// All participants.
    pub fn peers(&self) -> &[Peer] {
        &self.mesh.peers
    }

    /// Keeps the links for the next query; this one has come to its end, and has no links from now on.
    pub fn keep(&mut self) {
        self.events = None;
        keep(std::mem::take(&mut self.mesh));
    }

    /// The link to a participant.
    fn link(&mut self, peer: usize) -> Result<&mut Connected, Lost> {
        let link = self.mesh.links.get_mut(peer).and_then(Option::as_mut);
        link.ok_or_else(|| Lost {
            peer,
            why: "the link is closed".to_owned(),
            closed: false,
        })
    }

    /// As [`Transport::wait`], and for something of this session's client.
    pub fn wait_with_client(&mut self, writable: &[usize]) -> Result<(), Lost> {
        self.wait_for(writable, pg_sys::WL_SOCKET_READABLE)
    }

    fn wait_for(&mut self, writable: &[usize], of_client: u32) -> Result<(), Lost> {
        let mut wanted = self.wanted(writable);
        wanted.push(of_client);
        let _wait = counters::wait(Kind::Push);
        self.watch(&wanted).wait(-1);
        for (peer, connected) in self.mesh.links.iter_mut().enumerate() {
            if let Some(Connected { link, .. }) = connected {
                link.flush().map_err(lost(peer))?;
            }
        }
        Ok(())
    }

    /// What is to be waited for with each link.
    fn wanted(&self, writable: &[usize]) -> Vec<u32> {
        let wanted = |(peer, connected): (usize, &Option<Connected>)| {
            let Some(Connected { link, .. }) = connected else {
                return 0;
            };
            let read = match link.is_held() {
                true => 0,
                false => pg_sys::WL_SOCKET_READABLE,
            };
            let write = match link.is_flushed() && !writable.contains(&peer) {
                true => 0,
                false => pg_sys::WL_SOCKET_WRITEABLE,
            };
            read | write
        };
        self.mesh.links.iter().enumerate().map(wanted).collect()
    }

    /// Brings the set of events up to date.
    fn watch(&mut self, wanted: &[u32]) -> &mut EventSet {
        let same = |(&now, &(before, _)): (&u32, &(u32, i32))| (now == 0) == (before == 0);
        if !wanted.iter().zip(&self.watched).all(same) {
            self.events = None;
        }
        let is_new = self.events.is_none();
        let set = self
            .events
            .get_or_insert_with(|| EventSet::new(wanted.len()));
        let of_link = |link: &Option<Connected>| Some(link.as_ref()?.link.stream().as_raw_fd());
        // SAFETY: what is waited for of a client is so in a session that has one.
        let client = std::iter::once_with(|| Some(unsafe { compat::client_socket() }));
        let sockets = self.mesh.links.iter().map(of_link).chain(client);
        for ((socket, &now), (before, place)) in sockets.zip(wanted).zip(&mut self.watched) {
            if let (Some(socket), true) = (socket, now != 0) {
                if is_new {
                    *place = set.add(socket, now);
                } else if *before != now {
                    set.modify(*place, now);
                }
            }
            *before = now;
        }
        set
    }
}

fn lost(peer: usize) -> impl Fn(io::Error) -> Lost {
    move |error| Lost::of(peer, &error)
}

impl Transport for Links {
    fn peers(&self) -> usize {
        self.mesh.peers.len()
    }

    fn me(&self) -> usize {
        self.mesh.me
    }

    fn takes(&mut self, to: usize) -> Result<bool, Lost> {
        let takes = self.link(to)?.link.flush().map_err(lost(to))?;
        let blocked = &mut self.blocked[to];
        if !takes {
            blocked.get_or_insert_with(Instant::now);
        } else if let Some(since) = blocked.take() {
            counters::blocked(Kind::Push, since.elapsed());
        }
        Ok(takes)
    }

    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost> {
        counters::sent(Kind::Push, frame.len());
        counters::batches(Kind::Push, usize::from(has_rows(&frame)));
        self.link(to)?.link.send(frame).map_err(lost(to))
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost> {
        check_for_interrupts!();
        let (peers, query) = (self.mesh.links.len(), self.query);
        for _ in 0..peers {
            let from = self.turn % peers;
            let Some(Connected { link, .. }) = &mut self.mesh.links[from] else {
                self.turn = from + 1;
                continue;
            };
            if let Some(frame) = link.receive_of(query).map_err(lost(from))? {
                counters::received(Kind::Push, frame.len());
                return Ok(Some((from, frame)));
            }
            self.turn = from + 1;
        }
        Ok(None)
    }

    fn wait(&mut self, writable: &[usize]) -> Result<(), Lost> {
        self.wait_for(writable, 0)
    }

    fn close(&mut self, peer: usize) {
        if let Some(Connected { link, .. }) = self.mesh.links.get_mut(peer).and_then(Option::take) {
            self.events = None;
            // A peer that is gone already needs no word.
            let _ = link.stream().shutdown(Shutdown::Both);
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

/// Raises the error that has ended an exchange, with the names of both nodes. It is an operator's intervention where
/// the reason is with another participant: that one's error says more.
pub fn raise_error(me: usize, peers: &[Peer], error: Error<Infallible>) -> ! {
    let name = |peer: usize| peers.get(peer).map_or("?", |peer| peer.name.as_str());
    let own = name(me);
    match error {
        Error::Lost(lost) => raise_detail(
            match lost.closed {
                true => PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION,
                false => PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
            },
            format!("node {own} lost the connection to node {}", name(lost.peer)),
            lost.why,
        ),
        Error::GivenUp { by, why } => raise_detail(
            PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION,
            format!("node {} has given up its part of the query", name(by)),
            why,
        ),
        Error::Damaged { by } => raise(
            PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
            format!("a message of node {} to node {own} is damaged", name(by)),
        ),
        Error::Work(never) => match never {},
    }
}
