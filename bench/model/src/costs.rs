//! What things cost in the model.

/// Nanoseconds of work and of ways; measured on the machine of `bench/results/cluster-1m.md`, but for the networks.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// From one node to another.
    pub latency: f64,
    /// For each byte, of a node's way out and way in each.
    pub byte: f64,
    /// Work of the end that sends a message, and of the one that takes it: executor, protocol, system calls.
    pub message: f64,
    /// Work for each key range that is looked up.
    pub probe: f64,
    /// Work for each quad read or row made.
    pub row: f64,
    /// Work of a node to take part in a pushed join: it plans it, opens its shards, and answers.
    pub participant: f64,
    /// Processors that all nodes share; `None`: each has one for the query.
    pub shared_processors: Option<f64>,
}

impl Costs {
    /// Nodes of one machine with two processors, on loopback: 80 us for an empty round trip. Measured (1 million
    /// triples, 2026-11): joins with 500 to 7,000 rows, and pushed ones of a few rows.
    pub const LOOPBACK: Self = Self {
        latency: 10_000.0,
        byte: 0.3,
        message: 15_000.0,
        probe: 500.0,
        row: 100.0,
        participant: 700_000.0,
        shared_processors: Some(2.0),
    };
    /// Machines on a switch, 10 Gbit/s.
    pub const RACK: Self = Self {
        latency: 50_000.0,
        byte: 0.8,
        shared_processors: None,
        ..Self::LOOPBACK
    };
    /// The same with a millisecond on each way.
    pub const FAR: Self = Self {
        latency: 1_000_000.0,
        ..Self::RACK
    };

    /// Work of reading.
    pub fn reading(&self, probes: usize, rows: usize) -> f64 {
        probes as f64 * self.probe + rows as f64 * self.row
    }
}

/// What a query comes to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Messages on all links, answers too.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Nanoseconds until the last row is there.
    pub elapsed: f64,
    /// Nanoseconds of work of all nodes.
    pub work: f64,
    /// Nanoseconds of work of the node with the most.
    pub most_work: f64,
    /// Bytes on the links of the node that was asked.
    pub asker_bytes: u64,
    /// Rows of the answer: the same however it is computed.
    pub rows: u64,
}

impl Outcome {
    /// With another query after it.
    pub fn then(self, next: Self) -> Self {
        Self {
            messages: self.messages + next.messages,
            bytes: self.bytes + next.bytes,
            elapsed: self.elapsed + next.elapsed,
            work: self.work + next.work,
            most_work: self.most_work + next.most_work,
            asker_bytes: self.asker_bytes + next.asker_bytes,
            rows: self.rows + next.rows,
        }
    }

    /// So many times.
    pub fn times(self, factor: u64) -> Self {
        let by = factor as f64;
        Self {
            messages: self.messages * factor,
            bytes: self.bytes * factor,
            elapsed: self.elapsed * by,
            work: self.work * by,
            most_work: self.most_work * by,
            asker_bytes: self.asker_bytes * factor,
            rows: self.rows * factor,
        }
    }

    /// No sooner than the shared processors have done all work.
    pub fn on(mut self, costs: &Costs) -> Self {
        if let Some(processors) = costs.shared_processors {
            self.elapsed = self.elapsed.max(self.work / processors);
        }
        self
    }
}
