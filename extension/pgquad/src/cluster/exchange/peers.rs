//! The participants of a query and the links between them, which are kept from query to query.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpStream};

use pgquad_cluster::exchange::{Link, MESH_BYTES};

use super::descriptor::Descriptor;

/// A participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// How messages name its node.
    pub name: String,
    /// Where it takes connections.
    pub address: SocketAddr,
}

/// A link to another participant.
pub struct Connected {
    pub link: Link<TcpStream>,
    /// Given back with the link.
    pub _descriptor: Descriptor,
}

/// Links to all others.
#[derive(Default)]
pub struct Mesh {
    pub id: [u8; MESH_BYTES],
    pub me: usize,
    pub peers: Vec<Peer>,
    /// By participant; none for this one.
    pub links: Vec<Option<Connected>>,
}

thread_local! {
    /// The links of the last query that came to its end.
    static IDLE_MESH: RefCell<Option<Mesh>> = const { RefCell::new(None) };
}

/// Keeps links for the next query.
pub fn keep(mesh: Mesh) {
    IDLE_MESH.set(Some(mesh));
}

/// The links that were kept, where they are those of this mesh.
pub fn take_kept(id: &[u8; MESH_BYTES], me: usize, peers: &[Peer]) -> Option<Mesh> {
    let kept = IDLE_MESH.take();
    kept.filter(|mesh| mesh.id == *id && mesh.me == me && mesh.peers == peers)
}
