//! Encoding of whole documents.

mod batches;
mod collected;
mod distributed;
mod local;
mod training;

use pgquad_btree::Quad;
use pgquad_reader::Batch;

use super::symbol_tables::Numbered;
use super::{is_distributed, write};
pub use batches::quads;
use distributed::DistributedEncoder;
use local::LocalEncoder;

/// Gives ids to the terms of one document.
pub enum BulkEncoder {
    /// In a dictionary that is not distributed. Other transactions cannot add terms until this one ends.
    Local(Box<LocalEncoder>),
    /// In a distributed dictionary, which keeps the terms whatever becomes of the transaction.
    Distributed(Box<DistributedEncoder>),
}

impl BulkEncoder {
    /// Begins a document; about `memory` bytes may be used, half of them for the terms seen.
    pub fn new(memory: usize) -> Self {
        write::check_writable();
        if is_distributed() {
            Self::Distributed(Box::new(DistributedEncoder::new(memory)))
        } else {
            Self::Local(Box::new(LocalEncoder::new(memory)))
        }
    }

    /// The symbols that new terms are compressed with, once they have been chosen.
    pub fn symbols(&self) -> Option<&Numbered> {
        match self {
            Self::Local(encoder) => encoder.symbols(),
            Self::Distributed(encoder) => encoder.symbols(),
        }
    }

    /// Takes the next batch of the document and calls `each` with quads as ids. They are of this batch, or of earlier
    /// batches whose terms have got their ids meanwhile. None are lost: the rest comes later, or with [`Self::finish`].
    pub fn encode(&mut self, batch: Batch, mut each: impl FnMut(&[Quad])) {
        match self {
            Self::Local(encoder) => each(&encoder.encode(&batch)),
            Self::Distributed(encoder) => encoder.encode(batch, each),
        }
    }

    /// Takes the answers of other nodes that have come: a node holds locks until then.
    pub fn take_answers(&mut self) {
        match self {
            Self::Local(_) => {}
            Self::Distributed(encoder) => encoder.take_answers(),
        }
    }

    /// Ends the document: all its terms are in the dictionary now. Calls `each` with the quads that are still missing.
    pub fn finish(self, each: impl FnMut(&[Quad])) {
        match self {
            Self::Local(encoder) => encoder.finish(),
            Self::Distributed(encoder) => encoder.finish(each),
        }
    }
}
