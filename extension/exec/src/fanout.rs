//! What earlier probes have found: rows per probe of a predicate by the columns that were bound. Hints only, kept across queries.

use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// What a figure is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Probed {
    /// The table, as the source names it.
    pub table: u64,
    /// The predicate, if it is a constant.
    pub predicate: Option<u64>,
    /// Columns bound by constants (bit `n` = column `n`).
    pub constant: u8,
    /// Columns bound by variables.
    pub bound: u8,
    /// Filters have left only a part to look at.
    pub narrowed: bool,
}

struct Seen {
    probes: f64,
    rows: f64,
    since: Instant,
}

/// Rows per probe, learnt from probes. Figures are forgotten after a while, for tables change.
#[derive(Default)]
pub struct Fanouts {
    seen: FxHashMap<Probed, Seen>,
}

/// Older figures are measured anew.
const FRESH: Duration = Duration::from_secs(20);
/// More figures than any workload has predicates; beyond it all are forgotten.
const MOST: usize = 20_000;
/// Old probes lose weight from here on.
const MEMORY: f64 = 100_000.0;

impl Fanouts {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn get(&self, what: &Probed) -> Option<f64> {
        let seen = self.seen.get(what)?;
        (seen.since.elapsed() < FRESH).then(|| seen.rows / seen.probes)
    }

    pub(crate) fn add(&mut self, what: Probed, probes: usize, rows: usize) {
        if probes == 0 {
            return;
        }
        if self.seen.len() >= MOST {
            self.seen.clear();
        }
        let (probes, rows) = (probes as f64, rows as f64);
        let seen = self.seen.entry(what).or_insert_with(|| Seen {
            probes: 0.0,
            rows: 0.0,
            since: Instant::now(),
        });
        if seen.since.elapsed() >= FRESH || seen.probes > MEMORY {
            // New figures outweigh old ones soon, without a jump.
            let keep = 1.0 / seen.probes.max(1.0);
            seen.probes *= keep;
            seen.rows *= keep;
            seen.since = Instant::now();
        }
        seen.probes += probes;
        seen.rows += rows;
    }
}
