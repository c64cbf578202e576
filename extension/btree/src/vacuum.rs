//! Vacuum: pruning and freezing every leaf, merging pages that have become small, and counting exactly.
//!
//! Works from the leaves up, one parent at a time. A page is given up by handing its range to its left neighbour under
//! the same parent. Left page, parent and the page itself are one change, locked left to right and then up. So the
//! first child of a parent stays, and an inner page never gets empty.
//!
//! Leaves are handed out again at once. Inner pages wait for [`Quads::reclaim`](crate::Quads::reclaim) in
//! the next vacuum. The reason is a deadlock: someone looking for the parent of a page keeps that page locked.
//! The remembered parent may have become a leaf meanwhile, locked by someone who waits for that very page.

use crate::block::BlockNo;
use crate::descend::{Path, Target};
use crate::error::Result;
use crate::inner::{self, encode_inner, Child, InnerView};
use crate::key::{cmp, Key, KEY_MIN};
use crate::leaf::{self, edit, encode_leaf, LeafView};
use crate::meta::Meta;
use crate::page::{Frame, Page, PageKind, F_INCOMPLETE, F_ROOT, NO_XID};
use crate::prune_and_freeze::prune_and_freeze;
use crate::store::{Change, PageStore, TxnStatus};
use crate::tree::{entry_count, Tree};
use crate::wal_delta::inner_delta;
use std::cmp::Ordering;

/// What a vacuum found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumStats {
    /// Entries left that are not known to be deleted.
    pub live: u64,
    /// Entries left that are deleted, but possibly still seen by someone.
    pub dead: u64,
    /// Entries removed.
    pub removed: u64,
    /// Leaf pages left.
    pub leaves: u64,
    /// Pages given up: leaves to be reused at once, inner pages after [`crate::Quads::reclaim`].
    pub freed: u64,
    /// The oldest transaction number left in the tree; 0 = none.
    pub oldest_xid: u32,
}

impl VacuumStats {
    fn note_oldest(&mut self, xid: u32, status: &dyn TxnStatus) {
        if xid != NO_XID && (self.oldest_xid == NO_XID || status.precedes(xid, self.oldest_xid)) {
            self.oldest_xid = xid;
        }
    }
}

/// A leaf after pruning.
struct Visited {
    block: BlockNo,
    high: Option<Key>,
}

