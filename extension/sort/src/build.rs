//! The bulk build of all trees of a table, side by side.

use std::io;
use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, SyncSender};

use pgquad_btree::{Build, Key, Leaves, NewLeaf, PageStore, Tree};

use crate::error::Error;
use crate::host::{Host, PATIENCE};
use crate::sorter::Sorted;
use crate::stream::Stream;

/// Leaves that a thread hands over at a time.
const BATCH_LEAVES: usize = 32;
/// Batches (256 kB) of all trees together that wait to be written.
const BATCHES_AHEAD: usize = 8;

/// What the thread of a tree sends.
enum Message {
    Leaves(usize, Vec<NewLeaf>),
    /// A batch of keys that arrived for it.
    Taken(usize),
    End(Result<(), Error>),
}

/// Fills the empty trees, each with its order of `sorted`, as [`Tree::build`] does. Returns the number of quads.
///
/// The leaves of each tree are made on a thread of its own, and written on this one.
///
/// # Errors
/// Those of [`Tree::build`]; [`Error::Read`], [`Error::Thread`], [`Error::Differ`]. No tree has anything in it then.
pub fn build<S: PageStore>(
    trees: &[Tree<S>],
    sorted: &Sorted,
    (xid, cid): (u32, u32),
    fill: f64,
    host: &impl Host,
) -> Result<u64, Error> {
    let streams = (0..trees.len()).map(|n| sorted.stream(n, host)).collect();
    let channel = sync_channel(BATCHES_AHEAD);
    let mut building = Building::start(trees, streams, (xid, cid), fill, host, channel)?;
    while building.open > 0 {
        building.wait(host)?;
    }
    building.finish()
}

/// Batches of each order that wait for its thread.
const ARRIVED_AHEAD: usize = 2;

/// Fills the empty trees with keys that arrive sorted. `next` gives the number of a tree and its next keys, in strictly
/// ascending order over all batches of that tree. `None` ends them all. Returns the number of quads.
///
/// # Errors
/// As [`build`].
pub fn build_arriving<S: PageStore>(
    trees: &[Tree<S>],
    mut next: impl FnMut() -> Option<(usize, Vec<Key>)>,
    (xid, cid): (u32, u32),
    fill: f64,
    host: &impl Host,
) -> Result<u64, Error> {
    let (sender, messages) = sync_channel(BATCHES_AHEAD);
    let (senders, streams): (Vec<_>, Vec<_>) = (0..trees.len())
        .map(|n| {
            let (to, batches) = channel();
            let (taken, now) = (sender.clone(), Vec::new().into_iter());
            (
                to,
                Arriving {
                    n,
                    batches,
                    taken,
                    now,
                },
            )
        })
        .unzip();
    let mut building = Building::start(trees, streams, (xid, cid), fill, host, (sender, messages))?;
    while let Some((n, keys)) = next() {
        while building.arrived[n] >= ARRIVED_AHEAD && building.open == trees.len() {
            building.wait(host)?;
        }
        building.arrived[n] += 1;
        // A thread that has ended says why in a message.
        let _ = senders[n].send(keys);
        building.take_ready()?;
    }
    drop(senders);
    while building.open > 0 {
        building.wait(host)?;
    }
    building.finish()
}

/// Keys that can say whether they were all.
trait Checked: Iterator<Item = Key> + Send + 'static {
    /// To be asked at the end: why there are no more keys, unless these were all.
    fn check(&mut self) -> io::Result<()>;
}

impl Checked for Stream {
    fn check(&mut self) -> io::Result<()> {
        Stream::check(self)
    }
}

/// Keys that come in batches.
struct Arriving {
    n: usize,
    batches: Receiver<Vec<Key>>,
    /// Told of each batch that is taken.
    taken: SyncSender<Message>,
    now: std::vec::IntoIter<Key>,
}

impl Iterator for Arriving {
    type Item = Key;

    #[inline]
    fn next(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.now.next() {
                return Some(key);
            }
            self.now = self.batches.recv().ok()?.into_iter();
            self.taken.send(Message::Taken(self.n)).ok()?;
        }
    }
}

impl Checked for Arriving {
    /// A build that ends early is dropped with its channels: nobody asks.
    fn check(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Trees whose leaves are made on threads and written on the caller's.
struct Building<'t, S: PageStore> {
    builds: Vec<Build<'t, S>>,
    messages: Receiver<Message>,
    /// Batches of keys that each thread has not taken yet.
    arrived: Vec<usize>,
    /// Threads that have not ended.
    open: usize,
}

impl<'t, S: PageStore> Building<'t, S> {
    fn start<K: Checked>(
        trees: &'t [Tree<S>],
        streams: Vec<K>,
        (xid, cid): (u32, u32),
        fill: f64,
        host: &impl Host,
        (sender, messages): (SyncSender<Message>, Receiver<Message>),
    ) -> Result<Self, Error> {
        let mut builds = Vec::with_capacity(trees.len());
        for ((n, tree), keys) in trees.iter().enumerate().zip(streams) {
            builds.push(tree.start_build(fill)?);
            let leaves = tree.leaves(keys, xid, cid, fill);
            let sender = sender.clone();
            host.spawn(
                "quad build",
                Box::new(move || make_leaves(n, leaves, &sender)),
            )
            .map_err(|error| Error::Thread(error.to_string()))?;
        }
        Ok(Self {
            open: builds.len(),
            arrived: vec![0; builds.len()],
            builds,
            messages,
        })
    }

    /// Waits a moment for leaves, and writes them.
    fn wait(&mut self, host: &impl Host) -> Result<(), Error> {
        host.interrupt();
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => self.take(message),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::Thread("it ended before its tree".to_owned()))
            }
        }
    }

    /// Writes the leaves that are there.
    fn take_ready(&mut self) -> Result<(), Error> {
        while let Ok(message) = self.messages.try_recv() {
            self.take(message)?;
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Leaves(n, leaves) => leaves.into_iter().for_each(|l| self.builds[n].push(l)),
            Message::Taken(n) => self.arrived[n] = self.arrived[n].saturating_sub(1),
            Message::End(result) => {
                result?;
                self.open -= 1;
            }
        }
        Ok(())
    }

    /// Completes the trees. Returns the number of quads.
    fn finish(self) -> Result<u64, Error> {
        let first = self.builds.first().map_or(0, |build| build.keys());
        if let Some(build) = self.builds.iter().find(|build| build.keys() != first) {
            let other = build.keys();
            return Err(Error::Differ { first, other });
        }
        for build in self.builds {
            build.finish()?;
        }
        Ok(first)
    }
}

/// Sends the leaves of tree `n`, while somebody takes them.
fn make_leaves<K: Checked>(n: usize, mut leaves: Leaves<K>, messages: &SyncSender<Message>) {
    loop {
        let batch: Result<Vec<NewLeaf>, _> = leaves.by_ref().take(BATCH_LEAVES).collect();
        let end = match batch {
            Ok(batch) if batch.is_empty() => leaves.into_keys().check().map_err(Error::Read),
            Ok(batch) => {
                if messages.send(Message::Leaves(n, batch)).is_err() {
                    return;
                }
                continue;
            }
            Err(error) => Err(Error::Tree(error)),
        };
        let _ = messages.send(Message::End(end));
        return;
    }
}
