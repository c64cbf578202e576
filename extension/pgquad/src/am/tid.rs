//! Row identities. Entries of a quad table move when a leaf splits, so a physical position identifies nothing.
//! A TID handed out by a scan is instead a running number of this backend, mapped to the quad. Delete, update, lock and
//! refetch find the entry again by its key. The map lives until the end of the transaction (deferred triggers refetch
//! rows at commit) and goes to a temporary file beyond `work_mem`.

use crate::storage::TempFile;
use pgrx::pg_sys;
use std::cell::RefCell;

pub use pgquad_btree::Quad;

const OFFSETS_PER_BLOCK: u64 = 2048;
const QUAD_BYTES: usize = 32;

/// What rows have whose identity nobody asks for. It is given to no row, and PostgreSQL takes it for a valid one
/// (`execCurrentOf` of `executor/execCurrent.c`).
pub const NO_IDENTITY: pg_sys::ItemPointerData = pg_sys::ItemPointerData {
    ip_blkid: pg_sys::BlockIdData {
        bi_hi: u16::MAX,
        bi_lo: u16::MAX,
    },
    ip_posid: OFFSETS_PER_BLOCK as u16,
};

#[derive(Default)]
struct TidMap {
    /// The latest quads; all earlier ones are in `file`.
    recent: Vec<Quad>,
    file: Option<TempFile<Quad>>,
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
        let number = map.spilled() + map.recent.len() as u64;
        map.recent.push(quad);
        number_to_tid(number)
    })
}

/// The quad that `tid` was given to, `None` if this transaction gave no such identity.
pub fn recall(tid: &pg_sys::ItemPointerData) -> Option<Quad> {
    let number = tid_to_number(tid)?;
    MAP.with_borrow(|map| match (&map.file, number.checked_sub(map.spilled())) {
        (_, Some(number)) => map.recent.get(number as usize).copied(),
        (Some(file), None) => {
            let mut quad = [[0; 4]];
            file.read(number, &mut quad);
            Some(quad[0])
        }
        (None, None) => None,
    })
}

/// Forgets everything before a commit: after deferred triggers, nobody asks for a row again. At a commit, the resource
/// owner closes files too, but complains of each.
pub fn close_all() {
    if let Some(file) = MAP.take().file {
        file.close();
    }
}

/// Forgets everything; called when a transaction has ended.
pub fn forget_all() {
    // After an abort the file is closed by the transaction's resource owner.
    MAP.take();
}

impl TidMap {
    /// Number of quads in the file.
    fn spilled(&self) -> u64 {
        self.file.as_ref().map_or(0, TempFile::records)
    }

    fn spill(&mut self) {
        self.file
            .get_or_insert_with(TempFile::of_transaction)
            .append(&self.recent);
        self.recent.clear();
    }
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
