//! Loading of RDF documents, and export.
//!
//! * `file`: `quad.load`, a file of the server, and `quad.load_text`
//! * `stdin`: `COPY quad.load_stdin FROM STDIN`, a document that the client sends
//! * `export`: `quad.export`
//!
//! Threads read and parse (crate `pgquad_reader`); the backend gives ids to the terms and writes. One document is
//! loaded by one command: an error anywhere leaves nothing behind.

mod export;
mod file;
mod loader;
mod progress;
mod report;
mod rows;
mod stdin;

pub use file::load_as;
pub use loader::{Loader, Request};
pub use progress::{is_load_of_one_snapshot, Progress};
pub use report::{raise_error, Document};

/// Callbacks; called once from `_PG_init`.
pub fn init() {
    stdin::init();
}
