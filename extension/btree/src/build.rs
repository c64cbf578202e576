//! Bulk build of an empty tree from sorted keys, bottom-up.
//!
//! Leaves are appended one after the other as the keys come, then each inner level in turn, so that a
//! right sibling is always the next block. Nothing points to the new pages until the metapage does.

use crate::descend::{Path, Target};
use crate::error::{Error, Result};
use crate::inner::{encode_inner, encoded_bytes, Child, CAPACITY as INNER_CAPACITY};
use crate::key::{cmp, separator, Key, KEY_MIN};
use crate::leaf::{encode_uniform, uniform_plan, LeafView, CAPACITY};
use crate::meta::Meta;
use crate::packed::MAX_RUN;
use crate::page::{BlockNo, Frame, Page, PageKind, FROZEN_XID, F_ROOT, NO_BLOCK};
use crate::settle::marks_of;
use crate::store::{Change, PageStore};
use crate::tree::Tree;
use std::cmp::Ordering;

/// Pages handed to the store at a time.
const APPEND_PAGES: usize = 32;

/// Pages on their way to the end of the file.
struct Appender<'s, S: PageStore> {
    store: &'s S,
    pending: Vec<Page>,
    next: BlockNo,
}

impl<'s, S: PageStore> Appender<'s, S> {
    fn new(store: &'s S) -> Self {
        Appender {
            store,
            pending: Vec::with_capacity(APPEND_PAGES),
            next: store.next_block(),
        }
    }

    /// The block of the next page pushed.
    fn next(&self) -> BlockNo {
        self.next
    }

    fn push(&mut self, page: Page) {
        self.pending.push(page);
        self.next += 1;
        if self.pending.len() == APPEND_PAGES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.store.interrupt();
            let first = self.store.append(&mut self.pending);
            debug_assert_eq!(first as usize + self.pending.len(), self.next as usize);
            self.pending.clear();
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
        {
            let root = self.refresh_root()?;
            let (page, block, frame) = self.find(Target::Holding(&KEY_MIN), 0, &mut Path::new())?;
            if root.1 != 0 || !frame.is_root() || LeafView::open(&page, block)?.entries() > 0 {
                return Err(Error::NotEmpty);
            }
        }
        let fill = fill.clamp(0.1, 1.0);
        let mut out = Appender::new(&self.store);
        let (mut children, total) = self.build_leaves(keys, (xid, cid), fill, &mut out)?;
        if children.is_empty() {
            return Ok(0);
        }
        let mut level = 0;
        while children.len() > 1 {
            level += 1;
            children = self.build_inner(&children, level, fill, &mut out)?;
        }
        out.flush();
        self.store.stop("build-before-switch");
        self.swap_root(children[0].block, level)?;
        Ok(total)
    }

    fn build_leaves(
        &self,
        mut keys: impl Iterator<Item = Key>,
        xmin: (u32, u32),
        fill: f64,
        out: &mut Appender<'_, S>,
    ) -> Result<(Vec<Child>, u64)> {
        let target = (CAPACITY as f64 * fill) as usize;
        let max = self.leaf_max();
        let max = if self.info.leaf_quads == 0 {
            max
        } else {
            ((max as f64 * fill) as usize).max(1)
        };
        let mut window = Window::default();
        let mut children = Vec::new();
        let mut sort = Vec::new();
        let (mut total, mut guess, mut low) = (0u64, 512, KEY_MIN);
        let mut previous: Option<Key> = None;
        let mut more = true;
        loop {
            // One key more than a leaf can take, to know where the next one starts.
            while more && window.len() <= max {
                match keys.next() {
                    Some(k) => {
                        if previous.is_some_and(|p| cmp(&p, &k) != Ordering::Less) {
                            return Err(Error::Unsorted);
                        }
                        previous = Some(k);
                        window.push(&k);
                    }
                    None => more = false,
                }
            }
            if window.len() == 0 {
                break;
            }
            let limit = window.len().min(max);
            let (mut fits, mut fails): (Option<(usize, _)>, usize) = (None, limit + 1);
            let mut n = guess.clamp(1, limit);
            for _ in 0..8 {
                let (plan, bytes) = uniform_plan(window.columns(n), &mut sort);
                let best = fits.as_ref().map_or(0, |f| f.0);
                if bytes <= target || n == 1 {
                    fits = Some((n, plan));
                    if n == limit || bytes * 100 >= target * 97 {
                        break;
                    }
                } else {
                    fails = n;
                }
                let best = fits.as_ref().map_or(best, |f| f.0);
                if best + 1 >= fails || (best > 0 && fails - best <= best / 64) {
                    break;
                }
                n = (n * target * 99 / (bytes * 100).max(1)).clamp(best + 1, fails - 1);
            }
            let (n, plan) = match fits {
                Some(f) => f,
                None => (1, uniform_plan(window.columns(1), &mut sort).0),
            };
            guess = n;
            let last = !more && n == window.len();
            let high = (!last).then(|| separator(&window.key(n - 1), &window.key(n)));
            let frame = Frame {
                kind: PageKind::Leaf,
                order: self.index as u8,
                level: 0,
                flags: if last && children.is_empty() {
                    F_ROOT
                } else {
                    0
                },
                right: if last { NO_BLOCK } else { out.next() + 1 },
                low,
                high,
            };
            children.push(Child {
                low,
                block: out.next(),
                count: n as u64,
                marks: if xmin.0 == FROZEN_XID {
                    marks_of(self.order(), |column, value| {
                        window.columns(n)[column].iter().all(|v| *v == value)
                    })
                } else {
                    0
                },
            });
            out.push(*encode_uniform(plan, window.columns(n), xmin, &frame));
            window.consume(n);
            total += n as u64;
            match high {
                Some(h) => low = h,
                None => break,
            }
        }
        Ok((children, total))
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
                right: if after.is_empty() {
                    NO_BLOCK
                } else {
                    out.next() + 1
                },
                low: here[0].low,
                high: after.first().map(|c| c.low),
            };
            let Some(page) = encode_inner(here, &frame) else {
                return Err(Error::Corrupt {
                    block: out.next(),
                    what: "a child does not fit in a page",
                });
            };
            let count = here.iter().map(|c| c.count).sum();
            parents.push(Child {
                low: frame.low,
                block: out.next(),
                count,
                marks: 0,
            });
            out.push(*page);
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
