//! A future that has woken itself while it was polled is polled again at once.
//!
//! hyper wakes its own connection whenever the body of a request is asked for. By way of tokio's scheduler that wakes
//! another thread as well, which finds nothing to do. It costs a system call, and a second processor, for each POST.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Polls of one turn at most. The others of the thread have their turn then. Once tokio's budget of a turn is spent,
/// everything waits for one of them, and is not polled in vain for long.
const POLLS: usize = 4;

/// Nobody polls; a wake goes to the task.
const IDLE: u8 = 0;
/// It is polled, and has not been woken since that began.
const POLLED: u8 = 1;
/// It is to be polled: by who polls it, or by the task, which has been woken.
const WOKEN: u8 = 2;

#[derive(Default)]
struct Wakes {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

/// The outcome of a future.
pub async fn repolled<F: Future>(future: F) -> F::Output {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut future = pin!(future);
    poll_fn(move |cx| {
        wakes.task.register(cx.waker());
        for _ in 0..POLLS {
            wakes.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(outcome);
            }
            let (ordering, failed) = (Ordering::AcqRel, Ordering::Acquire);
            let unwoken = wakes.state.compare_exchange(POLLED, IDLE, ordering, failed);
            if unwoken.is_ok() {
                return Poll::Pending;
            }
        }
        // It stays woken: the next turn begins with a poll.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    /// Counts its polls; is ready at the last, and wakes itself before.
    async fn ready_after(polls: usize, count: &AtomicUsize) {
        poll_fn(|cx| {
            if count.fetch_add(1, Ordering::Relaxed) + 1 == polls {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn who_wakes_itself_is_polled_in_the_same_turn() {
        let count = AtomicUsize::new(0);
        let waker = noop_waker();
        let mut cx = Context::from_waker(&waker);
        let mut one_turn = pin!(repolled(ready_after(POLLS, &count)));
        assert!(one_turn.as_mut().poll(&mut cx).is_ready());
        count.store(0, Ordering::Relaxed);
        let mut two_turns = pin!(repolled(ready_after(POLLS + 1, &count)));
        assert!(two_turns.as_mut().poll(&mut cx).is_pending());
        assert_eq!(count.load(Ordering::Relaxed), POLLS);
        assert!(two_turns.as_mut().poll(&mut cx).is_ready());
    }

    #[test]
    fn who_does_not_is_polled_once() {
        let count = AtomicUsize::new(0);
        let waker = noop_waker();
        let mut waits = pin!(repolled(poll_fn(|_| {
            count.fetch_add(1, Ordering::Relaxed);
            Poll::<()>::Pending
        })));
        assert!(waits
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending());
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    /// Many small messages between threads: a wake that is lost would be waited for for ever.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        const MESSAGES: usize = 50_000;
        let (there, mut comes) = tokio::sync::mpsc::channel(1);
        let (back, mut returns) = tokio::sync::mpsc::channel(1);
        tokio::spawn(repolled(async move {
            while let Some(number) = comes.recv().await {
                if back.send(number).await.is_err() {
                    break;
                }
            }
        }));
        let all = repolled(async move {
            for number in 0..MESSAGES {
                there.send(number).await.expect("the other end is there");
                assert_eq!(returns.recv().await, Some(number));
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(60), all).await;
        assert!(ended.is_ok(), "a wake is lost");
    }
}
