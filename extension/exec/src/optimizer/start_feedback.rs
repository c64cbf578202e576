//! Start feedback: the first pattern that the look-ahead (`optimizer/lookahead.rs`) has chosen for a plan. To look at the
//! alternatives takes reads, so that it is not done in every run.

use crate::cost::{FEEDBACK_LIFETIME, MAX_PLANS_WITH_BUILDS};
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Counts of a plan's patterns that are so many times as high or as low as before are other ones.
const OTHER_COUNTS: f64 = 2.0;

/// A choice.
struct Start {
    pattern: usize,
    /// The quads of each pattern when it was made.
    counts: Vec<(usize, f64)>,
    since: Instant,
}

/// First patterns by a hash of the plan.
#[derive(Default)]
pub(crate) struct StartFeedback {
    plans: FxHashMap<u64, Start>,
}

impl StartFeedback {
    /// The first pattern of a plan whose patterns have about so many quads.
    pub fn get(&self, plan: u64, counts: &[(usize, f64)]) -> Option<usize> {
        let start = self.plans.get(&plan)?;
        let is_alike = |&(pattern, count): &(usize, f64)| {
            let mut before = start.counts.iter();
            before.any(|&(other, before)| {
                other == pattern && count <= before * OTHER_COUNTS && before <= count * OTHER_COUNTS
            })
        };
        let is_young = start.since.elapsed() < FEEDBACK_LIFETIME;
        (is_young && counts.iter().all(is_alike)).then_some(start.pattern)
    }

    /// Remembers a choice.
    pub fn add(&mut self, plan: u64, pattern: usize, counts: &[(usize, f64)]) {
        if self.plans.len() >= MAX_PLANS_WITH_BUILDS {
            self.plans.clear();
        }
        let start = Start {
            pattern,
            counts: counts.to_vec(),
            since: Instant::now(),
        };
        self.plans.insert(plan, start);
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
    }
}
