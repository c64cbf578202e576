//! The end, noticed without polling: see "The end" in README.md.

/// Frames of rows that a participant has sent to and received from each of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames sent, by receiver.
    pub sent: Vec<u64>,
    /// Frames received, by sender.
    pub received: Vec<u64>,
}

impl Counts {
    /// Nothing, among so many.
    pub fn new(peers: usize) -> Self {
        Self {
            sent: vec![0; peers],
            received: vec![0; peers],
        }
    }
}

/// What participant 0 knows: the latest report of each.
pub struct Ending {
    reports: Vec<Option<Counts>>,
}

impl Ending {
    /// Nobody has reported.
    pub fn new(peers: usize) -> Self {
        Self {
            reports: vec![None; peers],
        }
    }

    /// Notes the report of a participant that has nothing to do.
    pub fn note(&mut self, from: usize, counts: Counts) {
        self.reports[from] = Some(counts);
    }

    /// Whether everybody has reported, and all channels agree: what was sent has been received.
    pub fn is_over(&self) -> bool {
        let Some(reports) = self
            .reports
            .iter()
            .map(Option::as_ref)
            .collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        let agree = |from: usize, to: usize| reports[from].sent[to] == reports[to].received[from];
        let all = 0..reports.len();
        all.clone()
            .all(|from| all.clone().all(|to| agree(from, to)))
    }
}
