//! Sorting quads in several orders at once.

use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex};

use pgquad_btree::{key_of, Key, Order, Quad};

use crate::error::Error;
use crate::host::{Host, PATIENCE};
use crate::resort::resort;
use crate::run::{encode, Block, Piece, RunReader};
use crate::stream::Stream;

/// Threads that sort. Two of them keep up with a load that gives ids to terms at the same time, which takes longer than
/// sorting.
const WORKERS: usize = 2;
/// Pieces of 256 kB that wait to be written.
const PIECES_AHEAD: usize = 8;
/// Least number of keys in a chunk.
const MIN_CHUNK_KEYS: usize = 4096;

/// Collects quads and sorts them in each of several orders.
pub struct Sorter {
    orders: Vec<Order>,
    /// Keys of the first order, in any sequence.
    chunk: Vec<Key>,
    chunk_keys: usize,
    /// Chunks that are being sorted.
    busy: usize,
    workers: Option<Workers>,
    /// The blocks of each run, by order and run.
    runs: Vec<Vec<Vec<Block>>>,
}

struct Workers {
    jobs: Sender<Job>,
    messages: Receiver<Message>,
    /// Chunks that are empty again.
    idle: Vec<Vec<Key>>,
}

struct Job {
    run: usize,
    keys: Vec<Key>,
}

enum Message {
    Piece {
        order: usize,
        run: usize,
        piece: Piece,
    },
    /// A chunk has been sorted in all orders.
    Done(Vec<Key>),
}

impl Sorter {
    /// A sorter for these orders that holds about `bytes` of keys in memory.
    pub fn new(orders: &[Order], bytes: usize) -> Self {
        Sorter {
            orders: orders.to_vec(),
            chunk: Vec::new(),
            // A worker sorts the keys of one chunk from one array into another.
            chunk_keys: (bytes / (2 * WORKERS + 1) / size_of::<Key>()).max(MIN_CHUNK_KEYS),
            busy: 0,
            workers: None,
            runs: vec![Vec::new(); orders.len()],
        }
    }

    /// Number of orders.
    pub fn orders(&self) -> usize {
        self.orders.len()
    }

    /// Adds quads in any order, with repetitions.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn push(&mut self, quads: &[Quad], host: &mut impl Host) -> Result<(), Error> {
        let order = self.orders[0];
        let mut rest = quads;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.chunk_keys - self.chunk.len()));
            self.chunk
                .extend(now.iter().map(|quad| key_of(order, quad)));
            rest = later;
            if self.chunk.len() == self.chunk_keys {
                self.submit(host)?;
            }
        }
        while let Some(message) = self.received() {
            self.take(message, host);
        }
        Ok(())
    }

    /// What the workers have sent already.
    fn received(&self) -> Option<Message> {
        self.workers.as_ref()?.messages.try_recv().ok()
    }

    /// Hands the chunk to the workers, and begins another one.
    fn submit(&mut self, host: &mut impl Host) -> Result<(), Error> {
        if self.workers.is_none() {
            self.workers = Some(start(&self.orders, host)?);
        }
        while self.busy == WORKERS {
            self.wait(host)?;
        }
        let Some(workers) = &mut self.workers else {
            return Ok(());
        };
        let next = workers.idle.pop().unwrap_or_default();
        let keys = std::mem::replace(&mut self.chunk, next);
        let run = self.runs[0].len();
        self.runs.iter_mut().for_each(|runs| runs.push(Vec::new()));
        self.busy += 1;
        let job = Job { run, keys };
        workers.jobs.send(job).map_err(|_| failed())
    }

    /// Waits for the workers to send something.
    fn wait(&mut self, host: &mut impl Host) -> Result<(), Error> {
        loop {
            host.interrupt();
            let workers = self.workers.as_ref().ok_or_else(failed)?;
            match workers.messages.recv_timeout(PATIENCE) {
                Ok(message) => {
                    self.take(message, host);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(failed()),
            }
        }
    }

    fn take(&mut self, message: Message, host: &mut impl Host) {
        match message {
            Message::Piece { order, run, piece } => {
                let at = host.write(order, piece.bytes());
                self.runs[order][run].extend(piece.blocks(at));
            }
            Message::Done(chunk) => {
                self.busy -= 1;
                if let Some(workers) = &mut self.workers {
                    workers.idle.push(chunk);
                }
            }
        }
    }

    /// Ends the input.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn finish(mut self, host: &mut impl Host) -> Result<Sorted, Error> {
        if self.workers.is_none() {
            let chunk = std::mem::take(&mut self.chunk);
            return Ok(Sorted {
                orders: self.orders,
                keys: Keys::Memory(Arc::new(chunk)),
            });
        }
        if !self.chunk.is_empty() {
            self.submit(host)?;
        }
        while self.busy > 0 {
            self.wait(host)?;
        }
        Ok(Sorted {
            orders: self.orders,
            keys: Keys::Runs(self.runs),
        })
    }
}

fn failed() -> Error {
    Error::Thread("it ended before its work was done".to_owned())
}

fn start(orders: &[Order], host: &impl Host) -> Result<Workers, Error> {
    let (jobs, received) = channel();
    let (sender, messages) = sync_channel(PIECES_AHEAD);
    let received = Arc::new(Mutex::new(received));
    for _ in 0..WORKERS {
        let (orders, received, sender) = (orders.to_vec(), received.clone(), sender.clone());
        let mut other = Vec::new();
        let body = move || while work(&orders, &received, &sender, &mut other).is_some() {};
        host.spawn("quad sorter", Box::new(body))
            .map_err(|error| Error::Thread(error.to_string()))?;
    }
    Ok(Workers {
        jobs,
        messages,
        idle: Vec::new(),
    })
}

/// Sorts a chunk in each order, from one array into the `other`. `None`: nobody waits for more.
fn work(
    orders: &[Order],
    jobs: &Mutex<Receiver<Job>>,
    messages: &SyncSender<Message>,
    other: &mut Vec<Key>,
) -> Option<()> {
    let Job { run, mut keys } = jobs.lock().ok()?.recv().ok()?;
    let mut before = orders[0];
    for (order, &to) in orders.iter().enumerate() {
        if order == 0 {
            keys.sort_unstable();
            keys.dedup();
        } else {
            resort(&keys, before, to, other);
            std::mem::swap(&mut keys, other);
        }
        before = to;
        let send = |piece| messages.send(Message::Piece { order, run, piece }).is_ok();
        if !encode(&keys, send) {
            return None;
        }
    }
    keys.clear();
    messages.send(Message::Done(keys)).ok()
}

/// Quads sorted in each of several orders.
pub struct Sorted {
    orders: Vec<Order>,
    keys: Keys,
}

enum Keys {
    /// All of them fitted in memory: keys of the first order, which are sorted when they are read.
    Memory(Arc<Vec<Key>>),
    /// Blocks by order and run.
    Runs(Vec<Vec<Vec<Block>>>),
}

impl Sorted {
    /// Number of orders.
    pub fn orders(&self) -> usize {
        self.orders.len()
    }

    /// The keys of order number `n`.
    pub fn stream(&self, n: usize, host: &impl Host) -> Stream {
        match &self.keys {
            Keys::Memory(keys) => Stream::memory(keys.clone(), self.orders[0], self.orders[n]),
            Keys::Runs(runs) => {
                let readers = runs[n]
                    .iter()
                    .map(|blocks| RunReader::new(host.reader(n), blocks.clone()));
                Stream::runs(readers.collect())
            }
        }
    }
}
