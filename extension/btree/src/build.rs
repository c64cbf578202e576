//! Bulk build of an empty tree from sorted keys, bottom-up.
//!
//! [`Leaves`] makes the leaf pages of a tree from its keys. It knows no store, so it can run on any thread. [`Build`]
//! gives the leaves their blocks, appends them and then each inner level. Several trees of one file can be built side
//! by side: each takes blocks from extents of its own. Nothing points to the new pages until the metapage does.

use crate::block::{BlockNo, NO_BLOCK};
use crate::descend::{Path, Target};
use crate::error::{Error, Result};
use crate::inner::{encode_inner, encoded_bytes, Child, CAPACITY as INNER_CAPACITY};
use crate::key::{cmp, separator, Key, KEY_MIN};
use crate::leaf::{encode_uniform, uniform_plan, LeafView, CAPACITY};
use crate::meta::Meta;
use crate::order::Order;
use crate::packed::{RunPlan, MAX_RUN};
use crate::page::{Frame, Page, PageKind, FROZEN_XID, F_ROOT};
use crate::store::{Change, PageStore, MAX_APPENDED_PAGES};
use crate::tree::Tree;
use crate::visibility_marks::marks_of;
use std::cmp::Ordering;
use std::ops::Range;

/// Most pages of an extent. A tree gets so many of the file at a time, so its pages lie together (256 kB) though other
/// trees are built at the same time.
const EXTENT_PAGES: usize = 32;
/// An extent is at most this part of what the tree has already, so that few pages of a small tree are left over.
const EXTENT_PART: usize = 16;
/// Tries of leaf sizes before the best one so far is taken.
const MAX_TRIES: usize = 8;

/// Pages of one tree on their way to the file.
struct Appender<'s, S: PageStore> {
    store: &'s S,
    /// Blocks that the tree has got and not used.
    extent: Range<BlockNo>,
    /// Pages of consecutive blocks that are not written yet.
    pending: Vec<Page>,
    first_pending: BlockNo,
    pages: usize,
}

impl<'s, S: PageStore> Appender<'s, S> {
    fn new(store: &'s S) -> Self {
        Appender {
            store,
            extent: 0..0,
            pending: Vec::with_capacity(MAX_APPENDED_PAGES),
            first_pending: 0,
            pages: 0,
        }
    }

    /// The block of the next page pushed.
    fn next(&mut self) -> BlockNo {
        if self.extent.is_empty() {
            let count = (self.pages / EXTENT_PART).clamp(1, EXTENT_PAGES);
            let first = self.store.extend(count);
            self.extent = first..first + count as BlockNo;
        }
        self.extent.start
    }

    /// Takes a page; the right sibling of one that is not the last of its level will be the next page. Returns its
    /// block.
    fn push(&mut self, mut page: Page, is_last: bool) -> BlockNo {
        let block = self.next();
        self.extent.start += 1;
        self.pages += 1;
        if !is_last {
            let right = self.next();
            page.set_right(right);
        }
        if self.first_pending + self.pending.len() as BlockNo != block {
            self.flush();
        }
        if self.pending.is_empty() {
            self.first_pending = block;
        }
        self.pending.push(page);
        if self.pending.len() == MAX_APPENDED_PAGES {
            self.flush();
        }
        block
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.store.interrupt();
            self.store.put(self.first_pending, &mut self.pending);
            self.pending.clear();
        }
    }

    /// Writes what is pending, and gives up the blocks that are left.
    fn finish(mut self, order: u8) {
        let rest = self.extent.clone();
        for _ in rest.clone() {
            self.push(*Page::deleted(order, 0), true);
        }
        self.flush();
        for block in rest {
            self.store.free(block);
        }
    }
}

/// Keys read ahead of the leaves, as columns.
#[derive(Default)]
struct Window {
    columns: [Vec<u64>; 4],
    start: usize,
}

impl Window {
    fn len(&self) -> usize {
        self.columns[0].len() - self.start
    }

    fn push(&mut self, key: &Key) {
        for (c, v) in self.columns.iter_mut().zip(key) {
            c.push(*v);
        }
    }

    fn key(&self, i: usize) -> Key {
        std::array::from_fn(|c| self.columns[c][self.start + i])
    }

    fn columns(&self, n: usize) -> [&[u64]; 4] {
        std::array::from_fn(|c| &self.columns[c][self.start..self.start + n])
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
        if self.start >= 2 * MAX_RUN {
            for c in &mut self.columns {
                c.drain(..self.start);
            }
            self.start = 0;
        }
    }
}

/// A leaf of a new tree, which has no place in the file yet.
pub struct NewLeaf {
    page: Box<Page>,
    low: Key,
    keys: usize,
    marks: u8,
    is_last: bool,
}

/// The leaves of a new tree, made from its keys one after the other.
pub struct Leaves<K> {
    keys: K,
    /// The number of the tree in the file.
    index: u8,
    order: Order,
    inserted_by: (u32, u32),
    /// Bytes of a leaf that are to be filled.
    target: usize,
    /// Most keys of a leaf.
    max: usize,
    window: Window,
    sort: Vec<u64>,
    /// Keys of the leaf before, which the next one is likely to take too.
    guess: usize,
    low: Key,
    previous: Option<Key>,
    /// The keys have not ended.
    more: bool,
    is_first: bool,
}

