//! What the trees ask of their surroundings: pages, transaction states, visibility.

use crate::block::BlockNo;
use crate::page::Page;
use crate::wal_delta::byte_delta;
use std::ops::Deref;

/// The largest number of pages one [`PageStore::commit`] is asked to change.
pub const MAX_ATOMIC_PAGES: usize = 4;

/// The largest number of pages one [`PageStore::put`] is asked to write: as many as one record of PostgreSQL's log can
/// hold.
pub const MAX_APPENDED_PAGES: usize = 32;

/// One page of an atomic change: the locked page and its new contents.
pub struct Change<'a, W> {
    /// The page, exclusively locked.
    pub page: &'a mut W,
    /// Its new contents. `pd_lsn` and `pd_checksum` (the first 10 bytes) are unspecified: the store
    /// keeps or sets those itself. Bytes between `pd_lower` and `pd_upper` are unused.
    pub image: &'a Page,
    /// How [`redo`](crate::redo) makes the image from what the page holds now, for a log that has a use for it. Empty
    /// when nothing is much shorter than the image, or when the page holds nothing yet.
    pub delta: Vec<u8>,
}

impl<'a, W: Deref<Target = Page>> Change<'a, W> {
    /// A change described by the bytes that differ.
    pub(crate) fn new(page: &'a mut W, image: &'a Page) -> Self {
        let delta = match page.is_free() {
            true => None,
            false => byte_delta(page, image),
        };
        Change::by(page, image, delta)
    }

    /// A change described by a delta, if there is one.
    pub(crate) fn by(page: &'a mut W, image: &'a Page, delta: Option<Vec<u8>>) -> Self {
        let delta = delta.unwrap_or_default();
        Change { page, image, delta }
    }
}

/// A file of pages with page locks and atomic, logged changes.
///
/// Guards are owned values that release lock and pin when dropped, also when unwinding. The trees
/// lock in one direction only: left to right within a level, then up, the metapage last.
pub trait PageStore {
    /// Pinned and share-locked while alive.
    type Read: Deref<Target = Page>;
    /// Pinned and exclusively locked while alive. A read-only view: changes go through
    /// [`PageStore::commit`], after which it shows the new contents.
    type Write: Deref<Target = Page>;

    /// Locks a page shared. A block past the end of the file (only a corrupt pointer leads there)
    /// may raise the store's own error or show a page of zeroes.
    fn read(&self, block: BlockNo) -> Self::Read;

    /// The same for a page that was last seen at this place (see [`PageStore::place_of`]), which it may have left.
    #[inline]
    fn read_at(&self, block: BlockNo, _place: u32) -> Self::Read {
        self.read(block)
    }

    /// Locks a page exclusively. As [`PageStore::read`] for blocks past the end.
    fn write(&self, block: BlockNo) -> Self::Write;

    /// The block number of a locked page.
    fn block_of(&self, page: &Self::Write) -> BlockNo;

    /// A free or new page, exclusively locked, contents undefined. The store must not wait for page locks here, as the
    /// caller holds some. A page that it remembers as free may be handed out only when [`Page::is_free`] still says so
    /// under the exclusive lock.
    fn allocate(&self) -> Self::Write;

    /// The page has been committed as deleted and no lock on it is held: remember it for
    /// [`PageStore::allocate`]. It may be handed out at once: readers check what they find.
    fn free(&self, block: BlockNo);

