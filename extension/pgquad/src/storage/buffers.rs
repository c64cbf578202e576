//! The page store of a `quad` table: PostgreSQL's shared (or local) buffers, generic WAL and free space map.

use super::locked_page::Locked;
use super::{stop_points, wal};
use crate::pg::{compat, ffi};
use pgquad_btree::{BlockNo, Change, Page, PageStore, PAGE_SIZE};
use pgrx::pg_sys;
use std::sync::atomic::{AtomicU32, Ordering};

const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
const P_NEW: u32 = u32::MAX;

/// Pages of one open relation. The relation stays open (and locked as its user needs) while the store lives.
#[derive(Clone, Copy)]
pub struct RelationStore {
    rel: pg_sys::Relation,
}

impl RelationStore {
    /// # Safety
    /// `rel` is an open relation of the `quad` access method and outlives the store.
    pub unsafe fn new(rel: pg_sys::Relation) -> Self {
        Self { rel }
    }

    /// The relation.
    pub fn relation(&self) -> pg_sys::Relation {
        self.rel
    }

    fn pin(&self, block: BlockNo) -> pg_sys::Buffer {
        // SAFETY: the relation is open; an impossible block is an ERROR raised by the buffer manager.
        unsafe {
            pg_sys::ReadBufferExtended(
                self.rel,
                MAIN,
                block,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                std::ptr::null_mut(),
            )
        }
    }

    /// An impossible block is an ERROR raised by the buffer manager.
    fn locked(&self, block: BlockNo, recent: Option<pg_sys::Buffer>, mode: u32) -> Locked {
        // SAFETY: the relation is open; pin and lock are handed over.
        unsafe { Locked::of(ffi::read_locked(self.rel, block, recent, mode), block) }
    }

    /// Adds a page at the end of the relation, exclusively locked.
    fn add_page(&self) -> Locked {
        // SAFETY: the extension lock serialises extenders (as `RelationGetBufferForTuple` does); a new relation of this
        // transaction or a temporary one has no other extender.
        unsafe {
            pg_sys::LockRelationForExtension(self.rel, pg_sys::ExclusiveLock as i32);
            let buffer = self.pin(P_NEW);
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
            pg_sys::UnlockRelationForExtension(self.rel, pg_sys::ExclusiveLock as i32);
            Locked::new(buffer)
        }
    }

    /// A page that is going to be overwritten, exclusively locked: it is not read from disk.
    fn overwritten(&self, block: BlockNo) -> Locked {
        // SAFETY: the relation is open; the buffer comes pinned and exclusively locked.
        unsafe {
            let buffer = pg_sys::ReadBufferExtended(
                self.rel,
                MAIN,
                block,
                pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK,
                std::ptr::null_mut(),
            );
            Locked::of(buffer, block)
        }
    }

    fn needs_wal(&self) -> bool {
        relation_needs_wal(self.rel)
    }
}

/// `RelationNeedsWAL` of `utils/rel.h`.
pub fn relation_needs_wal(rel: pg_sys::Relation) -> bool {
    // SAFETY: callers hold the relation open.
    unsafe {
        let r = &*rel;
        let permanent = (*r.rd_rel).relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as i8;
        let minimal = pg_sys::wal_level < pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32;
        permanent && (!minimal || !compat::new_in_transaction(r))
    }
}

impl PageStore for RelationStore {
    type Read = Locked;
    type Write = Locked;

    fn read(&self, block: BlockNo) -> Locked {
        self.locked(block, None, pg_sys::BUFFER_LOCK_SHARE)
    }

    fn read_at(&self, block: BlockNo, place: u32) -> Locked {
        let recent = is_much_used(place).then_some(place as pg_sys::Buffer);
        self.locked(block, recent, pg_sys::BUFFER_LOCK_SHARE)
    }

    fn write(&self, block: BlockNo) -> Locked {
        self.locked(block, None, pg_sys::BUFFER_LOCK_EXCLUSIVE)
    }

    fn block_of(&self, page: &Locked) -> BlockNo {
        page.block
    }

    fn allocate(&self) -> Locked {
        loop {
            // SAFETY: the relation is open. A page from the map is used only if it is really a deleted one, since the
            // map is a hint that a crash can leave wrong.
            unsafe {
                let block = pg_sys::GetFreeIndexPage(self.rel);
                if block == pg_sys::InvalidBlockNumber || block >= self.blocks() {
                    return self.add_page();
                }
                let buffer = self.pin(block);
                if pg_sys::ConditionalLockBuffer(buffer) {
                    let page = Locked::new(buffer);
                    if page.is_free() {
                        return page;
                    }
                } else {
                    pg_sys::ReleaseBuffer(buffer);
                }
            }
        }
    }

