//! Where this process takes connections of other participants: a socket that stays open as long as the settings fit it.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket, Type};

use super::descriptor::Descriptor;
use super::settings::{ports, told_host};
use crate::cluster::query;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    /// What `quad.exchange_host` was when it was opened.
    told: Option<IpAddr>,
    /// The session that asks speaks TLS with this process.
    tls: bool,
    _descriptor: Descriptor,
}

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Where this process takes connections: `quad.exchange_host` or the address at which its client has found it, where it
/// listens in either case, and a port of `quad.exchange_ports`. Listens from the first call on, or anew where the
/// settings have changed.
///
/// # Errors
/// No port can be listened on: why, in words.
pub fn address() -> Result<SocketAddr, String> {
    let told = told_host();
    let fits =
        |l: &&Listener| l.told == told && ports().any(|port| port == 0 || port == l.address.port());
    if let Some(address) =
        LISTENER.with_borrow(|known| known.as_ref().filter(fits).map(|l| l.address))
    {
        return Ok(address);
    }
    LISTENER.take();
    let host = own_host();
    let descriptor = Descriptor::acquire();
    let listening = listen(host);
    let (listener, mut address) = listening.map_err(|error| format!("{host}: {error}"))?;
    if let Some(told) = told {
        address.set_ip(told);
    }
    LISTENER.set(Some(Listener {
        listener,
        address,
        told,
        tls: is_tls(),
        _descriptor: descriptor,
    }));
    Ok(address)
}

/// Calls `body` with the socket, if there is one.
pub fn with_listener<T>(body: impl FnOnce(&TcpListener) -> T) -> Option<T> {
    LISTENER.with_borrow(|known| known.as_ref().map(|own| body(&own.listener)))
}

/// Whether frames to other participants are sealed. They are where the session that asks speaks TLS.
pub fn wants_seals() -> bool {
    LISTENER.with_borrow(|known| known.as_ref().is_some_and(|own| own.tls))
}

fn is_tls() -> bool {
    let rows = query(
        c"SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()",
        |row| row.get::<bool>(1),
    );
    rows.into_iter().flatten().next().unwrap_or(false)
}

fn listen(host: IpAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let mut failed = None;
    for port in ports() {
        match listen_on(SocketAddr::new(host, port)) {
            Ok(listener) => {
                let address = listener.local_addr()?;
                return Ok((listener, address));
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Connections of an earlier process on the port may not have been forgotten yet.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The address of this end of the client's connection; that of the machine itself for a local socket.
fn own_host() -> IpAddr {
    let rows = query(
        c"SELECT pg_catalog.host(pg_catalog.inet_server_addr())",
        |row| row.get::<String>(1),
    );
    let host = rows.into_iter().flatten().next();
    let host = host.and_then(|host| host.parse().ok());
    host.unwrap_or(Ipv4Addr::LOCALHOST.into())
}
