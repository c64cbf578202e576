//! Loose scans: the distinct values of the first columns of a key range, and how many keys have them.
//!
//! A leaf is read for the values that occur in it. Where the last of them may go on beyond the leaf, the scan looks for
//! the first key behind it. So a value with many keys costs a descent instead of its leaves.

use crate::block::{BlockNo, NO_BLOCK};
use crate::count::Work;
use crate::equal_keys::for_each_group;
use crate::error::Result;
use crate::filter::{Filter, Filtered};
use crate::key::{cmp, Key, KEY_MAX};
use crate::leaf::LeafView;
use crate::packed::Run;
use crate::scan::{Sink, Walk};
use crate::store::{PageStore, Snapshot};
use crate::tree::Tree;
use std::cmp::Ordering;

/// Groups of keys that are equal in their first columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The columns, in the order of the tree; those behind the depth of the scan are empty.
    pub columns: [Vec<u64>; 4],
    /// How many keys each group has, if the scan counts them; at least 1 otherwise.
    pub counts: Vec<u64>,
    depth: usize,
    scratch: [Vec<u64>; 4],
}

impl Groups {
    /// Number of groups.
    #[inline]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Makes place for groups of so many columns.
    pub fn clear(&mut self, depth: usize) {
        for column in &mut self.columns {
            column.clear();
        }
        self.counts.clear();
        self.depth = depth;
    }

    /// Adds a group; only the first columns of `key` that groups have are looked at. Groups come ascending.
    pub fn push(&mut self, key: &Key, count: u64) {
        for (column, value) in self.columns[..self.depth].iter_mut().zip(key) {
            column.push(*value);
        }
        self.counts.push(count);
    }

    /// The first columns of group `i`, and 0 in the others.
    #[must_use]
    pub fn key(&self, i: usize) -> Key {
        std::array::from_fn(|c| self.columns[c].get(i).copied().unwrap_or(0))
    }

    /// Adds keys to the last group if they belong to it, else begins a new one.
    #[inline]
    fn add(&mut self, count: u64, value: impl Fn(usize) -> u64) {
        let same = (0..self.depth).all(|c| self.columns[c].last() == Some(&value(c)));
        match self.counts.last_mut() {
            Some(last) if same => *last += count,
            _ => {
                for c in 0..self.depth {
                    self.columns[c].push(value(c));
                }
                self.counts.push(count);
            }
        }
    }

    /// The greatest key that the last group can have.
    fn last_end(&self) -> Option<Key> {
        let mut end = KEY_MAX;
        for (c, column) in self.columns[..self.depth].iter().enumerate() {
            end[c] = *column.last()?;
        }
        Some(end)
    }
}

impl Sink for &mut Groups {
    fn range(&mut self, run: &Run<'_, 4>, lo: usize, hi: usize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mask = (1 << self.depth) - 1;
        for_each_group(run, (lo, hi), mask, &mut scratch, |count, value| {
            self.add(count, value);
        });
        self.scratch = scratch;
    }

    fn key(&mut self, key: &Key) {
        self.add(1, |c| key[c]);
    }
}

/// A loose scan of a key range. Holds no lock and no page between calls.
#[derive(Clone, Debug)]
pub struct GroupCursor {
    at: Key,
    upper: Key,
    depth: usize,
    counting: bool,
    done: bool,
    hint: BlockNo,
}

impl GroupCursor {
    /// The groups of the keys from `lower` to `upper`, both included, by their first `depth` columns (1 to 4);
    /// `counting`: with the number of keys of each.
    pub fn new(lower: Key, upper: Key, depth: usize, counting: bool) -> Self {
        GroupCursor {
            at: lower,
            upper,
            depth: depth.clamp(1, 4),
            counting,
            done: cmp(&lower, &upper) == Ordering::Greater,
            hint: NO_BLOCK,
        }
    }

    /// Reads on until there are `enough` groups (the groups of one leaf more at most) or no more. The groups ascend,
    /// and are of keys that the snapshot sees and that pass the filters. Each is complete. Returns false at the end,
    /// with no groups.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn next_batch<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
        filters: &[Filter],
        enough: usize,
        groups: &mut Groups,
        work: &mut Work,
    ) -> Result<bool> {
        groups.clear(self.depth);
        while !self.done && groups.len() < enough.max(1) {
            tree.store.interrupt();
            self.step(tree, snapshot, filters, groups, work)?;
        }
        Ok(!groups.is_empty())
    }

    /// Reads one leaf.
    fn step<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
        filters: &[Filter],
        groups: &mut Groups,
        work: &mut Work,
    ) -> Result<()> {
        let (page, block, frame) = tree.leaf_holding(&self.at, self.hint)?;
        let leaf = LeafView::open(&page, block)?;
        let from = Some(&self.at).filter(|k| cmp(k, &frame.low) == Ordering::Greater);
        let to = Some(&self.upper).filter(|k| !frame.ends_before(k));
        let mut sink = Filtered::new(filters, &mut *groups);
        Walk::new(&leaf, snapshot).run(from, to, false, &mut sink)?;
        drop(page);
        work.leaves += 1;
        self.hint = frame.right;
        let Some(high) = frame
            .high
            .filter(|h| cmp(h, &self.upper) != Ordering::Greater)
        else {
            self.done = true;
            return Ok(());
        };
        self.at = high;
        let Some(end) = groups
            .last_end()
            .filter(|end| cmp(&high, end) != Ordering::Greater)
        else {
            return Ok(());
        };
        if self.counting {
            let upper = end.min(self.upper);
            let rest = tree.count_visible(&high, &upper, filters, snapshot, work)?;
            if let Some(last) = groups.counts.last_mut() {
                *last += rest;
            }
        }
        match successor(&end, self.depth) {
            Some(next) if cmp(&next, &self.upper) != Ordering::Greater => self.at = next,
            _ => self.done = true,
        }
        Ok(())
    }
}

/// The least key whose first `depth` columns come after those of `key`.
fn successor(key: &Key, depth: usize) -> Option<Key> {
    let mut next = *key;
    next[depth..].fill(0);
    for c in (0..depth).rev() {
        match next[c].checked_add(1) {
            Some(value) => {
                next[c] = value;
                return Some(next);
            }
            None => next[c] = 0,
        }
    }
    None
}
