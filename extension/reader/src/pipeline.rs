//! The threads: one reads (and decompresses), several parse.
//!
//! Batches come out in document order. A fixed number of chunks is under way at any time: the reader takes a permit for
//! each, and the consumer gives it back with the batch. The threads end by themselves when the pipeline is dropped.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use pgquad_term::block::Symbols;

use crate::batch::Batch;
use crate::chunk::{Chunk, Chunks};
use crate::error::{ErrorKind, ReadError};
use crate::format::Format;
use crate::lines::LineParser;
use crate::source::Source;
use crate::stream;

/// How a document is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its format.
    pub format: Format,
    /// IRI against which relative IRIs are resolved.
    pub base: Option<String>,
    /// IRI of the graph for triples outside of named graphs; `None`: the default graph.
    pub graph: Option<String>,
    /// A named graph in the document is an error.
    pub one_graph: bool,
    /// Number of parser threads for the formats that allow several.
    pub threads: usize,
}

/// What [`Pipeline::next`] has found.
pub enum Step {
    /// The next batch.
    Batch(Batch),
    /// Nothing within the time given.
    Waiting,
    /// The document has ended.
    End,
}

enum Message {
    Batch(u64, Result<Batch, ReadError>),
    /// The document has so many batches.
    End(u64),
}

/// Symbol tables with their number, once there are any.
type SharedSymbols = Arc<RwLock<Option<(u32, Arc<Symbols>)>>>;

/// A document being read.
pub struct Pipeline {
    messages: Receiver<Message>,
    permits: Sender<()>,
    early: HashMap<u64, Result<Batch, ReadError>>,
    next: u64,
    end: Option<u64>,
    stop: Arc<AtomicBool>,
    bytes_read: Arc<AtomicU64>,
    symbols: SharedSymbols,
}

impl Pipeline {
    /// Starts the threads. They inherit the signal mask of the calling thread.
    pub fn start(source: Source, options: &Options) -> std::io::Result<Self> {
        let (sender, messages) = channel();
        let (permits, permit) = channel();
        let threads = options.threads.max(1);
        for _ in 0..2 * threads + 2 {
            let _ = permits.send(());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let bytes_read = source.bytes_read.clone();
        let source = source.without_mark();
        let symbols = SharedSymbols::default();
        let outlet = Outlet {
            messages: sender,
            symbols: symbols.clone(),
        };
        if options.format.is_line_based() {
            start_line_parsers(source, options, threads, outlet, permit)?;
        } else {
            start_stream_parser(source, options.clone(), outlet, permit, stop.clone())?;
        }
        Ok(Pipeline {
            messages,
            permits,
            early: HashMap::new(),
            next: 0,
            end: None,
            stop,
            bytes_read,
            symbols,
        })
    }

    /// Lets the parsers compress the terms of coming batches ahead, with the symbol tables of this number.
    pub fn compress_with(&self, number: u32, symbols: Arc<Symbols>) {
        let mut shared = self.symbols.write().unwrap_or_else(PoisonError::into_inner);
        *shared = Some((number, symbols));
    }

    /// The next batch; waits for it at most this long.
    pub fn next(&mut self, timeout: Duration) -> Result<Step, ReadError> {
        loop {
            if let Some(batch) = self.early.remove(&self.next) {
                self.next += 1;
                let _ = self.permits.send(());
                return batch.map(Step::Batch);
            }
            if self.end == Some(self.next) {
                return Ok(Step::End);
            }
            match self.messages.recv_timeout(timeout) {
                Ok(Message::Batch(number, batch)) => {
                    self.early.insert(number, batch);
                }
                Ok(Message::End(count)) => self.end = Some(count),
                Err(RecvTimeoutError::Timeout) => return Ok(Step::Waiting),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ReadError::new(
                        ErrorKind::Internal,
                        "a thread that reads the document has failed",
                    ))
                }
            }
        }
    }

    /// Bytes of the source read so far, compressed as it is.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Where parsers put their batches.
#[derive(Clone)]
struct Outlet {
    messages: Sender<Message>,
    symbols: SharedSymbols,
}

impl Outlet {
    /// Sends a batch; `false`: nobody waits for it any more.
    fn send(&self, number: u64, batch: Result<Batch, ReadError>) -> bool {
        let batch = batch.map(|mut batch| {
            let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
            let symbols = symbols.clone();
            if let Some((number, symbols)) = symbols {
                batch.compress(number, &symbols);
            }
            batch
        });
        self.messages.send(Message::Batch(number, batch)).is_ok()
    }

    /// Says that there are so many batches.
    fn end(&self, count: u64) {
        let _ = self.messages.send(Message::End(count));
    }
}

/// Stack of the thread that parses a whole document, in bytes; memory is taken as it is used. The parser of JSON-LD
/// calls itself for each of [`crate::json::MAX_NESTING`] levels, with some 60 KB each where nothing is optimised
/// (2026-11).
const STACK_BYTES: usize = 64 << 20;

fn spawn(thread: thread::Builder, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread.spawn(body).map(drop)
}

fn thread(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

/// Calls `body`; a panic becomes an error.
fn guarded<T>(body: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(ReadError::new(
            ErrorKind::Internal,
            "the parser has failed on this document",
        ))
    })
}

fn start_line_parsers(
    source: Source,
    options: &Options,
    threads: usize,
    outlet: Outlet,
    permit: Receiver<()>,
) -> std::io::Result<()> {
    let (work, chunks) = channel::<(u64, Chunk)>();
    let chunks = Arc::new(Mutex::new(chunks));
    for _ in 0..threads {
        let (chunks, outlet) = (chunks.clone(), outlet.clone());
        let mut parser = LineParser::new(options.format, options.graph.clone(), options.one_graph);
        spawn(thread("quad parser"), move || loop {
            let Ok(received) = chunks.lock().map(|chunks| chunks.recv()) else {
                return;
            };
            let Ok((number, chunk)) = received else {
                return;
            };
            let batch = guarded(|| parser.parse(&chunk));
            let failed = batch.is_err();
            if !outlet.send(number, batch) || failed {
                return;
            }
        })?;
    }
    spawn(thread("quad reader"), move || {
        let mut chunks = Chunks::new(source.reader);
        let mut count = 0;
        while permit.recv().is_ok() {
            let last = match guarded(|| chunks.next()) {
                Ok(Some(chunk)) => work.send((count, chunk)).is_err(),
                Ok(None) => break,
                Err(error) => outlet.send(count, Err(error)),
            };
            count += 1;
            if last {
                break;
            }
        }
        outlet.end(count);
    })
}

fn start_stream_parser(
    source: Source,
    options: Options,
    outlet: Outlet,
    permit: Receiver<()>,
    stop: Arc<AtomicBool>,
) -> std::io::Result<()> {
    spawn(thread("quad parser").stack_size(STACK_BYTES), move || {
        let mut count = 0;
        let result = guarded(|| {
            stream::parse(
                options.format,
                options.base.as_deref(),
                (options.graph, options.one_graph),
                source.reader,
                &stop,
                |batch| {
                    let sent = permit.recv().is_ok() && outlet.send(count, Ok(batch));
                    count += 1;
                    sent
                },
            )
        });
        if let Err(error) = result {
            outlet.send(count, Err(error));
            count += 1;
        }
        outlet.end(count);
    })
}

#[cfg(test)]
mod tests;