    fn free(&self, block: BlockNo) {
        // SAFETY: the relation is open.
        unsafe { pg_sys::RecordFreeIndexPage(self.rel, block) }
    }

    fn commit(&self, changes: &mut [Change<'_, Locked>], conflict_xid: u32) {
        // SAFETY: all pages are exclusively locked by their guards; the images are whole valid pages.
        unsafe { wal::apply(self.rel, changes, conflict_xid, self.needs_wal()) }
    }

    fn extend(&self, pages: usize) -> BlockNo {
        let first = self.add_page().block;
        for block in (first..).take(pages).skip(1) {
            assert!(
                self.add_page().block == block,
                "another backend extends a relation under bulk build"
            );
        }
        first
    }

    fn put(&self, first: BlockNo, images: &mut [Page]) {
        let mut guards: Vec<Locked> = (first..)
            .take(images.len())
            .map(|block| self.overwritten(block))
            .collect();
        let logged = self.needs_wal();
        // SAFETY: nothing points to the pages, which are exclusively locked; the critical section makes dirty pages and
        // their records one. Room for the records is made before it: running out of memory inside is a PANIC.
        unsafe {
            if logged {
                pg_sys::XLogEnsureRecordSpace(pg_sys::XLR_MAX_BLOCK_ID as i32 - 1, 0);
            }
            pg_sys::CritSectionCount += 1;
            for (guard, image) in guards.iter().zip(images.iter()) {
                std::ptr::copy_nonoverlapping(image.0.as_ptr(), guard.page as *mut u8, PAGE_SIZE);
                pg_sys::MarkBufferDirty(guard.buffer);
            }
            if logged {
                for pages in guards.chunks_mut(pg_sys::XLR_MAX_BLOCK_ID as usize) {
                    wal::log_whole(pages);
                }
            }
            pg_sys::CritSectionCount -= 1;
        }
    }

    fn blocks(&self) -> BlockNo {
        // SAFETY: the relation is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.rel, MAIN) }
    }

    /// As VACUUM of PostgreSQL's B-tree does (`btvacuumscan`): who adds a page holds this lock until the page is
    /// locked.
    fn settled_blocks(&self) -> BlockNo {
        // SAFETY: the relation is open; the lock is held for a moment.
        unsafe {
            pg_sys::LockRelationForExtension(self.rel, pg_sys::ExclusiveLock as i32);
            let blocks = self.blocks();
            pg_sys::UnlockRelationForExtension(self.rel, pg_sys::ExclusiveLock as i32);
            blocks
        }
    }

    fn interrupt(&self) {
        pgrx::check_for_interrupts!();
    }

    fn stop(&self, point: &'static str) {
        stop_points::reach(point);
    }

    fn place_of(&self, page: &Locked) -> u32 {
        // Local buffers have negative numbers.
        u32::try_from(page.buffer).unwrap_or(0)
    }

    fn expect(&self, place: u32) {
        prefetch(place);
    }
}

/// Whether this is a shared buffer that will not be replaced soon. Finding other buffers through the table of buffers
/// takes longer, and counts as a use. Without such uses they would be replaced though they are read all the time.
fn is_much_used(buffer: u32) -> bool {
    // SAFETY: the array of descriptors has NBuffers members, whose state is read and written atomically only.
    unsafe {
        if buffer == 0 || buffer > pg_sys::NBuffers as u32 {
            return false;
        }
        let descriptor = pg_sys::BufferDescriptors.add(buffer as usize - 1);
        let state = AtomicU32::from_ptr(&raw mut (*descriptor).bufferdesc.state.value);
        let uses = state.load(Ordering::Relaxed) & pg_sys::BUF_USAGECOUNT_MASK;
        uses >= pg_sys::BM_MAX_USAGE_COUNT * pg_sys::BUF_USAGECOUNT_ONE / 2
    }
}

/// Parts of a page that every reader looks at: its headers, and the special area.
#[cfg(target_arch = "x86_64")]
const LOOKED_AT: [usize; 5] = [0, 64, 128, PAGE_SIZE - 128, PAGE_SIZE - 64];

/// Asks the processor for the shared buffer of this number, whatever is in it now.
#[cfg(target_arch = "x86_64")]
fn prefetch(buffer: u32) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    // SAFETY: the arrays of buffers and their descriptors have NBuffers members; nothing is read.
    unsafe {
        if buffer == 0 || buffer > pg_sys::NBuffers as u32 {
            return;
        }
        let at = buffer as usize - 1;
        _mm_prefetch::<_MM_HINT_T0>(pg_sys::BufferDescriptors.add(at).cast());
        let page = pg_sys::BufferBlocks.add(at * PAGE_SIZE);
        for offset in LOOKED_AT {
            _mm_prefetch::<_MM_HINT_T0>(page.add(offset));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch(_buffer: u32) {}
