//! Start feedback: the first patterns that the look-ahead (`optimizer/lookahead.rs`) has chosen for a plan. To look at
//! the alternatives takes reads, so that it is not done in every run.

use crate::cost::{FEEDBACK_LIFETIME, MAX_PLANS_REMEMBERED};
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Counts of a plan's patterns that are so many times as high or as low as before are other ones.
const OTHER_COUNTS: f64 = 2.0;
/// Choices that are remembered for a plan: its constants differ from run to run.
const MAX_STARTS_OF_PLAN: usize = 8;

/// A choice.
struct Start {
    pattern: usize,
    /// The quads of each pattern when it was made.
    counts: Vec<(usize, f64)>,
    since: Instant,
}

impl Start {
    fn is_young(&self) -> bool {
        self.since.elapsed() < FEEDBACK_LIFETIME
    }

    /// Whether it was made for about the same counts.
    fn is_for(&self, counts: &[(usize, f64)]) -> bool {
        counts.iter().all(|&(pattern, count)| {
            let mut before = self.counts.iter();
            before.any(|&(other, before)| {
                other == pattern && count <= before * OTHER_COUNTS && before <= count * OTHER_COUNTS
            })
        })
    }
}

/// First patterns by a hash of the plan, the latest last.
#[derive(Default)]
pub(crate) struct StartFeedback {
    plans: FxHashMap<u64, Vec<Start>>,
}

impl StartFeedback {
    /// The first pattern of a plan whose patterns have about so many quads.
    pub fn get(&self, plan: u64, counts: &[(usize, f64)]) -> Option<usize> {
        let starts = self.plans.get(&plan)?;
        let start = starts.iter().rev().find(|start| start.is_for(counts));
        start
            .filter(|start| start.is_young())
            .map(|start| start.pattern)
    }

    /// Remembers a choice.
    pub fn add(&mut self, plan: u64, pattern: usize, counts: &[(usize, f64)]) {
        if self.plans.len() >= MAX_PLANS_REMEMBERED && !self.plans.contains_key(&plan) {
            self.plans.clear();
        }
        let starts = self.plans.entry(plan).or_default();
        starts.retain(|start| start.is_young() && !start.is_for(counts));
        if starts.len() >= MAX_STARTS_OF_PLAN {
            starts.remove(0);
        }
        starts.push(Start {
            pattern,
            counts: counts.to_vec(),
            since: Instant::now(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_holds_for_counts_like_those_before() {
        let mut feedback = StartFeedback::default();
        feedback.add(7, 2, &[(1, 100.0), (2, 900.0)]);
        assert_eq!(feedback.get(7, &[(2, 1000.0), (1, 60.0)]), Some(2));
        assert_eq!(feedback.get(7, &[(2, 1000.0), (1, 40.0)]), None);
        assert_eq!(feedback.get(7, &[(3, 1000.0)]), None);
        assert_eq!(feedback.get(8, &[(2, 1000.0), (1, 60.0)]), None);
        feedback.add(7, 1, &[(1, 10.0), (2, 900.0)]);
        assert_eq!(feedback.get(7, &[(2, 1000.0), (1, 60.0)]), Some(2));
        assert_eq!(feedback.get(7, &[(2, 1000.0), (1, 12.0)]), Some(1));
        for n in 0..20 {
            feedback.add(7, 1, &[(1, 4.0_f64.powi(n)), (2, 1e9)]);
        }
        assert_eq!(feedback.plans[&7].len(), MAX_STARTS_OF_PLAN);
    }
}
