//! A page of a `quad` table in a pinned and locked buffer.

use pgquad_btree::{BlockNo, Page, PAGE_SIZE};
use pgrx::pg_sys;
use std::ops::Deref;

/// A pinned and locked buffer; unlocked and released on drop.
pub struct Locked {
    pub(super) buffer: pg_sys::Buffer,
    pub(super) page: *const Page,
    pub(super) block: BlockNo,
}

impl Locked {
    /// A buffer, with the number of its block.
    ///
    /// # Safety
    /// `buffer` is pinned and locked by the caller, who hands both over.
    pub(super) unsafe fn new(buffer: pg_sys::Buffer) -> Self {
        // SAFETY: the buffer is pinned, so its tag stays put; the caller's promise.
        unsafe { Self::of(buffer, pg_sys::BufferGetBlockNumber(buffer)) }
    }

    /// A buffer that holds this block.
    ///
    /// # Safety
    /// As for [`Self::new`]; the buffer holds this block.
    pub(super) unsafe fn of(buffer: pg_sys::Buffer, block: BlockNo) -> Self {
        Self {
            buffer,
            // SAFETY: the buffer is pinned, so its page stays put.
            page: unsafe { pg_sys::BufferGetPage(buffer) } as *const Page,
            block,
        }
    }

    /// The buffer.
    pub(super) fn buffer(&self) -> pg_sys::Buffer {
        self.buffer
    }

    /// The page, to be changed.
    ///
    /// # Safety
    /// The lock is an exclusive one.
    pub(super) unsafe fn contents(&mut self) -> &mut Page {
        // SAFETY: pinned and locked while `self` lives, and nobody else looks at it by the caller's promise.
        unsafe { &mut *self.page.cast_mut() }
    }
}

impl Deref for Locked {
    type Target = Page;
    fn deref(&self) -> &Page {
        // SAFETY: pinned and locked while `self` lives; a page is PAGE_SIZE bytes, aligned to 8.
        unsafe { &*self.page }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // While unwinding, PostgreSQL's own abort releases locks and pins; errfinish has reset the interrupt hold-off
        // count that an unlock here would decrement below zero.
        if !std::thread::panicking() {
            // SAFETY: this guard owns the lock and the pin.
            unsafe { pg_sys::UnlockReleaseBuffer(self.buffer) }
        }
    }
}

const _: () = assert!(PAGE_SIZE == pg_sys::BLCKSZ as usize);
