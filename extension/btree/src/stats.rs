//! Figures about a tree.

use crate::block::NO_BLOCK;
use crate::descend::{Path, Target};
use crate::error::{corrupt, Result};
use crate::inner::{self, InnerView};
use crate::key::{cmp, KEY_MIN};
use crate::leaf::{LeafView, CAPACITY};
use crate::page::PAGE_SIZE;
use crate::store::PageStore;
use crate::tree::Tree;
use std::cmp::Ordering;

/// Figures about a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Levels, the leaves included.
    pub height: u32,
    /// Leaf pages.
    pub leaves: u64,
    /// Inner pages.
    pub inner: u64,
    /// Children of all inner pages.
    pub children: u64,
    /// Entries: versions, whoever sees them.
    pub entries: u64,
    /// Entries with a deletion mark, whatever became of the deleting transaction.
    pub marked: u64,
    /// Entries and marks in the tails of the leaves.
    pub tail: u64,
    /// Bytes in use in the leaves.
    pub leaf_bytes: u64,
    /// Bytes in use in the inner pages.
    pub inner_bytes: u64,
}

impl Stats {
    /// Bytes of all pages of the tree per entry.
    pub fn bytes_per_quad(&self) -> f64 {
        let bytes = (self.leaves + self.inner) as f64 * PAGE_SIZE as f64;
        bytes / (self.entries.max(1)) as f64
    }

    /// Mean part of a leaf that is in use, 0 to 1.
    pub fn leaf_fill(&self) -> f64 {
        self.leaf_bytes as f64 / (self.leaves.max(1) as f64 * CAPACITY as f64)
    }

    /// Mean part of an inner page that is in use, 0 to 1.
    pub fn inner_fill(&self) -> f64 {
        self.inner_bytes as f64 / (self.inner.max(1) as f64 * inner::CAPACITY as f64)
    }
}

impl<S: PageStore> Tree<S> {
    /// Reads the whole tree, level by level.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn stats(&self) -> Result<Stats> {
        let (_, top) = self.refresh_root()?;
        let mut stats = Stats {
            height: u32::from(top) + 1,
            ..Stats::default()
        };
        let mut entries = Vec::new();
        for level in (0..=top).rev() {
            let mut key = KEY_MIN;
            let mut hint = NO_BLOCK;
            loop {
                self.store.interrupt();
                let (page, block, frame) = self.page_holding(&key, level, hint)?;
                if level == 0 {
                    let leaf = LeafView::open(&page, block)?;
                    leaf.decode(&mut entries)?;
                    stats.leaves += 1;
                    stats.entries += entries.len() as u64;
                    stats.marked += entries
                        .iter()
                        .filter(|e| e.xmax != 0 && !e.lock_only)
                        .count() as u64;
                    stats.tail += leaf.slots() as u64;
                    stats.leaf_bytes += leaf.used() as u64;
                } else {
                    let inner = InnerView::open(&page, block)?;
                    stats.inner += 1;
                    stats.children += inner.children() as u64;
                    stats.inner_bytes += inner.used() as u64;
                }
                let Some(high) = frame.high else { break };
                if cmp(&high, &key) != Ordering::Greater {
                    return corrupt(block, "fences are out of order");
                }
                key = high;
                hint = frame.right;
            }
        }
        Ok(stats)
    }

    /// The page of `level` that holds `key`: `hint`, or what a descent finds.
    pub(crate) fn page_holding(
        &self,
        key: &crate::key::Key,
        level: u8,
        hint: crate::block::BlockNo,
    ) -> Result<(S::Read, crate::block::BlockNo, crate::page::Frame)> {
        if hint != NO_BLOCK {
            let page = self.store.read(hint);
            let frame = page.frame(hint)?;
            if self.is_mine(&frame, level)
                && frame.starts_at_or_before(key)
                && !frame.ends_before(key)
            {
                return Ok((page, hint, frame));
            }
        }
        self.find(Target::Holding(key), level, &mut Path::new())
    }
}
