//! How the participants of a query come to have links: each connects to those after it and accepts those before it, all
//! at once.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pgquad_cluster::exchange::{Ends, Greeting, Link, Lost, MESH_BYTES};
use pgrx::pg_sys;
use socket2::{Domain, Socket, TcpKeepalive, Type};

use super::descriptor::Descriptor;
use super::event_set::EventSet;
use super::links::Links;
use super::listener::{wants_seals, with_listener};
use super::peers::{take_kept, Connected, Mesh, Peer};
use crate::cluster::secret;
use crate::settings;
use crate::term::random_bytes;

/// Most connections that have not shown who they are, beyond those that are expected. Further ones wait in the kernel.
const MAX_STRANGERS: usize = 32;

/// What a participant is told about the others.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// A random number for these participants. It is a new one whenever one of them is a new process, or a query has
    /// not come to its end.
    pub mesh: [u8; MESH_BYTES],
    /// The number of this participant.
    pub me: usize,
    /// All participants.
    pub peers: Vec<Peer>,
    /// The number of the query, greater than that of any before.
    pub query: u64,
    /// How long the participants try to be linked.
    pub patience: Duration,
}

/// The links for a query: those that were kept, or new ones. Waits until all participants are linked.
///
/// # Errors
/// A participant that cannot be reached.
pub fn join(meeting: Meeting) -> Result<Links, Lost> {
    let mesh = match take_kept(&meeting.mesh, meeting.me, &meeting.peers) {
        Some(mesh) => mesh,
        None => Joining::new(&meeting).run()?,
    };
    Ok(Links::new(mesh, meeting.query))
}

/// A link that begins.
enum Begun {
    /// A connection is being made to a participant.
    Connecting {
        peer: usize,
        socket: Socket,
        descriptor: Descriptor,
    },
    /// The ends show each other who they are; `peer` is known to the end that has connected.
    Greeting {
        peer: Option<usize>,
        link: Box<Link<TcpStream>>,
        greeting: Greeting,
        descriptor: Descriptor,
    },
}

/// What has become of a link that begins.
enum Advanced {
    Waits(Begun),
    Linked(usize, Connected),
    /// A connection that is none of a participant's.
    Dropped,
}

/// The links of a mesh, while they are made.
struct Joining<'a> {
    meeting: &'a Meeting,
    secret: Vec<u8>,
    begun: Vec<Begun>,
    links: Vec<Option<Connected>>,
}

impl<'a> Joining<'a> {
    fn new(meeting: &'a Meeting) -> Self {
        Self {
            meeting,
            secret: secret::exchange_key(),
            begun: Vec::new(),
            links: meeting.peers.iter().map(|_| None).collect(),
        }
    }

    fn run(mut self) -> Result<Mesh, Lost> {
        for peer in self.meeting.me + 1..self.meeting.peers.len() {
            let descriptor = Descriptor::acquire();
            let socket =
                connect(self.meeting.peers[peer].address).map_err(|e| Lost::of(peer, &e))?;
            self.begun.push(Begun::Connecting {
                peer,
                socket,
                descriptor,
            });
        }
        let patience = self.meeting.patience;
        let since = Instant::now();
        loop {
            with_listener(|listener| self.accept(listener));
            self.advance_all()?;
            let Some(missing) = self.missing() else {
                break;
            };
            let Some(left) = patience.checked_sub(since.elapsed()) else {
                let why = format!("timeout after {} ms", patience.as_millis());
                let (peer, closed) = (missing, false);
                return Err(Lost { peer, why, closed });
            };
            self.wait(left);
        }
        Ok(Mesh {
            id: self.meeting.mesh,
            me: self.meeting.me,
            peers: self.meeting.peers.clone(),
            links: self.links,
        })
    }

    /// The first participant that there is no link to.
    fn missing(&self) -> Option<usize> {
        let mut others = (0..self.links.len()).filter(|&peer| peer != self.meeting.me);
        others.find(|&peer| self.links[peer].is_none())
    }

    /// Accepts the connections that wait. One that ends before it is accepted is no error.
    fn accept(&mut self, listener: &TcpListener) {
        while self.begun.len() < self.links.len() + MAX_STRANGERS {
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let descriptor = Descriptor::acquire();
            let socket = Socket::from(stream);
            if prepare(&socket).is_err() {
                continue;
            }
            let Meeting { mesh, me, .. } = *self.meeting;
            self.begun.push(Begun::Greeting {
                peer: None,
                link: Box::new(Link::new(socket.into())),
                greeting: Greeting::accept(
                    &self.secret,
                    mesh,
                    me as u32,
                    wants_seals(),
                    random_bytes(),
                ),
                descriptor,
            });
        }
    }

