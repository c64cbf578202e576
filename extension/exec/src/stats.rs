//! What the steps of a join have cost, for EXPLAIN.

use crate::source::Source;
use pgquad_cluster::Traffic;

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
    /// Batches joined by hash with quads in memory.
    pub hashed: u64,
    /// Batches whose keys were merged with one range.
    pub merged: u64,
    /// Batches joined with those of other patterns as a star.
    pub starred: u64,
    /// Most bytes of quads in memory.
    pub memory: u64,
    /// Distinct keys probed.
    pub keys: u64,
    /// Key ranges read.
    pub probes: u64,
    /// Rows that came out.
    pub rows: u64,
    /// Rows given to other participants before it.
    pub dealt: u64,
    /// Time in nanoseconds, if the source has a clock.
    pub time: u64,
    /// Pages found in memory, if the source counts them.
    pub hit: u64,
    /// Pages read.
    pub read: u64,
    /// What went over the wire.
    pub traffic: Traffic,
}

impl StepStats {
    /// The figures as numbers, for a message.
    pub fn numbers(&self) -> [u64; 19] {
        let Traffic {
            messages,
            sent,
            received,
            waited,
        } = self.traffic;
        [
            u64::from(self.turn),
            self.order as u64,
            self.estimate as u64,
            self.batches,
            self.hashed,
            self.merged,
            self.starred,
            self.memory,
            self.keys,
            self.probes,
            self.rows,
            self.dealt,
            self.time,
            self.hit,
            self.read,
            messages,
            sent,
            received,
            waited,
        ]
    }

    /// Adds the figures of another participant, as [`Self::numbers`] gives them.
    pub fn add_numbers(&mut self, numbers: &[u64; 19]) {
        let [turn, order, estimate, batches, hashed, merged, starred, memory, rest @ ..] = numbers;
        let [keys, probes, rows, dealt, time, hit, read, messages, sent, received, waited] = rest;
        if *turn > 0 && (self.turn == 0 || u64::from(self.turn) > *turn) {
            self.turn = *turn as u32;
        }
        if *turn > 0 {
            self.order = *order as usize & 3;
        }
        self.estimate += *estimate as f64;
        self.memory += memory;
        for (sum, more) in [
            (&mut self.batches, batches),
            (&mut self.hashed, hashed),
            (&mut self.merged, merged),
            (&mut self.starred, starred),
            (&mut self.keys, keys),
            (&mut self.probes, probes),
            (&mut self.rows, rows),
            (&mut self.dealt, dealt),
            (&mut self.time, time),
            (&mut self.hit, hit),
            (&mut self.read, read),
        ] {
            *sum += more;
        }
        self.traffic += Traffic {
            messages: *messages,
            sent: *sent,
            received: *received,
            waited: *waited,
        };
    }
}

/// When some work began, and after how many pages.
pub(crate) struct Moment {
    clock: u64,
    pages: (u64, u64),
    traffic: Traffic,
}

impl Moment {
    /// This one.
    pub fn now<S: Source>(source: &S) -> Self {
        Self {
            clock: source.clock(),
            pages: source.pages(),
            traffic: source.traffic(),
        }
    }

    /// Adds what has been used since.
    pub fn add_since<S: Source>(self, source: &S, stats: &mut StepStats) {
        let pages = source.pages();
        stats.time += source.clock() - self.clock;
        stats.hit += pages.0 - self.pages.0;
        stats.read += pages.1 - self.pages.1;
        stats.traffic += source.traffic() - self.traffic;
    }
}
