//! The links between participants of a pushed join, over TCP: the crate's exchange in PostgreSQL processes. See README.md beside this file.

mod descriptor;
mod event_set;
mod links;
mod listener;
mod mesh;
mod settings;
mod spill;

pub use links::{raise_error, raise_unreachable, Links};
pub use listener::address;
pub use mesh::{join, Meeting, Peer};
pub use settings::{batch_bytes, init};
pub use spill::spill_file;
