//! Visibility marks: bits in the parent of a leaf by which range counts need not read the leaf (compare PostgreSQL's
//! visibility map).
//!
//! A leaf is *all-visible* when its page says that everyone sees all its entries. All of them are then in the base run,
//! frozen, without deletions or row locks, each key once. Vacuum marks such leaves in their parents. The mark promises
//! that the leaf is all-visible and that the parent notes the number of its entries exactly. Vacuum sets it with the
//! leaf locked, so that nobody can be changing it.
//!
//! Whoever is about to change an all-visible leaf takes the mark away first, by a change of its own, while the leaf is
//! locked. After its change the leaf is not all-visible, so the next writer need not look at the parent. A crash
//! between the two changes leaves an all-visible leaf without a mark, which the next vacuum puts right.
//!
//! A snapshot sees the same in a range whenever it looks. So a reader may take the count of a marked leaf and never
//! look at the leaf, whatever happens to it meanwhile.

use crate::block::BlockNo;
use crate::descend::{Path, Target};
use crate::error::Result;
use crate::inner::{set_marks, Child, InnerView, ALL_VISIBLE, DEFAULT_GRAPH_ONLY};
use crate::key::{Key, GRAPH};
use crate::leaf::LeafView;
use crate::order::Order;
use crate::page::{Frame, FROZEN_XID, NO_XID};
use crate::store::{Change, PageStore};
use crate::tree::Tree;

/// The default graph, 0, in a key.
pub(crate) const DEFAULT_GRAPH_KEY: u64 = crate::key::SIGN;

/// The marks of an all-visible leaf, given whether a column of its keys has this value only.
pub(crate) fn marks_of(order: Order, is_only: impl Fn(usize, u64) -> bool) -> u8 {
    if is_only(order.position(GRAPH), DEFAULT_GRAPH_KEY) {
        ALL_VISIBLE | DEFAULT_GRAPH_ONLY
    } else {
        ALL_VISIBLE
    }
}

impl LeafView<'_> {
    /// Whether everyone sees all entries, each key being there once.
    pub(crate) fn is_all_visible(&self) -> bool {
        self.base_xmin().0 == FROZEN_XID
            && self.slots() == 0
            && !self.has_dead_bitmap()
            && !self.has_duplicates()
    }

    /// The marks that the leaf deserves.
    pub(crate) fn marks(&self, order: Order) -> u8 {
        if !self.is_all_visible() {
            return 0;
        }
        marks_of(order, |column, value| {
            self.run.len() == 0 || self.run.constant(column) == Some(value)
        })
    }
}

impl<S: PageStore> Tree<S> {
    /// Takes away the marks of a leaf that is about to change. `page` is the leaf, exclusively locked.
    pub(crate) fn clear_visibility_marks(
        &self,
        page: &S::Write,
        block: BlockNo,
        frame: &Frame,
        path: &mut Path,
    ) -> Result<()> {
        if frame.is_root() || !LeafView::open(page, block)?.is_all_visible() {
            return Ok(());
        }
        let (mut parent, at, _) = self.find_parent(&frame.low, 1, path)?;
        let inner = InnerView::open(&parent, at)?;
        let i = inner.child_for(&frame.low);
        if inner.block(i) != block || inner.marks(i) == 0 {
            return Ok(());
        }
        let mut image = (*parent).clone();
        set_marks(&mut image, at, i, 0)?;
        self.store
            .commit(&mut [Change::new(&mut parent, &image)], NO_XID);
        Ok(())
    }

    /// Marks those children of the parent of leaves that holds `key` that are all-visible and counted exactly.
    pub(crate) fn set_visibility_marks(&self, key: &Key, path: &mut Path) -> Result<()> {
        let (children, high) = {
            let (page, block, frame) = self.find(Target::Holding(key), 1, path)?;
            (InnerView::open(&page, block)?.decode()?, frame.high)
        };
        for (i, child) in children.iter().enumerate() {
            self.store.interrupt();
            let end = children.get(i + 1).map_or(high, |next| Some(next.low));
            self.set_child_marks(child, end, path)?;
        }
        Ok(())
    }

    fn set_child_marks(&self, child: &Child, end: Option<Key>, path: &mut Path) -> Result<()> {
        let page = self.store.read(child.block);
        let frame = page.frame(child.block)?;
        if !self.is_mine(&frame, 0) || frame.low != child.low || frame.high != end {
            return Ok(());
        }
        let leaf = LeafView::open(&page, child.block)?;
        let marks = leaf.marks(self.order());
        if marks == child.marks || frame.incomplete() {
            return Ok(());
        }
        self.store.stop("vacuum-before-mark");
        let (mut parent, at, _) = self.find_parent(&child.low, 1, path)?;
        let inner = InnerView::open(&parent, at)?;
        let i = inner.child_for(&child.low);
        let same = inner.block(i) == child.block
            && inner.starts_at(i, &child.low)
            && inner.count(i) == leaf.entries() as u64;
        if !same || inner.marks(i) == marks {
            return Ok(());
        }
        let mut image = (*parent).clone();
        set_marks(&mut image, at, i, marks)?;
        self.store
            .commit(&mut [Change::new(&mut parent, &image)], NO_XID);
        Ok(())
    }
}
