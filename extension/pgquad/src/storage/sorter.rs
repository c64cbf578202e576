//! External sort of keys: in memory up to a limit, then sorted runs in one temporary file, merged on reading.

use pgquad_btree::Key;
use pgrx::pg_sys;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const KEY_BYTES: usize = size_of::<Key>();
/// Keys read from a run at a time.
const READ_KEYS: usize = 4096;
/// `BufFile` addresses are (segment, offset) with segments of 1 GB.
const SEGMENT: u64 = 1 << 30;

/// Collects keys and gives them back in order, each once.
pub struct Sorter {
    memory: Vec<Key>,
    limit: usize,
    file: Option<*mut pg_sys::BufFile>,
    /// End of each run, in keys from the start of the file.
    runs: Vec<u64>,
}

impl Sorter {
    /// A sorter that holds at most `bytes` of keys in memory.
    pub fn new(bytes: usize) -> Self {
        Self {
            memory: Vec::new(),
            limit: (bytes / KEY_BYTES).max(READ_KEYS),
            file: None,
            runs: Vec::new(),
        }
    }

    /// Adds one key.
    pub fn push(&mut self, key: Key) {
        if self.memory.len() >= self.limit {
            self.spill();
        }
        self.memory.push(key);
    }

    fn sort(&mut self) {
        self.memory.sort_unstable();
        self.memory.dedup();
    }

    fn spill(&mut self) {
        self.sort();
        let start = self.runs.last().copied().unwrap_or(0);
        // SAFETY: BufFile calls in the backend's thread; the file belongs to the current resource owner, as long as the
        // statement that sorts.
        unsafe {
            let file = *self
                .file
                .get_or_insert_with(|| pg_sys::BufFileCreateTemp(false));
            seek(file, start);
            pg_sys::BufFileWrite(
                file,
                self.memory.as_mut_ptr().cast(),
                self.memory.len() * KEY_BYTES,
            );
        }
        self.runs.push(start + self.memory.len() as u64);
        self.memory.clear();
    }

    /// The keys in ascending order without duplicates.
    pub fn finish(mut self) -> Sorted {
        self.sort();
        let mut start = 0;
        let runs = self
            .runs
            .iter()
            .map(|&end| {
                let run = Run {
                    next: start,
                    end,
                    buffer: Vec::new(),
                    at: 0,
                };
                start = end;
                run
            })
            .collect();
        let mut sorted = Sorted {
            memory: self.memory,
            at: 0,
            file: self.file,
            runs,
            heap: BinaryHeap::new(),
            last: None,
        };
        for source in 0..=sorted.runs.len() {
            sorted.offer(source);
        }
        sorted
    }
}

/// # Safety
/// `file` is an open temporary file.
unsafe fn seek(file: *mut pg_sys::BufFile, key: u64) {
    let at = key * KEY_BYTES as u64;
    // SAFETY: the caller's promise.
    let failed =
        unsafe { pg_sys::BufFileSeek(file, (at / SEGMENT) as i32, (at % SEGMENT) as i64, 0) };
    assert!(failed == 0, "could not seek in a temporary sort file");
}

struct Run {
    next: u64,
    end: u64,
    buffer: Vec<Key>,
    at: usize,
}

/// The merged output of a [`Sorter`].
pub struct Sorted {
    memory: Vec<Key>,
    at: usize,
    file: Option<*mut pg_sys::BufFile>,
    runs: Vec<Run>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    last: Option<Key>,
}

impl Sorted {
    /// Puts the next key of a source into the heap; the source after the runs is memory.
    fn offer(&mut self, source: usize) {
        let key = if source == self.runs.len() {
            let key = self.memory.get(self.at).copied();
            self.at += 1;
            key
        } else {
            self.next_of_run(source)
        };
        if let Some(key) = key {
            self.heap.push(Reverse((key, source)));
        }
    }

    fn next_of_run(&mut self, source: usize) -> Option<Key> {
        let file = self.file?;
        let run = &mut self.runs[source];
        if run.at == run.buffer.len() {
            let count = READ_KEYS.min((run.end - run.next) as usize);
            if count == 0 {
                return None;
            }
            run.buffer.resize(count, [0; 4]);
            // SAFETY: the run holds `count` more keys, the buffer has room for them.
            let read = unsafe {
                seek(file, run.next);
                pg_sys::BufFileRead(file, run.buffer.as_mut_ptr().cast(), count * KEY_BYTES)
            };
            assert!(
                read as usize == count * KEY_BYTES,
                "temporary sort file is shorter than what was written"
            );
            run.next += count as u64;
            run.at = 0;
        }
        run.at += 1;
        Some(run.buffer[run.at - 1])
    }
}

impl Iterator for Sorted {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        loop {
            let Reverse((key, source)) = self.heap.pop()?;
            self.offer(source);
            if self.last != Some(key) {
                self.last = Some(key);
                return Some(key);
            }
        }
    }
}

impl Drop for Sorted {
    fn drop(&mut self) {
        // While unwinding the transaction's end closes the file.
        if let (Some(file), false) = (self.file, std::thread::panicking()) {
            // SAFETY: opened by the sorter, closed once.
            unsafe { pg_sys::BufFileClose(file) }
        }
    }
}
