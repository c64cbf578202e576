//! Reads RDF documents into batches of quads: decompression, parsing on several threads, terms encoded and hashed once
//! per batch. Knows nothing of PostgreSQL.
//!
//! [`Pipeline`] does the work on threads of its own and hands out [`Batch`]es in document order. N-Triples and N-Quads
//! are cut into chunks at line ends and parsed in parallel; the other formats are parsed by one thread.

mod batch;
mod chunk;
mod error;
mod feed;
mod format;
mod json;
mod lines;
mod pipeline;
mod source;
mod stream;
mod transcode;
mod xml;

pub use batch::{Batch, BatchTerm, DEFAULT_GRAPH_POSITION};
pub use error::{ErrorKind, ReadError};
pub use feed::{feed, Feed, FeedReader};
pub use format::Format;
pub use pipeline::{Options, Pipeline, Step};
pub use source::Source;
pub use xml::{XmlReader, NO_LANGUAGE};

/// Checks that `iri` is an absolute IRI.
pub fn check_iri(iri: &str) -> Result<(), oxiri::IriParseError> {
    oxiri::Iri::parse(iri).map(drop)
}

/// Bytes that a pipeline with `threads` parsers holds at most, beside what a single line or token longer than a chunk
/// takes.
pub const fn memory(threads: usize) -> usize {
    // Each chunk in flight: its bytes, the batch made of it, and the table of its terms.
    (2 * threads + 2) * 3 * chunk::CHUNK_BYTES
}
