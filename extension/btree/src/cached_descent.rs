//! Finding leaves by remembered inner pages, and estimates of ranges from them.

use crate::block::{BlockNo, NO_BLOCK};
use crate::error::Result;
use crate::gap::Gap;
use crate::inner::InnerView;
use crate::inner_page_cache::{kept, CacheBudget, InnerPageCache, Node};
use crate::key::{cmp, Key};
use crate::leaf::LeafView;
use crate::page::Frame;
use crate::store::PageStore;
use crate::tree::Tree;
use std::cmp::Ordering;
use std::rc::Rc;

/// So many leaves apart, the bounds of a range are not looked for in their leaves.
const FAR: usize = 16;

/// Where a leaf should be.
pub(crate) struct CachedDescent {
    node: Rc<Node>,
    child: usize,
}

impl CachedDescent {
    /// The block of the leaf.
    pub fn block(&self) -> BlockNo {
        self.node.blocks[self.child]
    }

    /// Where the leaf was in memory when it was last read; 0 = unknown.
    pub fn place(&self) -> u32 {
        self.node.places[self.child].get()
    }

    /// The leaf has been read, and is at this place.
    pub fn was_right(&self, place: u32) {
        self.node.places[self.child].set(place);
    }

    /// The leaf was another one, or has split.
    pub fn was_wrong(&self) {
        self.node.old.set(true);
    }

    /// Entries in the leaves to the left, as reported when the copy was made.
    fn before(&self) -> u64 {
        self.node.before[self.child]
    }

    /// Leaves from here to another one; many, if they are not below the same page.
    fn distance(&self, other: &CachedDescent) -> usize {
        if Rc::ptr_eq(&self.node, &other.node) {
            other.child.saturating_sub(self.child)
        } else {
            usize::MAX
        }
    }
}

impl<S: PageStore> Tree<S> {
    /// Where the leaf that holds `key` should be. `None` when only a descent tells: nothing is remembered of this tree,
    /// it has no inner pages, or they are being changed.
    pub(crate) fn cached_descent(&self, key: &Key) -> Result<Option<CachedDescent>> {
        let Some(cache) = &self.inner_page_cache else {
            return Ok(None);
        };
        if let Some(node) = kept(&cache.last).filter(|node| node.holds(key)) {
            let child = node.child_for(key);
            return Ok(Some(CachedDescent { node, child }));
        }
        let Some(mut node) = self.cached_root(cache)? else {
            return Ok(None);
        };
        loop {
            if !node.holds(key) {
                node.old.set(true);
                return Ok(None);
            }
            let child = node.child_for(key);
            if node.level == 1 {
                cache.last.replace(Some(node.clone()));
                return Ok(Some(CachedDescent { node, child }));
            }
            let place = &node.below[child];
            let below = match kept(place) {
                Some(below) => below,
                None => {
                    let (level, before) = (node.level - 1, node.before[child]);
                    let block = node.blocks[child];
                    if level == 1 && cache.budget.is_full() && !cache.is_missed_again(block) {
                        return Ok(None);
                    }
                    match self.copy_inner(block, level, before, &cache.budget)? {
                        Some(copy) => cache.keep(place, copy),
                        None => {
                            node.old.set(true);
                            return Ok(None);
                        }
                    }
                }
            };
            if !below.holds(key) {
                node.old.set(true);
            }
            node = below;
        }
    }

    /// The copy of the root, if it is an inner page.
    fn cached_root(&self, cache: &InnerPageCache) -> Result<Option<Rc<Node>>> {
        if let Some(root) = kept(&cache.root) {
            return Ok(Some(root));
        }
        let (mut block, mut level) = self.root.get();
        for attempt in 0..2 {
            if attempt > 0 {
                (block, level) = self.refresh_root()?;
            }
            if level > 0 {
                if let Some(root) = self.copy_inner(block, level, 0, &cache.budget)? {
                    if root.high.is_none() && root.low == [0; 4] {
                        return Ok(Some(cache.keep(&cache.root, root)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn copy_inner(
        &self,
        block: BlockNo,
        level: u8,
        before: u64,
        budget: &Rc<CacheBudget>,
    ) -> Result<Option<Node>> {
        let page = self.store.read(block);
        let frame = page.frame(block)?;
        if !self.is_mine(&frame, level) {
            return Ok(None);
        }
        Ok(Some(Node::new(
            &InnerView::open(&page, block)?,
            &frame,
            before,
            budget,
        )))
    }

    /// About as many entries as [`Tree::range_count`] finds: the pages above the leaves may be remembered ones, and in
    /// long ranges the leaves at the ends are not looked at.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn range_estimate(&self, lower: &Key, upper: &Key) -> Result<u64> {
        let mut count = 0;
        self.range_estimates(&[(*lower, *upper)], |_, found| count = found)?;
        Ok(count)
    }

    /// [`Tree::range_estimate`] of many ranges, best ascending: those of one leaf are counted while it is open. `each`
    /// gets the number of a range and its count.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn range_estimates(
        &self,
        ranges: &[(Key, Key)],
        mut each: impl FnMut(usize, u64),
    ) -> Result<()> {
        let mut next = 0;
        while let Some((lower, upper)) = ranges.get(next) {
            if cmp(lower, upper) == Ordering::Greater {
                each(next, 0);
                next += 1;
                continue;
            }
            let (Some(from), Some(to)) = (self.cached_descent(lower)?, self.cached_descent(upper)?)
            else {
                each(next, self.range_count(lower, upper)?);
                next += 1;
                continue;
            };
            if from.distance(&to) >= FAR {
                each(next, to.before().saturating_sub(from.before()));
                next += 1;
                continue;
            }
            let (page, block, frame) = self.leaf_by(Some(&from), lower, NO_BLOCK)?;
            let leaf = LeafView::open(&page, block)?;
            if frame.ends_before(upper) {
                let before = leaf.rank(lower, false)? as u64;
                drop(page);
                let (page, block, _) = self.leaf_by(Some(&to), upper, NO_BLOCK)?;
                let up_to = LeafView::open(&page, block)?.rank(upper, true)? as u64;
                let count = (to.before() + up_to).saturating_sub(from.before() + before);
                each(next, count);
                next += 1;
                continue;
            }
            let counted = count_in_leaf(&leaf, &frame, &ranges[next..], |n, count| {
                each(next + n, count);
            })?;
            next += counted;
        }
        Ok(())
    }
}

/// Counts the entries of the first of these ranges, as many of them as lie in the leaf; returns how many those are.
fn count_in_leaf(
    leaf: &LeafView<'_>,
    frame: &Frame,
    ranges: &[(Key, Key)],
    mut each: impl FnMut(usize, u64),
) -> Result<usize> {
    let mut gap: Option<Gap> = None;
    for (n, (lower, upper)) in ranges.iter().enumerate() {
        if gap.is_some_and(|gap| gap.holds(lower, upper)) {
            each(n, 0);
            continue;
        }
        if !frame.starts_at_or_before(lower) || frame.ends_before(upper) {
            return Ok(n);
        }
        if cmp(lower, upper) == Ordering::Greater {
            each(n, 0);
            continue;
        }
        let (before, up_to) = leaf.ranks(lower, upper)?;
        if before == up_to && leaf.slots() == 0 {
            gap = Some(leaf.gap(lower, before, frame));
        }
        each(n, up_to.saturating_sub(before) as u64);
    }
    Ok(ranges.len())
}
