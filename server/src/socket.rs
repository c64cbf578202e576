//! The connection to a client. It tells that the other end is closed even while nobody reads from it.

use std::future::Future;
use std::io::{ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::ticks::Ticks;

/// Time between two looks at a client. Most requests take less. A query is to be cancelled within 100 ms.
pub const LOOK: Duration = Duration::from_millis(25);

/// A client's connection.
pub struct Socket {
    read: OwnedReadHalf,
    /// Locked by the task of the connection only, which [`Watch::gone`] is part of. `None`: [`Watch::reset`] has been
    /// called.
    write: Arc<Mutex<Option<OwnedWriteHalf>>>,
}

/// Looks at a connection that somebody else has, while there is work for its client.
#[derive(Clone)]
pub struct Watch {
    write: Weak<Mutex<Option<OwnedWriteHalf>>>,
    work: Arc<Work>,
    /// Looks are taken when it ticks, in steps of [`LOOK`].
    ticks: Arc<Ticks>,
}

/// Whether there is work.
#[derive(Default)]
struct Work {
    goes_on: AtomicBool,
    begun: Notify,
}

/// Work for a client, until this is dropped. A connection has one at a time.
pub struct Working(Arc<Work>);

fn locked(write: &Mutex<Option<OwnedWriteHalf>>) -> MutexGuard<'_, Option<OwnedWriteHalf>> {
    write.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Socket {
    /// Takes a connection.
    pub fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        let write = Arc::new(Mutex::new(Some(write)));
        Self { read, write }
    }

    /// What can tell that the client has closed it.
    pub fn watch(&self, ticks: Arc<Ticks>) -> Watch {
        Watch {
            write: Arc::downgrade(&self.write),
            work: Arc::default(),
            ticks,
        }
    }

    /// What `write` does to the connection, an error after it has been reset.
    fn poll<T>(
        &self,
        write: impl FnOnce(Pin<&mut OwnedWriteHalf>) -> Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        match &mut *locked(&self.write) {
            Some(half) => write(Pin::new(half)),
            None => Poll::Ready(Err(ErrorKind::ConnectionReset.into())),
        }
    }
}

impl Watch {
    /// The outcome of work, which is watched when it takes longer than most does.
    pub async fn watched<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            outcome = work.as_mut() => outcome,
            () = self.ticks.next() => {
                let _working = self.working();
                work.await
            }
        }
    }

    /// Work begins.
    pub fn working(&self) -> Working {
        self.work.goes_on.store(true, Ordering::Relaxed);
        self.work.begun.notify_one();
        Working(self.work.clone())
    }

    /// Returns when the client has closed its end and there is work for it. It returns even if there is something to be
    /// read before the end: the requests that the client has sent ahead.
    pub async fn gone(&self) {
        loop {
            self.work.begun.notified().await;
            while self.work.goes_on.load(Ordering::Relaxed) {
                if self.is_closed() {
                    return;
                }
                self.ticks.next().await;
            }
        }
    }

    /// Nothing more is written, and the connection is reset when it is dropped: its end is not taken for that of the
    /// answer.
    pub fn reset(&self) {
        let Some(write) = self.write.upgrade() else {
            return;
        };
        let half = locked(&write).take();
        if let Some(half) = half {
            let _ = half.as_ref().set_zero_linger();
            // Dropped otherwise, it would say that all has been written.
            half.forget();
        }
    }

    fn is_closed(&self) -> bool {
        let Some(write) = self.write.upgrade() else {
            return true;
        };
        let half = locked(&write);
        let Some(half) = half.as_ref() else {
            return true;
        };
        // What the system has told so far: there is nothing to wait for.
        let ready = half.as_ref().ready(Interest::READABLE).now_or_never();
        matches!(ready, Some(Ok(ready)) if ready.is_read_closed())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.goes_on.store(false, Ordering::Relaxed);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.poll(|half| half.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.poll(|half| half.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        let half = locked(&self.write);
        half.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll(|half| half.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll(|half| half.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn an_end_behind_what_nobody_reads_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let socket = Socket::new(listener.accept().await.unwrap().0);
        let ticks = Arc::new(Ticks::new(LOOK));
        let clock = ticks.clone();
        tokio::spawn(async move { clock.run().await });
        let (watch, patience) = (socket.watch(ticks), Duration::from_secs(60));
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let working = watch.working();
        let gone = tokio::time::timeout(4 * LOOK, watch.gone()).await;
        assert!(gone.is_err(), "the client is there");
        drop((client, working));
        let gone = tokio::time::timeout(4 * LOOK, watch.gone()).await;
        assert!(gone.is_err(), "there is no work for it");
        let work = watch.watched(std::future::pending::<()>());
        let gone = tokio::time::timeout(patience, async {
            tokio::select! {
                () = work => unreachable!("it is for ever"),
                () = watch.gone() => {}
            }
        });
        assert!(gone.await.is_ok(), "the client is gone");
    }
}
