//! Encoding of whole documents.

mod distributed;
mod local;

use pgquad_reader::{Batch, DEFAULT_GRAPH_POSITION};
use pgquad_term::block::{Sampler, Symbols};
use pgquad_term::TermId;

use super::symbol_tables::Numbered;
use super::{is_distributed, write};
use distributed::DistributedEncoder;
use local::LocalEncoder;

/// No symbol tables are trained from less text.
const MIN_TRAINING_BYTES: usize = 1 << 16;
/// The next look at the symbol tables comes when the text has grown by this factor.
const TRAINING_GROWTH: usize = 8;

/// Whether new symbol tables suit a sample better than those in use: by a twentieth.
fn is_better(sampler: &Sampler, trained: &Symbols, known: &Symbols) -> bool {
    sampler.cost(trained) * 20 < sampler.cost(known) * 19
}

/// The quads of a batch, given the ids of its terms.
pub fn quads(batch: &Batch, ids: &[TermId]) -> Vec<[i64; 4]> {
    let id = |position: u32| match position {
        DEFAULT_GRAPH_POSITION => TermId::DEFAULT_GRAPH.to_i64(),
        position => ids[position as usize].to_i64(),
    };
    batch.quads.iter().map(|quad| quad.map(id)).collect()
}

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

    /// The symbols that new terms are compressed with, where they are compressed in this session and once they have
    /// been chosen.
    pub fn symbols(&self) -> Option<&Numbered> {
        match self {
            Self::Local(encoder) => encoder.symbols(),
            Self::Distributed(_) => None,
        }
    }

    /// Takes the next batch of the document and gives quads as ids. They are of this batch, or of earlier batches whose
    /// terms have got their ids meanwhile. None are lost: the rest comes later, or with [`Self::finish`].
    pub fn encode(&mut self, batch: &Batch) -> Vec<[i64; 4]> {
        match self {
            Self::Local(encoder) => encoder.encode(batch),
            Self::Distributed(encoder) => encoder.encode(batch),
        }
    }

    /// Ends the document: all its terms are in the dictionary now. Gives the quads that are still missing.
    pub fn finish(self) -> Vec<[i64; 4]> {
        match self {
            Self::Local(encoder) => {
                encoder.finish();
                Vec::new()
            }
            Self::Distributed(encoder) => encoder.finish(),
        }
    }
}
