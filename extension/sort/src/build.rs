//! The bulk build of all trees of a table, side by side.

use std::sync::mpsc::{sync_channel, RecvTimeoutError, SyncSender};

use pgquad_btree::{Leaves, NewLeaf, PageStore, Tree};

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
    let (sender, messages) = sync_channel(BATCHES_AHEAD);
    let mut builds = Vec::with_capacity(trees.len());
    for (n, tree) in trees.iter().enumerate() {
        builds.push(tree.start_build(fill)?);
        let leaves = tree.leaves(sorted.stream(n, host), xid, cid, fill);
        let sender = sender.clone();
        host.spawn(
            "quad build",
            Box::new(move || make_leaves(n, leaves, &sender)),
        )
        .map_err(|error| Error::Thread(error.to_string()))?;
    }
    drop(sender);
    let mut open = trees.len();
    while open > 0 {
        host.interrupt();
        match messages.recv_timeout(PATIENCE) {
            Ok(Message::Leaves(n, leaves)) => leaves.into_iter().for_each(|l| builds[n].push(l)),
            Ok(Message::End(result)) => {
                result?;
                open -= 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Thread("it ended before its tree".to_owned()))
            }
        }
    }
    let first = builds.first().map_or(0, |build| build.keys());
    if let Some(build) = builds.iter().find(|build| build.keys() != first) {
        let other = build.keys();
        return Err(Error::Differ { first, other });
    }
    for build in builds {
        build.finish()?;
    }
    Ok(first)
}

/// Sends the leaves of tree `n`, while somebody takes them.
fn make_leaves(n: usize, mut leaves: Leaves<Stream>, messages: &SyncSender<Message>) {
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
