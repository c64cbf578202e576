//! A clock that requests share. If each request had a timer of its own, it would each time wake the thread that waits
//! for the next timer, most often itself: two system calls.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Ticks without anybody who waits after which the clock stands still: a second.
const LINGER_TICKS: u32 = 40;

/// Ticks in steps of a period while somebody waits, and a while longer.
pub struct Ticks {
    period: Duration,
    tick: Notify,
    /// Ticks since somebody has last begun to wait.
    unasked: AtomicU32,
    stands: AtomicBool,
    wound: Notify,
}

impl Ticks {
    /// A clock of a period, which stands until [`Self::run`] runs.
    pub fn new(period: Duration) -> Self {
        Self {
            period,
            tick: Notify::new(),
            unasked: AtomicU32::new(0),
            stands: AtomicBool::new(true),
            wound: Notify::new(),
        }
    }

    /// Waits for the next tick: a period at most.
    pub async fn next(&self) {
        let next = self.tick.notified();
        self.unasked.store(0, Ordering::SeqCst);
        if self.stands.load(Ordering::SeqCst) {
            self.wound.notify_one();
        }
        next.await;
    }

    /// Ticks, for ever.
    pub async fn run(&self) {
        loop {
            // Whoever comes after this line winds it; who came before it is seen by the next.
            self.stands.store(true, Ordering::SeqCst);
            if self.unasked.load(Ordering::SeqCst) >= LINGER_TICKS {
                self.wound.notified().await;
            }
            self.stands.store(false, Ordering::SeqCst);
            while self.unasked.fetch_add(1, Ordering::SeqCst) < LINGER_TICKS {
                tokio::time::sleep(self.period).await;
                self.tick.notify_waiters();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn it_ticks_for_who_waits_also_after_a_rest() {
        let period = Duration::from_millis(1);
        let ticks = Arc::new(Ticks::new(period));
        let clock = ticks.clone();
        tokio::spawn(async move { clock.run().await });
        for _ in 0..3 {
            for _ in 0..5 {
                let ticked = tokio::time::timeout(Duration::from_secs(10), ticks.next()).await;
                assert!(ticked.is_ok());
            }
            let rests = async {
                while !ticks.stands.load(Ordering::SeqCst) {
                    tokio::time::sleep(period).await;
                }
            };
            let rests = tokio::time::timeout(Duration::from_secs(10), rests).await;
            assert!(rests.is_ok(), "nobody waits");
        }
    }
}
