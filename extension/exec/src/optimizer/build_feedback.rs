//! Build feedback: the hash build sides that earlier runs of the same plan have read.
//!
//! Which tables a run makes shows only as its batches grow. It is mostly what the last run of the plan has made, so
//! their quads are asked for with the first message to other nodes (`optimizer/prefetch.rs`). Where they are not used
//! after all, that shows, too.

use crate::cost::{MAX_PLANS_REMEMBERED, MAX_PREFETCHED_COUNTED_QUADS, MAX_PREFETCHED_QUADS};
use crate::operators::hash_build::is_counted;
use rustc_hash::FxHashMap;

/// How the quads of a hash build side were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BuildRead {
    /// The step of the pattern.
    pub step: usize,
    /// Number of the order.
    pub order: usize,
    /// Columns of the key that were read (bit `i` = column `i`), perhaps with counts.
    pub mask: u8,
}

/// Whether a build side of about so many quads, of which these columns are read, is worth prefetching, where it is
/// expected.
pub(crate) fn is_small(quads: f64, mask: u8) -> bool {
    match is_counted(mask) {
        true => quads <= MAX_PREFETCHED_COUNTED_QUADS,
        false => quads <= MAX_PREFETCHED_QUADS,
    }
}

/// How often a build side was prefetched and how often it was made.
struct Figures {
    read: BuildRead,
    prefetched: u32,
    made: u32,
}

impl Figures {
    /// It is used more than every second time that it is prefetched.
    fn is_worth_it(&self) -> bool {
        2 * self.made > self.prefetched
    }
}

/// Runs after which older ones count half.
const MANY_RUNS: u32 = 16;

/// Build sides by a hash of the plan.
#[derive(Default)]
pub(crate) struct BuildFeedback {
    plans: FxHashMap<u64, Vec<Figures>>,
}

impl BuildFeedback {
    /// Takes notice of a build side that a run of a plan has read.
    pub fn add(&mut self, plan: u64, read: BuildRead) {
        if self.plans.len() >= MAX_PLANS_REMEMBERED && !self.plans.contains_key(&plan) {
            self.plans.clear();
        }
        let all = self.plans.entry(plan).or_default();
        let new = Figures {
            read,
            prefetched: 0,
            made: 1,
        };
        match all.iter_mut().find(|known| known.read.step == read.step) {
            Some(known) if known.read == read => known.made += 1,
            Some(known) => *known = new,
            None => all.push(new),
        }
    }

    /// The build sides that the next run of a plan is expected to read.
    pub fn expected(&self, plan: u64) -> Vec<BuildRead> {
        let all = self.plans.get(&plan).into_iter().flatten();
        let worth_it = all.filter(|known| known.is_worth_it());
        worth_it.map(|known| known.read).collect()
    }

    /// Takes notice that these build sides have been prefetched.
    pub fn note_prefetched(&mut self, plan: u64, reads: &[BuildRead]) {
        let all = self.plans.get_mut(&plan).into_iter().flatten();
        for known in all.filter(|known| reads.contains(&known.read)) {
            known.prefetched += 1;
            if known.prefetched > MANY_RUNS {
                known.prefetched /= 2;
                known.made /= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: BuildRead = BuildRead {
        step: 2,
        order: 1,
        mask: 0b101,
    };

    #[test]
    fn what_was_made_is_expected_until_it_is_no_longer_used() {
        let mut feedback = BuildFeedback::default();
        assert!(feedback.expected(7).is_empty());
        feedback.add(7, READ);
        assert!(feedback.expected(8).is_empty());
        let prefetch = |feedback: &mut BuildFeedback| {
            let expected = feedback.expected(7);
            feedback.note_prefetched(7, &[READ]);
            expected
        };
        for _ in 0..100 {
            assert_eq!(prefetch(&mut feedback), [READ]);
            feedback.add(7, READ);
        }
        let in_vain = (0..100).take_while(|_| !prefetch(&mut feedback).is_empty());
        assert!(in_vain.count() <= MANY_RUNS as usize);
        feedback.add(7, BuildRead { order: 0, ..READ });
        assert_eq!(feedback.expected(7).len(), 1);
    }
}
