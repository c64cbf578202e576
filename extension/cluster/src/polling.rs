//! Busy polling: a process that expects an answer soon looks for it again and again instead of going to sleep. Waking
//! up would take longer than the answer. Example: a star on another node of the same rack answers in 60 us, and a
//! sleeping processor needs 35 us to come back.

use std::time::Duration;

/// The share of a wait in the average of recent ones: one eighth.
const SHARE: u32 = 8;
/// A wait counts as at most so many poll times: ten short waits outweigh a long one.
const LONGEST: u32 = 4;

/// How long one session's answers have taken of late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polling {
    average: Duration,
}

impl Polling {
    /// How long to poll for the next answer before sleeping. It is `most` where recent answers came within that time.
    /// Otherwise it is zero, for then the processor has better things to do.
    #[must_use]
    pub fn budget(&self, most: Duration) -> Duration {
        if self.average <= most {
            most
        } else {
            Duration::ZERO
        }
    }

    /// Notes how long an answer has taken, slept or not.
    pub fn waited(&mut self, wait: Duration, most: Duration) {
        let wait = wait.min(most * LONGEST);
        self.average = (self.average * (SHARE - 1) + wait) / SHARE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: Duration = Duration::from_micros(100);

    fn after(waits: &[u64]) -> Polling {
        let mut polling = Polling::default();
        for &wait in waits {
            polling.waited(Duration::from_micros(wait), MOST);
        }
        polling
    }

    #[test]
    fn answers_that_come_late_are_slept_for() {
        assert_eq!(after(&[]).budget(MOST), MOST);
        assert_eq!(after(&[60; 100]).budget(MOST), MOST);
        assert_eq!(after(&[1_000; 4]).budget(MOST), Duration::ZERO);
    }

    #[test]
    fn one_long_wait_changes_nothing() {
        let waits = [&[50; 20][..], &[5_000_000]].concat();
        assert_eq!(after(&waits).budget(MOST), MOST);
    }

    proptest! {
        /// However long the waits have been, a dozen and a half short ones bring polling back.
        #[test]
        fn polling_comes_back(before in prop::collection::vec(0u64..10_000_000, 0..50)) {
            let mut polling = after(&before);
            for _ in 0..18 {
                polling.waited(MOST / 2, MOST);
            }
            prop_assert_eq!(polling.budget(MOST), MOST);
        }
    }
}
