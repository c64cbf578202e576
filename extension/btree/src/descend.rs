//! Finding pages: the descent from the root, moving right, and the way back up.

use crate::block::{BlockNo, NO_BLOCK};
use crate::error::{corrupt, Result};
use crate::inner::InnerView;
use crate::key::{cmp, Key};
use crate::page::{Frame, Page};
use crate::store::PageStore;
use crate::tree::{entry_count, Tree};
use std::cmp::Ordering;

/// More levels than any tree over 2^32 pages has.
const MAX_LEVELS: usize = 33;
/// Restarts after which a descent is taken to run in circles. Each one means that another session
/// changed the very pages on the way.
const MAX_RESTARTS: u32 = 1_000;

/// The pages passed on the way down, by level: hints for the way back up.
pub(crate) struct Path([BlockNo; MAX_LEVELS]);

impl Path {
    pub fn new() -> Self {
        Path([NO_BLOCK; MAX_LEVELS])
    }

    fn set(&mut self, level: u8, block: BlockNo) {
        if let Some(slot) = self.0.get_mut(usize::from(level)) {
            *slot = block;
        }
    }

    fn at(&self, level: u8) -> BlockNo {
        self.0.get(usize::from(level)).copied().unwrap_or(NO_BLOCK)
    }
}

/// Which page of a level is looked for.
#[derive(Clone, Copy)]
pub(crate) enum Target<'k> {
    /// The one whose range holds the key.
    Holding(&'k Key),
    /// The one that holds the greatest keys less than the key (which is not the least of all).
    Below(&'k Key),
}

impl Target<'_> {
    /// Whether the page starts so late that the target is to its left.
    #[inline]
    fn left_of(self, frame: &Frame) -> bool {
        match self {
            Target::Holding(k) => !frame.starts_at_or_before(k),
            Target::Below(k) => cmp(&frame.low, k) != Ordering::Less,
        }
    }

    /// Whether the target is to the right of the page.
    #[inline]
    fn right_of(self, frame: &Frame) -> bool {
        match self {
            Target::Holding(k) => frame.ends_before(k),
            Target::Below(k) => match &frame.high {
                Some(h) => cmp(h, k) == Ordering::Less,
                None => false,
            },
        }
    }

    #[inline]
    fn child(self, inner: &InnerView<'_>) -> usize {
        match self {
            Target::Holding(k) => inner.child_for(k),
            Target::Below(k) => inner.child_below(k),
        }
    }
}

/// What a page turned out to be for someone looking for a target.
enum Arrival {
    Here(Frame),
    Right(BlockNo),
    Restart,
}

impl<S: PageStore> Tree<S> {
    fn arrive(
        &self,
        page: &Page,
        block: BlockNo,
        level: u8,
        target: Target<'_>,
        came_from: &mut Option<Key>,
    ) -> Result<Arrival> {
        let frame = page.frame(block)?;
        if !self.is_mine(&frame, level) || target.left_of(&frame) {
            return Ok(Arrival::Restart);
        }
        // Low fences ascend along right links, so that no circle of links can hold anyone.
        if came_from.is_some_and(|low| cmp(&frame.low, &low) != Ordering::Greater) {
            return Ok(Arrival::Restart);
        }
        if target.right_of(&frame) {
            if frame.right == NO_BLOCK {
                return corrupt(block, "upper bound without right sibling");
            }
            *came_from = Some(frame.low);
            return Ok(Arrival::Right(frame.right));
        }
        *came_from = None;
        Ok(Arrival::Here(frame))
    }

    /// Where a descent to `level` starts.
    fn start(&self, attempt: u32, level: u8) -> Result<(BlockNo, u8)> {
        let (mut block, mut top) = self.root.get();
        if attempt > 0 {
            self.store.interrupt();
        }
        if attempt > 0 || top < level {
            (block, top) = self.refresh_root()?;
        }
        if attempt > MAX_RESTARTS {
            return corrupt(block, "a descent from here does not arrive");
        }
        if top < level || usize::from(top) >= MAX_LEVELS {
            return corrupt(0, "tree height does not match its pages");
        }
        Ok((block, top))
    }

    /// Finds a page of `level` and locks it shared. `path` receives the pages on the way.
    pub(crate) fn find(
        &self,
        target: Target<'_>,
        level: u8,
        path: &mut Path,
    ) -> Result<(S::Read, BlockNo, Frame)> {
        self.walk_down::<false>(target, level, path, &mut 0)
    }

    /// [`Tree::find`] for the page holding `key`; `before` receives the number of entries in the pages
    /// to its left, as far as reported.
    pub(crate) fn find_counting(
        &self,
        key: &Key,
        level: u8,
        path: &mut Path,
        before: &mut u64,
    ) -> Result<(S::Read, BlockNo, Frame)> {
        self.walk_down::<true>(Target::Holding(key), level, path, before)
    }

