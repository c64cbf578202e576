//! What the exchange has cost one participant.

/// One link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerStats {
    /// Frames of rows sent.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest_message: u64,
    /// Rows in them.
    pub rows: u64,
    /// Frames of rows received.
    pub received_messages: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Times that rows had to wait for the link to take them.
    pub blocked_writes: u64,
    /// Nanoseconds from the first try until the link took them.
    pub blocked: u64,
    /// Size of batches in bytes at the end: what it was set to or has adapted to.
    pub batch_bytes: u64,
}

/// What was sent in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateStats {
    /// Rows.
    pub rows: u64,
    /// Batches: a frame may have one for each state.
    pub batches: u64,
    /// Bytes, packed.
    pub bytes: u64,
}

/// All of a participant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// By participant; the own entry stays empty.
    pub peers: Vec<PeerStats>,
    /// What was sent, by state.
    pub states: Vec<(Vec<u8>, StateStats)>,
    /// Nanoseconds in which there was nothing to do but to wait for peers.
    pub idle: u64,
    /// Nanoseconds in which there was work, but a link that had to take rows first did not.
    pub stalled: u64,
    /// Most bytes of rows that waited to be sent.
    pub most_dealt: u64,
    /// Most bytes of received rows that waited in memory, packed.
    pub most_held: u64,
    /// Bytes of received rows that were written to a file.
    pub spilled: u64,
    /// Reports of having nothing to do.
    pub reports: u64,
}
