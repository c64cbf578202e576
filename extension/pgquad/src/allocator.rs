//! The allocator of this library's own memory: free blocks of small sizes are kept for the next allocation of their size.
//!
//! A query makes and drops many short vectors, more of a size at a time than the caches of the C library hold. Only the thread that
//! PostgreSQL runs on keeps blocks, at most [`KEPT`] bytes of each size; everything else is the C library's business.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// Sizes are rounded up to multiples of this, to which blocks are aligned.
const GRAIN: usize = 16;
/// Largest block that is kept.
const LARGEST: usize = 2048;
const SIZES: usize = LARGEST / GRAIN + 1;
/// Bytes of free blocks of one size that are kept.
const KEPT: usize = 16 * 1024;

/// Blocks from this size on are the system's own, given back as soon as they are free.
#[cfg(target_env = "gnu")]
const FROM_SYSTEM: i32 = 4 << 20;
/// Free memory at the end of the heap beyond which it is given back.
#[cfg(target_env = "gnu")]
const UNUSED: i32 = 8 << 20;

#[global_allocator]
static ALLOCATOR: Keeping = Keeping;

struct Keeping;

/// A free block: it begins with the address of the next one.
struct Free {
    next: *mut Free,
}

/// The free blocks of one size.
struct List {
    first: Cell<*mut Free>,
    length: Cell<usize>,
}

/// What a thread keeps. It needs no destructor, so it can be used for as long as the thread runs.
struct Lists {
    keeps: Cell<bool>,
    by_size: [List; SIZES],
}

thread_local! {
    static LISTS: Lists = const {
        Lists {
            keeps: Cell::new(false),
            by_size: [const {
                List {
                    first: Cell::new(ptr::null_mut()),
                    length: Cell::new(0),
                }
            }; SIZES],
        }
    };
}

/// Makes this thread keep blocks: to be called on the one that PostgreSQL runs on, which lives as long as the process.
pub fn init() {
    LISTS.with(|lists| lists.keeps.set(true));
    // Tables and batches of a query are made anew for each: giving their pages back every time costs more than the query's work on
    // them. SAFETY: plain settings of the C library.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, FROM_SYSTEM);
        libc::mallopt(libc::M_TRIM_THRESHOLD, UNUSED);
    }
}

/// The number of the size of a block, if it is one that is kept.
#[inline]
fn size_of(layout: &Layout) -> Option<usize> {
    (layout.size() <= LARGEST && layout.align() <= GRAIN).then(|| layout.size().div_ceil(GRAIN))
}

/// The layout of the blocks of a size.
#[inline]
fn rounded(size: usize) -> Layout {
    // SAFETY: a power of two, and a small multiple of it.
    unsafe { Layout::from_size_align_unchecked(size * GRAIN, GRAIN) }
}

#[inline]
unsafe fn take(size: usize) -> *mut u8 {
    let kept = LISTS.with(|lists| {
        let list = &lists.by_size[size];
        let first = list.first.get();
        if !first.is_null() {
            // SAFETY: what is in a list is a free block of this thread's, at least as large as its head.
            list.first.set(unsafe { (*first).next });
            list.length.set(list.length.get() - 1);
        }
        first
    });
    if kept.is_null() {
        // SAFETY: the size is not zero.
        unsafe { System.alloc(rounded(size)) }
    } else {
        kept.cast()
    }
}

#[inline]
unsafe fn give(block: *mut u8, size: usize) {
    let kept = LISTS.with(|lists| {
        let list = &lists.by_size[size];
        let keep = lists.keeps.get() && list.length.get() * size * GRAIN < KEPT;
        if keep {
            let block = block.cast::<Free>();
            // SAFETY: the block is free, GRAIN bytes long at least, and aligned to GRAIN.
            unsafe {
                block.write(Free {
                    next: list.first.get(),
                });
            }
            list.first.set(block);
            list.length.set(list.length.get() + 1);
        }
        keep
    });
    if !kept {
        // SAFETY: blocks of kept sizes are all made by `take`, with this layout.
        unsafe { System.dealloc(block, rounded(size)) }
    }
}

// SAFETY: blocks come from the system's allocator and are handed out to one owner at a time; a list is used by its thread only. All
// blocks of a layout that `size_of` knows are made and freed with the layout of their size, whichever thread does it.
unsafe impl GlobalAlloc for Keeping {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise: the size is not zero.
        unsafe {
            match size_of(&layout) {
                Some(size) => take(size),
                None => System.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise; a block is as long as its layout says.
        unsafe {
            let Some(size) = size_of(&layout) else {
                return System.alloc_zeroed(layout);
            };
            let block = take(size);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: the block was allocated with this layout.
        unsafe {
            match size_of(&layout) {
                Some(size) => give(block, size),
                None => System.dealloc(block, layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise: the new size, rounded up to the alignment, is a valid one.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller's promise; both blocks are as long as what is copied.
        unsafe {
            match (size_of(&layout), size_of(&new_layout)) {
                (None, None) => System.realloc(block, layout, new_size),
                (Some(old), Some(new)) if old == new => block,
                _ => {
                    let new = self.alloc(new_layout);
                    if !new.is_null() {
                        ptr::copy_nonoverlapping(block, new, layout.size().min(new_size));
                        self.dealloc(block, layout);
                    }
                    new
                }
            }
        }
    }
}
