//! A session to another node: what it is for, and its state.

use std::time::Instant;

use pgquad_cluster::exchange::MESH_BYTES;
use pgquad_cluster::Polling;
use pgrx::pg_sys;
use pq_sys::PGconn;

use super::deferred_end::DeferredEnd;
use crate::cluster::counters;
use crate::cluster::exchange::EventSet;
use crate::cluster::nodes::Node;

/// What a session is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All messages of a scope are one read-only transaction.
    Query,
    /// Each message is a transaction, about new terms.
    Autonomous,
    /// The same, about anything else.
    Command,
    /// The node takes part in a join: [`super::Participants`].
    Push,
}

impl Mode {
    /// What its messages are counted as.
    pub(super) fn kind(self) -> counters::Kind {
        match self {
            Self::Query | Self::Command => counters::Kind::Pull,
            Self::Autonomous => counters::Kind::Dictionary,
            Self::Push => counters::Kind::Push,
        }
    }
}

/// A libpq connection.
pub(super) struct Session {
    pub(super) conn: *mut PGconn,
    /// Its socket and the latch, to be waited for, once it is established.
    pub(super) events: Option<EventSet>,
    pub(super) group: i32,
    pub(super) node: Node,
    pub(super) role: pg_sys::Oid,
    pub(super) mode: Mode,
    /// What its messages are counted as at the moment.
    pub(super) kind: counters::Kind,
    /// Messages whose answers have not been taken.
    pub(super) waiting: usize,
    /// Whether some of the answer to the last message may be in libpq's buffer already. Only in mode [`Mode::Query`],
    /// else [`Arrival::Read`].
    pub(super) arrival: Arrival,
    /// The number of the last message among those of the scope.
    pub(super) last_message: u64,
    /// So many of them were asked for by statements that have failed: their answers are dropped.
    pub(super) abandoned: usize,
    /// Synchronisation points that have been sent and not been seen.
    pub(super) syncs: usize,
    /// A message has been sent since the last synchronisation point.
    pub(super) open: bool,
    /// The end of the last transaction, where the other node has not got it yet.
    pub(super) deferred_end: Option<DeferredEnd>,
    /// Imports of snapshots whose results have not been taken.
    pub(super) imports: usize,
    /// The other node has ended the call in which it takes messages.
    pub(super) ended: bool,
    /// How long its answers take.
    pub(super) polling: Polling,
    /// Where it is not established yet.
    pub(super) connecting: Option<Connecting>,
    /// As a participant: those that it is linked with, [`super::Participants`].
    pub(super) mesh: Option<Mesh>,
}

/// The links between participants that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mesh {
    /// What they know them by.
    pub(super) number: [u8; MESH_BYTES],
    /// How many they are. Links between fewer of them are others, under another number.
    pub(super) participants: usize,
}

/// Where an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// Nothing has been taken from the socket since the message was sent.
    Expected,
    /// The same, and the socket has something.
    Begun,
    /// Some of it may have been taken from the socket, which is not slept for before that has been looked through.
    Read,
}

/// A session that is not established yet.
pub(super) struct Connecting {
    pub(super) since: Instant,
    /// It is over a Unix-domain socket; where that fails, TCP is next.
    pub(super) by_unix_socket: bool,
    /// What libpq waits for of the socket; nothing once the connection stands.
    pub(super) events: u32,
    /// Why there will be no connection, where whoever asked for it does without.
    pub(super) failed: Option<String>,
    /// The snapshot to begin with.
    pub(super) snapshot: Option<String>,
    /// What is to be sent then.
    pub(super) requests: Vec<Vec<u8>>,
}
