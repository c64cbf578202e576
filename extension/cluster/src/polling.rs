//! Busy polling: a process that expects an answer soon looks for it again and again instead of going to sleep. Waking
//! up would take longer than the answer. Example: a star on another node of the same rack answers in 60 us, and a
//! sleeping processor needs 35 us to come back.

use std::time::Duration;

/// Waits that the average stands for: each new one counts for an eighth. Chosen, not measured.
const AVERAGED_WAITS: u32 = 8;
/// A wait counts as at most so many poll times, so that ten short waits outweigh a long one. Chosen, not measured.
const MAX_POLL_TIMES: u32 = 4;

/// The first waits of a session tell nothing: both processes have their catalogues to read. After three of 10 ms each,
/// the next dozen of 60 us would be slept for, at 50 us each to wake up.
const FRESH_WAITS: u32 = 16;

/// How long one session's answers have taken of late.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polling {
    average: Duration,
    waits: u32,
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
        if self.waits < FRESH_WAITS {
            self.waits += 1;
            return;
        }
        let wait = wait.min(most * MAX_POLL_TIMES);
        self.average = (self.average * (AVERAGED_WAITS - 1) + wait) / AVERAGED_WAITS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLL_TIME: Duration = Duration::from_micros(100);

    fn after(waits: &[u64]) -> Polling {
        let mut polling = Polling::default();
        for &wait in [10_000; FRESH_WAITS as usize].iter().chain(waits) {
            polling.waited(Duration::from_micros(wait), POLL_TIME);
        }
        polling
    }

    #[test]
    fn answers_that_come_late_are_slept_for() {
        assert_eq!(after(&[]).budget(POLL_TIME), POLL_TIME);
        assert_eq!(after(&[60; 100]).budget(POLL_TIME), POLL_TIME);
        assert_eq!(after(&[1_000; 4]).budget(POLL_TIME), Duration::ZERO);
    }

    #[test]
    fn one_long_wait_changes_nothing() {
        let waits = [&[50; 20][..], &[5_000_000]].concat();
        assert_eq!(after(&waits).budget(POLL_TIME), POLL_TIME);
    }

    proptest! {
        /// However long the waits have been, a dozen and a half short ones bring polling back.
        #[test]
        fn polling_comes_back(before in prop::collection::vec(0u64..10_000_000, 0..50)) {
            let mut polling = after(&before);
            for _ in 0..18 {
                polling.waited(POLL_TIME / 2, POLL_TIME);
            }
            prop_assert_eq!(polling.budget(POLL_TIME), POLL_TIME);
        }
    }
}
