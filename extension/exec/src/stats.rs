//! What the steps of a join have cost, for EXPLAIN.

/// What one pattern has cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepStats {
    /// When it was first used (1 = first of all); 0 = never.
    pub turn: u32,
    /// Number of the order read, by the last batch.
    pub order: usize,
    /// Quads expected.
    pub estimate: f64,
    /// Batches of rows that went in.
    pub batches: u64,
    /// Distinct keys probed.
    pub keys: u64,
    /// Key ranges read.
    pub probes: u64,
    /// Rows that came out.
    pub rows: u64,
    /// Time in nanoseconds, if the source has a clock.
    pub time: u64,
    /// Pages found in memory, if the source counts them.
    pub hit: u64,
    /// Pages read.
    pub read: u64,
}
