//! What a participant has found, on its way to the node that asks: only so much at once, as
//! [`pgquad_cluster::results`] explains. Whoever asks acknowledges by Flush messages of PostgreSQL's protocol, which
//! come between the call and its Sync.

use crate::cluster::exchange::{EventSet, Links};
use crate::pg::compat;
use crate::pg::error::raise;
use crate::pg::ffi::{flush_to_client, take_from_client, FromClient};
use pgquad_cluster::exchange::{Error, Exchange, Step, Work};
use pgquad_cluster::results::Outgoing;
use pgrx::{pg_sys, PgSqlErrorCode};

/// The type of a Flush message.
const FLUSH: u8 = b'H';

/// The results of a participant.
#[derive(Default)]
pub struct Results(Outgoing);

impl Results {
    /// Adds a message.
    pub fn put(&mut self, message: Vec<u8>) {
        self.0.put(message);
    }

    /// Whether nothing is left to be sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next piece, to be sent.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        self.0.next_piece()
    }

    /// Waits until a piece may be sent. A join that is not over goes on tending its links meanwhile.
    ///
    /// # Errors
    /// A peer of the join.
    pub fn await_room<W: Work>(
        &mut self,
        mut exchange: Option<&mut Exchange<Links, W>>,
    ) -> Result<(), Error<W::Error>> {
        if self.0.has_room() {
            return Ok(());
        }
        // What PostgreSQL has collected is to be acknowledged, too.
        flush_to_client();
        loop {
            self.take_acknowledgements();
            if self.0.has_room() {
                return Ok(());
            }
            match &mut exchange {
                Some(exchange) => {
                    if let Step::Wait(writable) = exchange.tend()? {
                        exchange.transport_mut().wait_with_client(&writable)?;
                    }
                }
                None => wait_for_client(),
            }
        }
    }

    /// Takes the acknowledgements that have come. Does not wait.
    fn take_acknowledgements(&mut self) {
        loop {
            let taken = match take_from_client(false) {
                FromClient::Nothing => return,
                FromClient::End => raise(
                    PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
                    "the node that asks has closed the connection",
                ),
                FromClient::Message(kind, message) => {
                    // SAFETY: allocated for this message, which nobody reads.
                    unsafe { pg_sys::pfree(message.data.cast()) };
                    kind == FLUSH && self.0.acknowledge()
                }
            };
            if !taken {
                raise(
                    PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
                    "an unexpected message of the node that asks",
                );
            }
        }
    }
}

/// Waits until the client has sent something.
fn wait_for_client() {
    let mut events = EventSet::new(1);
    // SAFETY: whoever calls for a participant is a client.
    events.add(
        unsafe { compat::client_socket() },
        pg_sys::WL_SOCKET_READABLE,
    );
    events.wait(-1);
}