impl<K: Iterator<Item = Key>> Leaves<K> {
    /// The keys, which are used up when there are no more leaves.
    pub fn into_keys(self) -> K {
        self.keys
    }

    /// Reads one key more than a leaf can take, to know where the next leaf starts.
    fn fill_window(&mut self) -> Result<()> {
        while self.more && self.window.len() <= self.max {
            let Some(key) = self.keys.next() else {
                self.more = false;
                break;
            };
            if self
                .previous
                .is_some_and(|previous| cmp(&previous, &key) != Ordering::Less)
            {
                return Err(Error::Unsorted);
            }
            self.previous = Some(key);
            self.window.push(&key);
        }
        Ok(())
    }

    /// The most keys of the window that fill a leaf, with their plan.
    fn choose(&mut self) -> (usize, RunPlan<4>) {
        let limit = self.window.len().min(self.max);
        let (mut fits, mut fails): (Option<(usize, _)>, usize) = (None, limit + 1);
        let mut n = self.guess.clamp(1, limit);
        for _ in 0..MAX_TRIES {
            let (plan, bytes) = uniform_plan(self.window.columns(n), &mut self.sort);
            if bytes <= self.target || n == 1 {
                fits = Some((n, plan));
                if n == limit || bytes * 100 >= self.target * 97 {
                    break;
                }
            } else {
                fails = n;
            }
            let best = fits.as_ref().map_or(0, |f| f.0);
            if best + 1 >= fails || (best > 0 && fails - best <= best / 64) {
                break;
            }
            n = (n * self.target * 99 / (bytes * 100).max(1)).clamp(best + 1, fails - 1);
        }
        fits.unwrap_or_else(|| (1, uniform_plan(self.window.columns(1), &mut self.sort).0))
    }

    fn next_leaf(&mut self) -> Result<Option<NewLeaf>> {
        self.fill_window()?;
        if self.window.len() == 0 {
            return Ok(None);
        }
        let (n, plan) = self.choose();
        self.guess = n;
        let is_last = !self.more && n == self.window.len();
        let high = (!is_last).then(|| separator(&self.window.key(n - 1), &self.window.key(n)));
        let frame = Frame {
            kind: PageKind::Leaf,
            order: self.index,
            level: 0,
            flags: if is_last && self.is_first { F_ROOT } else { 0 },
            right: NO_BLOCK,
            low: self.low,
            high,
        };
        let marks = if self.inserted_by.0 == FROZEN_XID {
            marks_of(self.order, |column, value| {
                self.window.columns(n)[column].iter().all(|v| *v == value)
            })
        } else {
            0
        };
        let page = encode_uniform(plan, self.window.columns(n), self.inserted_by, &frame);
        self.window.consume(n);
        self.is_first = false;
        self.low = high.unwrap_or(self.low);
        Ok(Some(NewLeaf {
            page,
            low: frame.low,
            keys: n,
            marks,
            is_last,
        }))
    }
}

impl<K: Iterator<Item = Key>> Iterator for Leaves<K> {
    type Item = Result<NewLeaf>;

    fn next(&mut self) -> Option<Result<NewLeaf>> {
        self.next_leaf().transpose()
    }
}

/// The bulk build of one tree. Dropped before its end it leaves pages behind that nothing points to.
pub struct Build<'t, S: PageStore> {
    tree: &'t Tree<S>,
    fill: f64,
    out: Appender<'t, S>,
    children: Vec<Child>,
    keys: u64,
}

impl<S: PageStore> Build<'_, S> {
    /// Adds the next leaf.
    pub fn push(&mut self, leaf: NewLeaf) {
        let block = self.out.push(*leaf.page, leaf.is_last);
        self.children.push(Child {
            low: leaf.low,
            block,
            count: leaf.keys as u64,
            marks: leaf.marks,
        });
        self.keys += leaf.keys as u64;
    }

    /// Number of keys so far.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Writes the inner pages, then lets the metapage point to the new root. Returns the number of keys.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn finish(mut self) -> Result<u64> {
        let (mut children, mut level) = (std::mem::take(&mut self.children), 0);
        while children.len() > 1 {
            level += 1;
            children = self
                .tree
                .build_inner(&children, level, self.fill, &mut self.out)?;
        }
        self.out.finish(self.tree.index as u8);
        if let Some(root) = children.first() {
            self.tree.store.stop("build-before-switch");
            self.tree.swap_root(root.block, level)?;
        }
        Ok(self.keys)
    }
}