    #[inline]
    fn walk_down<const COUNT: bool>(
        &self,
        target: Target<'_>,
        level: u8,
        path: &mut Path,
        before: &mut u64,
    ) -> Result<(S::Read, BlockNo, Frame)> {
        let mut attempt = 0;
        'restart: loop {
            let (mut block, mut at) = self.start(attempt, level)?;
            attempt += 1;
            *before = 0;
            let mut came_from = None;
            let mut first = true;
            loop {
                if !first {
                    self.store.stop("descent");
                }
                let page = self.store.read(block);
                match self.arrive(&page, block, at, target, &mut came_from)? {
                    Arrival::Restart => continue 'restart,
                    // A remembered root that is none any more: better start higher up.
                    Arrival::Right(_) if first && attempt == 1 => continue 'restart,
                    Arrival::Right(next) => {
                        if COUNT {
                            *before += entry_count(&page, &page.frame(block)?, block)?;
                        }
                        block = next;
                    }
                    Arrival::Here(frame) => {
                        if first && attempt == 1 && !frame.is_root() {
                            continue 'restart;
                        }
                        path.set(at, block);
                        if at == level {
                            return Ok((page, block, frame));
                        }
                        let inner = InnerView::open(&page, block)?;
                        let child = target.child(&inner);
                        if COUNT {
                            *before += inner.count_before(child);
                        }
                        block = inner.block(child);
                        at -= 1;
                    }
                }
                first = false;
            }
        }
    }

    /// Finds the page of `level` whose range holds `key` and locks it exclusively. Splits met on the
    /// way that lack their downlink are finished first.
    pub(crate) fn find_write(
        &self,
        key: &Key,
        level: u8,
        path: &mut Path,
    ) -> Result<(S::Write, BlockNo, Frame)> {
        let target = Target::Holding(key);
        let mut attempt = 0;
        'restart: loop {
            let (mut block, mut at) = self.start(attempt, level)?;
            attempt += 1;
            let mut came_from = None;
            let mut first = true;
            while at > level {
                let page = self.store.read(block);
                match self.arrive(&page, block, at, target, &mut came_from)? {
                    Arrival::Restart => continue 'restart,
                    Arrival::Right(_) if first && attempt == 1 => continue 'restart,
                    Arrival::Right(next) => {
                        if page.frame(block)?.incomplete() {
                            drop(page);
                            self.finish_at(block, at, path)?;
                            continue 'restart;
                        }
                        block = next;
                    }
                    Arrival::Here(frame) => {
                        if first && attempt == 1 && !frame.is_root() {
                            continue 'restart;
                        }
                        if frame.incomplete() {
                            drop(page);
                            self.finish_at(block, at, path)?;
                            continue 'restart;
                        }
                        path.set(at, block);
                        let inner = InnerView::open(&page, block)?;
                        block = inner.block(inner.child_for(key));
                        at -= 1;
                    }
                }
                first = false;
            }
            loop {
                self.store.stop("descent-to-write");
                let page = self.store.write(block);
                let arrival = self.arrive(&page, block, at, target, &mut came_from)?;
                if matches!(arrival, Arrival::Restart) {
                    continue 'restart;
                }
                if page.frame(block)?.incomplete() {
                    self.finish_split(page, block, path)?;
                    continue 'restart;
                }
                match arrival {
                    Arrival::Right(next) => block = next,
                    Arrival::Here(frame) => {
                        path.set(at, block);
                        return Ok((page, block, frame));
                    }
                    Arrival::Restart => continue 'restart,
                }
            }
        }
    }

    /// Whether a page is one of this level whose range holds `key`, without a split to finish.
    fn holds(&self, frame: &Frame, level: u8, key: &Key) -> bool {
        self.is_mine(frame, level)
            && frame.starts_at_or_before(key)
            && !frame.ends_before(key)
            && !frame.incomplete()
    }

    /// Locks the leaf exclusively that was at the right of another one and began at this key, if it does so still and
    /// its range holds `key`. Its split, if it has split, is finished.
    pub(crate) fn write_sibling(
        &self,
        sibling: Option<(BlockNo, Key)>,
        key: &Key,
    ) -> Result<Option<(S::Write, BlockNo, Frame)>> {
        let Some((block, low)) = sibling else {
            return Ok(None);
        };
        self.store.stop("descent-to-write");
        let page = self.store.write(block);
        let frame = page.frame(block)?;
        let is_same = frame.low == low && self.holds(&frame, 0, key);
        Ok(is_same.then_some((page, block, frame)))
    }

    /// Finishes the split of a page seen without its downlink, unless someone else has.
    pub(crate) fn finish_at(&self, block: BlockNo, level: u8, path: &mut Path) -> Result<()> {
        let page = self.store.write(block);
        let frame = page.frame(block)?;
        if self.is_mine(&frame, level) && frame.incomplete() {
            self.finish_split(page, block, path)?;
        }
        Ok(())
    }

    /// The page of `level` that holds the downlink of the child starting at `low`, exclusively locked,
    /// itself completely linked. The caller holds the lock of the child.
    pub(crate) fn find_parent(
        &self,
        low: &Key,
        level: u8,
        path: &mut Path,
    ) -> Result<(S::Write, BlockNo, Frame)> {
        let hint = path.at(level);
        if hint != NO_BLOCK {
            let page = self.store.write(hint);
            let frame = page.frame(hint)?;
            if self.holds(&frame, level, low) {
                return Ok((page, hint, frame));
            }
        }
        self.find_write(low, level, path)
    }
}