    /// Replaces the contents of at most [`MAX_ATOMIC_PAGES`] locked pages by one atomic, logged
    /// change. `conflict_xid` is the newest transaction that the change freezes or removes entries
    /// of, which a standby must no longer run snapshots against; 0 = none.
    fn commit(&self, changes: &mut [Change<'_, Self::Write>], conflict_xid: u32);

    /// Adds so many consecutive pages of zeroes at the end of the file, not logged; returns the block of the first.
    /// Called under a lock that keeps everyone else from extending the file.
    fn extend(&self, pages: usize) -> BlockNo;

    /// Replaces the contents of at most [`MAX_APPENDED_PAGES`] consecutive pages of the file, fully logged. Nothing
    /// points to them yet, or nobody else sees the file.
    fn put(&self, first: BlockNo, images: &mut [Page]);

    /// Number of pages of the file.
    fn blocks(&self) -> BlockNo;

    /// Number of pages of the file, of which nobody is adding one just now: each is either written or locked by who has
    /// added it.
    fn settled_blocks(&self) -> BlockNo {
        self.blocks()
    }

    /// Called between pages: the place for cancellation (by unwinding). Where page locks may be held,
    /// the store must do nothing, as PostgreSQL's `CHECK_FOR_INTERRUPTS` does by itself.
    fn interrupt(&self);

    /// A number for the place in memory where a page is, which [`PageStore::expect`] and [`PageStore::read_at`]
    /// understand; 0 = none. The page may leave it once it is no longer locked.
    #[inline]
    fn place_of(&self, _page: &Self::Read) -> u32 {
        0
    }

    /// The page that was last seen at this place will be read soon.
    #[inline]
    fn expect(&self, _place: u32) {}

    /// Called between the steps of an operation that others can come in between: a place where tests hold
    /// one session up to let others run. See "Stop points" in the README for the names.
    #[inline]
    fn stop(&self, _point: &'static str) {}
}

impl<T: PageStore + ?Sized> PageStore for &T {
    type Read = T::Read;
    type Write = T::Write;

    fn read(&self, block: BlockNo) -> Self::Read {
        (**self).read(block)
    }

    fn read_at(&self, block: BlockNo, place: u32) -> Self::Read {
        (**self).read_at(block, place)
    }

    fn write(&self, block: BlockNo) -> Self::Write {
        (**self).write(block)
    }

    fn block_of(&self, page: &Self::Write) -> BlockNo {
        (**self).block_of(page)
    }

    fn allocate(&self) -> Self::Write {
        (**self).allocate()
    }

    fn free(&self, block: BlockNo) {
        (**self).free(block)
    }

    fn commit(&self, changes: &mut [Change<'_, Self::Write>], conflict_xid: u32) {
        (**self).commit(changes, conflict_xid)
    }

    fn extend(&self, pages: usize) -> BlockNo {
        (**self).extend(pages)
    }

    fn put(&self, first: BlockNo, images: &mut [Page]) {
        (**self).put(first, images);
    }

    fn blocks(&self) -> BlockNo {
        (**self).blocks()
    }

    fn settled_blocks(&self) -> BlockNo {
        (**self).settled_blocks()
    }

    fn interrupt(&self) {
        (**self).interrupt()
    }

    fn stop(&self, point: &'static str) {
        (**self).stop(point)
    }

    fn place_of(&self, page: &Self::Read) -> u32 {
        (**self).place_of(page)
    }

    fn expect(&self, place: u32) {
        (**self).expect(place)
    }
}

/// What became of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XidStatus {
    /// Running in another session (or prepared).
    InProgress,
    /// Committed.
    Committed,
    /// Rolled back or lost in a crash.
    Aborted,
    /// The current transaction or one of its live subtransactions or parents.
    Own,
}

/// The states of transactions. Never asked about the numbers 0 and 2.
pub trait TxnStatus {
    /// The state of `xid` now.
    fn status(&self, xid: u32) -> XidStatus;
    /// Whether `xid` is finished and older than every snapshot in use.
    fn all_visible(&self, xid: u32) -> bool;
    /// Whether `a` is older than `b` (numbers wrap around).
    fn precedes(&self, a: u32, b: u32) -> bool;
}

/// Visibility for one statement. Never asked about the transaction numbers 0 and 2.
pub trait Snapshot {
    /// Whether an insertion by `xmin` in its command `cmin` is seen.
    fn sees_insert(&self, xmin: u32, cmin: u32) -> bool;
    /// Whether a deletion by `xmax` in its command `cmax` is seen.
    fn sees_delete(&self, xmax: u32, cmax: u32) -> bool;
    /// Whether a later statement of the transaction sees what has been committed meanwhile (READ COMMITTED): of two
    /// versions of a key, one that another transaction has deleted is no conflict, for it would not be seen.
    fn is_of_statement(&self) -> bool {
        false
    }
}
