//! Splits: installing the pages that one page became, finishing a split in the level above, and
//! reporting entry counts upwards.
//!
//! A split is one atomic change of the page and its new right siblings. Each page whose right sibling
//! has no downlink yet is flagged; the downlink goes in with a change of its own, which clears the flag.
//! Whoever meets a flagged page on the way to a write finishes its split first, so a crash in between
//! leaves nothing behind.

use crate::block::{BlockNo, NO_BLOCK};
use crate::descend::Path;
use crate::error::{corrupt, Result};
use crate::inner::{encode_inner, Child, InnerView};
use crate::key::{cmp, Key, KEY_MIN};
use crate::leaf::{edit, Entry, LeafView};
use crate::meta::Meta;
use crate::pack::{pack, Packing};
use crate::page::{Frame, Page, PageKind, F_INCOMPLETE, F_ROOT};
use crate::store::{Change, PageStore, MAX_ATOMIC_PAGES};
use crate::tree::{entry_count, Tree};
use crate::wal_delta::{inner_delta, leaf_delta};
use std::cmp::Ordering;

/// A leaf with its low fence and its number of entries, which its parent is to know.
pub(crate) struct Counted {
    pub low: Key,
    pub block: BlockNo,
    pub count: u64,
}

impl<S: PageStore> Tree<S> {
    /// Pages for [`Self::install`] of entries that are more than one page has room for.
    ///
    /// # Errors
    /// As [`pack`].
    pub(crate) fn pack_apart(&self, entries: &[Entry], frame: &Frame) -> Result<Vec<Box<Page>>> {
        let packing = Packing {
            max: (entries.len() - 1).clamp(1, self.leaf_max()),
            ascending: false,
            bytes: 0,
        };
        pack(entries, frame, packing, &mut self.scratch.borrow_mut())
    }

