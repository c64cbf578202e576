//! Row identities. Entries of a quad table move when a leaf splits, so a physical position identifies nothing.
//! A TID handed out by a scan is instead a running number of this backend, mapped to the quad; delete, update, lock
//! and refetch find the entry again by its key. The map lives until the end of the transaction (deferred triggers
//! refetch rows at commit) and goes to a temporary file beyond `work_mem`.

use pgrx::pg_sys;
use std::cell::RefCell;

pub use pgquad_btree::Quad;

const OFFSETS_PER_BLOCK: u64 = 2048;
const QUAD_BYTES: usize = 32;

#[derive(Default)]
struct TidMap {
    /// Quads number `spilled ..`; earlier ones are in `file`.
    recent: Vec<Quad>,
    spilled: u64,
    file: Option<*mut pg_sys::BufFile>,
}

thread_local! {
    static MAP: RefCell<TidMap> = RefCell::new(TidMap::default());
}

/// Remembers `quad` and gives it an identity valid until the transaction ends.
pub fn remember(quad: Quad) -> pg_sys::ItemPointerData {
    MAP.with_borrow_mut(|map| {
        // SAFETY: plain reads of settings in the backend's only thread.
        let limit = unsafe { pg_sys::work_mem } as usize * 1024 / QUAD_BYTES;
        if map.recent.len() >= limit.max(1024) {
            map.spill();
        }
        let number = map.spilled + map.recent.len() as u64;
        map.recent.push(quad);
        number_to_tid(number)
    })
}

/// The quad that `tid` was given to, `None` if this transaction gave no such identity.
pub fn recall(tid: &pg_sys::ItemPointerData) -> Option<Quad> {
    let number = tid_to_number(tid)?;
    MAP.with_borrow_mut(|map| {
        if number >= map.spilled {
            return map.recent.get((number - map.spilled) as usize).copied();
        }
        map.read_spilled(number)
    })
}

/// Forgets everything before a commit: after deferred triggers, nobody asks for a row again. At a commit, the resource
/// owner closes files too, but complains of each.
pub fn close_all() {
    let map = MAP.take();
    if let Some(file) = map.file {
        // SAFETY: the file was opened in this transaction, which has not ended, and is not used after this.
        unsafe { pg_sys::BufFileClose(file) }
    }
}

/// Forgets everything; called when a transaction has ended.
pub fn forget_all() {
    // After an abort the file is closed by the transaction's resource owner.
    MAP.take();
}

impl TidMap {
    fn spill(&mut self) {
        // SAFETY: BufFile calls in the backend's thread; the file is owned by the top transaction, whose end empties
        // the map.
        unsafe {
            let file = *self.file.get_or_insert_with(|| {
                let owner = pg_sys::CurrentResourceOwner;
                let context = pg_sys::CurrentMemoryContext;
                pg_sys::CurrentResourceOwner = pg_sys::TopTransactionResourceOwner;
                pg_sys::CurrentMemoryContext = pg_sys::TopTransactionContext;
                let file = pg_sys::BufFileCreateTemp(false);
                pg_sys::CurrentResourceOwner = owner;
                pg_sys::CurrentMemoryContext = context;
                file
            });
            seek(file, self.spilled);
            pg_sys::BufFileWrite(
                file,
                self.recent.as_mut_ptr().cast(),
                self.recent.len() * QUAD_BYTES,
            );
        }
        self.spilled += self.recent.len() as u64;
        self.recent.clear();
    }

    fn read_spilled(&mut self, number: u64) -> Option<Quad> {
        let file = self.file?;
        let mut quad: Quad = [0; 4];
        // SAFETY: `number` is below `spilled`, so the whole record was written.
        let read = unsafe {
            seek(file, number);
            pg_sys::BufFileRead(file, quad.as_mut_ptr().cast(), QUAD_BYTES)
        };
        (read as usize == QUAD_BYTES).then_some(quad)
    }
}

/// # Safety
/// `file` is an open temporary file of this transaction.
unsafe fn seek(file: *mut pg_sys::BufFile, number: u64) {
    // A BufFile is a row of 1 GB segments.
    const SEGMENT: u64 = 1 << 30;
    let at = number * QUAD_BYTES as u64;
    // SAFETY: the caller's promise.
    let failed = unsafe {
        pg_sys::BufFileSeek(
            file,
            (at / SEGMENT) as i32,
            (at % SEGMENT) as i64,
            0, // SEEK_SET
        )
    };
    assert!(
        failed == 0,
        "could not seek in the temporary file of row identities"
    );
}

fn number_to_tid(number: u64) -> pg_sys::ItemPointerData {
    let block = (number / OFFSETS_PER_BLOCK) as u32;
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData {
            bi_hi: (block >> 16) as u16,
            bi_lo: (block & 0xffff) as u16,
        },
        ip_posid: (number % OFFSETS_PER_BLOCK) as u16 + 1,
    }
}

fn tid_to_number(tid: &pg_sys::ItemPointerData) -> Option<u64> {
    let block = u64::from(tid.ip_blkid.bi_hi) << 16 | u64::from(tid.ip_blkid.bi_lo);
    let offset = u64::from(tid.ip_posid.checked_sub(1)?);
    (offset < OFFSETS_PER_BLOCK).then_some(block * OFFSETS_PER_BLOCK + offset)
}
