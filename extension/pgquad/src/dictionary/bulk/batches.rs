//! Quads of batches of a document as ids.

use pgquad_reader::{Batch, DEFAULT_GRAPH_POSITION};
use pgquad_term::TermId;

/// The quads of a batch, given the ids of its terms.
pub fn quads(batch: &Batch, ids: &[TermId]) -> Vec<[i64; 4]> {
    let id = |position: u32| match position {
        DEFAULT_GRAPH_POSITION => TermId::DEFAULT_GRAPH.to_i64(),
        position => ids[position as usize].to_i64(),
    };
    batch.quads.iter().map(|quad| quad.map(id)).collect()
}