    /// Replaces a locked page by `images` (at least one, at most [`MAX_ATOMIC_PAGES`]): the first
    /// takes its place, the others become its right siblings. The images have their fences; links and
    /// flags are set here. `old` are the entries of the page, `entries` those of all images. Finishes the split, if
    /// there is one, and releases the page.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn install(
        &self,
        mut page: S::Write,
        block: BlockNo,
        frame: &Frame,
        mut images: Vec<Box<Page>>,
        (old, entries): (&[Entry], &[Entry]),
        conflict_xid: u32,
        path: &mut Path,
    ) -> Result<()> {
        debug_assert!(
            !images.is_empty() && images.len() <= MAX_ATOMIC_PAGES && !frame.incomplete()
        );
        let mut rights: Vec<S::Write> = (1..images.len()).map(|_| self.store.allocate()).collect();
        let blocks: Vec<BlockNo> = rights.iter().map(|r| self.store.block_of(r)).collect();
        let last = images.len() - 1;
        for (i, image) in images.iter_mut().enumerate() {
            let root = if i == 0 { frame.flags & F_ROOT } else { 0 };
            let open = if i < last { F_INCOMPLETE } else { 0 };
            image.set_right(if i < last { blocks[i] } else { frame.right });
            let bounds = image.flags() & !(F_ROOT | F_INCOMPLETE);
            image.set_flags(bounds | root | open);
        }
        let here = LeafView::open(&images[0], block)?.entries();
        let delta = leaf_delta(old, block, &entries[..here], &images[0])?;
        let mut changes = vec![Change::by(&mut page, &images[0], delta)];
        // New pages are logged whole: the old one may be, too, and then there is nothing to make them from.
        let new = rights.iter_mut().zip(&images[1..]);
        changes.extend(new.map(|(page, image)| Change::by(page, image, None)));
        self.store.commit(&mut changes, conflict_xid);
        drop(changes);
        drop(rights);
        if last > 0 {
            self.store.stop("split-before-downlink");
            self.finish_split(page, block, path)?;
            for &right in &blocks[..last - 1] {
                self.store.stop("split-between-downlinks");
                self.finish_at(right, frame.level, path)?;
            }
        }
        Ok(())
    }

    /// Gives the right sibling of a flagged page its downlink, splitting upwards as needed.
    pub(crate) fn finish_split(
        &self,
        mut left: S::Write,
        mut block: BlockNo,
        path: &mut Path,
    ) -> Result<()> {
        loop {
            let frame = left.frame(block)?;
            if !frame.incomplete() {
                return Ok(());
            }
            let Some(high) = frame.high else {
                return corrupt(block, "incomplete split of the last page of its level");
            };
            let right_count = {
                let right = self.store.read(frame.right);
                let f = right.frame(frame.right)?;
                if !self.is_mine(&f, frame.level) || f.low != high {
                    return corrupt(
                        block,
                        "right sibling of an incomplete split does not follow it",
                    );
                }
                entry_count(&right, &f, frame.right)?
            };
            let left_count = entry_count(&left, &frame, block)?;
            let mut image = left.clone();
            image.set_flags(frame.flags & !(F_INCOMPLETE | F_ROOT));
            if frame.kind == PageKind::Leaf {
                edit::set_counted(&mut image, left_count as usize);
            }
            let new = Child {
                low: high,
                block: frame.right,
                count: right_count,
                marks: 0,
            };
            if frame.is_root() {
                let old = Child {
                    low: frame.low,
                    block,
                    count: left_count,
                    marks: 0,
                };
                return self.grow(left, &image, &frame, [old, new]);
            }
            let (mut parent, at, pframe) = self.find_parent(&frame.low, frame.level + 1, path)?;
            let inner = InnerView::open(&parent, at)?;
            let i = inner.child_for(&frame.low);
            if !inner.starts_at(i, &frame.low) {
                // The page itself waits for its downlink: a writer has come to it by what it knew of a page that was
                // here before. Whoever comes by its left sibling finishes both splits.
                return Ok(());
            }
            if inner.block(i) != block {
                return corrupt(at, "no downlink to a page that has split");
            }
            if i + 1 < inner.children() && cmp(&inner.low(i + 1), &high) != Ordering::Greater {
                return corrupt(at, "a downlink for an incomplete split is there already");
            }
            let mut children = inner.decode()?;
            children[i].count = left_count;
            children.insert(i + 1, new);
            let Some(mut images) = self.inner_images(&children, &pframe, i + 2 == children.len())
            else {
                // The new child takes so much more room than the others that no half with it fits in a page. With fewer
                // beside it, it does.
                children.remove(i + 1);
                self.halve(parent, at, &pframe, &children, path)?;
                continue;
            };
            if images.len() == 1 {
                copy_place(&mut images[0], &pframe, pframe.right, 0);
                let delta = inner_delta(&parent, at, &children, &images[0])?;
                self.store.commit(
                    &mut [
                        Change::by(&mut parent, &images[0], delta),
                        Change::new(&mut left, &image),
                    ],
                    0,
                );
                drop(left);
                return self.propagate(parent, at, path);
            }
            self.install_two(
                &mut parent,
                at,
                &pframe,
                &children,
                &mut images,
                Some((&mut left, &image)),
            )?;
            left = parent;
            block = at;
        }
    }

    /// Splits a locked inner page in the middle, and finishes the split.
    fn halve(
        &self,
        mut page: S::Write,
        block: BlockNo,
        frame: &Frame,
        children: &[Child],
        path: &mut Path,
    ) -> Result<()> {
        let Some(mut images) = two_images(children, children.len() / 2, frame) else {
            return corrupt(block, "half of an inner page does not fit in a page");
        };
        self.install_two(&mut page, block, frame, children, &mut images, None)?;
        self.finish_split(page, block, path)
    }

    /// Replaces an inner page by two images with `children`, the second as its new right sibling. A change of another
    /// page goes with it, if there is one.
    fn install_two(
        &self,
        page: &mut S::Write,
        block: BlockNo,
        frame: &Frame,
        children: &[Child],
        images: &mut [Box<Page>],
        other: Option<(&mut S::Write, &Page)>,
    ) -> Result<()> {
        let mut sibling = self.store.allocate();
        let sibling_block = self.store.block_of(&sibling);
        copy_place(&mut images[0], frame, sibling_block, F_INCOMPLETE);
        let here = InnerView::open(&images[0], block)?.children();
        let delta = inner_delta(page, block, &children[..here], &images[0])?;
        copy_place(
            &mut images[1],
            &Frame { flags: 0, ..*frame },
            frame.right,
            0,
        );
        let mut changes = vec![
            Change::by(page, &images[0], delta),
            Change::new(&mut sibling, &images[1]),
        ];
        changes.extend(other.map(|(page, image)| Change::new(page, image)));
        self.store.commit(&mut changes, 0);
        Ok(())
    }

    /// Puts a new root above a root that has split.
    fn grow(
        &self,
        mut left: S::Write,
        image: &Page,
        frame: &Frame,
        children: [Child; 2],
    ) -> Result<()> {
        let mut meta_page = self.store.write(0);
        let mut meta = Meta::decode(&meta_page)?;
        let info = meta.order_mut(self.index)?;
        if info.root != children[0].block {
            return corrupt(children[0].block, "flagged as root but not the root");
        }
        let mut root = self.store.allocate();
        info.root = self.store.block_of(&root);
        info.root_level = frame.level + 1;
        let hint = (info.root, info.root_level);
        let root_frame = Frame {
            kind: PageKind::Inner,
            order: frame.order,
            level: frame.level + 1,
            flags: F_ROOT,
            right: NO_BLOCK,
            low: KEY_MIN,
            high: None,
        };
        let Some(root_image) = encode_inner(&children, &root_frame) else {
            return corrupt(children[0].block, "two children do not fit in a page");
        };
        let meta_image = meta.encode();
        self.store.commit(
            &mut [
                Change::new(&mut left, image),
                Change::new(&mut root, &root_image),
                Change::new(&mut meta_page, &meta_image),
            ],
            0,
        );
        self.root.set(hint);
        Ok(())
    }

    /// Encodes the children of an inner page as one page, or as two when they are too many. `None` when they do not fit
    /// in two pages of about the same number of children. Links and flags are left to the caller. `ascending`: the
    /// newest child is the last one.
    fn inner_images(
        &self,
        children: &[Child],
        frame: &Frame,
        ascending: bool,
    ) -> Option<Vec<Box<Page>>> {
        let max = self.inner_max();
        if children.len() <= max {
            if let Some(image) = encode_inner(children, frame) {
                return Some(vec![image]);
            }
        }
        let n = children.len();
        // At the right edge leave the left page nearly full, as ascending inserts do not come back.
        let middle = if ascending && frame.high.is_none() {
            (n * 9 / 10).clamp(1, n - 1).min(max)
        } else {
            n / 2
        };
        let mut places = [middle, n / 2].into_iter();
        places.find_map(|at| two_images(children, at, frame))
    }

    /// Tells the parents of leaves, given in the order of their keys, how many entries those have, and their ancestors
    /// in turn. A parent is encoded anew once for all its children, which are not locked meanwhile. So a number may
    /// come too late to be right: those of inner pages are estimates. An all-visible leaf keeps its number, which is
    /// exact.
    pub(crate) fn report(&self, leaves: &[Counted], path: &mut Path) -> Result<()> {
        let Some(Counted { low, .. }) = leaves.last() else {
            return Ok(());
        };
        // While one leaf that is not the root is locked, the tree cannot shrink to a leaf alone.
        let (_leaf, _, frame) = self.find_write(low, 0, path)?;
        if frame.is_root() {
            return Ok(());
        }
        let mut rest = leaves;
        while let Some(Counted { low, .. }) = rest.first() {
            let (mut parent, at, pframe) = self.find_parent(low, 1, path)?;
            let here = rest.partition_point(|leaf| !pframe.ends_before(&leaf.low));
            let inner = InnerView::open(&parent, at)?;
            let mut children = inner.decode()?;
            let mut changed = false;
            for leaf in &rest[..here] {
                let child = &mut children[inner.child_for(&leaf.low)];
                let same = child.block == leaf.block && child.low == leaf.low;
                if same && child.marks == 0 && child.count != leaf.count {
                    child.count = leaf.count;
                    changed = true;
                }
            }
            rest = &rest[here..];
            if changed && self.set_children(&mut parent, at, &pframe, &children)? {
                self.propagate(parent, at, path)?;
            }
        }
        Ok(())
    }

    /// Puts an inner page with these children, of which only counts have changed, in the place of the old one; false
    /// where it is too full for longer numbers, and keeps its old ones.
    fn set_children(
        &self,
        page: &mut S::Write,
        block: BlockNo,
        frame: &Frame,
        children: &[Child],
    ) -> Result<bool> {
        let Some(mut image) = encode_inner(children, frame) else {
            return Ok(false);
        };
        copy_place(&mut image, frame, frame.right, frame.flags & F_INCOMPLETE);
        let delta = inner_delta(page, block, children, &image)?;
        self.store.commit(&mut [Change::by(page, &image, delta)], 0);
        Ok(true)
    }

    /// Tells the ancestors the number of entries below a page, as long as it is news to them. Holds
    /// two locks at a time, going up. Counts are estimates: where a page is too full for a longer
    /// number, they stay as they are.
    pub(crate) fn propagate(
        &self,
        mut child: S::Write,
        mut block: BlockNo,
        path: &mut Path,
    ) -> Result<()> {
        loop {
            let frame = child.frame(block)?;
            if frame.is_root() {
                return Ok(());
            }
            let count = entry_count(&child, &frame, block)?;
            let (mut parent, at, pframe) = self.find_parent(&frame.low, frame.level + 1, path)?;
            let inner = InnerView::open(&parent, at)?;
            let i = inner.child_for(&frame.low);
            if inner.block(i) != block || inner.count(i) == count {
                return Ok(());
            }
            let mut children = inner.decode()?;
            children[i].count = count;
            if !self.set_children(&mut parent, at, &pframe, &children)? {
                return Ok(());
            }
            child = parent;
            block = at;
        }
    }
}

/// The children before number `at` and the others as the images of two pages, if they fit.
fn two_images(children: &[Child], at: usize, frame: &Frame) -> Option<Vec<Box<Page>>> {
    let (left, right) = children.split_at(at);
    let split = right[0].low;
    let high = Some(split);
    let left = encode_inner(left, &Frame { high, ..*frame })?;
    let low = split;
    let right = encode_inner(right, &Frame { low, ..*frame })?;
    Some(vec![left, right])
}

/// Sets right link and flags of the new image of a page.
fn copy_place(image: &mut Page, frame: &Frame, right: BlockNo, incomplete: u16) {
    image.set_right(right);
    let bounds = image.flags() & !(F_ROOT | F_INCOMPLETE);
    image.set_flags(bounds | (frame.flags & F_ROOT) | incomplete);
}