    fn advance_all(&mut self) -> Result<(), Lost> {
        for begun in std::mem::take(&mut self.begun) {
            match self.advance(begun)? {
                Advanced::Waits(begun) => self.begun.push(begun),
                Advanced::Linked(peer, connected) => self.links[peer] = Some(connected),
                Advanced::Dropped => {}
            }
        }
        Ok(())
    }

    fn advance(&self, begun: Begun) -> Result<Advanced, Lost> {
        match begun {
            Begun::Connecting {
                peer,
                socket,
                descriptor,
            } => {
                if !is_connected(&socket).map_err(|error| Lost::of(peer, &error))? {
                    return Ok(Advanced::Waits(Begun::Connecting {
                        peer,
                        socket,
                        descriptor,
                    }));
                }
                let ends = Ends {
                    mesh: self.meeting.mesh,
                    from: self.meeting.me as u32,
                    to: peer as u32,
                    sealed: wants_seals(),
                };
                let mut link = Box::new(Link::new(socket.into()));
                let greeting = Greeting::connect(&mut link, &self.secret, ends, random_bytes());
                Ok(Advanced::Waits(Begun::Greeting {
                    peer: Some(peer),
                    link,
                    greeting: greeting.map_err(|error| Lost::of(peer, &error))?,
                    descriptor,
                }))
            }
            Begun::Greeting {
                peer,
                mut link,
                mut greeting,
                descriptor,
            } => match greeting.advance(&mut link) {
                Ok(None) => Ok(Advanced::Waits(Begun::Greeting {
                    peer,
                    link,
                    greeting,
                    descriptor,
                })),
                Ok(Some(ends)) => {
                    let peer = peer.unwrap_or(ends.from as usize);
                    let expected = peer < self.links.len()
                        && peer != self.meeting.me
                        && self.links[peer].is_none();
                    if !expected {
                        return Ok(Advanced::Dropped);
                    }
                    let connected = Connected {
                        link: *link,
                        _descriptor: descriptor,
                    };
                    Ok(Advanced::Linked(peer, connected))
                }
                // Who connects to this port may be anybody.
                Err(_) if peer.is_none() => Ok(Advanced::Dropped),
                Err(refused) => {
                    let why = refused.to_string();
                    let (peer, closed) = (peer.unwrap_or_default(), false);
                    Err(Lost { peer, why, closed })
                }
            },
        }
    }

    /// Waits until one of the connections goes on, or another comes.
    fn wait(&self, left: Duration) {
        let mut set = EventSet::new(self.begun.len() + 1);
        with_listener(|listener| set.add(listener.as_raw_fd(), pg_sys::WL_SOCKET_READABLE));
        for begun in &self.begun {
            match begun {
                Begun::Connecting { socket, .. } => {
                    set.add(socket.as_raw_fd(), pg_sys::WL_SOCKET_WRITEABLE);
                }
                Begun::Greeting { link, .. } => {
                    let write = match link.is_flushed() {
                        true => 0,
                        false => pg_sys::WL_SOCKET_WRITEABLE,
                    };
                    set.add(
                        link.stream().as_raw_fd(),
                        pg_sys::WL_SOCKET_READABLE | write,
                    );
                }
            }
        }
        set.wait(left.as_millis() as i64 + 1);
    }
}

/// Begins to connect.
fn connect(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    prepare(&socket)?;
    match socket.connect(&address.into()) {
        Err(error)
            if error.raw_os_error() != Some(libc::EINPROGRESS)
                && error.kind() != ErrorKind::WouldBlock =>
        {
            Err(error)
        }
        _ => Ok(socket),
    }
}

/// Whether a connection that was begun stands.
fn is_connected(socket: &Socket) -> io::Result<bool> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets what all sockets have: they do not block, send at once, and notice a peer that is silent for
/// `quad.node_timeout`, with probes from a third of that time on.
fn prepare(socket: &Socket) -> io::Result<()> {
    let patience = settings::node_timeout();
    let keepalive = TcpKeepalive::new()
        .with_time((patience / 3).max(Duration::from_secs(1)))
        .with_interval((patience / 9).max(Duration::from_secs(1)))
        .with_retries(6);
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(patience))?;
    socket.set_tcp_keepalive(&keepalive)
}
