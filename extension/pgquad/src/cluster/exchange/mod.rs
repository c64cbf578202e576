//! The links between participants of a pushed join, over TCP: the crate's exchange in PostgreSQL processes. See
//! README.md beside this file.

mod descriptor;
mod event_set;
mod links;
mod listener;
mod mesh;
mod peers;
mod settings;
mod spill;
mod unreachable;

pub use descriptor::Descriptor;
pub use event_set::{is_ready, EventSet, Woken};
pub use links::{raise_error, Links};
pub use listener::address;
pub use mesh::{join, Meeting};
pub use peers::Peer;
pub use settings::{batch_bytes, min_quads};
pub use spill::spill_file;
pub use unreachable::{remember, remembered, UNREACHABLE_NODES};