impl<S: PageStore> Tree<S> {
    /// Fills the empty tree with keys in strictly ascending order, all inserted by `xid` in `cid`
    /// (`xid` = 2: visible to everyone). `fill` is the part of a page to fill, between 0.1 and 1.
    /// Returns the number of keys. The caller holds a lock that keeps everyone else out.
    ///
    /// # Errors
    /// [`Error::NotEmpty`]; [`Error::Unsorted`]; corrupt pages. Pages appended before an error stay
    /// behind unused.
    pub fn build(
        &self,
        keys: impl Iterator<Item = Key>,
        xid: u32,
        cid: u32,
        fill: f64,
    ) -> Result<u64> {
        let mut build = self.start_build(fill)?;
        for leaf in self.leaves(keys, xid, cid, fill) {
            build.push(leaf?);
        }
        build.finish()
    }

    /// Starts to fill the empty tree with [`Tree::leaves`] that have been made with the same `fill`. The caller holds a
    /// lock that keeps everyone else out.
    ///
    /// # Errors
    /// [`Error::NotEmpty`]; corrupt pages.
    pub fn start_build(&self, fill: f64) -> Result<Build<'_, S>> {
        let root = self.refresh_root()?;
        let (page, block, frame) = self.find(Target::Holding(&KEY_MIN), 0, &mut Path::new())?;
        if root.1 != 0 || !frame.is_root() || LeafView::open(&page, block)?.entries() > 0 {
            return Err(Error::NotEmpty);
        }
        Ok(Build {
            tree: self,
            fill: fill.clamp(0.1, 1.0),
            out: Appender::new(&self.store),
            children: Vec::new(),
            keys: 0,
        })
    }

    /// The leaves of keys in strictly ascending order, for [`Tree::start_build`]; the other arguments are those of
    /// [`Tree::build`].
    pub fn leaves<K: Iterator<Item = Key>>(
        &self,
        keys: K,
        xid: u32,
        cid: u32,
        fill: f64,
    ) -> Leaves<K> {
        let fill = fill.clamp(0.1, 1.0);
        let max = self.leaf_max();
        Leaves {
            keys,
            index: self.index as u8,
            order: self.order(),
            inserted_by: (xid, cid),
            target: (CAPACITY as f64 * fill) as usize,
            max: if self.info.leaf_quads == 0 {
                max
            } else {
                ((max as f64 * fill) as usize).max(1)
            },
            window: Window::default(),
            sort: Vec::new(),
            guess: 512,
            low: KEY_MIN,
            previous: None,
            more: true,
            is_first: true,
        }
    }

    fn build_inner(
        &self,
        children: &[Child],
        level: u8,
        fill: f64,
        out: &mut Appender<'_, S>,
    ) -> Result<Vec<Child>> {
        let target = (INNER_CAPACITY as f64 * fill) as usize;
        let max = self.inner_max();
        let max = if self.info.inner_fanout == 0 {
            max
        } else {
            ((max as f64 * fill) as usize).max(2)
        };
        let mut parents = Vec::new();
        let mut rest = children;
        let mut guess = 256;
        while !rest.is_empty() {
            let limit = rest.len().min(max);
            let (mut fits, mut fails) = (0, limit + 1);
            let mut n = guess.clamp(1, limit);
            for _ in 0..8 {
                let bytes = encoded_bytes(&rest[..n], level);
                if bytes <= target {
                    fits = n;
                    if n == limit || bytes * 100 >= target * 95 {
                        break;
                    }
                } else {
                    fails = n;
                }
                if fits + 1 >= fails {
                    break;
                }
                n = (n * target / bytes.max(1)).clamp(fits + 1, fails - 1);
            }
            let n = fits.max(1);
            guess = n;
            let (here, after) = rest.split_at(n);
            let frame = Frame {
                kind: PageKind::Inner,
                order: self.index as u8,
                level,
                flags: if after.is_empty() && parents.is_empty() {
                    F_ROOT
                } else {
                    0
                },
                right: NO_BLOCK,
                low: here[0].low,
                high: after.first().map(|c| c.low),
            };
            let Some(page) = encode_inner(here, &frame) else {
                return Err(Error::Corrupt {
                    block: out.next(),
                    what: "a child does not fit in a page",
                });
            };
            let block = out.push(*page, after.is_empty());
            parents.push(Child {
                low: frame.low,
                block,
                count: here.iter().map(|c| c.count).sum(),
                marks: 0,
            });
            rest = after;
        }
        Ok(parents)
    }

    /// Lets the metapage point to a new root and gives up the old one, an empty leaf.
    fn swap_root(&self, root: BlockNo, level: u8) -> Result<()> {
        let mut old = self.store.write(self.refresh_root()?.0);
        let old_block = self.store.block_of(&old);
        let mut meta_page = self.store.write(0);
        let mut meta = Meta::decode(&meta_page)?;
        let info = meta.order_mut(self.index)?;
        info.root = root;
        info.root_level = level;
        let (deleted, image) = (Page::deleted(self.index as u8, 0), meta.encode());
        self.store.commit(
            &mut [
                Change::new(&mut old, &deleted),
                Change::new(&mut meta_page, &image),
            ],
            0,
        );
        drop(old);
        drop(meta_page);
        self.store.free(old_block);
        self.root.set((root, level));
        Ok(())
    }
}
