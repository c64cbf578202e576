//! Spill files: temporary files of records that are plain numbers, written and read by the backend alone.
//!
//! Everything that spills rows, keys or bytes uses them: `Quad Walk`'s visited set, counted groups, row identities,
//! rows that other nodes have sent. The sorted runs of loads and large writes are the one exception (`run_files.rs`):
//! threads read them, and the buffer of a `BufFile` belongs to the backend's thread.

use pgrx::pg_sys;
use pgrx::PgMemoryContexts;
use std::marker::PhantomData;

/// `BufFile` addresses are (segment, offset) with segments of 1 GB.
const SEGMENT_BYTES: u64 = 1 << 30;

/// What a file may hold: any bytes are a value of it.
pub trait Record: Copy {}

impl Record for u8 {}
impl Record for u64 {}
impl<const N: usize> Record for [u64; N] {}
impl<const N: usize> Record for [i64; N] {}

/// A temporary file of records. It has to be closed, unless an error ends the statement: then the resource owner closes
/// it.
pub struct TempFile<T> {
    file: *mut pg_sys::BufFile,
    len: u64,
    records: PhantomData<T>,
}

impl<T: Record> TempFile<T> {
    /// An empty file of the current resource owner, which lives until the end of `context`'s query.
    pub fn new(context: pg_sys::MemoryContext) -> Self {
        // SAFETY: the context outlives the value.
        let file = unsafe {
            PgMemoryContexts::For(context).switch_to(|_| pg_sys::BufFileCreateTemp(false))
        };
        Self {
            file,
            len: 0,
            records: PhantomData,
        }
    }

    /// An empty file that lives until the end of the transaction, over its savepoints and statements.
    pub fn of_transaction() -> Self {
        // SAFETY: variables of the backend, within a transaction. The resource owner is put back here, or by PostgreSQL
        // after an error.
        unsafe {
            let owner = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = pg_sys::TopTransactionResourceOwner;
            let file = Self::new(pg_sys::TopTransactionContext);
            pg_sys::CurrentResourceOwner = owner;
            file
        }
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.len
    }

    fn seek(&self, record: u64) {
        let at = record * size_of::<T>() as u64;
        // SAFETY: an open temporary file.
        let failed = unsafe {
            pg_sys::BufFileSeek(
                self.file,
                (at / SEGMENT_BYTES) as i32,
                (at % SEGMENT_BYTES) as i64,
                0,
            )
        };
        assert!(failed == 0, "could not seek in a temporary file");
    }

    /// Writes records at the end.
    pub fn append(&mut self, records: &[T]) {
        self.write(self.len, records);
    }

    /// Writes records from number `from` on, which is at most the end.
    pub fn write(&mut self, from: u64, records: &[T]) {
        self.seek(from);
        // SAFETY: an open temporary file and plain numbers, which are only read.
        unsafe {
            let from = records.as_ptr().cast_mut().cast();
            pg_sys::BufFileWrite(self.file, from, size_of_val(records));
        }
        self.len = self.len.max(from + records.len() as u64);
    }

    /// Fills `records` with those from number `from` on; there must be so many.
    pub fn read(&self, from: u64, records: &mut [T]) {
        self.seek(from);
        let bytes = size_of_val(records);
        // SAFETY: an open temporary file; the buffer has room for what is read.
        let read = unsafe { pg_sys::BufFileRead(self.file, records.as_mut_ptr().cast(), bytes) };
        assert!(
            read as usize == bytes,
            "a temporary file is shorter than what was written"
        );
    }

    /// Removes the file.
    pub fn close(self) {
        // SAFETY: an open temporary file, used no more.
        unsafe { pg_sys::BufFileClose(self.file) }
    }
}