impl<S: PageStore> Tree<S> {
    /// Vacuums the tree. Others may read and write meanwhile; two vacuums of one tree must not run at
    /// the same time.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn vacuum(&self, status: &dyn TxnStatus) -> Result<VacuumStats> {
        let mut stats = VacuumStats::default();
        let mut path = Path::new();
        let mut level = 0;
        loop {
            let (_, top) = self.refresh_root()?;
            if level == 0 && top == 0 {
                let leaf = self.vacuum_leaf(&KEY_MIN, status, &mut stats, &mut path)?;
                stats.leaves = 1;
                if leaf.high.is_none() {
                    break;
                }
                // It has split meanwhile: start again with its parent.
                stats = VacuumStats::default();
                continue;
            }
            if level >= top {
                break;
            }
            self.vacuum_level(level, status, &mut stats, &mut path)?;
            level += 1;
        }
        while self.lower_root()? {
            stats.freed += 1;
        }
        Ok(stats)
    }

    /// Treats the pages of a level, one parent after the other.
    fn vacuum_level(
        &self,
        level: u8,
        status: &dyn TxnStatus,
        stats: &mut VacuumStats,
        path: &mut Path,
    ) -> Result<()> {
        let mut key = KEY_MIN;
        loop {
            self.store.interrupt();
            let (children, high) = {
                let (page, block, frame) = self.find(Target::Holding(&key), level + 1, path)?;
                (InnerView::open(&page, block)?.decode()?, frame.high)
            };
            let mut left: Option<BlockNo> = None;
            for (i, child) in children.iter().enumerate() {
                let end = children.get(i + 1).map_or(high, |c| Some(c.low));
                if level > 0 {
                    left = self.merged_or(left, child.block, level, stats, path)?;
                    continue;
                }
                // One leaf, and its right parts if it has split meanwhile.
                let mut from = child.low;
                loop {
                    self.store.interrupt();
                    let leaf = self.vacuum_leaf(&from, status, stats, path)?;
                    left = self.merged_or(left, leaf.block, level, stats, path)?;
                    match leaf.high {
                        Some(h) if end.is_none_or(|e| cmp(&h, &e) == Ordering::Less) => from = h,
                        _ => break,
                    }
                }
            }
            self.recount(&key, level + 1, path)?;
            if level == 0 {
                self.set_visibility_marks(&key, path)?;
            }
            match high {
                Some(h) => key = h,
                None => return Ok(()),
            }
        }
    }

    /// Merges a page into its left neighbour if that is worthwhile; returns the page that the next one
    /// might be merged into.
    fn merged_or(
        &self,
        left: Option<BlockNo>,
        block: BlockNo,
        level: u8,
        stats: &mut VacuumStats,
        path: &mut Path,
    ) -> Result<Option<BlockNo>> {
        if let Some(left) = left {
            if left == block {
                return Ok(Some(left));
            }
            self.store.stop("vacuum-before-merge");
            if self.merge(left, block, level, path)? {
                stats.freed += 1;
                stats.leaves -= u64::from(level == 0);
                return Ok(Some(left));
            }
        }
        Ok(Some(block))
    }

    fn vacuum_leaf(
        &self,
        key: &Key,
        status: &dyn TxnStatus,
        stats: &mut VacuumStats,
        path: &mut Path,
    ) -> Result<Visited> {
        let (page, block, frame) = self.find_write(key, 0, path)?;
        let leaf = LeafView::open(&page, block)?;
        let mut entries = Vec::new();
        leaf.decode(&mut entries)?;
        let pruned = prune_and_freeze(&mut entries, status);
        stats.live += (entries.len() - pruned.dead) as u64;
        stats.dead += pruned.dead as u64;
        stats.removed += pruned.removed as u64;
        stats.leaves += 1;
        stats.note_oldest(pruned.oldest_xid, status);
        // A deletion that was taken back leaves its bitmap, empty, in a page whose entries are all visible.
        let could_be_all_visible = pruned.oldest_xid == NO_XID && !leaf.is_all_visible();
        if pruned.changed || could_be_all_visible {
            let mut old = Vec::new();
            leaf.decode(&mut old)?;
            let image = encode_leaf(&entries, &frame, &mut self.scratch.borrow_mut());
            let Some(mut image) = image else {
                // A column of fewer than eight values may take more bytes than one of eight.
                self.clear_visibility_marks(&page, block, &frame, path)?;
                let images = self.pack_apart(&entries, &frame)?;
                let changed = (&old[..], &entries[..]);
                self.install(
                    page,
                    block,
                    &frame,
                    images,
                    changed,
                    pruned.conflict_xid,
                    path,
                )?;
                return Ok(Visited {
                    block,
                    high: frame.high,
                });
            };
            self.replace(
                page,
                block,
                &frame,
                &mut image,
                (&old, &entries),
                pruned.conflict_xid,
            )?;
        }
        Ok(Visited {
            block,
            high: frame.high,
        })
    }

    /// Merges a page into its left neighbour if one of them is empty or both together are small.
    fn merge(
        &self,
        left_block: BlockNo,
        right_block: BlockNo,
        level: u8,
        path: &mut Path,
    ) -> Result<bool> {
        let mut left = self.store.write(left_block);
        let lf = left.frame(left_block)?;
        if !self.is_mine(&lf, level) || lf.incomplete() || lf.right != right_block {
            return Ok(false);
        }
        let mut right = self.store.write(right_block);
        let rf = right.frame(right_block)?;
        if !self.is_mine(&rf, level) || rf.incomplete() || Some(rf.low) != lf.high {
            return Ok(false);
        }
        let both = Frame {
            high: rf.high,
            ..lf
        };
        let Some((mut image, count)) =
            self.merged_image(&left, left_block, &right, right_block, &both)?
        else {
            return Ok(false);
        };
        image.set_right(rf.right);
        let bounds = image.flags() & !(F_ROOT | F_INCOMPLETE);
        image.set_flags(bounds);
        let (mut parent, at, pframe) = self.find_parent(&lf.low, level + 1, path)?;
        let inner = InnerView::open(&parent, at)?;
        let mut children = inner.decode()?;
        let i = inner.child_for(&lf.low);
        let adjacent = children[i].block == left_block
            && children
                .get(i + 1)
                .is_some_and(|c| c.block == right_block && c.low == rf.low);
        if !adjacent {
            return Ok(false);
        }
        children.remove(i + 1);
        children[i].count = count;
        children[i].marks = 0;
        let Some(mut parent_image) = encode_inner(&children, &pframe) else {
            return Ok(false);
        };
        parent_image.set_right(pframe.right);
        parent_image.set_flags(pframe.flags);
        let deleted = Page::deleted(self.index as u8, level);
        self.store.commit(
            &mut [
                Change::new(&mut left, &image),
                Change::new(&mut parent, &parent_image),
                Change::new(&mut right, &deleted),
            ],
            NO_XID,
        );
        drop(parent);
        drop(right);
        drop(left);
        if level == 0 {
            self.store.stop("vacuum-before-free");
            self.store.free(right_block);
        }
        Ok(true)
    }

    /// One page for the contents of two neighbours, and its number of entries, if it is small enough to
    /// be worthwhile.
    fn merged_image(
        &self,
        left: &Page,
        left_block: BlockNo,
        right: &Page,
        right_block: BlockNo,
        frame: &Frame,
    ) -> Result<Option<(Box<Page>, u64)>> {
        if frame.kind == PageKind::Inner {
            let mut children = InnerView::open(left, left_block)?.decode()?;
            children.extend(InnerView::open(right, right_block)?.decode()?);
            if children.len() > self.inner_max() / 2 {
                return Ok(None);
            }
            let count = children.iter().map(|c: &Child| c.count).sum();
            let image = encode_inner(&children, frame)
                .filter(|p| p.lower() - inner::RUN_AT <= inner::CAPACITY / 2);
            return Ok(image.map(|p| (p, count)));
        }
        let (l, r) = (
            LeafView::open(left, left_block)?,
            LeafView::open(right, right_block)?,
        );
        let one_empty = l.entries() == 0 || r.entries() == 0;
        if !one_empty
            && (l.used() + r.used() > leaf::CAPACITY / 10 * 6
                || (l.entries() + r.entries()) * 4 > self.leaf_max() * 3)
        {
            return Ok(None);
        }
        let (mut entries, mut more) = (Vec::new(), Vec::new());
        l.decode(&mut entries)?;
        r.decode(&mut more)?;
        entries.append(&mut more);
        let image = encode_leaf(&entries, frame, &mut self.scratch.borrow_mut());
        Ok(image.map(|mut p| {
            edit::set_counted(&mut p, entries.len());
            (p, entries.len() as u64)
        }))
    }

    /// Sets the counts of the inner page of `level` that holds `key` to what its children hold now.
    fn recount(&self, key: &Key, level: u8, path: &mut Path) -> Result<()> {
        // The children first, as locks are only taken upwards.
        let children = {
            let (page, block, _) = self.find(Target::Holding(key), level, path)?;
            InnerView::open(&page, block)?.decode()?
        };
        let mut counts = Vec::with_capacity(children.len());
        for child in &children {
            let page = self.store.read(child.block);
            let frame = page.frame(child.block)?;
            let count = if self.is_mine(&frame, level - 1) && frame.low == child.low {
                entry_count(&page, &frame, child.block)?
            } else {
                child.count
            };
            counts.push(count);
        }
        self.store.stop("vacuum-before-recount");
        let (mut page, block, frame) = self.find_write(key, level, path)?;
        let mut now = InnerView::open(&page, block)?.decode()?;
        let mut changed = false;
        let mut known = children.iter().zip(&counts).peekable();
        for child in &mut now {
            while known
                .next_if(|(c, _)| cmp(&c.low, &child.low) == Ordering::Less)
                .is_some()
            {}
            if let Some((c, count)) = known.peek() {
                if c.low == child.low && c.block == child.block && child.count != **count {
                    child.count = **count;
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok(());
        }
        // A page too full for longer numbers keeps its old ones.
        let Some(mut image) = encode_inner(&now, &frame) else {
            return Ok(());
        };
        image.set_right(frame.right);
        image.set_flags(frame.flags);
        let delta = inner_delta(&page, block, &now, &image)?;
        self.store
            .commit(&mut [Change::by(&mut page, &image, delta)], NO_XID);
        Ok(())
    }

    /// Makes the only child of the root the new root. Returns whether there was an only child.
    fn lower_root(&self) -> Result<bool> {
        let (block, level) = self.refresh_root()?;
        if level == 0 {
            return Ok(false);
        }
        let child_block = {
            let page = self.store.read(block);
            let frame = page.frame(block)?;
            let inner = InnerView::open(&page, block)?;
            if !self.is_mine(&frame, level) || !frame.is_root() || inner.children() > 1 {
                return Ok(false);
            }
            inner.block(0)
        };
        let mut child = self.store.write(child_block);
        let cf = child.frame(child_block)?;
        let mut root = self.store.write(block);
        let rf = root.frame(block)?;
        let whole = cf.high.is_none() && cf.low == KEY_MIN && !cf.incomplete();
        if !self.is_mine(&cf, level - 1)
            || !whole
            || !self.is_mine(&rf, level)
            || !rf.is_root()
            || rf.incomplete()
            || InnerView::open(&root, block)?.children() > 1
        {
            return Ok(false);
        }
        let mut meta_page = self.store.write(0);
        let mut meta = Meta::decode(&meta_page)?;
        let info = meta.order_mut(self.index)?;
        info.root = child_block;
        info.root_level = level - 1;
        let mut image = child.clone();
        image.set_flags(cf.flags | F_ROOT);
        let (deleted, meta_image) = (Page::deleted(self.index as u8, level), meta.encode());
        self.store.commit(
            &mut [
                Change::new(&mut child, &image),
                Change::new(&mut root, &deleted),
                Change::new(&mut meta_page, &meta_image),
            ],
            NO_XID,
        );
        drop((child, root, meta_page));
        self.root.set((child_block, level - 1));
        Ok(true)
    }
}
