//! Settings of a pipeline: sizes of batches, and memory.

/// Sizes of batches.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Rows that the first batch of a step hands on; later ones grow.
    pub first: usize,
    /// Most rows of a batch.
    pub most: usize,
    /// Batches from this size on may be joined otherwise than by looking up each of their keys.
    pub bulk_from: usize,
    /// Quads of a pattern from which on it is worth to see what filters leave of them.
    pub range_pushdown_from: usize,
    /// Bytes for quads held in memory, to be joined by hash.
    pub memory: usize,
}
