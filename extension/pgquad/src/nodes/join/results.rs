//! What a participant has found, on its way to the node that asks: only so much at once, as
//! [`pgquad_cluster::results`] explains. Whoever asks acknowledges by Flush messages of PostgreSQL's protocol, which
//! come between the call and its Sync.

use crate::cluster::exchange::{EventSet, Links};
use crate::pg::compat;
use crate::pg::error::raise;
use crate::pg::ffi::{flush_to_client, take_from_client, FromClient, FLUSH};
use pgquad_cluster::exchange::{Error, Exchange, Step, Work};
use pgquad_cluster::results::Outgoing;
use pgrx::{pg_sys, PgSqlErrorCode};

/// Waits until a piece of the results may be sent. A join that is not over goes on tending its links meanwhile.
///
/// # Errors
/// A peer of the join.
pub fn await_room<W: Work>(
    results: &mut Outgoing,
    mut exchange: Option<&mut Exchange<Links, W>>,
) -> Result<(), Error<W::Error>> {
    if results.has_room() {
        return Ok(());
    }
    // What PostgreSQL has collected is to be acknowledged, too.
    flush_to_client();
    loop {
        take_acknowledgements(results);
        if results.has_room() {
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
fn take_acknowledgements(results: &mut Outgoing) {
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
                kind == FLUSH && results.acknowledge()
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
